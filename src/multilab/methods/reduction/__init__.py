"""Reducers: transformers to few dimensions that learn from labels. They stand before a classifier in a `Pipeline`."""
