"""The study lskmddm: its splits, its analyses compared with the reducers themselves, its checks and figures."""

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
from multilab.claims import checks as checks_module
from multilab.claims.evidence import Evidence
from multilab.claims.paper import find
from multilab.experiments.analyses import Unit
from multilab.experiments.study import load_study
from multilab.methods import LSKernelMDDM, MLkNN
from multilab.metrics import score_all
from multilab.papers.lskmddm import dimension, figures, reduction_time, regularisation

METRICS = ["average_precision", "macro_auc"]


def run_check(name, arguments, evidence):
    return checks_module.run_check(name, arguments, evidence, find("lskmddm").checks)


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


def evidence(**tables):
    rows = [
        (dataset, split, method, "macro_f1", value)
        for dataset, split, a, b in (("x", 0, 0.5, 0.5), ("x", 1, 0.6, 0.4), ("y", 0, 0.7, 0.7), ("y", 1, 0.1, 0.1))
        for method, value in (("a", a), ("b", b))
    ]
    scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    return Evidence(scores, tables=tables)


def test_methods_agree_on_every_split_or_in_the_means():
    arguments = {"methods": ["a", "b"], "metrics": ["macro_f1"]}
    assert run_check("agree_within", {**arguments, "tolerance": 0.21}, evidence()).outcome == "holds"
    result = run_check("agree_within", {**arguments, "tolerance": 0.19}, evidence())
    assert (result.outcome, result.share) == ("holds in part", (1, 2))
    assert result.numbers == {"macro_f1": "0.2 on x, split 1"}
    assert "on every split" in result.sentence
    of_means = {**arguments, "tolerance": 0.11, "of_means": True}
    result = run_check("agree_within", of_means, evidence())
    assert result.outcome == "holds"
    assert "in the means" in result.sentence
    assert run_check("agree_within", {**of_means, "tolerance": 0.09}, evidence()).outcome == "holds in part"
    assert run_check("agree_within", {**arguments, "tolerance": 0.0, "datasets": ["y"]}, evidence()).outcome == "holds"
    without = run_check("agree_within", arguments, evidence())
    assert (without.outcome, without.holds_for) == ("depends on the limit", "differences of 0.2 and more")


