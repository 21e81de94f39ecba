"""What a leaderboard shows, as numbers: the content of ``reports/arena/summary.json``.

Everything is computed from the leaderboard file and the table of seconds, so that it can be recomputed without a cell.
:mod:`multilab.arena.summary_text` writes the sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from multilab.arena.boards import ALPHA, Board, errors_of, rank_methods
from multilab.arena.champion import ROPE
from multilab.arena.errors import ArenaError
from multilab.arena.file_means import leaderboard_means
from multilab.arena.metric_groups import ORDERED_LIKE
from multilab.arena.tracks import Means
from multilab.metrics import METRICS
from multilab.statistics import holm, signed_rank_p

SUMMARY_SCHEMA = 1
"""Version of the content of the file."""

PROPOSALS: Mapping[str, tuple[str, ...]] = {
    "mlwse": ("mlwse_l1", "mlwse_l21"),
    "lskmddm": ("lskmddm", "olskmddm", "rlskmddm"),
    "mlekelm": ("mlekelm",),
    "lwmf": ("lwmf",),
    "imldf": ("imldf",),
}
"""Methods that a paper proposes, by the study of the paper."""

BASELINES = ("br_logistic", "rf_pct", "lightgbm", "catboost", "catboost_fast")
"""What the proposals are compared with."""

DUMMIES = ("label_frequencies", "all_zero", "top_k")
"""Methods that do not read the features."""

CHEAP_METRICS = ("example_f1", "macro_auc", "average_precision")
"""One metric per group, for the question how much the cheapest sufficient method costs."""

FEW_LABELS = 14
SMALL = 1000
SUBSETS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "all": ("all sets", lambda facts: True),
    "text": ("text", lambda facts: bool(facts["text"])),
    "not_text": ("not text", lambda facts: not facts["text"]),
    "few_labels": (f"at most {FEW_LABELS} labels", lambda facts: facts["q"] <= FEW_LABELS),
    "many_labels": (f"more than {FEW_LABELS} labels", lambda facts: facts["q"] > FEW_LABELS),
    "small": (f"at most {SMALL:,} rows", lambda facts: facts["n"] <= SMALL),
    "larger": (f"more than {SMALL:,} rows", lambda facts: facts["n"] > SMALL),
}
"""Kinds of sets: title and condition."""


_NOT_TRIED = re.compile(r"^not run: on split \d+ ")
"""Before the reason of a split that was not tried because another one did not finish."""


@dataclass(frozen=True, eq=False)
class _Shares:
    """Share of the metrics of a group that the method of the row wins against that of the column, per dataset."""

    columns: tuple[str, ...]
    values: np.ndarray  # (n_datasets, n_columns, n_columns)

    def compared(self, column: str, others: Sequence[str]) -> list[dict[str, Any]]:
        """Return how a column does against others: share of wins and signed-rank test, Holm-corrected over them."""
        at = self.columns.index(column)
        against = [self.values[:, at, self.columns.index(other)] for other in others]
        p = [signed_rank_p(shares.round(9) - 0.5) for shares in against]
        least = min(1.0, len(others) * 2.0 ** (1 - len(self.values)))
        return [
            {
                "against": other,
                "sets": len(shares),
                "wins": _rounded(shares.mean(), 3),
                "sets_won": int((shares > 0.5).sum()),
                "sets_lost": int((shares < 0.5).sum()),
                "p_holm": float(f"{adjusted:.3g}"),
                "smallest_p": float(f"{least:.3g}"),
                "verdict": _verdict(shares, adjusted),
            }
            for other, shares, adjusted in zip(others, against, holm(p), strict=True)
        ]


def arena_summary(
    content: Mapping[str, Any],
    measured: pd.DataFrame | None = None,
    comparators: Mapping[str, Sequence[str]] | None = None,
    search: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a leaderboard shows.

    Parameters
    ----------
    content : mapping
        Of ``leaderboard.json``, see :mod:`multilab.arena.leaderboard_file`.
    measured : DataFrame, optional
        Columns dataset, split, method, fit_seconds, input_seconds, predict_seconds, alone, of the track default.
    comparators : mapping of str to sequence of str, optional
        By study of a paper the methods that the paper compares its own with.
    search : mapping, optional
        The search of the track *tuned*: ``metric``, ``n_trials``, ``folds``.

    Returns
    -------
    dict
        ``schema``, ``created``, ``rope``, ``alpha``, ``anchor`` (of Elo), ``sets``, ``columns``, ``groups``;
        ``winners`` (a list, one per kind of sets:
        ``kind``, ``title``, ``sets``, and by group ``first``, ``rank``, ``cd`` and ``not_separated``: the others whose
        average rank is within ``cd``); ``elo`` (by group the first by Elo with its interval, and the others whose
        interval overlaps); ``proposals`` (a list: ranks, Elo, comparisons with baselines by group and with the
        comparators of the paper); ``tuning`` and ``stacking`` (``null`` without such a track); ``cheap`` (``null``
        without ``measured``; by metric a list per set); ``unfinished``; ``metrics``; ``dummies``.

    Raises
    ------
    ArenaError
        If the leaderboard has no track ``default``, or does not describe a dataset.

    Notes
    -----
    Two methods are compared by the share of metrics that each wins on a set, ties half: Wilcoxon's signed-rank test
    over the sets of the shares' differences from one half, Holm-corrected over the comparisons of one method. A method
    that did not finish loses the set. Ranks are compared by Nemenyi's critical difference.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import arena_leaderboard, arena_summary, track_results
    >>> rows = [(f"set{i}", 0, m, "macro_f1", v) for i in range(6) for m, v in (("a", 0.8), ("b", 0.7 + i / 50))]
    >>> scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    >>> facts = [{"name": f"set{i}", "text": i < 3, "n": 500, "q": 6} for i in range(6)]
    >>> summary = arena_summary(arena_leaderboard([track_results("default", scores)], facts, {}, []))
    >>> [(each["title"], each["groups"]["overall"]["first"]) for each in summary["winners"]][:2]
    [('all sets', 'a'), ('text', 'a')]
    """
    means = leaderboard_means(content, "default")
    pool = _pool(content, "default")
    described = {each["name"] for each in content["sets"]}
    if absent := [name for name in means.datasets if name not in described]:
        raise ArenaError(f"the leaderboard lacks the facts of {', '.join(absent)}: evaluate the study, then rank again")
    groups = [each["name"] for each in content["groups"]]
    shares = {name: _shares(means, name) for name in groups}
    return {
        "schema": SUMMARY_SCHEMA,
        "created": content["created"],
        "rope": ROPE,
        "alpha": ALPHA,
        "anchor": pool["anchor"],
        "sets": [each["name"] for each in content["sets"] if each["name"] in means.datasets],
        "columns": list(means.columns),
        "groups": {each["name"]: each["title"] for each in content["groups"]},
        "winners": _winners(means, content["sets"], groups),
        "elo": {name: _first_by_elo(pool, name) for name in groups if "elo" in pool["boards"][name]},
        "proposals": [
            _proposal(pool, shares, name, study, (comparators or {}).get(study, ()))
            for study, names in PROPOSALS.items()
            for name in names
            if name in means.columns
        ],
        "tuning": _tuning(content, groups, search),
        "stacking": _stacking(content, groups),
        "cheap": None if measured is None else _cheap(means, measured),
        "unfinished": _unfinished(content["tracks"]["default"]),
        "metrics": _metrics(pool, means.metrics),
        "dummies": _dummies(pool, means),
    }


