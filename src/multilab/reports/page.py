"""Page of a study: one self-contained HTML file made from its committed files."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.core import write_atomically
from multilab.metrics import METRICS
from multilab.reports.data import load_report, metric_title
from multilab.reports.errors import ReportError
from multilab.reports.paper.cells import MARKS
from multilab.reports.paper.names import ReportedPaper
from multilab.reports.sections import header, plain_text, sections
from multilab.reports.tables.entry import number, p_text
from multilab.reports.tables.scores import MANY_METHODS, method_rows


def build_report(
    study_dir: Path | str, paper: ReportedPaper | None = None, each: Callable[..., Iterable[Any]] = map
) -> Path:
    """Write ``index.html`` of a study and return its path.

    Parameters
    ----------
    study_dir : path
        The folder ``reports/<study>`` with ``scores.csv`` and, if present, ``study.json``, ``datasets.json``,
        ``measured.csv``, ``statistics.json``, ``claims.json``, ``cells.csv``, ``environment.json``,
        ``figures/learned-*.npz`` and the tables of its analyses.
    paper : ReportedPaper, optional
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
        If ``scores.csv`` is missing, a file cannot be read or contradicts the scores, or the extra ``lab``
        is not installed.
    """
    report = load_report(study_dir)
    common = {"report": report, "many_methods": MANY_METHODS, "marks": MARKS, "definitions": METRICS}
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
    ReportError
        If the extra ``lab`` is not installed.
    """
    write_atomically(path, template(name, common).render(content))
    return path


def template(name: str, common: Mapping[str, Any] | None = None) -> Any:
    """Return a template of this package; ``common`` are variables that it and what it imports see.

    Raises
    ------
    ReportError
        If the extra ``lab`` is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise ReportError("a report needs Jinja2: pip install 'multilab[lab]'") from error
    engine = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=lambda name: not str(name).endswith(".md.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    engine.filters |= {
        "number": number,
        "metric_title": metric_title,
        "p_value": p_text,
        "plain": plain_text,
        "method_rows": method_rows,
        "headline_of": lambda report: metric_title(report.primary[0]),
    }
    engine.globals |= common or {}
    return engine.get_template(name)
