"""Selectors: features ranked by how well they tell the labels apart."""
