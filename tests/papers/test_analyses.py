"""Analyses beyond scores: what they compute, against the estimator itself; their keys and their stage."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from helpers.laboratory import Laboratory
from multilab.cells import running
from multilab.cells.cell import Cell, SplitRef
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build, load_method
from multilab.cells.rows import Rows
from multilab.cells.store import Store
from multilab.core.settings import convert
from multilab.experiments.analyses import Unit, run_units, tables, units_of
from multilab.experiments.study import load_study, study_from
from multilab.methods.stacking.mlwse import MLWSE
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.metrics import score_all
from multilab.papers.iterations import shown_iterations
from multilab.papers.mlekelm import nystroem, sweeps
from multilab.papers.mlwse import affinity, convergence, label_term, sensitivity, sparsity, table3
from multilab.printed import Paper, PaperError, find, paper_names
from multilab.printed.paper import PaperContent

METRICS = ["f1_of_means", "example_f1", "hamming_loss", "ranking_loss"]
Q = 4


@pytest.fixture
def inputs(monkeypatch):
    """Scores of three classifiers for four labels, instead of those of a dataset."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(160, Q)) @ rng.normal(size=(Q, Q)) / 2
    Y = (latent + 0.5 * rng.normal(size=latent.shape) > 0).astype(np.uint8)
    S = np.hstack([1 / (1 + np.exp(-latent - 0.3 * rng.normal(size=latent.shape))) for _ in range(3)])
    made = Rows(S[:120], Y[:120], S[120:], Y[120:])
    monkeypatch.setattr(running, "scaled_rows", lambda cell, store: made)
    return made


def unit(analysis, method, settings, **arguments):
    cell = Cell("train", SplitRef("toy", "0" * 64, "{}", 0, "1" * 64), load_method(method).with_params(arguments))
    return Unit(analysis.__name__, "toy", 0, cell, None, settings)


def frame(module, made, split=0):
    rows = pd.DataFrame({"method": made.method, "dataset": "toy", "split": split, **module.compute(made, Store())})
    return module.finish(rows)


def fitted(made, inputs, **changes):
    params = {"tol": 1e-9, "max_iter": 20_000} | changes
    return made.cell.method.with_params(params), MLWSE(
        **{**made.cell.method.params, **params},
    ).fit(inputs.X_train, inputs.Y_train)


@pytest.mark.parametrize(
    ("method", "grid"),
    [
        ("mlwse_l1", {"alpha": [1e-4, 2.0, 1e4], "beta": [1e-3, 10.0]}),
        ("mlwse_l21", {"alpha": [0.05, 0.2], "lam": [1e-3, 1.0], "beta": [1e-2, 5.0]}),
    ],
)
def test_a_grid_point_is_what_the_estimator_gives(inputs, method, grid):
    made = unit(sensitivity, method, {"grid": grid, "metrics": METRICS}, tol=1e-9, max_iter=20_000)
    table = frame(sensitivity, made)
    assert len(table) == len(METRICS) * np.prod([len(values) for values in grid.values()])
    for point, rows in table.groupby(list(grid)):
        _, model = fitted(made, inputs, **dict(zip(grid, point, strict=True)))
        scores, decisions = model.decision_function(inputs.X_test), model.predict(inputs.X_test)
        expected = score_all(inputs.Y_test, scores, decisions, metrics=METRICS)
        got = dict(zip(rows["metric"], rows["value"], strict=True))
        assert got == pytest.approx({name: expected[name] for name in METRICS}, abs=1e-12)


def test_a_table_of_the_grid_is_the_mean_over_splits():
    rows = pd.DataFrame(
        {"method": "m", "dataset": "d", "split": [0, 1], "alpha": 1.0, "beta": 2.0, "lam": np.nan, "metric": "x"}
    ).assign(value=[1.0, 4.0])
    table = sensitivity.finish(rows)
    assert table[["value", "split_0", "split_1"]].to_numpy().tolist() == [[2.5, 1.0, 4.0]]


