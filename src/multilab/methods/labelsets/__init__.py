"""Variants of ensembles on sets of labels."""
