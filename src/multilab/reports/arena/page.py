"""Page of the arena, one self-contained file, and the Markdown page of its summary."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multilab.arena.tracks import UNSEEN
from multilab.reports.arena.data import LEADERBOARD, RESULTS, ArenaData, limits_text, load_arena, pool_title
from multilab.reports.arena.panels import (
    absent_row,
    board_panel,
    cost_figures,
    finding,
    main_pool,
    method_row,
    picker_data,
    set_row,
    tested_panels,
    tuning_panel,
)
from multilab.reports.page import template, write_page
from multilab.reports.tables.entry import thousands
from multilab.statistics.result_files import SCORES

_FILES = (RESULTS, LEADERBOARD, SCORES, "measured.csv", "unfinished.csv")


def build_arena_page(folder: Path | str) -> Path:
    """Write the page of the arena and return its path.

    Parameters
    ----------
    folder : path
        ``reports/arena`` with ``leaderboard.json.gz``; ``study.json`` has the limits of a cell, if it is there.

    Returns
    -------
    Path
        A page that loads nothing; the same files give the same bytes.

    Raises
    ------
    ReportError
        If ``leaderboard.json.gz`` is missing or of another schema, or the extra ``lab`` is not installed.
    """
    arena = load_arena(folder)
    script = (Path(__file__).parent / "arena.js").read_text(encoding="utf-8")
    return write_page(arena.folder / "index.html", "arena.html.j2", _index(arena), _common(script))


def _common(script: str) -> dict[str, Any]:
    """Return the script with its digest for the policy of the page."""
    text = f"\n{script}"
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return {"script": text, "script_hash": f"sha256-{digest}"}


def _index(arena: ArenaData) -> dict[str, Any]:
    pools, groups = arena.pools, arena.groups
    boards = [board_panel(arena, pool, group) for pool in pools.values() for group in groups if group in pool["boards"]]
    data = json.dumps(picker_data(arena), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return {
        "finding": finding(arena),
        "facts": _facts(arena),
        "origin": _origin(arena),
        "scale": _scale(arena),
        "alike": [each["title"] for each in arena.metrics.values() if each["ordered_like"]],
        "group_metrics": [
            (group["title"], [arena.metrics[name]["title"] for name in group["metrics"]])
            for group in list(groups.values())[1:]
        ],
        "limits": limits_text(arena),
        "files": [name for name in _FILES if (arena.folder / name).is_file()],
        "main": main_pool(arena)["name"],
        "tracks": [(name, pool_title(name)) for name in pools],
        "groups": [(name, group["title"]) for name, group in groups.items()],
        "boards": boards,
        "top": next(board for board in boards if board["track"] == main_pool(arena)["name"]),
        "all_tested": tested_panels(arena),
        "ensembled": "ensembled" in arena.tracks,
        "unseen": any(name.endswith(UNSEEN) for name in pools),
        "chosen_notes": arena.chosen_notes(),
        "tuning": tuning_panel(arena),
        "figures": cost_figures(arena),
        "measured": arena.content["costs"],
        "set_rows": [set_row(arena, name) for name in arena.sets],
        "method_rows": [method_row(arena, column) for column in arena.columns.values()],
        "absent_rows": [absent_row(each) for each in arena.content.get("absent", ())],
        "commands": _commands(arena),
        "data": data,
    }


def _facts(arena: ArenaData) -> list[tuple[str, str]]:
    cells = sum(sum(track["splits"].values()) * len(track["columns"]) for track in arena.tracks.values())
    missing = sum(each["splits"] for track in arena.tracks.values() for each in track["unfinished"])
    values = [
        ("data sets", len(arena.sets)),
        ("methods, by track", len(arena.columns)),
        ("metrics", len(arena.metrics)),
        ("cells (set, split, method)", cells),
        ("scores (cell, metric)", (cells - missing) * len(arena.metrics)),
    ]
    facts = [(name, thousands(value)) for name, value in values]
    return [*facts, ("cells unfinished", f"{100 * missing / cells:.1f} %" if cells else "–")]


def _origin(arena: ArenaData) -> str:
    study = arena.content["studies"][0] if arena.content["studies"] else {}
    parts = [f"Suite of {arena.content['created'] or 'unknown date'}"]
    parts += [f"{study[key]}" for key in ("machine",) if study.get(key)]
    parts += [f"Python {study['python']}"] if study.get("python") else []
    parts += [f"commit {study['commit']}"] if study.get("commit") else []
    return "; ".join(parts) + "."


def _scale(arena: ArenaData) -> str:
    anchor = main_pool(arena).get("anchor")
    return f"{arena.columns[anchor].title} has 1000" if anchor else "the median of all methods is 1000"


def _commands(arena: ArenaData) -> list[str]:
    studies = list(dict.fromkeys(arena.studies.values()))
    return [*(f"multilab study run --study {study}" for study in studies), "multilab arena rank", "multilab arena page"]


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
