"""Common parts of the checks: data, seeded fits, and the outputs of any estimator as two matrices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from multilab.metrics.scorers import label_outputs

__all__ = ["ROUNDING", "Trial", "assert_message", "assert_refused", "assert_same", "make_check_data"]

# Relative to scores of order one: sums taken in another order, not another result.
ROUNDING = 1e-8

Outputs = tuple[Any, Any]


def make_check_data(seed: int = 0, n: int = 60, d: int = 8, q: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the data of the checks: dependent labels, about half of them set, row 0 without any.

    Parameters
    ----------
    seed, n, d, q : int
        Seed, training rows, features and labels.

    Returns
    -------
    X : ndarray of shape (n, d)
    Y : int64 ndarray of shape (n, q)
    X_test : ndarray of shape (15, d)

    Examples
    --------
    >>> from multilab.testing import make_check_data
    >>> X, Y, X_test = make_check_data()
    >>> X.shape, Y.shape, X_test.shape
    ((60, 8), (60, 4), (15, 8))
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n + 15, d))
    latent = (X - 0.5) @ rng.normal(size=(d, q)) + 0.2 * rng.normal(size=(n + 15, q))
    latent[:, 1] += 0.5 * latent[:, 0]
    Y = (latent > np.median(latent, axis=0)).astype(np.int64)
    Y[0] = 0
    return X[:n], Y[:n], X[n:]


class Trial:
    """An estimator under check; the fit on the data of the checks is shared by the checks that only read it.

    Parameters
    ----------
    estimator : estimator
        Never fitted itself: each fit is one of a clone.
    """

    data = staticmethod(make_check_data)

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def new(self, **params: Any) -> Any:
        """Return an unfitted clone with fixed seeds: its own, or those of nested estimators where it has none."""
        model = clone(self.estimator)
        names = model.get_params()
        seeds = [name for name in names if name == "random_state"] or [
            name for name in names if name.endswith("__random_state")
        ]
        return model.set_params(**dict.fromkeys(seeds, 0) | params)

    def fit(self, X: Any, Y: Any, **params: Any) -> Any:
        """Return a clone fitted on X and Y."""
        return self.new(**params).fit(X, Y)

    @functools.cached_property
    def model(self) -> Any:
        """The clone fitted on the data of the checks; not to be fitted again."""
        X, Y, _ = self.data()
        return self.fit(X, Y)

    @functools.cached_property
    def expected(self) -> Outputs:
        """The outputs of `model` for the test rows."""
        return self.outputs(self.model, self.data()[2])

    def fitted_outputs(self, X: Any, Y: Any, X_test: Any) -> Outputs:
        """Return the outputs for test rows after a fit."""
        return self.outputs(self.fit(X, Y), X_test)

    @staticmethod
    def outputs(model: Any, X: Any) -> Outputs:
        """Return scores (None where there are decisions only) and decisions."""
        if hasattr(model, "predict_with_scores"):
            return model.predict_with_scores(X)
        decisions = model.predict(X)
        for name in ("predict_proba", "decision_function"):
            if hasattr(model, name):
                return Trial.scores(model, name, X), _dense(decisions)
        return None, _dense(decisions)

    @staticmethod
    def scores(model: Any, name: str, X: Any) -> np.ndarray:
        """Return what ``predict_proba`` or ``decision_function`` gives, as one dense array."""
        return _dense(label_outputs(getattr(model, name)(X), model))


def _dense(output: Any) -> np.ndarray:
    return output.toarray() if sp.issparse(output) else np.asarray(output)


def assert_same(actual: Outputs, expected: Outputs, atol: float = ROUNDING) -> None:
    """Raise an AssertionError that says by how much scores, or in how many cells decisions differ."""
    if expected[0] is not None:
        assert np.shape(actual[0]) == np.shape(expected[0]), (
            f"scores of shape {np.shape(actual[0])} instead of {np.shape(expected[0])}"
        )
        gap = float(np.max(np.abs(np.asarray(actual[0], dtype=float) - expected[0]), initial=0.0))
        assert gap <= atol, f"scores differ by up to {gap:.3g}"
    assert np.shape(actual[1]) == np.shape(expected[1]), (
        f"decisions of shape {np.shape(actual[1])} instead of {np.shape(expected[1])}"
    )
    other = int(np.sum(np.asarray(actual[1]) != np.asarray(expected[1])))
    assert other == 0, f"{other} of {np.size(expected[1])} decisions differ"


def assert_refused(run: Any, what: str, about: str = "") -> None:
    """Raise an AssertionError if a call does not raise a ValueError or TypeError whose message is about something."""
    try:
        run()
    except (ValueError, TypeError) as error:
        assert_message(error, what, about)
        return
    raise AssertionError(f"{what}: accepted without an error")


def assert_message(error: Exception, what: str = "wrong input", about: str = "") -> None:
    """Raise an AssertionError if an error has no message, or one that is not about something."""
    message = str(error)
    assert message, f"{what}: the {type(error).__name__} has no message"
    assert about.lower() in message.lower(), f"{what}: the message says nothing of {about}: {message}"
