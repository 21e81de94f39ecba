"""Forests of predictive clustering trees, alone and in cascades."""
