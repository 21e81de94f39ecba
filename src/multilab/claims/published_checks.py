"""Checks of which of our columns is nearest to the published cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from multilab.claims.checks import check
from multilab.claims.errors import ClaimsError
from multilab.claims.evidence import Evidence, Finding

_TIE = 1e-12


@check(
    "By {metrics}, on {datasets}: our {method} is nearer to the published {printed} than each of {others}, in at least "
    "{at_least} cells; a cell is one dataset and one measure."
)
def nearer_to_published(
    evidence: Evidence,
    printed: str,
    method: str,
    others: Sequence[str] | Mapping[str, str],
    metrics: Sequence[str] | Mapping[str, str],
    datasets: Sequence[str],
    at_least: int,
) -> Finding:
    """Holds if in enough cells one of our columns is nearer to the published number than each of the others.

    Parameters
    ----------
    evidence : Evidence
        Our results, with the published cells.
    printed : str
        The published method.
    method : str
        Our column.
    others : sequence of str or mapping of str to str
        Our other columns; a mapping has our quantity of each, where that is not the one of ``method``.
    metrics : sequence of str or mapping of str to str
        Published metrics; a mapping has our quantity for each.
    datasets : sequence of str
    at_least : int
        In how many cells, datasets x metrics. A tie is not nearer. The numbers have the median relative gaps.

    Raises
    ------
    ClaimsError
        Without another column.
    """
    quantities = metrics if isinstance(metrics, Mapping) else {metric: metric for metric in metrics}
    columns: list[tuple[str, str | None]] = [(method, None)]
    columns += others.items() if isinstance(others, Mapping) else [(other, None) for other in others]
    if len(columns) < 2:
        raise ClaimsError("check nearer_to_published: `others` names at least one column")
    cells = {metric: evidence.printed(printed, metric, datasets)["mean"] for metric in quantities}
    published = pd.concat(cells)
    own, *rest = ((_ours(evidence, column, quantities, datasets) - published).abs() for column in columns)
    near = pd.concat([other - own > _TIE for other in rest], axis=1).all(axis=1)
    numbers: dict[str, object] = {"nearer": int(near.sum()), "cells": len(near)}
    if not near.all():
        names = [f"{metric} on {dataset}" if len(cells) > 1 else dataset for metric, dataset in near.index[~near]]
        numbers["not nearer"] = ", ".join(names)
    for column, gaps in zip(columns, (own, *rest), strict=True):
        numbers[f"median gap of {_title(*column)}"] = f"{(gaps / published.abs()).median():.2%}"
    return Finding.of(int(near.sum()) >= at_least, numbers)


def _title(column: str, quantity: str | None) -> str:
    return f"{column} by {quantity}" if quantity else column


def _ours(
    evidence: Evidence, column: tuple[str, str | None], quantities: Mapping[str, str], datasets: Sequence[str]
) -> pd.Series:
    """Return our means of a column, by published metric and dataset; its own quantity replaces those of the metrics."""
    name, own = column
    parts = {metric: evidence.means(own or quantity, [name], datasets)[name] for metric, quantity in quantities.items()}
    return pd.concat(parts)
