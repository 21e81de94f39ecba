"""Summary of a leaderboard: a module per section, with its numbers and its sentences."""
