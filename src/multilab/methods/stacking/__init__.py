"""Weighted stacking: the scores of several multi-label classifiers, combined by sparse regression (MLWSE)."""
