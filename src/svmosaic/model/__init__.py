"""The fitted form: a bank of tiles, its heads and calibrations, blends, predictors and the registry of types."""
