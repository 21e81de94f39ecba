"""Page of a study: its sections, what each shows, and the template that shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from multilab.metrics import find_metric
from multilab.printed import Paper
from multilab.reports.data import ReportData, load_report, metric_title
from multilab.reports.figures import Figure, draw_figures
from multilab.reports.figures.diagrams import rank_figures
from multilab.reports.finding import finding
from multilab.reports.head import head
from multilab.reports.page import flat, template, write_page
from multilab.reports.tables.control import control_view
from multilab.reports.tables.costs import core_hours, cost_table
from multilab.reports.tables.scores import MANY_METHODS, rank_table, score_table
from multilab.reports.tables.shares import share_view
from multilab.reports.tables.variants import variant_table
from multilab.statistics import Comparison
from multilab.statistics.result_files import UNCHECKED, read_table

_FILES = {
    "scores.csv.gz": "every score: data set, split, method, metric, value; columns of variants are METHOD-VARIANT",
    "statistics.json.gz": "by metric: ranks, Friedman, Nemenyi, signed-rank tests of all pairs (Wilcoxon with Holm, "
    "Bayesian); statistics-VARIANT.json.gz the same within a variant",
    "keys.csv": "first digits of the key of every cell, in the order of the splits",
    "measured.csv": "seconds, memory and size of every cell",
    "tuned.csv": "what the searches chose on every split",
    "labels.csv": "counts of the decisions by label",
    "unfinished.csv": "cells that exceeded a limit or failed, with the reason",
    "datasets.json": "the data sets: sizes, labels, digests",
    "study.json": "protocol, settings and references of the methods, variants",
    "environment.json": "machine and versions",
}


@dataclass(frozen=True)
class Section:
    """One section of a page.

    Attributes
    ----------
    id : str
        Anchor; the template is ``<id>.html.j2``.
    title : str
        Text of the link to it.
    content : mapping
        Variables of the template; empty if there is nothing to show.
    """

    id: str
    title: str
    content: Mapping[str, Any]

    @property
    def template(self) -> str:
        """Name of the template."""
        return f"{self.id}.html.j2"


def build_report(
    study_dir: Path | str,
    paper: Paper | None = None,
    overview: bool = False,
) -> Path:
    """Write ``index.html`` of a study and return its path.

    Parameters
    ----------
    study_dir : path
        The folder ``reports/<study>`` with ``scores.csv.gz`` and, if present, ``study.json``, ``datasets.json``,
        ``measured.csv``, ``statistics.json.gz``, ``environment.json``,
        ``figures/learned-*.npz`` and the tables of its analyses.
    paper : Paper, optional
        The study's paper: citation and figures.
    overview : bool, default=False
        Link the page over all studies even where it does not exist yet.

    Returns
    -------
    Path
        A page without scripts and without anything to load; the same files give the same bytes.

    Raises
    ------
    ReportError
        If ``scores.csv.gz`` is missing, or a file cannot be read or contradicts the scores.
    """
    report = load_report(study_dir)
    common = {"report": report, "many_methods": MANY_METHODS}
    common |= {**header(report, paper), "overview": overview or (report.folder.parent / "index.html").is_file()}
    shown = sections(report, paper)
    rendered = [(section, template(section.template, common).render(section.content)) for section in shown]
    return write_page(report.folder / "index.html", "page.html.j2", {"sections": rendered}, common)


def header(report: ReportData, paper: Paper | None = None) -> dict[str, Any]:
    """Return the variables of the head of the page: the finding, a figure, a short table, and the paper if any."""
    about = {"paper": paper, "facts": _facts(report), "unchecked": _unchecked(report)}
    return {**about, "finding": finding(report), **head(report)}


def sections(report: ReportData, paper: Paper | None) -> list[Section]:
    """Return the sections of a page that have something to show, in the order of the page."""
    metric = report.primary[0]
    comparison = report.comparisons.get(metric)
    scores = {"table": score_table(report, metric), "convention": convention(report, metric)}
    control, shares = control_view(report), share_view(report)
    variants = None if control or shares else variant_table(report)  # these show the variants themselves
    shown = [
        Section("costs", "Costs", _some(table=cost_table(report))),
        Section("shares", "Observed labels", _some(view=shares)),
        Section("scores", "Scores", scores),
        Section("tests", "Tests", _tests(report, comparison)),
        Section("control", "Control", _some(view=control)),
        Section("variants", "Variants", _some(table=variants)),
        Section("figures", "Figures", _some(figures=_paper_figures(report, paper))),
        Section("reproduce", "Files", {"files": _files(report), "hours": core_hours(report)}),
    ]
    return [section for section in shown if section.content]


def convention(report: ReportData, metric: str) -> str:
    """Return what the values of a table of scores are: splits, definition and conventions of the metric."""
    known = find_metric(metric)
    protocol = ", ".join(f"{name} {text}" for name, text in flat(report.info.get("protocol")))
    over = "repetitions" if report.n_repeats > 1 else "splits"
    parts = [f"Means over the {over} of each data set{f' ({protocol})' if protocol else ''}"]
    if known:
        parts.append(f"{metric_title(metric)}: {known.definition}")
    if preset := report.info.get("conventions"):
        parts.append(f"Ties, rows without labels and labels without rows follow the conventions “{preset}”")
    return ". ".join(parts) + "."


def _some(**content: Any) -> dict[str, Any]:
    """Return the variables if they have content."""
    return content if any(content.values()) else {}


def _tests(report: ReportData, comparison: Comparison | None) -> dict[str, Any]:
    """Return the ranks by every metric, and the diagrams of the headline metric that the head does not show."""
    drawn = () if comparison is None else rank_figures(report, comparison)
    return {"ranks": rank_table(report), "comparison": comparison, "figures": drawn[1:]}


def _facts(report: ReportData) -> list[tuple[str, str]]:
    """Return the study in numbers."""
    splits = report.scores.groupby("dataset")["split"].nunique() // report.n_repeats
    low, high = (int(splits.min()), int(splits.max())) if len(splits) else (0, 0)
    facts = [
        ("data set" if len(report.datasets) == 1 else "data sets", len(report.datasets)),
        ("method" if len(report.methods) == 1 else "methods", len(report.methods)),
        ("split each" if low == high == 1 else "splits each", low if low == high else f"{low}–{high}"),
        *([("repetitions", report.n_repeats)] if report.n_repeats > 1 else []),
        ("metrics", len(report.metrics)),
        *([("cells", report.scores["key"].nunique())] if "key" in report.scores else []),
        *([("seed", report.info["seed"])] if "seed" in report.info else []),
    ]
    return [(name, str(value)) for name, value in facts]


def _unchecked(report: ReportData) -> tuple[int, int] | None:
    """Return how many results were computed by files that have changed since, and how many of them are equal."""
    path = report.folder / UNCHECKED
    counts = read_table(path, ["results", "equal"])[["results", "equal"]].sum() if path.is_file() else None
    return None if counts is None else (int(counts["results"]), int(counts["equal"]))


def _paper_figures(report: ReportData, paper: Paper | None) -> list[tuple[str, list[Figure]]]:
    figures = draw_figures(report, paper.figures) if paper is not None else []
    return [(title, list(group)) for title, group in groupby(figures, lambda figure: figure.title)]


def _files(report: ReportData) -> list[tuple[str, str]]:
    """Return the files next to the page and what each holds."""
    return [(name, text) for name, text in _FILES.items() if (report.folder / name).is_file()]
