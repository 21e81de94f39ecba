"""Tables of a report: scores, costs, variants, and results in a terminal."""
