"""Published tables of a paper: their cells, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from multilab.claims.erratum import Erratum
from multilab.claims.errors import ClaimsError
from multilab.claims.layouts import Layout, layout_of
from multilab.claims.naming import Aliases
from multilab.claims.verdicts import judge
from multilab.metrics import find_metric

_COLUMNS = ("table", "dataset", "method", "metric", "mean", "std", "direction", "printed_dataset", "printed_method")


@dataclass(frozen=True, eq=False)
class PublishedTables:
    """Published tables of a paper.

    Attributes
    ----------
    paper : str
        Name of the paper.
    cells : DataFrame
        The published cells, see :func:`read_cells`.
    errata : tuple of Erratum
        What is wrong, ambiguous or not comparable in them.
    aliases : Aliases
        Our names and quantities for theirs.
    layouts : mapping of str to dict
        Titles and axes by number of the table, see :func:`~multilab.claims.layouts.check_layouts`.
    """

    paper: str
    cells: pd.DataFrame
    errata: tuple[Erratum, ...] = ()
    aliases: Aliases = field(default_factory=Aliases)
    layouts: Mapping[str, dict] = field(default_factory=dict)

    def layout(self, table: str, cells: pd.DataFrame) -> Layout:
        """Return the layout of one table from its cells."""
        return layout_of(self.layouts.get(table) or {}, cells)

    def compared(self, method: str, conventions: str = "default") -> tuple[str, ...]:
        """Return our quantities, ``metric`` or ``metric.preset``, that published cells compare a method by, sorted."""
        ours = self.aliases.named(self.cells, conventions)
        names = ours.loc[ours["method"] == method, "quantity"].unique()
        return tuple(sorted(name for name in map(str, names) if find_metric(name.partition(".")[0])))

    def quantities(self, method: str, conventions: str = "default") -> tuple[tuple[str, str], ...]:
        """Return the (metric, preset) pairs a method is compared by in addition to the study's conventions, sorted."""
        parts = (name.partition(".") for name in self.compared(method, conventions))
        return tuple((metric, preset) for metric, dot, preset in parts if dot)

    def judge(
        self, ours: pd.DataFrame, conventions: str = "default", unavailable: Mapping[str, str] | None = None
    ) -> pd.DataFrame:
        """Return the verdict on every published cell, see :func:`multilab.claims.judge`."""
        return judge(self.cells, ours, self.errata, self.aliases, conventions, unavailable)


def read_cells(path: Path) -> pd.DataFrame:
    """Read the published cells of a paper.

    Returns
    -------
    DataFrame
        Columns table, dataset, method, metric, mean, std (NaN where the paper prints none), direction, and the texts
        as printed (``printed_mean`` keeps trailing zeros, NaN where the paper has no number). ``dataset`` and
        ``method`` are the names of the cards and of the methods' YAML files, but for those in ``names.yaml``.

    Raises
    ------
    ClaimsError
        If a column is missing.
    """
    cells = pd.read_csv(path, dtype={"table": str, "mean": str})
    missing = [name for name in _COLUMNS if name not in cells]
    if missing:
        location = f"papers/{path.parent.name}/{path.name}"
        raise ClaimsError(f"{location}: no column {', '.join(missing)}; its columns are {', '.join(_COLUMNS)}")
    return cells.assign(printed_mean=cells["mean"], mean=pd.to_numeric(cells["mean"], errors="coerce"))
