"""Iterations at which the analyses of iterative algorithms list their progress."""

from __future__ import annotations

import numpy as np

__all__ = ["shown_iterations"]


def shown_iterations(count: int) -> np.ndarray:
    """Return the iterations that are listed: about 20 per factor of ten, and 100, 200, 300, 1000."""
    spaced = np.unique(np.round(np.geomspace(1, count, 1 + int(20 * np.log10(max(count, 2))))).astype(int))
    return np.union1d(spaced, np.array([i for i in (100, 200, 300, 1000) if i <= count], dtype=int))
