"""What the iMLDF study has beyond scores: Table 4, Fig. 1, the claims on cost, and scores per measure."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from helpers.toy import make_data
from multilab import claims
from multilab.claims import check_claims
from multilab.claims import checks as checks_module
from multilab.claims.checks import check_errata
from multilab.claims.paper import find
from multilab.experiments import cell_metrics, fitting, running
from multilab.experiments.analyses import Unit
from multilab.experiments.cells import Cell, SplitRef
from multilab.experiments.method import load_method
from multilab.experiments.plan import study_cells
from multilab.experiments.store import Store
from multilab.experiments.study import load_study
from multilab.methods.forests.compact_forest import CompactForest
from multilab.metrics import score_all
from multilab.papers.imldf import figures, regions, table4

SMALL = {"n_trees": 5, "n_forests": 2, "n_folds": 2}


def run_check(name, arguments, evidence):
    return checks_module.run_check(name, arguments, evidence, find("imldf").checks)


def cell(method: str, **arguments: object) -> Cell:
    return Cell("train", SplitRef("toy", "0" * 64, "{}", 0, "1" * 64), load_method(method).with_params(arguments))


@pytest.fixture
def inputs(monkeypatch: pytest.MonkeyPatch) -> fitting.CellInputs:
    X, Y = make_data(120)
    made = fitting.CellInputs(X[:80], Y[:80], X[80:], Y[80:])
    for module in (running, table4):
        monkeypatch.setattr(module, "gather", lambda cell, store: made)
    return made


def test_plain_bytes_are_what_scikit_learns_trees_take() -> None:
    X, Y = make_data(300, q=8)
    X = X.astype(np.float32)
    forest = RandomForestClassifier(20, random_state=0).fit(X, Y)
    compact = CompactForest.of([one.tree_ for one in forest.estimators_], np.arange(8), np.zeros(8), X.shape[1])
    trees = sum(len(pickle.dumps(one.tree_, protocol=5)) for one in forest.estimators_)
    assert table4.plain_bytes(compact) == pytest.approx(trees, rel=1e-3)
    assert trees < len(pickle.dumps(forest, protocol=5)) < 1.1 * trees


@pytest.mark.parametrize("method", ["rf_pct", "mldf", "imldf"])
def test_table_4_has_all_it_prints(inputs: fitting.CellInputs, method: str) -> None:
    small = {"n_estimators": 10} if method == "rf_pct" else {**SMALL, "measure": ["hamming_loss", "ranking_loss"]}
    unit = Unit(table4.__name__, "toy", 0, cell(method, **small), None, {"layers": {"toy": 3}, "fewer": {"toy": 2}})
    columns = table4.compute(unit, Store())
    costs = dict(zip(columns["metric"], columns["value"], strict=True))
    assert {"train_time_s", "test_time_s", "storage_mb", "compact_mb", "storage_mb[2 layers]"} <= set(costs)
    assert set(find("imldf").published.query("table == '4'")["metric"]) <= set(costs)
    assert costs["storage_mb"] > 2 * costs["compact_mb"] > 0
    if method == "imldf":
        assert costs["without_inner_forests"] == 0
        assert costs["stored_trees"] == 2 * 2 * 5  # of one layer, whatever the depth
        assert costs["storage_mb[2 layers]"] == pytest.approx(costs["storage_mb"], rel=0.3)
    if method == "mldf":
        assert costs["storage_mb[2 layers]"] == pytest.approx(2 / 3 * costs["storage_mb"], rel=0.2)


def test_figure_1_shows_regions_that_hold_their_labels() -> None:
    generator = {"name": "scenario", "k": 3, "n": 300, "seed": 0, "threshold": "median"}
    unit = Unit(regions.__name__, "scenario3", 0, None, generator, {"regions": 3})
    table = regions.finish(pd.DataFrame({"dataset": "scenario3", **regions.compute(unit, Store())}))
    points, Y = regions.plane(generator)
    assert (Y[:, 2] == Y[:, 0] * Y[:, 1]).all()
    assert table["kind"].value_counts().to_dict() == {"confidence": 41 * 41, "point": 300, "share": 9, "box": 3}
    for box in table[table["kind"] == "box"].itertuples():
        inside = (points >= np.array([box.x, box.y]) - 1e-4) & (points <= np.array([box.x2, box.y2]) + 1e-4)
        shares = table[(table["kind"] == "share") & (table["region"] == box.region)]["x"]
        np.testing.assert_allclose(Y[inside.all(axis=1)].mean(axis=0), shares, atol=0.02)
    (figure,) = figures.regions(None, table)  # type: ignore[arg-type]
    assert figure.image.startswith("data:image/svg+xml")


def test_a_cell_has_the_scores_of_every_measure_and_each_is_evaluated_by_its_own(
    inputs: fitting.CellInputs, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures = ["ranking_loss", "hamming_loss", "macro_auc"]
    made = cell("mldf", **SMALL, n_layers=3, patience=1, measure=measures)
    arrays, _, _ = running._train(made, Store())
    assert {f"scores.{name}" for name in measures} <= set(arrays)
    np.testing.assert_array_equal(arrays["scores"], arrays["scores.ranking_loss"])
    rng = np.random.default_rng(0)  # as if the cascades differed a lot
    arrays |= {f"scores.{name}": rng.uniform(size=arrays["scores"].shape) for name in measures[1:]}
    store = Store(tmp_path)
    store.write(made.key, arrays, {}, "")
    monkeypatch.setattr(cell_metrics, "labels_of", lambda cell: inputs.Y_test)
    scores = cell_metrics.evaluate_cell(made, store, extra=find("imldf").tables.quantities("mldf"))
    for name in ("scores", "scores.hamming_loss", "scores.macro_auc"):
        _, _, measure = name.partition(".")
        decisions = arrays[f"decisions{'.' + measure if measure else ''}"]
        own = {p: score_all(inputs.Y_test, arrays[name], decisions, conventions=p) for p in ("default", "lamda")}
        for metric in [measure] if measure else ["ranking_loss", "coverage", "micro_f1"]:
            assert scores[metric] == own["default"][metric]
            assert scores.get(f"{metric}.lamda", own["lamda"][metric]) == own["lamda"][metric]
    assert "ranking_loss.lamda" in scores


def evidence(metric: str, values: dict[str, list[float]]) -> claims.Evidence:
    rows = [("d" + str(i), 0, m, metric, v) for m, row in values.items() for i, v in enumerate(row)]
    return claims.Evidence(pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"]))


def test_checks_on_costs() -> None:
    known = evidence("test_time_s", {"a": [10.0, 30.0], "b": [1.0, 2.0]})
    arguments = {"metric": "test_time_s", "method": "a", "to": "b", "datasets": ["d0", "d1"]}
    for bounds, outcome in (({"at_least": 10}, "holds"), ({"at_least": 11}, "holds in part"),
                            ({"at_most": 15}, "holds"), ({"at_most": 14}, "holds in part"), ({"at_most": 9}, "fails"),
                            ({"at_least": 10, "at_most": 15}, "holds")):  # fmt: skip
        assert run_check("ratio", {**arguments, **bounds}, known).outcome == outcome
    assert run_check("ratio", {**arguments, "datasets": ["d7"]}, known).outcome == "not testable"


def test_not_worse_counts_ties_and_what_is_not_significant() -> None:
    printed = evidence("hamming_loss", {"a": [0.1, 0.2, 0.3], "b": [0.2, 0.2, 0.2]})
    arguments = {"metrics": ["hamming_loss"], "method": "a", "than": "b"}
    result = run_check("not_worse", {**arguments, "at_least": 2}, printed)
    assert result.outcome == "holds"
    assert (result.numbers["won"], result.numbers["tied"], result.numbers["not worse"]) == (1, 1, 2)
    assert run_check("not_worse", {**arguments, "at_least": 3}, printed).outcome == "fails"
    rows = []
    gaps_on = {"noise": [0.3, -0.2, 0.1], "worse": [0.10, 0.11, 0.12], "better": [-0.10, -0.11, -0.12]}
    for dataset, gaps in gaps_on.items():
        for split, gap in enumerate(gaps):
            rows += [(dataset, split, "a", "hamming_loss", 0.5 + gap), (dataset, split, "b", "hamming_loss", 0.5)]
    ours = claims.Evidence(pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"]))
    result = run_check("not_worse", {**arguments, "at_least": 2}, ours)
    expected = {"won": 1, "tied": 0, "significantly better": 1, "significantly worse": 1, "cells": 3, "not worse": 2}
    assert (result.outcome, result.numbers) == ("holds", expected)
    assert run_check("not_worse", {**arguments, "at_least": 3}, ours).outcome == "fails"


def test_layers_kept_are_counted_over_measures() -> None:
    learned = {("a", "d0"): {"n_layers_": np.array([1, 2, 1])}, ("a", "d1"): {"n_layers_": np.array([3, 1, 1])}}
    known = claims.Evidence(evidence("hamming_loss", {"a": [0.1]}).scores, learned)
    result = run_check("layers_kept", {"method": "a", "at_least": 4}, known)
    assert (result.outcome, result.numbers["d0"], result.numbers["1 layer"]) == ("holds", "1 2 1", 4)
    assert run_check("layers_kept", {"method": "a", "at_least": 5}, known).outcome == "fails"


def test_a_value_that_is_no_share_of_the_rows_is_recognised() -> None:
    rows = pd.DataFrame({"dataset": ["d0", "d1"], "split": 0, "method": "a", "metric": "one_error"})
    known = claims.Evidence(rows.assign(value=[0.505, 0.2], std=[0.0, 0.0]))
    arguments = {"method": "a", "metric": "one_error"}
    assert run_check("not_one_split", {**arguments, "rows": {"d0": [177, 178]}}, known).outcome == "holds"
    assert run_check("not_one_split", {**arguments, "rows": {"d0": [178], "d1": [10]}}, known).outcome == "fails"
    varied = claims.Evidence(rows.assign(value=[0.505, 0.2], std=[0.0, 0.1]))
    assert run_check("not_one_split", {**arguments, "rows": {"d0": [177, 178]}}, varied).outcome == "fails"
    unknown = claims.Evidence(rows.assign(value=[0.505, 0.2], std=np.nan))
    assert run_check("not_one_split", {**arguments, "rows": {"d0": [177, 178]}}, unknown).outcome == "not testable"


def test_the_errata_with_a_check_on_the_published_cells_are_right() -> None:
    paper = find("imldf")
    printed = claims.published_evidence(paper.published)
    own = {one.id for one in paper.errata if one.check.get("on") == "ours"}
    outcomes = {name: f.outcome for name, f in check_errata(paper.errata, printed, None, paper.checks).items()}
    assert not own & set(outcomes)
    assert len(outcomes) == 8
    assert set(outcomes.values()) == {"holds"}


def test_the_claims_hold_in_the_paper_and_wait_for_our_results() -> None:
    paper = claims.published_evidence(find("imldf").published)
    nothing = claims.Evidence(pd.DataFrame(columns=["dataset", "split", "method", "metric", "value"]))
    results = {one["id"]: one for one in check_claims(find("imldf").claims, nothing, paper, find("imldf").checks)}
    assert {one["outcome"] for one in results.values()} == {"not testable"}
    printed = {name: one["in_paper"]["outcome"] for name, one in results.items() if "in_paper" in one}
    assert printed == dict.fromkeys(["C4.1", "C4.2", "C4.3", "C4.3b", "C4.4", "C4.5", "C4.6", "C4.6b"], "holds")
    assert results["C4.2"]["in_paper"]["reached"] == 35
    assert results["C4.2"]["in_paper"]["alone first"] == 29
    assert (results["C4.3b"]["in_paper"]["won"], results["C4.3b"]["in_paper"]["tied"]) == (32, 6)
    assert results["C4.3"]["in_paper"]["imldf against mldf"] == "32-4"
    assert results["C4.1"]["in_paper"]["coverage"]["imldf"] == pytest.approx(1.14, abs=0.005)
    assert results["C4.4"]["in_paper"]["time"]["slashdot"] == pytest.approx(75.9, abs=0.05)
    assert all("None" not in one["description"] and "{" not in one["description"] for one in results.values())


def test_a_study_may_use_fewer_splits_of_some_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    study = load_study("imldf")
    monkeypatch.setattr(
        "multilab.experiments.plan.split_refs",
        lambda name, protocol: [SplitRef(name, "0", "{}", i, str(i)) for i in range(protocol["repeats"])],
    )
    counts = pd.Series([one.split_ref.dataset for one in study_cells(study, "mlknn")]).value_counts()
    assert counts["emotions"] == 10
    assert counts["slashdot"] == counts["reuters-k500"] == 2