@pytest.mark.parametrize(("method", "algorithm"), [("mlwse_l1", "apg"), ("mlwse_l21", "bcd")])
def test_the_gap_is_that_of_the_papers_algorithm(inputs, method, algorithm):
    settings = {"iterations": 60, "certified": 1e-10, "max_iter": 50_000}
    made = unit(convergence, method, settings)
    table = frame(convergence, made)
    _, best = fitted(made, inputs, tol=1e-11, max_iter=50_000)
    with pytest.warns(Warning, match="stopped after 60"):
        _, slow = fitted(made, inputs, algorithm=algorithm, tol=0.0, kkt_tol=0.0, max_iter=60)
    expected = slow.objective_path_[table["iteration"] - 1] / best.objective_path_.min() - 1
    assert set(table["algorithm"]) == {algorithm}
    assert table["gap"].to_numpy() == pytest.approx(expected, abs=1e-8)
    assert table["gap"].iloc[0] > 1e-6 >= table["certified"].max()
    if algorithm == "bcd":
        assert (np.diff(table["gap"]) <= 1e-12).all()


def test_iterations_are_few_and_have_the_round_numbers():
    shown = shown_iterations(2000)
    assert {1, 100, 200, 300, 1000, 2000} <= set(shown)
    assert len(shown) < 80
    assert shown_iterations(1).tolist() == [1]


def test_affinity_is_that_of_the_fitted_weights(inputs):
    made = unit(affinity, "mlwse_l1", {"betas": [1e-3, 1e6], "tol": 1e-10})
    table = frame(affinity, made).set_index("beta")
    _, model = fitted(made, inputs, beta=1e-3, tol=1e-10)
    W = model.W_ / np.linalg.norm(model.W_, axis=0)
    above = np.triu_indices(Q, 1)
    expected = spearmanr(model.label_affinity_[above], (W.T @ W)[above]).statistic
    assert table.loc[1e-3, "correlation"] == pytest.approx(expected)
    assert table.loc[1e6, "smallest"] > 0.999 > table.loc[1e-3, "smallest"]  # a large beta makes all columns alike


def test_the_label_term_is_timed_at_the_methods_beta_and_at_zero(inputs, monkeypatch):
    fitted_at, fit = [], MLWSE.fit
    monkeypatch.setattr(MLWSE, "fit", lambda self, X, y: fitted_at.append(self.beta) or fit(self, X, y))
    made = unit(label_term, "mlwse_l21", {"repeats": 3})
    table = frame(label_term, made)
    assert table["beta"].tolist() == [1e-2, 0.0]
    assert (table["seconds"] > 0).all()
    assert fitted_at == [1e-2, 0.0] * 3  # in turns


@pytest.mark.parametrize("method", ["mlwse_l1", "mlwse_l21"])
def test_sparsity_goes_from_nothing_to_everything(inputs, method):
    made = unit(sparsity, method, {"from": 1e-6, "points": 9})
    table = frame(sparsity, made)
    assert table[["ratio", "zeros", "zero_blocks"]].iloc[0].tolist() == [1.0, 1.0, 1.0]
    assert table["zeros"].iloc[1] < 1
    assert table["zeros"].iloc[-1] == 0
    assert table["paper"].sum() == 1
    own = table[table["paper"].astype(bool)].iloc[0]
    assert own["strength"] == made.cell.method.params["alpha" if method == "mlwse_l1" else "lam"]
    _, model = fitted(made, inputs)
    strongest = model.alpha_max_ if method == "mlwse_l1" else model.lambda_max_
    assert own["strength"] / own["ratio"] == pytest.approx(strongest)


SWEEPS = {"every": 4, "sweeps": 30, "certified": 1e-10, "max_iter": 20_000}


@pytest.mark.parametrize("method", ["mlekelm", "mlekelm_rowsparse"])
def test_a_sweep_is_the_model_stopped_there(inputs, method):
    made = unit(sweeps, method, SWEEPS)
    table = frame(sweeps, made).set_index("sweep")
    assert table.index[:5].tolist() == [0, 1, 2, 3, 4]
    assert table.index[-1] == 30
    best = build(made.cell.method).set_params(solver="admm", stop="gap", tol=1e-12, max_sweeps=50_000)
    lowest = best.fit(inputs.X_train, inputs.Y_train).objective_path_[-1]
    for count in (1, 3, 30):
        model = build(made.cell.method).set_params(solver="cd", stop="gap", tol=0.0, max_sweeps=count)
        model.fit(inputs.X_train, inputs.Y_train)
        loss = score_all(inputs.Y_test, *model.predict_with_scores(inputs.X_test))["hamming_loss"]
        assert table.loc[count, "hamming_loss"] == pytest.approx(loss, abs=1e-12)
        assert table.loc[count, "gap"] == pytest.approx(model.objective_path_[-1] / lowest - 1, rel=1e-6, abs=1e-9)
    assert (table["gap"] >= 0).all()
    assert (table["certified"] <= 1e-10).all()


