"""What a printed cell is compared with: our names for its words, and our quantity for its column."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from multilab.claims.printed import published
from multilab.claims.selectors import mask, read_yaml

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Aliases", "Column", "Derived", "Diagrams", "aliases", "any_of", "quantities"]


@dataclass(frozen=True)
class Column:
    """Our quantity for some printed cells: a metric, under conventions of its own if named, times ``scale``."""

    where: dict[str, Any]
    metric: str
    conventions: str | None = None
    scale: float = 1.0

    def quantity(self, conventions: str) -> str:
        """Return the name of the quantity in a study measured under ``conventions``.

        It is the metric's, with the preset behind a dot where that is not the study's: ``ranking_loss.mulan``.
        """
        return self.metric if self.conventions in (None, conventions) else f"{self.metric}.{self.conventions}"


@dataclass(frozen=True)
class Derived:
    """Printed cells that follow from other cells: ``kind`` of what is in ``tables`` (default: their own table)."""

    where: dict[str, Any]
    kind: str
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagrams:
    """A printed figure of critical-difference diagrams, one per measure, of what is in ``tables``."""

    figure: str
    title: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Aliases:
    """The alias table of one paper; see ``aliases.yaml`` for the meaning of its parts."""

    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    spread: tuple[dict[str, Any], ...] = ()
    dnf: tuple[dict[str, Any], ...] = ()
    derived: tuple[Derived, ...] = ()
    diagrams: tuple[Diagrams, ...] = ()

    def named(self, cells: pd.DataFrame, conventions: str = "default") -> pd.DataFrame:
        """Return our names for printed cells: columns ``dataset``, ``method``, ``quantity``, ``scale``.

        Parameters
        ----------
        cells : DataFrame
            Printed cells.
        conventions : str
            The preset the study was measured under.
        """
        ours = cells[["dataset", "method"]].copy()
        for key in ("dataset", "method"):
            ours[key] = cells[key].replace(dict(self.words.get(key, {})))
        ours["quantity"] = cells["metric"].replace(dict(self.words.get("metric", {})))
        ours["scale"] = 1.0
        for column in reversed(self.columns):  # so that the first rule that holds wins
            chosen = mask(cells, column.where)
            ours.loc[chosen, "quantity"] = column.quantity(conventions)
            ours.loc[chosen, "scale"] = column.scale
        return ours


def any_of(cells: pd.DataFrame, selectors: Iterable[Mapping[str, Any]]) -> pd.Series:
    """Return which printed cells at least one selector holds for."""
    chosen = mask(cells, {"place": "nowhere"})
    for where in selectors:
        chosen |= mask(cells, where)
    return chosen


def aliases(paper: str) -> Aliases:
    """Return the alias table of a paper; an empty one if it needs none."""
    found = (read_yaml("aliases.yaml") or {}).get(paper) or {}
    return Aliases(
        words=found.get("words") or {},
        columns=tuple(Column(**rule) for rule in found.get("columns") or ()),
        spread=tuple(found.get("spread") or ()),
        dnf=tuple(found.get("dnf") or ()),
        derived=tuple(
            Derived(rule["where"], rule["kind"], tuple(map(str, rule.get("tables", ()))))
            for rule in found.get("derived") or ()
        ),
        diagrams=tuple(
            Diagrams(str(rule["figure"]), rule["title"], tuple(map(str, rule["tables"])))
            for rule in found.get("diagrams") or ()
        ),
    )


@functools.cache
def quantities(paper: str, method: str, conventions: str = "default") -> tuple[tuple[str, str], ...]:
    """Return what a method must be measured by, beyond the study's conventions, to be held against a paper.

    Returns
    -------
    tuple of (metric, preset)
        Sorted; empty for a method the paper does not print.
    """
    cells = published(paper)
    ours = aliases(paper).named(cells, conventions)
    names = ours.loc[ours["method"] == method, "quantity"].unique()
    return tuple(sorted((m, preset) for m, dot, preset in (str(name).partition(".") for name in names) if dot))
