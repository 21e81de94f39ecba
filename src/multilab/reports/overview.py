"""Page over all studies: a line per study with its bar and finding, and a table over all methods."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from multilab.claims.agreement import Agreement
from multilab.claims.paper import Paper
from multilab.reports.arena.data import LEADERBOARD, load_arena
from multilab.reports.arena.panels import finding as arena_finding
from multilab.reports.data import ReportData, load_report
from multilab.reports.finding import finding
from multilab.reports.page import write_page
from multilab.reports.paper.cells import tally
from multilab.reports.paper.claims import claim_views, outcomes
from multilab.statistics.result_files import SCORES


@dataclass(frozen=True)
class StudyLine:
    """A study on the page over all studies: ``report`` is its data, ``result`` its outcome as text."""

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
    arena = arena_finding(load_arena(Path(reports) / "arena")) if ranked else None
    content = {"studies": lines, "rows": _ranks(lines), "arena": arena}
    return write_page(Path(reports) / "index.html", "overview.html.j2", content)


def _listed(study: str) -> bool:
    """Return whether a study has a line of its own: not the quick study, nor those of the arena."""
    return study not in ("quick", "arena") and not study.startswith("arena-")


def _line(report: ReportData, paper: Paper | None) -> StudyLine:
    cells = report.cells
    results = () if cells is None else tuple(cells.loc[cells["group"] == "result", "verdict"])
    found = paper.result if paper is not None and report.claims else ""
    result = report.filled(found) if found else " ".join(finding(report)[:1])
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
