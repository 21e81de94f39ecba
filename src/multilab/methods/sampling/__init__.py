"""Resampling of the training rows by label, inside folds only."""
