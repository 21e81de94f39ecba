"""Layouts of the published tables (``layout.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multilab.claims.errors import ClaimsError, check_keys

if TYPE_CHECKING:
    import pandas as pd

_AXES = ("dataset", "method", "metric")


@dataclass(frozen=True)
class Layout:
    """Title of a published table, and the axes of its blocks, rows and columns.

    ``block`` is ``dataset``, ``method``, ``metric`` or, where one block has all cells, empty. ``method`` is the heading
    of methods.
    """

    title: str
    block: str
    row: str
    column: str
    method: str = "Method"


def check_layouts(content: Mapping[str, Any], location: str) -> dict[str, dict[str, Any]]:
    """Return the layouts of ``layout.yaml`` by number of the table.

    A layout has a ``title``, ``axes`` (which of dataset, method and metric runs over blocks, rows and columns) and
    ``method`` (the heading of methods), all optional.

    Raises
    ------
    ClaimsError
        For another key, or axes that are not the three.
    """
    if not isinstance(content, Mapping):
        raise ClaimsError(f"{location}: expected layouts by number of the table, got {content!r}")
    for table, block in content.items():
        check_keys(f"{location}: table {table}", "a layout", block, ("title", "axes", "method"))
        if "axes" in block and sorted(block["axes"]) != sorted(_AXES):
            raise ClaimsError(f"{location}: table {table}: axes are dataset, method and metric, each once")
    return {str(table): dict(block) for table, block in content.items()}


def layout_of(block: Mapping[str, Any], cells: pd.DataFrame) -> Layout:
    """Return the layout of one table: that of ``layout.yaml``, else the one that suits its cells.

    With several datasets and methods that is a block per metric of datasets x methods; with one dataset methods x
    metrics; with one method datasets x metrics.

    Parameters
    ----------
    block : mapping
        Its entry in ``layout.yaml``.
    cells : DataFrame
        The table's cells: columns dataset, method, metric.
    """
    title, method = str(block.get("title", "")), str(block.get("method", "Method"))
    if "axes" in block:
        block_axis, row, column = block["axes"]
        return Layout(title, block_axis, row, column, method)
    if cells["method"].nunique() == 1:
        return Layout(title, "", "dataset", "metric", method)
    if cells["dataset"].nunique() == 1:
        return Layout(title, "", "method", "metric", method)
    return Layout(title, "metric", "dataset", "method", method)
