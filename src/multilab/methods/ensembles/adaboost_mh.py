"""AdaBoost.MH: boosting of decision stumps over pairs of instance and label."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, xlogy

from multilab.methods._weights import LabelWeight, Weights
from multilab.methods.base import MethodError, WeightedPartialClassifier
from multilab.methods.labels import is_partial

__all__ = ["AdaBoostMH"]

_BLOCK_ENTRIES = 2**18  # sums held at a time: 2 MiB, so that they stay in the cache


class AdaBoostMH(WeightedPartialClassifier):
    """AdaBoost.MH: boosted decision stumps over pairs of instance and label.

    Parameters
    ----------
    n_rounds : int, default=100
        Boosting rounds; fewer where a stopping rule of "adaboost_m1" applies.
    algorithm : {"mh", "adaboost_m1"}, default="mh"
        "mh": AdaBoost.MH with real-valued confidences; a round takes one split of one feature and gives each label a
        value of its own on each side. "adaboost_m1": AdaBoostM1 with decision stumps on a table with one row per pair
        and the label's name as one nominal feature, as in Mulan (there with 10 rounds).
    label_weight : "balanced" or array-like of shape (q,) or (q, 2), optional
        Weights of the values of each label at the start of D, as in `BinaryRelevance`.

    Attributes
    ----------
    rounds_ : list of StumpRound
    normalisers_ : ndarray of shape (rounds,)
        Z of each round ("mh"): the training Hamming loss is at most their product. Weighted error ("adaboost_m1").
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    **mh.** D starts at 1/(nq), or at the weights of the pairs divided by their sum, where n is the sum of
    ``sample_weight`` (a row of weight 2 counts as two). For the sides b of a split, W+_bl and W-_bl are the weights of
    the instances with and without label l. The split with the smallest Z = 2 sum_bl sqrt(W+_bl W-_bl) is taken, the
    values are c_bl = 1/2 ln((W+_bl + eps) / (W-_bl + eps)) with eps = 1/(nq), and D becomes D exp(-Y h) / Z with
    Y = -1/+1.

    **adaboost_m1.** A stump splits on one feature, or separates one label from all others. One that splits on a
    feature gives all labels of an instance the same vote, so that where labels are rare every pair gets "no".

    The score is 1 / (1 + exp(-2 f)), f the sum of the (weighted) hypotheses, of "adaboost_m1" also Weka's; a label is
    assigned iff f >= 0. The table of pairs is never built: the features are sorted once for all labels and rounds.

    References
    ----------
    R. E. Schapire, Y. Singer. BoosTexter: a boosting-based system for text categorization. Machine Learning 39, 2000;
    Improved boosting algorithms using confidence-rated predictions. Machine Learning 37, 1999. AdaBoost.M1: Y. Freund,
    R. E. Schapire. Experiments with a new boosting algorithm. ICML 1996.

    Examples
    --------
    >>> from multilab.methods import AdaBoostMH
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = AdaBoostMH(n_rounds=20).fit(X, y)
    >>> len(model.rounds_)
    20
    >>> model.predict(X[:2])
    array([[1, 1, 1],
           [1, 0, 0]])
    """

    def __init__(
        self,
        n_rounds: int = 100,
        algorithm: Literal["mh", "adaboost_m1"] = "mh",
        label_weight: LabelWeight = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.algorithm = algorithm
        self.label_weight = label_weight

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        weights = Weights.of(weight, self.label_weight, self.n_labels_)
        total = float(len(Y) if weight is None else weight.sum()) * self.n_labels_
        D = np.ones(Y.shape) if weights.uniform else weights.matrix(Y)
        if is_partial(Y):
            total = float((Y >= 0).sum() if weight is None else weight @ (Y >= 0).sum(axis=1))
            D, Y = np.where(Y >= 0, D, 0.0), np.where(Y == 1, 1, 0)
        if self.n_rounds < 1:
            raise MethodError(f"n_rounds={self.n_rounds!r} must be 1 or more")
        if self.algorithm == "mh":
            self.rounds_, self.normalisers_ = _boost_mh(X, Y, D, 1.0 / total, self.n_rounds)
        elif self.algorithm == "adaboost_m1":
            self.rounds_, self.normalisers_ = _boost_m1(X, Y, D, self.n_rounds)
        else:
            raise MethodError(f"algorithm={self.algorithm!r}: give 'mh' or 'adaboost_m1'")

    def _scores(self, X: Any) -> np.ndarray:
        margins = np.zeros((X.shape[0], self.n_labels_))
        for weak in self.rounds_:
            margins += weak.values(X)
        return expit(2.0 * margins)


@dataclass(frozen=True)
class StumpSplit:
    """The two sides x_feature <= threshold and x_feature > threshold."""

    feature: int
    threshold: float

    def left(self, X: Any) -> np.ndarray:
        """Return for each row of X whether it is on the first side."""
        column = X[:, [self.feature]]
        values = column.toarray() if sp.issparse(column) else column
        return values.ravel() <= self.threshold


class SplitTable:
    """All splits of the features of X between neighbouring different values.

    Rows with equal values of a feature form a block; the blocks of all features are kept in order, and a split is
    between two blocks of one feature. A sum over the rows left of every split is then one product of a sparse 0/1
    matrix (blocks x rows) and one cumulative sum. Zeros are not stored, dense or sparse: the block of zeros is what
    the other blocks of the feature leave.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)

    Attributes
    ----------
    n_splits : int
    """

    def __init__(self, X: Any) -> None:
        columns = sp.csc_array(X)
        columns.eliminate_zeros()
        n, d = columns.shape
        stored = np.diff(columns.indptr)
        feature = np.repeat(np.arange(d), stored)
        order = np.lexsort((columns.data, feature))
        value, row = columns.data[order], columns.indices[order]
        fresh = np.ones(len(value), dtype=bool)
        fresh[1:] = (value[1:] != value[:-1]) | (feature[1:] != feature[:-1])
        with_zeros = np.flatnonzero(stored < n)
        start = np.flatnonzero(fresh)
        block_feature = np.concatenate([feature[start], with_zeros])
        block_value = np.concatenate([value[start], np.zeros(len(with_zeros))])
        order = np.lexsort((block_value, block_feature))
        # blocks in order; the blocks of zeros hold no rows
        size = np.concatenate([np.diff(np.append(start, len(value))), np.zeros(len(with_zeros), dtype=np.intp)])[order]
        beginning = np.concatenate([start, np.zeros(len(with_zeros), dtype=np.intp)])[order]
        entries = np.repeat(beginning - np.cumsum(size) + size, size) + np.arange(len(value))
        self._rows = row[entries]
        self._bounds = np.concatenate([[0], np.cumsum(size)])
        self._feature, self._value = block_feature[order], block_value[order]
        self._zero = np.full(d, -1)
        self._zero[with_zeros] = np.flatnonzero(order >= len(start))
        self._starts = np.searchsorted(self._feature, np.arange(d + 1))
        self._n = n
        self.n_splits = int(np.maximum(np.diff(self._starts) - 1, 0).sum())

    def best(
        self, weights: np.ndarray, loss: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> tuple[StumpSplit | None, float]:
        """Return the split of the smallest loss, the first of equals, and that loss.

        Parameters
        ----------
        weights : ndarray of shape (n, r)
            What is summed over the rows of each side.
        loss : callable
            Of the sums on the left, shape (m, r), and of all rows, shape (r,); returns shape (m,).

        Returns
        -------
        StumpSplit or None
            None where no feature has two values.
        """
        total = weights.sum(axis=0)
        best, smallest = -1, np.inf
        for first, last in self._feature_ranges(weights.shape[1]):
            blocks, left = self._left_sums(weights, total, first, last)
            if len(blocks):
                losses = loss(left, total)
                at = int(np.argmin(losses))
                if losses[at] < smallest:
                    best, smallest = int(blocks[at]), float(losses[at])
        if best < 0:
            return None, smallest
        return StumpSplit(int(self._feature[best]), self._threshold(best)), smallest

    def _feature_ranges(self, r: int) -> list[tuple[int, int]]:
        """Return ranges of features whose sums fit the cache, at least one feature each."""
        cuts, last = [0], len(self._starts) - 1
        while cuts[-1] < last:
            limit = self._starts[cuts[-1]] + max(1, _BLOCK_ENTRIES // r)
            cuts.append(max(cuts[-1] + 1, int(np.searchsorted(self._starts, limit, side="right")) - 1))
        return list(zip(cuts[:-1], [min(c, last) for c in cuts[1:]], strict=True))

    def _left_sums(
        self, weights: np.ndarray, total: np.ndarray, first: int, last: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the blocks of features first..last-1 that have a right neighbour, and the sums up to each."""
        begin, end = self._starts[first], self._starts[last]
        bounds = self._bounds[begin : end + 1]
        rows = self._rows[bounds[0] : bounds[-1]]
        ones = np.ones(len(rows))
        members = sp.csr_array((ones, rows, bounds - bounds[0]), shape=(end - begin, self._n))
        sums = members @ weights
        feature = self._feature[begin:end] - first
        starts = self._starts[first:last] - begin
        filled = np.flatnonzero(self._starts[first + 1 : last + 1] - begin > starts)
        by_feature = np.zeros((last - first, weights.shape[1]))
        by_feature[filled] = np.add.reduceat(sums, starts[filled], axis=0)
        zero = self._zero[first:last]
        has_zero = np.flatnonzero(zero >= 0)
        sums[zero[has_zero] - begin] = total - by_feature[has_zero]
        by_feature[has_zero] = total
        left = np.cumsum(sums, axis=0)
        before = np.zeros_like(by_feature)
        before[1:] = np.cumsum(by_feature, axis=0)[:-1]
        left -= before[feature]
        inner = np.flatnonzero(feature[:-1] == feature[1:])
        return inner + begin, left[inner]

    def _threshold(self, block: int) -> float:
        """Return the middle between a block's value and the next, and never the next itself."""
        low, high = self._value[block], self._value[block + 1]
        middle = low + (high - low) / 2.0
        return float(low if middle >= high else middle)


