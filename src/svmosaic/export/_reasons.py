"""Why some models have no form outside of Python."""

NO_TILES = {
    "NeighborsSVC": "it has no fixed set of tiles, but keeps its training rows and solves an SVM for each query",
    "BoostedLinearSVC": "it is a vote among the classes that its rounds name, which is no sum over tiles",
    "ConvertedSVM": "it is a sum of kernels without an estimator around it; save() and predictor() take it",
    "ConvertedMixture": "it is a sum of kernels without an estimator around it; save() and predictor() take it",
}
