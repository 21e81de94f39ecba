"""Cheapest sufficient method of each set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from multilab.arena.boards import errors_of
from multilab.arena.champion import ROPE
from multilab.arena.summaries import markdown as md
from multilab.arena.summaries.comparisons import (
    rounded_or_none,
    significant,
)
from multilab.arena.tracks import Means

CHEAP_METRICS = ("example_f1", "macro_auc", "average_precision")
"""One metric per group, for the question how much the cheapest sufficient method costs."""


def cheap_numbers(means: Means, measured: pd.DataFrame) -> dict[str, Any]:
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
        "best_value": rounded_or_none(values[best], 4),
        "best_seconds": significant(both.loc[best, "seconds"]),
        "cheapest": str(cheap),
        "value": rounded_or_none(values[cheap], 4),
        "seconds": significant(both.loc[cheap, "seconds"]),
        "within": len(near),
    }


def cheap_section(summary: Mapping[str, Any]) -> list[str]:
    """Return the section on cheap methods, in Markdown."""
    entry, title = summary["cheap"], "## Where the cheap methods suffice"
    if entry is None or not any(entry["metrics"].values()):
        return [title, "There are no measured seconds."]
    rope = summary["rope"]
    where = "one cell at a time" if entry["alone"] else "on a shared machine, so that they are approximate"
    sentences = []
    for metric, rows in entry["metrics"].items():
        if not rows:
            continue
        factors = sorted(row["best_seconds"] / row["seconds"] for row in rows if row["seconds"] > 0)
        same = sum(row["cheapest"] == row["best"] for row in rows)
        counts: dict[str, int] = {}
        for row in rows:
            counts[row["cheapest"]] = counts.get(row["cheapest"], 0) + 1
        most = max(counts.values())
        often = [name for name, count in counts.items() if count == most]
        text = f"{md.metric_name(metric)}, {md.count(len(rows), 'set')}: "
        if factors:
            factor = md.times(float(np.median(factors)))
            text += f"the best method takes {factor} the seconds of the cheapest sufficient one (median); "
        text += f"on {same} of {len(rows)} the best is the cheapest itself"
        text += (
            f"; cheapest most often is {md.code_names(often)} ({md.count(most, 'set')} each)"
            if len(often) > 1
            else (f"; cheapest most often is {md.code_names(often)} ({md.count(most, 'set')})")
        )
        sentences.append(f"- {text}.")
    by_set = {metric: {row["set"]: row for row in rows} for metric, rows in entry["metrics"].items() if rows}
    table = [
        [name, *(_cheap_cell(rows.get(name)) for rows in by_set.values())]
        for name in summary["sets"]
        if any(name in rows for rows in by_set.values())
    ]
    return [
        title,
        f"Per set, the cheapest method whose mean over the splits is at most {rope:g} worse than the best mean; in "
        "parentheses the best one. Seconds are those of a fit with its predictions and inputs, measured "
        f"{where}. A gap of means is not a test.",
        "\n".join(sentences),
        md.table(["Set", *(md.metric_name(metric) for metric in by_set)], table),
    ]


def _cheap_cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "-"
    cheap = f"`{row['cheapest']}` {row['seconds']:.2g} s"
    return cheap if row["cheapest"] == row["best"] else f"{cheap} (`{row['best']}` {row['best_seconds']:.2g} s)"