@dataclass(frozen=True)
class StumpRound:
    """One weak hypothesis: h = left on one side of the split, right on the other, each with one value per label."""

    split: StumpSplit | None
    left: np.ndarray
    right: np.ndarray

    def values(self, X: Any) -> np.ndarray:
        """Return h, shape (n, q); without a split all rows are on the left."""
        if self.split is None:
            return np.tile(self.left, (X.shape[0], 1))
        return np.where(self.split.left(X)[:, None], self.left, self.right)


def _boost_mh(
    X: Any, Y: np.ndarray, D: np.ndarray, smoothing: float, n_rounds: int
) -> tuple[list[StumpRound], np.ndarray]:
    """Return the rounds of AdaBoost.MH with confidence-rated stumps, and the normaliser Z of each round."""
    table = SplitTable(X)
    signs = 2.0 * Y - 1.0
    D = D / D.sum()  # weights of the pairs of a row and a label
    rounds, normalisers = [], []
    for _ in range(n_rounds):
        split, _ = table.best(np.hstack([D * Y, D * (1 - Y)]), _product_loss)
        side = np.ones(len(Y), dtype=bool) if split is None else split.left(X)
        left, right = (_confidence(D[rows], Y[rows], smoothing) for rows in (side, ~side))
        weak = StumpRound(split, left, right)
        D *= np.exp(-signs * np.where(side[:, None], left, right))
        Z = float(D.sum())
        D /= Z
        rounds.append(weak)
        normalisers.append(Z)
    return rounds, np.array(normalisers)


