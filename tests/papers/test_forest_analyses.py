"""What the iMLDF study has beyond scores: Table 4, Fig. 1, the claims on cost, and scores per measure."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from helpers.toy import make_data
from multilab import claims
from multilab.cells import cell_metrics, running
from multilab.cells.cell import Cell, SplitRef
from multilab.cells.method import load_method
from multilab.cells.rows import Rows
from multilab.cells.store import Store
from multilab.claims import check_claims
from multilab.claims import checks as checks_module
from multilab.claims.checks import check_errata
from multilab.claims.paper import find
from multilab.experiments.analyses import Unit
from multilab.experiments.plan import study_cells
from multilab.experiments.study import load_study
from multilab.methods.forests.compact_forest import CompactForest
from multilab.metrics import score_all
from multilab.papers.imldf import diversity, figures, regions, table4

SMALL = {"n_trees": 5, "n_forests": 2, "n_folds": 2}


def run_check(name, arguments, evidence):
    return checks_module.run_check(name, arguments, evidence, find("imldf").checks)


def cell(method: str, **arguments: object) -> Cell:
    return Cell("train", SplitRef("toy", "0" * 64, "{}", 0, "1" * 64), load_method(method).with_params(arguments))


@pytest.fixture
def inputs(monkeypatch: pytest.MonkeyPatch) -> Rows:
    X, Y = make_data(120)
    made = Rows(X[:80], Y[:80], X[80:], Y[80:])
    monkeypatch.setattr(running, "gather", lambda cell, store: made)
    for module in (running, table4):
        monkeypatch.setattr(module, "scaled_rows", lambda cell, store: made)
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
def test_table_4_has_all_it_prints(inputs: Rows, method: str) -> None:
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
    inputs: Rows, tmp_path, monkeypatch: pytest.MonkeyPatch
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
    arguments = {"metrics": ["test_time_s"], "method": "a", "to": "b", "datasets": ["d0", "d1"]}
    for name, limit, outcome in (("ratio_at_least", 10, "holds"), ("ratio_at_least", 11, "holds in part"),
                                 ("ratio_at_most", 15, "holds"), ("ratio_at_most", 14, "holds in part"),
                                 ("ratio_at_most", 9, "fails")):  # fmt: skip
        assert run_check(name, {**arguments, "limit": limit}, known).outcome == outcome
    assert run_check("ratio_at_most", arguments, known).holds_for == "factors of 15 and more"
    assert run_check("ratio_at_least", arguments, known).holds_for == "factors of 10 and less"
    assert run_check("ratio_at_most", {**arguments, "datasets": ["d7"]}, known).outcome == "open"


def test_a_share_of_first_places_is_decided_by_complete_sets_where_the_others_cannot_change_it() -> None:
    rows = [(f"d{i}", split, m, "hamming_loss", v + i) for i in range(4) for m, v in (("a", 0.2), ("b", 0.1))
            for split in range(2 if i < 3 else 1)]  # fmt: skip
    known = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    arguments = {"metrics": ["hamming_loss"], "method": "b", "methods": ["a", "b"]}

    def found(method: str, at_least: int) -> claims.Finding:
        ours = claims.Evidence(known, splits={"default": 2})
        return run_check("decided_best_share", {**arguments, "method": method, "at_least": at_least}, ours)

    assert found("b", 3).outcome == "holds"
    assert found("b", 3).numbers == {"first": 3, "alone first": 3, "cells": 3, "cells on fewer splits, not counted": 1}
    assert (found("b", 4).outcome, found("b", 4).so_far) == ("open", "holds")
    assert found("a", 2).outcome == "fails"  # one cell is missing
    assert (found("a", 1).outcome, found("a", 1).so_far) == ("open", "fails")


def test_losses_with_depth_are_compared() -> None:
    known = evidence("hamming_loss", {"a4": [0.1, 0.3, 0.3], "a1": [0.2, 0.2, 0.2], "b4": [0.3] * 3, "b1": [0.2] * 3})
    arguments = {"metrics": ["hamming_loss"], "datasets": ["d0", "d1", "d2"]}
    own, other = {"deep": "a4", "shallow": "a1"}, {"other_deep": "b4", "other_shallow": "b1"}
    result = run_check("loses_less_with_depth", {**arguments, **own, **other}, known)
    expected = {"a4 against a1": "1-2", "b4 against b1": "0-3"}  # one split each: no test is made
    assert (result.outcome, {name: result.numbers[name] for name in expected}) == ("holds", expected)
    assert sum(number for number in result.numbers.values() if number not in expected.values()) == 0
    same = {"other_deep": "a4", "other_shallow": "a1"}
    assert run_check("loses_less_with_depth", {**arguments, **own, **same}, known).outcome == "fails"


def test_correlations_are_compared_by_dataset_and_sets_are_counted() -> None:
    means = {"d0": (0.1, 0.3), "d1": (0.5, 0.3)}
    kinds = ("interactions", "probabilities")
    rows = [(d, s, kind, "between_columns", v + s / 10) for d, both in means.items()
            for kind, v in zip(kinds, both, strict=True) for s in range(2)]  # fmt: skip
    rows += [("d0", s, "interactions", "sets_last_level", 8.0 + s) for s in range(2)]
    table = pd.DataFrame(rows, columns=["dataset", "split", "representation", "quantity", "value"])
    known = claims.Evidence(evidence("x", {}).scores, tables={"diversity": table})
    arguments = {"quantities": ["between_columns"], "datasets": ["d0", "d1"]}
    result = run_check("less_correlated", arguments, known)
    assert (result.outcome, result.share) == ("holds in part", (1, 2))
    assert result.numbers["between_columns"]["d0"] == "0.150, probabilities 0.350"
    counted = {"quantity": "sets_last_level", "datasets": ["d0"]}
    assert run_check("fewer_sets_than", {**counted, "limit": 10}, known).outcome == "holds"
    assert run_check("fewer_sets_than", {**counted, "limit": 8}, known).outcome == "fails"


def test_diversity_is_that_of_the_columns_that_a_second_layer_reads(
    inputs: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diversity, "scaled_rows", lambda cell, store: inputs)
    unit = Unit(diversity.__name__, "toy", 0, cell("imldf", n_trees=10, n_forests=2), None, {})
    columns = diversity.compute(unit, Store())
    found = {(r, q): v for r, q, v in zip(*(columns[n] for n in ("representation", "quantity", "value")), strict=True)}
    q = inputs.Y_test.shape[1]
    assert found["probabilities", "columns"] == 2 * q
    assert found["interactions", "columns"] <= found["interactions", "regions"] + q
    assert found["interactions", "sets_last_level"] <= found["interactions", "sets"]
    for (_, quantity), value in found.items():
        assert value >= 0
        assert value <= 1 or quantity in ("columns", "regions", "sets", "sets_last_level", "sets_twice")
    # two columns that are one, and one that is another: correlations 1, 0, 0
    X = np.array([[1, 2, 1], [2, 4, -1], [3, 6, -1], [4, 8, 1]], dtype=float)
    known = diversity._correlations(X, X[:, 2:])
    assert known == pytest.approx(
        {"columns": 3, "between_columns": 1 / 3, "with_labels": 1 / 3, "effective_share": 9 / 5 / 3}
    )


def test_not_worse_counts_ties_and_what_is_not_significant() -> None:
    printed = evidence("hamming_loss", {"a": [0.1, 0.2, 0.3], "b": [0.2, 0.2, 0.2]})
    arguments = {"metrics": ["hamming_loss"], "method": "a", "than": "b"}
    result = run_check("not_worse", {**arguments, "at_least": 2}, printed)
    assert result.outcome == "holds"
    assert (result.numbers["won"], result.numbers["tied"], result.numbers["not worse"]) == (1, 1, 2)
    assert run_check("not_worse", {**arguments, "at_least": 3}, printed).outcome == "fails"
    rows = []
    gaps_on = {
        "noise": [0.3, -0.2, 0.1],
        "worse": [0.10, 0.11, 0.12],
        "better": [-0.10, -0.11, -0.12],
        "equal": [0.0] * 3,
    }
    for dataset, gaps in gaps_on.items():
        for split, gap in enumerate(gaps):
            rows += [(dataset, split, "a", "hamming_loss", 0.5 + gap), (dataset, split, "b", "hamming_loss", 0.5)]
    ours = claims.Evidence(pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"]))
    result = run_check("not_worse", {**arguments, "at_least": 3}, ours)
    expected = {"won": 1, "tied": 1, "significantly better": 1, "significantly worse": 1, "cells": 4, "not worse": 3}
    assert result.outcome == "holds"
    assert {name: result.numbers[name] for name in expected} == expected
    assert (result.numbers["on worse"], result.numbers["on better"], result.numbers["on equal"]) == (
        "0-1",
        "1-0",
        "0-0",
    )
    assert json.loads(json.dumps(result.numbers)) == result.numbers
    assert run_check("more_won", arguments, ours).outcome == "fails"  # noise is lost by the mean
    assert run_check("not_worse", {**arguments, "at_least": 4}, ours).outcome == "fails"


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
    assert run_check("not_one_split", {**arguments, "rows": {"d0": [177, 178]}}, unknown).outcome == "open"


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
    assert {one["outcome"] for one in results.values()} == {"open"}
    printed = {name: one["in_paper"]["outcome"] for name, one in results.items() if "in_paper" in one}
    assert printed == dict.fromkeys(["C4.1", "C4.2", "C4.3", "C4.4", "C4.6"], "holds") | dict.fromkeys(
        ["C4.5", "C4.6b"], "depends on the limit"
    )
    assert results["C4.2"]["in_paper"]["first"] == 35
    assert results["C4.2"]["in_paper"]["alone first"] == 29
    assert results["C4.3"]["in_paper"]["imldf against mldf"] == "32-4"
    assert results["C4.1"]["in_paper"]["coverage"]["imldf"] == pytest.approx(1.14, abs=0.005)
    assert results["C4.4"]["in_paper"]["slashdot, test_time_s"] == pytest.approx(75.9, abs=0.05)
    assert results["C4.5"]["holds_for_in_paper"] == "factors of 2.312 and more"
    sentences = [one["description_in_paper"] for one in results.values() if "in_paper" in one]
    assert all("None" not in one and "{" not in one for one in sentences)


def test_a_study_may_use_fewer_splits_of_some_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    study = load_study("imldf")
    monkeypatch.setattr(
        "multilab.experiments.plan.split_refs",
        lambda name, protocol: [SplitRef(name, "0", "{}", i, str(i)) for i in range(protocol["repeats"])],
    )
    counts = pd.Series([one.split_ref.dataset for one in study_cells(study, "mlknn")]).value_counts()
    assert counts["emotions"] == 10
    assert counts["slashdot"] == counts["reuters-k500"] == 2
