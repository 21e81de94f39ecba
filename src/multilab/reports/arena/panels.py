"""Parts of the arena's page: leaderboards, costs, the tested stack, tuning, methods, sets, its script's data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.arena import leaderboard_means, one_against_all_verdict, rank_methods
from multilab.arena.boards import ALPHA
from multilab.arena.content import elo_of
from multilab.arena.summary import first_of_sources, tuning_numbers
from multilab.arena.tracks import UNSEEN
from multilab.reports.arena.data import (
    ArenaColumn,
    ArenaData,
    percent,
    pool_title,
    shown_column,
)
from multilab.reports.arena.figures import CostPoint, cost_figure
from multilab.reports.tables.entry import p_text, thousands
from multilab.statistics import nemenyi_cd

_ELO = ["elo_low", "elo", "elo_high"]
_NUMBERS = (*_ELO, "rank", "win_rate", "improvability")
BUDGETS = {"1 second": 1.0, "1 minute": 60.0, "1 hour": 3600.0}
"""Seconds to fit 1,000 training rows, for which the page names the best method."""

_COSTS = {"fit_seconds": "seconds to fit 1,000 rows", "model_mb": "size of the model, MB"}


def board_panel(arena: ArenaData, pool: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return a leaderboard."""
    board, first = pool["boards"][group], leader(pool, group)
    table = pd.DataFrame({key: board.get(key) for key in _NUMBERS}, index=pool["columns"], dtype=float)
    table["unfinished"] = pool["unfinished"]
    table = table.sort_values(
        ["elo", "rank"] if rated(board) else "rank", ascending=[False, True] if rated(board) else True
    )
    low, high = table[_ELO].min().min(), table[_ELO].max().max()
    limit = table["rank"].min() + (-1.0 if board["cd"] is None else board["cd"])
    return {
        "track": pool["name"],
        "group": group,
        "title": _title(arena, pool, group),
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
        differ = "differ" if board["p"] < ALPHA else "are not shown to differ"
        text += f" Taken together, the methods {differ} (Iman–Davenport, {p_text(board['p'])})."
    return text


def cost_figures(arena: ArenaData) -> list[dict[str, str]]:
    """Return the figures of quality over all metrics against costs that were measured, stacks included if they ran."""
    pool = arena.pools.get("ensembled") or main_pool(arena)
    board = pool["boards"][next(iter(arena.groups))]
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
            caption = f"{text}: {len(points)} methods on {len(pool['sets'])} sets."
            figures.append(
                {"title": text, "svg": cost_figure(points, f"{unit} (logarithmic)", name, text), "caption": caption}
            )
    return figures


def tuning_panel(arena: ArenaData) -> dict[str, Any] | None:
    """Return the search of the track tuned and the gain of each method; ``None`` without the track."""
    numbers = tuning_numbers(arena.content, list(arena.groups))
    if numbers is None:
        return None
    rows = []
    for each in numbers["methods"]:
        overall, gain = each["groups"]["overall"], each["gain"]
        rows.append(
            {
                "title": arena.columns[each["name"]].title,
                "elo": [(_elo(each[key]), each[key].get("elo")) for key in ("default", "tuned")],
                "wins": "–" if overall["wins"] is None else f"{100 * overall['wins']:.0f}",
                "sets_won": overall["sets_won"],
                "sets": f"{overall['sets_won']} of {overall['sets']}",
                "verdict": f"{overall['verdict']} ({p_text(overall['p_holm'])})",
                "gain": None if gain is None or gain["median"] is None else f"{gain['median']:+.4f}",
            }
        )
    metric = (numbers["search"] or {}).get("metric")
    return {
        "sets": numbers["sets"],
        "search": numbers["search"] or {},
        "metric": arena.metrics[metric]["title"] if metric in arena.metrics else "",
        "test": numbers["methods"][0]["groups"]["overall"] if numbers["methods"] else None,
        "alpha": ALPHA,
        "rows": rows,
    }


def tested_panels(arena: ArenaData) -> list[dict[str, Any]]:
    """Return the verdicts on the tested method: on all sets and on the unseen ones, among each pool that has ensembles.

    Without ensembles, the verdict on the best method of the pool with the most tracks.
    """
    pools = [name for name, pool in arena.pools.items() if "ensembled" in pool["tracks"]] or list(arena.pools)[-1:]
    verdicts = [verdict for name in pools if (verdict := one_against_all_verdict(arena.content, name))]
    return [_verdict(arena, verdict) for verdict in verdicts]


def _verdict(arena: ArenaData, verdict: Mapping[str, Any]) -> dict[str, Any]:
    elo = verdict["elo"]
    return {
        "title": arena.title_on(verdict["column"], verdict["sets"]),
        "pool": pool_title(verdict["pool"]),
        "sets": len(verdict["sets"]),
        "metrics": len(verdict["metrics"]),
        "rope": f"{verdict['rope']:g}",
        "first": verdict["first"],
        "decided": verdict["decided"],
        "decided_single": verdict["decided_single"],
        "apart_from_stacks": any(each["any"] != each["single"] for each in verdict["metrics"]),
        "own": _elo(elo["own"]) if elo else "",
        "above": sum(each["above"] for each in elo["tuned"]) if elo else 0,
        "apart": sum(each["apart"] for each in elo["tuned"]) if elo else 0,
        "tuned": len(elo["tuned"]) if elo else 0,
    }


def _elo(entry: Mapping[str, Any]) -> str:
    if entry.get("elo") is None:
        return "–"
    interval = "" if entry.get("elo_low") is None else f" ({entry['elo_low']:.0f}–{entry['elo_high']:.0f})"
    return f"{entry['elo']:.0f}{interval}"


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


def absent_row(method: Mapping[str, Any]) -> dict[str, str]:
    """Return the row of a method without results, with the reason."""
    texts = {key: method.get(key) or "–" for key in ("name", "title", "family", "licence", "reason")}
    return texts | {"remarks": _remarks(method.get("requires") or (), method.get("reference") or "")}


def _remarks(requires: Sequence[str], reference: str) -> str:
    needs = f"Needs {', '.join(requires)}. " if requires else ""
    return f"{needs}{reference}".strip() or "–"


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
        "methods": len(means.methods),
        "unfinished": int(means.incomplete.sum()),
    }


