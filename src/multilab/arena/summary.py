"""Summary of the arena's leaderboard in numbers: the content of ``reports/arena/summary.json``.

Everything is computed from the leaderboard file and the tables of seconds, without a cell. The page
``docs/arena-results.md`` shows a part of it (:func:`multilab.reports.arena.page.summary_page`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from multilab.arena.boards import ALPHA, ORDERED_LIKE, errors_of, rank_methods
from multilab.arena.content import elo_of, leaderboard_means, pool_of
from multilab.arena.one_against_all import ROPE, one_against_all_verdict
from multilab.arena.sets import sources_of
from multilab.arena.tracks import UNSEEN, ArenaError
from multilab.core.numbers import finite, significant
from multilab.metrics import METRICS
from multilab.statistics import Leaderboard, holm, nemenyi_cd, signed_rank_p
from multilab.statistics.result_files import CELL

SUMMARY_SCHEMA = 1
"""Version of the content of the file."""

PROPOSALS: Mapping[str, tuple[str, ...]] = {
    "mlwse": ("mlwse_l1", "mlwse_l21"),
    "lskmddm": ("lskmddm", "olskmddm", "rlskmddm"),
    "mlekelm": ("mlekelm",),
    "lwmf": ("lwmf",),
    "imldf": ("imldf_auxiliary",),
}
"""Methods that a paper proposes, by the study of the paper."""

BASELINES = ("br_logistic", "rf_pct", "lightgbm", "catboost", "catboost_fast")
"""Baselines of the proposals."""

DUMMIES = ("label_frequencies", "all_zero", "top_k")
"""Methods that do not read the features."""

CHEAP_METRICS = ("example_f1", "macro_auc", "average_precision")
"""One metric per group, for the question how much the cheapest sufficient method costs."""

COSTS = ("fit_seconds", "predict_ms", "model_mb", "peak_mb", "cells")

FEW_LABELS = 14  # splits the sets into two groups; any change moves the rows of the summary
SMALL = 1000  # rows; splits the sets into two groups
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


def arena_summary(
    content: Mapping[str, Any],
    measured: pd.DataFrame | None = None,
    comparators: Mapping[str, Sequence[str]] | None = None,
    tables: Mapping[str, Mapping[str, pd.DataFrame | None]] | None = None,
    budget: float | None = None,
) -> dict[str, Any]:
    """Return the summary of a leaderboard.

    Parameters
    ----------
    content : mapping
        Content of ``leaderboard.json.gz``, see :mod:`multilab.arena.leaderboard`.
    measured : DataFrame, optional
        Columns dataset, split, method, fit_seconds, input_seconds, predict_seconds, alone, of the track default.
    comparators : mapping of str to sequence of str, optional
        The methods that a paper compares its own with, by the study of the paper.
    tables : mapping, optional
        Tables ``measured``, ``tuned`` and ``unfinished`` by study of the arena, for the hours that the studies took.
    budget : float, optional
        Hours of one core that these studies together may take.

    Returns
    -------
    dict
        ``schema``, ``created``, ``rope``, ``alpha``, ``anchor`` (of Elo), ``sets``, ``columns``, ``groups``;
        ``winners`` (a list, one per kind of sets, and one with the mean rank on related sets as one value:
        ``kind``, ``title``, ``sets``, and by group ``first``, ``rank``, ``cd`` and ``not_separated``: the others whose
        average rank is within ``cd``); ``elo`` (by group the first by Elo with its interval, and the others whose
        interval overlaps); ``proposals`` (a list: ranks, Elo, comparisons with baselines by group and with the
        comparators of the paper); ``tuning`` (``null`` without such a track); ``stacking`` (the same; ``all`` and
        ``unseen``, the stacks on all sets and on those that decided no rule of the tested method; ``tested``, a list of
        :func:`one_against_all_verdict`; ``chosen_on``, the sets that did decide, with the reason); ``costs`` (``null``
        unless measured alone: ``study``, ``machine``, ``measured_on``, the sets, if there are ``tables``, ``sets`` of
        Elo, ``methods`` with their costs, the fastest fit first, ``pareto``);
        ``cheap`` (``null`` without ``measured``; by metric a list per set); ``unfinished``; ``effort`` (``null``
        without ``tables``; hours by study, their sum and the budget); ``metrics``; ``dummies``.

    Raises
    ------
    ArenaError
        If the leaderboard has no track ``default``, or does not describe a dataset.

    Notes
    -----
    Two methods are compared by the share of metrics that each wins on a set, ties half: Wilcoxon's signed-rank test
    over the sources of the sets of the mean shares' differences from one half, Holm-corrected over the comparisons of
    one method. Sets that one of the two did not finish are left out. In ranks and Elo such a method is last on the
    set. Ranks are compared by Nemenyi's critical difference.

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
    means, pool = leaderboard_means(content, "default"), pool_of(content, "default")
    described = {card["name"] for card in content["sets"]}
    if absent := [name for name in means.datasets if name not in described]:
        raise ArenaError(f"the leaderboard lacks the facts of {', '.join(absent)}: evaluate the study, then rank again")
    groups = [group["name"] for group in content["groups"]]
    shares = {name: _shares(means, name, content["sets"]) for name in groups}
    return {
        "schema": SUMMARY_SCHEMA,
        "created": content["created"],
        "rope": ROPE,
        "alpha": ALPHA,
        "anchor": pool["anchor"],
        "sets": [card["name"] for card in content["sets"] if card["name"] in means.datasets],
        "columns": list(means.methods),
        "groups": {group["name"]: group["title"] for group in content["groups"]},
        "winners": _winners(means, content["sets"], groups),
        "elo": {name: _first_by_elo(pool, name) for name in groups if "elo" in pool["boards"][name]},
        "proposals": [
            _proposal(pool, shares, name, study, (comparators or {}).get(study, ()))
            for study, names in PROPOSALS.items()
            for name in names
            if name in means.methods
        ],
        "tuning": tuning_numbers(content, groups),
        "stacking": _stacking(content, groups),
        "costs": _costs(content, pool_of(content, "ensembled") or pool, tables or {}),
        "cheap": None if measured is None else _cheap(means, measured),
        "unfinished": _unfinished(content["tracks"]["default"]),
        "effort": _effort(tables or {}, budget),
        "metrics": _agreement(pool, means.metrics),
        "dummies": _dummies(pool, means),
    }


