"""The papers: published values, errata, names, layouts, claims, checks, analyses and figures, one folder each."""

from multilab.papers.paper import Paper, analyses_of, find, paper_names, paper_of

__all__ = ["Paper", "analyses_of", "find", "paper_names", "paper_of"]
