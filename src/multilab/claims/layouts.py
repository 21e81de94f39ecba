"""How a paper lays out its printed tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from multilab.claims.errors import ClaimsError
from multilab.claims.selectors import read_yaml

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Layout", "layout"]

_KEYS = {"dataset", "method", "metric"}


@dataclass(frozen=True)
class Layout:
    """Title of a printed table, and what runs over its blocks, rows and columns.

    ``block`` is ``dataset``, ``method``, ``metric`` or, where one block has all cells, empty. ``method`` is what stands
    in the place of methods.
    """

    title: str
    block: str
    row: str
    column: str
    method: str = "Method"


def layout(paper: str | None, table: str, cells: pd.DataFrame) -> Layout:
    """Return the layout of one table of a paper: what ``tables.yaml`` says, else what its cells suggest.

    Parameters
    ----------
    paper : str or None
        Name of the paper, if it is known.
    table : str
        Its number as printed.
    cells : DataFrame
        The table's cells: columns dataset, method, metric.

    Raises
    ------
    ClaimsError
        If ``tables.yaml`` names axes that are not the three.
    """
    said = ((read_yaml("tables.yaml") or {}).get(paper) or {}).get(table) or {}
    title, method = str(said.get("title", "")), str(said.get("method", "Method"))
    if "axes" in said:
        if set(said["axes"]) != _KEYS:
            raise ClaimsError(f"tables.yaml, {paper}, {table}: axes are dataset, method and metric, each once")
        block, row, column = said["axes"]
        return Layout(title, block, row, column, method)
    if cells["method"].nunique() == 1:
        return Layout(title, "", "dataset", "metric", method)
    if cells["dataset"].nunique() == 1:
        return Layout(title, "", "method", "metric", method)
    return Layout(title, "metric", "dataset", "method", method)
