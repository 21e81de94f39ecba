"""Printed numbers of a paper (``published.csv``), and our names for theirs (``names.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import pandas as pd

from multilab.core.settings import convert
from multilab.metrics import find_metric
from multilab.printed.errors import PaperError

if TYPE_CHECKING:
    from multilab.printed.errata import Erratum

KEYS = ("table", "dataset", "method", "metric")
"""Columns that identify a published cell."""
_COLUMNS = (*KEYS, "mean", "std", "direction", "printed_dataset", "printed_method")
Values = str | int | float | list[str | int | float]


class Selector(TypedDict, total=False):
    """Selector of published cells: values of columns, one or a list, or the ``location`` of a passage of the text."""

    table: Values
    dataset: Values
    method: Values
    metric: Values
    location: str


def mask(cells: pd.DataFrame, where: Mapping[str, Any]) -> pd.Series:
    """Return the rows that a selector selects.

    Parameters
    ----------
    cells : DataFrame
        With the columns :data:`KEYS`, as text.
    where : mapping
        Values of columns, one or a list; a column that is not named may have any value. A selector that only has
        ``location``, a passage of the text, selects no cell.
    """
    chosen = pd.Series(set(where) != {"location"}, index=cells.index, dtype=bool)
    for key in KEYS:
        if key in where:
            values = where[key] if isinstance(where[key], list | tuple) else [where[key]]
            chosen &= cells[key].isin([str(value) for value in values])
    return chosen


@dataclass(frozen=True)
class ColumnRule:
    """Our quantity for some published cells: a metric, under conventions of its own if named, times ``scale``."""

    where: Selector
    metric: str
    conventions: str | None = None
    scale: float = 1.0

    def quantity(self, conventions: str) -> str:
        """Return the name of the quantity in a study measured under ``conventions``.

        It is the metric's, with the preset behind a dot where that is not the study's: ``ranking_loss.mulan``.
        """
        return self.metric if self.conventions in (None, conventions) else f"{self.metric}.{self.conventions}"


@dataclass(frozen=True)
class Aliases:
    """Our names and quantities for those of a paper.

    Attributes
    ----------
    names : mapping
        ``{dataset|method|metric: {printed: ours}}``, for names that cannot be equal to those of cards and methods.
    columns : tuple of ColumnRule
        Our quantity that printed cells are compared with; the first rule that selects a cell applies.
    runs : int, optional
        Number of results in a printed mean, for its standard error; default: as many as ours.
    same_rows : tuple of dict
        Selectors of cells that were measured on the same training and test rows as ours, so the sampling error of the
        rows is not part of the spread; ``[{}]`` selects all.
    resplits : str, optional
        The study whose spread over random splits is a sampling error of results on one test set.
    """

    names: dict[Literal["dataset", "method", "metric"], dict[str, str]] = field(default_factory=dict)
    columns: tuple[ColumnRule, ...] = ()
    same_rows: tuple[Selector, ...] = ()
    runs: int | None = None
    resplits: str | None = None

    @classmethod
    def from_mapping(cls, content: Any, location: str) -> Aliases:
        """Return the aliases of the content of ``names.yaml``."""
        return convert(content, cls, location, error=PaperError)

    def named(self, cells: pd.DataFrame, conventions: str = "default") -> pd.DataFrame:
        """Return our names for published cells: columns ``dataset``, ``method``, ``quantity``, ``scale``.

        Parameters
        ----------
        cells : DataFrame
            Published cells.
        conventions : str
            The preset the study was measured under.
        """
        ours = cells[["dataset", "method"]].copy()
        for key in ("dataset", "method"):
            ours[key] = cells[key].replace(dict(self.names.get(key, {})))
        ours["quantity"] = cells["metric"].replace(dict(self.names.get("metric", {})))
        ours["scale"] = 1.0
        for column in reversed(self.columns):  # so that the first rule that selects a cell wins
            chosen = mask(cells, column.where)
            ours.loc[chosen, "quantity"] = column.quantity(conventions)
            ours.loc[chosen, "scale"] = column.scale
        return ours


@dataclass(frozen=True, eq=False)
class PublishedTables:
    """Published tables of a paper.

    Attributes
    ----------
    cells : DataFrame
        The published cells, see :func:`read_cells`.
    errata : tuple of Erratum
        What is wrong, ambiguous or not comparable in them.
    aliases : Aliases
        Our names and quantities for theirs.
    """

    cells: pd.DataFrame
    errata: tuple[Erratum, ...] = ()
    aliases: Aliases = field(default_factory=Aliases)

    def compared(self, method: str, conventions: str = "default") -> tuple[str, ...]:
        """Return our quantities, ``metric`` or ``metric.preset``, that published cells compare a method by, sorted."""
        ours = self.aliases.named(self.cells, conventions)
        names = ours.loc[ours["method"] == method, "quantity"].unique()
        return tuple(sorted(name for name in map(str, names) if find_metric(name.partition(".")[0])))

    def quantities(self, method: str, conventions: str = "default") -> tuple[tuple[str, str], ...]:
        """Return the (metric, preset) pairs a method is compared by in addition to the study's conventions, sorted."""
        parts = (name.partition(".") for name in self.compared(method, conventions))
        return tuple((metric, preset) for metric, dot, preset in parts if dot)


def read_cells(path: Path) -> pd.DataFrame:
    """Read the published cells of a paper.

    Returns
    -------
    DataFrame
        Columns table, dataset, method, metric, mean, std (NaN where the paper prints none), direction, and the texts
        as printed (``printed_mean`` keeps trailing zeros, NaN where the paper has no number). ``dataset`` and
        ``method`` are the names of the cards and of the methods' YAML files, except for those in ``names.yaml``.

    Raises
    ------
    PaperError
        If a column is missing.
    """
    cells = pd.read_csv(path, dtype={"table": str, "mean": str})
    missing = [name for name in _COLUMNS if name not in cells]
    if missing:
        location = f"papers/{path.parent.name}/{path.name}"
        raise PaperError(f"{location}: no column {', '.join(missing)}; its columns are {', '.join(_COLUMNS)}")
    return cells.assign(printed_mean=cells["mean"], mean=pd.to_numeric(cells["mean"], errors="coerce"))
