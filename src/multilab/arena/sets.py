"""Datasets of the arena: chosen by name, pattern, domain or size, by source, and those most like given data."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from multilab.arena.tracks import ArenaError
from multilab.core.messages import unknown_name

_COMPARED = re.compile(r"(\w+)(<=|>=|<|>)(\d+(?:\.\d+)?)")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FACTS = ("n", "d", "q", "cardinality", "density")
"""Facts of a dataset that are compared with a number: rows, features, labels, labels per row, the same per label."""


def select_sets(facts: Iterable[Mapping[str, Any]], wanted: str) -> list[str]:
    """Return the names of the datasets that match an expression.

    Parameters
    ----------
    facts : iterable of mapping
        One per dataset: ``name``, ``domain`` (``text``, ``image``, ...) and the numbers :data:`FACTS`.
    wanted : str
        Comma-separated names, patterns (``yahoo-*``) and domains, of which one must match; conditions such as
        ``n<2000`` or ``q>=20`` must all hold.

    Raises
    ------
    ArenaError
        If a name or fact is unknown, or no dataset matches.

    Examples
    --------
    >>> from multilab.arena import select_sets
    >>> facts = [{"name": "enron", "domain": "text", "n": 1702}, {"name": "yeast", "domain": "biology", "n": 2417}]
    >>> select_sets(facts, "text,n<2000")
    ['enron']
    """
    facts = list(facts)
    names, conditions = [], []
    for part in filter(None, (part.strip() for part in wanted.split(","))):
        match = _COMPARED.fullmatch(part)
        if match is None:
            names.append(part)
        elif match[1] not in FACTS:
            raise ArenaError(unknown_name("fact of a dataset", match[1], FACTS))
        else:
            conditions.append((match[1], _OPERATORS[match[2]], float(match[3])))
    if not names and not conditions:
        raise ArenaError(f"sets={wanted!r} names no dataset")
    for name in names:
        if not any(_named(card, name) for card in facts):
            choices = sorted({str(card.get("domain")) for card in facts}) + [card["name"] for card in facts]
            raise ArenaError(unknown_name("dataset or domain", name, choices))
    chosen = [
        str(card["name"])
        for card in facts
        if (not names or any(_named(card, name) for name in names))
        and all(card.get(fact) is not None and compare(card[fact], limit) for fact, compare, limit in conditions)
    ]
    if not chosen:
        raise ArenaError(f"no dataset matches {wanted!r}")
    return chosen


def sources_of(facts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the source of each dataset from its facts: related ones have the same, others their own name."""
    return {card["name"]: card.get("source", card["name"]) for card in facts}


def _named(facts: Mapping[str, Any], name: str) -> bool:
    return facts.get("domain") == name or fnmatchcase(facts["name"], name)


@dataclass(frozen=True)
class DataProfile:
    """Size of a multi-label dataset.

    Parameters
    ----------
    rows, features, labels : int

    Raises
    ------
    ArenaError
        If a number is not finite and above 0.

    Examples
    --------
    >>> from multilab.arena import DataProfile
    >>> round(DataProfile(rows=593, features=72, labels=6).coordinates[0], 3)
    6.385
    """

    rows: float
    features: float
    labels: float

    def __post_init__(self) -> None:
        for name in ("rows", "features", "labels"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ArenaError(f"`{name}` must be a finite number above 0, got {value}")

    @property
    def coordinates(self) -> tuple[float, ...]:
        """Natural logarithms of the three numbers."""
        return tuple(math.log(value) for value in (self.rows, self.features, self.labels))


def nearest_sets(
    profile: DataProfile, profiles: Mapping[str, DataProfile], n_sets: int = 5
) -> tuple[tuple[str, float], ...]:
    """Return the sets that are most like given data, with their distances.

    The distance is Euclidean in the three coordinates of :attr:`DataProfile.coordinates`, each divided by its standard
    deviation over the sets (divisor: number of sets); a coordinate in which all sets agree is left out. The page
    of the arena computes the same.

    Parameters
    ----------
    profile : DataProfile
        The given data.
    profiles : mapping of str to DataProfile
        The sets.
    n_sets : int
        Number of sets to return; all if there are fewer.

    Returns
    -------
    tuple of (str, float)
        Name and distance (9 decimals), the nearest first, equal distances in the order of the names.

    Raises
    ------
    ArenaError
        If ``n_sets`` is below 1 or there are no sets.

    Examples
    --------
    >>> from multilab.arena import DataProfile, nearest_sets
    >>> sets = {"small": DataProfile(100, 10, 5), "large": DataProfile(9000, 900, 50)}
    >>> nearest_sets(DataProfile(100, 10, 5), sets, n_sets=1)
    (('small', 0.0),)
    """
    if n_sets < 1:
        raise ArenaError(f"`n_sets` must be >= 1, got {n_sets}")
    if not profiles:
        raise ArenaError("`profiles` is empty: there is no set to compare with")
    columns = list(zip(*(item.coordinates for item in profiles.values()), strict=True))
    scales = [_deviation(column) for column in columns]
    distances = [(round(_distance(profile, item, scales), 9), name) for name, item in profiles.items()]
    return tuple((name, distance) for distance, name in sorted(distances)[:n_sets])


def _deviation(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def _distance(a: DataProfile, b: DataProfile, scales: Sequence[float]) -> float:
    pairs = zip(a.coordinates, b.coordinates, scales, strict=True)
    return math.sqrt(math.fsum(((x - y) / scale) ** 2 for x, y, scale in pairs if scale > 1e-12))
