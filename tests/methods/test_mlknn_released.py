"""ML-kNN with released scores: joint probabilities instead of posteriors."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.multilabel_checks import make_data
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.methods.neighbours.mlknn_released import MLkNNReleased


@pytest.mark.parametrize("exclude_self", [False, True])
def test_the_score_is_the_numerator_of_the_posterior(exclude_self: bool) -> None:
    X, Y, X_test = make_data()
    Y[:, 1] = 1  # a label that all rows have
    model = MLkNNReleased(k=4, s=0.5, exclude_self=exclude_self).fit(X, Y)
    posterior = MLkNN(k=4, s=0.5, exclude_self=exclude_self).fit(X, Y)
    without = MLkNNReleased(k=4, s=0.5, exclude_self=exclude_self).fit(X, 1 - Y)
    # the neighbours that do not have a label are those that have its complement: r of them are k - r
    absent = without.posterior_[:, ::-1]
    np.testing.assert_allclose(model.posterior_ / (model.posterior_ + absent), posterior.posterior_, rtol=1e-12)
    np.testing.assert_allclose(model.posterior_.sum(axis=1), model.prior_)  # over all counts
    assert (model.predict_proba(X_test) <= posterior.predict_proba(X_test)).all()


def test_a_row_is_its_own_neighbour() -> None:
    X, Y = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([[1], [0], [1], [0]])
    model = MLkNNReleased(k=1).fit(X, Y)
    # the nearest row of each row is itself: both rows with the label have one neighbour with it
    np.testing.assert_allclose(model.posterior_, [[0.5 * 1 / 4, 0.5 * 3 / 4]])
    np.testing.assert_array_equal(model.predict(X), np.zeros((4, 1)))
