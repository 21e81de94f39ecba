"""Metrics of the stored cells of a comparison, and its leaderboard."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from multilab.cells.cell import Cell
from multilab.cells.rows import indices
from multilab.cells.store import Store
from multilab.comparison.board import board_of, summed
from multilab.comparison.plan import MethodRun
from multilab.metrics import per_label, score_all
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import by_name, defined
from multilab.statistics import Leaderboard
from multilab.statistics.result_files import CELL


@dataclass
class CellScores:
    """Values of the metrics of finished cells, computed from the stored scores once per cell.

    Attributes
    ----------
    Y : ndarray or sparse of shape (n, q)
        Labels of all rows.
    store : Store
    metrics : tuple of str
        The first one orders the leaderboard.
    label_names : sequence of str
    """

    Y: object
    store: Store
    metrics: tuple[str, ...]
    label_names: Sequence[str] = ()
    _values: dict[str, dict[str, float]] = field(default_factory=dict)

    def values(self, cell: Cell) -> dict[str, float] | None:
        """Return the metrics and seconds of a cell, None if it is not stored."""
        if cell.key not in self._values:
            if not self.store.has(cell.key):
                return None
            self._values[cell.key] = self._computed(cell)
        return self._values[cell.key]

    def _computed(self, cell: Cell) -> dict[str, float]:
        arrays, record = self.store.arrays(cell.key), self.store.record(cell.key)
        Y = self.Y[indices(cell.split_ref)[1]]  # type: ignore[index]
        values = metric_values(Y, arrays["scores"], arrays["decisions"], self.metrics)
        for metric in self.metrics:  # a method may predict for single metrics
            if f"scores.{metric}" in arrays:
                single = metric_values(Y, arrays[f"scores.{metric}"], arrays[f"decisions.{metric}"], (metric,))
                values |= single
        # Nothing is known of results from a pack, and of the base scores of a stack that read such results.
        fit = record.get("fit_seconds", np.nan) + record.get("input_seconds", np.nan if cell.reads else 0.0)
        return values | {"fit_seconds": fit, "predict_seconds": record.get("predict_seconds", np.nan)}

    def rows(self, entries: Sequence[MethodRun]) -> pd.DataFrame:
        """Return a row per method, split and metric: split, split_digest, method, metric, value, key."""
        rows = [
            (cell.split_ref.split, cell.split_ref.digest, entry.name, metric, value, cell.key)
            for entry in entries
            for cell in entry.cells
            for metric, value in (self.values(cell) or {}).items()
        ]
        return pd.DataFrame(rows, columns=["split", "split_digest", "method", "metric", "value", "key"])

    def leaderboard(self, entries: Sequence[MethodRun], alpha: float) -> Leaderboard:
        """Return the leaderboard; a method without all splits is listed as a failure with its reason."""
        cells = entries[0].cells
        sizes = [tuple(map(len, indices(cell.split_ref))) for cell in cells]
        complete = {entry.name for entry in entries if all(self.values(cell) for cell in entry.cells)}
        decided = [
            self.decided(cell, self.decisions(cell)).assign(method=entry.name)
            for entry in entries
            if entry.name in complete
            for cell in entry.cells
        ]
        dataset = cells[0].split_ref.dataset
        left = [
            (dataset, cell.split_ref.split, entry.name, entry.note or entry.status)
            for entry in entries
            if entry.name not in complete
            for cell in entry.cells
        ]
        return board_of(
            self.rows(entries).assign(dataset=dataset)[[*CELL, "metric", "value"]],
            self.metrics,
            tuple(entry.name for entry in entries),
            left,
            summed(decided),
            dataset=dataset,
            test_to_train=float(np.mean([test / train for train, test in sizes])),
            alpha=alpha,
        )

    def decisions(self, cell: Cell) -> np.ndarray:
        """Return the stored decisions of a cell that count for the first metric."""
        arrays = self.store.arrays(cell.key)
        return np.asarray(arrays.get(f"decisions.{self.metrics[0]}", arrays["decisions"]))

    def decided(self, cell: Cell, decisions: np.ndarray) -> pd.DataFrame:
        """Return how often each label was observed, is there, and is predicted on the test rows of a cell."""
        Y = self.Y[indices(cell.split_ref)[1]]  # type: ignore[index]
        table = per_label(Y, decisions=decisions, label_names=list(self.label_names) or None)
        return table[["label", "observed", "count", "predicted"]]


def metric_values(
    Y: object,
    scores: np.ndarray,
    decisions: np.ndarray,
    metrics: Sequence[MetricLike],
    sample_weight: np.ndarray | None = None,
) -> dict[str, float]:
    """Return metrics of one prediction, NaN for metrics of probabilities where the scores are none."""
    probabilities = bool(scores.min() >= 0 and scores.max() <= 1)
    computable = [metric for metric in metrics if probabilities or defined(metric).needs != "probabilities"]
    values = score_all(Y, scores, decisions, metrics=computable, sample_weight=sample_weight) if computable else {}
    return {name: float(values.get(name, np.nan)) for name in by_name(metrics)}
