"""Pages of the arena, and of the studies whose page is that of the arena."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from multilab.claims.paper import paper_of
from multilab.core import read_json, report_dir
from multilab.core.shell import command
from multilab.reports import build_report, write_overview, write_readme
from multilab.reports.arena.data import LEADERBOARD, OutdatedLeaderboardError
from multilab.reports.arena.page import build_arena_pages
from multilab.reports.arena.rank import summarise_arena
from multilab.statistics.result_files import SCORES

README_STUDY = "mlwse-core"
"""Study whose table and figure the README shows."""


def write_pages(folder: Path) -> None:
    """Write ``index.html`` and a page per set next to a leaderboard file from committed results alone."""
    written = build_arena_pages(folder)
    print(f"page:    {written[0].resolve()}, and {len(written) - 1} pages of sets next to it")


def study_page(folder: Path, each: Callable[..., Iterable[Any]] = map) -> Path:
    """Write the page of a study and return it; studies with ``page: arena`` share the page of the arena.

    Where the leaderboards are missing or older than the scores, the page of the arena stays as it is, and a line names
    the commands to run.
    """
    if not _is_of_arena(folder):
        return build_report(folder, paper_of(folder), each)
    arena = folder.parent / "arena"
    try:
        return build_arena_pages(arena)[0]
    except OutdatedLeaderboardError as error:
        print(f"{error}, then `{command('multilab')} arena page`")
        return arena / "index.html"


def all_pages(each: Callable[..., Iterable[Any]] = map) -> int:
    """Write every page from the committed results alone, and what of them is committed too.

    Written are the pages of all studies with results, those of the arena, and the page over all studies; committed are
    the summary of the arena, and the tables and the figure of the README.
    """
    folders = sorted(path.parent for path in report_dir("arena").parent.glob(f"*/{SCORES}"))
    for folder in folders:
        if not _is_of_arena(folder):
            print(build_report(folder, paper_of(folder), each))
    if (report_dir("arena") / LEADERBOARD).is_file():
        write_pages(report_dir("arena"))
        summarise_arena()
    if report_dir(README_STUDY).is_dir():
        overview(report_dir(README_STUDY))
    return 0


def overview(folder: Path) -> None:
    """Write the page over all studies, and the tables and the figure of the README, the figure of one study."""
    write_readme(Path("README.md"), folder, Path("docs/figures"))
    print(write_overview(folder.parent, paper_of))


def _is_of_arena(folder: Path) -> bool:
    path = folder / "study.json"
    return path.is_file() and read_json(path).get("page") == "arena"