def _shares(means: Means, group: str) -> _Shares:
    """Return the shares of a group; a dataset on which all its metrics are undefined is left out."""
    used = rank_methods(means, group).datasets
    wins = [rank_methods(means.on([name]), group).wins.to_numpy() for name in used]
    return _Shares(means.columns, np.array(wins))


def _verdict(shares: np.ndarray, p: float) -> str:
    """Return what the signed-rank test detected; its direction is that of the rank sums."""
    if p > ALPHA:
        return "no difference"
    differences = shares.round(9) - 0.5
    return "better" if (rankdata(np.abs(differences)) * np.sign(differences)).sum() > 0 else "worse"


def _winners(means: Means, facts: Sequence[Mapping[str, Any]], groups: Sequence[str]) -> list[dict[str, Any]]:
    winners = []
    for kind, (title, holds) in SUBSETS.items():
        chosen = [each["name"] for each in facts if each["name"] in means.datasets and holds(each)]
        if not chosen:
            continue
        boards = {name: rank_methods(means.on(chosen), name) for name in groups}
        winners.append({"kind": kind, "title": title, "sets": chosen, "groups": _by_group(boards)})
    return winners


def _by_group(boards: Mapping[str, Board]) -> dict[str, dict[str, Any]]:
    return {name: _first(board) for name, board in boards.items()}


