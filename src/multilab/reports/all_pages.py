"""Which pages there are: those of studies, of the arena, the page over all studies, and what the README shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multilab.arena.committed_tables import STUDIES
from multilab.claims.agreement import Agreement
from multilab.claims.paper import Paper, paper_of
from multilab.core import read_json, report_dir
from multilab.core.shell import command
from multilab.reports.arena.data import LEADERBOARD, OutdatedLeaderboardError, load_arena
from multilab.reports.arena.page import build_arena_pages
from multilab.reports.arena.panels import finding as arena_finding
from multilab.reports.arena.rank import summarise_arena
from multilab.reports.data import ReportData, load_report
from multilab.reports.finding import finding
from multilab.reports.page import write_page
from multilab.reports.paper.claims import claim_views, outcomes
from multilab.reports.paper.printed_cells import tally
from multilab.reports.readme import write_paper_pages, write_readme
from multilab.reports.sections import build_report
from multilab.statistics.result_files import SCORES

PAPER_PAGES = Path("docs/papers")
"""Where a checkout has the pages of papers."""


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
    the summary of the arena, the table of the README, and the pages of papers.
    """
    reports = report_dir("arena").parent
    folders = sorted(path.parent for path in reports.glob(f"*/{SCORES}"))
    for folder in folders:
        if not _is_of_arena(folder):
            print(build_report(folder, paper_of(folder), each, overview=True))
    if (report_dir("arena") / LEADERBOARD).is_file():
        write_pages(report_dir("arena"))
        summarise_arena()
    overview(reports)
    return 0


def overview(reports: Path) -> None:
    """Write the page over all studies, the numbers and the table of the README, and the pages of papers."""
    if (reports / "arena" / "summary.json").is_file():
        write_readme(Path("README.md"), reports)
    if PAPER_PAGES.is_dir():
        write_paper_pages(PAPER_PAGES, reports)
    print(write_overview(reports, paper_of))


def _is_of_arena(folder: Path) -> bool:
    path = folder / "study.json"
    return path.is_file() and read_json(path).get("page") == "arena"


@dataclass(frozen=True)
class StudyLine:
    """A study on the page over all studies: ``report`` is its data, ``result`` its finding if it has no paper."""

    report: ReportData
    agreement: Agreement | None
    verdicts: tuple[tuple[str, int, str], ...]
    outcomes: list[tuple[str, int, list[str]]]
    result: str


def write_overview(reports: Path | str, paper_of: Callable[[Path], Paper | None]) -> Path:
    """Write ``index.html`` of the folder of all studies and return its path.

    Parameters
    ----------
    reports : path
        The folder of the studies' folders; those without scores and the quick study are left out. The studies
        of the arena are one line that says who leads.
    paper_of : callable
        Returns the paper of a study's folder, ``None`` if it has none.
    """
    ranked = (Path(reports) / "arena" / LEADERBOARD).is_file()
    folders = sorted(path.parent for path in Path(reports).glob(f"*/{SCORES}") if _listed(path.parent.name))
    lines = [_line(load_report(folder), paper_of(folder)) for folder in folders]
    lines.sort(key=lambda line: bool(line.result))  # papers first
    arena = arena_finding(load_arena(Path(reports) / "arena")) if ranked else None
    content = {"studies": lines, "rows": _ranks(lines), "arena": arena}
    return write_page(Path(reports) / "index.html", "overview.html.j2", content)


def _listed(study: str) -> bool:
    """Return whether a study has a line of its own: not the quick study, nor those of the arena."""
    return study not in ("quick", *STUDIES.values())


def _line(report: ReportData, paper: Paper | None) -> StudyLine:
    cells = report.cells
    results = () if cells is None else tuple(cells.loc[cells["group"] == "result", "verdict"])
    result = "" if paper is not None and report.claims else " ".join(finding(report)[:1])
    return StudyLine(report, report.agreement, tally(results), outcomes(claim_views(report)), result)


def _ranks(studies: list[StudyLine]) -> list[tuple[str, list[str]]]:
    """Return per method its average rank in the headline metric of each study, ``4.5 of 13``; its own columns only."""
    known: dict[str, dict[str, str]] = {}
    for line in studies:
        report, headline = line.report, line.report.primary[0]
        comparison = report.comparisons.get(headline)
        for method in report.methods if comparison is not None else ():
            rank = comparison.ranks.get(method) if comparison is not None else None
            if rank is not None and comparison is not None:
                known.setdefault(report.method_title(method), {})[report.name] = f"{rank:.2f} of {comparison.k}"
    names = [line.report.name for line in studies]
    return [(method, [ranks.get(name, "") for name in names]) for method, ranks in sorted(known.items())]
