"""The file ``reports/arena/leaderboard.json.gz``: all that a page needs to show, sort, filter and re-rank.

Every key, in the order of the file. A *column* is a method of a track: ``mlknn`` of the track default, ``mlknn@tuned``
of the track tuned. Arrays of numbers are parallel to the list of names mentioned with them; ``null`` is an absent
value. Numbers are rounded to what is meaningful: means to 6 decimals, Elo to 0.1, ranks, rates and probabilities to
0.001. Boards are computed from the rounded means, so that a reader who ranks the means gets the same ranks.

``schema``
    Version of this description, an integer.
``created``
    ``YYYY-MM-DD HH:MM UTC``: when the newest of the studies was evaluated.
``studies``
    A list, one per study: ``track`` (``default``, ``tuned``, ``ensembled``, ``costs``), ``study`` (its name: tables in
    ``reports/<study>/``), ``title``, ``description``, and from its ``environment.json`` ``created``, ``commit``,
    ``machine``, ``python``, ``blas``, ``versions`` (package to version). ``null`` where the study has no such file.
    ``tune``: the search of a tuned study (``n_trials``, ``folds``, ``metric``, ``sampler``), else ``null``.
``sets``
    A list, one per dataset of a pool: ``name``, ``title``, ``domain`` (``text``, ``image``, ``audio``, ``biology``,
    ``medicine``, ``environment``, ``synthetic``, ``other``), ``text`` (true or false), ``source`` (one name for sets
    that ``related`` of ``conf/arena.yaml`` puts together, else the name), ``n`` (rows), ``d`` (features, after
    one-hot coding), ``q`` (labels), ``cardinality`` (labels per row), ``density`` (cardinality / q), ``distinct``
    (distinct label sets), ``nominal`` (nominal features), ``sparse`` (true or false).
``methods``
    An object, one per column: ``name`` (of the method), ``track``, ``title``, ``family``, ``licence``, ``requires``
    (list of the extras or packages it needs in addition to the core), ``reference``, ``base_scores`` (methods that a
    stack reads, a list), ``libraries`` (the libraries of its estimator in the suite: package to version), ``chosen_on``
    (``null``, or ``sets`` whose results decided rules of the method, with the ``reason``: there its rows are
    optimistic).
``absent``
    A list, one per method of ``conf/entrant`` without results: ``name``, ``title``, ``family``, ``licence``,
    ``requires``, ``reference`` and ``reason``.
``metrics``
    A list, one per metric: ``name``, ``title``, ``direction`` (``min`` or ``max``), ``low``, ``high`` (``null``:
    grows with q), ``group`` (``example``, ``label``, ``ranking`` or ``probability``; ``null``: no group counts it),
    ``ordered_like`` (another metric that orders methods alike on every dataset, else ``null``; groups do not count
    such a metric).
``groups``
    A list, one per group of metrics: ``name`` (``overall`` first), ``title``, ``metrics`` (those that count).
``tracks``
    An object by track: ``sets`` and ``columns`` (lists of names); ``splits`` (number of splits by
    dataset); ``values`` (by metric a list per dataset of a list per column: the mean over the splits; ``null`` where
    the cell is unfinished or the metric undefined); ``undefined`` (by metric the datasets on which it is undefined:
    they leave this metric for all; metrics without any are absent); ``unfinished`` (a list of ``{"set", "column",
    "splits", "reason"}``: how many splits are missing, and why; the method is ranked last on that dataset).
``pools``
    A list, one per pool of tracks that are ranked together:

    ``name`` (``default``, ``tuned``, ``ensembled``, ``all``; with ``-unseen`` the same columns without the sets of
    ``chosen_on`` of the tested method, if there are such and others), ``tracks``, ``sets`` (those that all its
    tracks have), ``columns``; ``values`` (an object like ``tracks[...]["values"]`` by track, metric and then by
    *dataset*, only for datasets of which this pool averages fewer splits than the track, else empty: look here first,
    then in the track);
    ``undefined`` (as in a track, on the splits of the pool);
    ``other_splits`` (datasets that the tracks split differently); ``unfinished`` (share of the cells a column did not
    finish, parallel to ``columns``); ``anchor`` (the column with Elo 1000, ``null``: the median is 1000).

    ``boards``: an object by group and metric. ``sets`` (number of datasets), ``left_out`` (names of those without a
    defined metric); parallel to the columns of the pool ``elo``, ``elo_low``, ``elo_high`` (95 % interval, a bootstrap
    over sources), ``rank`` (mean over datasets), ``win_rate``, ``improvability``; ``cd`` (Nemenyi's critical difference
    of ranks at .05), ``chi2`` (Friedman's), ``p`` (Iman and Davenport's), ``cliques`` (lists of columns that ``cd``
    does not separate). Boards of groups also have ``wins``: a list per column of per-cent integers, the share of
    (dataset, metric) pairs won against each column; those on a dataset that a column did not finish are lost.

    ``pareto``: an object by cost (``fit_seconds``, ``predict_ms``, ``model_mb``): the columns on the Pareto front of
    Elo on ``overall`` and cost, the cheapest first; absent without costs.

    ``tested``: ``null``, or ``column``, ``rope`` (in units of the metric; of coverage divided by q), ``tests`` by
    metric: parallel to ``columns`` ``better``, ``equal``, ``worse``, the probabilities that the tested method is better
    than, practically equal to and worse than the column (``null`` for itself), ``first`` (whether no column has a
    better average rank), ``surely_better`` (number of columns with
    ``better`` >= .95), ``surely_not_worse`` (number of columns with ``better + equal`` >= .95).
``costs``
    ``null``, or ``studies``, ``alone`` (false: measured with other work on the machine), ``columns`` and, parallel to
    them, ``fit_seconds`` (median per 1,000 training rows), ``predict_ms`` (median per row), ``model_mb``,
    ``peak_mb``, ``cells``. For a stack, all but ``peak_mb`` include its base methods.

To rank on some datasets: per metric and dataset, order the columns by value (``direction``), unfinished last, ties
averaged; a metric undefined on a dataset is left out there. A group then ranks each dataset by the mean of these
ranks over its metrics. ``rank`` is the mean over datasets. The share of wins against a column counts every dataset
alike.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.arena.boards import GROUP_TITLES, METRIC_GROUPS, Board, Rating, boards_of, metrics_of, rank_methods
from multilab.arena.one_against_all import ROPE, SURE, one_against_all_tests
from multilab.arena.sets import sources_of
from multilab.arena.tracks import ArenaError, Pool, Track, all_pools
from multilab.core.numbers import finite, significant
from multilab.metrics import METRICS
from multilab.statistics import Leaderboard, pareto_front

SCHEMA = 3
"""Version of the file."""

Run = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def _in_turn(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [work(item) for item in items]


COSTS = ("fit_seconds", "predict_ms", "model_mb")


def arena_leaderboard(
    tracks: Sequence[Track],
    facts: Sequence[Mapping[str, Any]],
    methods: Mapping[str, Mapping[str, Any]],
    studies: Sequence[Mapping[str, Any]],
    digests: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    costs: pd.DataFrame | None = None,
    rating: Rating | None = None,
    anchor: str | None = None,
    tested: str | None = None,
    run: Run = _in_turn,
    absent: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the content of the leaderboard file.

    Parameters
    ----------
    tracks : sequence of Track
        ``default`` first.
    facts : sequence of mapping
        One per dataset, as in ``sets`` of the file.
    methods : mapping of str to mapping
        Entries of ``methods`` of the file by name of the method, without name and track.
    studies : sequence of mapping
        Entries of ``studies`` of the file.
    digests : mapping, optional
        Digests of the splits, see :func:`pooled_tracks`.
    costs : DataFrame, optional
        From :func:`method_costs`; ``attrs["studies"]`` names the studies.
    rating : callable, optional
        :func:`elo_ratings`; without it there is no Elo and no Pareto front.
    anchor : str, optional
        Column with Elo 1000 where it is in the pool.
    tested : str, optional
        The column that is tested against every other one where it is in the pool; by default the best of the track
        ``ensembled`` on all sets, without such a track the best of each pool, by its rank over all metrics.
    run : callable, optional
        ``run(work, items)`` returns ``work(item)`` of all items, in their order; by default one after the other.
    absent : sequence of mapping
        Methods without results, as in the file.

    Returns
    -------
    dict
        The content that the docstring of the module describes.

    Raises
    ------
    ArenaError
        If no metric that counts is defined on any dataset.
    """
    by_name = {track.name: track for track in tracks}
    pools = all_pools(tracks, methods, digests, tested)
    anchors = [anchor if anchor in pool.means.methods else None for pool in pools]
    sources = sources_of(facts)
    boards = _boards(pools, anchors, rating, sources, run)
    if "overall" not in boards[pools[0].name]:
        counted = ", ".join(metrics_of("overall"))
        raise ArenaError(f"no metric that a leaderboard counts is defined on any set; these are {counted}")
    chosen = [_chosen(pool, boards, tested, tracks) for pool in pools]
    labels = {str(card["name"]): int(card["q"]) for card in facts}
    tests = _tests(pools, chosen, boards, labels, sources, run)
    described = [
        _pool(pool, by_name)
        | {"anchor": at}
        | {"boards": {name: _board(board, pool.means.methods) for name, board in boards[pool.name].items()}}
        | _fronts(boards[pool.name], costs)
        | {"tested": column and _described_tests(pool.means, column, tests[pool.name], boards[pool.name])}
        for pool, at, column in zip(pools, anchors, chosen, strict=True)
    ]
    used = [card for card in facts if any(card["name"] in pool.means.datasets for pool in pools)]
    metrics = [name for name in METRICS if any(name in track.board.metrics for track in tracks)]
    return {
        "schema": SCHEMA,
        "created": max((study["created"] for study in studies if study.get("created")), default=None),
        "studies": list(studies),
        "sets": [finite(card, 4) for card in used],
        "methods": {
            column: {"name": name, "track": track.name, **methods.get(name, {})}
            for track in tracks
            for column, name in zip(track.columns, track.board.methods, strict=True)
        },
        "absent": list(absent),
        "metrics": [_metric(name) for name in metrics],
        "groups": [
            {
                "name": name,
                "title": GROUP_TITLES[name],
                "metrics": [metric for metric in metrics_of(name) if metric in metrics],
            }
            for name in METRIC_GROUPS
            if name in boards[pools[0].name]
        ],
        "tracks": {track.name: _track(track) for track in tracks},
        "pools": described,
        "costs": None if costs is None else _costs(costs),
    }


