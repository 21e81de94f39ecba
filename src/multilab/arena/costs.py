"""Seconds and megabytes of methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from multilab.arena.tracks import ArenaError


def method_costs(measured: pd.DataFrame, rows: Mapping[str, tuple[float, float]]) -> pd.DataFrame:
    """Return what a method costs: medians over its cells.

    Parameters
    ----------
    measured : DataFrame
        Columns dataset, method, fit_seconds, input_seconds, predict_seconds, peak_mb, model_bytes, alone, of finished
        cells.
    rows : mapping of str to (float, float)
        Training and test rows of one split, by dataset.

    Returns
    -------
    DataFrame
        Indexed by method, in the order of their first row: ``fit_seconds`` per 1,000 training rows (with the inputs
        that a stack computes), ``predict_ms`` per test row, ``model_mb`` and ``peak_mb`` in 10^6 bytes, ``cells``,
        their number, ``alone``: whether all were measured with nothing in parallel.

    Raises
    ------
    ArenaError
        If the rows of a dataset are unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import method_costs
    >>> measured = pd.DataFrame({"dataset": ["x"], "method": ["a"], "fit_seconds": [2.0], "input_seconds": [0.0],
    ...     "predict_seconds": [0.1], "peak_mb": [20.0], "model_bytes": [3_000_000], "alone": [True]})
    >>> method_costs(measured, {"x": (400, 100)}).loc["a", ["fit_seconds", "predict_ms", "model_mb"]].tolist()
    [5.0, 1.0, 3.0]
    """
    unknown = set(measured["dataset"]) - set(rows)
    if unknown:
        raise ArenaError(f"the numbers of rows of {', '.join(sorted(unknown))} are unknown")
    train = measured["dataset"].map({name: counts[0] for name, counts in rows.items()})
    test = measured["dataset"].map({name: counts[1] for name, counts in rows.items()})
    cells = pd.DataFrame(
        {
            "method": measured["method"],
            "fit_seconds": (measured["fit_seconds"] + measured["input_seconds"].fillna(0)) / train * 1000,
            "predict_ms": measured["predict_seconds"] / test * 1000,
            "model_mb": measured["model_bytes"] / 1e6,
            "peak_mb": measured["peak_mb"],
        }
    )
    groups = cells.groupby("method", sort=False)
    costs = groups.median()
    costs["cells"] = groups.size()
    costs["alone"] = measured.groupby("method", sort=False)["alone"].all().astype(bool)
    return costs


def with_base_methods(measured: pd.DataFrame, bases: Mapping[tuple[str, str], Sequence[str]]) -> pd.DataFrame:
    """Return measurements in which predictions and models of a stack include those of its base methods.

    A stack reads the scores of its base methods, so that only its ``input_seconds`` include them when measured.

    Parameters
    ----------
    measured : DataFrame
        Columns dataset, split, method, predict_seconds, model_bytes, among others.
    bases : mapping of (str, str) to sequence of str
        Base methods by dataset and stack. Without the measurements of one of them on the dataset and split, those of
        the stack are NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena.costs import with_base_methods
    >>> measured = pd.DataFrame({"dataset": "x", "split": 0, "method": ["mlknn", "stack"],
    ...     "predict_seconds": [1.0, 0.1], "model_bytes": [3e6, 2e5]})
    >>> with_base_methods(measured, {("x", "stack"): ["mlknn"]})["predict_seconds"].tolist()
    [1.0, 1.1]
    """
    indexed = measured.set_index(["dataset", "split", "method"])[["predict_seconds", "model_bytes"]]
    added = measured.copy()
    for at, (dataset, split, method) in zip(measured.index, indexed.index, strict=True):
        if members := bases.get((dataset, method)):
            member_costs = indexed.reindex([(dataset, split, member) for member in members])
            # if one member was not measured, the sum is unknown
            added.loc[at, ["predict_seconds", "model_bytes"]] += member_costs.sum(skipna=False)
    return added
