"""Finding of the arena in three sentences, and of one set in one, written from their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from multilab.arena import champion_verdict, leaderboard_means, rank_methods
from multilab.arena.pools import UNSEEN
from multilab.arena.summary import first_of_sources
from multilab.core.text import listed
from multilab.reports.arena.data import ArenaColumn, ArenaData
from multilab.reports.tables.entry import number

__all__ = ["arena_finding", "leader", "set_finding"]

CHEAP = 1.0
"""Seconds per 1,000 training rows up to which the finding calls a method cheap."""


def arena_finding(arena: ArenaData) -> list[str]:
    """Return who leads by which metrics, how far the champion is first, what cheap methods reach, what is unfinished.

    The first two of the pool with the most sets, of equal ones that with the most columns.
    """
    pool = main_pool(arena)
    sentences = (_leaders(arena, pool), champion_finding(arena), _cheap(arena, pool), _unfinished(arena))
    return [sentence for sentence in sentences if sentence]


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


def _standing(pool: Mapping[str, Any], group: str, column: str, kind: str = "95 % interval ") -> str:
    board, at = pool["boards"][group], pool["columns"].index(column)
    if not rated(board):
        return f"mean rank {board['rank'][at]:.2f}"
    low, high = board["elo_low"][at], board["elo_high"][at]
    interval = "" if low is None else f", {kind}{low:.0f} to {high:.0f}"
    return f"Elo {board['elo'][at]:.0f}{interval}"


def _leaders(arena: ArenaData, pool: Mapping[str, Any]) -> str:
    """Return who leads a pool; if results on some of its sets decided rules of a leader, also without these sets."""
    text = _leading(arena, pool, f"{len(pool['sets'])} set{'s' * (len(pool['sets']) != 1)}") + _by_source(arena, pool)
    leaders = {leader(pool, group) for group in arena.groups if group in pool["boards"]}
    if not any(set(arena.columns[column].chosen_on) & set(pool["sets"]) for column in leaders):
        return text
    unseen = arena.pools.get(f"{pool['name']}{UNSEEN}")
    if unseen is None:
        return f"{text} Results on all of these sets decided rules of the champion, so that its rank is optimistic."
    count = f"{len(unseen['sets'])} unseen set{'s' * (len(unseen['sets']) != 1)}"
    return f"{text} {_leading(arena, unseen, f'the {count}, whose results decided no rule of the champion,')}"


def _by_source(arena: ArenaData, pool: Mapping[str, Any]) -> str:
    """Return who has the best mean rank where the sets of one source count as one, if there are such sets."""
    overall = next(iter(arena.groups))
    ranks = rank_methods(leaderboard_means(arena.content, pool["name"]), overall).dataset_ranks
    entry = first_of_sources({overall: ranks}, arena.content["sets"]).get(overall)
    if entry is None:
        return ""
    title = arena.columns[entry["first"]].title
    return (
        f" The sets are of {entry['sets']} sources; with the sets of one source as one, {title} has the best mean rank "
        f"({entry['rank']:.2f})."
    )


def _leading(arena: ArenaData, pool: Mapping[str, Any], sets: str) -> str:
    overall, *others = [name for name in arena.groups if name in pool["boards"]]
    first = leader(pool, overall)
    parts = []
    for group in others:
        column, title = leader(pool, group), arena.groups[group]["title"]
        parts.append(
            f"{title[0].lower()}{title[1:]}: {arena.columns[column].title} ({_standing(pool, group, column, '')})"
        )
    text = f"{arena.columns[first].title} leads {len(pool['columns'])} methods on {sets} by all metrics together"
    text = f"{text} ({_standing(pool, overall, first)}{_not_told_apart(pool, overall, first)})"
    return f"{text}; first by group of metrics: {', '.join(parts)}." if parts else f"{text}."


def champion_finding(arena: ArenaData) -> str:
    """Return in how many metrics the champion of the ensembles is first, on all sets and on the unseen ones."""
    counts = []
    for name, kind in (("ensembled", "all sets"), (f"ensembled{UNSEEN}", "unseen sets")):
        verdict = champion_verdict(arena.content, name) if "ensembled" in arena.tracks else None
        if verdict is None:
            continue
        n, sets = len(verdict["metrics"]), len(verdict["sets"])
        scope = f"the {sets} {kind}" if kind == "unseen sets" else f"{kind} ({sets})"
        counts.append(
            f"on {scope} first by mean rank in {verdict['first']} of {n} metrics, by the Bayesian test better than the "
            f"best other method in {verdict['decided']} of {n}{_against_single(verdict)}"
        )
        title = arena.columns[verdict["column"]].title
    return f"{title}: {'; '.join(counts)}." if counts else ""


def _against_single(verdict: Mapping[str, Any]) -> str:
    """Return in how many metrics it is better than the best that is no stack, unless it is the only stack."""
    if all(each["any"] == each["single"] for each in verdict["metrics"]):
        return ""
    return f" (than the best that is no stack in {verdict['decided_single']})"


def _not_told_apart(pool: Mapping[str, Any], group: str, column: str) -> str:
    """Return how many columns are within the critical difference of one."""
    board = pool["boards"][group]
    if board.get("cd") is None:
        return ""
    own = board["rank"][pool["columns"].index(column)]
    near = sum(abs(rank - own) <= board["cd"] for rank in board["rank"]) - 1
    return f"; {near} methods are within the critical difference of its mean rank" if near else ""


def _cheap(arena: ArenaData, pool: Mapping[str, Any]) -> str:
    """Return the best method among those that are fitted in a second per 1,000 rows."""
    overall = next(iter(arena.groups))
    board = pool["boards"][overall]
    first = arena.columns[leader(pool, overall)]
    cheap = [name for name in pool["columns"] if _seconds(arena.columns[name]) <= CHEAP]
    if not cheap:
        return ""
    key = "elo" if rated(board) else "rank"
    values = dict(zip(pool["columns"], board[key], strict=True))
    best = max(cheap, key=lambda name: values[name]) if key == "elo" else min(cheap, key=lambda name: values[name])
    costs = f"{number(_seconds(arena.columns[best]), 2)} s"
    what = f"Of the {len(cheap)} methods that are fitted in at most {CHEAP:g} s per 1,000 rows"
    if best == first.name:
        return f"{what}, the best is the same: it takes {costs}."
    gap = abs(values[best] - values[first.name])
    unit = "Elo" if key == "elo" else "ranks"
    behind = f"{number(gap, 2) if key == 'rank' else f'{gap:.0f}'} {unit} behind the first"
    more = _seconds(first)
    much = f", which takes {number(more, 2)} s" if np.isfinite(more) else ""
    return f"{what}, {arena.columns[best].title} is the best: {costs}, {behind}{much}."


def _seconds(column: ArenaColumn) -> float:
    return np.inf if column.fit_seconds is None else column.fit_seconds


def _unfinished(arena: ArenaData) -> str:
    cells = {column: sum(track["splits"].values()) for track in arena.tracks.values() for column in track["columns"]}
    missing = dict.fromkeys(cells, 0)
    for track in arena.tracks.values():
        for each in track["unfinished"]:
            missing[each["column"]] += each["splits"]
    share = sum(missing.values()) / sum(cells.values())
    if not share:
        return "Every method finished all its cells (a cell is one method on one split of one set)."
    shares = {name: missing[name] / cells[name] for name in cells}
    most = sorted((name for name in shares if shares[name]), key=lambda name: (-shares[name], name))
    named = [f"{arena.columns[name].title} ({100 * shares[name]:.0f} %)" for name in most[:3]]
    which = f"{len(most)} of {len(shares)} methods {'has' if len(most) == 1 else 'have'} any"
    first = f"{100 * share:.1f} % of the cells (one method on one split of one set) are unfinished"
    joint = ", most of all " if len(most) > 3 else ": "
    return f"{first}, which ranks a method last on that set: {which}{joint}{listed(named)}."


def set_finding(arena: ArenaData, dataset: str) -> str:
    """Return the first three methods of a set by the mean of their ranks over all metrics."""
    overall = next(iter(arena.groups))
    table = rank_methods(arena.set_means(dataset), overall).table
    names = [arena.title_on(name, [dataset]) for name in table.index[:3]]
    late = [name for name in table.index if table.loc[name, "unfinished"]]
    verb = "is" if len(names) == 1 else "are"
    text = f"By the mean of the ranks over all metrics the first of {len(table)} methods {verb} "
    tail = f"; {len(late)} did not finish." if late else "; all finished."
    return f"{text}{listed(names)}{tail}"
