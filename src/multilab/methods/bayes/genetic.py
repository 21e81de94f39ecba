"""A genetic search over subsets of columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["genetic_search"]

_ELITE = 2
_CROSSED = 0.8  # share of the other children that have two parents
_MUTATED = 0.01  # probability of each bit of the rest to flip


def genetic_search(
    loss: Callable[[np.ndarray], np.ndarray], d: int, random: np.random.RandomState, population: int, generations: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the subset of d columns with the smallest loss found, and the smallest loss after each generation.

    Parameters
    ----------
    loss : callable
        Given subsets as a bool array of shape (p, d), their losses of shape (p,).
    d : int
    random : RandomState
    population : int
        At least 3.
    generations : int

    Notes
    -----
    What MATLAB's ``ga`` does by default, from which MLNB comes: the best two survive, four fifths of the other children
    take each bit from one of two parents at random, the rest flip each bit of one parent with probability .01.
    Parents are drawn by stochastic universal sampling with expectations proportional to 1 / sqrt(rank). A subset
    seen before is not asked about again.
    """
    known: dict[bytes, float] = {}

    def losses(subsets: np.ndarray) -> np.ndarray:
        keys = [subset.tobytes() for subset in subsets]
        new = {key: place for place, key in enumerate(keys) if key not in known}
        if new:
            known.update(zip(new, loss(subsets[list(new.values())]).tolist(), strict=True))
        return np.array([known[key] for key in keys])

    expected = 1.0 / np.sqrt(np.arange(1, population + 1))
    others = population - _ELITE
    crossed = round(_CROSSED * others)
    people = random.random_sample((population, d)) < 0.5
    value = losses(people)
    path = [value.min()]
    for _ in range(generations):
        people = people[np.argsort(value, kind="stable")]
        parents = people[_drawn(expected, 2 * crossed + others - crossed, random)]
        first, second, single = np.split(parents, [crossed, 2 * crossed])
        mixed = np.where(random.random_sample(first.shape) < 0.5, first, second)
        flipped = single ^ (random.random_sample(single.shape) < _MUTATED)
        people = np.vstack([people[:_ELITE], mixed, flipped])
        value = losses(people)
        path.append(value.min())
    return people[value.argmin()], np.array(path)


def _drawn(expected: np.ndarray, count: int, random: np.random.RandomState) -> np.ndarray:
    """Return ``count`` places by equally spaced pointers with a random start, in random order."""
    edges = np.cumsum(expected) / expected.sum()
    pointers = (np.arange(count) + random.random_sample()) / count
    return random.permutation(np.minimum(np.searchsorted(edges, pointers, side="right"), len(expected) - 1))