def _product_loss(left: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return Z / 2 = sum sqrt(W+ W-) over labels and sides; differences of sums may fall below 0 by rounding."""
    q = len(total) // 2
    right = total - left
    products = np.maximum(left[:, :q] * left[:, q:], 0.0)
    np.sqrt(products, out=products)
    others = np.maximum(right[:, :q] * right[:, q:], 0.0)
    products += np.sqrt(others, out=others)
    return products.sum(axis=1)


def _confidence(D: np.ndarray, Y: np.ndarray, smoothing: float) -> np.ndarray:
    """Return the smoothed half log-odds of each label on one side of a split, shape (q,)."""
    positive = (D * Y).sum(axis=0)
    negative = (D * (1 - Y)).sum(axis=0)
    return 0.5 * np.log((positive + smoothing) / (negative + smoothing))


def _boost_m1(X: Any, Y: np.ndarray, D: np.ndarray, n_rounds: int) -> tuple[list[StumpRound], np.ndarray]:
    table = SplitTable(X)
    rounds: list[StumpRound] = []
    errors: list[float] = []
    while len(rounds) < n_rounds:
        stump = _least_entropy(table, X, D, Y)
        votes = StumpRound(stump.split, np.sign(stump.left), np.sign(stump.right))
        wrong = (votes.values(X) > 0) != Y
        error = float(D[wrong].sum() / D.sum())
        if error >= 0.5 or error <= 0.0:
            break
        strength = 0.5 * np.log((1.0 - error) / error)
        rounds.append(StumpRound(stump.split, strength * votes.left, strength * votes.right))
        errors.append(error)
        if len(rounds) == 1:
            first = stump
        D[wrong] *= (1.0 - error) / error
        D *= D.size / D.sum()
    if len(rounds) < 2:  # Weka then gives the class frequencies on the two sides of the only stump
        return [first if rounds else stump], np.array(errors if rounds else [error])
    return rounds, np.array(errors)


def _least_entropy(table: SplitTable, X: Any, D: np.ndarray, Y: np.ndarray) -> StumpRound:
    """Return the stump of least class entropy, on a feature or on the label's name; its values are half log-odds."""
    by_row = np.column_stack([(D * Y).sum(axis=1), (D * (1 - Y)).sum(axis=1)])
    by_label = np.column_stack([(D * Y).sum(axis=0), (D * (1 - Y)).sum(axis=0)])
    split, least = table.best(by_row, _entropy_loss)
    q = Y.shape[1]
    total = by_label.sum(axis=0)
    names = _entropy_loss(by_label, total)
    if q > 1 and names.min() < least:
        own = int(np.argmin(names))
        values = np.full(q, _log_odds(total - by_label[own]))
        values[own] = _log_odds(by_label[own])
        return StumpRound(None, values, values)
    if split is None:
        values = np.full(q, _log_odds(total))
        return StumpRound(None, values, values)
    side = split.left(X)
    left, right = (_log_odds(by_row[rows].sum(axis=0)) for rows in (side, ~side))
    return StumpRound(split, np.full(q, left), np.full(q, right))


def _entropy_loss(left: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the entropy of the class given the side, times the total weight."""
    loss = np.zeros(len(left))
    for part in (np.maximum(left, 0.0), np.maximum(total - left, 0.0)):
        size = part.sum(axis=1)
        loss += xlogy(size, size) - xlogy(part, part).sum(axis=1)
    return loss


def _log_odds(weights: np.ndarray) -> float:
    """Return 1/2 log(W+ / W-), within the range of floating point; equal weights are a no, as in Weka."""
    positive, negative = np.maximum(weights, 1e-300)
    return float(0.5 * np.log(positive / negative)) if positive != negative else -1e-300
