"""A stack on base scores with a separate prediction for each metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logit, softmax
from sklearn.base import clone

from multilab.decision.expected_f1 import expected_f1_decisions
from multilab.decision.thresholds import LOWEST, OBJECTIVES, LabelCurves, best_k, best_nested, label_ranks
from multilab.methods.base import MultiLabelClassifier
from multilab.methods.stacking.score_ensemble import ScoreEnsemble
from multilab.methods.ties import first_largest
from multilab.metrics.registry import defined

__all__ = ["MetricStack"]

Decide = Callable[[np.ndarray], np.ndarray]  # decisions (n, q), bool, of probabilities (n, q)

# By name, not all of METRICS: another metric must not change what a stack stores, nor the keys of stored stacks.
_CHOSEN_FOR = (
    *("hamming_loss", "subset_accuracy", "jaccard", "example_precision", "example_recall", "example_f1"),
    *("macro_f1", "micro_f1", "macro_auc", "micro_auc", "average_precision", "ranking_loss", "one_error"),
    *("coverage", "coverage_1based", "coverage_normalised"),
)
_N_AVERAGED = 5  # scores averaged for a metric: their held-out values are often closer than their sampling errors
_SMALL = 1e-12  # slack for rounding errors of sums of probabilities
_STRENGTHS = {"independent": 0.0, "dependent": 0.5}


class MetricStack(MultiLabelClassifier):
    """Stack on base scores that makes, for each metric, the predictions that are best on held-out rows.

    A `ScoreEnsemble` turns base scores into probabilities in several ways. Probabilities of the label sets of the
    training rows, independent given the row or with the dependence in their frequencies, give more. For a metric on
    scores the best five of these are averaged. For a metric on decisions the best policy is taken: 0.5 on each of
    them, thresholds per label or for all labels, labels of highest score, or the set with the largest expected metric.

    Parameters
    ----------
    ensemble : ScoreEnsemble, optional
        ``ScoreEnsemble()`` when None. Its best candidate by its own metric has the probabilities that thresholds and
        label sets are computed from.
    random_state : int, optional
        Seed of the ensemble if that has none.

    Attributes
    ----------
    ensemble_ : ScoreEnsemble
    choices_ : dict of str to tuple of str
        Metric of `multilab.metrics` -> name of its decision policy, or names of the scores that are averaged.
    validation_ : dict of str to dict of str to float
        Metric -> name -> value on held-out rows.

    Notes
    -----
    Everything is fitted to out-of-fold scores of the training rows. A policy is validated on the rows of one fold of
    the ensemble with thresholds and label sets of the other folds.

    ``predict`` and ``predict_proba`` use the best candidate of the ensemble and the threshold 0.5;
    `predict_measures` the choice of each of the metrics in ``choices_``. They are named in this module, so that
    another metric changes no stack. A label that every row gets ("all") is the best decision for example recall, which
    has no penalty for it.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.decision import MetricStack
    >>> from multilab.methods import MLkNN, RFPCT
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.model_selection import cross_val_predict
    >>> X, y = make_multilabel_classification(n_samples=90, n_features=6, n_classes=3, random_state=0)
    >>> members = MLkNN(k=5), RFPCT(n_estimators=10, random_state=0)
    >>> S = np.hstack([cross_val_predict(member, X, y, cv=3, method="predict_proba") for member in members])
    >>> model = MetricStack().fit(S, y)
    >>> model.choices_["example_recall"]
    ('all',)
    >>> scores, decisions = model.predict_measures(S)["macro_f1"]
    >>> decisions.shape
    (90, 3)
    """

    _accepts_sparse = False
    _scores_of_labels = True

    def __init__(self, ensemble: ScoreEnsemble | None = None, random_state: int | None = None) -> None:
        self.ensemble = ensemble
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        self.ensemble_ = clone(ScoreEnsemble() if self.ensemble is None else self.ensemble)
        if self.ensemble_.random_state is None:
            self.ensemble_.set_params(random_state=self.random_state)
        self.ensemble_.fit(X, Y)
        scores, decisions = self._held_out(Y)
        self.validation_: dict[str, dict[str, float]] = {}
        for name, metric in ((name, defined(name)) for name in _CHOSEN_FOR):
            candidates = decisions if metric.needs == "decisions" else scores
            self.validation_[name] = {key: metric.function(Y, value) for key, value in candidates.items()}
        self.choices_ = {name: self._best(name) for name in _CHOSEN_FOR}
        chosen = {choice for choices in self.choices_.values() for choice in choices}
        base = self.ensemble_.out_of_fold_scores_
        self._sets = LabelSetModel.of(Y)
        self._fitted = {name: fit(base, Y) for name, fit in _POLICIES.items() if name in chosen}

    def _best(self, name: str) -> tuple[str, ...]:
        """Return the best policy of a metric on decisions, or the best scores of one on scores, best first."""
        metric = defined(name)
        sign = 1.0 if metric.direction == "max" else -1.0
        values = {key: sign * value for key, value in self.validation_[name].items()}
        order = sorted(values, key=lambda key: np.inf if np.isnan(values[key]) else -values[key])
        return tuple(order[: 1 if metric.needs == "decisions" else _N_AVERAGED])

    def _held_out(self, Y: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return scores and decisions of the training rows by every candidate, fitted without the row."""
        base, parts = self.ensemble_.out_of_fold_scores_, []
        for train, test in self.ensemble_.folds_:
            P = {name: scores[test] for name, scores in self.ensemble_.out_of_fold_.items()}
            fitted = {name: fit(base[train], Y[train]) for name, fit in _POLICIES.items()}
            parts.append(self._predictions(P, LabelSetModel.of(Y[train]), fitted, None))
        joined = []
        for position in (0, 1):
            tables = [part[position] for part in parts]
            arrays = {name: np.empty(Y.shape, dtype=value.dtype) for name, value in tables[0].items()}
            for (_, test), table in zip(self.ensemble_.folds_, tables, strict=True):
                for name, value in table.items():
                    arrays[name][test] = value
            joined.append(arrays)
        return joined[0], joined[1]

    def _predictions(
        self, P: dict[str, np.ndarray], sets: LabelSetModel, fitted: dict[str, Decide], names: set[str] | None
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return scores and decisions by name, of all candidates or of ``names``."""
        base = P[self.ensemble_.combination_]
        scores = dict(P)
        decisions = {name: decide(base) for name, decide in fitted.items()}
        wanted = {(kind, utility) for kind in _STRENGTHS for utility in _UTILITIES}
        if names is not None:
            wanted = {pair for pair in wanted if "_".join(pair) in names}
        posteriors = {kind: sets.posterior(base, strength) for kind, strength in _STRENGTHS.items()}
        for kind, posterior in posteriors.items():
            scores[f"{kind}_sets"] = posterior @ sets.sets
            scores[f"{kind}_pairs"] = posterior @ (sets.sets / sets.n_pairs())
            # the order of the labels in a row counts: the sum of the row makes it comparable with the other scores
            sums = [scores[f"{kind}_{which}"].sum(axis=1, keepdims=True) for which in ("sets", "pairs")]
            scores[f"{kind}_pairs"] *= sums[0] / np.maximum(sums[1], _SMALL)
        for utility, table in _UTILITIES.items():
            kinds = [kind for kind in _STRENGTHS if (kind, utility) in wanted]
            values = table(sets.sets, sets.sets).T if kinds else None
            for kind in kinds:
                decisions[f"{kind}_{utility}"] = sets.sets[first_largest(posteriors[kind] @ values, axis=1)] > 0
        for name, values in scores.items():
            if not name.endswith("_pairs"):
                decisions[f"half_{name}"] = values >= 0.5 - _SMALL  # sums of probabilities reach 0.5 up to rounding
        return scores, decisions

    def predict_measures(self, X: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return scores and decisions for each metric that has a choice in ``choices_``.

        Parameters
        ----------
        X : array-like of shape (n, m q)

        Returns
        -------
        dict of str to (ndarray of shape (n, q), int64 ndarray of shape (n, q))
        """
        X = self._validate_predict(X)
        P = self.ensemble_.candidate_scores(X)
        base = P[self.ensemble_.combination_]
        names = {choice for choices in self.choices_.values() for choice in choices}
        scores, decisions = self._predictions(P, self._sets, self._fitted, names)
        measures = {}
        for name, choices in self.choices_.items():
            if defined(name).needs == "decisions":
                measures[name] = base, decisions[choices[0]].astype(np.int64)
            else:
                measures[name] = np.mean([scores[choice] for choice in choices], axis=0), (base >= 0.5).astype(np.int64)
        return measures

    def _scores(self, X: Any) -> np.ndarray:
        return self.ensemble_.predict_proba(X)


@dataclass(frozen=True, eq=False)
class _Threshold:
    """Assigns a label at a probability of at least its value."""

    values: np.ndarray

    def __call__(self, P: np.ndarray) -> np.ndarray:
        return self.values <= P


@dataclass(frozen=True)
class _Top:
    """Assigns the k most probable labels."""

    k: int

    def __call__(self, P: np.ndarray) -> np.ndarray:
        return label_ranks(P) < self.k


def _expected_f1(P: np.ndarray) -> np.ndarray:
    return expected_f1_decisions(P) > 0


def _macro_f1(P: np.ndarray, Y: np.ndarray) -> Decide:
    """Thresholds per label for macro F1; a label without positive rows is never assigned."""
    curves = LabelCurves.of(Y, P, np.ones(len(Y)))
    return _Threshold(curves.thresholds(curves.macro_f1_cuts()))


def _macro_f1_expected(P: np.ndarray, Y: np.ndarray) -> Decide:
    """Thresholds per label for macro F1 if the probabilities are right: they replace the labels of few positives."""
    curves = LabelCurves.of(P, P, np.ones(len(Y)))
    return _Threshold(np.where(Y.any(axis=0), curves.thresholds(curves.macro_f1_cuts()), np.inf))


def _micro_f1(P: np.ndarray, Y: np.ndarray) -> Decide:
    curves = LabelCurves.of(Y, P, np.ones(len(Y)))
    return _Threshold(curves.thresholds(curves.micro_f1_cuts()))


def _global(P: np.ndarray, Y: np.ndarray, objective: str) -> Decide:
    return _Threshold(np.asarray(best_nested(Y, P, np.ones(len(Y)), objective)))


_POLICIES: dict[str, Callable[[np.ndarray, np.ndarray], Decide]] = {
    "macro_f1_thresholds": _macro_f1,
    "macro_f1_expected_thresholds": _macro_f1_expected,
    "micro_f1_thresholds": _micro_f1,
    **{f"global_threshold_{objective}": partial(_global, objective=objective) for objective in OBJECTIVES},
    "top_k": lambda P, Y: _Top(best_k(Y, P, "example_f1")),
    "first": lambda P, Y: _Top(1),
    "expected_f1": lambda P, Y: _expected_f1,
    "all": lambda P, Y: _Threshold(np.asarray(LOWEST)),
}


_MOST_SETS = 1000  # most frequent label sets: every row is compared with each of them
_LEAST = 1e-6  # probabilities are moved into [1e-6, 1 - 1e-6] before logarithms


@dataclass(frozen=True, eq=False)
class LabelSetModel:
    """Label sets of training rows, with their frequencies relative to independent labels.

    Attributes
    ----------
    sets : ndarray of shape (k, q)
        Distinct rows of Y; the 1,000 most frequent if there are more.
    dependence : ndarray of shape (k,)
        Log of the share of rows with a set, minus its log-probability if labels were independent.
    """

    sets: np.ndarray
    dependence: np.ndarray

    @classmethod
    def of(cls, Y: np.ndarray) -> LabelSetModel:
        """Return the model of the rows of Y."""
        sets, counts = np.unique(Y, axis=0, return_counts=True)
        most = np.sort(np.argsort(-counts, kind="stable")[:_MOST_SETS])
        sets, counts = sets[most].astype(np.float64), counts[most]
        share = (Y.sum(axis=0) + 1.0) / (len(Y) + 2.0)
        independent = sets @ logit(share) + np.log1p(-share).sum()
        return cls(sets, np.log(counts / len(Y)) - independent)

    def posterior(self, probabilities: np.ndarray, strength: float) -> np.ndarray:
        """Return the probability of each set, shape (n, k), from those of the labels, shape (n, q).

        Labels are independent given the row for ``strength`` 0, but other sets are impossible; with 1 the dependence
        between labels is that of all training rows.
        """
        margins = logit(np.clip(probabilities, _LEAST, 1 - _LEAST))
        return softmax(margins @ self.sets.T + strength * self.dependence, axis=1)

    def n_pairs(self) -> np.ndarray:
        """Return the number of pairs of a label inside and one outside of each set, at least 1, shape (k, 1)."""
        size = self.sets.sum(axis=1, keepdims=True)
        return np.maximum(size * (self.sets.shape[1] - size), 1.0)


def _sizes(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return A @ B.T, A.sum(axis=1)[:, None], B.sum(axis=1)[None, :]


def _ratio(numerator: np.ndarray, denominator: np.ndarray, empty: float) -> np.ndarray:
    return np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), empty)


