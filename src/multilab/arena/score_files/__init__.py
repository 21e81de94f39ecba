"""Files of the scores of all cells of a study: reading them, decisions from scores, rounding that keeps orders."""
