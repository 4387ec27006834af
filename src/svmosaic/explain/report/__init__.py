"""The report: one HTML page about a model and its regions."""
