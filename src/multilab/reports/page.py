"""The page of a study: one self-contained HTML file made from its committed files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multilab.claims import Erratum
from multilab.claims.verdicts import compared
from multilab.ground import write_atomically
from multilab.reports.analysis_pictures import analysis_pictures
from multilab.reports.claim_views import claim_views, outcomes
from multilab.reports.column_sets import column_sets
from multilab.reports.errors import ReportError
from multilab.reports.finding import finding
from multilab.reports.friedman import friedman_tables
from multilab.reports.paper import Words, known_errata, note, paper_tables, tally
from multilab.reports.paper_parts import MARKS, Note
from multilab.reports.pictures import Picture, convergence_picture, learned_pictures, rank_pictures
from multilab.reports.rank_figures import rank_figures
from multilab.reports.study import Study, load_study, metric_title
from multilab.reports.tables import (
    MANY_METHODS,
    Cell,
    ScoreTable,
    cost_tables,
    method_rows,
    number,
    p_text,
    score_table,
)
from multilab.statistics import Comparison

__all__ = ["build_report"]

_CARD_COLUMNS = (
    ("instances", "Instances"),
    ("features", "Features"),
    ("labels", "Labels"),
    ("cardinality", "Cardinality"),
    ("density", "Density"),
    ("distinct_label_sets", "Distinct label sets"),
)


@dataclass(frozen=True)
class MetricView:
    """One metric's part of the page."""

    table: ScoreTable
    comparison: Comparison | None
    pictures: tuple[Picture, ...]
    open: bool


@dataclass(frozen=True)
class OverviewRow:
    """One metric's line in the table of average ranks."""

    metric: str
    title: str
    arrow: str
    cells: tuple[Cell, ...]
    F: str
    F_crit: str
    p: str
    cd: str


def build_report(study_dir: Path | str) -> Path:
    """Write ``index.html`` of a study and return its path.

    Parameters
    ----------
    study_dir : path
        The folder ``reports/<study>`` with ``scores.csv`` and, as far as they exist, ``study.json``,
        ``datasets.json``, ``measured.csv``, ``statistics.json``, ``claims.json``, ``cells.csv``,
        ``environment.json``, ``figures/learned-*.npz`` and the tables of its analyses.

    Returns
    -------
    Path
        A page without scripts and without anything to load; the same files give the same bytes.

    Raises
    ------
    ReportError
        If ``scores.csv`` is missing, a file cannot be read or contradicts the scores, or the extra ``lab``
        is not installed.
    """
    study = load_study(study_dir)
    target = study.folder / "index.html"
    write_atomically(target, _render(study))
    return target


def _render(study: Study) -> str:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise ReportError("a report needs Jinja2: pip install 'multilab[lab]'") from error
    engine = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    engine.filters["number"] = number
    engine.filters["metric_title"] = metric_title
    engine.filters["p_value"] = p_text
    engine.filters["plain"] = _plain
    engine.filters["method_rows"] = method_rows
    engine.globals["many_methods"] = MANY_METHODS
    words = Words.of(study)
    views = [_metric_view(study, metric) for metric in study.metrics]
    by_metric = {view.table.metric: view for view in views}
    return engine.get_template("page.html.j2").render(
        study=study,
        facts=_facts(study),
        finding=() if study.info.get("paper") else finding(study),  # a paper's study begins with its claims
        headline=by_metric[study.primary[0]] if study.primary else None,
        views=views,
        overview=[row for view in views if (row := _overview_row(view)) is not None],
        marks=MARKS,
        verdicts=() if study.cells is None else tally(study.cells["verdict"]),
        compared=() if study.cells is None else compared(study.cells["verdict"]),
        tables=(tables := paper_tables(study, words)),
        friedman=friedman_tables(study, words),
        diagrams=rank_figures(study, words),
        misprints=_misprints(study, {note.id for table in tables for note in table.notes}),
        claims=(claims := claim_views(study)),
        outcomes=outcomes(claims),
        sets=column_sets(study),
        card_columns=[(key, title) for key, title in _CARD_COLUMNS if any(key in c for c in study.cards.values())],
        learned=[(item, shown) for item in study.learned if (shown := learned_pictures(study, item))],
        figures=analysis_pictures(study),
        # a run that its authors stop after two sweeps has no minimum to be drawn against; sweeps.csv has
        curves=None if (study.folder / "sweeps.csv").is_file() else convergence_picture(study, study.learned),
        costs=cost_tables(study),
        settings=_settings(study),
        environment=_flat(study.environment),
        protocol=_flat(study.info.get("protocol") or {}),
    )


def _metric_view(study: Study, metric: str) -> MetricView:
    comparison = study.comparisons.get(metric)
    pictures = rank_pictures(study, comparison) if comparison is not None else ()
    return MetricView(score_table(study, metric), comparison, pictures, metric in study.primary)


def _overview_row(view: MetricView) -> OverviewRow | None:
    comparison, table = view.comparison, view.table
    if comparison is None or not table.average_ranks:
        return None
    return OverviewRow(
        table.metric,
        table.title,
        table.arrow,
        table.average_ranks[: comparison.k],
        number(comparison.F),
        number(comparison.F_crit),
        "–" if comparison.p is None else p_text(comparison.p, ""),
        number(comparison.cd_nemenyi),
    )


def _facts(study: Study) -> list[tuple[str, str]]:
    """Return the study in numbers, for the head of the page."""
    times = (study.info.get("repeats") or {}).get("times", 1)
    splits = study.scores.groupby("dataset")["split"].nunique() // times
    low, high = (int(splits.min()), int(splits.max())) if len(splits) else (0, 0)
    facts = [
        ("datasets", str(len(study.datasets))),
        ("methods", str(len(study.methods))),
        ("split each" if low == high == 1 else "splits each", str(low) if low == high else f"{low}–{high}"),
        *([("repetitions", str(times))] if times > 1 else []),
        ("metrics", str(len(study.metrics))),
    ]
    if "key" in study.scores:
        facts.append(("cells", str(study.scores["key"].nunique())))
    if "seed" in study.info:
        facts.append(("seed", str(study.info["seed"])))
    return facts


def _misprints(study: Study, told: set[str]) -> list[Note]:
    """Return what is known of passages of the paper that no table on the page has told."""
    groups: dict[str, list[Erratum]] = {}
    for erratum in known_errata(study):
        groups.setdefault(erratum.id.partition("/")[0], []).append(erratum)
    return [note(name, entries) for name, entries in groups.items() if name not in told]


def _settings(study: Study) -> list[tuple[str, str, str]]:
    """Return for each method and further column its title, its reference, and its arguments as readable JSON."""
    settings, references = study.info.get("settings") or {}, study.info.get("references") or {}
    listed = []
    for method in dict.fromkeys([*study.methods, *settings]):
        arguments = settings.get(method)
        text = json.dumps(arguments, indent=2, ensure_ascii=False) if arguments else ""
        listed.append((study.method_title(method), str(references.get(method) or ""), text))
    return listed if settings or references else []


def _flat(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested settings as (dotted name, text) lines."""
    lines: list[tuple[str, str]] = []
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping):
            lines += _flat(item, f"{name}.")
        elif item is not None:
            lines.append((name, _plain(item)))
    return lines


def _plain(value: Any) -> str:
    """Return a value as a reader would write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return ", ".join(_plain(item) for item in value)
    return str(value)