def _first(board: Board) -> dict[str, Any]:
    """Return the best method of a board and those that Nemenyi's critical difference does not separate from it."""
    ranks = board.table["rank"]
    near = (
        None if board.cd is None else [str(name) for name in ranks.index[1:] if ranks[name] - ranks.iloc[0] < board.cd]
    )
    return {
        "first": str(ranks.index[0]),
        "equal": [str(name) for name in ranks.index[1:] if ranks[name] == ranks.iloc[0]],
        "rank": _rounded(ranks.iloc[0], 2),
        "second": _rounded(ranks.iloc[1], 2) if len(ranks) > 1 else None,
        "sets": len(board.datasets),
        "cd": _rounded(board.cd, 2),
        "not_separated": near,
    }


def _first_by_elo(pool: Mapping[str, Any], name: str) -> dict[str, Any]:
    board = pool["boards"][name]
    first = int(np.argmax(board["elo"]))
    low = board["elo_low"][first]
    return {
        **_elo(pool, board, pool["columns"][first]),
        "column": pool["columns"][first],
        "sets": board["sets"],
        "overlapping": None
        if low is None
        else [
            column
            for at, column in enumerate(pool["columns"])
            if at != first and board["elo_high"][at] is not None and board["elo_high"][at] >= low
        ],
    }


def _proposal(
    pool: Mapping[str, Any], shares: Mapping[str, _Shares], name: str, study: str, compared_with: Sequence[str]
) -> dict[str, Any]:
    columns = pool["columns"]
    others = [each for each in BASELINES if each in columns and each != name]
    own = [each for each in compared_with if each in columns and each not in PROPOSALS[study]]
    return {
        "name": name,
        "study": study,
        "boards": {group: _standing(pool, group, name) for group in shares},
        "unfinished": pool["unfinished"][columns.index(name)],
        "baselines": {group: each.compared(name, others) for group, each in shares.items()},
        "comparators": shares["overall"].compared(name, own),
    }


def _standing(pool: Mapping[str, Any], group: str, column: str) -> dict[str, Any]:
    """Return the average rank of a column, its position in that order, and its Elo."""
    board = pool["boards"][group]
    rank = board["rank"][pool["columns"].index(column)]
    return {
        "rank": _rounded(rank, 2),
        "position": 1 + sum(other < rank for other in board["rank"]),
        "sets": board["sets"],
        **_elo(pool, board, column),
    }


def _elo(pool: Mapping[str, Any], board: Mapping[str, Any], column: str) -> dict[str, Any]:
    at = pool["columns"].index(column)
    return {key: board[key][at] for key in ("elo", "elo_low", "elo_high") if key in board}