def test_sweep_0_is_the_constant_model(inputs):
    majority = (inputs.Y_train.mean(axis=0) > 0.5) != inputs.Y_test
    for method, expected in (("mlekelm", inputs.Y_test.mean()), ("mlekelm_rowsparse", majority.mean())):
        table = frame(sweeps, unit(sweeps, method, SWEEPS))
        assert table["hamming_loss"].iloc[0] == pytest.approx(expected, abs=1e-12)
        assert table["gap"].iloc[0] == table["gap"].max()


def test_only_the_elastic_net_has_sweeps(inputs):
    with pytest.raises(ExperimentError, match="only the elastic-net kernel machine has sweeps"):
        sweeps.compute(unit(sweeps, "mlkelm", SWEEPS), Store())


def test_more_landmarks_come_nearer_to_the_exact_machine(inputs):
    settings = {"landmarks": [10, 40, 128], "draws": 2, "metrics": ["hamming_loss", "ranking_loss"]}
    table = frame(nystroem, unit(nystroem, "mlkelm", settings))
    assert table.columns[-2:].tolist() == ["hamming_loss", "ranking_loss"]
    assert table.groupby("held_out")["train_rows"].unique().explode().to_dict() == {False: 160, True: 128}
    exact, near = table[table["exact"]], table[~table["exact"]]
    assert exact["difference"].tolist() == [0.0, 0.0]
    assert exact["landmarks"].tolist() == [160, 128]
    mean = near.groupby(["held_out", "landmarks"])["difference"].mean().unstack()
    assert (mean[10] > mean[40]).all()
    assert (mean[40] > 2 * mean[128]).all()
    assert mean.loc[True, 128] < 1e-8  # all training rows are landmarks
    all_rows = near[near["held_out"] & (near["landmarks"] == 128)]
    for name in ("hamming_loss", "ranking_loss"):
        assert all_rows[name].tolist() == exact.loc[exact["held_out"], name].tolist() * 2
        assert table.loc[~table["held_out"], name].isna().all()
    with pytest.raises(ExperimentError, match="expected the kernel machine"):
        nystroem.compute(unit(nystroem, "mlekelm", settings), Store())


def test_a_method_with_an_intercept_is_refused(inputs):
    made = unit(sparsity, "mlwse_l1", {"from": 1e-3, "points": 3}, fit_intercept=True)
    with pytest.raises(ExperimentError, match="with fit_intercept at its default"):
        sparsity.compute(made, Store())


SIMULATED = {"l1": {"alpha": 1e-4}, "l21": {"alpha": 0.05, "lam": 1e-3}}


def simulated(repetition, settings=SIMULATED, name="scenario3", seed=0):
    made = {"name": "scenario", "k": int(name[-1]), "n": 300, "seed": 0, "threshold": "median"}
    return Unit(table3.__name__, name, repetition, None, made, settings, seed)


def test_weights_are_fitted_on_rows_that_no_classifier_saw(monkeypatch):
    seen = {"classifiers": [], "weights": []}
    plain, stacked = BinaryRelevance.fit, MLWSE.fit
    monkeypatch.setattr(BinaryRelevance, "fit", lambda s, X, Y: (seen["classifiers"].append(X), plain(s, X, Y))[1])
    monkeypatch.setattr(MLWSE, "fit", lambda s, X, Y: (seen["weights"].append(X), stacked(s, X, Y))[1])
    scored = []
    score = BinaryRelevance.predict_proba
    monkeypatch.setattr(
        BinaryRelevance, "predict_proba", lambda s, X: (scored.append((X, score(s, X))), scored[-1][1])[1]
    )
    rows = pd.DataFrame(table3.compute(simulated(0), Store()))
    X, S = scored[0][0], np.hstack([scores for _, scores in scored])
    assert [len(part) for part in seen["classifiers"]] == [105] * 3
    assert [part.shape for part in seen["weights"]] == [(105, 3)] * 3
    trained = {row[0] for row in seen["classifiers"][0]}
    weighed = {X[np.flatnonzero((row == S).all(axis=1))[0], 0] for row in seen["weights"][0]}
    assert not trained & weighed
    assert len(trained | weighed) == 210
    accuracies = rows[rows["metric"] == "accuracy"]
    assert len(accuracies) == 6
    assert np.allclose(accuracies["value"] * 90, (accuracies["value"] * 90).round())
    assert accuracies.set_index("who").loc["Random Forest", "value"] > 0.8  # scenario 3 is easy for it


