"""Learning curve: one method fitted on fewer rows."""

import time
from typing import Any

import numpy as np
import pandas as pd

from multilab.cells.cell import Cell, split_refs
from multilab.cells.execute import run_cells_within
from multilab.cells.rows import indices, ref_with_grams
from multilab.comparison.plan import MethodRun, Sizes
from multilab.comparison.scores import CellScores
from multilab.metrics.registry import defined
from multilab.statistics import corrected_unpaired_interval

__all__ = ["curve_remark", "is_of_curve", "learning_curve"]

_SHARES = (0.1, 0.2, 0.4)
_REPEATS = 3  # splits per size; a step of the curve needs an interval, so one split is not enough
_LEAST_ROWS = 20  # training rows; with fewer, many labels hardly have a positive row


def learning_curve(entry: MethodRun, scores: CellScores, sizes: Sizes, deadline: float, n_jobs: int) -> pd.DataFrame:
    """Fit a method on random shares of the rows, score the other rows, and add the folds of the comparison.

    Sizes that do not fit before the deadline are left out.

    Parameters
    ----------
    entry : MethodRun
        A finished method.
    scores : CellScores
    sizes : Sizes
    deadline : float
        By ``time.monotonic``.
    n_jobs : int

    Returns
    -------
    DataFrame
        Columns share, rows, split, metric, value; the last share belongs to the folds themselves.
    """
    frames = []
    for share in (share for share in _SHARES if share < sizes.train_share and share * sizes.n >= _LEAST_ROWS):
        refs = split_refs(entry.cells[0].split_ref.dataset, _protocol(share))
        refs = [ref_with_grams(ref) for ref in refs] if entry.member.chars else refs
        cells = [Cell("train", ref, entry.member.method) for ref in refs]
        outcome = run_cells_within(cells, scores.store, deadline - time.monotonic(), n_jobs)
        if outcome.stopped:
            break
        if not outcome.failures:
            frames.append(_rows(share, cells, scores))
    frames.append(_rows(sizes.train_share, entry.cells, scores))
    return pd.concat(frames, ignore_index=True)


def _protocol(share: float) -> dict[str, Any]:
    return {"holdout": {"train_size": share}, "stratify": 1, "seed": 0, "repeats": _REPEATS}


def is_of_curve(protocol: dict[str, Any] | None) -> bool:
    """Return whether splits are those of a learning curve.

    Examples
    --------
    >>> from multilab.comparison.curve import is_of_curve
    >>> is_of_curve({"holdout": {"train_size": 0.1}, "stratify": 1, "seed": 0, "repeats": 3})
    True
    >>> is_of_curve({"kfold": 5, "stratify": 1, "seed": 0})
    False
    """
    return protocol in [_protocol(share) for share in _SHARES]


def _rows(share: float, cells: list[Cell], scores: CellScores) -> pd.DataFrame:
    rows = []
    for position, cell in enumerate(cells):
        n = len(indices(cell.split_ref)[0])
        values = scores.values(cell) or {}
        rows += [(share, n, position, metric, values.get(metric, np.nan)) for metric in scores.metrics]
    return pd.DataFrame(rows, columns=["share", "rows", "split", "metric", "value"])


def curve_remark(curve: pd.DataFrame, metric: str) -> str:
    """Return a sentence on whether more rows would help, judging by the learning curve.

    The sentence says that more rows help only if the metric got better with each of the last two steps of the curve,
    and the 95 % interval of the last step does not contain 0. The interval is based on the corrected resampled t
    distribution, without pairing, as the splits of two sizes are not paired.

    Parameters
    ----------
    curve : DataFrame
        See :func:`learning_curve`.
    metric : str
    """
    points = curve[curve["metric"] == metric].dropna(subset="value")
    sizes = [rows for _, rows in points.groupby("share") if len(rows) > 1]
    if len(sizes) < 3:
        return "There are too few rows, or too little of the budget was left, for a curve of three sizes."
    sign = 1 if defined(metric).direction == "max" else -1
    values = [sign * rows["value"].to_numpy() for rows in sizes]
    ratios = [1 / rows["share"].iloc[0] - 1 for rows in sizes]
    before = values[-2].mean() - values[-3].mean()
    gain, low, high = corrected_unpaired_interval(values[-2], ratios[-2], values[-1], ratios[-1])
    start, end = (f"{rows['rows'].mean():.0f}" for rows in sizes[-2:])
    title = defined(metric).title
    if before > 0 and low > 0:
        return (
            f"More rows would probably still help: {title} got better with each of the last two steps of the curve, by "
            f"{gain:.4f} from {start} to {end} training rows (95 % interval {low:+.4f} to {high:+.4f})."
        )
    reason = (
        "the last two steps of the curve have different signs"
        if before * gain < 0
        else f"the gain in {title} from {start} to {end} rows may be chance"
        if low <= 0 <= high
        else f"{title} did not get better with each of the last two steps"
    )
    return (
        f"The curve does not show whether more rows would help: {reason} (last step: {gain:+.4f}, 95 % interval "
        f"{low:+.4f} to {high:+.4f})."
    )
