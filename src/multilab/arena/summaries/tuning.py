"""Gain by tuning: each tuned method against itself at its own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from multilab.arena.file_means import leaderboard_means
from multilab.arena.summaries import markdown as md
from multilab.arena.summaries.comparisons import (
    pool_of,
    rounded_or_none,
    shares_of,
    standing,
    tested_pairs,
    undetectable,
)
from multilab.metrics import METRICS


def tuning_numbers(content: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any] | None:
    """Return each tuned method against itself at its own values, on the common sets and splits."""
    pool = pool_of(content, "tuned")
    if not pool:
        return None
    search = next((each.get("tune") for each in content["studies"] if each["track"] == "tuned"), None)
    means = leaderboard_means(content, "tuned")
    shares = {name: shares_of(means, name, content["sets"]) for name in groups}
    metric = (search or {}).get("metric")
    pairs = [(each, content["methods"][each]["name"]) for each in content["tracks"]["tuned"]["columns"]]
    pairs = [(tuned, name) for tuned, name in pairs if name in means.columns]
    tests = {group: tested_pairs([(each, *pair) for pair in pairs]) for group, each in shares.items()}
    return {
        "sets": list(means.datasets),
        "search": search,
        "methods": [
            {
                "name": name,
                "default": standing(pool, "overall", name),
                "tuned": standing(pool, "overall", tuned),
                "groups": {group: rows[at] for group, rows in tests.items()},
                "gain": None if metric not in means.metrics else _gain(means.table(metric), metric, tuned, name),
            }
            for at, (tuned, name) in enumerate(pairs)
        ],
    }


def _gain(table: pd.DataFrame, metric: str, column: str, other: str) -> dict[str, Any]:
    """Return the median over the sets that both finished of the gain in a metric; positive is better."""
    sign = 1 if METRICS[metric].direction == "max" else -1
    gains = (sign * (table[column] - table[other])).dropna()
    return {"metric": metric, "median": rounded_or_none(gains.median(), 4), "sets": len(gains)}


def tuning_section(summary: Mapping[str, Any]) -> list[str]:
    """Return the section on tuning, in Markdown."""
    entry, title = summary["tuning"], "## How much tuning buys"
    if entry is None:
        return [title, "The track *tuned* has no results yet."]
    methods, sets = entry["methods"], len(entry["sets"])
    how = search_text(entry["search"])
    rows = [
        [
            f"`{each['name']}`",
            md.elo_cell(each["default"]),
            md.elo_cell(each["tuned"]),
            *(md.bold(row, md.per_cent(row["wins"])) for row in each["groups"].values()),
            *([md.signed(each["gain"]["median"])] if each["gain"] else []),
        ]
        for each in methods
    ]
    overall = [each["groups"]["overall"] | {"name": each["name"]} for each in methods]
    gain = methods[0]["gain"] if methods else None
    header = ["Method", "Elo, default", "Elo, tuned", *(md.group(summary, name) for name in summary["groups"])]
    header += [f"Gain in {md.metric_name(gain['metric'])}"] if gain else []
    return [
        title,
        f"Each method, tuned, against itself at its own values, on {md.count(sets, 'set')}"
        f"{f' ({how})' if how else ''}. Over all metrics, {_verdict_counts(overall, 'method')}.",
        "Share of (set, metric) pairs that the tuned method wins. **Bold**: a difference was detected (Holm-corrected "
        "over the methods of a column)."
        + (" The gain is the median over the sets; positive is better." if gain else ""),
        md.table(header, rows),
    ]


def search_text(search: Mapping[str, Any] | None) -> str:
    """Return the search of the track in a few terms: ``15 draws, of which draw 0 is the method's own values, ...``."""
    search = search or {}
    draws = (
        f"{search.get('n_trials')} draws, of which draw 0 is the method's own values as far as its settings name them"
    )
    terms = {
        "n_trials": draws,
        "folds": f"{search.get('folds')} inner folds",
        "metric": f"chosen by {md.metric_name(search['metric'])}" if search.get("metric") else "",
    }
    return ", ".join(text for key, text in terms.items() if search.get(key))


def _verdict_counts(rows: Sequence[Mapping[str, Any]], noun: str) -> str:
    better, worse = ([row["name"] for row in rows if row["verdict"] == verdict] for verdict in ("better", "worse"))
    same = len(rows) - len(better) - len(worse)
    texts = [
        f"{len(better)} of {md.count(len(rows), noun)} gain{f' ({md.code_names(better)})' if better else ''}",
        f"{len(worse)} lose{f' ({md.code_names(worse)})' if worse else ''}",
        f"for {same} no difference was detected",
        *([why] if same and (why := undetectable(rows)) else []),
    ]
    return ", ".join(texts)
