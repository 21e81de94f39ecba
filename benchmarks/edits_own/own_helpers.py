"""Helpers that the user's methods share."""

from scipy.special import expit


def centred(A):
    """Return a matrix less the means of its columns, and the means."""
    means = A.mean(axis=0)
    return A - means, means


def squashed(share, slope=4.0):
    """Return a share of a label as a probability."""
    return expit(slope * (share - 0.5))
