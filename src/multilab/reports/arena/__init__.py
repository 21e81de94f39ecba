"""Pages of the arena: one over all sets, one per set, from committed files alone."""
