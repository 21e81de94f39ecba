"""Transformers to a few dimensions that depend most on the labels."""
