"""Tables and diagrams of a study for a paper: LaTeX and PDF files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from multilab.core import write_atomically
from multilab.reports.data import ReportData, load_report, metric_title
from multilab.reports.figures.diagrams import rank_pdf
from multilab.reports.sections import convention
from multilab.reports.tables.latex import latex_table
from multilab.reports.tables.scores import rank_table, score_table
from multilab.reports.tables.variants import variant_report


def write_paper_files(study_dir: Path | str, out: Path | str) -> list[Path]:
    """Write the tables of a study as LaTeX and its critical-difference diagrams as PDF, and return the files.

    Parameters
    ----------
    study_dir : path
        The folder ``reports/<study>``.
    out : path
        The folder to write: ``scores-METRIC.tex``, data sets by methods (methods by data sets if there are more than
        eight methods), ``ranks.tex`` with the average ranks, Friedman's test and critical differences, and
        ``ranks-METRIC.pdf``. A variant that compares methods has a folder of its own, for the primary metrics.

    Raises
    ------
    ReportError
        If the results are missing or contradict each other.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> columns = ["dataset", "split", "method", "metric", "value"]
    >>> rows = [("a", 0, "x", "hamming_loss", 0.1), ("a", 0, "y", "hamming_loss", 0.2)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame(rows, columns=columns).to_csv(Path(folder) / "scores.csv.gz", index=False)
    ...     [path.name for path in write_paper_files(folder, Path(folder) / "paper")]
    ['scores-hamming_loss.tex', 'ranks-hamming_loss.pdf', 'ranks.tex']
    """
    report = load_report(study_dir)
    written = _write(report, Path(out), report.metrics)
    for variant in report.variants:
        if len(variant.methods) > 1:
            written += _write(variant_report(report, variant), Path(out) / variant.name, report.primary)
    return written


def _write(report: ReportData, out: Path, metrics: Iterable[str]) -> list[Path]:
    written = []
    out.mkdir(parents=True, exist_ok=True)
    for metric in metrics:
        table, title = score_table(report, metric), metric_title(metric)
        spread = ", with standard deviations" if table.spread else ""
        caption = f"{title}{spread}. {convention(report, metric)} Best in bold."
        path = out / f"scores-{metric}.tex"
        write_atomically(path, latex_table(table, caption, f"tab:{report.name}-{metric}"))
        written.append(path)
        comparison = report.comparisons.get(metric)
        if comparison is not None and comparison.cd_nemenyi is not None:
            path = out / f"ranks-{metric}.pdf"
            write_atomically(path, rank_pdf(comparison, report.titles))
            written.append(path)
    if ranks := rank_table(report):
        caption = (
            "Average ranks over the data sets, 1 is best, by metric; the tests of Friedman and of Iman and Davenport; "
            "Nemenyi's critical difference."
        )
        path = out / "ranks.tex"
        write_atomically(path, latex_table(ranks, caption, f"tab:{report.name}-ranks"))
        written.append(path)
    return written
