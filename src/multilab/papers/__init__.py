"""Content of the papers: published values, errata, names, claims, checks, analyses and figures, one folder each."""