def _winners(means: Leaderboard, facts: Sequence[Mapping[str, Any]], groups: Sequence[str]) -> list[dict[str, Any]]:
    """Return by kind of sets the first of each group of metrics, and what is not separated from it."""
    facts = [card for card in facts if card["name"] in means.datasets]
    winners = []
    for kind, (title, holds) in SUBSETS.items():
        chosen = [card["name"] for card in facts if holds(card)]
        if not chosen:
            continue
        ranks = {name: rank_methods(means.on(chosen), name).dataset_ranks for name in groups}
        firsts = {name: _first(table) for name, table in ranks.items()}
        winners.append({"kind": kind, "title": title, "sets": chosen, "groups": firsts})
        if kind == "all" and (of_sources := first_of_sources(ranks, facts)):
            title = "all sets, those of one source as one"
            winners.append({"kind": "sources", "title": title, "sets": chosen, "groups": of_sources})
    return winners


def first_of_sources(
    ranks: Mapping[str, pd.DataFrame], facts: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the first method by each group of metrics, with the mean rank on the sets of a source as one value.

    Parameters
    ----------
    ranks : mapping of str to DataFrame
        :attr:`Board.dataset_ranks` by group.
    facts : sequence of mapping
        ``name`` and ``source`` of the datasets.

    Returns
    -------
    dict
        Empty where no two datasets have a common source.
    """
    averaged = {name: table.groupby(sources_of(facts), sort=False).mean() for name, table in ranks.items()}
    related = any(len(averaged[name]) < len(table) for name, table in ranks.items())
    return {name: _first(table) for name, table in averaged.items()} if related else {}


def _first(ranks: pd.DataFrame) -> dict[str, Any]:
    """Return the best method of a table of ranks and those that the critical difference does not separate from it."""
    n_sets, n_methods = ranks.shape
    means = pd.Series(ranks.to_numpy().mean(axis=0), index=ranks.columns).sort_values(kind="stable")
    cd = nemenyi_cd(n_methods, n_sets) if n_methods > 1 and n_sets > 1 else None
    near = None if cd is None else [str(name) for name in means.index[1:] if means[name] - means.iloc[0] < cd]
    return {
        "first": str(means.index[0]),
        "equal": [str(name) for name in means.index[1:] if means[name] == means.iloc[0]],
        "rank": finite(means.iloc[0], 2),
        "second": finite(means.iloc[1], 2) if n_methods > 1 else None,
        "sets": n_sets,
        "cd": finite(cd, 2),
        "not_separated": near,
    }


def _first_by_elo(pool: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the first column of a board by Elo, and those whose intervals overlap with its own."""
    board, columns = pool["boards"][name], pool["columns"]
    first = int(np.argmax(board["elo"]))
    low, highs = board["elo_low"][first], board["elo_high"]
    overlapping = [
        column
        for at, column in enumerate(columns)
        if low is not None and at != first and highs[at] is not None and highs[at] >= low
    ]
    return {
        **elo_of(pool, name, columns[first]),
        "column": columns[first],
        "sets": board["sets"],
        "overlapping": None if low is None else overlapping,
    }


def _proposal(
    pool: Mapping[str, Any], shares: Mapping[str, _Shares], name: str, study: str, compared_with: Sequence[str]
) -> dict[str, Any]:
    """Return the positions of a proposal, and its comparisons with baselines and with those of its paper."""
    columns = pool["columns"]
    others = [method for method in BASELINES if method in columns and method != name]
    comparators = [method for method in compared_with if method in columns and method not in PROPOSALS[study]]
    return {
        "name": name,
        "study": study,
        "boards": {group: _standing(pool, group, name) for group in shares},
        "unfinished": pool["unfinished"][columns.index(name)],
        "baselines": {group: _tested([(share, name, other) for other in others]) for group, share in shares.items()},
        "comparators": _tested([(shares["overall"], name, other) for other in comparators]),
    }


def tuning_numbers(content: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any] | None:
    """Compare each tuned method with itself at its default values, on the common sets and splits."""
    pool = pool_of(content, "tuned")
    if not pool:
        return None
    search = next((study.get("tune") for study in content["studies"] if study["track"] == "tuned"), None)
    means = leaderboard_means(content, "tuned")
    shares = {name: _shares(means, name, content["sets"]) for name in groups}
    metric: str = (search or {}).get("metric", "")
    pairs = [(column, content["methods"][column]["name"]) for column in content["tracks"]["tuned"]["columns"]]
    pairs = [(tuned, name) for tuned, name in pairs if name in means.methods]
    tests = {group: _tested([(share, *pair) for pair in pairs]) for group, share in shares.items()}
    return {
        "sets": list(means.datasets),
        "search": search,
        "methods": [
            {
                "name": name,
                "default": _standing(pool, "overall", name),
                "tuned": _standing(pool, "overall", tuned),
                "groups": {group: rows[at] for group, rows in tests.items()},
                "gain": None if metric not in means.metrics else _gain(means.means(metric), metric, tuned, name),
            }
            for at, (tuned, name) in enumerate(pairs)
        ],
    }


def _gain(table: pd.DataFrame, metric: str, column: str, other: str) -> dict[str, Any]:
    """Return the median over the sets that both finished of the gain in a metric; positive is better."""
    sign = 1 if METRICS[metric].direction == "max" else -1
    gains = (sign * (table[column] - table[other])).dropna()
    return {"metric": metric, "median": finite(gains.median(), 4), "sets": len(gains)}


def _stacking(content: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any] | None:
    """Return the stacks on all sets and on the unseen ones, the verdicts on the tested one, and the seen sets."""
    if not pool_of(content, "ensembled"):
        return None
    pools = ("ensembled", f"ensembled{UNSEEN}", "all", f"all{UNSEEN}")
    reasons: dict[str, dict[str, Any]] = {}
    for column in content["tracks"]["ensembled"]["columns"]:
        if chosen := content["methods"][column].get("chosen_on"):
            entry = reasons.setdefault(chosen["reason"], {"methods": [], **chosen})
            entry["methods"].append(content["methods"][column]["name"])
    return {
        "all": _stacks(content, groups, ""),
        "unseen": _stacks(content, groups, UNSEEN),
        "tested": [verdict for pool in pools if (verdict := one_against_all_verdict(content, pool))],
        "chosen_on": list(reasons.values()),
    }


def _stacks(content: Mapping[str, Any], groups: Sequence[str], suffix: str) -> dict[str, Any] | None:
    """Return each stack among the columns of the track default, and against the best of them and every tuned one."""
    pool, wider = pool_of(content, f"ensembled{suffix}"), pool_of(content, f"all{suffix}")
    if not pool:
        return None
    means = leaderboard_means(content, pool["name"])
    shares = {name: _shares(means, name, content["sets"]) for name in groups if name in pool["boards"]}
    stacks = content["tracks"]["ensembled"]["columns"]
    singles = [column for column in means.methods if column not in stacks]
    ranks = {name: dict(zip(pool["columns"], board["rank"], strict=True)) for name, board in pool["boards"].items()}
    best = {group: min(singles, key=ranks[group].__getitem__) for group in shares}
    counted = [metric for metric in pool["boards"] if metric in means.metrics]
    rated = "elo" in pool["boards"]["overall"]
    return {
        "sets": list(means.datasets),
        "columns": len(means.methods),
        "stacks": [
            {
                "name": content["methods"][stack]["name"],
                "column": stack,
                "chosen_on": [
                    name
                    for name in means.datasets
                    if name in (content["methods"][stack].get("chosen_on") or {}).get("sets", ())
                ],
                "boards": {group: _standing(pool, group, stack) for group in shares},
                "best_single": dict(
                    zip(shares, _tested([(shares[group], stack, best[group]) for group in shares]), strict=True)
                ),
                "first_metrics": [
                    metric for metric in counted if ranks[metric][stack] <= min(ranks[metric].values()) + 1e-9
                ],
                "metrics": len(counted),
                "above_tuned": _above_tuned(content, wider, stack) if wider and rated else None,
            }
            for stack in stacks
        ],
    }


def _above_tuned(content: Mapping[str, Any], pool: Mapping[str, Any], stack: str) -> dict[str, Any]:
    """Return how many tuned columns a stack is above in Elo, and how many with intervals that do not overlap."""
    tuned = [elo_of(pool, "overall", column) for column in content["tracks"]["tuned"]["columns"]]
    rating = elo_of(pool, "overall", stack)
    apart = [rating["elo_low"] is not None and rating["elo_low"] > (other["elo_high"] or np.inf) for other in tuned]
    return {
        "tuned": len(tuned),
        "above": sum(rating["elo"] > other["elo"] for other in tuned),
        "apart": sum(apart),
        "sets": pool["boards"]["overall"]["sets"],
    }


def _costs(
    content: Mapping[str, Any], pool: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return the costs of the methods of a pool, the fastest fit first, and its Pareto fronts.

    ``None`` where nothing was measured with nothing else running.
    """
    costs = content["costs"]
    if costs is None or not costs["alone"]:
        return None
    machines = {study["study"]: study.get("machine") for study in content["studies"]}
    rows = [
        {"name": name, "elo": elo_of(pool, "overall", name).get("elo"), **{cost: costs[cost][at] for cost in COSTS}}
        for at, name in enumerate(costs["columns"])
        if name in pool["columns"]
    ]
    study = costs["studies"][0] if costs["studies"] else None
    measured = tables.get(study or "", {}).get("measured")
    return {
        "study": " and ".join(costs["studies"]) or None,
        "machine": machines.get(study),
        "measured_on": [] if measured is None else list(dict.fromkeys(measured["dataset"])),
        "sets": pool["boards"]["overall"]["sets"],
        "methods": sorted(rows, key=lambda row: row["fit_seconds"]),
        "pareto": pool.get("pareto", {}),
    }


def _cheap(means: Leaderboard, measured: pd.DataFrame) -> dict[str, Any]:
    """Return by metric and set the best method, and the cheapest one whose mean is at most the ROPE worse."""
    seconds = measured.assign(
        seconds=measured["fit_seconds"] + measured["input_seconds"].fillna(0) + measured["predict_seconds"]
    )
    cost = seconds.pivot_table(index="dataset", columns="method", values="seconds", aggfunc="mean")
    used = measured[measured["dataset"].isin(means.datasets) & measured["method"].isin(means.methods)]
    return {
        "alone": bool(used["alone"].all()) if len(used) else False,
        "metrics": {
            metric: [
                row
                for name in means.datasets
                if name in cost.index and (row := _cheapest(means.means(metric), metric, name, cost.loc[name]))
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
        "best_value": finite(values[best], 4),
        "best_seconds": significant(both.loc[best, "seconds"]),
        "cheapest": str(cheap),
        "value": finite(values[cheap], 4),
        "seconds": significant(both.loc[cheap, "seconds"]),
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
            "reasons": dict(sorted(Counter(rows.loc[at, "reason"]).items())),
        }
        for name, at in rows.groupby("column", sort=False).groups.items()
    ]
    methods.sort(key=lambda each: (-len(each["sets"]), each["name"]))
    return {"cells": cells, "unfinished_cells": int(rows["splits"].sum()), "methods": methods}


def _effort(tables: Mapping[str, Mapping[str, pd.DataFrame | None]], budget: float | None) -> dict[str, Any] | None:
    """Return the hours that the cells of studies took, ``None`` where no study was measured."""
    rows: list[dict[str, Any]] = []
    for study, frames in tables.items():
        if (measured := frames["measured"]) is not None:
            hours = _hours(measured, frames["tuned"], frames["unfinished"])
            rows.append({"study": study, "cells": len(measured), **hours})
    if not rows:
        return None
    hours = sum(row[part] for row in rows for part in ("own", "inputs", "searches", "unfinished"))
    return {"studies": rows, "hours": round(hours, 2), "budget": budget, "load": _load(tables)}


def _hours(measured: pd.DataFrame, tuned: pd.DataFrame | None, unfinished: pd.DataFrame | None) -> dict[str, float]:
    """Return the hours of a study; the inputs of a split count once, for its methods share them."""
    seconds = {
        "own": measured[["fit_seconds", "predict_seconds"]].sum().sum(),
        "inputs": measured.groupby(["dataset", "split"])["input_seconds"].max().sum(),
        "searches": 0.0 if tuned is None else tuned.drop_duplicates(CELL)["tune_seconds"].sum(),
        "unfinished": 0.0 if unfinished is None else unfinished["seconds"].sum(),
    }
    return {name: round(float(value) / 3600, 2) for name, value in seconds.items()}


def _load(tables: Mapping[str, Mapping[str, pd.DataFrame | None]]) -> dict[str, Any] | None:
    """Return how much longer cells took with other work on the machine than alone, and which finish alone only.

    Studies with searches are left out: their methods have other settings. ``None`` where no cell was measured in both
    ways.
    """
    parts: dict[bool, list[pd.DataFrame]] = {True: [], False: []}
    for frames in tables.values():
        if (measured := frames["measured"]) is not None and frames["tuned"] is None:
            stopped = pd.DataFrame(columns=[*CELL, "seconds"]) if frames["unfinished"] is None else frames["unfinished"]
            tried = stopped[stopped["seconds"] > 0][[*CELL, "seconds"]]
            seconds = measured[["fit_seconds", "predict_seconds"]].sum(axis=1)
            done = measured[CELL].assign(seconds=seconds, done=True)
            parts[bool(measured["alone"].all())].append(pd.concat([done, tried.assign(done=False)]))
    if not all(parts.values()):
        return None
    both = pd.concat(parts[False]).merge(pd.concat(parts[True]), on=CELL, suffixes=("", "_alone"))
    finished, stopped = both[both["done"] & both["done_alone"]], both[~both["done"]]
    if finished.empty:
        return None
    only = stopped[stopped["done_alone"]]
    return {
        "cells": len(finished),
        "ratio": float((finished["seconds"] / finished["seconds_alone"]).median()),
        "stopped": len(stopped),
        "finish_alone": only[["dataset", "method"]].assign(seconds=only["seconds_alone"]).to_dict("records"),
    }


def _agreement(pool: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    """Return how alike two metrics order the methods: Spearman's correlation of the average ranks."""
    names = [metric for metric in metrics if metric in pool["boards"]]
    ranks = pd.DataFrame({metric: pool["boards"][metric]["rank"] for metric in names}, index=pool["columns"])
    correlation = ranks.corr(method="spearman")
    free = [metric for metric in names if metric not in ORDERED_LIKE]
    rows = []
    for metric in names:
        others = correlation.loc[metric, [other for other in free if other != metric]].dropna()
        others = others.drop(ORDERED_LIKE.get(metric, ""), errors="ignore")
        near, far = (others.idxmax(), others.idxmin()) if len(others) else (None, None)
        rows.append(
            {
                "name": metric,
                "ordered_like": ORDERED_LIKE.get(metric),
                "most_like": near,
                "largest": finite(others.max(), 6) if len(others) else None,
                "least_like": far,
                "smallest": finite(others.min(), 6) if len(others) else None,
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
        "median": finite(np.median(upper), 6) if len(upper) else None,
        "smallest": finite(upper.min(), 6) if len(upper) else None,
        "correlation": {a: {b: finite(correlation.loc[a, b], 6) for b in names} for a in names},
    }


def _dummies(pool: Mapping[str, Any], means: Leaderboard) -> list[dict[str, Any]]:
    """Return by metric the best dummy: its rank, how many methods are behind it, where it is close to the best."""
    dummies = [name for name in DUMMIES if name in means.methods]
    learners = [name for name in means.methods if name not in DUMMIES]
    rows = []
    for metric in means.metrics:
        if not dummies or metric not in pool["boards"]:
            continue
        ranks = dict(zip(pool["columns"], pool["boards"][metric]["rank"], strict=True))
        best = min(dummies, key=ranks.__getitem__)
        table = means.means(metric)
        errors = pd.DataFrame(errors_of([metric], table.to_numpy()[None])[0], table.index, table.columns)
        gap = errors[best] - errors[learners].min(axis=1)
        bounded = not np.isinf(METRICS[metric].high)
        rows.append(
            {
                "metric": metric,
                "ordered_like": ORDERED_LIKE.get(metric),
                "dummy": best,
                "rank": finite(ranks[best], 2),
                "behind": sum(ranks[name] > ranks[best] for name in learners),
                "learners": len(learners),
                "sets": len(table),
                "not_worse": int((gap <= 1e-9).sum()),
                "close": int((gap <= ROPE + 1e-9).sum()) if bounded else None,
            }
        )
    return rows


@dataclass(frozen=True, eq=False)
class _Shares:
    """Share of the metrics of a group in which the row's method beats the column's method, per dataset.

    NaN where one of the two did not finish: as losses, these sets would make the shares measure speed.
    """

    columns: tuple[str, ...]
    sources: tuple[str, ...]
    values: np.ndarray  # (n_datasets, n_columns, n_columns)

    def between(self, column: str, other: str) -> pd.Series:
        """Return the shares that a column wins against another one, a value per dataset, indexed by its source."""
        shares = self.values[:, self.columns.index(column), self.columns.index(other)]
        return pd.Series(shares, index=pd.Index(self.sources, name="source"))


def _shares(means: Leaderboard, group: str, facts: Sequence[Mapping[str, Any]]) -> _Shares:
    """Return the shares of a group; a dataset on which all its metrics are undefined is left out."""
    board, sources = rank_methods(means, group), sources_of(facts)
    late = means.incomplete[np.isin(means.datasets, board.datasets)]
    both = ~(late[:, :, None] | late[:, None, :])
    values = np.where(both, board.set_wins, np.nan)
    return _Shares(means.methods, tuple(sources[name] for name in board.datasets), values)


def _tested(pairs: Sequence[tuple[_Shares, str, str]]) -> list[dict[str, Any]]:
    """Return how the first column of each pair does against the second: share of wins and signed-rank test.

    Both are over the datasets that the two columns finished; ``missing`` is the number of the others, and without a
    common one ``wins`` is ``None``. Both have one value per source, the mean share on its datasets, for the results on
    related datasets are not independent. The p values are Holm-corrected over the pairs. ``smallest_p`` is what they
    can be at least: a difference cannot be detected where it is above the level.
    """
    shares = [share.between(column, other) for share, column, other in pairs]
    finished = [share.dropna() for share in shares]
    # rounded, so that rounding errors are no differences
    tested = [share.groupby("source", sort=False).mean().to_numpy().round(9) - 0.5 for share in finished]
    p = holm([signed_rank_p(differences) for differences in tested])
    return [
        {
            "against": other,
            "sets": len(values),
            "missing": len(all_values) - len(values),
            "sources": len(differences),
            "wins": finite(values.groupby("source").mean().mean(), 6),
            "sets_won": int((values > 0.5).sum()),
            "sets_lost": int((values < 0.5).sum()),
            "p_holm": significant(adjusted),
            "smallest_p": significant(min(1.0, len(pairs) * 2.0 ** (1 - len(differences)))),
            "verdict": _verdict(differences, adjusted),
        }
        for (_, _, other), all_values, values, differences, adjusted in zip(
            pairs, shares, finished, tested, p, strict=True
        )
    ]


def _verdict(differences: np.ndarray, p: float) -> str:
    """Return what the signed-rank test detected; its direction is the direction of the rank sums."""
    if p > ALPHA:
        return "no difference"
    return "better" if (rankdata(np.abs(differences)) * np.sign(differences)).sum() > 0 else "worse"


def _standing(pool: Mapping[str, Any], group: str, column: str) -> dict[str, Any]:
    """Return the average rank of a column, its position in that order, and its Elo."""
    board = pool["boards"][group]
    rank = board["rank"][pool["columns"].index(column)]
    position = 1 + sum(other < rank for other in board["rank"])
    return {"rank": finite(rank, 6), "position": position, "sets": board["sets"], **elo_of(pool, group, column)}
