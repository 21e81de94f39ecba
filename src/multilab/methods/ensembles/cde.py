# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""CDE: ensembles of label partitions that keep dependent labels together (ChiDep)."""

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.ensembles._dependence import chi_square, conditional_t
from multilab.methods.ensembles._label_groups import Group, fit_groups, random_partitions
from multilab.methods.ensembles._members import base_classifier

__all__ = ["CDE", "diverse", "partition_scores"]

_CRITICAL = {"chi2": 6.635, "conditional": 3.25}  # both at the level .01
_FOLDS = 10


class CDE(MultiLabelClassifier):
    """ChiDep ensemble: partitions of the labels with dependent labels in one group, and their votes.

    Random partitions are scored by the dependence inside groups minus that across; of the best ones, different
    ones are taken. Each group is a label powerset, a single label a binary problem.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each group. When None an entropy tree with 2 rows per leaf, instead of the paper's C4.5:
        ``DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)``. An SVC's kernel matrix is computed once.
    n_estimators : int, default=10
        Number of partitions; fewer where there are not as many different ones.
    dependence : {"chi2", "conditional"}, default="chi2"
        Chi-square test of two labels, or how much one label helps to predict the other (see `conditional_t`; about
        10 q^2 fits of the base classifier).
    critical : float, optional
        Subtracted from the statistic, so that independent pairs count against sharing a group; 6.635 and 3.25 when
        None.
    n_candidates : int, default=50000
        Random partitions to choose from.
    n_kept : int, default=100
        Best candidates among which different ones are chosen.
    diversity : float in [0, 1], default=0.2
        Each next partition is the best of this share of ``n_kept`` that is most different from those chosen; 0
        takes the most different one.
    n_jobs : int, optional
        Groups fitted at the same time; does not change the result.
    random_state : int or RandomState, optional
        Seed of the partitions, the folds of "conditional" and the base classifiers.

    Attributes
    ----------
    dependence_ : ndarray of shape (q, q)
        Statistic minus critical value; 0 on the diagonal.
    partitions_ : list of list of tuple of int
        The groups of label numbers of each member.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    The score of a label is the share of partitions in which it is assigned; it is assigned iff >= 0.5. All members see
    all rows, so that a group that several partitions have is fitted once.

    With ``n_candidates`` no larger than ``n_estimators`` (10 in the driver of the MLWSE paper) all candidates are used
    and the dependence decides nothing. Mulan takes two partitions for the same when their scores have equal integer
    parts, and never takes the most different one; here partitions are compared as such and all may be taken.

    References
    ----------
    L. Tenenboim-Chekina, L. Rokach, B. Shapira. Identification of label dependencies for multi-label classification.
    MLD workshop at ICML 2010.

    Examples
    --------
    >>> from multilab.methods import CDE
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = CDE(n_estimators=5, random_state=0).fit(X, y)
    >>> model.dependence_.shape
    (3, 3)
    >>> model.predict_proba(X[:2])
    array([[1. , 1. , 1. ],
           [1. , 0. , 0.2]])
    """

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        n_estimators: int = 10,
        dependence: Literal["chi2", "conditional"] = "chi2",
        critical: float | None = None,
        n_candidates: int = 50_000,
        n_kept: int = 100,
        diversity: float = 0.2,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.dependence = dependence
        self.critical = critical
        self.n_candidates = n_candidates
        self.n_kept = n_kept
        self.diversity = diversity
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from X of shape (n, d), dense or sparse, and y of shape (n, q).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, q)
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, >= 0, passed to the base classifier, which must take them, and counted in the
            dependence. A row of weight 0 is absent.

        Raises
        ------
        MethodError
            If an argument is out of its range.
        """
        X, Y, weight = self._validate_weighted(X, y, sample_weight)
        self._check_arguments()
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        base = base_classifier(self.estimator)
        self.dependence_ = self._dependence(base, X, Y, seed, weight)
        candidates = random_partitions(self.n_labels_, self.n_candidates, rng)
        best = np.argsort(-partition_scores(candidates, self.dependence_), kind="stable")[: self.n_kept]
        chosen = candidates[best[diverse(candidates[best], self.n_estimators, self.diversity)]]
        self.partitions_ = [_groups(partition) for partition in chosen]
        groups = (group for partition in self.partitions_ for group in partition)
        self._members = fit_groups(base, X, Y, groups, seed, self.n_jobs, weight)
        return self

    def _check_arguments(self) -> None:
        """Raise a `MethodError` if an argument is out of range."""
        if self.dependence not in _CRITICAL:
            raise MethodError(f"dependence={self.dependence!r}: give 'chi2' or 'conditional'")
        counts = (self.n_estimators, self.n_candidates, self.n_kept)
        if min(counts) < 1 or not 0 <= self.diversity <= 1:
            raise MethodError(
                f"n_estimators, n_candidates, n_kept = {counts} must be 1 or more, "
                f"diversity={self.diversity!r} in [0, 1]"
            )

    def _dependence(
        self, base: BaseEstimator, X: Any, Y: np.ndarray, seed: int, weight: np.ndarray | None
    ) -> np.ndarray:
        """Return the test statistic of each pair of labels less its critical value, shape (q, q), 0 on the diagonal."""
        if self.dependence == "chi2":
            statistic = chi_square(Y, weight)
        else:
            statistic = conditional_t(base, X, Y, _FOLDS, seed, self.n_jobs, weight)
        statistic -= _CRITICAL[self.dependence] if self.critical is None else self.critical
        np.fill_diagonal(statistic, 0.0)
        return statistic

    def _scores(self, X: Any) -> np.ndarray:
        return self._members.vote_shares(X, self.n_labels_)


def partition_scores(partitions: np.ndarray, dependence: np.ndarray) -> np.ndarray:
    """Return the dependence of the pairs inside groups minus that of the pairs across, per partition."""
    columns = np.ascontiguousarray(partitions.T)
    weights = np.triu(dependence, 1)
    inside = np.zeros(len(partitions))
    together = np.empty(columns.shape)  # one buffer of numbers for all labels
    for label in range(len(columns) - 1):
        same = np.equal(columns[label + 1 :], columns[label], out=together[label + 1 :])
        inside += weights[label, label + 1 :] @ same
    return 2.0 * inside - weights.sum()


def diverse(partitions: np.ndarray, count: int, share: float) -> list[int]:
    """Return which of the partitions, given best first, to take: the first, and then different ones.

    The distance of two partitions is the number of pairs of labels that share a group in one of them only.
    """
    first, second = np.triu_indices(partitions.shape[1], 1)
    together = (partitions[:, first] == partitions[:, second]).astype(np.float64)
    window = max(1, int(share * len(partitions)))
    chosen = [0]
    nearest = np.abs(together - together[0]).sum(axis=1)
    while len(chosen) < min(count, len(partitions)):
        nearest[chosen] = -1.0
        farthest = np.argsort(-nearest, kind="stable")[: min(window, len(partitions) - len(chosen))]
        chosen.append(int(farthest.min()))
        nearest = np.minimum(nearest, np.abs(together - together[chosen[-1]]).sum(axis=1))
    return chosen


def _groups(partition: np.ndarray) -> list[Group]:
    """Return the labels of each group of a partition, given as the group number of each label."""
    return [tuple(np.flatnonzero(partition == number).tolist()) for number in np.unique(partition)]