def _tuning(
    content: Mapping[str, Any], groups: Sequence[str], search: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return each tuned method against itself at its own values, on the common sets and splits."""
    pool = _pool(content, "tuned")
    if not pool:
        return None
    means = leaderboard_means(content, "tuned")
    shares = {name: _shares(means, name) for name in groups}
    metric = (search or {}).get("metric")
    pairs = [(each, content["methods"][each]["name"]) for each in content["tracks"]["tuned"]["columns"]]
    pairs = [(tuned, name) for tuned, name in pairs if name in means.columns]
    tests = {group: holm([_compare(each, *pair)["p_holm"] for pair in pairs]) for group, each in shares.items()}
    return {
        "sets": list(means.datasets),
        "search": search,
        "methods": [
            {
                "name": name,
                "default": _standing(pool, "overall", name),
                "tuned": _standing(pool, "overall", tuned),
                "groups": {group: _corrected(shares[group], tuned, name, float(tests[group][at])) for group in shares},
                "gain": None if metric not in means.metrics else _gain(means.table(metric), metric, tuned, name),
            }
            for at, (tuned, name) in enumerate(pairs)
        ],
    }


def _compare(shares: _Shares, column: str, other: str) -> dict[str, Any]:
    return shares.compared(column, [other])[0]


def _corrected(shares: _Shares, column: str, other: str, p: float) -> dict[str, Any]:
    """Return a comparison with a p value that is corrected for several."""
    at, to = shares.columns.index(column), shares.columns.index(other)
    return _compare(shares, column, other) | {
        "p_holm": float(f"{p:.3g}"),
        "verdict": _verdict(shares.values[:, at, to], p),
    }


def _gain(table: pd.DataFrame, metric: str, column: str, other: str) -> dict[str, Any]:
    """Return the median over the sets that both finished of the gain in a metric; positive is better."""
    sign = 1 if METRICS[metric].direction == "max" else -1
    gains = (sign * (table[column] - table[other])).dropna()
    return {"metric": metric, "median": _rounded(gains.median(), 4), "sets": len(gains)}


def _stacking(content: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any] | None:
    """Return each stack among the columns of the track default, and against the best of them and every tuned one."""
    pool = _pool(content, "ensembled")
    if not pool:
        return None
    means = leaderboard_means(content, "ensembled")
    shares = {name: _shares(means, name) for name in groups}
    stacks = content["tracks"]["ensembled"]["columns"]
    singles = [column for column in means.columns if column not in stacks]
    ranks = {group: dict(zip(pool["columns"], pool["boards"][group]["rank"], strict=True)) for group in groups}
    best = {group: min(singles, key=ranks[group].__getitem__) for group in groups}
    wider = _pool(content, "all")
    rated = "elo" in pool["boards"]["overall"]
    tests = {
        stack: holm([_compare(shares[group], stack, best[group])["p_holm"] for group in groups]) for stack in stacks
    }
    return {
        "sets": list(means.datasets),
        "columns": len(means.columns),
        "stacks": [
            {
                "name": content["methods"][stack]["name"],
                "column": stack,
                "boards": {group: _standing(pool, group, stack) for group in groups},
                "best_single": {
                    group: _corrected(shares[group], stack, best[group], float(tests[stack][at]))
                    for at, group in enumerate(groups)
                },
                "first_metrics": [
                    metric
                    for metric, board in pool["boards"].items()
                    if metric in means.metrics
                    and board["rank"][pool["columns"].index(stack)] <= min(board["rank"]) + 1e-9
                ],
                "metrics": sum(metric in means.metrics for metric in pool["boards"]),
                "above_tuned": _above_tuned(content, wider, stack) if wider and rated else None,
            }
            for stack in stacks
        ],
    }


def _above_tuned(content: Mapping[str, Any], pool: Mapping[str, Any], stack: str) -> dict[str, Any]:
    """Return how many tuned columns a stack is above in Elo, and how many with intervals that do not overlap."""
    board = pool["boards"]["overall"]
    tuned = [_elo(pool, board, column) for column in content["tracks"]["tuned"]["columns"]]
    own = _elo(pool, board, stack)
    apart = [own["elo_low"] is not None and own["elo_low"] > (each["elo_high"] or np.inf) for each in tuned]
    return {
        "tuned": len(tuned),
        "above": sum(own["elo"] > each["elo"] for each in tuned),
        "apart": sum(apart),
        "sets": board["sets"],
    }


def _cheap(means: Means, measured: pd.DataFrame) -> dict[str, Any]:
    """Return by metric and set the best method, and the cheapest one whose mean is at most the ROPE worse."""
    seconds = measured.assign(
        seconds=measured["fit_seconds"] + measured["input_seconds"].fillna(0) + measured["predict_seconds"]
    )
    cost = seconds.pivot_table(index="dataset", columns="method", values="seconds", aggfunc="mean")
    used = measured[measured["dataset"].isin(means.datasets) & measured["method"].isin(means.columns)]
    return {
        "alone": bool(used["alone"].all()) if len(used) else False,
        "metrics": {
            metric: [
                row
                for name in means.datasets
                if name in cost.index and (row := _cheapest(means.table(metric), metric, name, cost.loc[name]))
            ]
            for metric in CHEAP_METRICS
            if metric in means.metrics
        },
    }


def _cheapest(table: pd.DataFrame, metric: str, dataset: str, cost: pd.Series) -> dict[str, Any] | None:
    if dataset not in table.index:
        return None
    values = table.loc[dataset]
    errors = pd.Series(errors_of([metric], values.to_numpy()[None])[0], index=values.index)
    both = pd.DataFrame({"error": errors, "seconds": cost.reindex(values.index)}).dropna()
    if both.empty:
        return None
    best = both.sort_values(["error", "seconds"], kind="stable").index[0]
    near = both[both["error"] <= both.loc[best, "error"] + ROPE + 1e-9]
    cheap = near["seconds"].idxmin()
    return {
        "set": dataset,
        "best": str(best),
        "best_value": _rounded(values[best], 4),
        "best_seconds": _significant(both.loc[best, "seconds"]),
        "cheapest": str(cheap),
        "value": _rounded(values[cheap], 4),
        "seconds": _significant(both.loc[cheap, "seconds"]),
        "within": len(near),
    }


def _unfinished(track: Mapping[str, Any]) -> dict[str, Any]:
    """Return the methods that have an unfinished split, with the sets and the reasons."""
    rows = pd.DataFrame(track["unfinished"], columns=["set", "column", "splits", "reason"])
    cells = sum(track["splits"].values()) * len(track["columns"])
    methods = [
        {
            "name": str(name),
            "sets": rows.loc[at, "set"].tolist(),
            "cells": int(rows.loc[at, "splits"].sum()),
            "reasons": dict(sorted(Counter(_NOT_TRIED.sub("", reason) for reason in rows.loc[at, "reason"]).items())),
        }
        for name, at in rows.groupby("column", sort=False).groups.items()
    ]
    methods.sort(key=lambda each: (-len(each["sets"]), each["name"]))
    return {"cells": cells, "unfinished_cells": int(rows["splits"].sum()), "methods": methods}


def _metrics(pool: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    """Return how alike two metrics order the methods: Spearman's correlation of the average ranks."""
    names = [metric for metric in metrics if metric in pool["boards"]]
    ranks = pd.DataFrame({metric: pool["boards"][metric]["rank"] for metric in names}, index=pool["columns"])
    correlation = ranks.corr(method="spearman")
    free = [metric for metric in names if metric not in ORDERED_LIKE]
    rows = []
    for metric in names:
        others = correlation.loc[metric, [each for each in free if each != metric]].dropna()
        others = others.drop(ORDERED_LIKE.get(metric, ""), errors="ignore")
        near, far = (others.idxmax(), others.idxmin()) if len(others) else (None, None)
        rows.append(
            {
                "name": metric,
                "ordered_like": ORDERED_LIKE.get(metric),
                "most_like": near,
                "largest": _rounded(others.max(), 3) if len(others) else None,
                "least_like": far,
                "smallest": _rounded(others.min(), 3) if len(others) else None,
                "first": ranks.index[ranks[metric] == ranks[metric].min()].tolist(),
            }
        )
    upper = correlation.loc[free, free].to_numpy()[np.triu_indices(len(free), 1)]
    upper = upper[~np.isnan(upper)]
    return {
        "columns": len(ranks),
        "distinct": len(free),
        "rows": rows,
        "pairs": len(upper),
        "median": _rounded(np.median(upper), 3) if len(upper) else None,
        "smallest": _rounded(upper.min(), 3) if len(upper) else None,
        "correlation": {a: {b: _rounded(correlation.loc[a, b], 3) for b in names} for a in names},
    }


def _dummies(pool: Mapping[str, Any], means: Means) -> list[dict[str, Any]]:
    """Return by metric the best dummy: its rank, how many methods are behind it, where it is close to the best."""
    dummies = [name for name in DUMMIES if name in means.columns]
    learners = [name for name in means.columns if name not in DUMMIES]
    rows = []
    for metric in means.metrics:
        if not dummies or metric not in pool["boards"]:
            continue
        ranks = dict(zip(pool["columns"], pool["boards"][metric]["rank"], strict=True))
        best = min(dummies, key=ranks.__getitem__)
        table = means.table(metric)
        errors = pd.DataFrame(errors_of([metric], table.to_numpy()[None])[0], table.index, table.columns)
        gap = errors[best] - errors[learners].min(axis=1)
        bounded = not np.isinf(METRICS[metric].high)
        rows.append(
            {
                "metric": metric,
                "ordered_like": ORDERED_LIKE.get(metric),
                "dummy": best,
                "rank": _rounded(ranks[best], 2),
                "behind": sum(ranks[name] > ranks[best] for name in learners),
                "learners": len(learners),
                "sets": len(table),
                "not_worse": int((gap <= 1e-9).sum()),
                "close": int((gap <= ROPE + 1e-9).sum()) if bounded else None,
            }
        )
    return rows


def _pool(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    return next((each for each in content["pools"] if each["name"] == name), {})


def _rounded(value: float | None, decimals: int) -> float | None:
    return None if value is None or not np.isfinite(value) else round(float(value), decimals)


def _significant(value: float) -> float:
    return float(f"{value:.3g}")
