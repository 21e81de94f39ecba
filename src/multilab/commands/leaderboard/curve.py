"""Learning curve: one method fitted on fewer rows."""

import time

import numpy as np
import pandas as pd

from multilab.commands.leaderboard.board import CellScores
from multilab.commands.leaderboard.plan import Contestant, Sizes
from multilab.experiments.cells import Cell, split_refs
from multilab.experiments.deadlines import run_cells_within
from multilab.experiments.fitting import indices

__all__ = ["learning_curve"]

_SHARES = (0.1, 0.2, 0.4)
_REPEATS = 3
_LEAST_ROWS = 20


def learning_curve(entry: Contestant, scores: CellScores, sizes: Sizes, deadline: float, n_jobs: int) -> pd.DataFrame:
    """Fit a method on random shares of the rows, score the other rows, and add the folds of the comparison.

    Sizes that do not fit before the deadline are left out.

    Parameters
    ----------
    entry : Contestant
        A finished method.
    scores : CellScores
    sizes : Sizes
    deadline : float
        By ``time.monotonic``.
    n_jobs : int

    Returns
    -------
    DataFrame
        Columns share, rows, split, metric, value; the last share is that of the folds.
    """
    frames = []
    for share in (share for share in _SHARES if share < sizes.train_share and share * sizes.n >= _LEAST_ROWS):
        protocol = {"holdout": {"train_size": share}, "stratify": 1, "seed": 0, "repeats": _REPEATS}
        refs = split_refs(entry.cells[0].split_ref.dataset, protocol)
        cells = [Cell("train", ref, entry.candidate.method) for ref in refs]
        outcome = run_cells_within(cells, scores.store, deadline - time.monotonic(), n_jobs)
        if outcome.stopped:
            break
        if not outcome.failures:
            frames.append(_rows(share, cells, scores))
    frames.append(_rows(sizes.train_share, entry.cells, scores))
    return pd.concat(frames, ignore_index=True)


def _rows(share: float, cells: list[Cell], scores: CellScores) -> pd.DataFrame:
    rows = []
    for position, cell in enumerate(cells):
        n = len(indices(cell.split_ref)[0])
        values = scores.values(cell) or {}
        rows += [(share, n, position, metric, values.get(metric, np.nan)) for metric in scores.metrics]
    return pd.DataFrame(rows, columns=["share", "rows", "split", "metric", "value"])
