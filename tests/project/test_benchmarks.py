"""The benchmarks run, and their checks of equal output tell equal from different. No times here."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "common")


@pytest.fixture
def script(monkeypatch):
    """Import a benchmark as if it were started as a program; forget it afterwards, as its name may be another's too."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in (*SCRIPTS, "common"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module
    for name in (*SCRIPTS, "common"):
        sys.modules.pop(name, None)


@pytest.fixture
def common(script):
    return script("common")


def test_the_scripts_run_together_are_there(script):
    assert set(script("run_all").SCRIPTS) <= set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_explains_itself(name, script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit) as stopped:
        script(name).main()
    assert stopped.value.code == 0
    assert f"benchmarks/{name}.py" in capsys.readouterr().out


def test_a_table_of_all_results(script):
    one = {"claim": "speed", "value": "3x", "goal": ">= 2x", "met": True, "check": "identical"}
    text = script("run_all").table([one, {**one, "met": False}, {**one, "goal": "", "met": None}])
    assert [row.split("|")[4].strip() for row in text.splitlines()[2:]] == ["met", "**missed**", ""]


def test_results_are_appended_and_a_difference_stops_the_script(common, tmp_path, capsys):
    target = tmp_path / "results.json"
    common.show("first", [common.Line("a", "1 s", "< 2 s", True)], json_path=target)
    with pytest.raises(SystemExit, match="outputs differ"):
        common.show("second", [common.Line("b", "9x", ">= 2x", True, "DIFFERENT: 1 value")], json_path=target)
    assert [json.loads(line)["title"] for line in target.read_text().splitlines()] == ["first", "second"]
    assert "goal < 2 s: met" in capsys.readouterr().out


def test_a_missing_peer_is_reported(common):
    with pytest.raises(common.Peers, match=r"benchmarks/README\.md"):
        common.peers("no-such-package-here")


def test_race_returns_a_median_and_the_output_of_each(common):
    calls = []
    medians, outputs = common.race({"a": lambda: calls.append("a") or 1, "b": lambda: calls.append("b") or 2}, 3)
    assert calls == ["a", "b"] * 4  # the first round is not timed
    assert outputs == {"a": 1, "b": 2}
    assert all(seconds >= 0 for seconds in medians.values())


def test_mlknn_compares_neighbours_and_decisions(script):
    mlknn = script("mlknn")
    X, new, Y = mlknn.points(60, 5, 4)
    assert 0.02 < Y.mean() < 0.6
    for algorithm in ("brute", "kd_tree", "ball_tree"):
        theirs = mlknn.bare_search(X, new, algorithm)
        assert mlknn.same_neighbours(X, new, theirs).startswith("identical 1200")
    theirs[1][0, 0] = theirs[1][0, 1]
    assert mlknn.same_neighbours(X, new, theirs) == "DIFFERENT: 1 neighbours"
    assert mlknn.same_decisions(Y, sp.lil_matrix(Y)) == "identical 240 decisions"
    assert mlknn.same_decisions(Y, 1 - Y) == "DIFFERENT: 240 decisions"


def test_reading_compares_arrays(script, tmp_path):
    reading = script("reading")
    (path,), xml = reading.simulated_file(tmp_path, n=7, d=3, q=2)
    X, Y = reading.our_matrix(path, xml)
    assert X.shape == (7, 3)
    assert Y.shape == (7, 2)
    names, columns = (["a0", "a1", "a2"], ["l0", "l1"]), ["a0", "a1", "a2", "l0", "l1"]
    table = np.hstack([X, Y])
    assert reading.same_arrays((X, Y), table, names, columns) == "identical arrays, 7 x 5"
    assert reading.same_arrays((sp.csr_array(X), Y), sp.csr_array(table), names, columns).startswith("identical")
    table[2, 4] = 1 - table[2, 4]
    assert reading.same_arrays((X, Y), table, names, columns) == "DIFFERENT: Y"


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is Linux's")
def test_reading_compares_tables_with_pandas_and_pyarrow(script, tmp_path):
    reading = script("reading")
    for parquet in (False, True):
        path = reading.table_file(tmp_path, 50, text=not parquet, parquet=parquet)
        seconds, memory = reading.against_peer(path, "a table", 1, 2.0, 3)
        assert seconds.check == "identical numbers"
        assert memory.value.endswith("MiB)")


def test_metrics_compares_sparse_and_dense(script):
    metrics = script("metrics")
    data = metrics.prediction(300, 20)
    assert metrics.dense_agrees(data, 200).startswith("sparse = dense in")
    assert metrics.same_values({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0 + 1e-9}, "one row").startswith("DIFFERENT")