def many(**values):
    """Evidence of eight datasets and two splits: a column per name, ``value`` on the first datasets and 0.5 later."""
    rows = [
        (f"d{dataset}", split, method, metric, value if dataset < first else 0.5)
        for method, (value, first) in values.items()
        for metric in ("macro_f1", "ranking_loss")
        for dataset in range(8)
        for split in range(2)
    ]
    return Evidence(pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"]), alpha=0.05)


DATASETS = [f"d{i}" for i in range(8)]


def test_which_method_is_better_over_the_datasets_or_on_each():
    ours = many(good=(0.9, 7), poor=(0.4, 8))
    about = {"methods": ["good"], "against": ["poor"], "metrics": ["macro_f1"], "datasets": DATASETS}
    assert run_check("better_than", about, ours).outcome == "holds"
    assert run_check("better_than", {**about, "metrics": ["macro_f1", "ranking_loss"]}, ours).share == (1, 2)
    assert run_check("better_than", {**about, "everywhere": True}, ours).outcome == "holds"
    tied = many(good=(0.9, 7), poor=(0.5, 8))
    assert run_check("better_than", {**about, "everywhere": True}, tied).outcome == "fails"
    same = run_check("better_than", {**about, "against": ["good"]}, ours)  # one column for two methods of a paper
    assert same.outcome == "fails"
    assert same.numbers == {"good against good, macro_f1": "0-0, p 1"}


def test_on_how_many_datasets_a_method_is_the_best():
    ours = many(a=(0.9, 5), b=(0.4, 5), c=(0.3, 3))
    about = {"method": "a", "methods": ["a", "b", "c", "a"], "datasets": DATASETS, "at_least": 8}
    assert run_check("best_on", {**about, "metrics": ["macro_f1"]}, ours).outcome == "holds"  # ties are included
    both = run_check("best_on", {**about, "metrics": ["macro_f1", "ranking_loss"]}, ours)
    assert (both.outcome, both.share) == ("holds in part", (1, 2))
    assert both.numbers["ranking_loss"] == "3 of 8, on single splits 3 to 3"
    one = run_check("best_on", {**about, "metrics": ["macro_f1"], "datasets": ["d0"], "at_least": 1}, ours)
    assert one.numbers["macro_f1"] == "1 of 1, on 2 of 2 splits"
    together = run_check("best_on", {**about, "metrics": ["macro_f1", "ranking_loss"], "together": True}, ours)
    assert (together.outcome, together.numbers["by all together"]) == ("fails", 3)


def test_the_counts_of_a_combination_are_those_of_its_columns():
    metrics = ["macro_auc", "macro_f1", "micro_f1", "ranking_loss", "one_error", "coverage", "average_precision"]
    level = {"kpca": 0.1, "klscca": 0.2, "k": 0.3, "r": 0.5, "o": 0.4}
    rows = [
        (dataset, 0, method, metric, 1 - value if metric in ("ranking_loss", "one_error", "coverage") else value)
        for dataset in (*DATASETS, "last")
        for method, value in level.items()
        for metric in metrics
    ]
    ours = Evidence(pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"]), alpha=0.05)
    about = {
        "eta": {"rule": "r"},
        "orthogonal": {"minimum": "o"},
        "original": {"eq": "k"},
        "others": ["kpca", "klscca"],
    }
    about |= {"datasets": DATASETS, "last": "last"}
    found = run_check("combinations", {**about, "counts": [8, 8, 0]}, ours)
    assert found.outcome == "holds"
    assert found.numbers == {
        "rule; minimum; eq": {
            "D3": "12 of 12",
            "D4": "8, 8, 0",
            "D5": 0.1,
            "D8": "8, 8, 8, 8",
            "D8 together": 8,
            "D9": "3 of 3",
        }
    }
    assert run_check("combinations", {**about, "counts": [8, 7, 1]}, ours).outcome == "fails"


def costs():
    rows = [
        {"variant": v, "dataset": d, "n": n, "seconds": factor * (n / 100) ** slope, "slope": slope}
        for v, slope, factor in (("cubic", 3.0, 1.0), ("square", 2.0, 1.5))
        for d in ("x", "y")
        for n in (100, 200)
    ]
    return pd.DataFrame(rows).assign(method="m")


def test_which_cost_grows_faster_and_which_are_alike():
    ours = evidence(reduction_time=costs())
    steep = {"table": "reduction_time", "variant": "cubic", "others": ["square"]}
    assert run_check("steeper", steep, ours).outcome == "holds"
    assert run_check("steeper", {**steep, "variant": "square", "others": ["cubic"]}, ours).outcome == "fails"
    assert run_check("steeper", {**steep, "others": ["linear"]}, ours).outcome == "open"
    at = {"table": "reduction_time", "x": "n", "y": "seconds"}
    alike = run_check("alike_at", {**at, "variants": ["cubic", "square"], "at": 100}, ours)
    assert (alike.outcome, alike.holds_for) == ("depends on the limit", "factors of 1.5 and more")
    assert run_check("alike_at", {**at, "variants": ["cubic", "square"], "at": 500}, ours).outcome == "open"
    costly = {**at, "variant": "cubic", "others": ["square"]}
    far = run_check("costlier_at", {**costly, "at": 200}, ours)
    assert (far.outcome, far.holds_for) == ("depends on the limit", "factors of 1.333 and less")
    assert run_check("costlier_at", {**costly, "at": 100}, ours).outcome == "fails"


def test_from_which_size_on_the_count_of_the_paper_is_smaller():
    about = {"labels": 26, "steps": 20}
    assert run_check("fewer_operations", {**about, "sizes": [1000, 2000]}, evidence()).share == (1, 2)
    assert run_check("fewer_operations", {**about, "sizes": [2000]}, evidence()).outcome == "depends on the limit"


def test_what_rises_with_the_dimension_and_what_is_above_the_others():
    curves = {"a": [1, 2, 3, 4], "b": [2, 1, 4, 3], "c": [1, 3, 2, 0]}
    rows = pd.DataFrame(
        [
            {"method": m, "dataset": "x", "metric": "macro_f1", "dimension": d, "value": v}
            for m, values in curves.items()
            for d, v in enumerate(values)
        ]
    )
    about = {"table": "dimension", "x": "dimension", "y": "value", "by": "metric"}
    ours = evidence(dimension=rows)
    assert run_check("rises_with", {**about, "methods": ["a", "b"]}, ours).outcome == "holds"
    assert run_check("rises_with", {**about, "methods": ["c"]}, ours).outcome == "fails"
    above = run_check("above_others", {**about, "methods": ["a"], "others": ["c"]}, ours)
    assert (above.outcome, above.holds_for) == ("depends on the limit", "shares of 0.5 and less")


def test_the_equations_by_numbers():
    for equal in (0, 8):
        result = run_check("equations_by_numbers", {"equal": equal}, evidence())
        assert result.outcome == "holds"
        assert result.numbers["rank of K"] == 60 - equal


def test_the_paper_names_eleven_of_the_yahoo_sets():
    cells = pd.DataFrame({"table": ["3", "4", "7"], "dataset": ["yahoo-a", "yahoo-b", "yahoo-c"], "value": None})
    arguments = {"tables": ["3", "4"], "prefix": "yahoo-", "count": 2}
    assert run_check("datasets_named", arguments, Evidence(cells)).outcome == "holds"
    assert run_check("datasets_named", {**arguments, "count": 3}, Evidence(cells)).outcome == "fails"
    printed = Evidence(cells, splits=None)
    assert run_check("datasets_named", {**arguments, "tables": ["9"]}, printed).outcome == "not testable"


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
