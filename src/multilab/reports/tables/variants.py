"""Table of the variants of a study: the same methods with other settings or tuned, compared with its own."""

from __future__ import annotations

from dataclasses import replace

from multilab.reports.data import ReportData, VariantData, load_comparisons, metric_direction, metric_title
from multilab.reports.tables.entry import ARROWS, Entry, Row, TextTable, number, signed_text
from multilab.statistics.result_files import statistics_file, variant_column


def variant_table(report: ReportData) -> TextTable | None:
    """Return each column of a variant by the headline metric: mean, rank in its variant, difference to the own column.

    Columns are compared on the data sets and splits of their variant. ``None`` for a study without variants.
    """
    metric = report.primary[0]
    rows = tuple(row for variant in report.variants for row in _rows(report, variant, metric))
    title = f"{metric_title(metric)} {ARROWS[metric_direction(metric)]}".strip()
    heads = ("Data sets", title, "Average rank", "Difference", "Better on", "Worse on")
    return TextTable("Variant", heads, rows) if rows else None


def variant_report(report: ReportData, variant: VariantData) -> ReportData:
    """Return a variant as a study of its own, so that the tables of a study can be used."""
    board = replace(report.board, datasets=variant.datasets, methods=tuple(variant.methods))
    control = variant_column(str(report.info.get("control")), variant.name)
    return replace(
        report,
        info={**report.info, "method_titles": variant.titles, "variants": {}},
        board=board,
        comparisons=load_comparisons(report.folder / statistics_file(variant.name), report.info, board, control),
    )


def _rows(report: ReportData, variant: VariantData, metric: str) -> list[Row]:
    own, report = variant_report(report, variant), _on_the_splits_of(report, variant)
    comparison = own.comparisons.get(metric)
    means, main = own.summaries[metric].mean, report.summaries[metric].mean
    sign = -1 if metric_direction(metric) == "min" else 1
    rows = []
    for column, base in variant.methods.items():
        rank = comparison.ranks.get(column) if comparison is not None and comparison.k > 1 else None
        place = "–" if rank is None or comparison is None else f"{rank:.2f} of {comparison.k}"
        entries = [Entry(str(len(variant.datasets))), Entry(number(means[column].mean())), Entry(place)]
        change = (means[column] - main[base].reindex(means.index)).dropna() if base in main else means[column][:0]
        if len(change):
            gain = sign * float(change.mean())
            better, worse = int((sign * change > 0).sum()), int((sign * change < 0).sum())
            entries.append(Entry(signed_text(float(change.mean()), 4), gain=(gain > 0) - (gain < 0)))
            entries += [Entry(str(better)), Entry(str(worse))]
        else:
            entries += [Entry("–")] * 3
        rows.append((f"{own.method_title(column)} ({variant.title})", tuple(entries)))
    return rows


def _on_the_splits_of(report: ReportData, variant: VariantData) -> ReportData:
    """Return the report with the means of the splits that a variant was run on, if it was not run on all."""
    scores = report.scores
    run = scores[scores["method"].isin(list(variant.methods))].set_index(["dataset", "split"]).index.unique()
    elsewhere = scores["dataset"].isin(variant.datasets) & ~scores.set_index(["dataset", "split"]).index.isin(run)
    if not elsewhere.any():
        return report
    return replace(report, board=replace(report.board, scores=scores[~elsewhere]))
