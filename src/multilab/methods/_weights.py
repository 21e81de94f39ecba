"""Weights of rows, and of the two values of each label."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from multilab.methods.base import MethodError

LabelWeight = Literal["balanced"] | Any  # "balanced" or an array of shape (q,) or (q, 2); None: all values count 1


@dataclass(frozen=True, eq=False)
class Weights:
    """Weight of each row for each label: the product of its weight and that of its value of the label.

    Attributes
    ----------
    given : ndarray of shape (n,) or (n, q), or None
        ``sample_weight``: positive weights of the rows, or of the labels of each row, 0 where a label is not observed;
        None: all count 1.
    values : "balanced", ndarray of shape (q, 2) or None
        ``label_weight``: weights of the values 0 and 1 of each label.
    """

    given: np.ndarray | None
    values: Any

    @classmethod
    def of(cls, given: np.ndarray | None, label_weight: LabelWeight, n_labels: int) -> Self:
        """Return the weights after checking ``label_weight``.

        Parameters
        ----------
        given : ndarray of shape (n,) or (n, q), or None
            Validated ``sample_weight``.
        label_weight : None, "balanced" or array-like of shape (q,) or (q, 2)
            "balanced": n / (2 n_c) for the n_c rows with the value c of a label, where n and n_c are sums of weights
            and 1 replaces 2 for a label with a single value, as `sklearn.utils.class_weight.compute_class_weight` has
            it. Shape (q,): weights of the value 1 of each label; the value 0 counts 1. Shape (q, 2): of both values.
        n_labels : int
            q.

        Raises
        ------
        MethodError
            If ``label_weight`` is neither "balanced" nor an array of positive numbers of one of these shapes.
        """
        if label_weight is None or (isinstance(label_weight, str) and label_weight == "balanced"):
            return cls(given, label_weight)
        expected = f"give 'balanced' or positive numbers of shape ({n_labels},) or ({n_labels}, 2)"
        try:
            values = np.asarray(label_weight, dtype=np.float64)
        except (TypeError, ValueError):
            raise MethodError(f"label_weight={label_weight!r}: {expected}") from None
        if values.shape == (n_labels,):
            values = np.column_stack([np.ones(n_labels), values])
        if values.shape != (n_labels, 2):
            raise MethodError(f"label_weight has shape {values.shape}: {expected}")
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise MethodError(f"label_weight holds {values[~(np.isfinite(values) & (values > 0))][0]:g}: {expected}")
        return cls(given, values)

    @property
    def uniform(self) -> bool:
        """Whether there are no weights."""
        return self.given is None and self.values is None

    @property
    def by_label(self) -> bool:
        """Whether a row may have different weights for different labels."""
        return self.values is not None or self.cells is not None

    @property
    def cells(self) -> np.ndarray | None:
        """Weights of the labels of each row, shape (n, q); None if they are those of the rows."""
        return None if self.given is None or self.given.ndim == 1 else self.given

    @property
    def rows(self) -> np.ndarray | None:
        """One weight for each row, shape (n,), for what all labels share: the mean of those of its observed labels."""
        if self.cells is None:
            return self.given
        observed = np.maximum((self.cells > 0).sum(axis=1), 1)
        return np.where(self.cells.any(axis=1), self.cells.sum(axis=1) / observed, 1.0)

    def of_label(self, label: int, y: np.ndarray) -> np.ndarray | None:
        """Return the weights of the rows for one label, shape (n,), given its 0/1 column; None where all count 1."""
        given = self.given if self.cells is None else np.ascontiguousarray(self.cells[:, label])  # for libsvm
        if self.values is None:
            return given
        zero, one = _balanced(y, given) if isinstance(self.values, str) else self.values[label]
        weights = np.where(y == 1, one, zero)
        return weights if given is None else weights * given

    def matrix(self, Y: np.ndarray) -> np.ndarray:
        """Return the weights of all rows for all labels, shape (n, q)."""
        columns = [self.of_label(label, y) for label, y in enumerate(Y.T)]
        return np.column_stack([np.ones(len(Y)) if column is None else column for column in columns])


def _balanced(y: np.ndarray, rows: np.ndarray | None) -> tuple[float, float]:
    """Return the weights n / (2 n_c) of the values 0 and 1; 1 where there is one value only."""
    ones, zeros = (float((y == value).sum() if rows is None else rows[y == value].sum()) for value in (1, 0))
    if not (ones and zeros):
        return 1.0, 1.0
    return (ones + zeros) / (2.0 * zeros), (ones + zeros) / (2.0 * ones)


def takes_weights(estimator: BaseEstimator) -> bool:
    """Return whether ``fit`` takes ``sample_weight``; for a pipeline, whether its last step does."""
    return _weight_argument(estimator) is not None


def check_takes_weights(estimator: BaseEstimator, weights: Weights) -> None:
    """Raise a `MethodError` if there are weights and the base estimator takes none."""
    if not weights.uniform and not takes_weights(estimator):
        reason = "label_weight" if weights.given is None else "sample_weight"
        raise MethodError(
            f"{reason} is given, but {type(estimator).__name__}.fit takes no sample_weight; "
            f"choose another base estimator, or leave {reason} out"
        )


def weight_arguments(estimator: BaseEstimator, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return the weights under the name of the argument of the estimator's ``fit``; empty without weights."""
    if weight is None:
        return {}
    name = _weight_argument(estimator)
    if name is None:
        raise MethodError(f"{type(estimator).__name__}.fit takes no sample_weight")
    return {name: weight}


def _weight_argument(estimator: Any) -> str | None:
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        argument = _weight_argument(last)
        return None if argument is None else f"{step}__{argument}"
    return None