def test_the_baseline_has_least_squares_weights_of_least_norm(monkeypatch):
    kept = []
    fit = MLWSE.fit
    monkeypatch.setattr(MLWSE, "fit", lambda s, X, Y: (kept.append((X, Y)), fit(s, X, Y))[1])
    rows = pd.DataFrame(table3.compute(simulated(1), Store()))
    baseline = rows[rows["who"] == "baseline (eq. 3)"].set_index("metric")["value"]
    expected = np.linalg.lstsq(*kept[0], rcond=None)[0][:, 0]
    assert baseline.filter(like="weight").to_numpy() == pytest.approx(expected, rel=1e-4)
    assert baseline["condition"] == pytest.approx(np.linalg.cond(kept[0][0]))
    assert rows["metric"].unique().tolist() == [
        "accuracy",
        "condition",
        *(f"weight[{name}]" for name in ("SVM (linear)", "SVM (poly)", "Random Forest")),
    ]


def test_a_strong_penalty_selects_one_classifier():
    strong = {"l1": {"alpha": 20.0}, "l21": {"alpha": 0.05, "lam": 20.0}}
    rows = pd.DataFrame(table3.compute(simulated(0, strong), Store()))
    weights = rows[rows["metric"].str.startswith("weight")].pivot(index="who", columns="metric", values="value")
    assert ((weights.loc[["l1 selection (eq. 5)", "sparse-group selection (eq. 6)"]] == 0).sum(axis=1) == 2).all()


def test_repetitions_repeat_and_differ():
    one, again, other = (table3.compute(simulated(r), Store()) for r in (0, 0, 1))
    assert one == again
    assert one != other


def analyses(blocks):
    """The analyses of the MLWSE paper with other blocks in its paper.yaml."""
    paper = Paper("mlwse")
    vars(paper)["content"] = convert({"analyses": blocks}, PaperContent, "paper.yaml", error=PaperError)
    return paper.analyses


def study(**blocks):
    base = {"datasets": ["scenario1"], "methods": ["mlwse_l1"], "protocol": {"kfold": 2, "stratify": 1, "seed": 0}}
    return study_from("toy", base | blocks)


def test_what_is_computed_decides_the_key():
    blocks = [{"analysis": "table3", "datasets": ["scenario1", "scenario2"], "splits": 3, "settings": SIMULATED}]
    units = units_of(study(), analyses(blocks))
    assert len({one.key for one in units}) == len(units) == 6
    assert [one.key for one in units_of(study(), analyses(blocks))] == [one.key for one in units]
    changed = replace(units[0], settings=SIMULATED | {"l1": {"alpha": 1.0}})
    assert changed.key != units[0].key
    assert replace(units[0], seed=1).key != units[0].key


def test_the_keys_of_an_analysis_follow_the_base_scores_it_reads():
    block = {"analysis": "sparsity", "methods": ["mlwse_l1"], "datasets": ["scenario1"], "settings": {"points": 3}}
    units = units_of(study(), analyses([block]))
    assert [one.split for one in units] == [0, 1]
    assert units_of(study(), analyses([block | {"splits": 1}]))[0].key == units[0].key
    moved = replace(units[0], cell=replace(units[0].cell, seed=1))
    assert moved.identity["reads"] != units[0].identity["reads"]
    assert moved.key != units[0].key


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"analysis": "sparsity", "datasets": ["emotions"]}, "is for simulated data, which emotions is not"),
        ({"analysis": "table3", "datasets": ["scenario1"], "repeat": 3}, r"analyses\[0\]: unknown key 'repeat'"),
        ({"analysis": "scenery", "datasets": ["scenario1"]}, "no analysis is called 'scenery'"),
    ],
)
def test_a_wrong_block_says_what_is_wrong(block, message):
    with pytest.raises((ExperimentError, PaperError), match=message):
        units_of(study(), analyses([block]))


