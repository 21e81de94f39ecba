"""Texts that all pages of the arena share: methods as the tables show them, pools, numbers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from multilab.arena.pools import UNSEEN
from multilab.core import read_json
from multilab.reports.arena.data import ArenaData
from multilab.reports.tables.entry import number

POOL_TITLES = {
    "default": "Default settings",
    "tuned": "Default and tuned",
    "ensembled": "Default and ensembled",
    "all": "All tracks",
}


def shown_column(arena: ArenaData, name: str, sets: Collection[str] = ()) -> dict[str, Any]:
    """Return a column as the tables show it; some sets may have decided its rules."""
    column = arena.columns[name]
    return {
        "name": column.name,
        "title": arena.title_on(name, sets),
        "family": column.family,
        "track": column.track,
        "licence": column.licence,
        "costs": [
            {"text": number(value, 2), "value": "" if value is None else f"{value:g}"}
            for value in (column.fit_seconds, column.predict_ms, column.model_mb)
        ],
    }


def pool_title(name: str) -> str:
    """Return the display name of a pool."""
    title = POOL_TITLES.get(name.removesuffix(UNSEEN), name)
    return f"{title}, unseen sets" if name.endswith(UNSEEN) else title


def thousands(value: float) -> str:
    """Return a number with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", "\u202f")


def percent(share: float) -> str:
    """Return a share in per cent, a dash for NaN."""
    return "–" if np.isnan(share) else f"{100 * share:.1f}"


def limits_text(arena: ArenaData) -> str:
    """Return the limits of a cell."""
    path = arena.folder / "study.json"
    limits = read_json(path).get("limits") if path.is_file() else None
    return f"{limits['seconds']:g} s or {limits['gigabytes']:g} GiB" if limits else "the limit of time or memory"
