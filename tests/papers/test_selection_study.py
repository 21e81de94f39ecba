"""What the study of selectors adds: feature curves, the checks on them, columns next to others, its settings."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.multilabel_checks import make_data
from multilab.cells import MethodPipeline, running
from multilab.cells.cell import Cell, SplitRef
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build, load_method
from multilab.cells.rows import Rows
from multilab.cells.store import Store
from multilab.claims import checks as checks_module
from multilab.claims.checks import check_errata
from multilab.claims.evidence import Evidence, published_evidence
from multilab.claims.paper import find
from multilab.experiments import ledger
from multilab.experiments.analyses import Unit
from multilab.experiments.study import load_study
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.methods.selection.variance_ranking import VarianceRanking
from multilab.metrics import score_all
from multilab.papers.lwmf import feature_curves, figures
from multilab.papers.lwmf.checks import curve_area
from multilab.reports.data import load_report
from multilab.reports.tables.scores import score_table

SETTINGS = {"metrics": ["average_precision", "coverage"], "conventions": "matlab", "points": 4, "beyond": True}


def run_check(name, arguments, evidence):
    return checks_module.run_check(name, arguments, evidence, find("lwmf").checks)


def unit(method="lwmf", settings=SETTINGS, **arguments):
    part = SplitRef("toy", "0" * 64, "{}", 0, "1" * 64)
    chosen = {"select__n_features_to_select": 3, "classify__k": 5} if method != "mlknn" else {}
    cell = Cell("train", part, load_method(method).with_params(chosen | arguments))
    return Unit(feature_curves.__name__, "toy", 0, cell, None, settings)


@pytest.fixture
def inputs(monkeypatch):
    X, Y, X_test = make_data(n=80)
    made = Rows(X, Y.astype(np.uint8), X_test, Y[: len(X_test)].astype(np.uint8))
    monkeypatch.setattr(running, "scaled_rows", lambda cell, store: made)
    return made


def stored(made, store, inputs):
    """Put into the store what the unit's cell would be."""
    model = build(made.cell.method).fit(inputs.X_train, inputs.Y_train)
    names = made.cell.method.save_attributes
    arrays = {f"learned_{name}": np.asarray(MethodPipeline.of_fitted(model.steps, 1).learned(name)) for name in names}
    store.write(made.cell.key, arrays, {"key": made.cell.key, "status": "done"}, "")
    return model.named_steps["select"]


def test_a_point_of_a_curve_is_ml_knn_on_the_first_features(inputs, tmp_path):
    store, made = Store(tmp_path), unit()
    selector = stored(made, store, inputs)
    rows = pd.DataFrame({"method": "lwmf", "dataset": "toy", "split": 0, **feature_curves.compute(made, store)})
    curve = feature_curves.finish(rows)
    assert sorted(set(curve["features"])) == [2, 3, 4, 6, 8]
    assert set(curve.loc[curve["kept"], "features"]) == {3}
    for count, part in curve.groupby("features"):
        chosen = selector.ranking_ <= count
        scores = MLkNN(5).fit(inputs.X_train[:, chosen], inputs.Y_train).predict_proba(inputs.X_test[:, chosen])
        expected = score_all(inputs.Y_test, scores, conventions="matlab")
        assert dict(zip(part["metric"], part["value"], strict=True)) == {m: expected[m] for m in SETTINGS["metrics"]}


def test_a_curve_may_take_the_kept_features_by_column(inputs, tmp_path):
    store, made = Store(tmp_path), unit(settings=SETTINGS | {"order": "columns", "beyond": False})
    selector = stored(made, store, inputs)
    curve = pd.DataFrame(feature_curves.compute(made, store))
    kept = np.flatnonzero(selector.support_)
    assert sorted(set(curve["features"])) == [2, 3]
    for count, part in curve.groupby("features"):
        chosen = kept[:count]
        scores = MLkNN(5).fit(inputs.X_train[:, chosen], inputs.Y_train).predict_proba(inputs.X_test[:, chosen])
        expected = score_all(inputs.Y_test, scores, conventions="matlab")
        assert dict(zip(part["metric"], part["value"], strict=True)) == {m: expected[m] for m in SETTINGS["metrics"]}