def test_the_grid_is_solved_by_both_and_the_check_sees_a_gap(script):
    grid = script("mlwse_grid")
    S, Y = grid.simulated(80, 3)
    _, points = grid.measure(S, Y, np.array([1e-1, 1e0]), cap=500)
    assert len(points) == 4
    assert all(point.arrived for point in points)
    assert grid.solved(points).startswith("same minimum at 4 points")
    assert grid.solved([*points, points[0]._replace(excess=2e-4)]).startswith("DIFFERENT")


def test_kernel_paths_agree_with_their_peers_and_the_checks_see_a_gap(script, monkeypatch):
    from multilab.methods.kernels import kernel_matrix

    paths = script("elm_path")
    monkeypatch.setattr(paths, "CAP", 50)
    X, Y, X_test = paths.simulated(80, 20, 30, 3)
    kernels = kernel_matrix(X), 2.0 * Y - 1.0, kernel_matrix(X_test, X)
    assert paths.ridges(kernels, 7).check.startswith("same scores")
    line, notes = paths.elastic_nets(kernels, 3, 0.5, 2)
    assert line.check.startswith("same minima")
    assert "for 2 of 3 labels" in line.value
    assert "at most 50; not within 1e-04 after 50 sweeps: 4 of 6" in notes[-1]
    assert paths.solved(1e-5, 2e-4, 1e-8).startswith("DIFFERENT")


def test_the_peer_is_timed_on_the_sweeps_it_needs(script):
    from multilab.methods.elm._elastic_net import KernelLoss
    from multilab.methods.kernels import kernel_matrix

    paths = script("elm_path")
    X, Y, _ = paths.simulated(80, 20, 30, 1)
    omega, y = np.asfortranarray(kernel_matrix(X)), 2.0 * Y - 1.0
    lams = np.array([0.5, 0.1]) * np.abs(omega @ y).max()
    exact = paths.elastic_net_path(KernelLoss.from_kernel(omega, y), lams, 0.5, tol=1e-9)
    best = np.array([paths.minima(omega, y, s.W, lam, 0.5)[0] for s, lam in zip(exact, lams, strict=True)])
    peer = paths.Peer(omega, omega.T @ omega, y[:, 0], lams, 0.5)
    sweeps, excess = peer.needed(best)
    assert all(-1e-8 < one <= paths.GAP for one in excess)
    assert all(paths.LOOK <= one < paths.CAP for one in sweeps)
    peer.run(sweeps)
    again = paths.minima(omega, y, peer.net.coef_[:, None], lams[-1], 0.5)[0] / best[-1] - 1
    assert again == pytest.approx(excess[-1], abs=1e-9)


@pytest.mark.parametrize("ridge", ["rkhs", "frobenius"])
def test_many_ridges_from_one_eigendecomposition(script, ridge):
    from multilab.methods.kernels import kernel_matrix

    paths = script("elm_path")
    rng = np.random.default_rng(10)
    X, X_test, targets = rng.normal(size=(40, 4)), rng.normal(size=(15, 4)), np.sign(rng.normal(size=(40, 3)))
    omega, omega_test = kernel_matrix(X, gamma=0.5), kernel_matrix(X_test, X, gamma=0.5)
    strengths = np.geomspace(1e-5, 1e3, 40)
    scores = paths.ridge_scores(omega, targets, omega_test, strengths, ridge=ridge)
    assert scores.shape == (40, 15, 3)
    for strength, predicted in zip(strengths, scores, strict=True):
        left, right = (omega, targets) if ridge == "rkhs" else (omega @ omega, omega @ targets)
        beta = np.linalg.solve(left + strength * np.eye(40), right)
        np.testing.assert_allclose(predicted, omega_test @ beta, rtol=0, atol=1e-8)


def test_tuning_runs_every_kernel_method(script, tmp_path):
    tuning = script("elm_tuning")
    part = tuning.split_refs("digit-segments", {"kfold": 3, "stratify": 1, "seed": 0})[0]
    cells = tuning.tuned_cells(part, 2)
    assert len({cell.key for cell in cells}) == len(cells) == 5
    quickest = [cell for cell in cells if cell.method.name == "mlkelm"]
    _, notes = tuning.tune(quickest, tmp_path, 1)
    assert "mlkelm: " in notes[0]
    assert "gamma" in notes[0]


