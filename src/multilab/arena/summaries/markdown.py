"""Markdown of the summary's page: tables, lists of names, numbers with their units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from multilab.arena.metric_groups import GROUP_TITLES
from multilab.core.text import LISTED, listed
from multilab.metrics import METRICS


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def group(summary: Mapping[str, Any], name: str) -> str:
    """Return the display name of a group of metrics."""
    return str(summary["groups"].get(name, GROUP_TITLES.get(name, name)))


def metric_name(name: str) -> str:
    """Return the display name of a metric."""
    return METRICS[name].title


def code_names(items: Sequence[str]) -> str:
    """Return names of methods as code, of many the first ones and the number of the others."""
    return listed((f"`{name}`" for name in items), LISTED)


def all_of(number: int, noun: str) -> str:
    """Return ``all 3 sets``, of a single one ``the set``."""
    return f"the {noun}" if number == 1 else f"all {number} {noun}s"


def count(number: int, noun: str) -> str:
    """Return ``3 sets``, ``1 set``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def per_cent(share: float, unit: str = " %") -> str:
    """Return a share in per cent."""
    return f"{100 * share:.0f}{unit}"


def bold(row: Mapping[str, Any], text: str) -> str:
    """Return a text, in bold where a test detected a difference."""
    return f"**{text}**" if row["verdict"] != "no difference" else text


def signed(value: float | None) -> str:
    """Return a difference with its sign."""
    return "-" if value is None else f"{value:+.4f}"


def times(factor: float) -> str:
    """Return a factor."""
    return f"{factor:.1f} times" if factor < 10 else f"{factor:.0f} times"


def escaped(text: str) -> str:
    """Return a text that fits into a table."""
    return " ".join(text.split()).replace("|", "\\|")


def elo_text(entry: Mapping[str, Any]) -> str:
    """Return an Elo with its interval in parentheses, nothing where there is none."""
    return f" ({elo_cell(entry)})" if entry.get("elo") is not None else ""


def elo_cell(entry: Mapping[str, Any]) -> str:
    """Return an Elo with its interval, a dash where there is none."""
    if entry.get("elo") is None:
        return "-"
    if entry.get("elo_low") is None:
        return f"{entry['elo']:.0f}"
    return f"{entry['elo']:.0f}, {entry['elo_low']:.0f} to {entry['elo_high']:.0f}"
