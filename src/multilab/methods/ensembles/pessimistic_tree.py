"""A decision tree that stops and prunes as C4.5 does, for comparisons with systems that are built on C4.5."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import betaincinv
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from multilab.methods.base import MethodError

__all__ = ["PessimisticTree", "upper_errors"]


class PessimisticTree(DecisionTreeClassifier):
    """Decision tree with C4.5's penalty of a threshold and its pessimistic pruning.

    Two rules turn subtrees into leaves. The gain of a split on a feature with T + 1 different values among the N rows
    of the node must exceed log2(T) / N bits, the price of naming one of T thresholds. And the leaf's errors on the
    training rows, at the upper end of their confidence interval, must exceed those of the subtree's leaves together
    by more than 0.1.

    Parameters
    ----------
    criterion : {"entropy", "log_loss"}, default="entropy"
        Both mean information in bits.
    min_samples_leaf : int or float, default=2
    confidence : float in (0, 0.5], default=0.25
        C4.5's CF: the chance left above the interval; smaller prunes more.
    random_state : int or RandomState, optional
        Of ``DecisionTreeClassifier``, which has more arguments than are offered here, and takes weights of rows and
        several outputs.

    Attributes
    ----------
    n_leaves_ : int
        Leaves after pruning.
    tree_, classes_, n_features_in_
        Of the tree before pruning.

    Notes
    -----
    What C4.5 does and this does not: dividing the gain by the split information, one branch for each value of a nominal
    feature (columns of zeros and ones cost nothing here, T = 1), moving a subtree up, and shares of rows with a missing
    value. A node whose best split is not worth its threshold is a leaf, where C4.5 would try the next best feature.
    Probabilities are the class frequencies of the leaf, as in Weka.

    **This is not J48**, Weka's C4.5, and gives other trees. In addition to the above, J48

    - takes the price off the gain of every feature first, then chooses by gain ratio among the features whose gain is
      at least the average; here the largest gain is chosen and then compared with its price;
    - requires on both sides of a numeric threshold a tenth of the node's rows divided by the number of classes, but
      between ``min_samples_leaf`` and 25 rows, and counts as T only such thresholds; here ``min_samples_leaf`` rows
      are enough, and every threshold counts;
    - moves the threshold down to a value of the training set, here it is the middle of two values;
    - turns a subtree into a leaf before pruning if that adds no error on the training rows;
    - bounds the errors of a leaf that has some by a normal approximation, here the bound is exact.

    The defaults (confidence .25, two rows per leaf) and the 0.1 errors are J48's. Where a base classifier
    replaces J48 in a comparison with Mulan or MEKA, expect means near theirs, not equal ones.

    References
    ----------
    J. R. Quinlan. C4.5: programs for machine learning. 1993, section 4.2; Improved use of continuous attributes in
    C4.5. Journal of Artificial Intelligence Research 4, 1996.

    Examples
    --------
    >>> from multilab.methods import PessimisticTree
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = make_classification(n_samples=100, flip_y=0.2, random_state=0)
    >>> pruned = PessimisticTree(random_state=0).fit(X, y)
    >>> complete = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> bool(pruned.n_leaves_ < complete.get_n_leaves())
    True
    """

    def __init__(
        self,
        *,
        criterion: str = "entropy",
        min_samples_leaf: int | float = 2,
        confidence: float = 0.25,
        random_state: Any = None,
    ) -> None:
        super().__init__(criterion=criterion, min_samples_leaf=min_samples_leaf, random_state=random_state)
        self.confidence = confidence

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        tags.target_tags.multi_output = False
        tags.input_tags.allow_nan = False
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the tree on X of shape (n, d), dense or sparse, and classes y of shape (n,), then prune it."""
        if not 0 < self.confidence <= 0.5:
            raise MethodError(f"confidence={self.confidence!r} must be in (0, 0.5]")
        X = validate_data(self, X, accept_sparse="csc", dtype=np.float32)
        super().fit(X, column_or_1d(y, warn=True))
        self._prune(self._worthless(X))
        return self

    def _worthless(self, X: Any) -> np.ndarray:
        """Return which nodes have a split whose gain does not pay for the choice of its threshold."""
        tree = self.tree_
        rows = tree.n_node_samples
        inner = np.flatnonzero(tree.children_left >= 0)
        children = np.stack([tree.children_left[inner], tree.children_right[inner]])
        bits = rows * tree.impurity
        gain = np.zeros(tree.node_count)
        gain[inner] = bits[inner] - bits[children].sum(axis=0)
        price = np.zeros(tree.node_count)
        members = self.decision_path(X).tocsc()
        for node in inner:
            at = members.indices[members.indptr[node] : members.indptr[node + 1]]
            column = X[:, [tree.feature[node]]]
            values = (column.toarray() if sp.issparse(column) else column)[at]
            price[node] = np.log2(max(1, len(np.unique(values)) - 1))
        return (tree.children_left >= 0) & (gain <= price)

    def _prune(self, worthless: np.ndarray) -> None:
        tree = self.tree_
        rows = tree.n_node_samples
        shares = tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True)
        as_leaf = rows * upper_errors(rows, rows * (1.0 - shares.max(axis=1)), self.confidence)
        below = as_leaf.copy()
        pruned = tree.children_left < 0
        for node in np.flatnonzero(~pruned)[::-1]:  # children have larger numbers than their parent
            below[node] = below[tree.children_left[node]] + below[tree.children_right[node]]
            if worthless[node] or as_leaf[node] <= below[node] + 0.1:
                pruned[node], below[node] = True, as_leaf[node]
        self._leaf_of = np.arange(tree.node_count)
        inner = np.flatnonzero(tree.children_left >= 0)
        for node in inner:
            if pruned[node] or self._leaf_of[node] != node:
                self._leaf_of[[tree.children_left[node], tree.children_right[node]]] = self._leaf_of[node]
        ends = self._leaf_of[tree.children_left < 0]
        self.n_leaves_ = len(np.unique(ends))
        self._shares = shares

    def predict_proba(self, X: Any, check_input: bool = True) -> np.ndarray:
        """Return the class frequencies of the leaf of each row, shape (n, number of classes)."""
        check_is_fitted(self)
        return self._shares[self._leaf_of[self.apply(X, check_input=check_input)]]

    def predict(self, X: Any, check_input: bool = True) -> np.ndarray:
        """Return the commonest class of the leaf of each row."""
        best = self.predict_proba(X, check_input=check_input).argmax(axis=1)
        return self.classes_[best]


def upper_errors(rows: np.ndarray, errors: np.ndarray, confidence: float) -> np.ndarray:
    """Return the upper end of the one-sided confidence interval of an error rate.

    The rate p at which so few errors, or fewer, have the probability ``confidence``: C4.5's U_CF(E, N), without its
    normal approximation.
    """
    rate = betaincinv(errors + 1.0, np.maximum(rows - errors, 1e-9), 1.0 - confidence)
    return np.where(errors >= rows, 1.0, rate)
