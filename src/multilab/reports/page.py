"""Page of a study: one self-contained HTML file made from its committed files."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.claims.paper import Paper
from multilab.core import write_atomically
from multilab.core.templates import template as jinja_template
from multilab.metrics import find_metric
from multilab.reports.data import load_report, metric_title
from multilab.reports.paper.cells import MARKS
from multilab.reports.sections import header, plain_text, sections
from multilab.reports.tables.entry import number, p_text
from multilab.reports.tables.scores import MANY_METHODS, method_rows


def build_report(study_dir: Path | str, paper: Paper | None = None, each: Callable[..., Iterable[Any]] = map) -> Path:
    """Write ``index.html`` of a study and return its path.

    Parameters
    ----------
    study_dir : path
        The folder ``reports/<study>`` with ``scores.csv.gz`` and, if present, ``study.json``, ``datasets.json``,
        ``measured.csv``, ``statistics.json.gz``, ``claims.json``, ``cells.csv``, ``environment.json``,
        ``figures/learned-*.npz`` and the tables of its analyses.
    paper : Paper, optional
        The study's paper: published cells, errata, names, layouts and figures.
    each : callable
        ``map``, or a function like it that draws figures in parallel.

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
    common = {"report": report, "many_methods": MANY_METHODS, "marks": MARKS, "find_metric": find_metric}
    shown = sections(report, paper, each)
    rendered = [(section, template(section.template, common).render(section.content)) for section in shown]
    return write_page(
        report.folder / "index.html", "page.html.j2", {**header(report, paper), "sections": rendered}, common
    )


def write_page(path: Path, name: str, content: Mapping[str, Any], common: Mapping[str, Any] | None = None) -> Path:
    """Write a page from a template of this package, and return its path.

    Parameters
    ----------
    path : Path
    name : str
        Of the template.
    content : mapping
        Its variables.
    common : mapping, optional
        Variables that the templates it imports see, too.

    Raises
    ------
    MultilabError
        If the extra ``lab`` is not installed.
    """
    write_atomically(path, template(name, common).render(content))
    return path


def template(name: str, common: Mapping[str, Any] | None = None) -> Any:
    """Return a template with the filters of reports; ``common`` are variables that it and what it imports see."""
    filters: dict[str, Callable[..., Any]] = {
        "number": number,
        "metric_title": metric_title,
        "p_value": p_text,
        "plain": plain_text,
        "method_rows": method_rows,
        "headline_of": lambda report: metric_title(report.primary[0]),
    }
    return jinja_template(name, common, filters)
