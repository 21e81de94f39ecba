"""The summary of the arena's leaderboard: its numbers, and a page of the documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from multilab.arena.errors import ArenaError
from multilab.arena.summary import PROPOSALS, arena_summary
from multilab.commands.arena.tables import STUDIES, arena_settings, tables_of_costs
from multilab.core import report_dir, write_atomically
from multilab.core.shell import command
from multilab.experiments.conf import names
from multilab.experiments.study import load_study
from multilab.reports.arena.data import read_leaderboard_file
from multilab.reports.arena.page import summary_page

PAGE = "docs/arena-results.md"


def summarise_arena() -> None:
    """Write ``reports/arena/summary.json`` and the page of the documentation."""
    summary = summary_of_reports()
    if summary is None:
        raise ArenaError(
            f"there is no {report_dir('arena') / 'leaderboard.json'}; `{command('multilab')} arena rank` writes it"
        )
    path = report_dir("arena") / "summary.json"
    write_atomically(path, json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    print(path)
    page = Path(PAGE)
    if page.parent.is_dir():
        write_atomically(page, summary_page(summary))
        print(page)
    else:
        print(f"{page} is not written: there is no folder {page.parent}")


def summary_of_reports() -> dict[str, Any] | None:
    """Return the summary of the committed files, ``None`` without a leaderboard."""
    folder = report_dir("arena")
    path = folder / "leaderboard.json"
    if not path.is_file():
        return None
    content = read_leaderboard_file(path)
    studies = set(names("study"))
    tables = {study: tables_of_costs(study) for study in STUDIES.values()}
    return arena_summary(
        content,
        tables[STUDIES["default"]]["measured"],
        {study: load_study(study).methods for study in PROPOSALS if study in studies},
        tables,
        arena_settings()["core_hours"],
    )
