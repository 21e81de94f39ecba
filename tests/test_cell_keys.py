"""Every part of a cell's key: what moves it, and what does not."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from multilab.experiments import cells, settings
from multilab.experiments.analyses import unit as units
from multilab.experiments.cells import Cell, Part, scores_cell
from multilab.experiments.settings import Method, load_method
from multilab.ground import digests
from multilab.stages import keys

PART = Part("toy", "0" * 64, "{}", 0, "1" * 64)
TUNE = (("folds", 2), ("metric", "hamming_loss"), ("n_trials", 2))


def forget() -> None:
    """Forget what this process read of the code, as a new process would not know it."""
    for module in (cells, settings, units, digests):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@pytest.fixture(scope="module")
def package_copy(tmp_path_factory, checkout):
    """A copy of the package that keys are computed from."""
    root = tmp_path_factory.mktemp("copy") / "multilab"
    shutil.copytree(checkout / "src" / "multilab", root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def source(package_copy, monkeypatch):
    """A function that replaces a text that occurs once in the copy, undone after the test."""
    changed = {}

    def edit(old: str, new: str, folder: str = "experiments") -> Path:
        files = [path for path in sorted((package_copy / folder).rglob("*.py")) if old in path.read_text()]
        assert len(files) == 1, f"{old!r} is in {len(files)} files"
        (file,) = files
        assert file.read_text().count(old) == 1
        changed.setdefault(file, file.read_text())
        file.write_text(file.read_text().replace(old, new))
        forget()
        return file

    monkeypatch.setattr(digests, "_PACKAGE", package_copy)
    forget()
    yield edit
    for file, text in changed.items():
        file.write_text(text)
    monkeypatch.undo()
    forget()


def all_keys() -> dict[str, str]:
    """Return one key of each kind."""
    plain = Cell("train", PART, load_method("elm"))
    on_scores = Cell("train", PART, load_method("mlwse_l1"))
    return {
        "plain": plain.key,
        "tuned": replace(plain, method=load_method("mlknn"), tune=TUNE).key,
        "out-of-fold": scores_cell(plain, {"folds": 5, "order": 1}).key,
        "on base scores": on_scores.key,
        "analysis": units.Unit("sensitivity", "toy", 0, on_scores, None, {}).key,
        "evaluate": keys._evaluation(),
    }


CELLS = {"plain", "tuned", "out-of-fold", "on base scores", "analysis"}


@pytest.mark.parametrize(
    ("old", "new", "folder", "moved"),
    [
        ("MaxAbsScaler() if issparse(X_train) else MinMaxScaler()", "MinMaxScaler()", "experiments", CELLS),
        ("train = scaler.fit_transform(X_train)", "train = scaler.fit_transform(X_train * 1.0)", "experiments", CELLS),
        ("np.hstack(scores[0::2])", "np.hstack(scores[0:1])", "experiments", CELLS),
        ("X, estimator = estimator[:-1].transform(X), estimator[-1]", "pass", "experiments", CELLS),
        ("decisions = decisions.toarray()", "decisions = 1 - decisions.toarray()", "experiments", CELLS),
        ("n_splits=folds, order=order", "n_splits=folds, order=1", "experiments", CELLS),
        ("split = splits[part.split % len(splits)]", "split = splits[0]", "experiments", CELLS),
        ('"inner folds")', '"folds")', "experiments", CELLS),
        (".generate_state(1)[0] >> 1", ".generate_state(1)[0] >> 2", "experiments", CELLS),
        ("fit_seeded(estimator, X[train], Y", "fit_seeded(estimator, X, Y", "methods/stacking", CELLS),
        ("if index < len(first)", "if index < 0", "experiments", {"tuned"}),
        ('"minimize" if METRICS[plan.metric]', '"maximize" if METRICS[plan.metric]', "experiments", {"tuned"}),
        ("auc_ties: float = 0.5", "auc_ties: float = 1.0", "metrics", {"tuned", "evaluate", "analysis"}),
        ("asked = Y, arrays[", "asked = 1 - Y, arrays[", "experiments", {"evaluate"}),
    ],
)
def test_an_edit_of_code_that_decides_a_result_moves_the_keys_it_decides(source, old, new, folder, moved):
    before = all_keys()
    source(old, new, folder)
    after = all_keys()
    assert {name for name in before if before[name] != after[name]} == moved


@pytest.mark.parametrize(
    ("old", "new", "folder"),
    [
        ('"""Scale as the method asks', '"""Scale it as the method asks', "experiments"),
        ("def predict_both(", "# how a prediction is made\ndef predict_both(", "experiments"),
        ("self.seconds = time.perf_counter() - self._start", "self.seconds = 0.0", "experiments"),
        ('"host": socket.gethostname(),', '"host": "",', "experiments"),
        ('contents["DONE"] = json.dumps(done, indent=1)', 'contents["DONE"] = json.dumps(done)', "experiments"),
        ("workers = min(n_jobs, len(items))", "workers = 1", "experiments"),
        ('return f"{value:.6g}"', 'return f"{value:.7g}"', "reports"),
    ],
)
def test_an_edit_that_decides_no_result_moves_no_key(source, old, new, folder):
    before = all_keys()
    source(old, new, folder)
    assert all_keys() == before


ELM = Cell("train", PART, load_method("elm"))


@pytest.mark.parametrize(
    "changed",
    [
        replace(ELM, kind="scores"),
        replace(ELM, part=replace(PART, dataset_digest="2" * 64)),
        replace(ELM, part=replace(PART, digest="2" * 64)),
        replace(ELM, seed=1),
        replace(ELM, alone=True),
        replace(ELM, method=ELM.method.with_params({"preprocessing": "standard"})),
        replace(ELM, method=ELM.method.with_params({"n_hidden": 7})),
        replace(ELM, method=replace(ELM.method, keep=("coef_",))),
        replace(ELM, method=replace(ELM.method, base_scores=("br",))),
        replace(ELM, method=replace(ELM.method, target="multilab.methods.elm.relm.RELM")),
        replace(ELM, tune=TUNE, method=replace(ELM.method, search={"C": {"type": "float", "low": 0, "high": 1}})),
    ],
)
def test_every_setting_that_decides_a_result_is_in_the_key(changed):
    assert changed.key != ELM.key


TUNED = Cell("train", PART, load_method("mlknn"), tune=TUNE)


@pytest.mark.parametrize("name", ["folds", "metric", "n_trials"])
def test_every_setting_of_a_search_is_in_the_key(name):
    changed = tuple((key, "ranking_loss" if key == "metric" else 3) if key == name else (key, v) for key, v in TUNE)
    assert replace(TUNED, tune=changed).key != TUNED.key
    space = {"k": {"type": "int", "low": 1, "high": 2}}
    assert replace(TUNED, method=replace(TUNED.method, search=space)).key != TUNED.key


def test_the_name_of_a_method_or_dataset_is_not_in_the_key():
    renamed = replace(ELM, method=replace(ELM.method, name="x", title="y", notes="z"), part=replace(PART, dataset="u"))
    assert renamed.key == ELM.key


@pytest.mark.parametrize(
    ("library", "moved"),
    [("numpy", True), ("scipy", True), ("scikit-learn", True), ("optuna", False), ("mlflow", False)],
)
def test_the_versions_that_decide_a_result_are_in_the_key(library, moved, monkeypatch):
    before = replace(ELM).key, replace(TUNED).key
    found = cells.version
    monkeypatch.setattr(cells, "version", lambda name: "0.0" if name == library else found(name))
    forget()
    try:
        after = replace(ELM).key, replace(TUNED).key
    finally:
        monkeypatch.undo()
        forget()
    assert (after[0] != before[0]) == moved
    assert (after[1] != before[1]) == (library != "mlflow")


@pytest.mark.parametrize("target", ["multilab.methods.neighbours.mlknn.MLkNN", "multilab.methods.MLkNN"])
def test_the_code_of_a_method_is_in_its_key_by_either_of_its_names(source, target):
    def key():
        return Cell("train", PART, Method("own", target)).key

    before = key()
    source("exclude_self=self.exclude_self,", "exclude_self=False,", "methods/neighbours")
    assert key() != before


def test_an_edit_that_keeps_size_and_time_moves_the_key(source):
    file = source("exclude_self=self.exclude_self,", "exclude_self=bool(1),", "methods/neighbours")
    before, stat = replace(TUNED).key, file.stat()
    file.write_text(file.read_text().replace("exclude_self=bool(1),", "exclude_self=bool(0),"))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert file.stat().st_size == stat.st_size
    forget()
    assert replace(TUNED).key != before


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
