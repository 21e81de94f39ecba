"""Out-of-fold probabilities of several methods on a dataset, and the labels that they doubt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import expit

from multilab.cells.execute import run_cells
from multilab.cells.rows import indices
from multilab.cells.store import Store
from multilab.comparison.errors import ComparisonError
from multilab.comparison.plan import MethodRun, Request
from multilab.comparison.portfolio import load_portfolio
from multilab.comparison.run import method_runs
from multilab.datasets import Dataset, load
from multilab.datasets.corrections import Correction
from multilab.decision import CalibratedMultiLabelClassifier
from multilab.statistics import label_doubts

__all__ = ["METHODS", "Doubts", "find_doubts"]

METHODS = "br_logistic,erf_pct,mlknn"
"""Three unlike methods with probabilities that fit within seconds: linear, trees, neighbours."""


@dataclass(frozen=True, eq=False)
class Doubts:
    """Labels of a dataset that methods doubt.

    Attributes
    ----------
    data : Dataset
    table : DataFrame
        See `multilab.statistics.label_doubts`.
    methods : tuple of str
        The methods whose probabilities were used.
    left_out : dict of str to str
        Why a method was not used.
    ranking : str
    """

    data: Dataset
    table: pd.DataFrame
    methods: tuple[str, ...]
    left_out: dict[str, str]
    ranking: str

    @property
    def masks(self) -> list[Correction]:
        """The doubted cells as corrections after which they are not observed."""
        doubted = self.table[self.table["doubted"]]
        cells = zip(doubted["row"], doubted["label"], doubted["given"], strict=True)
        return [Correction(int(row) + 1, label, int(given), -1) for row, label, given in cells]


def find_doubts(
    dataset: str,
    *,
    methods: str | None = None,
    ranking: str = "methods",
    cv: int = 5,
    progress: Callable[[str], object] | None = None,
) -> Doubts:
    """Return the labels of a dataset that methods doubt.

    Parameters
    ----------
    dataset : str
        Name of a dataset.
    methods : str, optional
        Names and patterns as for `multilab compare`; default: :data:`METHODS`.
    ranking : {"methods", "cleanlab"}, default="methods"
        See `multilab.statistics.label_doubts`.
    cv : int, default=5
        Number of folds. Folds and fits are the same as in `multilab compare`, whose stored fits are reused.
    progress : callable, optional
        Called with one line before the fits of each method.

    Raises
    ------
    ComparisonError
        If no method has scores of all rows.

    Notes
    -----
    Margins become probabilities by a sigmoid per label that is learned on the other folds.
    """
    store, portfolio = Store(), load_portfolio()
    request = Request(dataset, methods or METHODS, np.inf, "macro_f1", cv, Path())
    entries, _, _ = method_runs(request, portfolio)
    data = load(dataset)
    Y = data.Y.toarray() if sp.issparse(data.Y) else data.Y
    scores: dict[str, np.ndarray] = {}
    left_out: dict[str, str] = {}
    for entry in entries:
        if entry.name == portfolio.baseline:
            continue
        if progress:
            progress(f"{entry.name}: {cv} folds")
        if entry.status != "left out":
            failed = run_cells(entry.cells, store)
            entry.note = next(iter(failed.values()), "")
        if entry.note:
            left_out[entry.name] = entry.note
        else:
            scores[entry.name] = _probabilities(entry, store, Y)
    if not scores:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items()) or "no method was named"
        raise ComparisonError(f"{dataset}: no method has scores ({reasons})")
    table = label_doubts(Y, scores, label_names=data.label_names, ranking=ranking)
    return Doubts(data, table, tuple(scores), left_out, ranking)


def _probabilities(entry: MethodRun, store: Store, Y: np.ndarray) -> np.ndarray:
    """Return the probabilities of all rows, each from the fold in which it is a test row."""
    rows = [indices(cell.split_ref)[1] for cell in entry.cells]
    scores = np.zeros(Y.shape)
    for test, cell in zip(rows, entry.cells, strict=True):
        scores[test] = store.arrays(cell.key)["scores"]
    if scores.min() >= 0 and scores.max() <= 1:
        return scores
    margins, probabilities = expit(scores), np.zeros(Y.shape)
    for test in rows:
        others = np.setdiff1d(np.arange(len(Y)), test)
        calibrated = CalibratedMultiLabelClassifier("precomputed", method="sigmoid").fit(margins[others], Y[others])
        probabilities[test] = calibrated.predict_proba(margins[test])
    return probabilities
