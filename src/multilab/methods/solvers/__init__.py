"""Solvers of composite problems: smooth terms, penalties, algorithms, certificates, paths."""
