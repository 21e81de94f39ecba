"""Every part of a cell's key: what moves it, and what does not."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace

import pytest

from helpers.keys import PART, raise_version
from multilab.cells import cell as cells
from multilab.cells import fitting, rows, seeds
from multilab.cells.cell import Cell, scores_cell
from multilab.cells.method import Method, load_method
from multilab.cells.settings import ObservedShare, Tuning
from multilab.core import versions
from multilab.datasets import table_encoder
from multilab.experiments import analyses as units
from multilab.experiments import search as search_module
from multilab.experiments.search import search_name
from multilab.methods import out_of_fold
from multilab.methods.base import MultiLabelClassifier
from multilab.methods.elm.elm import ELM as ELM_CLASS
from multilab.methods.neighbours import _search
from multilab.methods.neighbours.mlknn_released import MLkNNReleased
from multilab.methods.solvers import algorithms, penalties
from multilab.metrics import ALL_METRICS as METRICS
from multilab.papers.mlwse import sensitivity

ELM_TARGET = "multilab.methods.elm.elm.ELM"
TUNE = Tuning(n_trials=2, folds=2, metric="hamming_loss")


def all_keys() -> dict[str, str]:
    """Return one key of each kind."""
    plain = Cell("train", PART, load_method("elm"))
    on_scores = Cell("train", PART, load_method("mlwse_l1"))
    return {
        "plain": plain.key,
        "tuned": replace(plain, method=load_method("mlknn"), tune=TUNE).key,
        "out-of-fold": scores_cell(plain, {"folds": 5, "order": 1}).key,
        "on base scores": on_scores.key,
        "hidden labels": replace(plain, observed=ObservedShare(0.5)).key,
        "analysis": units.Unit("multilab.papers.mlwse.sensitivity", "toy", 0, on_scores, None, {}).key,
        "table": replace(plain, split_ref=replace(PART, encoder="words")).key,
    }


def moved(before: dict[str, str]) -> set[str]:
    """Return the names of the keys that have changed."""
    return {name for name, key in all_keys().items() if key != before[name]}


@pytest.fixture(autouse=True)
def _forget():
    yield
    versions._versions.cache_clear()


OF_MLWSE = {"on base scores", "analysis"}
EVERY = {"plain", "tuned", "out-of-fold", "on base scores", "hidden labels", "analysis", "table"}


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (ELM_CLASS, {"plain", "out-of-fold", "hidden labels", "table"}),
        (MultiLabelClassifier, EVERY),
        (penalties, OF_MLWSE),
        (algorithms, OF_MLWSE),
        (_search, {"tuned"}),
        (fitting, EVERY),
        (seeds, EVERY),
        (search_module, {"tuned"}),
        (rows.observed_labels, {"hidden labels", "analysis"}),
        (table_encoder, {"table", "analysis"}),
        (sensitivity, {"analysis"}),
        (out_of_fold, EVERY),
        (MLkNNReleased, set()),
    ],
)
def test_a_raised_version_moves_the_keys_of_what_names_it_however_far_away(monkeypatch, thing, expected):
    before = all_keys()
    raise_version(monkeypatch, thing)
    assert moved(before) == expected


def test_two_raises_are_two_keys(monkeypatch):
    keys = {all_keys()["plain"]}
    for version in (2, 3):
        raise_version(monkeypatch, ELM_CLASS, version)
        keys.add(all_keys()["plain"])
    raise_version(monkeypatch, MultiLabelClassifier)
    keys.add(all_keys()["plain"])
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("macro_f1", {"macro_f1", "decided", "stack"}),
        ("hamming_loss", {"hamming_loss", "stack", "by hamming"}),
        ("log_loss", {"stack", "stack_one_decision", "by hamming"}),
        ("macro_recall", set()),
    ],
)
def test_the_version_of_a_metric_moves_what_is_chosen_by_it(monkeypatch, name, expected):
    def keys():
        tuned = {metric: replace(TUNE, metric=metric) for metric in ("hamming_loss", "macro_f1")}
        by_hamming = load_method("stack_one_decision").with_params({"metric": "hamming_loss"})
        return {
            "untuned": Cell("train", PART, load_method("mlknn")).key,
            "decided": Cell("train", PART, load_method("decide_macro_f1")).key,
            "stack": Cell("train", PART, load_method("stack")).key,
            "stack_one_decision": Cell("train", PART, load_method("stack_one_decision")).key,
            "by hamming": Cell("train", PART, by_hamming).key,
            **{metric: Cell("train", PART, load_method("mlknn"), tune=tune).key for metric, tune in tuned.items()},
        }

    before = keys()
    raise_version(monkeypatch, METRICS[name].formula)
    after = keys()
    assert {one for one in before if before[one] != after[one]} == expected


def test_a_search_on_all_rows_continues_no_trials_of_another_version(monkeypatch):
    cell = Cell("train", PART, load_method("mlknn"))
    before = search_name(cell, TUNE)
    raise_version(monkeypatch, METRICS["macro_f1"].formula)
    assert search_name(cell, TUNE) == before
    raise_version(monkeypatch, METRICS["hamming_loss"].formula)
    assert search_name(cell, TUNE) != before


def test_an_argument_at_its_default_is_not_in_the_key():
    method = load_method("mlknn")
    bare, other = Method("bare", method.target, {}), Method("other", method.target, {"k": 10, "s": 1.0})
    assert {Cell("train", PART, one).key for one in (bare, other)} == {Cell("train", PART, bare).key}
    assert Cell("train", PART, Method("k", method.target, {"k": 11})).key != Cell("train", PART, bare).key


def test_a_new_argument_with_a_default_moves_nothing(monkeypatch):
    before = Cell("train", PART, Method("elm", ELM_TARGET, {"n_hidden": 7})).key
    signature = inspect.signature(ELM_CLASS)
    new = inspect.Parameter("new", inspect.Parameter.KEYWORD_ONLY, default=3)
    longer = signature.replace(parameters=[*signature.parameters.values(), new])
    monkeypatch.setattr(ELM_CLASS, "__signature__", longer, raising=False)
    assert Cell("train", PART, Method("elm", ELM_TARGET, {"n_hidden": 7})).key == before
    assert Cell("train", PART, Method("elm", ELM_TARGET, {"n_hidden": 7, "new": 3})).key == before
    assert Cell("train", PART, Method("elm", ELM_TARGET, {"n_hidden": 7, "new": 4})).key != before


def test_a_class_that_moves_to_another_file_keeps_its_key(monkeypatch):
    def key(target):
        return Cell("train", PART, Method("own", target, seed_name="elm")).key

    raise_version(monkeypatch, ELM_CLASS)
    before = key(ELM_TARGET)
    monkeypatch.setattr(penalties, "ELM", ELM_CLASS, raising=False)
    assert key("multilab.methods.solvers.penalties.ELM") == before


ELM = Cell("train", PART, load_method("elm"))


@pytest.mark.parametrize(
    "changed",
    [
        replace(ELM, kind="scores"),
        replace(ELM, split_ref=replace(PART, dataset_digest="2" * 64)),
        replace(ELM, split_ref=replace(PART, digest="2" * 64)),
        replace(ELM, seed=1),
        replace(ELM, alone=True),
        replace(ELM, observed=ObservedShare(0.5)),
        replace(ELM, method=ELM.method.with_params({"preprocessing": "standard"})),
        replace(ELM, method=ELM.method.with_params({"n_hidden": 7})),
        replace(ELM, method=replace(ELM.method, save_attributes=("coef_",))),
        replace(ELM, method=replace(ELM.method, base_scores=("br",))),
        replace(ELM, method=replace(ELM.method, target="multilab.methods.elm.relm.RELM")),
        replace(ELM, tune=TUNE, method=replace(ELM.method, search={"C": {"type": "float", "low": 0, "high": 1}})),
    ],
)
def test_every_setting_that_decides_a_result_is_in_the_key(changed):
    assert changed.key != ELM.key


def test_share_and_treatment_of_hidden_labels_are_in_the_key():
    half = ObservedShare(0.5)
    cells = [replace(ELM, observed=o) for o in (half, replace(half, share=0.6), replace(half, hidden="absent"))]
    assert len({cell.key for cell in cells}) == 3


TUNED = Cell("train", PART, load_method("mlknn"), tune=TUNE)


@pytest.mark.parametrize(
    "changes", [{"folds": 3}, {"metric": "ranking_loss"}, {"n_trials": 3}, {"sampler": "RandomSampler"}]
)
def test_every_setting_of_a_search_is_in_the_key(changes):
    assert replace(TUNED, tune=replace(TUNE, **changes)).key != TUNED.key
    space = {"k": {"type": "int", "low": 1, "high": 2}}
    assert replace(TUNED, method=replace(TUNED.method, search=space)).key != TUNED.key


def test_the_name_of_a_method_or_dataset_is_not_in_the_key():
    renamed = replace(
        ELM, method=replace(ELM.method, name="x", title="y", notes="z"), split_ref=replace(PART, dataset="u")
    )
    assert renamed.key == ELM.key


def _forget_versions():
    for of in (cells.library_versions, cells._library_majors):
        of.cache_clear()


@pytest.mark.parametrize(
    ("library", "number", "plain", "tuned"),
    [
        ("numpy", "99.0.0", True, True),
        ("scipy", "99.0.0", True, True),
        ("scikit-learn", "99.0.0", True, True),
        ("optuna", "99.0.0", False, True),
        ("mlflow", "99.0.0", False, False),
        ("numpy", "{}.999", False, False),
        ("optuna", "{}.999", False, False),
    ],
)
def test_the_first_two_numbers_of_the_versions_of_libraries_are_in_the_key(monkeypatch, library, number, plain, tuned):
    before = replace(ELM).key, replace(TUNED).key
    version = cells.version
    other = number.format(".".join(version(library).split(".")[:2]))
    monkeypatch.setattr(cells, "version", lambda name: other if name == library else version(name))
    _forget_versions()
    try:
        after = replace(ELM).key, replace(TUNED).key
    finally:
        monkeypatch.undo()
        _forget_versions()
    assert (after[0] != before[0], after[1] != before[1]) == (plain, tuned)


def test_a_class_has_one_key_by_either_of_its_names():
    keys = {
        Cell("train", PART, Method("own", target, seed_name="mlknn")).key
        for target in ("multilab.methods.neighbours.mlknn.MLkNN", "multilab.methods.MLkNN")
    }
    assert len(keys) == 1


def test_a_setting_edited_within_one_tick_of_the_clock_is_read_again(tmp_path, monkeypatch):
    file = tmp_path / "method" / "own.yaml"
    file.parent.mkdir()
    file.write_text("_target_: a.B\nk: 1\n")
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path))
    assert load_method("own").params == {"k": 1}
    stat = file.stat()
    file.write_text("_target_: a.B\nk: 2\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert load_method("own").params == {"k": 2}


def test_an_analysis_that_reads_a_cell_has_its_key_and_another_the_parts_of_it_that_it_uses():
    cell = Cell("train", PART, load_method("elm"))
    reads, other = (
        units.Unit(f"multilab.papers.{module}", "toy", 0, cell, None, {}).identity
        for module in ("lwmf.feature_curves", "mlwse.sensitivity")
    )
    assert reads["cell"] == cell.key
    assert "method" not in reads
    assert "cell" not in other
    assert (other["method"], other["split"]) == (cell.identity["method"], cell.identity["split"])
