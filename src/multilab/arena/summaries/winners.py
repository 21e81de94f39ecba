"""Winners by kind of sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.arena.boards import critical_difference, rank_methods
from multilab.arena.selection import sources_of
from multilab.arena.summaries import markdown as md
from multilab.arena.summaries.comparisons import (
    elo_of,
    rounded_or_none,
)
from multilab.arena.tracks import Means

FEW_LABELS = 14

SMALL = 1000

SUBSETS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "all": ("all sets", lambda facts: True),
    "text": ("text", lambda facts: bool(facts["text"])),
    "not_text": ("not text", lambda facts: not facts["text"]),
    "few_labels": (f"at most {FEW_LABELS} labels", lambda facts: facts["q"] <= FEW_LABELS),
    "many_labels": (f"more than {FEW_LABELS} labels", lambda facts: facts["q"] > FEW_LABELS),
    "small": (f"at most {SMALL:,} rows", lambda facts: facts["n"] <= SMALL),
    "larger": (f"more than {SMALL:,} rows", lambda facts: facts["n"] > SMALL),
}
"""Kinds of sets: title and condition."""


def winner_numbers(means: Means, facts: Sequence[Mapping[str, Any]], groups: Sequence[str]) -> list[dict[str, Any]]:
    """Return by kind of sets the first of each group of metrics, and what is not separated from it."""
    facts = [each for each in facts if each["name"] in means.datasets]
    winners = []
    for kind, (title, holds) in SUBSETS.items():
        chosen = [each["name"] for each in facts if holds(each)]
        if not chosen:
            continue
        ranks = {name: rank_methods(means.on(chosen), name).dataset_ranks for name in groups}
        firsts = {name: _first(table) for name, table in ranks.items()}
        winners.append({"kind": kind, "title": title, "sets": chosen, "groups": firsts})
        if kind == "all" and (of_sources := first_of_sources(ranks, facts)):
            title = "all sets, those of one source as one"
            winners.append({"kind": "sources", "title": title, "sets": chosen, "groups": of_sources})
    return winners


def first_of_sources(
    ranks: Mapping[str, pd.DataFrame], facts: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the first by each group of metrics with the mean rank on the sets of a source as one value.

    Parameters
    ----------
    ranks : mapping of str to DataFrame
        :attr:`Board.dataset_ranks` by group.
    facts : sequence of mapping
        ``name`` and ``source`` of the datasets.

    Returns
    -------
    dict
        Empty where no two datasets have a common source.
    """
    averaged = {name: table.groupby(sources_of(facts), sort=False).mean() for name, table in ranks.items()}
    related = any(len(averaged[name]) < len(table) for name, table in ranks.items())
    return {name: _first(table) for name, table in averaged.items()} if related else {}


def _first(ranks: pd.DataFrame) -> dict[str, Any]:
    """Return the best method of a table of ranks and those that the critical difference does not separate from it."""
    n_sets, n_methods = ranks.shape
    means = pd.Series(ranks.to_numpy().mean(axis=0), index=ranks.columns).sort_values(kind="stable")
    cd = critical_difference(n_methods, n_sets) if n_methods > 1 and n_sets > 1 else None
    near = None if cd is None else [str(name) for name in means.index[1:] if means[name] - means.iloc[0] < cd]
    return {
        "first": str(means.index[0]),
        "equal": [str(name) for name in means.index[1:] if means[name] == means.iloc[0]],
        "rank": rounded_or_none(means.iloc[0], 2),
        "second": rounded_or_none(means.iloc[1], 2) if n_methods > 1 else None,
        "sets": n_sets,
        "cd": rounded_or_none(cd, 2),
        "not_separated": near,
    }


def first_by_elo(pool: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the first column of a board by Elo, and those whose intervals overlap with its own."""
    board = pool["boards"][name]
    first = int(np.argmax(board["elo"]))
    low = board["elo_low"][first]
    return {
        **elo_of(pool, board, pool["columns"][first]),
        "column": pool["columns"][first],
        "sets": board["sets"],
        "overlapping": None
        if low is None
        else [
            column
            for at, column in enumerate(pool["columns"])
            if at != first and board["elo_high"][at] is not None and board["elo_high"][at] >= low
        ],
    }


def winner_section(summary: Mapping[str, Any]) -> list[str]:
    """Return the section on winners, in Markdown."""
    everything = next(each for each in summary["winners"] if each["kind"] == "all")
    sentences = [
        f"- {summary['groups'][name]}: {_first_sentence(entry, len(summary['columns']))}"
        + _elo_sentence(summary["elo"].get(name))
        for name, entry in everything["groups"].items()
    ]
    rows = [
        [each["title"], _number(each), *(_winner_cell(entry) for entry in each["groups"].values())]
        for each in summary["winners"]
    ]
    return [
        "## What wins where",
        "\n".join(sentences),
        "The method with the smallest average rank by kind of sets, with the rank; after it the number of other "
        "methods whose average rank does not differ by Nemenyi's critical difference. A kind with a single set has no "
        "test." + _on_sources(summary),
        md.table(["Sets", "Number", *(md.group(summary, name) for name in everything["groups"])], rows),
    ]


def _number(each: Mapping[str, Any]) -> str:
    """Return the number of sets, or of sources, that the ranks of a kind average."""
    return str(max(entry["sets"] for entry in each["groups"].values()))


def _on_sources(summary: Mapping[str, Any]) -> str:
    entry = next((each for each in summary["winners"] if each["kind"] == "sources"), None)
    if entry is None:
        return ""
    return (
        f" The {len(entry['sets'])} sets are of {_number(entry)} sources (`related` in `conf/arena.yaml`): one row "
        "counts the mean rank on the sets of a source as one."
    )


def _first_sentence(entry: Mapping[str, Any], columns: int) -> str:
    tied = entry["equal"]
    names = md.code_names([entry["first"], *tied])
    text = f"{names} {'has' if not tied else 'have'} the smallest average rank ({entry['rank']:.2f} of {columns})"
    text += f" on {md.count(entry['sets'], 'set')}"
    if entry["not_separated"] is None:
        return f"{text}; one set allows no test."
    near = len(entry["not_separated"])
    if not near:
        return f"{text}, and all others differ from it by more than the critical difference of {entry['cd']:.2f}."
    others = "any other method" if near == columns - 1 else md.count(near, "other method")
    return f"{text}; no difference was detected between it and {others} (critical difference {entry['cd']:.2f})."


def _elo_sentence(entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return ""
    text = f" By Elo `{entry['column']}` is first{md.elo_text(entry)}"
    if entry["overlapping"] is None:
        return f"{text}."
    others = entry["overlapping"]
    if not others:
        return f"{text}; no other interval overlaps with its own."
    return f"{text}; the intervals of {md.count(len(others), 'other method')} overlap with its own."


def _winner_cell(entry: Mapping[str, Any]) -> str:
    near = "" if entry["not_separated"] is None else f", {len(entry['not_separated'])}"
    return f"{md.code_names([entry['first'], *entry['equal']])} {entry['rank']:.2f}{near}"
