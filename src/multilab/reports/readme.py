"""Parts of the README: headline table and figure of a study, verdicts and claims of all studies."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from multilab.claims.agreement import Agreement, agreement_by_method
from multilab.claims.results import Results
from multilab.core import read_json, write_atomically
from multilab.core.text import markdown_cell
from multilab.reports.data import ReportData, load_report, metric_title
from multilab.reports.errors import ReportError
from multilab.reports.figures.diagrams import cd_diagram, dots, ranks_height
from multilab.reports.figures.style import new_axes, png_bytes, styled
from multilab.reports.finding import finding
from multilab.reports.tables.entry import Entry
from multilab.reports.tables.scores import MANY_METHODS, method_rows, score_table
from multilab.statistics.result_files import read_table

_NUMBER = re.compile(r"(?P<start><!-- = (?P<study>[\w-]+): (?P<expression>.+?) -->).*?(?P<end><!-- = -->)", re.DOTALL)


def write_readme(readme: Path, folder: Path, figures: Path) -> None:
    """Write the headline table of a study and the table of all claims into a README, and the figure of the study.

    A number in a sentence stands between ``<!-- = STUDY: EXPRESSION -->`` and ``<!-- = -->``; the expression is one of
    :class:`multilab.claims.results.Results`.

    Parameters
    ----------
    readme : path
        File with the marks ``<!-- table NAME -->`` and ``<!-- end NAME -->`` once per table; NAME is the name of the
        study, and ``ledger``.
    folder : path
        The folder ``reports/<study>``.
    figures : path
        Folder of the figure.

    Raises
    ------
    ReportError
        If a mark is missing or repeated.
    """
    save_headline_png(folder, figures / f"{folder.name}.png")
    text = readme.read_text(encoding="utf-8")
    for name, table in {folder.name: headline_markdown(folder), "ledger": ledger_markdown(folder.parent)}.items():
        start, stop = f"<!-- table {name} -->", f"<!-- end {name} -->"
        if (text.count(start), text.count(stop)) != (1, 1) or text.index(start) > text.index(stop):
            raise ReportError(f"{readme} must have the marks {start} and {stop} once each, in this order")
        before, _, rest = text.partition(start)
        text = f"{before}{start}\n{table.strip()}\n{stop}{rest.partition(stop)[2]}"
    write_atomically(readme, _NUMBER.sub(lambda match: _filled(match, folder.parent), text))


def _filled(match: re.Match[str], reports: Path) -> str:
    value = Results(reports / match["study"]).fill(f"{{{{ {match['expression']} }}}}", "README")
    return f"{match['start']}{value}{match['end']}"


def headline_markdown(study_dir: Path | str, metric: str | None = None) -> str:
    """Return one metric of a study as a Markdown table: best bold, ranks as subscripts.

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
    ranks = table.average_ranks
    if len(table.heads) > MANY_METHODS:
        heads = [*(["*average rank*"] if ranks else []), *(markdown_cell(dataset) for dataset, _ in table.rows)]
        rows = [
            (markdown_cell(row.head), [row.average_rank, *row.entries] if row.average_rank else row.entries)
            for row in method_rows(table)
        ]
    else:
        heads = [markdown_cell(head) for head in table.heads]
        rows = [(markdown_cell(dataset), entries) for dataset, entries in table.rows]
        rows += [("*average rank*", ranks)] if ranks else []
    lines = [_line(table.corner, heads), "|:---|" + "---:|" * len(heads)]
    return "\n".join([*lines, *(_line(head, map(_markdown, entries)) for head, entries in rows)]) + "\n"


def _line(head: str, texts: Iterable[str]) -> str:
    return f"| {' | '.join([head, *texts])} |"


def finding_text(study_dir: Path | str) -> str:
    """Return the finding of a study as one paragraph, empty if its methods are not ranked."""
    return " ".join(finding(load_report(study_dir)))


def ledger_markdown(reports: Path | str) -> str:
    """Return verdicts and claims of the studies of papers as a Markdown table.

    Parameters
    ----------
    reports : path
        The folder of the studies' folders; those without ``claims.json`` are left out.
    """
    lines = [
        "| study | results compared | median gap | within 1 % | 2 % | 5 % | agree | another method's column | claims "
        "| hold | in part | fail | depend | open | not testable |",
        "|:---|" + "---:|" * 14,
    ]
    for path in sorted(Path(reports).glob("*/claims.json")):
        claims = read_json(path)
        outcomes = Counter(claim["outcome"] for claim in claims if claim["origin"] == "paper")
        if not outcomes:
            continue
        title = read_json(path.parent / "study.json")["title"]
        cells = read_table(path.parent / "cells.csv", ["verdict", "group"], text=True)
        agreement, by_method = Agreement.of(cells), agreement_by_method(cells)
        others = sum(one.other_agree for one in by_method) if any(one.other for one in by_method) else math.nan
        other = others / agreement.comparable if agreement.comparable else math.nan
        shares = (agreement.median_gap, *agreement.near, agreement.share, other)
        texts = ["–" if math.isnan(share) else f"{share:.{0 if i else 1}%}" for i, share in enumerate(shares)]
        depend = outcomes["depends on the reading"] + outcomes["depends on the limit"]
        counts = (
            *(outcomes[name] for name in ("holds", "holds in part", "fails")),
            depend,
            *(outcomes[name] for name in ("open", "not testable")),
        )
        numbers = [f"{agreement.comparable} of {agreement.cells}", *texts, outcomes.total(), *counts]
        lines.append(_line(f"[{markdown_cell(title)}]({path.parent.as_posix()}/)", map(str, numbers)))
    return "\n".join(lines) + "\n"


@styled()
def save_headline_png(study_dir: Path | str, out: Path | str, metric: str | None = None) -> Path:
    """Write the figure of a study: the means of every dataset above, the critical-difference diagram below.

    Parameters
    ----------
    study_dir : path
        The folder ``reports/<study>``.
    out : path
        The PNG file to write.
    metric : str, optional
        Default is the study's first primary metric.

    Returns
    -------
    Path
        ``out``.

    Raises
    ------
    ReportError
        If the study has no such metric.
    """
    report = load_report(study_dir)
    metric = _metric(report, metric)
    comparison = report.comparisons.get(metric)
    ranked = comparison if comparison is not None and comparison.cd_nemenyi is not None else None
    heights = [1.3 + 0.32 * len(report.datasets), *([ranks_height(ranked, 1.0)] if ranked else [])]
    canvas, axes = new_axes(8.4, sum(heights), len(heights), height_ratios=heights)
    direction = {"↓": " (smaller is better)", "↑": " (larger is better)"}.get(score_table(report, metric).arrow, "")
    dots(report.summaries[metric], axes[0, 0], report.titles, metric_title(metric) + direction)
    if ranked is not None:
        cd_diagram(ranked, axes[1, 0], report.titles)
    write_atomically(out, png_bytes(canvas))
    return Path(out)


def _metric(report: ReportData, metric: str | None) -> str:
    chosen = metric or next(iter(report.primary), None)
    if chosen not in report.summaries:
        raise ReportError(f"study {report.name} has no metric {metric!r}; there are {', '.join(report.metrics)}")
    return str(chosen)


def _markdown(entry: Entry) -> str:
    mean = f"**{entry.text}**" if entry.best else entry.text
    return mean + (f" ± {entry.std}" if entry.std else "") + (f" <sub>{entry.rank}</sub>" if entry.rank else "")