def leaderboard_text(content: Mapping[str, Any]) -> str:
    """Return the text of the file: JSON without blanks, one line per top-level key and per pool.

    Examples
    --------
    >>> from multilab.arena import leaderboard_text
    >>> print(leaderboard_text({"schema": 1, "pools": [{"name": "default"}]}), end="")
    {
    "schema":1,
    "pools":[
    {"name":"default"}
    ]
    }
    """
    lines = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n" + ",\n".join(_compact(entry) for entry in value) + "\n]"
        else:
            text = _compact(value)
        lines.append(f"{json.dumps(key)}:{text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _metric(name: str) -> dict[str, Any]:
    metric = METRICS[name]
    return {
        "name": name,
        "title": metric.title,
        "direction": metric.direction,
        "low": finite(metric.low, 4),
        "high": finite(metric.high, 4),
        "group": metric.group,
        "ordered_like": metric.ordered_like,
    }


def _track(track: Track) -> dict[str, Any]:
    means, missing, reasons = track.means(), track.unfinished_splits(), track.reasons()
    datasets, methods = track.board.datasets, track.board.methods
    return {
        "sets": list(datasets),
        "columns": list(track.columns),
        "splits": {name: len(numbers) for name, numbers in track.board.splits_of.items()},
        "values": {
            metric: [list(map(finite, row)) for row in means.values[at]]
            for at, metric in enumerate(track.board.metrics)
        },
        "undefined": _undefined(means),
        "unfinished": [
            {
                "set": datasets[i],
                "column": track.columns[j],
                "splits": int(missing[i, j]),
                "reason": reasons[datasets[i], methods[j]],
            }
            for i, j in np.argwhere(missing)
        ],
    }


def _undefined(means: Leaderboard) -> dict[str, list[str]]:
    """Return by metric the datasets on which it is undefined; nothing of a metric without any."""
    absent = zip(means.metrics, means.undefined, strict=True)
    return {metric: [means.datasets[at] for at in np.flatnonzero(mask)] for metric, mask in absent if mask.any()}


def _boards(
    pools: Sequence[Pool],
    anchors: Sequence[str | None],
    rating: Rating | None,
    sources: Mapping[str, str],
    run: Run,
) -> dict[str, dict[str, Board]]:
    """Return the boards of each pool by name; a metric that is undefined on all datasets has none."""
    jobs = [
        (pool.name, name, pool.means, anchor)
        for pool, anchor in zip(pools, anchors, strict=True)
        for name in boards_of(pool.means.metrics)
        if not pool.means.undefined[
            [pool.means.metrics.index(m) for m in metrics_of(name) if m in pool.means.metrics]
        ].all()
    ]
    boards: dict[str, dict[str, Board]] = {pool.name: {} for pool in pools}
    for job, board in zip(jobs, run(functools.partial(_ranked, rating, sources), jobs), strict=True):
        boards[job[0]][job[1]] = board
    return boards


def _ranked(rating: Rating | None, sources: Mapping[str, str], job: tuple[str, str, Leaderboard, str | None]) -> Board:
    _, name, means, anchor = job
    return rank_methods(means, name, rating, anchor, sources)


def _chosen(
    pool: Pool, boards: Mapping[str, Mapping[str, Board]], tested: str | None, tracks: Sequence[Track]
) -> str | None:
    """Return the column that is tested: the one named, else the best ensemble on all sets, else the best of the pool.

    The same ensemble is tested in every pool that has it.
    """
    if tested in pool.means.methods:
        return tested
    if "ensembled" not in boards:
        return str(boards[pool.name]["overall"].table.index[0])
    columns = next(track.columns for track in tracks if track.name == "ensembled")
    best = next(name for name in boards["ensembled"]["overall"].table.index if name in columns)
    return str(best) if best in pool.means.methods else None


def _tests(
    pools: Sequence[Pool],
    chosen: Sequence[str | None],
    boards: Mapping[str, Mapping[str, Board]],
    labels: Mapping[str, int],
    sources: Mapping[str, str],
    run: Run,
) -> dict[str, dict[str, pd.DataFrame]]:
    jobs = [
        (pool.name, metric, pool.means, tested)
        for pool, tested in zip(pools, chosen, strict=True)
        if tested is not None
        for metric in pool.means.metrics
        if metric in boards[pool.name]
    ]
    tests: dict[str, dict[str, pd.DataFrame]] = {pool.name: {} for pool in pools}
    for job, table in zip(jobs, run(functools.partial(_tested, labels, sources), jobs), strict=True):
        tests[job[0]][job[1]] = table
    return tests


def _tested(
    labels: Mapping[str, int], sources: Mapping[str, str], job: tuple[str, str, Leaderboard, str]
) -> pd.DataFrame:
    _, metric, means, tested = job
    return one_against_all_tests(means, tested, metric, labels, sources)


def _pool(pool: Pool, tracks: Mapping[str, Track]) -> dict[str, Any]:
    """Return the description of a pool; where it averages fewer splits than a track, with its own means."""
    means, own_means = pool.means, {}
    for name in pool.tracks:
        fewer = [
            dataset
            for dataset, used in pool.splits[name].items()
            if len(used) < len(tracks[name].board.splits_of[dataset])
        ]
        at = [means.methods.index(column) for column in tracks[name].columns]
        if fewer:
            own_means[name] = {
                metric: {
                    dataset: list(map(finite, means.values[m, means.datasets.index(dataset), at])) for dataset in fewer
                }
                for m, metric in enumerate(means.metrics)
            }
    return {
        "name": pool.name,
        "tracks": list(pool.tracks),
        "sets": list(means.datasets),
        "columns": list(means.methods),
        "values": own_means,
        "undefined": _undefined(means),
        "other_splits": list(pool.other_splits),
        "unfinished": [finite(pool.unfinished[column], 4) for column in means.methods],
    }


def _fronts(boards: Mapping[str, Board], costs: pd.DataFrame | None) -> dict[str, Any]:
    overall = boards["overall"].table
    if costs is None or "elo" not in overall:
        return {}
    elo = {name: overall.loc[name, "elo"] for name in overall.index if name in costs.index}
    return {"pareto": {cost: list(pareto_front(elo, costs[cost].to_dict())) for cost in COSTS}}


def _board(board: Board, columns: Sequence[str]) -> dict[str, Any]:
    table = board.table.reindex(list(columns))
    digits = {"elo": 3, "elo_low": 3, "elo_high": 3, "rank": 6, "win_rate": 6, "improvability": 6}
    entry: dict[str, Any] = {"sets": len(board.datasets), "left_out": list(board.left_out)}
    entry |= {
        name: [finite(value, places) for value in table[name]] for name, places in digits.items() if name in table
    }
    entry |= {
        "cd": finite(board.cd, 3),
        "chi2": finite(board.tests.chi2, 2),
        "p": None if board.tests.p is None else float(f"{board.tests.p:.3g}"),
        "cliques": [list(group) for group in board.groups],
    }
    if board.name in METRIC_GROUPS:
        entry["wins"] = np.rint(100 * board.wins.to_numpy()).astype(int).tolist()
    return entry


def _described_tests(
    means: Leaderboard, tested: str, tests: Mapping[str, pd.DataFrame], boards: Mapping[str, Board]
) -> dict[str, Any]:
    described = {}
    for metric, table in tests.items():
        ranks, aligned = boards[metric].table, table.reindex(list(means.methods))
        better, equal = table["better"].to_numpy(dtype=float), table["equal"].to_numpy(dtype=float)
        described[metric] = {
            **{name: [finite(value, 6) for value in aligned[name]] for name in ("better", "equal", "worse")},
            "first": bool(ranks.loc[tested, "rank"] <= ranks["rank"].min() + 1e-9),
            "surely_better": int((better >= SURE).sum()),
            "surely_not_worse": int((better + equal >= SURE).sum()),
        }
    return {"column": tested, "rope": ROPE, "tests": described}


def _costs(costs: pd.DataFrame) -> dict[str, Any]:
    return {
        "studies": costs.attrs.get("studies", []),
        "alone": bool(costs["alone"].all()),
        "columns": [str(name) for name in costs.index],
        **{name: [significant(value) for value in costs[name]] for name in (*COSTS, "peak_mb")},
        "cells": [int(value) for value in costs["cells"]],
    }
