"""Resampling of the training rows, and only these, before a multi-label classifier."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.out_of_fold import fit_seeded, score_matrix
from multilab.methods.sampling.ml_ros import MLROS
from multilab.methods.transformation.binary_relevance import BinaryRelevance

__all__ = ["ResampledClassifier"]


class ResampledClassifier(MultiLabelClassifier):
    """Multi-label classifier fitted on resampled rows.

    The sampler changes the rows that ``fit`` gets. Rows to predict are passed on as they are: under cross-validation,
    repeated and synthetic rows are made from the training rows of each fold and never tested.

    Parameters
    ----------
    estimator : multi-label classifier, optional
        Cloned; ``BinaryRelevance()`` when None. One of scikit-learn with ``predict_proba`` or ``decision_function``
        will do.
    sampler : object with ``fit_resample(X, y)``, optional
        Cloned; ``MLROS()`` when None.
    random_state : int or RandomState, optional
        Seed of the sampler and of the estimator; None leaves theirs.

    Attributes
    ----------
    estimator_ : multi-label classifier
        Fitted on the resampled rows.
    sampler_ : object
        The sampler that was used.
    n_resampled_ : int
        Number of rows that ``estimator_`` was fitted on.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Scores and decisions are those of ``estimator_``.

    References
    ----------
    For `MLROS` and `MLSMOTE` see there; G. Lemaitre, F. Nogueira, C. K. Aridas. Imbalanced-learn: a Python toolbox to
    tackle the curse of imbalanced datasets in machine learning. JMLR 18, 2017 (the protocol of samplers).

    Examples
    --------
    >>> from multilab.methods import MLSMOTE, BinaryRelevance, ResampledClassifier
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> model = ResampledClassifier(BinaryRelevance(LogisticRegression()), MLSMOTE(), random_state=0)
    >>> model.fit(X, y).n_resampled_
    96
    >>> len(cross_val_score(model, X, y, cv=3, scoring="f1_macro"))
    3
    """

    def __init__(
        self, estimator: BaseEstimator | None = None, sampler: BaseEstimator | None = None, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.sampler = sampler
        self.random_state = random_state

    def _fit(self, X: Any, Y: Any) -> None:
        sampler = MLROS() if self.sampler is None else clone(self.sampler)
        if not hasattr(sampler, "fit_resample"):
            raise MethodError(f"sampler={self.sampler!r} has no fit_resample; give MLROS, MLRUS, MLSMOTE or your own")
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            if "random_state" in sampler.get_params():
                sampler.set_params(random_state=seed)
        resampled_X, resampled_Y = sampler.fit_resample(X, Y)
        self.sampler_, self.n_resampled_ = sampler, resampled_X.shape[0]
        self.estimator_ = fit_seeded(self._base(), resampled_X, resampled_Y, seed)

    def _base(self) -> Any:
        return BinaryRelevance() if self.estimator is None else self.estimator

    def _score_kind(self) -> str:
        base = self._base()
        if isinstance(base, MultiLabelClassifier):
            return base._score_kind()
        return "probability" if hasattr(base, "predict_proba") else "margin"

    def _threshold(self) -> float:
        base = self._base()
        return base._threshold() if isinstance(base, MultiLabelClassifier) else super()._threshold()

    def _predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.estimator_, MultiLabelClassifier):
            return self.estimator_._predict(X)
        return score_matrix(self.estimator_, X, self.n_labels_), np.asarray(self.estimator_.predict(X)).reshape(
            X.shape[0], -1
        )

    def _scores(self, X: Any) -> np.ndarray:
        return self._predict(X)[0]