def test_a_curve_may_end_where_the_selection_does():
    assert feature_curves.counts(100, 19, 4, True) == [19, 25, 50, 75, 100]
    assert feature_curves.counts(100, 60, 4, False) == [25, 50, 60]
    assert feature_curves.counts(2, 1, 20, True) == [1, 2]


def test_a_curve_follows_what_its_cell_stored():
    made = unit()
    assert made.identity["cell"] == made.cell.key
    assert made.key == unit().key
    assert made.key != replace(made, settings={**SETTINGS, "points": 5}).key
    assert made.key != unit(select__nn_space="raw").key


def test_a_curve_of_something_else_is_refused(inputs, tmp_path):
    for made in (unit("mlknn"), unit(classify__scale="minmax")):
        store = Store(tmp_path / made.key)
        if made.method != "mlknn":
            stored(made, store, inputs)
        else:
            store.write(made.cell.key, {"scores": np.zeros(1)}, {"key": made.cell.key, "status": "done"}, "")
        with pytest.raises(ExperimentError, match="select, classify with ML-kNN"):
            feature_curves.compute(made, store)


# ---- checks


def rows(values, metric="ranking_loss", split=0):
    return pd.DataFrame(
        [(d, split, m, metric, v) for m, per_set in values.items() for d, v in zip("xyz", per_set, strict=True)],
        columns=["dataset", "split", "method", "metric", "value"],
    )


BETTER = Evidence(rows({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.2, 0.4], "c": [0.3, 0.1, 0.5]}), alpha=0.1)


def curves(**heights):
    points = [
        (m, d, "average_precision", n, n == 20, 0.0 if h is None else h)
        for m, per_set in heights.items()
        for d, curve in zip("xy", per_set, strict=True)
        for n, h in zip((10, 20, 40), curve, strict=True)
        if h is not None
    ]
    columns = ["method", "dataset", "metric", "features", "kept", "value"]
    return Evidence(BETTER.scores, tables={"feature_curves": pd.DataFrame(points, columns=columns)})


CURVES = curves(a=[(0.5, 0.6, 0.8), (0.5, 0.4, 0.4)], b=[(0.4, 0.5, 0.9), (0.3, 0.5, 0.3)], c=[(0.1, 0.2, None)] * 2)


@pytest.mark.parametrize(
    ("name", "arguments", "outcome"),
    [
        ("wins_at_least", {"method": "a", "against": {"b": 2, "c": 2}, "metrics": ["ranking_loss"]}, "holds"),
        ("wins_at_least", {"method": "a", "against": {"b": 3}, "metrics": ["ranking_loss"]}, "fails"),
        ("wins_at_least", {"method": "a", "against": {"d": 3}, "metrics": ["ranking_loss"]}, "open"),
        ("wins_at_least", {"method": "a", "against": {"b": 2, "c": 3}, "metrics": ["ranking_loss"]}, "holds in part"),
        ("loses_at_most", {"method": "a", "against": {"b": 0, "c": 1}, "metrics": ["ranking_loss"]}, "holds"),
        ("loses_at_most", {"method": "a", "against": {"b": 0, "c": 0}, "metrics": ["ranking_loss"]}, "holds in part"),
        ("better_on_each", {"method": "a", "other": "c", "metric": "ranking_loss"}, "holds in part"),
        ("mean_rank_order", {"metrics": ["ranking_loss"], "order": ["a", "c", "b"]}, "fails"),
        ("mean_rank_order", {"metrics": ["ranking_loss"], "order": ["a", "b"]}, "holds"),
        (
            "first_in",
            {"counts": {"a": [2, 0], "c": [1, 0]}, "methods": ["a", "b", "c"], "metrics": ["ranking_loss"]},
            "holds",
        ),
        ("first_in", {"counts": {"a": [2, 1]}, "methods": ["a", "b"], "metrics": ["ranking_loss"]}, "holds"),
        ("first_in", {"counts": {"a": [3, 0]}, "methods": ["a", "b"], "metrics": ["ranking_loss"]}, "fails"),
        ("best_mean", {"method": "a", "methods": ["a", "b", "c"], "metrics": ["ranking_loss"]}, "holds"),
        ("best_mean", {"method": "b", "methods": ["a", "b"], "metrics": ["ranking_loss"]}, "fails"),
        ("curve_above", {"method": "a", "others": ["d"], "metric": "average_precision"}, "open"),
        ("curve_above", {"method": "a", "others": ["b"], "metric": "average_precision"}, "holds in part"),
        ("curve_above", {"method": "a", "others": ["c"], "metric": "average_precision"}, "holds"),
        (
            "curve_above",
            {"method": "a", "others": ["b"], "metric": "average_precision", "excepted": {"y": [20, 20]}},
            "holds",
        ),
        ("curve_areas", {"method": "a", "against": {"b": 1, "c": 2}, "metrics": ["average_precision"]}, "holds"),
        ("curve_areas", {"method": "a", "against": {"c": 3}, "metrics": ["average_precision"]}, "fails"),
        ("kept_as_many", {"method": "a", "others": ["b", "c"]}, "holds"),
    ],
)
def test_checks(name, arguments, outcome):
    assert run_check(name, arguments, CURVES).outcome == outcome


