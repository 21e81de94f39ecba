"""Data sets of the arena that are most like given data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from multilab.arena.errors import ArenaError

__all__ = ["DataProfile", "nearest_sets"]


@dataclass(frozen=True)
class DataProfile:
    """Size and kind of a multi-label data set.

    Parameters
    ----------
    rows, features, labels : int
        n, d and q.
    cardinality : float
        Mean number of relevant labels per row.
    density : float
        ``cardinality / labels``.
    text : bool
        Whether the features count or weight the terms of a text.

    Raises
    ------
    ArenaError
        If a number is not finite and above 0.

    Examples
    --------
    >>> from multilab.arena import DataProfile
    >>> DataProfile(rows=593, features=72, labels=6, cardinality=1.868, density=0.311, text=False).coordinates[-1]
    0.0
    """

    rows: float
    features: float
    labels: float
    cardinality: float
    density: float
    text: bool

    def __post_init__(self) -> None:
        for name in ("rows", "features", "labels", "cardinality", "density"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ArenaError(f"`{name}` must be a finite number above 0, got {value}")

    @property
    def coordinates(self) -> tuple[float, ...]:
        """Natural logarithms of the five numbers, and 1.0 for text, 0.0 else."""
        numbers = (self.rows, self.features, self.labels, self.cardinality, self.density)
        return (*(math.log(value) for value in numbers), float(self.text))


def nearest_sets(
    profile: DataProfile, profiles: Mapping[str, DataProfile], n_sets: int = 5
) -> tuple[tuple[str, float], ...]:
    """Return the sets that are most like given data, with their distances.

    The distance is Euclidean in the six coordinates of :attr:`DataProfile.coordinates`, each divided by its standard
    deviation over the sets (divisor: number of sets); a coordinate in which all sets agree is left out. The page
    of the arena computes the same.

    Parameters
    ----------
    profile : DataProfile
        The given data.
    profiles : mapping of str to DataProfile
        The sets.
    n_sets : int
        How many to return; all if there are fewer.

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
    >>> sets = {"small": DataProfile(100, 10, 5, 1.0, 0.2, False), "large": DataProfile(9000, 900, 50, 2.0, 0.04, True)}
    >>> nearest_sets(DataProfile(100, 10, 5, 1.0, 0.2, False), sets, n_sets=1)
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
