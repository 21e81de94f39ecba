"""Feature selectors: features ranked by their relevance to the labels."""
