"""MLWSE: weighted stacking with sparse regularisation."""
