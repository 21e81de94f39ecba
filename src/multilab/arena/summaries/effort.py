"""Hours of one core that the committed results took, by study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from multilab.arena.summaries import markdown as md

_PARTS = {
    "own": "Fits and predictions",
    "inputs": "Inputs",
    "searches": "Searches",
    "unfinished": "Without a result",
}
_CELL = ["dataset", "split", "method"]


def effort_numbers(
    tables: Mapping[str, Mapping[str, pd.DataFrame | None]], budget: float | None
) -> dict[str, Any] | None:
    """Return the hours that the cells of studies took, ``None`` where no study was measured.

    Parameters
    ----------
    tables : mapping
        By study its ``measured``, ``tuned`` and ``unfinished`` cells, see :mod:`multilab.statistics.result_files`.
    budget : float, optional
        The hours that all studies together may take.
    """
    rows: list[dict[str, Any]] = []
    for study, each in tables.items():
        if (measured := each["measured"]) is not None:
            hours = _hours(measured, each["tuned"], each["unfinished"])
            rows.append({"study": study, "cells": len(measured), **hours})
    if not rows:
        return None
    return {"studies": rows, "hours": round(sum(map(_sum, rows)), 2), "budget": budget, "load": _load(tables)}


def _hours(measured: pd.DataFrame, tuned: pd.DataFrame | None, unfinished: pd.DataFrame | None) -> dict[str, float]:
    """Return the hours of a study; the inputs of a split count once, for its methods share them."""
    seconds = {
        "own": measured[["fit_seconds", "predict_seconds"]].sum().sum(),
        "inputs": measured.groupby(["dataset", "split"])["input_seconds"].max().sum(),
        "searches": 0.0
        if tuned is None
        else tuned.drop_duplicates(["dataset", "split", "method"])["tune_seconds"].sum(),
        "unfinished": 0.0 if unfinished is None else unfinished["seconds"].sum(),
    }
    return {name: round(float(value) / 3600, 2) for name, value in seconds.items()}


def _load(tables: Mapping[str, Mapping[str, pd.DataFrame | None]]) -> dict[str, Any] | None:
    """Return how much longer cells took with other work on the machine than alone, and which finish alone only.

    Studies with searches are left out: their methods have other settings. ``None`` where no cell was measured in both
    ways.
    """
    parts: dict[bool, list[pd.DataFrame]] = {True: [], False: []}
    for each in tables.values():
        if (measured := each["measured"]) is not None and each["tuned"] is None:
            stopped = pd.DataFrame(columns=[*_CELL, "seconds"]) if each["unfinished"] is None else each["unfinished"]
            tried = stopped[stopped["seconds"] > 0][[*_CELL, "seconds"]]
            seconds = measured[["fit_seconds", "predict_seconds"]].sum(axis=1)
            done = measured[_CELL].assign(seconds=seconds, done=True)
            parts[bool(measured["alone"].all())].append(pd.concat([done, tried.assign(done=False)]))
    if not all(parts.values()):
        return None
    both = pd.concat(parts[False]).merge(pd.concat(parts[True]), on=_CELL, suffixes=("", "_alone"))
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


def effort_section(summary: Mapping[str, Any]) -> list[str]:
    """Return the section on hours, in Markdown; empty without measurements."""
    entry = summary["effort"]
    if entry is None:
        return []
    rows = [
        [f"`{row['study']}`", f"{row['cells']:,}", *(f"{row[part]:.2f}" for part in _PARTS), f"{_sum(row):.2f}"]
        for row in entry["studies"]
    ]
    budget = "" if entry["budget"] is None else f"; the budget is {entry['budget']:g}"
    return [
        "## What it took",
        f"The committed cells took {entry['hours']:.1f} hours of one core{budget}. Seconds are by the clock, a cell "
        "has one core, and most were measured with other work on the machine, which makes them longer. "
        "Inputs are scores of base methods; the "
        "methods of a split share them, so that they count once. Earlier versions of methods and cells that were "
        "computed again as a check are not counted.",
        md.table(["Study", "Cells", *_PARTS.values(), "Hours"], rows),
        *_load_text(entry["load"]),
    ]


def _load_text(load: Mapping[str, Any] | None) -> list[str]:
    if load is None:
        return []
    text = (
        f"A fit with its predictions took {load['ratio']:.1f} times what it takes alone (median over "
        f"{md.count(load['cells'], 'cell')} measured in both ways)."
    )
    if load["stopped"]:
        alone = [f"`{each['method']}` on {each['dataset']} ({each['seconds']:.0f} s)" for each in load["finish_alone"]]
        text += (
            f" Limits are limits of processor time, which other work makes longer, too: of "
            f"{md.count(load['stopped'], 'cell')} without a result that were also tried alone, {len(alone)} finish "
            f"there{': ' + md.listed(alone, 99) if alone else ''}."
        )
    return [text]


def _sum(row: Mapping[str, Any]) -> float:
    return sum(float(row[part]) for part in _PARTS)
