"""The reproducibility gate passes as things are, and catches every mutation in this table by itself."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from multilab.cells.cell import library_versions
from multilab.cli import main
from multilab.experiments.gate import (
    Difference,
    _row_ranking_loss,
    _write_reference,
    differences,
    load_reference,
    missing_cells,
    reference,
    tolerance,
)

pytestmark = pytest.mark.xdist_group("gate")


@dataclass(frozen=True)
class Mutation:
    """A wrong laboratory: edits (file, text that occurs once, its replacement), and where it must show.

    ``fresh`` recomputes everything; else the gate may use the cells that the unchanged laboratory made and whose key
    the mutation leaves alone. ``line`` is the start of what the gate must print, if not the method's first cell.
    """

    name: str
    method: str
    edits: tuple[tuple[str, str, str], ...]
    fresh: bool = False
    line: str = ""


METHODS = "src/multilab/methods"
MUTATIONS = (
    Mutation("ML-kNN smooths with s = 2", "mlknn", (("conf/method/mlknn.yaml", "\ns: 1.0", "\ns: 2.0"),)),
    Mutation(
        "a training point is its own neighbour",
        "mlknn",
        (
            (
                f"{METHODS}/neighbours/mlknn.py",
                "neighbours(exclude_self=self.exclude_self)",
                "neighbours(exclude_self=False)",
            ),
        ),
    ),
    Mutation(
        "soft threshold at 1.05 alpha",
        "mlwse_l1",
        (
            (
                f"{METHODS}/solvers/penalties.py",
                "return X - np.clip(X, -threshold, threshold)",
                "return X - np.clip(X, -1.05 * threshold, 1.05 * threshold)",
            ),
        ),
    ),
    Mutation(
        "Laplacian with the wrong sign",
        "mlwse_l21",
        ((f"{METHODS}/stacking/objective.py", "np.diag(R.sum(axis=1)) - R", "np.diag(R.sum(axis=1)) + R"),),
    ),
    Mutation("KELM's C doubled", "mlkelm", ((f"{METHODS}/elm/kernel_elm.py", "ridge = 1.0 / (", "ridge = 0.5 / ("),)),
    Mutation(
        "the chain is fed the true labels at test time",
        "cc",
        (
            (
                "src/multilab/cells/running.py",
                "    model = estimator_of_cell(cell, method, rows.encoder)\n",
                "    model = estimator_of_cell(cell, method, rows.encoder)\n"
                "    type(model.classifier).truth = rows.Y_test\n",
            ),
            (
                f"{METHODS}/transformation/classifier_chain.py",
                "table.append(decisions[:, label],",
                "table.append(self.truth[:, label],",
            ),
        ),
    ),
    Mutation(
        "base scores are in-sample",
        "mlwse_l1",
        (
            (
                f"{METHODS}/out_of_fold.py",
                "fit_seeded(estimator, X[train], Y[train], seed, weight)",
                "fit_seeded(estimator, X, Y, seed)",
            ),
        ),
        fresh=True,
    ),
    Mutation(
        "coverage is off by one",
        "mlknn",
        (
            (
                "src/multilab/metrics/conventions.py",
                "coverage_offset: Literal[0, 1] = 0",
                "coverage_offset: Literal[0, 1] = 1",
            ),
        ),
    ),
    Mutation(
        "a tie counts as won in the AUC",
        "mlknn",
        (("src/multilab/metrics/conventions.py", "auc_ties: float = 0.5", "auc_ties: float = 1.0"),),
    ),
    Mutation("other folds", "mlknn", (("conf/protocol/kfold3.yaml", "seed: 0", "seed: 1"),)),
    Mutation(
        "X is scaled with the test rows in sight",
        "mlkelm",
        (
            (
                "src/multilab/cells/running.py",
                "    model = estimator_of_cell(cell, method, rows.encoder)\n",
                "    model = estimator_of_cell(cell, method, rows.encoder)\n"
                "    type(model.steps[0][1]).more = 1.5 * rows.X_test\n",
            ),
            ("src/multilab/cells/features.py", ".fit(X)\n", ".fit(__import__('numpy').vstack([X, self.more]))\n"),
        ),
        fresh=True,
    ),
    Mutation(
        "labels are decided at 0.45",
        "br",
        ((f"{METHODS}/base.py", '"probability": 0.5', '"probability": 0.45'),),
    ),
    Mutation(
        "a sparse X is not scaled",
        "br",
        (
            (
                "src/multilab/cells/features.py",
                "import MaxAbsScaler, MinMaxScaler, StandardScaler",
                "import FunctionTransformer, MinMaxScaler, StandardScaler",
            ),
            ("src/multilab/cells/features.py", "return MaxAbsScaler() if", "return FunctionTransformer() if"),
        ),
        fresh=True,
        line="topics-toy/0/br: ",
    ),
    Mutation(
        "a search scores its trials on the rows they were fitted on",
        "mlknn-tuned",
        (
            (
                "src/multilab/experiments/search.py",
                "rows.Y_train, rows.X_test, groups=rows.groups)",
                "rows.Y_train, rows.X_train, groups=rows.groups)",
            ),
            ("src/multilab/experiments/search.py", "score_all(rows.Y_test,", "score_all(rows.Y_train,"),
        ),
        fresh=True,
        line="genes-toy/0/mlknn-tuned: value of trial 0 is ",
    ),
    Mutation(
        "a search keeps its first trial",
        "mlkelm-tuned",
        (
            (
                "src/multilab/experiments/search.py",
                "SearchResult(dict(study.best_params)",
                "SearchResult(dict(finished[0].params)",
            ),
        ),
        fresh=True,
        line="genes-toy/0/mlkelm-tuned: ",
    ),
    Mutation(
        "the official split is swapped",
        "mlknn",
        (
            (
                "src/multilab/model_selection/train_test_splits.py",
                "    train, test = (np.asarray(",
                "    test, train = (np.asarray(",
            ),
        ),
        line="topics-toy/0/mlknn: ",
    ),
    Mutation(
        "only the first split is computed",
        "mlknn",
        (
            (
                "src/multilab/experiments/plan.py",
                "by_dataset[ref.dataset], study) for ref in repeated]",
                "by_dataset[ref.dataset], study) for ref in repeated if ref.split == 0]",
            ),
        ),
        line="digit-segments/1/mlknn: not computed",
    ),
    Mutation(
        "gate cases are not computed",
        "mlwse_l1",
        (("src/multilab/experiments/plan.py", "for case in study.gate_cases:", "for case in ():"),),
        line="digit-segments/0/mlwse_l1[alpha=3.0 beta=10.0]: not computed",
    ),
    Mutation(
        "a data set is missing",
        "mlknn",
        (("conf/study/quick.yaml", "genes-toy, topics-toy]", "genes-toy]"),),
        line="topics-toy/0/mlknn: not computed",
    ),
    Mutation(
        "half of the cells are not run, and nothing says so",
        "mlknn",
        (
            (
                "src/multilab/cells/execute.py",
                "    missing = _missing(cells, store)\n",
                "    missing = _missing(cells[::2], store)\n",
            ),
        ),
        fresh=True,
        line="digit-segments/1/mlknn: not computed",
    ),
)

EVERY_TIME = ("ML-kNN smooths with s = 2", "half of the cells are not run, and nothing says so")
"""These read no cells of others. The rest are slow tests: they need the cells of the unchanged laboratory."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory, checkout) -> Path:
    """A copy of the laboratory, and a store with what the unchanged one computes."""
    root = tmp_path_factory.mktemp("gate")
    for name in ("src", "conf", "tests/references"):
        shutil.copytree(checkout / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def gate(root: Path, *argv: str, jobs: str = "2") -> subprocess.CompletedProcess:
    env = {k: v for k, v in os.environ.items() if k != "MULTILAB_CONF"}
    env |= {"PYTHONPATH": str(root / "src"), "MULTILAB_JOBS": jobs}
    command = [sys.executable, "-m", "multilab", "gate", "--study", "quick", *argv]
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def clean(copy) -> str:
    """What the gate says of the unchanged laboratory."""
    run = gate(copy, "--store", str(copy / "cells"))
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.slow
def test_the_gate_passes_and_every_method_beats_the_constant_predictor(clean):
    from multilab.cells.conf import package_names

    assert "gate passed: " in clean
    methods = [*package_names("method"), "mlknn-tuned", "mlkelm-tuned"]
    assert f"{len(methods)} of {len(methods)} methods and variants beat the constant predictor in ranking loss" in clean
    assert len(clean.splitlines()) <= 3, "a gate that passes lists its methods, as if they had failed"
    allowed = tolerance(load_reference("quick")["versions"])
    assert f"compared to {allowed:g}" in clean


@pytest.mark.slow
def test_the_gate_lists_by_how_much_methods_beat_the_constant_predictor_on_request(copy, clean):
    run = gate(copy, "--method", "mlknn,br", "--verbose")
    assert run.returncode == 0, run.stdout + run.stderr
    header = run.stdout.splitlines().index(
        "ranking loss of the constant predictor minus that of the method (larger is better):"
    )
    rows = [line.split()[:3] for line in run.stdout.splitlines()[header + 1 : header + 3]]
    assert [row[:2] for row in rows] == [["mlknn", "digit-segments"], ["br", "digit-segments"]]
    assert all(0.1 < float(gain) < 0.5 for _, _, gain in rows)


def test_every_planted_fault_has_its_line_in_the_code(checkout):
    """The slow ones too: a line that was rewritten would leave a fault that nobody plants."""
    edits = [(file, old) for mutation in MUTATIONS for file, old, _ in mutation.edits]
    counts = {edit: (checkout / edit[0]).read_text().count(edit[1]) for edit in edits}
    assert {edit: count for edit, count in counts.items() if count != 1} == {}


def base_scores_of(method, source, target):
    """Copy the cells of a store without those of a method, which no raised version tells from those of a fault."""
    for record in source.glob("*/record.json"):
        if json.loads(record.read_text())["method"].partition("[")[0] != method:
            shutil.copytree(record.parent, target / record.parent.name)


@pytest.mark.parametrize(
    "mutation",
    [pytest.param(m, id=m.name, marks=() if m.name in EVERY_TIME else pytest.mark.slow) for m in MUTATIONS],
)
def test_the_gate_catches(mutation, copy, request, tmp_path):
    if mutation.name not in EVERY_TIME:
        request.getfixturevalue("clean")
    for file, old, new in mutation.edits:
        text = (copy / file).read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        if not (tmp_path / file).exists():  # a file may have two edits
            shutil.copy(copy / file, tmp_path / file)
        (copy / file).write_text(text.replace(old, new))
    try:
        store = tmp_path / "cells"
        if not mutation.fresh:
            base_scores_of(mutation.method, copy / "cells", store)
        run = gate(copy, "--method", mutation.method, "--store", str(store))
    finally:
        for file, _, _ in mutation.edits:
            shutil.copy(tmp_path / file, copy / file)
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"GATE: {mutation.line or f'digit-segments/0/{mutation.method}'}" in run.stdout
    assert "gate FAILED" in run.stdout


def test_compare_names_the_cell_and_the_number():
    expected = {"a/0/m": {"x": 1.0, "y": float("nan")}, "b/0/m": {"x": 5.0}}
    actual = {"a/0/m": {"x": 1.0 + 2e-6, "y": float("nan"), "new": 3.0}, "c/0/new": {"x": 0.0}}
    assert differences(actual, expected, 1e-6) == [Difference("a/0/m", "x", 1.0, 1.0 + 2e-6)]
    assert differences(actual, expected, 1e-5) == []
    assert differences({"a/0/m": {"x": 1.0, "y": 0.5}}, expected, 1.0)[0].quantity == "y"
    assert differences({"a/0/m": {"y": float("nan")}}, expected, 1.0)[0].quantity == "x"
    assert "a/0/m: x is 1.000002, the reference says 1" in str(Difference("a/0/m", "x", 1.0, 1.000002))


@pytest.mark.parametrize(
    ("computed", "expected", "same"),
    [
        (1.0, float("inf"), False),
        (float("inf"), 1.0, False),
        (float("inf"), float("-inf"), False),
        (float("nan"), float("inf"), False),
        (float("inf"), float("inf"), True),
    ],
)
def test_an_infinite_number_equals_only_itself(computed, expected, same):
    assert (differences({"a/0/m": {"x": computed}}, {"a/0/m": {"x": expected}}, 1.0) == []) == same


def test_a_cell_that_is_expected_and_not_computed_is_named():
    committed = ["a/0/m", "a/1/m", "a/0/m[C=2]", "a/0/n", "b/0/m-tuned"]
    assert missing_cells(committed, committed, committed) == []
    assert missing_cells(["a/0/m"], ["a/0/m", "a/0/new"], ["a/0/m"]) == ["a/0/new: not computed"]
    assert missing_cells([], [], committed) == [f"{name}: not computed" for name in sorted(committed)]
    of_m = ["a/0/m: not computed", "a/0/m[C=2]: not computed", "a/1/m: not computed"]
    assert missing_cells([], [], committed, ["m"]) == of_m
    assert missing_cells([], [], committed, ["m-tuned"]) == ["b/0/m-tuned: not computed"]


@pytest.mark.slow
def test_only_a_complete_run_becomes_the_reference(copy, clean, tmp_path):
    partly = gate(copy, "--method", "mlknn", "--accept", str(tmp_path))
    assert partly.returncode == 2
    assert "leave out --method" in partly.stderr
    path = copy / "conf/method/mlknn.yaml"
    text = path.read_text()
    path.write_text(text.replace("\nk: 10", "\nk: 100000"))  # more neighbours than there are rows
    try:
        run = gate(copy, "--accept", str(tmp_path))
    finally:
        path.write_text(text)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "GATE: mlknn on digit-segments, split 0 failed: " in run.stdout
    assert "no reference of quick is written" in run.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_new_reference_keeps_the_committed_numbers_that_agree(tmp_path, capsys):
    path = tmp_path / "quick.json"
    old = {"a/0/m": {"x": 0.1, "y": 0.2}, "b/0/m": {"x": math.nan}, "gone/0/m": {"x": 1.0}}
    path.write_text(reference(old))
    computed = {"a/0/m": {"x": 0.1 + 1e-12, "y": 0.3, "z": 4.0}, "b/0/m": {"x": math.nan}, "a/0/new": {"x": 0.7}}
    _write_reference(path, computed)
    assert "1 cells added, 1 changed, 1 removed" in capsys.readouterr().out
    cells = json.loads(path.read_text())["cells"]
    assert set(cells) == set(computed)
    assert cells["a/0/m"] == {"x": 0.1, "y": 0.3, "z": 4.0}
    assert cells["a/0/new"] == {"x": 0.7}


def test_the_tolerance_depends_on_the_versions():
    assert tolerance(library_versions()) == 1e-6
    assert tolerance({**library_versions(), "numpy": "0"}) == 5e-3


def test_the_reference_covers_every_method_of_the_quick_study():
    from multilab.experiments.study import load_study

    study, cells = load_study("quick"), load_reference("quick")["cells"]
    assert {name.split("/", 2)[2] for name in cells} >= set(study.all_methods)
    assert {name.split("/")[0] for name in cells} == set(study.datasets)
    assert json.dumps(cells)


def test_rows_are_compared_by_their_pairs_and_a_tie_is_an_error():
    Y = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0]])
    scores = np.array([[0.5, 0.5, 0.2], [0.9, 0.1, 0.3], [0.1, 0.9, 0.1]])
    assert _row_ranking_loss(Y, scores).tolist() == [0.5, 0.5, 0.0]


