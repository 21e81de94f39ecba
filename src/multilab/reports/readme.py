"""Markdown from committed results: the headline table of a study, and the table of the README."""

from collections.abc import Iterable
from pathlib import Path

from multilab.arena.tracks import column_name, method_of
from multilab.core import read_json, write_atomically
from multilab.core.text import markdown_cell
from multilab.reports.data import ReportData, load_report
from multilab.reports.errors import ReportError
from multilab.reports.finding import finding
from multilab.reports.tables.entry import Entry
from multilab.reports.tables.scores import score_table


def write_readme(readme: Path, reports: Path) -> None:
    """Write the table of the arena that a README shows, between ``<!-- table arena -->`` and ``<!-- end arena -->``.

    Parameters
    ----------
    readme : path
        The file.
    reports : path
        The folder of the studies' folders.

    Raises
    ------
    ReportError
        If a mark of the table is missing or repeated.
    """
    write_atomically(readme, _with_table(readme, "arena", arena_markdown(reports / "arena" / "summary.json")))


def _with_table(path: Path, name: str, table: str) -> str:
    """Return the text of a file with the table between its marks ``<!-- table NAME -->`` and ``<!-- end NAME -->``."""
    text = path.read_text(encoding="utf-8")
    start, stop = f"<!-- table {name} -->", f"<!-- end {name} -->"
    if (text.count(start), text.count(stop)) != (1, 1) or text.index(start) > text.index(stop):
        raise ReportError(f"{path} must have the marks {start} and {stop} once each, in this order")
    before, _, rest = text.partition(start)
    return f"{before}{start}\n{table}{stop}{rest.partition(stop)[2]}"


def arena_markdown(summary: Path) -> str:
    """Return what quality costs in the arena, in Markdown: the anchor, the best single method, stacks.

    Parameters
    ----------
    summary : path
        ``summary.json`` of the arena.
    """
    content = read_json(summary)
    methods = {each["name"]: each for each in content["costs"]["methods"]}
    stacks = {name for name in methods if name == column_name(method_of(name), "ensembled")}
    first = {
        "a logistic regression per label": content["anchor"],
        "the best single method": max(set(methods) - stacks, key=lambda name: methods[name]["elo"]),
        "a small model that learned from the stack": "distilled_stack@ensembled",
        "the best stack of methods": max(stacks, key=lambda name: methods[name]["elo"]),
    }
    overall = content["winners"][0]["groups"]["overall"]
    lines = [
        f"{len(content['columns'])} methods ran on {len(content['sets'])} data sets with the same folds and limits. "
        f"Stacks of them ran on {content['costs']['sets']}. A method that exceeded a limit is last on that set.",
        f"**No single method wins: the first {1 + len(overall['not_separated'])} are not told apart.**",
        "",
    ]
    lines += ["| | method | Elo | fit, s per 1,000 rows | predict, ms per row |", "|:---|:---|---:|---:|---:|"]
    for title, name in first.items():
        one = methods[name]
        numbers = (f"{one['elo']:.0f}", f"{one['fit_seconds']:.3g}", f"{one['predict_ms']:.3g}")
        lines.append(_line(title, (f"`{method_of(name)}`", *numbers)))
    return "\n".join(lines) + "\n"


def headline_markdown(study_dir: Path | str, metric: str | None = None) -> str:
    """Return one metric of a study as a Markdown table: best bold, with the average ranks.

    More than eight methods are the rows, the best average rank first; fewer are the columns.

    Parameters
    ----------
    study_dir : path
        The folder ``reports/<study>``.
    metric : str, optional
        Default is the study's first primary metric.

    Raises
    ------
    ReportError
        If the study has no such metric.
    """
    report = load_report(study_dir)
    table = score_table(report, _metric(report, metric))
    rows = [(markdown_cell(title), entries) for title, entries in table.rows]
    rows += [(f"*{title.lower()}*", entries) for title, entries in table.foot]
    lines = [_line(table.corner, map(markdown_cell, table.heads)), "|:---|" + "---:|" * len(table.heads)]
    return "\n".join([*lines, *(_line(title, map(_markdown, entries)) for title, entries in rows)]) + "\n"


def _line(head: str, texts: Iterable[str]) -> str:
    return f"| {' | '.join([head, *texts])} |"


def finding_text(study_dir: Path | str) -> str:
    """Return the finding of a study as one paragraph, empty if its methods are not ranked."""
    return " ".join(finding(load_report(study_dir)))


def _metric(report: ReportData, metric: str | None) -> str:
    chosen = metric or next(iter(report.primary), None)
    if chosen not in report.summaries:
        raise ReportError(f"study {report.name} has no metric {metric!r}; there are {', '.join(report.metrics)}")
    return str(chosen)


def _markdown(entry: Entry) -> str:
    mean = f"**{entry.text}**" if entry.best else entry.text
    return mean + (f" ± {entry.std}" if entry.std else "")
