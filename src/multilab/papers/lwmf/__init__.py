"""LWMF: label-weighted feature selection."""
