"""The page ``docs/arena-results.md``: the summary of the arena's leaderboard in Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from multilab.reports.page import template

__all__ = ["summary_page"]


def summary_page(summary: Mapping[str, Any]) -> str:
    """Return the page of a summary, in Markdown.

    Parameters
    ----------
    summary : mapping
        From :func:`multilab.arena.arena_summary`.

    Raises
    ------
    ReportError
        If the extra ``lab`` is not installed.
    """
    cheap = [_cheap(metric, rows) for metric, rows in (summary["cheap"] or {"metrics": {}})["metrics"].items() if rows]
    text = template("arena_results.md.j2").render(summary=summary, cheap=cheap)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _cheap(metric: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return by one metric how much longer the best method takes than the cheapest that suffices (median)."""
    factors = [row["best_seconds"] / row["seconds"] for row in rows if row["seconds"] > 0]
    counts = Counter(row["cheapest"] for row in rows)
    return {
        "metric": metric,
        "sets": len(rows),
        "factor": float(np.median(factors)) if factors else None,
        "same": sum(row["cheapest"] == row["best"] for row in rows),
        "often": [name for name, count in counts.items() if count == max(counts.values())],
    }
