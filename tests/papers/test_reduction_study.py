"""The study lskmddm: its splits, its analyses compared with the reducers themselves, its figures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from multilab.cells import running
from multilab.cells.cell import Cell, SplitRef
from multilab.cells.errors import ExperimentError
from multilab.cells.method import load_method
from multilab.cells.rows import Rows
from multilab.cells.store import Store
from multilab.experiments.analyses import Unit
from multilab.experiments.study import load_study
from multilab.methods import LSKernelMDDM, MLkNN
from multilab.metrics import score_all
from multilab.papers.lskmddm import dimension, figures, reduction_time, regularisation

METRICS = ["average_precision", "macro_auc"]


@pytest.fixture
def inputs(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 20))
    Y = (X @ rng.normal(size=(20, 4)) + rng.normal(size=(160, 4)) > 1).astype(np.uint8)
    made = Rows(X[:120], Y[:120], X[120:], Y[120:])
    monkeypatch.setattr(running, "scaled_rows", lambda cell, store: made)
    return made


def unit(analysis, method, **settings):
    cell = Cell("train", SplitRef("toy", "0" * 64, "{}", 0, "1" * 64), load_method(method))
    return Unit(analysis.__name__, "toy", 0, cell, None, settings)


def table(module, one, *splits):
    parts = [
        pd.DataFrame({"method": one.method, "dataset": "toy", "split": s, **module.compute(one, Store())})
        for s in splits
    ]
    return module.finish(pd.concat(parts))


def scored(model, inputs):
    Z = model.fit_transform(inputs.X_train, inputs.Y_train)
    scores, decisions = MLkNN().fit(Z, inputs.Y_train).predict_with_scores(model.transform(inputs.X_test))
    return score_all(inputs.Y_test, scores, decisions)


def value(rows, metric, **where):
    for column, wanted in where.items():
        rows = rows[rows[column] == wanted]
    (result,) = rows.loc[rows["metric"] == metric, "value"]
    return result


def test_metrics_over_the_dimension(inputs):
    rows = table(dimension, unit(dimension, "lskmddm", dimensions=[2, 4, 9], metrics=METRICS), 0, 1)
    assert sorted(set(rows["dimension"])) == [2, 4]
    for count in (2, 4):
        scores = scored(LSKernelMDDM(count), inputs)
        for metric in METRICS:
            assert value(rows, metric, dimension=count) == pytest.approx(scores[metric], abs=1e-12)
    with pytest.raises(ExperimentError, match="a pipeline of a kernel reducer"):
        dimension.compute(unit(dimension, "mlknn", dimensions=[2], metrics=METRICS), Store())


def test_a_dimension_that_not_every_split_reaches_is_left_out():
    about = {"method": "m", "dataset": "d", "metric": "macro_auc"}
    rows = pd.DataFrame([{**about, "split": s, "dimension": k, "value": s + k} for s, k in ((0, 1), (1, 1), (1, 2))])
    table = dimension.finish(rows)
    assert table["dimension"].tolist() == [1]
    assert table["value"].tolist() == [1.5]


def test_regularisers_from_one_eigendecomposition_are_those_of_the_reducer(inputs):
    made = unit(regularisation, "lskmddm", steps=[1, 4], etas=[0.1, 10.0], metrics=METRICS)
    rows = table(regularisation, made, 0)
    expected = {
        ("lsqr", 4.0): LSKernelMDDM(solver="lsqr", max_iter=4),
        ("l2", 0.1): LSKernelMDDM(eta=0.1),
        ("rkhs", 10.0): LSKernelMDDM(eta=10.0, penalty="rkhs"),
        ("exact", 0.0): LSKernelMDDM(),
    }
    assert set(zip(rows["kind"], rows["strength"], strict=True)) == {
        *expected,
        ("lsqr", 1.0),
        ("l2", 10.0),
        ("rkhs", 0.1),
    }
    for (kind, strength), model in expected.items():
        scores = scored(model, inputs)
        here = rows[(rows["kind"] == kind) & (rows["strength"] == strength)]
        assert here["residual"].iloc[0] == pytest.approx(model.residual_, abs=1e-7)
        for metric in METRICS:
            assert value(here, metric) == pytest.approx(scores[metric], abs=1e-12)


def test_seconds_over_the_training_size(inputs):
    variants = {
        "three steps": {"of": "lskmddm", "solver": "lsqr", "max_iter": 3},
        "SVD": {"of": "kmddm", "solver": "factored"},
    }
    settings = {"sizes": [40, 80], "repeats": 1, "variants": variants}
    rows = table(reduction_time, unit(reduction_time, "kmddm", **settings), 0)
    assert list(zip(rows["variant"], rows["n"], strict=True)) == [(v, n) for n in (40, 80) for v in variants]
    assert (rows["seconds"] > 0).all()
    grown = pd.DataFrame(
        {"method": "m", "variant": "v", "dataset": "d", "split": 0, "n": [1, 2, 4], "seconds": [1, 8, 64]}
    )
    assert reduction_time.finish(grown)["slope"].tolist() == pytest.approx([3.0] * 3)


def test_the_study_divides_each_dataset_as_the_paper_does():
    study = load_study("lskmddm")
    sizes = {name: study.protocol_of(name)["holdout"]["train_size"] for name in study.datasets}
    assert sizes.pop("scene") == 2407 * 2 // 3
    assert sizes.pop("yeast") == 2417 * 2 // 3
    assert sizes.pop("rcv1subset1-top944") == 3000
    assert set(sizes.values()) == {4000}
    assert len(sizes) == 11
    assert {study.protocol_of(name)["repeats"] for name in study.datasets} == {10}


def costs():
    rows = [
        {"variant": v, "dataset": d, "n": n, "seconds": factor * (n / 100) ** slope, "slope": slope}
        for v, slope, factor in (("cubic", 3.0, 1.0), ("square", 2.0, 1.5))
        for d in ("x", "y")
        for n in (100, 200)
    ]
    return pd.DataFrame(rows).assign(method="m")


def test_the_figures_of_the_paper_are_drawn(tmp_path):
    study = study_of_a_report(tmp_path)
    about = [(k, c) for k in ("a", "b") for c in (1, 2)]
    dimensions = pd.DataFrame(
        [
            {"method": k, "dataset": d, "dimension": c, "metric": "macro_auc", "value": 0.1 * c}
            for k, c in about
            for d in "xy"
        ]
    )
    (figure,) = figures.dimension(study, dimensions)
    assert "Macro AUC" in figure.caption
    figure = figures.reduction_time(study, costs())
    assert "cubic 3.0 to 3.0, square 2.0 to 2.0" in figure.caption
    kinds = [("lsqr", 1.0), ("lsqr", 20.0), ("l2", 0.1), ("l2", 10.0), ("rkhs", 0.1), ("rkhs", 10.0), ("exact", 0.0)]
    rows = [
        {"dataset": "x", "kind": k, "strength": s, "metric": "macro_auc", "residual": 0.5, "value": 0.5}
        for k, s in kinds
    ]
    (figure,) = figures.regularisation(study, pd.DataFrame(rows))
    assert "LSQR" in figure.alt


def study_of_a_report(tmp_path):
    from types import SimpleNamespace

    return SimpleNamespace(folder=tmp_path, method_title=str)
