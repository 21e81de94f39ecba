"""Result of one method on one dataset: metrics over the splits, seconds and warnings."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class ResultRow:
    """One method with its settings on one dataset under one protocol.

    Attributes
    ----------
    dataset, protocol, method : str
    settings : tuple of str
        What differs from the method's YAML, as ``name=value``.
    splits : int
        Finished splits, of ``expected`` (``None`` where that is not known).
    metrics : dict of str to tuple of float
        Values of the splits.
    seconds : float
        Of all splits: fit (with the base scores it reads), search and prediction.
    warnings : int
        Distinct warnings, summed over the splits.
    """

    dataset: str
    protocol: str
    method: str
    settings: tuple[str, ...] = ()
    splits: int = 0
    expected: int | None = None
    metrics: dict[str, tuple[float, ...]] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: int = 0

    @property
    def complete(self) -> bool:
        """Whether no split is missing."""
        return self.expected is None or self.splits >= self.expected

    def mean(self, metric: str) -> float:
        """Return the mean over the splits; NaN where a split has no value."""
        values = self.metrics.get(metric, ())
        return sum(values) / len(values) if values else float("nan")

    def std(self, metric: str) -> float:
        """Return the standard deviation over the splits; NaN for a single one."""
        values = self.metrics.get(metric, ())
        return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