@pytest.mark.parametrize(
    ("height", "outcome"), [((0.4, 0.5, 0.8), "holds"), ((0.4, 0.6, 0.8), "fails"), ((0.6, 0.7, 0.8), "fails")]
)
def test_all_features_are_no_point_of_a_curve(height, outcome):
    near = curves(a=[(0.5, 0.6, 0.8)] * 2, b=[height] * 2)
    found = run_check("curve_above", {"method": "a", "others": ["b"], "metric": "average_precision"}, near)
    assert found.outcome == outcome


def test_wins_by_run():
    runs = pd.concat([rows({"a": [0.1, 0.2, 0.3], "b": [height] * 3}, split=i) for i, height in enumerate((0.15, 0.4))])
    claim = {"method": "a", "other": "b", "metrics": ["ranking_loss"]}
    result = run_check("wins_by_run", claim, Evidence(runs))
    assert (result.outcome, result.numbers["better in, by run"], result.numbers["worse in, by run"]) == (
        "holds",
        [1, 3],
        [2, 0],
    )
    assert run_check("wins_by_run", claim, Evidence(runs[runs["split"] == 1])).outcome == "fails"


def test_best_in_combinations():
    runs = rows({"a": [0.1, 0.2, 0.3], "a2": [0.1, 0.1, 0.1], "b": [0.2, 0.1, 0.2], "b2": [0.0, 0.3, 0.2]})
    programs = {"fair": {"A": ["a"], "B": ["b"]}, "as_printed": {"A": ["a2"], "B": ["b2"]}}
    claim = {**programs, "method": "A", "metrics": ["ranking_loss"], "at_least": 2}
    result = run_check("best_in_combinations", claim, Evidence(runs))
    assert result.numbers == {"none": 1, "B": 1, "A": 3, "A, B": 2}
    assert (result.outcome, result.share) == ("holds in part", (2, 4))


def ours(heights):
    """Runs of columns on Recreation and Social, by ranking loss."""
    values = [
        (dataset, split, method, "ranking_loss", value)
        for method, per_set in heights.items()
        for dataset, per_run in zip(("yahoo-recreation", "yahoo-social"), per_set, strict=True)
        for split, value in enumerate(per_run)
    ]
    scores = pd.DataFrame(values, columns=["dataset", "split", "method", "metric", "value"])
    return Evidence(scores, published=find("lwmf").published)


def test_checks_against_published_cells():
    """LWMF's ranking loss is .1834 on Recreation and .0660 on Social."""
    known = ours({"near": [(0.18, 0.186), (0.06, 0.07)], "far": [(0.19, 0.2), (0.03, 0.031)]})
    sets = {"printed": "lwmf", "metrics": ["ranking_loss"], "datasets": ["yahoo-recreation", "yahoo-social"]}
    nearer = run_check("nearer_to_published", sets | {"method": "near", "others": ["far"], "at_least": 2}, known)
    assert (nearer.outcome, nearer.numbers["nearer"]) == ("holds", 2)
    assert nearer.numbers["median gap of near"] == "0.87%"
    assert run_check("published_beats", sets | {"method": "far"}, known).share == (1, 2)
    within = sets | {"printed": ["lwmf"], "method": "near", "deviations": 1, "at_least": 2}
    assert run_check("within_runs", within, known).outcome == "holds"
    result = run_check("within_runs", within | {"method": "far"}, known)
    assert (result.outcome, result.numbers["within"], result.numbers["cells"]) == ("fails", 0, 2)


