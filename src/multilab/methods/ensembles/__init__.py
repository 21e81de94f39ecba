"""Ensembles of multi-label classifiers: bagged, of label subsets, boosted, stacked."""
