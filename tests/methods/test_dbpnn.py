"""DBPNN: the network of the iMLDF paper, labels with one class, pretraining."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.networks.dbpnn import DBPNN


def test_it_is_the_perceptron_of_scikit_learn() -> None:
    X, Y, X_test = make_data()
    ours = DBPNN(hidden=(10, 5), max_iter=50, random_state=0).fit(X, Y)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    theirs = MLPClassifier((10, 5), max_iter=50, random_state=seed)
    with pytest.warns(match="Maximum iterations"):
        theirs.fit(X, Y)
    np.testing.assert_array_equal(ours.predict_proba(X_test), theirs.predict_proba(X_test))
    assert ((ours.predict_proba(X_test) > 0) & (ours.predict_proba(X_test) < 1)).all()


def test_one_label_is_the_binary_network_and_labels_with_one_class_are_left_out() -> None:
    X, Y, X_test = make_data()
    one = DBPNN(hidden=(8,), max_iter=30, random_state=0).fit(X, Y[:, :1]).predict_proba(X_test)
    wider = np.column_stack([np.zeros(len(Y), int), Y[:, 0], np.ones(len(Y), int)])
    scores = DBPNN(hidden=(8,), max_iter=30, random_state=0).fit(X, wider).predict_proba(X_test)
    np.testing.assert_array_equal(scores, np.column_stack([np.zeros(15), one, np.ones(15)]))


@pytest.mark.parametrize("labels", [4, 1])
def test_pretraining_starts_elsewhere_and_learns(labels: int) -> None:
    X, Y, _ = make_data(n=150)
    Y = Y[:, :labels]
    args = {"hidden": (20, 10), "activation": "logistic", "learning_rate_init": 0.02, "random_state": 0}
    plain, deep = DBPNN(**args).fit(X, Y), DBPNN(**args, pretrain="rbm").fit(X, Y)
    assert not np.allclose(plain.predict_proba(X), deep.predict_proba(X))
    assert (deep.predict(X) != Y).mean() < 0.5 * min(Y.mean(), 1 - Y.mean())


def test_what_cannot_be_pretrained_on_is_refused() -> None:
    X, Y, _ = make_data()
    with pytest.raises(MethodError, match="reaches from"):
        DBPNN(pretrain="rbm").fit(X - 1, Y)
    with pytest.raises(MethodError, match="pretrain='dbn'"):
        DBPNN(pretrain="dbn").fit(X, Y)
