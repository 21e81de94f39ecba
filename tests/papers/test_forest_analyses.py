"""What the iMLDF study has beyond scores: Table 4, Fig. 1, diversity, and scores per measure."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from helpers.toy import make_data
from multilab.cells import cell_metrics, running
from multilab.cells.cell import Cell, SplitRef
from multilab.cells.method import load_method
from multilab.cells.rows import Rows
from multilab.cells.store import Store
from multilab.experiments.analyses import Unit
from multilab.experiments.plan import study_cells
from multilab.experiments.study import load_study
from multilab.methods.forests.compact_forest import CompactForest
from multilab.metrics import score_all
from multilab.papers.imldf import diversity, figures, regions, table4
from multilab.printed import find

SMALL = {"n_trees": 5, "n_forests": 2, "n_folds": 2}


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
    assert set(find("imldf").tables.cells.query("table == '4'")["metric"]) <= set(costs)
    assert costs["storage_mb"] > 2 * costs["compact_mb"] > 0
    assert 0 < costs["test_cpu_s"] < 10 * costs["test_time_s"]
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


def test_a_study_may_use_fewer_splits_of_some_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    study = load_study("imldf")
    monkeypatch.setattr(
        "multilab.experiments.plan.split_refs",
        lambda name, protocol: [SplitRef(name, "0", "{}", i, str(i)) for i in range(protocol["repeats"])],
    )
    counts = pd.Series([one.split_ref.dataset for one in study_cells(study, "mlknn")]).value_counts()
    assert counts.tolist() == [10] * 7
    costly = pd.Series([one.split_ref.dataset for one in study_cells(study, "mldf-one_layer")]).value_counts()
    assert costly["emotions"] == 10
    assert costly["slashdot"] == costly["reuters-k500"] == 2
