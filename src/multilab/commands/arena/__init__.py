"""Commands of the arena."""
