"""`multilab compare`: a portfolio of methods on one dataset inside a budget of time."""
