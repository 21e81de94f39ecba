"""Dimensionality reduction: MDDM and its kernel forms, with kernel PCA and kernel CCA as comparators."""
