"""Method fitted on all rows: base members, scaling, estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from multilab.core import MultilabError
from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError
from multilab.experiments.fitting import predict_with_scores

__all__ = ["BATCH", "FittedMethod", "HeldOutDecisions"]

BATCH = 5000
"""Rows that are predicted at a time."""


class HeldOutDecisions:
    """Fitted classifier whose decisions and probabilities were learned from held-out scores of its training rows.

    Parameters
    ----------
    estimator : object
        The fitted classifier.
    n_labels : int
    decisions : TunedThresholdClassifier, optional
        Fitted with the estimator "precomputed"; None: the classifier's own decisions.
    margins : bool
        Whether the classifier's scores are margins, which are put through the logistic function.
    calibration : CalibratedMultiLabelClassifier, optional
        Likewise "precomputed", of the scores after that.

    Notes
    -----
    Decisions are those of the scores before calibration, so that they are the same with and without it.
    """

    def __init__(
        self, estimator: Any, n_labels: int, decisions: Any = None, margins: bool = False, calibration: Any = None
    ) -> None:
        self.estimator = estimator
        self.n_labels = n_labels
        self.decisions = decisions
        self.margins = margins
        self.calibration = calibration

    @property
    def thresholds_(self) -> np.ndarray | None:
        """Threshold of the probability of each label; None for other decision rules."""
        return None if self.calibration is not None else getattr(self.decisions, "thresholds_", None)

    def predict_with_scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return probabilities and decisions, both of shape (n, q)."""
        scores, decisions = predict_with_scores(self.estimator, X, self.n_labels)
        scores = expit(scores) if self.margins else scores
        if self.decisions is not None:
            decisions = np.asarray(self.decisions.predict(scores), dtype=np.uint8)
        return (scores if self.calibration is None else self.calibration.predict_proba(scores)), decisions

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities of shape (n, q)."""
        return self.predict_with_scores(X)[0]


class FittedMethod:
    """Method fitted on all rows of a dataset, with everything around its estimator.

    Parameters
    ----------
    estimator : object
        Fitted on ``scaler``'s output or on the scores of ``members``.
    n_labels : int
    scaler : object, optional
        Fitted scaler of X; None: X is used as it is.
    members : sequence of FittedMethod
        Methods whose scores, side by side, are the estimator's input instead of X.
    columns : ndarray of int, optional
        The columns of X that the method was fitted on; None: all.
    """

    columns: np.ndarray | None = None  # of models that were saved without it

    def __init__(
        self,
        estimator: Any,
        n_labels: int,
        scaler: Any = None,
        members: Sequence[FittedMethod] = (),
        columns: np.ndarray | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_labels = n_labels
        self.scaler = scaler
        self.members = list(members)
        self.columns = columns

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores are probabilities."""
        return hasattr(self.estimator, "predict_proba")

    @property
    def thresholds(self) -> np.ndarray | None:
        """Threshold of the score of each label, shape (q,); None for other decision rules."""
        last = self.estimator[-1] if hasattr(self.estimator, "named_steps") else self.estimator
        own = getattr(last, "thresholds_", None)
        if own is not None and np.shape(own) == (self.n_labels,):
            return np.asarray(own, dtype=float)
        if getattr(last, "policy", None) in ("top_k", "expected"):
            return None
        if hasattr(last, "_threshold"):
            return np.full(self.n_labels, float(last._threshold()))
        return None

    def predict_with_scores(
        self, X: Any, progress: Callable[[Iterable[int], int], Iterable[int]] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return scores (float64) and decisions (uint8), both of shape (n, q).

        Rows are predicted in batches, so that kernels and distances between new rows and training rows, and scaled and
        dense copies of the rows, need no more memory for a long table than for a short one.

        Parameters
        ----------
        X : ndarray or CSR of shape (n, d)
            Encoded rows.
        progress : callable, optional
            Wraps the batches.

        Raises
        ------
        DatasetError
            The estimator fails, as numbers near the largest ones do that overflow in it.
        """
        starts = range(0, max(X.shape[0], 1), BATCH)
        parts = []
        for start in progress(starts, len(starts)) if progress else starts:
            try:
                rows = self.inputs(X[start : start + BATCH])
                parts.append(predict_with_scores(self.estimator, rows, self.n_labels))
            except MultilabError:
                raise
            except (ArithmeticError, LookupError, ValueError) as error:  # numbers that overflow, a damaged model
                where = f"rows {start + 1} to {min(start + BATCH, X.shape[0])}"
                reason = f"{type(error).__name__}: {excerpt(str(error))}"
                raise DatasetError(f"{where}: the model fails ({reason})") from error
        scores, decisions = zip(*parts, strict=True)
        return np.concatenate(scores), np.concatenate(decisions)

    def inputs(self, X: Any) -> Any:
        """Return the estimator's input: scaled features, or the scores of the members."""
        if self.members:
            return np.hstack([member.predict_with_scores(X)[0] for member in self.members])
        X = X if self.columns is None else X[:, self.columns]
        return X if self.scaler is None else self.scaler.transform(X)
