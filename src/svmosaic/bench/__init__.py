"""`svmosaic bench`: our models and their peers, timed in one run."""
