"""The search behind `MosaicClassifier` and `MosaicRegressor`: candidates, rungs, a judge, a blend, a leaderboard.

It knows candidates as data, and estimators by a function that builds them; see `svmosaic.models`.
"""