@pytest.mark.slow
def test_a_method_no_better_than_the_constant_predictor_fails(copy, clean):
    (copy / "conf/method/constant.yaml").write_text("_target_: sklearn.dummy.DummyClassifier\nstrategy: prior\n")
    try:
        run = gate(copy, "--method", "constant", "--store", str(copy / "cells"))
    finally:
        (copy / "conf/method/constant.yaml").unlink()
    assert run.returncode == 1, run.stdout + run.stderr
    assert "GATE: constant: ranking loss 0.0000 below the constant predictor's" in run.stdout
    assert "less than 3 standard errors" in run.stdout
    assert "0 of 1 methods beat the constant predictor" in run.stdout


@pytest.mark.slow
def test_a_sample_is_drawn_from_the_methods_that_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    (tmp_path / "conf" / "study").mkdir(parents=True)
    (tmp_path / "conf" / "study" / "tiny.yaml").write_text(
        "{title: Tiny, description: x, datasets: [genes-toy], methods: [br_logistic, mlknn], protocol: kfold3,"
        " metrics: [hamming_loss], headline: hamming_loss, rope: null}"
    )
    assert main(["store", "add", "--study", "tiny"]) == 0
    path = tmp_path / "reports" / "tiny" / "scores.csv.gz"
    scores = pd.read_csv(path)
    scores.loc[(scores["method"] == "mlknn") & (scores["metric"] == "hamming_loss"), "value"] = 0.5
    scores.to_csv(path, index=False)
    assert main(["gate", "--study", "tiny", "--method", "br_logistic", "--sample", "9"]) == 0
    assert "gate passed: 3 cells of tiny recomputed" in capsys.readouterr().out
    assert main(["gate", "--study", "tiny", "--method", "mlknn,br_logistic", "--sample", "9"]) == 1
    assert "GATE: genes-toy/0/mlknn: hamming_loss is" in capsys.readouterr().out
    assert main(["gate", "--study", "tiny", "--method", "br_logistic", "--dataset", "genes-toy"]) == 0
    said = capsys.readouterr().out
    assert "gate passed: 3 cells of tiny recomputed, compared to 1e-06" in said
    assert re.search(r"\n  hamming_loss +(0\.\d{6}) +\1\n", said), "the means, recomputed and committed"
    assert main(["gate", "--study", "tiny", "--method", "mlknn"]) == 1  # without a reference: the committed scores
    assert "GATE: genes-toy/0/mlknn: hamming_loss is" in capsys.readouterr().out
    assert main(["gate", "--study", "tiny", "--dataset", "genes-toi"]) == 2
    assert "did you mean 'genes-toy'?" in capsys.readouterr().err
    scores.loc[(scores["method"] == "br_logistic") & (scores["split"] == 1), "value"] = 0.5
    scores.to_csv(path, index=False)
    assert main(["gate", "--study", "tiny", "--cell", "genes-toy/0/br_logistic,genes-toy/2/br_logistic"]) == 0
    assert "gate passed: 2 cells of tiny recomputed" in capsys.readouterr().out
    assert main(["gate", "--study", "tiny", "--cell", "genes-toy/0/br_logistic,genes-toy/1/br_logistic"]) == 1
    assert "GATE: genes-toy/1/br_logistic: hamming_loss is" in capsys.readouterr().out
    assert main(["gate", "--study", "tiny", "--cell", "genes-toy/3/br_logistic"]) == 2
    assert "no finished cell genes-toy/3/br_logistic" in capsys.readouterr().err
    assert main(["study", "train", "--study", "tiny", "--method", "mlknn", "--dataset", "genes-toy"]) == 0


def test_a_study_without_committed_results_names_the_place_that_has_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["gate", "--study", "mlwse-core", "--sample", "1"]) == 2
    assert "a clone of multilab has those of its studies" in capsys.readouterr().err
