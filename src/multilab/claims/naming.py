"""Our names and quantities for those of a paper (``names.yaml``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from multilab.claims.errors import ClaimsError, check_keys
from multilab.claims.selectors import check_selector, mask

if TYPE_CHECKING:
    import pandas as pd

Rule = TypeVar("Rule")


@dataclass(frozen=True)
class ColumnRule:
    """Our quantity for some published cells: a metric, under conventions of its own if named, times ``scale``."""

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
    """Published cells that follow from others: a statistic, ``kind``, of ``tables`` (default: their own table)."""

    where: dict[str, Any]
    kind: str
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagrams:
    """A figure of critical-difference diagrams, one per metric, over the datasets of some ``tables``."""

    figure: str
    title: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Aliases:
    """Our names and quantities for those of a paper.

    Attributes
    ----------
    names : mapping
        ``{dataset|method|metric: {printed: ours}}``, for names that cannot be equal to those of cards and methods.
    columns : tuple of Column
        Our quantity that published cells are compared with; the first rule that selects a cell holds.
    spread : tuple of dict
        Selectors of cells whose standard deviation is a spread of data, not an uncertainty: they cannot be ``within``.
    dnf : tuple of dict
        Selectors of cells without a number because the method did not finish for the authors either.
    derived : tuple of Derived
        Cells that follow from our values in other cells.
    diagrams : tuple of Diagrams
        Figures of critical-difference diagrams.
    runs : int, optional
        How many results a printed mean is of, for its standard error; default as many as ours.
    resplits : str, optional
        The study whose spread over random splits is a sampling error of results on one test set.
    """

    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    columns: tuple[ColumnRule, ...] = ()
    spread: tuple[dict[str, Any], ...] = ()
    dnf: tuple[dict[str, Any], ...] = ()
    derived: tuple[Derived, ...] = ()
    diagrams: tuple[Diagrams, ...] = ()
    runs: int | None = None
    resplits: str | None = None

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any], location: str) -> Aliases:
        """Return the aliases of the content of ``names.yaml``.

        Raises
        ------
        ClaimsError
            Naming the key that is wrong.
        """
        check_keys(location, "names.yaml", content, [field.name for field in fields(cls)])
        names = content.get("names") or {}
        check_keys(f"{location}: names", "names", names, ("dataset", "method", "metric"))
        for key in ("spread", "dnf"):
            for where in content.get(key) or ():
                check_selector(where, f"{location}: {key}")
        return cls(
            names=names,
            columns=_rules(ColumnRule, content.get("columns"), f"{location}: columns"),
            spread=tuple(content.get("spread") or ()),
            dnf=tuple(content.get("dnf") or ()),
            derived=_rules(Derived, content.get("derived"), f"{location}: derived"),
            diagrams=_rules(Diagrams, content.get("diagrams"), f"{location}: diagrams"),
            runs=content.get("runs"),
            resplits=content.get("resplits"),
        )

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


def _rules(kind: type[Rule], blocks: Any, location: str) -> tuple[Rule, ...]:
    """Return the rules of one kind; table numbers become text."""
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    rules = []
    for block in blocks or ():
        check_keys(location, location.rpartition(" ")[2], block, known)
        if "where" in known:
            check_selector(block.get("where"), location)
        texts = {"tables": tuple(map(str, block["tables"]))} if "tables" in block else {}
        try:
            rules.append(kind(**{**block, **texts, **({"figure": str(block["figure"])} if "figure" in block else {})}))
        except TypeError as error:
            raise ClaimsError(f"{location}: {dict(block)}: {error}") from None
    return tuple(rules)


def any_of(cells: pd.DataFrame, selectors: Iterable[Mapping[str, Any]]) -> pd.Series:
    """Return the published cells that at least one selector selects."""
    chosen = mask(cells, {"location": "nowhere"})
    for where in selectors:
        chosen |= mask(cells, where)
    return chosen


def decimals(printed: str) -> int:
    """Return the number of decimals of a printed number."""
    return len(printed.partition(".")[2])


def half_unit(printed: str | float) -> float:
    """Return half a unit of the last decimal of a number as printed; a value halfway between two is near both."""
    return 0.5 * 10.0 ** -decimals(str(printed)) * (1 + 1e-9)