def picker_data(arena: ArenaData) -> dict[str, Any]:
    """Return what the script of the page reads: the sets of the main pool, its methods, and their ranks on each set.

    ``ranks`` is indexed by set and method; they are the ranks over all metrics that the leaderboard averages.
    """
    pool = main_pool(arena)
    means = leaderboard_means(arena.content, pool["name"])
    board = rank_methods(means, next(iter(arena.groups)))
    sets, columns = list(board.datasets), list(pool["columns"])
    return {
        "sets": [
            {
                "name": name,
                **{key: arena.sets[name][fact] for key, fact in (("rows", "n"), ("features", "d"), ("labels", "q"))},
            }
            for name in sets
        ],
        "methods": [
            shown_column(arena, name)
            | {"chosen": [sets.index(each) for each in arena.columns[name].chosen_on if each in sets]}
            for name in columns
        ],
        "ranks": board.dataset_ranks.loc[sets, columns].to_numpy().tolist(),
        "late": means.on(sets).incomplete[:, [means.methods.index(name) for name in columns]].astype(int).tolist(),
        "critical": nemenyi_cd(len(columns), 1, ALPHA) if len(columns) > 1 else 0,  # of one set
    }


def finding(arena: ArenaData) -> dict[str, Any]:
    """Return who leads by which metrics, how far the tested one is first, what a time to fit buys, what is unfinished.

    Leaders are those of the pool with the most sets; where results on some of its sets decided rules of a leader, also
    those on the unseen sets.
    """
    pool = main_pool(arena)
    leaders = {leader(pool, group) for group in arena.groups if group in pool["boards"]}
    marked = any(set(arena.columns[column].chosen_on) & set(pool["sets"]) for column in leaders)
    unseen = arena.pools.get(f"{pool['name']}{UNSEEN}") if marked else None
    return {
        "leaders": [_leaders(arena, each) for each in (pool, unseen) if each],
        "optimistic": marked and unseen is None,
        "sources": _by_source(arena, pool),
        "tested": _tested_counts(arena),
        "budgets": _budgets(arena),
        "unfinished": _unfinished_shares(arena),
    }


def main_pool(arena: ArenaData) -> Mapping[str, Any]:
    """Return the pool with the most sets, of equal ones that with the most columns."""
    return max(arena.content["pools"], key=lambda pool: (len(pool["sets"]), len(pool["columns"])))


