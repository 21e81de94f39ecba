"""The page ``docs/arena-results.md``: sentences and tables that hold for any content of the summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from multilab.arena.summaries import markdown as md
from multilab.arena.summaries.cheap import cheap_section
from multilab.arena.summaries.costs import cost_section
from multilab.arena.summaries.effort import effort_section
from multilab.arena.summaries.metrics import agreement_section, dummy_section
from multilab.arena.summaries.proposals import proposal_section
from multilab.arena.summaries.stacking import stacking_section
from multilab.arena.summaries.tuning import tuning_section
from multilab.arena.summaries.winners import winner_section

COMMAND = "multilab arena summary"


def summary_page(summary: Mapping[str, Any] | None) -> str:
    """Return the page of a summary, in Markdown.

    Parameters
    ----------
    summary : mapping or None
        From :func:`arena_summary`; ``None`` where there are no results.

    Examples
    --------
    >>> from multilab.arena import summary_page
    >>> print(summary_page(None).splitlines()[-1])
    No results of the arena are committed.
    """
    head = [f"<!-- Written by `{COMMAND}`; do not edit. -->", "", "# Results of the arena", ""]
    if summary is None:
        return "\n".join([*head, "No results of the arena are committed.", ""])
    parts = [
        _opening(summary),
        winner_section(summary),
        proposal_section(summary),
        tuning_section(summary),
        stacking_section(summary),
        cost_section(summary),
        cheap_section(summary),
        _unfinished(summary),
        effort_section(summary),
        agreement_section(summary),
        dummy_section(summary),
    ]
    return "\n".join(head) + "\n" + "\n\n".join("\n\n".join(part) for part in parts if part) + "\n"


def _opening(summary: Mapping[str, Any]) -> list[str]:
    metrics = len(summary["metrics"]["rows"])
    return [
        f"Results of {summary['created'] or 'an unknown date'}: {md.count(len(summary['sets']), 'set')}, "
        f"{md.count(len(summary['columns']), 'method')}, {md.count(metrics, 'metric')}. "
        f"`{COMMAND}` writes this page and `reports/arena/summary.json` from the files in `reports/arena/`. "
        "[The arena](arena.md) explains the rules and the terms.",
        f"Sets: {', '.join(summary['sets'])}.",
        f"Level of all tests: {summary['alpha']:g}. *No difference was detected* does not mean that there is none: "
        f"with few sets the tests detect large differences only.{_scale(summary)}",
    ]


def _scale(summary: Mapping[str, Any]) -> str:
    """Return which method has Elo 1000."""
    if not summary["elo"]:
        return ""
    anchor = summary["anchor"]
    return " Elo 1000 is the median of all methods." if anchor is None else f" Elo 1000 is that of `{anchor}`."


def _unfinished(summary: Mapping[str, Any]) -> list[str]:
    entry, title = summary["unfinished"], "## What did not finish"
    columns, sets = len(summary["columns"]), len(summary["sets"])
    methods = entry["methods"]
    if not methods:
        return [title, f"All {columns} methods finished on {md.all_of(sets, 'set')} ({entry['cells']} cells)."]
    rows = [
        [
            f"`{each['name']}`",
            f"{len(each['sets'])} of {sets}",
            ", ".join(each["sets"]),
            "; ".join(md.escaped(reason) for reason in each["reasons"]),
        ]
        for each in methods
    ]
    return [
        title,
        f"{columns - len(methods)} of {columns} methods finished on {md.all_of(sets, 'set')}. Without a result: "
        f"{entry['unfinished_cells']} of {md.count(entry['cells'], 'cell')}; these methods are ranked last there. "
        "The first split of a set decides: where a method passes a limit, the other splits are not run.",
        md.table(["Method", "Sets", "Which", "Why"], rows),
    ]
