"""Our columns in published tables that the paper does not have, such as all features next to a selection."""

from dataclasses import replace

import pandas as pd

from multilab.claims import Layout
from multilab.reports.data import ReportData, metric_title
from multilab.reports.paper.cells import Block, PaperCell
from multilab.statistics import summarise


def with_extra_columns(report: ReportData, block: Block, cells: pd.DataFrame, layout: Layout, decimals: int) -> Block:
    """Return a block of datasets x methods with the columns of variants shown in the main tables; none is judged."""
    metric, columns = str(cells["metric"].iloc[0]), report.extra_columns
    if not columns or (layout.row, layout.column) != ("dataset", "method") or metric not in report.metrics:
        return block
    means = summarise(report.scores, metric, report.datasets, columns).mean
    names = list(dict.fromkeys(cells["dataset"]))
    if not set(report.datasets) <= set(names):
        return block
    others = [name for name in names if name not in means.index]  # the means over all of them
    table = pd.concat([means, pd.DataFrame([means.mean()] * len(others), index=others, columns=means.columns)])

    def cell(name: str, column: str, title: str) -> PaperCell:
        names = title, report.method_title(column), metric_title(metric)
        ours = f"{table.loc[name, column]:.{decimals}f}"
        return PaperCell((name, column, metric), names, "–", ours, "not printed", "an extra column of the study")

    rows = tuple(
        (title, (*row, *(cell(name, column, title) for column in columns)))
        for name, (title, row) in zip(names, block.rows, strict=True)
    )
    heads = (*block.heads, *(report.method_title(column) for column in columns))
    return replace(block, heads=heads, rows=rows, agreeing=(*block.agreeing, *("–" for _ in columns)))
