"""Errata of a paper: what is wrong, ambiguous or not comparable in its printed numbers and formulas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from multilab.core.settings import convert
from multilab.printed.errors import PaperError
from multilab.printed.published import KEYS, Selector


@dataclass(frozen=True)
class Erratum:
    """An erratum of a paper.

    Attributes
    ----------
    id : str
        Its name: begins with that of the paper, and has no spaces.
    where : dict
        Selector of printed numbers (see :func:`multilab.printed.published.mask`), or ``{location: passage}``.
    printed, right, why : str
        The printed text or number, the right one, and how that is known.
    effect : {"not_comparable", "not_read", "note"}
        Whether the numbers can be compared with ours; ``not_read``: they are printed, but not in ``published.csv``.
    """

    id: str
    where: Selector = field(default_factory=Selector)
    printed: str = ""
    right: str = ""
    why: str = ""
    effect: Literal["not_comparable", "not_read", "note"] = "note"


def read_errata(entries: Iterable[Any], location: str) -> tuple[Erratum, ...]:
    """Return the errata of the entries of ``errata.yaml``, in its order.

    An entry with ``values`` describes one erratum per value: the keys of the value replace those of the entry, and the
    id gets the names of its cell, or its number where it is about several.

    Raises
    ------
    PaperError
        If an entry is not well formed, or two have the same id.
    """
    errata = tuple(erratum for entry in entries for erratum in _expanded(entry, location))
    ids = [one.id for one in errata]
    if repeated := next((name for name in ids if ids.count(name) > 1), None):
        raise PaperError(f"{location}: two entries have the id {repeated!r}")
    return errata


def _expanded(entry: Any, location: str) -> list[Erratum]:
    if not isinstance(entry, Mapping) or "values" not in entry:
        return [_erratum(entry, location)]
    errata = []
    shared = {key: value for key, value in entry.items() if key != "values"}
    for number, value in enumerate(entry["values"], 1):
        where = {**(entry.get("where") or {}), **{key: value[key] for key in KEYS if key in value}}
        names = [where[key] for key in ("dataset", "metric", "method") if key in where]
        suffix = "-".join(names).replace(" ", "_") if all(isinstance(name, str) for name in names) else str(number)
        own = {key: item for key, item in value.items() if key not in KEYS}
        errata.append(_erratum({**shared, **own, "where": where, "id": f"{entry.get('id')}/{suffix}"}, location))
    return errata


def _erratum(entry: Any, location: str) -> Erratum:
    at = f"{location}: {entry.get('id', 'erratum')}" if isinstance(entry, Mapping) else location
    return convert(entry, Erratum, at, error=PaperError)
