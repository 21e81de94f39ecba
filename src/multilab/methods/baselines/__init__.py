"""Baselines that ignore the features: any method has to beat them."""
