# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Search of the nearest rows: exact, or approximate by an index of Faiss with its measured recall."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import scipy.sparse as sp

from multilab.methods.base import MethodError
from multilab.methods.neighbours._search import _exact_distances, exact_neighbours

Neighbours = Literal["exact", "hnsw", "ivf"]

_SAMPLE = 200  # rows on which the recall is measured
_LOW_RECALL = 0.9
_MAX_BYTES = 2**31  # largest sparse X that is made dense, as float32


class NeighbourSearch(Protocol):
    """Search of the k nearest training rows."""

    @property
    def recall(self) -> float:
        """Return the share of the neighbours that are right."""

    def neighbours(self, X: Any = None, *, exclude_self: bool = True) -> np.ndarray:
        """Return row numbers of the neighbours of each query, or of each training row when None, shape (m, k)."""


def neighbour_search(X: Any, k: int, kind: Neighbours = "exact", tie_tol: float = 0.0) -> NeighbourSearch:
    """Return the search of the k nearest rows of X: by `exact_neighbours`, or an approximate index.

    Raises
    ------
    MethodError
        See `ApproximateSearch`; or tie_tol is given for an approximate search.
    """
    if kind == "exact":
        return _ExactSearch(X, k, tie_tol)
    if tie_tol:
        raise MethodError(f"tie_tol={tie_tol} is for neighbours='exact': approximate neighbours have no defined ties")
    return ApproximateSearch(X, k, kind)


@dataclass(frozen=True)
class _ExactSearch:
    X: Any
    k: int
    tie_tol: float
    recall: ClassVar[float] = 1.0

    def neighbours(self, X: Any = None, *, exclude_self: bool = True) -> np.ndarray:
        return exact_neighbours(self.X, self.k, X, exclude_self=exclude_self, tie_tol=self.tie_tol)[0]


class ApproximateSearch:
    """Index of the training rows for approximate neighbours by Euclidean distance.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Training rows. The index holds them dense in float32, centred.
    k : int
        Number of neighbours of a row.
    kind : {"hnsw", "ivf"}
        A graph of near rows (32 links, 64 candidates or 4 k), or sqrt(n) clusters of which an eighth is searched.

    Attributes
    ----------
    recall : float
        Share of the approximate neighbours that are not farther than the k-th exact one, on a seeded sample of up to
        200 training rows; a row is not its own neighbour.

    Raises
    ------
    MethodError
        If Faiss is not installed, there are not enough rows, or a sparse X is too large to be made dense.
    """

    def __init__(self, X: Any, k: int, kind: str) -> None:
        if not 1 <= k < X.shape[0]:
            raise MethodError(f"k={k} neighbours need at least {max(k, 1) + 1} training instances, got {X.shape[0]}")
        if sp.issparse(X) and 4 * X.shape[0] * X.shape[1] > _MAX_BYTES:
            raise MethodError(
                f"neighbours={kind!r} needs X dense: {X.shape[0]:,} x {X.shape[1]:,} would take "
                f"{4 * X.shape[0] * X.shape[1] / 2**20:,.0f} MiB, more than {_MAX_BYTES // 2**20:,}; "
                "use neighbours='exact', or reduce the features first"
            )
        self._X, self._k, self._kind = X, k, kind
        self._centre = np.asarray(X.mean(axis=0)).ravel()
        with _one_thread() as faiss:
            self._index = _build(faiss, self._queries(X), k, kind)
        self.recall = self._measure()
        if self.recall < _LOW_RECALL:
            warnings.warn(
                f"neighbours={kind!r} finds {self.recall:.0%} of the nearest neighbours (measured on "
                f"{min(_SAMPLE, X.shape[0])} rows); use neighbours='exact'"
                + (", or 'ivf', which equal rows do not mislead" if kind == "hnsw" else ""),
                UserWarning,
                stacklevel=4,
            )

    def neighbours(self, X: Any = None, *, exclude_self: bool = True) -> np.ndarray:
        """Return row numbers of the neighbours of each query, or of each training row when None, shape (m, k)."""
        if X is None:
            return self._of_training_rows(np.arange(self._X.shape[0]), exclude_self)
        return self._complete(self._index.search(self._queries(X), self._k)[1], X)

    def _of_training_rows(self, rows: np.ndarray, exclude_self: bool) -> np.ndarray:
        X = self._X[rows]
        if not exclude_self:
            return self._complete(self._index.search(self._queries(X), self._k)[1], X)
        near = self._complete(self._index.search(self._queries(X), self._k + 1)[1], X)
        own = near == rows[:, None]
        own[:, -1] |= ~own.any(axis=1)  # the index did not find the row itself: the farthest one is left out
        return near[~own].reshape(len(rows), self._k)

    def _complete(self, near: np.ndarray, X: Any) -> np.ndarray:
        """Replace the neighbours of rows for which the index has fewer than wanted by the exact ones."""
        short = np.flatnonzero((near < 0).any(axis=1))
        if len(short):
            near[short] = exact_neighbours(self._X, near.shape[1], X[short])[0]
        return near

    def _queries(self, X: Any) -> np.ndarray:
        """Return dense float32 rows; the centred ones are shorter, so that float32 loses less of a distance."""
        dense = X.toarray() if sp.issparse(X) else X
        return np.ascontiguousarray(dense - self._centre, dtype=np.float32)

    def _measure(self) -> float:
        n = self._X.shape[0]
        rows = np.sort(np.random.default_rng(0).choice(n, size=min(_SAMPLE, n), replace=False))
        _, exact = exact_neighbours(self._X, self._k + 1, self._X[rows])  # with the row itself, at distance 0
        near = self._of_training_rows(rows, exclude_self=True)
        owners = np.repeat(np.arange(len(rows)), self._k)
        distances = _exact_distances(self._X, self._X[rows], owners, near.ravel()).reshape(near.shape)
        return float((distances <= exact[:, -1:]).mean())


@contextmanager
def _one_thread() -> Iterator[Any]:
    """Import Faiss with one thread, since the links of a graph depend on the order in which rows are added."""
    try:
        import faiss
    except ImportError:
        raise MethodError(
            "approximate neighbours need the package faiss-cpu, which is not installed: "
            "pip install 'multilab[ann]', or use neighbours='exact'"
        ) from None
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(threads)


def _build(faiss: Any, rows: np.ndarray, k: int, kind: str) -> Any:
    n, d = rows.shape
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(d, 32)
        index.hnsw.efConstruction = 80
        index.hnsw.efSearch = max(64, 4 * (k + 1))
    else:
        clusters = max(1, round(n**0.5))
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, clusters)
        index.nprobe = max(1, clusters // 8)
        index.cp.min_points_per_centroid = 1  # no warning of small training sets
        index.train(rows)
    index.add(rows)
    return index
