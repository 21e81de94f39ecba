"""Nearest rows: exact with a defined order of ties, or approximate by an index of Faiss with its measured recall."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from multilab.methods.base import MethodError
from multilab.methods.kernels import squared_norms

_BLOCK_ENTRIES = 2**20  # entries of one block of the distance matrix: 8 MiB, so memory is O(block x n)
_SPARSE_PAIRS = 2**15  # differences of sparse rows per block; ties can lead to very many candidates
_GROUPS_PER_NEIGHBOUR = 8  # groups of rows per neighbour for the bound of `_candidates`


def exact_neighbours(
    X_train: Any, k: int, X: Any = None, *, exclude_self: bool = True, tie_tol: float = 0.0, ordered: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest training rows of each query row by Euclidean distance.

    Parameters
    ----------
    X_train : ndarray or CSR matrix of shape (n, d)
        Finite float64 values; a CSR matrix must have sorted indices.
    k : int
        Number of neighbours, at least 1 and at most n (n - 1 when self is excluded).
    X : ndarray or CSR matrix of shape (m, d), optional
        Query rows; the training rows themselves when None.
    exclude_self : bool, default=True
        With ``X=None``, whether a row is excluded from its own neighbours (its duplicates are not); else no effect.
    tie_tol : float, default=0.0
        Distances are rounded to a power of two below ``tie_tol`` times the largest distance of a training row from the
        mean, so that distances that differ by rounding errors of computed features only are ties.
    ordered : bool, default=True
        False: the neighbours of a row are in any order, and distances that were not needed are NaN. This is faster.

    Returns
    -------
    indices : int64 ndarray of shape (m, k)
        Numbers of the training rows, nearest first.
    distances : float64 ndarray of shape (m, k)
        Their distances, ascending.

    Raises
    ------
    MethodError
        If there are not enough training rows.

    Notes
    -----
    The order is by the distance as ``scipy.spatial.distance.cdist`` computes it (the square root of the sum of squared
    differences in column order), then by row number: that of a stable sort of all distances.

    Distances by ``|x|^2 + |z|^2 - 2 x.z`` have rounding errors that reorder ties, on Yahoo Arts enough to change a
    published digit. So they only select candidates: all rows that these errors may keep from the k nearest. Exact
    distances decide among these. Dense and sparse input give the same result.
    """
    rows = X_train.shape[0]
    itself = X is None and exclude_self
    if not 1 <= k <= rows - itself:
        raise MethodError(
            f"k={k} neighbours need at least {max(k, 1) + itself} training instances; n_samples = {rows}"
            if k >= 1
            else f"k={k}: there must be at least one neighbour"
        )
    queries = X_train if X is None else X
    grid = _grid(X_train, tie_tol) if tie_tol else 0.0
    indices = np.empty((queries.shape[0], k), dtype=np.int64)
    distances = np.empty((queries.shape[0], k))
    for start, squared, slack in _squared_distances(X_train, queries, grid):
        block = slice(start, start + len(squared))
        if itself:
            np.fill_diagonal(squared[:, start:], np.inf)
        indices[block], distances[block] = _nearest(X_train, queries[block], squared, slack, k, grid, ordered)
    return indices, distances


