"""One method compared with every other by the Bayesian signed-rank test, and the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.arena.boards import errors_of
from multilab.arena.content import elo_of, pool_of
from multilab.arena.tracks import ArenaError
from multilab.metrics import METRICS
from multilab.statistics import Leaderboard, bayesian_signed_rank

ROPE = 0.01
"""Half the width of the region of practical equivalence, for metrics in [0, 1]."""

SURE = 0.95
"""A test decides from this probability on."""

SAMPLES = 20_000
"""Posterior samples per pair: the standard error of a probability is at most .0036."""


def one_against_all_tests(
    means: Leaderboard,
    tested: str,
    metric: str,
    n_labels: Mapping[str, int],
    sources: Mapping[str, str] | None = None,
    rope: float = ROPE,
) -> pd.DataFrame:
    """Return the probabilities that a method is better than, equivalent to and worse than each other one.

    Parameters
    ----------
    means : Leaderboard
        From :meth:`Track.means` or :attr:`Pool.means`.
    tested : str
        A column.
    metric : str
    n_labels : mapping of str to int
        Number of labels of each dataset: coverage, whose range grows with it, is divided by it.
    sources : mapping of str to str, optional
        Source of each dataset: the differences on datasets of one source are averaged. By default each has its own.
    rope : float, default=0.01
        Differences of at most this size do not matter.

    Returns
    -------
    DataFrame
        Indexed by the other columns: ``better``, ``equal``, ``worse``, which sum to 1, and ``sources``, their number.
        Empty if the metric is undefined on all datasets.

    Raises
    ------
    ArenaError
        If the metric was not computed, or is coverage and the number of labels of a dataset is unknown.

    Notes
    -----
    A method with an unfinished split has the largest finished error of the dataset. The test is
    :func:`multilab.statistics.bayesian_signed_rank`.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import one_against_all_tests, track_results
    >>> rows = [(f"set{i}", 0, m, "macro_f1", v) for i in range(9) for m, v in (("a", 0.8), ("b", 0.7 + i / 200))]
    >>> scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    >>> tests = one_against_all_tests(track_results("default", scores).means(), "a", "macro_f1", {})
    >>> bool(tests.loc["b", "better"] > 0.99)
    True
    """
    table = means.means(metric)
    others = [column for column in table.columns if column != tested]
    if table.empty or not others:
        return pd.DataFrame(columns=["better", "equal", "worse", "sources"])
    errors = errors_of([metric], table.to_numpy()[None])[0]
    errors = np.where(np.isnan(errors), np.fmax.reduce(errors, axis=1, keepdims=True), errors)
    if np.isinf(METRICS[metric].high):
        if absent := [name for name in table.index if name not in n_labels]:
            raise ArenaError(f"{metric} is divided by the number of labels, which is unknown of {', '.join(absent)}")
        errors = errors / np.array([[n_labels[name]] for name in table.index])
    filled = pd.DataFrame(errors, index=table.index, columns=table.columns)
    filled = filled.groupby([(sources or {}).get(name, name) for name in filled.index], sort=False).mean()
    pairs = bayesian_signed_rank(filled, "min", rope=rope, control=tested, samples=SAMPLES)
    return pd.DataFrame(
        {
            "better": [pair.p_a for pair in pairs],
            "equal": [pair.p_rope for pair in pairs],
            "worse": [pair.p_b for pair in pairs],
            "sources": [pair.n for pair in pairs],
        },
        index=[pair.b for pair in pairs],
    )


def one_against_all_verdict(content: Mapping[str, Any], pool: str) -> dict[str, Any] | None:
    """Return how far the tested method of a pool is first: by each metric, with a test, and in Elo.

    Parameters
    ----------
    content : mapping
        Content of ``leaderboard.json.gz``, see :mod:`multilab.arena.leaderboard`.
    pool : str
        ``ensembled``, ``ensembled-unseen`` or any other of the file.

    Returns
    -------
    dict or None
        ``None`` without such a pool or a tested method in it. ``column``, ``pool``, ``sets``, ``columns`` (their
        number), ``rope``; ``metrics``, a list: ``name``, ``sets``, ``rank`` (average), ``first`` (no column has a
        better one), ``any`` and ``single``, the comparisons with the best other column and with the best one that is no
        ensemble: ``against``, ``rank``, ``behind`` (how much larger the tested method's average rank is), ``better``,
        ``equal``, ``worse`` (probabilities of the Bayesian signed-rank test) and ``decided`` (``better`` >= .95);
        ``first``, ``decided`` and ``decided_single``, in how many metrics; ``elo`` (over all metrics, ``null`` without
        ratings): ``own``, the rating with its interval, ``tuned``, a list of those of the tuned columns with ``above``
        and ``apart`` (the intervals do not overlap).

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import arena_leaderboard, one_against_all_verdict, track_results
    >>> rows = [(f"set{i}", 0, m, "macro_f1", v) for i in range(9) for m, v in (("a", 0.8), ("b", 0.7), ("c", 0.6))]
    >>> scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    >>> facts = [{"name": f"set{i}", "q": 6} for i in range(9)]
    >>> content = arena_leaderboard([track_results("default", scores)], facts, {}, [])
    >>> verdict = one_against_all_verdict(content, "default")
    >>> verdict["column"], verdict["first"], verdict["decided"], verdict["metrics"][0]["any"]["against"]
    ('a', 1, 1, 'b')
    """
    entry = pool_of(content, pool)
    if not entry or entry["tested"] is None:
        return None
    column, columns = entry["tested"]["column"], entry["columns"]
    stacks = content["tracks"].get("ensembled", {}).get("columns", ())
    rivals = {"any": [c for c in columns if c != column], "single": [c for c in columns if c not in (*stacks, column)]}
    metrics = [
        {
            "name": name,
            "sets": entry["boards"][name]["sets"],
            "rank": entry["boards"][name]["rank"][columns.index(column)],
            "first": test["first"],
            **{kind: _against(entry, name, among) for kind, among in rivals.items()},
        }
        for name, test in entry["tested"]["tests"].items()
    ]
    return {
        "column": column,
        "pool": pool,
        "sets": entry["sets"],
        "columns": len(columns),
        "rope": entry["tested"]["rope"],
        "metrics": metrics,
        "first": sum(verdict["first"] for verdict in metrics),
        "decided": sum(bool(verdict["any"] and verdict["any"]["decided"]) for verdict in metrics),
        "decided_single": sum(bool(verdict["single"] and verdict["single"]["decided"]) for verdict in metrics),
        "elo": _elo_against_tuned(content, entry),
    }


def _against(pool: Mapping[str, Any], metric: str, among: Sequence[str]) -> dict[str, Any] | None:
    """Return the comparison of the tested method with the column of the smallest average rank among some."""
    if not among:
        return None
    columns, ranks, test = pool["columns"], pool["boards"][metric]["rank"], pool["tested"]["tests"][metric]
    best = min(among, key=lambda name: ranks[columns.index(name)])
    at = columns.index(best)
    probabilities = {name: test[name][at] for name in ("better", "equal", "worse")}
    behind = ranks[columns.index(pool["tested"]["column"])] - ranks[at]
    decided = probabilities["better"] is not None and probabilities["better"] >= SURE
    return {"against": best, "rank": ranks[at], "behind": round(behind, 6), **probabilities, "decided": decided}


def _elo_against_tuned(content: Mapping[str, Any], pool: Mapping[str, Any]) -> dict[str, Any] | None:
    board, columns = pool["boards"]["overall"], pool["columns"]
    if "elo" not in board:
        return None
    rated = {name: elo_of(pool, "overall", name) | {"column": name} for name in columns}
    tested = rated[pool["tested"]["column"]]
    tuned = [rated[name] for name in content["tracks"].get("tuned", {}).get("columns", ()) if name in rated]
    low = tested["elo_low"]
    # with a single dataset there are no intervals
    apart = [low is not None and row["elo_high"] is not None and low > row["elo_high"] for row in tuned]
    rows = [row | {"above": tested["elo"] > row["elo"], "apart": far} for row, far in zip(tuned, apart, strict=True)]
    return {"own": tested, "tuned": sorted(rows, key=lambda each: -each["elo"])}
