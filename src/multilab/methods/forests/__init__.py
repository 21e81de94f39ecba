"""Forests of predictive clustering trees, and deep forests: cascades of them."""
