"""Leaderboards of the page, and quality against cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from multilab.reports.arena.data import ArenaData
from multilab.reports.arena.figures import CostPoint, RankPoint, cost_figure, rank_ladder
from multilab.reports.arena.finding import leader, rated
from multilab.reports.arena.texts import percent, pool_title, shown_column
from multilab.reports.tables.entry import p_text

_ELO = ["elo_low", "elo", "elo_high"]
_NUMBERS = (*_ELO, "rank", "win_rate", "improvability")
_COSTS = {"fit_seconds": "seconds to fit 1,000 rows", "model_mb": "size of the model, MB"}


def board_panel(arena: ArenaData, pool: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return a leaderboard with its diagram."""
    board, first = pool["boards"][group], leader(pool, group)
    table = pd.DataFrame({key: board.get(key) for key in _NUMBERS}, index=pool["columns"], dtype=float)
    table["unfinished"] = pool["unfinished"]
    table = table.sort_values(
        ["elo", "rank"] if rated(board) else "rank", ascending=[False, True] if rated(board) else True
    )
    low, high = table[_ELO].min().min(), table[_ELO].max().max()
    limit = table["rank"].min() + (-1.0 if board["cd"] is None else board["cd"])
    points = [RankPoint(arena.title_on(name, pool["sets"]), rank) for name, rank in table["rank"].items()]
    title = _title(arena, pool, group)
    best = ", ".join(f"{point.title} {point.mean_rank:.2f}" for point in sorted(points, key=lambda p: p.mean_rank)[:10])
    return {
        "track": pool["name"],
        "group": group,
        "title": title,
        "note": _board_note(arena, pool, group),
        "marked": any(set(arena.columns[name].chosen_on) & set(pool["sets"]) for name in pool["columns"]),
        "rows": [
            _interval(row, low, high - low)
            | {
                "method": shown_column(arena, name, pool["sets"]),
                "first": name == first,
                "mean_rank": f"{row['rank']:.2f}",
                "mean_rank_value": f"{row['rank']:g}",
                "same": row["rank"] <= limit,
                "win_rate": percent(row["win_rate"]),
                "improvability": percent(row["improvability"]),
                "unfinished": percent(row["unfinished"]),
                "late": row["unfinished"] > 0,
            }
            for name, row in table.iterrows()
        ],
        "diagram": rank_ladder(points, board["cd"], f"Mean ranks, {title}: {best}") if board["cd"] else "",
        "cd_note": f"CD = {board['cd']:.2f} ranks, {board['sets']} sets" if board["cd"] else "",
    }


def _interval(row: pd.Series, low: float, span: float) -> dict[str, str]:
    """Return Elo and its interval as text, and where the bar of the interval begins and ends, in per cent."""
    if np.isnan(row["elo"]):
        return dict.fromkeys(("elo_value", "interval", "left", "width", "middle"), "") | {"elo": "–"}
    ends = (row["elo_low"], row["elo_high"])
    left, right = (row["elo"] if np.isnan(end) else end for end in ends)

    def share(value: float) -> str:
        return f"{100 * value / span if span else 0.0:.1f}".removesuffix(".0")

    return {
        "elo": f"{row['elo']:.0f}",
        "elo_value": f"{row['elo']:g}",
        "interval": "" if np.isnan(ends[0]) else f"{left:.0f}–{right:.0f}",
        "left": share(left - low),
        "width": share(right - left),
        "middle": share(row["elo"] - low),
    }


def _title(arena: ArenaData, pool: Mapping[str, Any], group: str) -> str:
    return f"{pool_title(pool['name'])} · {arena.groups[group]['title']}"


def _board_note(arena: ArenaData, pool: Mapping[str, Any], group: str) -> str:
    board = pool["boards"][group]
    text = f"{len(pool['columns'])} methods, {board['sets']} sets, {len(arena.groups[group]['metrics'])} metrics."
    if board["left_out"]:
        text += f" Not defined on {', '.join(board['left_out'])}."
    if pool["other_splits"]:
        text += f" The tracks split {', '.join(pool['other_splits'])} differently."
    if board["p"] is not None:
        differ = "differ" if board["p"] < 0.05 else "are not shown to differ"
        text += f" Taken together, the methods {differ} (Iman–Davenport, {p_text(board['p'])})."
    return text


def cost_panel(arena: ArenaData, pool: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return the figures of quality against costs that were measured."""
    board, title = pool["boards"][group], _title(arena, pool, group)
    if rated(board):
        name, values = "Elo", board["elo"]
    else:
        name, values = "Win rate, %", [100 * share for share in board["win_rate"]]
    figures = []
    for cost, unit in _COSTS.items():
        points = [
            CostPoint(arena.title_on(column, pool["sets"]), amount, quality)
            for column, quality in zip(pool["columns"], values, strict=True)
            if (amount := getattr(arena.columns[column], cost)) and quality is not None
        ]
        if points:
            text = f"{name} against {unit}"
            svg = cost_figure(points, f"{unit} (logarithmic)", name, f"{text}, {title}")
            figures.append({"title": text, "svg": svg, "caption": f"{text}, {len(points)} methods."})
    return {"track": pool["name"], "group": group, "title": title, "figures": figures}