@pytest.mark.parametrize("name", paper_names())
def test_every_analysis_of_a_paper_exists(name):
    for analysis in find(name).analyses:
        assert importlib.import_module(analysis.module).FILE


def test_a_failed_unit_says_why_and_the_others_are_kept(tmp_path):
    store = Store(tmp_path)
    units = [simulated(0), simulated(1, {"l1": {"alpha": -1.0}, "l21": {}})]
    failed = run_units(units, store, n_jobs=1)
    assert list(failed) == ["table3 on scenario3, split 1"]
    assert "alpha" in failed["table3 on scenario3, split 1"]
    assert store.finished() == [units[0].key]
    table = tables(units[:1], store)["scores-table3"]
    assert list(table.columns) == ["dataset", "split", "method", "metric", "value"]
    assert len(table) == 16


ANALYSES = """
title: A paper of analyses alone
analyses:
  - {analysis: scenarios, datasets: [scenario1, scenario2]}
  - analysis: table3
    datasets: [scenario1]
    splits: 2
    settings: {l1: {alpha: 1.0e-4}, l21: {alpha: 0.05, lam: 1.0e-3}}
  - {analysis: sparsity, methods: [mlwse_l1], datasets: [scenario1], settings: {from: 1.0e-4, points: 5}}
"""


@pytest.mark.xdist_group("analyses")
@pytest.mark.slow
def test_the_stage_runs_when_an_analysis_changed_and_only_then(tmp_path):
    lab = Laboratory(tmp_path)
    lab.study("quick", "scenario1", "mlwse_l1")
    path = lab.root / "conf" / "study" / "quick.yaml"
    path.write_text(path.read_text() + "paper: mlwse\n")
    content = "src/multilab/papers/mlwse/paper.yaml"
    (lab.root / content).write_text(ANALYSES)
    assert "analyses" in lab.repro()
    folder = lab.root / "reports" / "quick"
    first = pd.read_csv(folder / "scores-table3.csv.gz")
    assert list(first.columns) == ["dataset", "split", "method", "metric", "value"]
    assert len(pd.read_csv(folder / "sparsity.csv")) == 6
    of_a_study = {"cells", "folds", "headline", "keys", "measured", "ranks"}
    assert {path.stem for path in folder.glob("*.csv")} == of_a_study | {"scenarios", "sparsity"}
    assert {path.name for path in folder.glob("*.csv.gz")} == {"scores.csv.gz", "scores-table3.csv.gz"}
    assert lab.repro() == []
    before = lab.cells()
    lab.edit(content, "splits: 2", "splits: 3")
    assert sorted(lab.repro()) == ["analyses", "publish", "stats"]
    assert len(lab.cells()) - len(before) == 1
    now = pd.read_csv(folder / "scores-table3.csv.gz")
    assert now.head(len(first)).equals(first)
    assert sorted(now["split"].unique()) == [0, 1, 2]


@pytest.mark.data
def test_the_papers_point_of_the_grid_is_the_studys_cell(benchmark_data, tmp_path):
    from multilab.cells.cell import split_refs
    from multilab.cells.cell_metrics import evaluate_cell

    mlwse = load_study("mlwse")
    part = split_refs("emotions", mlwse.protocol)[0]
    cell = Cell("train", part, mlwse.method("mlwse_l1", "emotions"), mlwse.seed)
    store = Store(tmp_path)
    assert running.run_cell(cell, store) is None
    expected = evaluate_cell(cell, store, extra=[("f1_of_means", "default")])
    grid = {"alpha": [1e-4], "beta": [1e-3]}
    made = Unit(sensitivity.__name__, "emotions", 0, cell, None, {"grid": grid, "metrics": METRICS})
    rows = sensitivity.compute(made, store)
    assert dict(zip(rows["metric"], rows["value"], strict=True)) == {name: expected[name] for name in METRICS}
