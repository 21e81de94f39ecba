"""Pages of the arena: ``index.html`` over all sets, and ``sets/<set>.html``, each one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from multilab.arena.pools import UNSEEN
from multilab.core import write_atomically
from multilab.reports.arena.boards import board_panel, cost_panel
from multilab.reports.arena.data import LEADERBOARD, ArenaData, load_arena
from multilab.reports.arena.finding import arena_finding, main_pool
from multilab.reports.arena.methods import absent_row, method_row
from multilab.reports.arena.picker import counted_metrics, picker_data
from multilab.reports.arena.sets import set_page, set_row
from multilab.reports.arena.texts import limits_text, pool_title, thousands
from multilab.reports.arena.tracks import champion_panels, tuning_panel
from multilab.reports.page import template

__all__ = ["build_arena_pages"]

_SECONDS = (0.01, 0.1, 1, 10, 100)
_FILES = (LEADERBOARD, "scores.csv", "measured.csv", "unfinished.csv")
_SET_COUNTS = (1, 3, 5, 8, 12)
_DEFAULT_SETS = 5


def build_arena_pages(folder: Path | str, step: Callable[[str], None] = lambda name: None) -> list[Path]:
    """Write the pages of the arena and return their paths, ``index.html`` first.

    Parameters
    ----------
    folder : path
        ``reports/arena`` with ``leaderboard.json``. Spreads and seconds of a set are read from ``scores.csv`` and
        ``measured.csv`` of the studies, and the limits of a cell from ``study.json``, where these are there.
    step : callable, optional
        Called with the name of each page before it is written.

    Returns
    -------
    list of Path
        Pages that load nothing; the same files give the same bytes. Pages of sets that are no longer in the file are
        removed.

    Raises
    ------
    ReportError
        If ``leaderboard.json`` is missing or of another schema, or the extra ``lab`` is not installed.
    """
    arena = load_arena(folder)
    script = (Path(__file__).parent / "arena.js").read_text(encoding="utf-8")
    common = _common(arena, script)
    target = arena.folder / "index.html"
    step("index")
    write_atomically(target, template("arena.html.j2", common).render(_index(arena)))
    written, names = [target], list(arena.sets)
    page = template("arena_set.html.j2", common)
    for index, name in enumerate(names):
        step(name)
        path = arena.folder / "sets" / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        neighbours = {
            "previous": names[index - 1] if index else "",
            "following": names[index + 1] if index + 1 < len(names) else "",
        }
        write_atomically(path, page.render(set_page(arena, name) | neighbours))
        written.append(path)
    for path in sorted((arena.folder / "sets").glob("*.html")):
        if path not in written:
            path.unlink()
    return written


def _common(arena: ArenaData, script: str) -> dict[str, Any]:
    """Return what all pages show: the script with its digest for the policy of the page, and choices of the filters."""
    text = f"\n{script}"
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    columns = arena.columns.values()
    options = {
        "families": sorted({column.family for column in columns}),
        "tracks": list(dict.fromkeys(column.track for column in columns)),
        "licences": sorted({column.licence for column in columns}),
        "seconds": _SECONDS,
    }
    return {"script": text, "script_hash": f"sha256-{digest}", "options": options}


def _index(arena: ArenaData) -> dict[str, Any]:
    pools, groups = arena.pools, arena.groups
    boards = [board_panel(arena, pool, group) for pool in pools.values() for group in groups if group in pool["boards"]]
    costs = [cost_panel(arena, pool, group) for pool in pools.values() for group in groups if group in pool["boards"]]
    data = json.dumps(picker_data(arena), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return {
        "finding": arena_finding(arena),
        "facts": _facts(arena),
        "origin": _origin(arena),
        "scale": _scale(arena),
        "alike": [each["title"] for each in arena.metrics.values() if each["ordered_like"]],
        "group_metrics": [
            (group["title"], [arena.metrics[name]["title"] for name in group["metrics"]])
            for group in list(groups.values())[1:]
        ],
        "limits": limits_text(arena),
        "files": [
            LEADERBOARD,
            *(f for f in ("scores.csv", "measured.csv", "unfinished.csv") if (arena.folder / f).is_file()),
        ],
        "main": main_pool(arena)["name"],
        "tracks": [(name, pool_title(name)) for name in pools],
        "groups": [(name, group["title"]) for name, group in groups.items()],
        "single_metrics": [(each["name"], each["title"]) for each in counted_metrics(arena)],
        "boards": boards,
        "champions": champion_panels(arena),
        "ensembled": "ensembled" in arena.tracks,
        "unseen": any(name.endswith(UNSEEN) for name in pools),
        "chosen_notes": arena.chosen_notes(),
        "tuning": tuning_panel(arena),
        "costs": [panel for panel in costs if panel["figures"]],
        "measured": arena.content["costs"],
        "sets": list(arena.sets.values()),
        "set_rows": [set_row(arena, name) for name in arena.sets],
        "set_counts": [count for count in _SET_COUNTS if count <= max(len(arena.sets), 1)],
        "default_sets": max(count for count in _SET_COUNTS if count <= min(_DEFAULT_SETS, max(len(arena.sets), 1))),
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
    return [*(f"dvc repro reports/{study}/dvc.yaml" for study in studies), "multilab arena rank", "multilab arena page"]