def test_the_memory_of_nystroem_is_next_to_the_exact_scores(script):
    nystroem = script("nystroem")
    line, note = nystroem.measure(600, 50, 20, 3)
    assert line.met
    assert line.check.startswith("same scores")
    assert "on 600 rows" in note
    assert nystroem.agree(1e-3).startswith("DIFFERENT")


def test_selection_finds_the_same_rows_and_curves_and_the_checks_see_a_gap(script, monkeypatch):
    monkeypatch.delenv("MULTILAB_DATA", raising=False)
    selection = script("selection")
    social = X, Y, new = selection.data("none", 60, 30, 25, 4)
    assert (X.shape, new.shape, Y.sum(axis=0).min()) == ((60, 25), (30, 25), 1)
    usable = Y[:, Y.sum(axis=0) >= 2]
    ours, theirs = selection.nearest_of_classes(X, usable), selection.per_label(X, usable)
    assert selection.same_hits(X, usable, ours, theirs).startswith("identical")
    theirs[0, 0, 0] += 1e-3
    ours[0][1, 5, 0] += 1
    assert selection.same_hits(X, usable, ours, theirs) == "DIFFERENT: 2 distances or rows"
    assert selection.curve(social, 4, 1).check == "identical 480 scores"
    assert selection.hits(social, 1).check.startswith("identical")


def test_the_quality_of_folds_is_measured_and_the_checks_see_a_gap(script):
    splitters = script("splitters")
    Y = np.repeat(np.array([[1, 1], [1, 0], [0, 0]], dtype=np.uint8), [20, 20, 60], axis=0)
    even = [(np.setdiff1d(np.arange(100), rows), rows) for rows in np.arange(100).reshape(10, 10).T]
    assert splitters.quality(Y, even)[:4] == (0, 0, 0, 0)
    blocks = [(np.setdiff1d(np.arange(100), rows), rows) for rows in np.arange(100).reshape(10, 10)]
    one = splitters.quality(Y, blocks)
    assert one.ld == pytest.approx((4 * (10 - 2 / 3) + 6 * 2 / 3 + 2 * (10 - 1 / 4) + 8 / 4) / 20)  # odds 2/3 and 1/4
    assert one.lpd == pytest.approx((2 * (10 - 1 / 4) + 8 / 4) / 10)
    assert (one.size, one.empty) == (0, 6 + 8)
    assert splitters.same_folds(Y).startswith("identical")
    assert splitters.same_folds(Y, 1 - Y).startswith("DIFFERENT")
    lines, notes = splitters.compare("blocks", Y, {"random again": splitters.random_folds}, 2)
    assert [line.met for line in lines] == [True, True]
    assert len(notes) == 5
    assert splitters.grouped("blocks", Y, 20, 2)[0][0].claim == "LD of group folds to scikit-learn's, blocks"


def test_a_slow_splitter_is_stopped(script):
    splitters = script("splitters")
    Y = splitters.synthetic(200, 5)
    assert splitters.limited(splitters.ours(1), Y, 60).size == 0

    def endless(Y, seed):
        while True:
            pass

    assert splitters.limited(endless, Y, 1) is None


def test_stages_are_timed_from_start_to_start(script):
    pipeline = script("pipeline")
    lines = [
        (0.5, "noise\n"),
        (1.0, "Running stage 'train':\n"),
        (1.5, "> multilab study train\n"),
        (3.0, "Running stage 'b@c':\n"),
    ]
    assert pipeline.stage_times(lines, 7.0) == {"train": 2.0, "b@c": 4.0}


def test_memory_lists_the_largest_cell_first(script, tmp_path):
    from multilab.cells.store import Store

    for key, megabytes in (("a" * 64, 3.0), ("b" * 64, 8.0)):
        record = {"peak_mb": megabytes, "label": f"cell {key[0]}", "dataset": "scenario1"}
        Store(tmp_path).write(key, {"scores": np.zeros(1)}, record, "")
    assert [row[:2] for row in script("memory").peaks(tmp_path)] == [(8.0, "cell b"), (3.0, "cell a")]


@pytest.mark.parametrize("data", ["documents", "points"])
@pytest.mark.parametrize("method", ["br", "mlknn-exact"])
def test_many_labels_run_from_end_to_end(script, monkeypatch, data, method):
    """A small version of the benchmark, in which a dense copy of Y is refused."""
    from multilab.methods import labels

    monkeypatch.setattr(labels, "MAX_DENSE_BYTES", 0)
    result = script("many_labels").run(data, method, (300, 60, 40))
    assert list(result["seconds"]) == ["data", "split", "fit", "predict", "metrics"]
    assert 0 < result["micro_f1"] < 1
    assert 0 < result["precision_at_5"] <= 1
    assert result["peak"] < script("many_labels").LIMIT