def leader(pool: Mapping[str, Any], group: str) -> str:
    """Return the first column of a board: the highest Elo, without ratings the best mean rank."""
    board = pool["boards"][group]
    if rated(board):
        return max(zip(board["elo"], pool["columns"], strict=True), key=lambda pair: pair[0])[1]
    return min(zip(board["rank"], pool["columns"], strict=True), key=lambda pair: pair[0])[1]


def rated(board: Mapping[str, Any]) -> bool:
    """Return whether a board has Elo ratings."""
    return any(value is not None for value in board.get("elo", ()))


def _leaders(arena: ArenaData, pool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first method of each group of metrics, and how many Nemenyi's test."""
    rows = []
    for name in arena.groups:
        if board := pool["boards"].get(name):
            first = leader(pool, name)
            at = pool["columns"].index(first)
            limit = None if board["cd"] is None else min(board["rank"]) + board["cd"]
            entry = elo_of(pool, name, first) if rated(board) else {}
            rows.append(
                {
                    "group": arena.groups[name]["title"],
                    "method": arena.title_on(first, pool["sets"]),
                    "elo": _elo(entry),
                    "rank": f"{board['rank'][at]:.2f}",
                    "level": None if limit is None else sum(rank <= limit for rank in board["rank"]),
                }
            )
    return {
        "sets": len(pool["sets"]),
        "unseen": pool["name"].endswith(UNSEEN),
        "columns": len(pool["columns"]),
        "rows": rows,
    }


def _by_source(arena: ArenaData, pool: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return who has the best mean rank where the sets of one source count as one, if there are such sets."""
    overall = next(iter(arena.groups))
    ranks = rank_methods(leaderboard_means(arena.content, pool["name"]), overall).dataset_ranks
    entry = first_of_sources({overall: ranks}, arena.content["sets"]).get(overall)
    return entry and {"sources": entry["sets"], "method": arena.columns[entry["first"]].title, "rank": entry["rank"]}


def _tested_counts(arena: ArenaData) -> list[dict[str, Any]]:
    """Return in how many metrics the tested method of the ensembles is first, on all sets and on the unseen ones."""
    names = ("ensembled", f"ensembled{UNSEEN}") if "ensembled" in arena.tracks else ()
    return [
        {
            "title": arena.columns[verdict["column"]].title,
            "sets": len(verdict["sets"]),
            "unseen": name.endswith(UNSEEN),
            "metrics": len(verdict["metrics"]),
            "first": verdict["first"],
        }
        for name in names
        if (verdict := one_against_all_verdict(arena.content, name))
    ]


def _budgets(arena: ArenaData) -> dict[str, Any] | None:
    """Return the best method by Elo that is fitted within each of some times, stacks included where they ran."""
    pool = arena.pools.get("ensembled") or main_pool(arena)
    board, rows = pool["boards"][next(iter(arena.groups))], []
    seconds = {name: arena.columns[name].fit_seconds for name in pool["columns"]}
    if not rated(board):
        return None
    elo = dict(zip(pool["columns"], board["elo"], strict=True))
    for limit, longest in BUDGETS.items():
        within = [name for name, took in seconds.items() if took is not None and took <= longest]
        if within:
            best = shown_column(arena, max(within, key=lambda name: elo[name]), pool["sets"])
            rows.append({**best, "limit": limit, "elo": f"{max(elo[name] for name in within):.0f}"})
    return {"sets": len(pool["sets"]), "rows": rows} if rows else None


def _unfinished_shares(arena: ArenaData) -> dict[str, Any]:
    """Return the share of cells without a result, and the methods with the largest shares."""
    cells = {column: sum(track["splits"].values()) for track in arena.tracks.values() for column in track["columns"]}
    missing = dict.fromkeys(cells, 0)
    for track in arena.tracks.values():
        for each in track["unfinished"]:
            missing[each["column"]] += each["splits"]
    shares = {name: missing[name] / cells[name] for name in cells if missing[name]}
    most = sorted(shares, key=lambda name: (-shares[name], name))
    return {
        "share": f"{100 * sum(missing.values()) / sum(cells.values()):.1f}",
        "methods": len(most),
        "of": len(cells),
        "most": [(arena.columns[name].title, f"{100 * shares[name]:.0f}") for name in most[:3]],
    }
