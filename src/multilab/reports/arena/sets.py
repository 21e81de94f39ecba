"""Page of one set, and its row in the table of all sets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from multilab.arena import rank_methods
from multilab.reports.arena.data import ArenaData
from multilab.reports.arena.finding import set_finding
from multilab.reports.arena.texts import limits_text, shown_column, thousands
from multilab.reports.tables.entry import number


def set_page(arena: ArenaData, name: str) -> dict[str, Any]:
    """Return the page of a set: all methods by all metrics."""
    facts, means = arena.sets[name], arena.set_means(name)
    metrics = [arena.metrics[metric] for metric in means.metrics]
    table = rank_methods(means, next(iter(arena.groups))).table
    reasons = {
        each["column"]: f"{each['splits']} of {track['splits'][name]} splits: {each['reason']}"
        for track in arena.tracks.values()
        for each in track["unfinished"]
        if each["set"] == name
    }
    best = [
        None if np.isnan(row).all() else (np.nanmax(row) if metric["direction"] == "max" else np.nanmin(row))
        for metric, row in zip(metrics, means.values[:, 0], strict=True)
    ]
    spreads, seconds = arena.spreads, arena.seconds
    rows = []
    for column in table.index:
        at = means.columns.index(column)
        entries = []
        for metric, row, top in zip(metrics, means.values[:, 0], best, strict=True):
            value, spread = row[at], spreads.get((name, column, metric["name"]), math.nan)
            entries.append(
                {
                    "text": "–" if math.isnan(value) else f"{value:.4f}",
                    "value": "" if math.isnan(value) else f"{value:g}",
                    "std": "" if math.isnan(value) or math.isnan(spread) else f"{spread:.4f}",
                    "best": top is not None and value == top,
                }
            )
        took = seconds.get((name, column), math.nan)
        rows.append(
            {
                "method": shown_column(arena, column, [name]),
                "rank": f"{table.loc[column, 'rank']:g}",
                "entries": entries,
                "seconds": number(took, 2),
                "seconds_value": "" if math.isnan(took) else f"{took:g}",
                "reason": reasons.get(column, ""),
            }
        )
    return {
        "item": facts | {"title": facts.get("title") or name},
        "finding": set_finding(arena, name),
        "facts": [
            ("rows (n)", thousands(facts["n"])),
            ("features (d)", thousands(facts["d"])),
            ("labels (q)", thousands(facts["q"])),
            ("labels per row", f"{facts['cardinality']:.3f}"),
            ("density", f"{facts['density']:.3f}"),
            ("domain", facts.get("domain") or "–"),
            ("splits compared", arena.compared_splits(name)),
        ],
        "card": f"../../../conf/dataset/{name}.yaml",
        "metrics": metrics,
        "rows": rows,
        "limits": limits_text(arena),
        "chosen_notes": arena.chosen_notes(name),
    }


def set_row(arena: ArenaData, name: str) -> dict[str, Any]:
    """Return the row of a set in the table of all sets."""
    facts, means = arena.sets[name], arena.set_means(name)
    table = rank_methods(means, next(iter(arena.groups))).table
    return {
        "name": name,
        "best": arena.title_on(table.index[0], [name]),
        "numbers": [
            *((thousands(facts[key]), f"{facts[key]}") for key in ("n", "d", "q")),
            *((f"{facts[key]:.3f}", f"{facts[key]}") for key in ("cardinality", "density")),
        ],
        "text": "yes" if facts["text"] else "no",
        "methods": len(means.columns),
        "unfinished": int(means.unfinished.sum()),
    }
