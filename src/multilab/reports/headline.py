"""What a README shows of a study: one table in Markdown and one picture; and of all studies: what holds."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pandas as pd

from multilab.claims.verdicts import compared
from multilab.ground import write_atomically
from multilab.reports.drawing import new_figure, png_bytes, styled
from multilab.reports.errors import ReportError
from multilab.reports.figures import cd_diagram, dots
from multilab.reports.finding import finding
from multilab.reports.study import Study, load_study, metric_title
from multilab.reports.tables import MANY_METHODS, Cell, ScoreTable, method_rows, score_table

__all__ = ["finding_text", "headline_markdown", "ledger_markdown", "save_headline_png"]


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
    study = load_study(study_dir)
    table = score_table(study, _metric(study, metric))
    if len(table.heads) > MANY_METHODS:
        return _by_method(table)
    lines = [
        f"| {table.title} {table.arrow} | " + " | ".join(_escape(head) for head in table.heads) + " |",
        "|:---|" + "---:|" * len(table.heads),
    ]
    lines += [f"| {_escape(d)} | " + " | ".join(_markdown(cell) for cell in cells) + " |" for d, cells in table.rows]
    if table.average_ranks:
        lines.append("| *average rank* | " + " | ".join(_markdown(cell) for cell in table.average_ranks) + " |")
    return "\n".join(lines) + "\n"


def _by_method(table: ScoreTable) -> str:
    ranked = bool(table.average_ranks)
    heads = [f"{table.title} {table.arrow}", *(["*average rank*"] if ranked else []), *(d for d, _ in table.rows)]
    lines = ["| " + " | ".join(map(_escape, heads)) + " |", "|:---|" + "---:|" * (len(heads) - 1)]
    for row in method_rows(table):
        cells = [row.average_rank, *row.cells] if row.average_rank else row.cells
        lines.append(f"| {_escape(row.head)} | " + " | ".join(_markdown(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def finding_text(study_dir: Path | str) -> str:
    """Return the finding of a study as one paragraph, empty if its methods are not ranked."""
    return " ".join(finding(load_study(study_dir)))


def ledger_markdown(reports: Path | str) -> str:
    """Return what the studies of papers found as a Markdown table: printed cells that agree, claims that hold.

    Parameters
    ----------
    reports : path
        The folder of the studies' folders; those without ``claims.json`` are left out.
    """
    lines = [
        "| study | printed cells | can be compared | agree | ours better | ours worse | claims | hold | fail |",
        "|:---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for path in sorted(Path(reports).glob("*/claims.json")):
        outcomes = Counter(claim["outcome"] for claim in json.loads(path.read_text(encoding="utf-8")))
        if not outcomes:
            continue
        title = json.loads((path.parent / "study.json").read_text(encoding="utf-8"))["title"]
        verdicts = pd.read_csv(path.parent / "cells.csv")["verdict"]
        known, printed, agree, share = compared(verdicts)
        counts = Counter(verdicts)
        cells = f"{printed} | {known} | " + (
            f"{agree} ({share}) | {counts['better']} | {counts['worse']}" if known else "– | – | –"
        )
        told = f"{outcomes.total()} | {outcomes['holds']} | {outcomes['fails']}"
        lines.append(f"| [{_escape(title)}]({path.parent.as_posix()}/) | {cells} | {told} |")
    return "\n".join(lines) + "\n"


def save_headline_png(study_dir: Path | str, out: Path | str, metric: str | None = None) -> Path:
    """Write the picture of a study: every dataset's means above, the critical-difference diagram below.

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
    study = load_study(study_dir)
    chosen = _metric(study, metric)
    comparison = study.comparisons.get(chosen)
    diagram = comparison is not None and comparison.cd_nemenyi is not None
    above = 1.3 + 0.32 * len(study.datasets)
    below = 1.0 + 0.24 * math.ceil(len(study.methods) / 2) + 0.1 * len(comparison.groups) if comparison else 0.0
    with styled():
        figure = new_figure(8.4, above + (below if diagram else 0))
        axes = figure.subplots(2 if diagram else 1, 1, squeeze=False, height_ratios=[above, below] if diagram else None)
        arrow = score_table(study, chosen).arrow
        words = {"↓": " (smaller is better)", "↑": " (larger is better)"}.get(arrow, "")
        dots(study.summaries[chosen], axes[0, 0], study.titles, metric_title(chosen) + words)
        if diagram and comparison is not None:
            cd_diagram(comparison, axes[1, 0], study.titles)
        write_atomically(out, png_bytes(figure))
    return Path(out)


def _metric(study: Study, metric: str | None) -> str:
    chosen = metric or next(iter(study.primary), None)
    if chosen not in study.summaries:
        raise ReportError(f"study {study.name} has no metric {metric!r}; there are {', '.join(study.metrics)}")
    return str(chosen)


def _markdown(cell: Cell) -> str:
    mean = f"**{cell.mean}**" if cell.best else cell.mean
    return mean + (f" ± {cell.std}" if cell.std else "") + (f" <sub>{cell.rank}</sub>" if cell.rank else "")


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
