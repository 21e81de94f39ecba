"""The part of a page about a paper: its tables with our numbers, errata, Friedman tests, rank figures and claims."""