def equal_sets(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return 1.0 where predicted set (row) and true set (column) are equal."""
    hits, predicted, true = _sizes(A, B)
    return ((hits == predicted) & (hits == true)).astype(np.float64)


def set_jaccard(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return intersection / union of predicted sets (rows) and true sets (columns), 1 for two empty ones."""
    hits, predicted, true = _sizes(A, B)
    return _ratio(hits, predicted + true - hits, 1.0)


def set_f1(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return F1 of predicted sets (rows) and true sets (columns), 1 for two empty ones."""
    hits, predicted, true = _sizes(A, B)
    return _ratio(2.0 * hits, predicted + true, 1.0)


def set_f1_zero(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return F1 of predicted sets (rows) and true sets (columns), 0 for two empty ones."""
    hits, predicted, true = _sizes(A, B)
    return _ratio(2.0 * hits, predicted + true, 0.0)


def set_precision(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return precision of predicted sets (rows) for true sets (columns); an empty set is right if both are empty."""
    hits, predicted, true = _sizes(A, B)
    return np.where(predicted + true == 0, 1.0, _ratio(hits, predicted, 0.0))


def set_recall(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return recall of predicted sets (rows) for true sets (columns); 0 for labels where none is true."""
    hits, predicted, true = _sizes(A, B)
    return np.where(predicted + true == 0, 1.0, _ratio(hits, true, 0.0))


def set_precision_and_recall(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the mean of precision and recall of predicted sets (rows) for true sets (columns)."""
    return 0.5 * (set_precision(A, B) + set_recall(A, B))


_UTILITIES = {
    "most_probable": equal_sets,
    "jaccard": set_jaccard,
    "f1": set_f1,
    "f1_zero": set_f1_zero,
    "precision": set_precision,
    "recall": set_recall,
    "precision_recall": set_precision_and_recall,
}