def test_extreme_runs_from_end_to_end(script, capsys):
    extreme = script("extreme")
    found = extreme.run("SparseBinaryRelevance", (300, 80, 2000, 40))
    assert list(found["seconds"]) == ["fit", "predict", "metrics"]
    assert 0.1 < found["metrics"]["P@1"] <= 1  # the most frequent label alone: 0.1
    assert found["metrics"]["P@3"] < found["best"]["P@3"] <= 1
    line = extreme.described("SparseBinaryRelevance", found, (300, 80, 2000, 40))
    assert line.met
    assert line.claim == "peak memory of SparseBinaryRelevance on 300 rows x 2,000 features x 40 labels"
    twice = {**found, "peak": 2 * found["peak"]}
    assert [line.value for line in extreme.compared(twice, found)][:3] == ["1.00x", "1.00x", "2.00x"]


def test_decisions_reach_the_same_f1_and_the_checks_see_a_gap(script, monkeypatch):
    decisions = script("decisions")
    Y, P = decisions.data(300, 4)
    assert decisions.per_label(Y, P, 1).check.startswith("identical F1")
    assert decisions.one_cut(Y, P, 1).check.startswith("identical F1")
    assert decisions.expected(P[:40], 1).check == "identical decisions of 40 rows"
    assert decisions.same_f1(0.5, 0.6).startswith("DIFFERENT")
    monkeypatch.setattr(decisions, "all_nested", lambda P: 1 - decisions.expected_f1_decisions(P))
    assert decisions.expected(P[:40], 1).check == "DIFFERENT: 40 of 40 rows"


