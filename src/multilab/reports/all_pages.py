"""Which pages there are: those of studies, that of the arena, the page over all studies, and what the README shows."""

from __future__ import annotations

from pathlib import Path

from multilab.arena.committed_tables import STUDIES
from multilab.core import read_json, report_dir
from multilab.core.shell import command
from multilab.printed.paper import paper_of
from multilab.reports.arena.data import LEADERBOARD, OutdatedLeaderboardError, load_arena
from multilab.reports.arena.page import build_arena_page
from multilab.reports.arena.panels import finding as arena_finding
from multilab.reports.arena.rank import summarise_arena
from multilab.reports.data import ReportData, load_report
from multilab.reports.finding import finding
from multilab.reports.page import write_page
from multilab.reports.readme import write_readme
from multilab.reports.sections import build_report
from multilab.statistics.result_files import SCORES


def study_page(folder: Path) -> Path:
    """Write the page of a study and return it; studies with ``page: arena`` share the page of the arena.

    Where the leaderboards are missing or older than the scores, the page of the arena stays as it is, and a line names
    the commands to run.
    """
    if not _is_of_arena(folder):
        return build_report(folder, paper_of(folder))
    arena = folder.parent / "arena"
    try:
        return build_arena_page(arena)
    except OutdatedLeaderboardError as error:
        print(f"{error}, then `{command('multilab')} arena page`")
        return arena / "index.html"


def all_pages() -> int:
    """Write every page from the committed results alone, and what of them is committed too.

    Written are the pages of all studies with results, that of the arena, and the page over all studies; committed are
    the summary of the arena and the table of the README.
    """
    reports = report_dir("arena").parent
    folders = sorted(path.parent for path in reports.glob(f"*/{SCORES}"))
    for folder in folders:
        if not _is_of_arena(folder):
            print(build_report(folder, paper_of(folder), overview=True))
    if (report_dir("arena") / LEADERBOARD).is_file():
        print(build_arena_page(report_dir("arena")))
        summarise_arena()
    overview(reports)
    return 0


def overview(reports: Path) -> None:
    """Write the page over all studies and the table of the README."""
    if (reports / "arena" / "summary.json").is_file():
        write_readme(Path("README.md"), reports)
    print(write_overview(reports))


def _is_of_arena(folder: Path) -> bool:
    path = folder / "study.json"
    return path.is_file() and read_json(path).get("page") == "arena"


def write_overview(reports: Path | str) -> Path:
    """Write ``index.html`` of the folder of all studies and return its path.

    Parameters
    ----------
    reports : path
        The folder of the studies' folders; those without scores and the quick study are left out. The studies
        of the arena are one line that says who leads.
    """
    ranked = (Path(reports) / "arena" / LEADERBOARD).is_file()
    folders = sorted(path.parent for path in Path(reports).glob(f"*/{SCORES}") if _listed(path.parent.name))
    studies = [load_report(folder) for folder in folders]
    studies.sort(key=lambda report: "paper" not in report.info)  # papers first
    arena = arena_finding(load_arena(Path(reports) / "arena")) if ranked else None
    lines = [(report, " ".join(finding(report)[:1])) for report in studies]
    content = {"studies": lines, "rows": _ranks(studies), "arena": arena}
    return write_page(Path(reports) / "index.html", "overview.html.j2", content)


def _listed(study: str) -> bool:
    """Return whether a study has a line of its own: not the quick study, nor those of the arena."""
    return study not in ("quick", *STUDIES.values())


def _ranks(studies: list[ReportData]) -> list[tuple[str, list[str]]]:
    """Return per method its average rank in the headline metric of each study, ``4.5 of 13``; its own columns only."""
    known: dict[str, dict[str, str]] = {}
    for report in studies:
        comparison = report.comparisons.get(report.primary[0])
        for method in report.methods if comparison is not None else ():
            rank = comparison.ranks.get(method) if comparison is not None else None
            if rank is not None and comparison is not None:
                known.setdefault(report.method_title(method), {})[report.name] = f"{rank:.2f} of {comparison.k}"
    names = [report.name for report in studies]
    return [(method, [ranks.get(name, "") for name in names]) for method, ranks in sorted(known.items())]
