"""Costs of the methods: seconds and megabytes, and the methods that none dominates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from multilab.arena.summaries import markdown as md

_COSTS = {
    "fit_seconds": "Fit, s per 1,000 rows",
    "predict_ms": "Prediction, ms per row",
    "model_mb": "Model, MB",
    "peak_mb": "Peak, MB",
}


def cost_numbers(content: Mapping[str, Any], pool: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the costs of the methods of a pool, the fastest fit first, and its Pareto fronts.

    ``None`` where nothing was measured with nothing else running.
    """
    costs = content["costs"]
    if costs is None or not costs["alone"]:
        return None
    machines = {each["study"]: each.get("machine") for each in content["studies"]}
    rated = pool["boards"]["overall"].get("elo") or [None] * len(pool["columns"])
    elo = dict(zip(pool["columns"], rated, strict=True))
    rows = [
        {"name": name, "elo": elo[name], **{cost: costs[cost][at] for cost in (*_COSTS, "cells")}}
        for at, name in enumerate(costs["columns"])
        if name in elo
    ]
    rows.sort(key=lambda row: row["fit_seconds"])
    return {
        "study": costs["study"],
        "machine": machines.get(costs["study"].split()[0]),
        "sets": pool["boards"]["overall"]["sets"],
        "methods": rows,
        "pareto": pool.get("pareto", {}),
    }


def cost_section(summary: Mapping[str, Any]) -> list[str]:
    """Return the section on costs, in Markdown; empty without costs measured alone."""
    entry = summary["costs"]
    if entry is None or not entry["methods"]:
        return []
    rows = {row["name"]: row for row in entry["methods"]}
    machine = f" on {entry['machine']}" if entry["machine"] else ""
    most = max(row["cells"] for row in rows.values())
    fewer = [f"`{name}` {md.count(row['cells'], 'cell')}" for name, row in rows.items() if row["cells"] < most]
    exceptions = f" ({md.listed(fewer)}; the others did not finish)" if fewer else ""
    paragraphs = [
        "## What the methods cost",
        f"Of {entry['study']}, one cell at a time in a separate process, with nothing else running{machine}: medians "
        f"over {md.count(most, 'cell')} per method{exceptions}. Stacks include their base methods, but for the peak of "
        "memory, which is in addition to what the process has before the fit. Elo is that over all metrics on "
        f"{md.count(entry['sets'], 'set')}.",
    ]
    sentences = []
    for cost, doing in (("fit_seconds", "Fits"), ("predict_ms", "Predictions")):
        if len(front := entry["pareto"].get(cost, [])) > 1:
            steps = [f"`{name}` ({_number(rows[name][cost])})" for name in front]
            unit = "s per 1,000 rows" if cost == "fit_seconds" else "ms per row"
            sentences.append(
                f"- {doing}: none is both cheaper and higher in Elo than {md.listed(steps, len(steps))} ({unit})."
            )
    if sentences:
        paragraphs.append("\n".join(sentences))
    table = [
        [f"`{name}`", "-" if row["elo"] is None else f"{row['elo']:.0f}", *(_number(row[cost]) for cost in _COSTS)]
        for name, row in rows.items()
    ]
    return [*paragraphs, md.table(["Method", "Elo", *_COSTS.values()], table)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{float(f'{value:.3g}'):g}"
