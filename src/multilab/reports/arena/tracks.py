"""Sections on the tracks tuned and ensembled: what tuning gains, and how far the champion is first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from multilab.arena import champion_verdict
from multilab.arena.boards import ALPHA
from multilab.arena.pools import UNSEEN
from multilab.arena.summary import tuning_numbers
from multilab.reports.arena.data import ArenaData
from multilab.reports.arena.texts import pool_title
from multilab.reports.tables.entry import p_text


def tuning_panel(arena: ArenaData) -> dict[str, Any] | None:
    """Return the search of the track tuned and the gain of each entrant; ``None`` without the track."""
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
                "wins": f"{100 * overall['wins']:.0f}",
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


def champion_panels(arena: ArenaData) -> list[dict[str, Any]]:
    """Return the verdicts on the champion: on all sets and on the unseen ones, among each pool that has ensembles.

    Without ensembles, the verdict on the best method of the pool with the most tracks.
    """
    pools = [name for name, pool in arena.pools.items() if "ensembled" in pool["tracks"]] or list(arena.pools)[-1:]
    verdicts = [verdict for name in pools if (verdict := champion_verdict(arena.content, name))]
    return [_verdict(arena, verdict) for verdict in verdicts]


def _verdict(arena: ArenaData, verdict: Mapping[str, Any]) -> dict[str, Any]:
    pool, elo = arena.pools[verdict["pool"]], verdict["elo"]
    tests = pool["champion"]["tests"]
    return {
        "title": arena.title_on(verdict["column"], verdict["sets"]),
        "pool": pool_title(verdict["pool"]),
        "sets": len(verdict["sets"]),
        "unseen": verdict["pool"].endswith(UNSEEN),
        "rope": f"{verdict['rope']:g}",
        "first": verdict["first"],
        "decided": verdict["decided"],
        "decided_single": verdict["decided_single"],
        "apart_from_stacks": any(each["any"] != each["single"] for each in verdict["metrics"]),
        "others": len(pool["columns"]) - 1,
        "rows": [
            {
                "metric": arena.metrics[each["name"]]["title"],
                "rank": f"{each['rank']:.2f}",
                "first": each["first"],
                "against": [_against(arena, each[kind], verdict["sets"]) for kind in ("any", "single")],
                "better": tests[each["name"]]["surely_better"],
                "not_worse": tests[each["name"]]["surely_not_worse"],
            }
            for each in verdict["metrics"]
        ],
        "own": _elo(elo["own"]) if elo else "",
        "above": sum(each["above"] for each in elo["tuned"]) if elo else 0,
        "apart": sum(each["apart"] for each in elo["tuned"]) if elo else 0,
        "tuned": [
            {"title": arena.columns[each["column"]].title, "elo": _elo(each)}
            | {key: each[key] for key in ("above", "apart")}
            for each in (elo["tuned"] if elo else ())
        ],
    }


def _against(arena: ArenaData, test: Mapping[str, Any] | None, sets: list[str]) -> dict[str, Any] | None:
    """Return the comparison with one column: its name, how many ranks the champion is behind, the probabilities."""
    if test is None:
        return None
    probabilities = ["–" if test[key] is None else f"{test[key]:.2f}" for key in ("better", "equal", "worse")]
    return {
        "title": arena.title_on(test["against"], sets),
        "rank": f"{test['rank']:.2f}",
        "behind": f"{test['behind']:+.2f}",
        "probabilities": probabilities,
        "decided": test["decided"],
    }


def _elo(entry: Mapping[str, Any]) -> str:
    if entry.get("elo") is None:
        return "–"
    interval = "" if entry.get("elo_low") is None else f" ({entry['elo_low']:.0f}–{entry['elo_high']:.0f})"
    return f"{entry['elo']:.0f}{interval}"
