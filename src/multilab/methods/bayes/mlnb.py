"""MLNB: naive Bayes per label on principal components selected by a genetic search."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.utils import check_random_state

from multilab.methods.base import IncrementalClassifier, MethodError, PartialClassifier
from multilab.methods.bayes._gaussian import GaussianSums, HeldOut, LabelGaussians

__all__ = ["MLNB", "search_columns"]


class MLNB(IncrementalClassifier, PartialClassifier):
    """Multi-label naive Bayes with two-stage feature selection.

    Parameters
    ----------
    components : float or None, default=0.3
        Number of principal components as a share of the number of features, rounded up; None uses the features.
    population : int, default=20
        Number of subsets of columns per generation of the genetic search, at least 3.
    generations : int, default=100
        Number of generations; 0 keeps all columns.
    folds : int, default=10
        Number of contiguous folds of the training rows for the held-out loss of a subset.
    s : float, default=1.0
        Smoothing of the prior, positive.
    random_state : int or RandomState, optional
        Seed of the genetic search.

    Attributes
    ----------
    support_ : bool ndarray
        Whether a column (component or feature) is used.
    losses_ : ndarray of shape (generations + 1,)
        Held-out loss of the best subset after each generation; empty with 0 generations.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The two stages are principal components and the genetic search, whose objective is the mean of Hamming loss and
    ranking loss in cross-validation. Scores are log-odds. They add up over columns, so one matrix product gives those
    of a population of subsets.

    **Missing labels**: prior and Gaussians of a label are those of the rows that observe it, and the losses of the
    search count observed labels only.

    **Batches of rows**: with ``components=None`` and ``generations=0`` exact in one pass, from means and squared
    deviations that are merged.

    Deviation: the principal components are computed from the training rows; the original computes them from training
    and test rows together, which is leakage.

    References
    ----------
    M.-L. Zhang, J. M. Peña, V. Robles. Feature selection for multi-label naive Bayes classification. Information
    Sciences 179(19), 2009.

    Examples
    --------
    >>> from multilab.methods import MLNB
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = MLNB(components=None, generations=2, folds=3, random_state=0).fit(X, y)
    >>> model.decision_function(X).shape
    (60, 3)
    """

    _makes_dense: ClassVar[bool] = True

    def __init__(
        self,
        components: float | None = 0.3,
        population: int = 20,
        generations: int = 100,
        folds: int = 10,
        s: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.components = components
        self.population = population
        self.generations = generations
        self.folds = folds
        self.s = s
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        if self.components is not None and not 0 < self.components <= 1:
            raise MethodError(f"components={self.components}: give a share in (0, 1] or None")
        self._check_smoothing()
        self._rotation = None
        if self.components is not None:
            count = min(math.ceil(self.components * X.shape[1]), *X.shape)
            self._rotation = PCA(count, svd_solver="full").fit(_dense(X))
        Z = self._rotated(X)
        self.support_, self.losses_ = np.ones(Z.shape[1], dtype=bool), np.empty(0)
        if self.generations:
            random = check_random_state(self.random_state)
            _, self.support_, self.losses_ = search_columns(
                Z, Y, self.population, self.generations, self.folds, self.s, random
            )
        self._model = LabelGaussians.fit(Z[:, self.support_], Y, self.s)

    def _check_smoothing(self) -> None:
        if not self.s > 0:
            raise MethodError(f"s={self.s}: the smoothing must be positive")

    def _batches_fault(self) -> str | None:
        if self.components is not None or self.generations:
            return "MLNB needs all rows for its components and its search: set components=None and generations=0"
        return super()._batches_fault()

    def _add_batch(self, X: Any, Y: np.ndarray, kept: Any) -> GaussianSums:
        if kept is None:
            self._check_smoothing()
            kept = GaussianSums()
        kept.add(_dense(X), Y)
        return kept

    def _solve(self, kept: Any) -> None:
        self._rotation, self.losses_ = None, np.empty(0)
        self.support_ = np.ones(self.n_features_in_, dtype=bool)
        self._model = kept.estimates(self.s)

    def _rotated(self, X: Any) -> np.ndarray:
        """Return the columns of the search: principal components or features, shape (m, components or d)."""
        return _dense(X) if self._rotation is None else self._rotation.transform(_dense(X))

    def _score_kind(self) -> str:
        return "margin"

    def _scores(self, X: Any) -> np.ndarray:
        return self._model.scores(self._rotated(X)[:, self.support_])


def search_columns(
    X: np.ndarray, Y: np.ndarray, population: int, generations: int, folds: int, s: float, random: np.random.RandomState
) -> tuple[HeldOut, np.ndarray, np.ndarray]:
    """Return the held-out ratios, the best subset of columns, and the smallest loss after each generation.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    Y : ndarray of shape (n, q), 0/1
    population, generations, folds, s
        See `MLNB`.
    random : RandomState

    Returns
    -------
    held_out : HeldOut
    support : bool ndarray of shape (d,)
        All columns if the best subset is empty, since an empty subset means all.
    losses : ndarray of shape (generations + 1,)

    Raises
    ------
    MethodError
        If an argument is out of range or there are fewer rows than folds.
    """
    if population < 3 or generations < 0:
        raise MethodError(f"population={population}, generations={generations}: at least 3 and 0")
    if not 2 <= folds <= len(X):
        raise MethodError(f"folds={folds} need at least {max(folds, 2)} instances; n_samples = {len(X)}")
    held_out = HeldOut(X, Y, folds, s)
    best, path = genetic_search(held_out.losses, X.shape[1], random, population, generations)
    return held_out, best if best.any() else ~best, path


def _dense(X: Any) -> np.ndarray:
    """Return X as a dense array."""
    return X.toarray() if sp.issparse(X) else X


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
