# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Genetic search over subsets of columns."""

from collections.abc import Callable

import numpy as np

_ELITE = 2  # best subsets that survive unchanged
_CROSSED = 0.8  # share of the other children that are crossed from two parents
_MUTATED = 0.01  # probability that a bit of the remaining children flips


def genetic_search(
    loss: Callable[[np.ndarray], np.ndarray], d: int, random: np.random.RandomState, population: int, generations: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best subset of d columns, bool of shape (d,), and the smallest loss after each generation.

    Parameters
    ----------
    loss : callable
        Returns the losses, shape (p,), of subsets given as a bool array of shape (p, d).
    d : int
        Number of columns.
    random : RandomState
    population : int
        Number of subsets per generation, at least 3.
    generations : int
        Number of generations after the random first one; the losses have shape (generations + 1,).

    Notes
    -----
    The defaults of ``ga`` of MATLAB, which the original MLNB calls: the best two subsets survive; four fifths of the
    other children take each bit from one of two parents at random; the rest are copies of one parent whose bits flip
    with probability 0.01. Parents are drawn by stochastic universal sampling with expectations proportional to
    1 / sqrt(rank). The loss of a subset is computed once.
    """
    known: dict[bytes, float] = {}

    def losses(subsets: np.ndarray) -> np.ndarray:
        # a dictionary of all losses: elite and converged populations repeat subsets
        keys = [subset.tobytes() for subset in subsets]
        new = {key: index for index, key in enumerate(keys) if key not in known}
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
    """Return ``count`` indices in random order, drawn by stochastic universal sampling.

    Equally spaced pointers with one random offset: each index occurs its expected number of times, rounded up or down.
    """
    edges = np.cumsum(expected) / expected.sum()
    pointers = (np.arange(count) + random.random_sample()) / count
    return random.permutation(np.minimum(np.searchsorted(edges, pointers, side="right"), len(expected) - 1))
