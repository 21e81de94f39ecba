"""CDE: ensembles of label partitions that keep dependent labels together (ChiDep)."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from joblib import delayed
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from multilab.core.parallel import parallel
from multilab.methods.base import MethodError, WeightedClassifier
from multilab.methods.ensembles._label_groups import Group, fit_groups, random_partitions
from multilab.methods.ensembles._members import base_classifier
from multilab.methods.labels import is_partial
from multilab.methods.transformation.binary_relevance import BinaryRelevance

__all__ = ["CDE", "diverse", "partition_scores"]

_CRITICAL = {"chi2": 6.635, "conditional": 3.25}  # both at the level .01
_FOLDS = 10


class CDE(WeightedClassifier):
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

    Weights of the rows count in the dependence too.

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
        n_jobs: int | None = None,
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

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
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


def chi_square(Y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the chi-square statistic of independence for all pairs of labels.

    Parameters
    ----------
    Y : ndarray of shape (n, q)
        0/1, or int8 with -1: a pair of labels is counted in the rows that observe both.
    weight : ndarray of shape (n,), optional
        How often each row counts; once when None.

    Returns
    -------
    ndarray of shape (q, q)
        n phi^2 with phi = (n n11 - n1 n2) / sqrt(n1 n2 (n - n1)(n - n2)); 0 for a label with one class, and on the
        diagonal.
    """
    if is_partial(Y):
        return _observed_chi_square(Y, np.ones(len(Y)) if weight is None else weight)
    n = float(len(Y) if weight is None else weight.sum())
    counts = (Y.T.astype(np.float64) if weight is None else Y.T * weight) @ Y
    ones = np.diag(counts)
    covariance = n * counts - np.outer(ones, ones)
    spread = ones * (n - ones)
    product = np.outer(spread, spread)
    statistic = np.divide(n * covariance**2, product, out=np.zeros_like(counts), where=product > 0)
    np.fill_diagonal(statistic, 0.0)
    return statistic


def _observed_chi_square(Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return `chi_square` of each pair of labels on the rows that observe both."""
    present, observed = (Y == 1).astype(np.float64), (Y >= 0).astype(np.float64)
    n, both, first = (
        (left.T * weight) @ right for left, right in ((observed,) * 2, (present,) * 2, (present, observed))
    )
    second = first.T
    product = first * (n - first) * second * (n - second)
    statistic = np.divide(n * (n * both - first * second) ** 2, product, out=np.zeros_like(n), where=product > 0)
    np.fill_diagonal(statistic, 0.0)
    return statistic


def conditional_t(
    base: BaseEstimator,
    X: Any,
    Y: np.ndarray,
    n_folds: int,
    seed: int,
    n_jobs: int | None = None,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """Return how much knowing one label helps to predict the other from the features.

    Parameters
    ----------
    base : scikit-learn classifier
        Fitted on the features, and on the features and one other label, q (q - 1) + q times per fold.
    X : ndarray or CSR matrix of shape (n, d)
    Y : ndarray of shape (n, q)
        0/1.
    n_folds : int
        Shuffled folds, the same for all pairs; no more than rows.
    seed : int
        Of the folds and of the base classifiers.
    weight : ndarray of shape (n,), optional
        Weights of the rows, in the fits and in the accuracies.

    Returns
    -------
    ndarray of shape (q, q), symmetric
        Paired t statistic of the two accuracies over the folds, -1 where the other label makes the mean accuracy
        lower, 0 where the differences are all equal; the larger of the two directions.

    References
    ----------
    L. Tenenboim-Chekina, L. Rokach, B. Shapira. Identification of label dependencies for multi-label classification.
    MLD workshop at ICML 2010.
    """
    if len(Y) < 2:
        raise MethodError(f"conditional dependence is measured on folds, which n_samples = {len(Y)} does not allow")
    folds = list(KFold(min(n_folds, len(Y)), shuffle=True, random_state=seed).split(Y))
    q = Y.shape[1]

    def accuracies(other: int | None) -> np.ndarray:
        columns = [X] if other is None else [X, Y[:, [other]].astype(np.float64)]
        matrix = sp.hstack(columns, format="csr") if sp.issparse(X) else np.hstack(columns)
        labels = np.flatnonzero(np.arange(q) != other) if other is not None else np.arange(q)
        accuracies = np.zeros((len(folds), q))
        for fold, (train, test) in enumerate(folds):
            learned, tested = (None, None) if weight is None else (weight[train], weight[test])
            model = BinaryRelevance(base, random_state=seed).fit(matrix[train], Y[np.ix_(train, labels)], learned)
            hits = model.predict(matrix[test]) == Y[np.ix_(test, labels)]
            accuracies[fold, labels] = np.average(hits, axis=0, weights=tested)
        return accuracies

    alone = accuracies(None)
    helped = parallel(n_jobs, prefer="threads")(delayed(accuracies)(j) for j in range(q))
    one_way = np.column_stack([_paired_t(with_label - alone) for with_label in helped])
    statistic = np.maximum(one_way, one_way.T)
    np.fill_diagonal(statistic, 0.0)
    return statistic


def _paired_t(gains: np.ndarray) -> np.ndarray:
    """Return t per column of accuracy gains of shape (folds, q)."""
    count = len(gains)
    mean = gains.mean(axis=0)
    spread = ((gains - mean) ** 2).sum(axis=0)
    t = np.divide(mean * np.sqrt(count * (count - 1)), np.sqrt(spread), out=np.zeros_like(mean), where=spread > 1e-20)
    return np.where(mean < 0, -1.0, t)
