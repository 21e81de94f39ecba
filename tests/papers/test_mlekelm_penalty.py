"""What the penalty of ML-EKELM does, against the estimator and against least squares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from multilab.cells import running
from multilab.cells.cell import Cell, SplitRef
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build, load_method
from multilab.cells.rows import Rows
from multilab.cells.store import Store
from multilab.experiments.analyses import Unit
from multilab.methods.kernels import kernel_matrix
from multilab.metrics import score_all
from multilab.papers.mlekelm import penalty

METRICS = ["hamming_loss", "ranking_loss"]
SETTINGS = {"metrics": METRICS, "conventions": "matlab"}


@pytest.fixture
def inputs(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    Y = (X @ rng.normal(size=(4, 3)) + rng.normal(size=(90, 3)) > 0).astype(np.uint8)
    Y[:60, 2] = 0  # a label that no training row has
    made = Rows(X[:60], Y[:60], X[60:], Y[60:])
    monkeypatch.setattr(running, "scaled_rows", lambda cell, store: made)
    return made


def unit(method, **arguments):
    cell = Cell("train", SplitRef("toy", "0" * 64, "{}", 0, "1" * 64), load_method(method).with_params(arguments))
    return Unit(penalty.__name__, "toy", 0, cell, None, SETTINGS)


def frame(made):
    rows = {"method": made.method, "dataset": "toy", "split": 0, **penalty.compute(made, Store())}
    return penalty.finish(pd.DataFrame(rows)).set_index(["penalty", "rows", "metric"])["value"]


def test_values_with_the_penalty_are_those_of_the_estimator(inputs):
    made = unit("mlekelm", lam=2.0, alpha=0.5)
    table, model = frame(made), build(made.cell.method).fit(inputs.X_train, inputs.Y_train)
    for part, X, Y in (("train", inputs.X_train, inputs.Y_train), ("test", inputs.X_test, inputs.Y_test)):
        expected = score_all(Y, *model.predict_with_scores(X), conventions="matlab", metrics=METRICS)
        got = table["with"][part][METRICS].to_dict()
        assert got == pytest.approx({name: expected[name] for name in METRICS}, abs=1e-12)


def test_values_without_it_are_those_of_least_squares(inputs):
    table = frame(unit("mlekelm", gamma=0.5))
    assert table["without"]["train"].to_dict() == {"hamming_loss": 0.0, "ranking_loss": 0.0}
    kernel = kernel_matrix(inputs.X_train, gamma=0.5)
    weights = np.linalg.lstsq(kernel, 2.0 * inputs.Y_train - 1.0)[0]
    decisions = kernel_matrix(inputs.X_test, inputs.X_train, gamma=0.5) @ weights > 0
    assert table["without"]["test"]["hamming_loss"] == pytest.approx(np.mean(decisions != inputs.Y_test), abs=1e-12)


def test_zeros_are_counted_over_the_labels_that_vary(inputs):
    made = unit("mlekelm", lam=4.0, alpha=0.9)
    table, model = frame(made)["with"]["train"], build(made.cell.method).fit(inputs.X_train, inputs.Y_train)
    zero = model.coef_[:, model.column_[:2]] == 0
    assert table["labels"] == 2
    assert 0 < table["zero_weights"] == zero.mean() < 1
    assert table["zero_features"] == zero.all(axis=1).mean()


def test_only_the_machine_without_an_intercept_is_asked(inputs):
    with pytest.raises(ExperimentError, match="without an intercept"):
        penalty.compute(unit("mlkelm"), Store())
