"""Methods that learn from the labels of nearby instances."""