def _grid(X: Any, tie_tol: float) -> float:
    """Return the largest power of two up to ``tie_tol`` times the largest distance of a row from the mean, or 0."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    squared = squared_norms(X) - 2.0 * np.asarray(X @ mean).ravel() + mean @ mean
    radius = float(np.sqrt(max(squared.max(), 0.0)))
    return float(2.0 ** np.floor(np.log2(tie_tol * radius))) if radius > 0 else 0.0


def _squared_distances(X_train: Any, X: Any, grid: float = 0.0) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield squared distances of blocks of queries to all training rows, with the uncertainty from rounding.

    Parameters
    ----------
    X_train : ndarray or CSR matrix of shape (n, d)
    X : ndarray or CSR matrix of shape (m, d)
    grid : float
        Unit to which exact distances are rounded, or 0.

    Yields
    ------
    start : int
        First query of the block.
    squared : ndarray of shape (b, n)
        |z|^2 - 2 x.z; |x|^2 does not change the order of the training rows z of a query x. Valid until the next block,
        which takes its memory.
    slack : ndarray of shape (b,)
        By how much ``squared`` of a row can exceed that of another one whose exact distance is not smaller.

    Notes
    -----
    The slack covers the rounding errors of the product, of the exact distance and of its square root; with d terms each
    is below (d + 8) eps (|x|^2 + |z|^2).
    """
    if not sp.issparse(X_train):  # smaller norms have smaller errors; distances do not change
        centre = X_train.mean(axis=0)
        X_train, X = X_train - centre, X - centre
    doubt = 8.0 * (X_train.shape[1] + 8) * np.finfo(np.float64).eps
    norms, query_norms = squared_norms(X_train), squared_norms(X)
    transposed = X_train.T.tocsr() if sp.issparse(X_train) else X_train.T  # converted once, not in each product
    step = max(1, _BLOCK_ENTRIES // X_train.shape[0])
    dense = not (sp.issparse(X) or sp.issparse(X_train))
    room = np.empty((min(step, X.shape[0]), X_train.shape[0]) if dense else 0)
    for start in range(0, X.shape[0], step):
        block = -2.0 * X[start : start + step]
        product = np.matmul(block, transposed, out=room[: len(block)]) if dense else block @ transposed
        squared = product.toarray() if sp.issparse(product) else product  # type: ignore[union-attr]
        squared += norms
        reach = norms.max() + query_norms[start : start + step]
        # rounding moves a distance by up to grid / 2 and a squared one by grid times the distance
        yield start, squared, 2.0 * doubt * reach + grid * (2.0 * np.sqrt(2.0 * reach) + grid)


def _candidates(squared: np.ndarray, slack: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the query and training row numbers of all pairs that may be among the k nearest, sorted by both.

    Parameters
    ----------
    squared, slack : ndarray of shape (b, n) and of shape (b,)
        See `_squared_distances`.
    k : int

    Notes
    -----
    The k-th smallest of the minima of disjoint groups of rows is not below the k-th smallest of all rows. This bound
    takes one vectorised pass and a partition of about 8 k minima, and admits few rows that are not neighbours.
    """
    queries, rows = squared.shape
    size = max(1, rows // (_GROUPS_PER_NEIGHBOUR * k))
    groups = rows // size
    # groups of every ``groups``-th row; the last rows may be in no group, which only raises the bound
    minima = squared[:, : size * groups].reshape(queries, size, groups).min(axis=1)
    upper = np.partition(minima, k - 1, axis=1)[:, k - 1] + slack
    return np.divmod(np.flatnonzero(squared <= upper[:, None]), rows)


def _first(owners: np.ndarray, values: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of the k smallest values of each query, shape (b, k); of ties the first ones.

    Parameters
    ----------
    owners : int ndarray of shape (p,)
        Queries of the values, ascending, each at least k times.
    values : ndarray of shape (p,)
    k : int
    """
    order = np.lexsort((values, owners))  # stable
    return order[np.flatnonzero(np.diff(owners, prepend=-1))[:, None] + np.arange(k)]


def _exact_distances(X_train: Any, X: Any, owners: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return the distances of pairs as ``cdist`` computes them, shape (p,).

    Parameters
    ----------
    X_train : ndarray or CSR matrix of shape (n, d)
    X : ndarray or CSR matrix of shape (m, d)
    owners, candidates : int ndarray of shape (p,)
        Rows of X, ascending, and rows of X_train.
    """
    exact = np.empty(len(candidates))
    if sp.issparse(X_train):
        ones = np.ones(X_train.shape[1])
        for start in range(0, len(candidates), _SPARSE_PAIRS):
            pairs = slice(start, start + _SPARSE_PAIRS)
            difference = sp.csr_array(X[owners[pairs]] - X_train[candidates[pairs]])
            difference.data **= 2
            exact[pairs] = np.sqrt(difference @ ones)  # adds in column order, as cdist does
        return exact
    bounds = np.searchsorted(owners, np.arange(X.shape[0] + 1))
    for row in np.flatnonzero(np.diff(bounds)):
        pairs = slice(bounds[row], bounds[row + 1])
        exact[pairs] = cdist(X[row : row + 1], X_train[candidates[pairs]])[0]
    return exact


def _nearest(
    X_train: Any, X: Any, squared: np.ndarray, slack: np.ndarray, k: int, grid: float = 0.0, ordered: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest rows of a block of queries and their distances, see `exact_neighbours`.

    Parameters
    ----------
    X_train : ndarray or CSR matrix of shape (n, d)
    X : ndarray or CSR matrix of shape (b, d)
    squared, slack, grid
        See `_squared_distances`.
    k, ordered
        See `exact_neighbours`.
    """
    owners, candidates = _candidates(squared, slack, k)
    if not ordered:
        values = squared[owners, candidates]
        kept = values <= (values[_first(owners, values, k)[:, -1]] + slack)[owners]
        owners, candidates = owners[kept], candidates[kept]
    needed = (ordered | (np.bincount(owners) > k))[owners]  # without an order, k candidates are the neighbours
    exact = np.full(len(owners), np.nan)
    exact[needed] = _exact_distances(X_train, X, owners[needed], candidates[needed])
    if grid > 0:
        exact = np.rint(exact / grid) * grid
    chosen = _first(owners, exact, k)
    return candidates[chosen], exact[chosen]


Neighbours = Literal["exact", "hnsw", "ivf"]

_SAMPLE = 200  # rows on which the recall is measured
_LOW_RECALL = 0.9  # below it there is a warning: one of ten neighbours is wrong
_MAX_BYTES = 2**31  # largest sparse X that is made dense, as float32


class NeighbourSearch(Protocol):
    """Search of the k nearest training rows."""

    @property
    def recall(self) -> float:
        """Return the share of the neighbours that are right."""

    def neighbours(self, X: Any = None, *, exclude_self: bool = True) -> np.ndarray:
        """Return the neighbours of each query, or of each training row when None, in any order, shape (m, k)."""


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
        return exact_neighbours(self.X, self.k, X, exclude_self=exclude_self, tie_tol=self.tie_tol, ordered=False)[0]


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
                stacklevel=5,
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
            "pip install faiss-cpu, or use neighbours='exact'"
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