def made_up(n=160, q=3, seed=0):
    """Return a small dataset whose labels follow from its features, but for noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    Y = (X[:, :q] + 0.3 * rng.normal(size=(n, q)) > 0.4).astype(np.uint8)
    return SimpleNamespace(X=X, Y=Y, label_names=[f"l{label}" for label in range(q)])


@pytest.mark.slow
def test_evaluate_takes_files_to_rules_and_their_value_on_other_rows(script, tmp_path, monkeypatch):
    evaluate, data = script("evaluate"), made_up()
    monkeypatch.setattr(evaluate, "load", lambda name: data)
    found = evaluate.one("made up", 0, tmp_path)
    assert 0.6 < found["at .5"] < 1  # the labels follow from the features
    assert 0.6 < found["reached"] < 1
    monkeypatch.setattr(evaluate, "logits_of", lambda X, Y, train, rows, seed: 8.0 * Y[rows] - 6)  # cut at 0 is right
    right = evaluate.one("made up", 0, tmp_path)
    assert right["at .5"] == right["estimate"] == right["reached"] == 1
    assert right["covered"]
    assert not right["gain shown"]
    monkeypatch.setattr(evaluate, "logits_of", lambda X, Y, train, rows, seed: 4.0 * Y[rows] - 6)  # all below 0
    low = evaluate.one("made up", 0, tmp_path)
    assert (low["at .5"], low["reached"], low["gain shown"]) == (0, 1, True)
    assert low["error after"] < low["error before"]
    assert evaluate.table({"right": [right, right], "low": [low]}).splitlines()[3].startswith("| low | 0.000 | 1.000 |")


def test_quality_compares_the_estimate_with_true_labels_under_each_shift(script, monkeypatch):
    quality, data = script("quality"), made_up(200)
    monkeypatch.setattr(quality, "load", lambda name: data)
    found = pd.DataFrame(quality.one("made up", 0), columns=quality.COLUMNS)
    assert len(found) == 2 * 3 * 3
    assert not found.duplicated(["learner", "shift", "metric"]).any()
    values = found[["true", "training", "estimate", "covered"]]
    assert ((values >= 0) & (values <= 1)).all().all()
    assert (found["true"] > 0.5).all()
    train, others = np.arange(100), np.arange(100, 200)
    parts = quality.chosen_rows(data.X, data.Y, train, others, np.random.default_rng(0))
    for rows in parts.values():
        assert len(np.unique(rows)) == 50
        assert set(rows) <= set(others)
    counts = {shift: data.Y[rows].sum() for shift, rows in parts.items()}
    assert counts["tilt"] > counts["none"]  # rows of which many labels are predicted
    means = found[(found["metric"] == "micro_f1") & (found["shift"] == "none") & ~found["refused"]].mean(
        numeric_only=True
    )
    assert f"| {means['training']:.3f} | {means['estimate']:.3f} |" in quality.tables(found)


def test_doubt_plants_errors_and_finds_those_that_contradict_the_features(script, monkeypatch):
    doubt, data = script("doubt"), made_up(240)
    monkeypatch.setattr(doubt, "MASKS", ("methods",))  # cleanlab may not be installed
    monkeypatch.setattr(doubt, "RANKINGS", ("own (linear)", "own (mean)", "methods"))
    flips = doubt.planted(data.Y, "proportion", 0.1, np.random.default_rng(0))
    for column, flipped in zip(data.Y.T, flips.T, strict=True):
        assert flipped[column == 1].sum() == flipped[column == 0].sum() == round(0.1 * column.sum())
    assert doubt.planted(data.Y, "uniform", 0.1, np.random.default_rng(0)).sum() == round(0.1 * data.Y.size)
    assert not doubt.planted(data.Y, "proportion", 0.0, np.random.default_rng(0)).any()
    train, test, kept = doubt.split(data.X, data.Y, 0)
    assert sorted([*train, *test]) == list(range(240))
    assert kept.tolist() == [0, 1, 2]
    rows = pd.DataFrame([{"set": "made up", **row} for row in doubt.one(data.X, data.Y, 0, rates=(0.1,))])
    assert rows["planting"].tolist() == ["none", "proportion", "uniform"]
    planted = rows[rows["rate"] > 0]
    chance = planted["flips"] / planted["cells"]
    for ranking in doubt.RANKINGS:
        assert (planted[f"found: {ranking}"] > 4 * chance).all()
    assert (planted["precision: methods"] > 0.5).all()
    for learner in doubt.LEARNERS:
        assert (planted[f"{learner}: macro AP: clean"] > 0.8).all()
    assert "| made up | uniform |" in doubt.tables(rows)


def test_scaling_compares_stores(script):
    scaling = script("scaling")
    assert len(scaling.all_cells(scaling.cheap_study(2))) == 20
    assert scaling.same({"a": {"k": "1"}, "b": {"k": "1"}}, 1).startswith("identical")
    assert scaling.same({"a": {"k": "1"}, "b": {"k": "2"}}, 1).startswith("DIFFERENT")
    assert scaling.same({"a": {"k": "1"}, "b": {"k": "1"}}, 2).startswith("DIFFERENT")


def test_the_share_of_a_student_is_of_the_gain_of_its_teacher(script):
    distillation = script("distillation")
    means = {"forest": 0.6, "teacher": 0.7, "distilled": 0.68, "taught forest": 0.6, "taught booster": 0.5, "ms": 3.0}
    assert distillation.share(means, "distilled") == pytest.approx(0.8)
    assert np.isnan(distillation.share(means | {"teacher": 0.6}, "distilled"))
    assert distillation.table({"flags": means}).splitlines()[2] == (
        "| flags | 0.600 | 0.700 | 0.680 (80 %) | 0.600 (0 %) | 0.500 (-100 %) | 3.00 |"
    )
    assert [line.met for line in distillation.lines({"flags": means})] == [False, False, False]
    assert [line.met for line in distillation.lines({"flags": means | {"distilled": 0.7, "ms": 1.0}})] == [
        True,
        True,
        True,
    ]
    without = {"birds": means | {"teacher": 0.6}, "flags": means | {"distilled": 0.7}}  # a goal where there is a gain
    assert distillation.lines(without)[0].value == "1 of 1"
    assert distillation.lines(without)[1].value == "180 %"  # (.08 + .10) / 2 of .05
    assert "0.680 (no gain)" in distillation.table(without)
    Y = np.array([[1, 0, 0], [0, 1, 0]])
    assert distillation.macro_ap(Y, np.array([[0.9, 0.1, 0.5], [0.1, 0.2, 0.6]])) == 1.0  # the third label is left out


SAMPLE = '''"""Not 1 < 2."""

LIMIT = 10


class Model:
    """Not 1 < 2."""

    def fit(self, X: "0 < 1", least: int = 1) -> "not 1":
        """Not 1 < 2."""
        if X < least and not self.off:
            raise ValueError(f"{X + 1} < {least}")
        X += self.shape[0]
        return max(X, 2.0)
'''


def test_mutants_change_code_and_neither_texts_nor_annotations(script):
    mutants = script("mutants")
    changed = {(function, after) for function, _, _, after in mutants.Finder(SAMPLE).changes()}
    fit = "Model.fit"
    assert changed == {
        *(("", f"LIMIT = {value}") for value in (9, 11)),
        *((fit, f'def fit(self, X: "0 < 1", least: int = {value}) -> "not 1":') for value in (0, 2)),
        *((fit, f"if X {text} least and not self.off:") for text in ("<=", ">=")),
        (fit, "if X < least or not self.off:"),
        (fit, "if X < least and self.off:"),
        *((fit, text) for text in ("pass", "X -= self.shape[0]", "X += self.shape[1]")),
        *((fit, text) for text in ("return min(X, 2.0)", "return max(X, 4.0)")),
    }


def test_a_mutant_is_placed_where_its_function_has_moved(script, tmp_path):
    mutants = script("mutants")
    mutant = mutants.Mutant("methods", "multilab/methods/gone.py", "Model.fit", "X += self.shape[0]", "pass")
    assert mutants.placed(mutant, tmp_path) is None
    other = tmp_path / "src" / "multilab" / "metrics" / "here.py"
    other.parent.mkdir(parents=True)
    other.write_text(SAMPLE)
    assert mutants.placed(mutant, tmp_path) == (other, 12)
    other.write_text(SAMPLE.replace("X += ", "X = X + "))
    assert mutants.placed(mutant, tmp_path) is None


EDIT = """=== 7 A name changes.
raise: Ridge
study: {methods: [ridge]}
$ multilab results
--- a.py
+++ b.py
@@
-    one = 1
+    first = 1
@@
     return 2