def test_every_erratum_that_can_be_checked_in_the_paper_holds():
    paper = find("lwmf")
    findings = check_errata(paper.errata, published_evidence(paper.published, 0.1), None, paper.checks)
    assert {name: finding.outcome for name, finding in findings.items()} == dict.fromkeys(findings, "holds")
    assert set(findings) >= {"lwmf-yeast", "lwmf-source", "lwmf-text-order", "lwmf-cd", "lwmf-simba"}


def test_seconds_against_each_of_the_others():
    seconds = rows({"a": [1.0, 1.0, 2.0], "b": [40.0, 15.0, 8.0], "c": [0.5, 1.0, 1.0]}, "fit_seconds")
    slower = run_check("slower_than", {"method": "a", "others": ["b", "c"]}, Evidence(seconds))
    assert slower.holds_for == "factors of 2 and more"
    assert slower.numbers == {"b": "0.025 to 0.25 times", "c": "1 to 2 times"}


def test_behind_by_a_printed_difference():
    arguments = {"method": "b", "other": "a", "metric": "ranking_loss", "at_most": {"x": 0.1, "y": 0.0, "z": 0.05}}
    result = run_check("behind_by_at_most", arguments, BETTER)
    assert (result.share, result.numbers) == ((2, 3), {"x": 0.1, "y": 0.0, "z": 0.1})


def test_means_over_random_splits():
    table = pd.concat([rows({"a": [0.1, 0.2 + i, 0.3], "b": [0.2, 0.7, 0.3]}, split=i) for i in (0, 1)])
    known = Evidence(BETTER.scores, tables={"resplits": table})
    arguments = {"methods": ["a"], "against": ["b"], "metrics": ["ranking_loss"]}
    result = run_check("over_splits", arguments, known)
    assert result.numbers == {"a against b": "1-0 of 3 (1 and 0 beyond two standard errors)"}
    by_set = {"method": "a", "other": "b", "metric": "ranking_loss"}
    assert run_check("gains_over_splits", by_set, known).share == (1, 3)
    assert run_check("over_splits", {**arguments, "against": ["c"]}, known).reason == "not run on random splits: c"


def test_margins_and_frequencies():
    table = pd.DataFrame({"method": "a", "dataset": "x", "margin": range(9), "frequency": range(9, 0, -1)})
    known = Evidence(BETTER.scores, tables={"margins": table})
    result = run_check("margins_go_with", {"quantity": "frequency", "sign": -1}, known)
    assert (result.outcome, result.numbers) == ("holds", {"x": -1.0, "median": -1.0})
    assert run_check("margins_go_with", {"quantity": "frequency", "sign": 1}, known).outcome == "fails"


def test_the_ranking_by_variance_knows_no_labels():
    X = np.random.default_rng(0).normal(size=(30, 5)) * np.arange(1, 6)
    Y = (X[:, :2] > 0).astype(int)
    ranking = VarianceRanking().fit(X, Y).ranking_
    np.testing.assert_array_equal(ranking, VarianceRanking().fit(X, 1 - Y).ranking_)
    assert np.argmin(ranking) == np.argmax(np.var(X, axis=0))


def test_an_area_is_the_mean_height():
    assert curve_area(pd.Series([1.0, 3.0, 3.0], index=[0, 1, 5])) == pytest.approx(14 / 5)
    assert curve_area(pd.Series([0.7], index=[9])) == 0.7


def test_the_numbers_kept_are_compared_dataset_by_dataset():
    table = CURVES.tables["feature_curves"].copy()
    table.loc[(table["method"] == "b") & (table["dataset"] == "y") & table["kept"], "features"] = 21
    result = run_check(
        "kept_as_many", {"method": "a", "others": ["b"]}, Evidence(BETTER.scores, tables={"feature_curves": table})
    )
    assert result.outcome == "fails"
    assert result.numbers == {"x": 20, "y": {"a": 20, "b": 21}}


