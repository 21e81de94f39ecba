"""Columns of ours in the printed tables that the paper does not have, such as all features beside a selection."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from multilab.claims import Layout
from multilab.reports.paper_parts import MARKS, Block, PaperCell
from multilab.reports.study import Study, metric_title
from multilab.reports.tables import beside_columns
from multilab.statistics import summarise

__all__ = ["with_beside"]


def with_beside(study: Study, block: Block, cells: pd.DataFrame, form: Layout, digits: int) -> Block:
    """Return a block of datasets x methods with our columns that stand beside the study's methods; none is judged."""
    metric, columns = str(cells["metric"].iloc[0]), beside_columns(study)
    if not columns or (form.row, form.column) != ("dataset", "method") or metric not in study.metrics:
        return block
    means = summarise(study.scores, metric, study.datasets, columns).mean
    names = list(dict.fromkeys(cells["dataset"]))
    if not set(study.datasets) <= set(names):
        return block
    others = [name for name in names if name not in means.index]  # the means over all of them
    table = pd.concat([means, pd.DataFrame([means.mean()] * len(others), index=others, columns=means.columns)])

    def cell(name: str, column: str, title: str) -> PaperCell:
        words, ours = (title, study.method_title(column), metric_title(metric)), f"{table.loc[name, column]:.{digits}f}"
        mark = MARKS["not printed"]
        return PaperCell((name, column, metric), words, "–", ours, "not printed", mark, "a column of ours", ())

    rows = tuple(
        (title, (*made, *(cell(name, column, title) for column in columns)))
        for name, (title, made) in zip(names, block.rows, strict=True)
    )
    heads = (*block.heads, *(study.method_title(column) for column in columns))
    return replace(block, heads=heads, rows=rows, agreeing=(*block.agreeing, *("–" for _ in columns)))
