"""Page of a study: its sections, what each shows, and the template that shows it."""

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from multilab.metrics import find_metric
from multilab.printed import Paper
from multilab.reports.data import ReportData, load_report
from multilab.reports.figures import Figure, draw_figures
from multilab.reports.figures.diagrams import rank_figures
from multilab.reports.figures.learned import convergence_figure, learned_figures
from multilab.reports.finding import finding
from multilab.reports.head import head
from multilab.reports.page import flat, template, write_page
from multilab.reports.tables.control import control_view
from multilab.reports.tables.costs import core_hours, cost_tables
from multilab.reports.tables.scores import MANY_METHODS, ScoreTable, score_table
from multilab.reports.tables.shares import share_views
from multilab.reports.tables.variants import variant_views
from multilab.statistics import Comparison
from multilab.statistics.result_files import UNCHECKED, read_table

_CARD_COLUMNS = (
    ("instances", "Instances"),
    ("features", "Features"),
    ("labels", "Labels"),
    ("cardinality", "Cardinality"),
    ("density", "Density"),
    ("distinct_label_sets", "Distinct label sets"),
)


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


@dataclass(frozen=True)
class MetricView:
    """One metric: its table, its comparison and the diagrams of that."""

    table: ScoreTable
    comparison: Comparison | None
    figures: tuple[Figure, ...]
    open: bool


def build_report(
    study_dir: Path | str,
    paper: Paper | None = None,
    each: Callable[..., Iterable[Any]] = map,
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
    each : callable
        ``map``, or a function like it that draws figures in parallel.
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
    common = {"report": report, "many_methods": MANY_METHODS, "find_metric": find_metric}
    common |= {**header(report, paper), "overview": overview or (report.folder.parent / "index.html").is_file()}
    shown = sections(report, paper, each)
    rendered = [(section, template(section.template, common).render(section.content)) for section in shown]
    return write_page(report.folder / "index.html", "page.html.j2", {"sections": rendered}, common)


def header(report: ReportData, paper: Paper | None = None) -> dict[str, Any]:
    """Return the variables of the head of the page: the finding, a figure, a short table, and the paper if any."""
    about = {"paper": paper, "facts": _facts(report), "unchecked": _unchecked(report)}
    return {**about, "finding": finding(report), **head(report)}


def sections(report: ReportData, paper: Paper | None, each: Callable[..., Iterable[Any]] = map) -> list[Section]:
    """Return the sections of a page that have something to show, in the order of the page."""
    views = list(each(functools.partial(_metric_view, report), report.metrics))
    headline = next((view for view in views if view.table.metric == report.primary[0]), None)
    ranked = [view for view in views if view.comparison is not None and view.table.average_ranks]
    shown = [
        Section("shares", "Observed labels", _some(views=share_views(report))),
        Section("result", "Result", _some(headline=headline)),
        Section("ranks", "Ranks", {"ranked": ranked, "headline": headline} if ranked else {}),
        Section("metrics", "Metrics", {"views": views, "headline": headline}),
        Section("control", "Control", _some(view=control_view(report))),
        Section("variants", "Variants", _some(views=variant_views(report))),
        Section("figures", "Figures", _some(figures=_paper_figures(report, paper))),
        Section("data", "Data", {"card_columns": _card_columns(report), "protocol": flat(report.info.get("protocol"))}),
        Section("learned", "Learned", _learned(report, each)),
        Section("costs", "Cost", _some(tables=cost_tables(report))),
        Section("methods", "Methods", _some(settings=_settings(report))),
        Section("reproduce", "Reproduce", {"environment": flat(report.environment), "hours": core_hours(report)}),
    ]
    return [section for section in shown if section.content]


def _some(**content: Any) -> dict[str, Any]:
    """Return the variables if they have content."""
    return content if any(content.values()) else {}


def _metric_view(report: ReportData, metric: str) -> MetricView:
    comparison = report.comparisons.get(metric)
    figures = rank_figures(report, comparison) if comparison is not None else ()
    return MetricView(score_table(report, metric), comparison, figures, metric in report.primary)


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


def _learned(report: ReportData, each: Callable[..., Iterable[Any]]) -> dict[str, Any]:
    drawn = each(functools.partial(learned_figures, report), report.learned)
    learned = [(item, figures) for item, figures in zip(report.learned, drawn, strict=True) if figures]
    # a method that its authors stop after two sweeps has no minimum to be compared with; sweeps.csv has
    curves = None if (report.folder / "sweeps.csv").is_file() else convergence_figure(report, report.learned)
    return _some(learned=learned, curves=curves)


def _card_columns(report: ReportData) -> list[tuple[str, str]]:
    return [(key, title) for key, title in _CARD_COLUMNS if any(key in card for card in report.cards.values())]


def _settings(report: ReportData) -> list[tuple[str, str, str]]:
    """Return for each method and column of a variant its title, its reference, and its arguments as readable JSON."""
    settings, references = report.info.get("settings") or {}, report.info.get("references") or {}
    listed = []
    for method in dict.fromkeys([*report.methods, *settings]):
        arguments = settings.get(method)
        text = json.dumps(arguments, indent=2, ensure_ascii=False) if arguments else ""
        listed.append((report.method_title(method), str(references.get(method) or ""), text))
    return listed if settings or references else []
