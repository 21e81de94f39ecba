"""LSkMDDM: kernel dimensionality reduction by least squares."""
