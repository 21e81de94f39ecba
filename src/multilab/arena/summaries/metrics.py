"""Agreement of the metrics on the order of the methods, and ranks of methods without features by each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.arena.boards import errors_of
from multilab.arena.champion import ROPE
from multilab.arena.metric_groups import ORDERED_LIKE
from multilab.arena.summaries import markdown as md
from multilab.arena.summaries.comparisons import (
    rounded_or_none,
)
from multilab.arena.tracks import Means
from multilab.metrics import METRICS

DUMMIES = ("label_frequencies", "all_zero", "top_k")
"""Methods that do not read the features."""


def agreement_numbers(pool: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
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
                "largest": rounded_or_none(others.max(), 6) if len(others) else None,
                "least_like": far,
                "smallest": rounded_or_none(others.min(), 6) if len(others) else None,
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
        "median": rounded_or_none(np.median(upper), 6) if len(upper) else None,
        "smallest": rounded_or_none(upper.min(), 6) if len(upper) else None,
        "correlation": {a: {b: rounded_or_none(correlation.loc[a, b], 6) for b in names} for a in names},
    }


def dummy_numbers(pool: Mapping[str, Any], means: Means) -> list[dict[str, Any]]:
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
                "rank": rounded_or_none(ranks[best], 2),
                "behind": sum(ranks[name] > ranks[best] for name in learners),
                "learners": len(learners),
                "sets": len(table),
                "not_worse": int((gap <= 1e-9).sum()),
                "close": int((gap <= ROPE + 1e-9).sum()) if bounded else None,
            }
        )
    return rows


def agreement_section(summary: Mapping[str, Any]) -> list[str]:
    """Return the section on the agreement of metrics, in Markdown."""
    entry, title = summary["metrics"], "## How unequal the metrics are"
    sets, rows = len(summary["sets"]), entry["rows"]
    firsts = list(dict.fromkeys(name for row in rows for name in row["first"]))
    same = len(rows) - entry["distinct"]
    verb = "has" if len(firsts) == 1 else "have"
    number = md.count(len(firsts), "method")
    text = f"{number} {verb} the smallest average rank in at least one metric ({md.code_names(firsts)})."
    if entry["median"] is not None:
        text = (
            f"Spearman's correlation between the average ranks of {entry['columns']} methods on "
            f"{md.count(sets, 'set')} by two metrics has the median {entry['median']:.2f} over "
            f"{md.count(entry['pairs'], 'pair')} and is "
            f"{entry['smallest']:.2f} at least. {text}"
        )
    if same:
        verb = "orders" if same == 1 else "order"
        text += f" {md.count(same, 'metric')} of {len(rows)} {verb} the methods of any set as another one does."
    table = [
        [
            md.metric_name(row["name"]),
            md.code_names(row["first"]) if len(row["first"]) <= 3 else md.count(len(row["first"]), "method"),
            "-" if row["most_like"] is None else f"{md.metric_name(row['most_like'])} ({row['largest']:.2f})",
            "-" if row["least_like"] is None else f"{md.metric_name(row['least_like'])} ({row['smallest']:.2f})",
        ]
        for row in rows
        if row["ordered_like"] is None
    ]
    return [title, text, md.table(["Metric", "First by average rank", "Most like", "Least like"], table)]


def dummy_section(summary: Mapping[str, Any]) -> list[str]:
    """Return the section on methods without features, in Markdown."""
    title = "## What a method without features already wins"
    rows = [row for row in summary["dummies"] if row["ordered_like"] is None]
    if not rows:
        return [title, "None of them has results."]
    most = max(rows, key=lambda row: row["behind"] / row["learners"] if row["learners"] else 0)
    wins = [row for row in rows if row["not_worse"]]
    text = (
        f"Of the methods {md.code_names(DUMMIES)}, the one with the smallest average rank has the most learners behind "
        f"it by {md.metric_name(most['metric'])}: {most['behind']} of {most['learners']}, on "
        f"{md.count(most['sets'], 'set')}. "
    )
    if wins:
        text += "On at least one set no learner has a better mean than it by " + md.listed(
            (md.metric_name(row["metric"]) for row in wins), 99
        )
        text += "."
    else:
        text += "By every metric and on every set a learner has a better mean."
    table = [
        [
            md.metric_name(row["metric"]),
            f"`{row['dummy']}`",
            f"{row['rank']:.1f}",
            f"{row['behind']} of {row['learners']}",
            f"{row['not_worse']} of {row['sets']}",
            "-" if row["close"] is None else f"{row['close']} of {row['sets']}",
        ]
        for row in rows
    ]
    header = ["Metric", "Best", "Average rank", "Learners behind it", "Sets where no learner is better"]
    return [title, text, md.table([*header, f"Sets where it is at most {summary['rope']:g} from the best"], table)]
