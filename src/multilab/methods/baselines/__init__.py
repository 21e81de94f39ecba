"""Baselines that do not look at the features: what any method has to beat."""