def test_what_the_printed_cells_say_of_the_claims():
    study = load_study("lwmf")
    printed = published_evidence(find("lwmf").published, study.alpha)
    results = {}
    for claim in find("lwmf").claims:
        if claim.in_paper is not False:
            results[claim.id] = run_check(claim.check, claim.arguments, printed)
    for name in ("C3.1", "C3.2", "C3.3", "C3.4", "C3.5", "C3.6"):
        assert results[name].outcome == "holds", name
    assert results["C3.2"].numbers == {"reached": 19, "alone first": 18, "cells": 24}
    assert results["C3.4"].numbers == {"mlnb": "22-2 of 24", "rf_ml": "20-3 of 24"}
    assert results["C3.13"].numbers["reached"] == 9
    assert results["C3.15"].outcome == "holds"
    dunn = results["C3.6"].numbers["Bonferroni-Dunn"]
    assert (dunn["pairs"], dunn["CD"]) == (11, 2.046)


def test_a_column_as_printed_has_the_spread_of_its_method_over_random_splits(tmp_path):
    """The study of random splits has the method only: the larger of its spread and the bootstrap error counts."""
    folder, splits = tmp_path / "lwmf", tmp_path / "lwmf-resplits"
    folder.mkdir()
    splits.mkdir()
    errors = [("x", "lwmf-as_printed", "coverage", 0.5), ("y", "lwmf-as_printed", "coverage", 0.1)]
    pd.DataFrame(errors, columns=["dataset", "method", "metric", "error"]).to_csv(folder / "sampling.csv", index=False)
    spread = pd.concat([rows({"lwmf": [2.0 + i] * 3}, "coverage", split=i) for i in (0, 1)])
    spread.assign(key=[f"{i}" for i in range(len(spread))]).to_csv(splits / "scores.csv.gz", index=False)
    errors = ledger._sampling(folder, find("lwmf").tables).set_index(["dataset", "method"])["sampling"]
    expected = pytest.approx(np.sqrt(0.5))
    assert errors["x", "lwmf-as_printed"] == errors["y", "lwmf-as_printed"] == errors["z", "lwmf"] == expected


# ---- report


def test_every_column_has_its_kind_and_yeast_the_printed_sizes():
    study = load_study("lwmf")
    kinds = {name: study.kind_of(name) for name in study.all_methods}
    assert {name for name, kind in kinds.items() if kind == "as_printed"} == {
        *(set(find("lwmf").aliases.names["method"].values()))
    }
    assert kinds["lwmf"] == kinds["lwmf-literal"] == kinds["mlknn-all"] == "fair"
    assert study.protocol_of("yeast") == {"split": "official", "train_size": 1499}
    assert study.repetitions_of("mlnb") == (5, True)
    assert study.repetitions_of("lwmf") == (5, False)


def test_extra_columns_are_in_the_tables_without_a_rank_and_may_be_best(tmp_path):
    content = {
        "sets": {"description": "", "methods": ["c-sets"], "show_with_main": True},
        "other": {"methods": ["b-other"]},
    }
    values = {"a": [0.1, 0.2, 0.3], "b": [0.2, 0.1, 0.4], "c-sets": [0.05, 0.3, 0.1], "b-other": [0.1] * 3}
    rows(values).assign(key="").to_csv(tmp_path / "scores.csv.gz", index=False)
    (tmp_path / "study.json").write_text(json.dumps({"methods": ["a", "b"], "variants": content}))
    table = score_table(load_report(tmp_path), "ranking_loss")
    assert table.heads == ("a", "b", "c (sets)")
    cells = dict(table.rows)["x"]
    assert [(cell.text, cell.best) for cell in cells] == [
        ("0.1000", False),
        ("0.2000", False),
        ("0.0500", True),
    ]
    assert [cell.text for cell in table.average_ranks] == ["1.33", "1.67", "–"]


def test_curves_are_drawn_with_their_areas(tmp_path):
    rows({"a": [0.1] * 3, "b": [0.2] * 3}).assign(key="").to_csv(tmp_path / "scores.csv.gz", index=False)
    table = CURVES.tables["feature_curves"].replace({"dataset": {"x": "x", "y": "y"}})
    (figure,) = figures.feature_curves(load_report(tmp_path), table)
    assert "Average precision over the number of features on x, y" in figure.alt
    assert figure.image.startswith("data:image/svg+xml")
    changed = table.assign(value=table["value"] + 0.01)
    (other,) = figures.feature_curves(load_report(tmp_path), changed)
    assert other.image != figure.image