--- c.py
@@
+new = True
"""


def test_an_edit_is_made_where_its_text_is_and_nowhere_else(script, tmp_path):
    edits = script("edits")
    (edit,) = edits.read_edits(f"Words of explanation.\n\n{EDIT}")
    assert (edit.number, edit.commands, edit.raised, edit.study) == (
        7,
        ["multilab results"],
        "Ridge",
        {"methods": ["ridge"]},
    )
    source = 'class Ridge:\n    """Ridge."""\n\n    one = 1\n    return 2\n'
    (tmp_path / "a.py").write_text(source)
    edits.apply(edit, tmp_path, raising=False)
    assert not (tmp_path / "a.py").exists()
    assert (tmp_path / "b.py").read_text() == source.replace("one", "first")
    assert (tmp_path / "c.py").read_text() == "new = True\n"
    (tmp_path / "a.py").write_text(source + "    one = 1\n")
    with pytest.raises(edits.Lost):
        edits.apply(edit, tmp_path, raising=False)


def test_a_version_is_declared_or_raised(script):
    edits = script("edits")
    source = "class A:\n    results_version = 4\n\n\nclass B(A):\n    pass\n\n\nB()\n"
    spaces: dict[str, Any] = {}
    exec(edits.with_raise(edits.with_raise(edits.with_raise(source, "A"), "B"), "RESULTS_VERSION"), spaces)
    assert (spaces["A"].results_version, spaces["B"].results_version, spaces["RESULTS_VERSION"]) == (5, 2, 2)
    metrics = "@metric(\n    'A',\n)\ndef a():\n    pass\n\n\n@metric('B', version=2)\ndef b():\n    pass\n"
    versions: list[int] = []

    def metric(title, version):
        versions.append(version)
        return lambda function: function

    exec(edits.with_raise(edits.with_raise(metrics, "a"), "b"), {"metric": metric})
    assert versions == [2, 3]
    with pytest.raises(edits.Lost):
        edits.with_raise(source, "C")


def test_an_old_number_and_an_old_file_are_found(script):
    edits = script("edits")

    def outputs(printed, **stored):
        return edits.Outputs([printed], printed, "", stored, frozenset())

    fresh = outputs("genes, kfold2\nmlknn  0.1250  1.2 s\n", scores="a")
    old = "genes, 2 folds (seed 1)\nmlknn  0.1875  0.1 s\n"
    same = outputs(f"{old}\ngenes, kfold2\nmlknn  0.1250  0.0 s\n", scores="a", others="b")
    assert not same.difference(fresh, ["results"])  # what has another name is no difference, nor is a time
    assert outputs("genes, kfold2\nmlknn  0.1251  1.2 s\n", scores="a").difference(fresh, ["results"])
    assert outputs(old, scores="a").difference(fresh, ["results"])
    assert outputs("genes, kfold2\nmlknn  0.1250  1.2 s\n", scores="b").difference(fresh, ["results"]) == "scores"
