"""Rows of the methods: those with results, and entrants without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from multilab.reports.arena.data import ArenaColumn, ArenaData
from multilab.reports.arena.texts import shown_column


def method_row(arena: ArenaData, column: ArenaColumn) -> dict[str, Any]:
    """Return the row of a column in the table of the methods."""
    track = arena.tracks[column.track]
    missing = sum(each["splits"] for each in track["unfinished"] if each["column"] == column.name)
    return {
        "method": shown_column(arena, column.name, track["sets"]) | {"name": column.method},
        "sets": len(track["sets"]),
        "unfinished": missing,
        "libraries": ", ".join(f"{name} {version}" for name, version in column.libraries.items()) or "–",
        "remarks": _remarks(column.requires, column.reference),
    }


def absent_row(entrant: Mapping[str, Any]) -> dict[str, str]:
    """Return the row of an entrant without results, with the reason."""
    texts = {key: entrant.get(key) or "–" for key in ("name", "title", "family", "licence", "reason")}
    return texts | {"remarks": _remarks(entrant.get("requires") or (), entrant.get("reference") or "")}


def _remarks(requires: Sequence[str], reference: str) -> str:
    needs = f"Needs {', '.join(requires)}. " if requires else ""
    return f"{needs}{reference}".strip() or "–"
