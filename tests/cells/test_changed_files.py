"""Stored results whose files have changed: what is found, recomputed, marked and refused, and what records may say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from multilab.cells import checks, loaded_code, running
from multilab.cells.cell import Cell, split_refs
from multilab.cells.checks import changed_cells, changed_results, check_met, recompute, refresh, sample
from multilab.cells.conf import load_protocol, package_names
from multilab.cells.errors import DifferentResultError, ExperimentError
from multilab.cells.execute import compute_within, run_cells, run_cells_within
from multilab.cells.inventory import Inventory, StoredCell, check_runnable, note_earlier
from multilab.cells.loaded_code import files_today, reached
from multilab.cells.method import Method, load_method
from multilab.cells.records import check_record, recorded_code
from multilab.cells.rows import inner_cells
from multilab.cells.settings import ObservedShare, Tuning
from multilab.cells.store import Store
from multilab.cli import main
from multilab.core.digests import json_digest, sha256_digest
from multilab.experiments import search, stages
from multilab.experiments.analyses import Unit, run_units
from multilab.experiments.plan import Plan
from multilab.experiments.study import load_study
from multilab.methods.neighbours.mlknn import MLkNN

PACKAGE = Path(checks.__file__).parents[1]
MLKNN, OTHER_METHOD = "methods/neighbours/mlknn.py", "methods/elm/elm.py"


def cells_of(method, protocol="kfold5"):
    chosen = load_method(method) if isinstance(method, str) else method
    return [Cell("train", ref, chosen) for ref in split_refs("genes-toy", load_protocol(protocol))]


def edit(patch, file, digest="0" * 12):
    """Let the processes of this test have loaded a file with another content."""
    patch.setitem(loaded_code._loaded, file, digest)


def other_formula(patch):
    posterior = MLkNN._posterior
    patch.setattr(MLkNN, "_posterior", lambda self, *given: posterior(self, *given) ** 2)


def other_threshold(patch):
    both = MLkNN.predict_with_scores
    patch.setattr(MLkNN, "predict_with_scores", lambda self, X: (both(self, X)[0], both(self, X)[0] > 0.1))


def marks(store):
    return sorted(path.name.partition(".")[0] for path in store.root.glob(".checked/*"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store with ML-kNN on five splits, and a stack that reads it on three."""
    store = Store(tmp_path_factory.mktemp("filled"))
    stack = load_method("mlwse_l1").with_params({"base_scores": ("mlknn",)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MULTILAB_JOBS", "1")
        assert run_cells([*cells_of("mlknn"), *cells_of(stack, "kfold3")], store) == {}
    return store


@pytest.fixture
def store(filled, tmp_path, monkeypatch):
    """A copy of it, that of the commands."""
    shutil.copytree(filled.root, tmp_path / "cells")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    return Store()


@pytest.fixture
def cells():
    return cells_of("mlknn")


@pytest.fixture
def stacked():
    return cells_of(load_method("mlwse_l1").with_params({"base_scores": ("mlknn",)}), "kfold3")


@pytest.fixture
def computed(monkeypatch):
    """The keys that the checks recompute, in order."""
    keys = []
    recomputed = checks.recompute

    def counted(chosen, *others):
        keys.extend(one.item.key for one in chosen)
        return recomputed(chosen, *others)

    monkeypatch.setattr(checks, "recompute", counted)
    return keys


# ---------------------------------------------------------------- what a record says


def test_a_record_has_the_digests_of_the_files_that_were_loaded(store, cells):
    code = store.record(cells[0].key)["code"]
    for file in (MLKNN, "methods/base.py", "cells/fitting.py", "core/digests.py"):
        assert code["files"][file] == sha256_digest((PACKAGE / file).read_bytes())[:12]
    assert not [file for file in code["files"] if file.startswith(("reports", "cli", "comparison"))]
    assert set(code["versions"]) == set(cells[0].identity["versions"])
    assert all(code["versions"][name].startswith(short) for name, short in cells[0].identity["versions"].items())
    check_record(store.record(cells[0].key))


def test_a_tuned_cell_names_optuna_and_a_stack_what_it_read(store, stacked, tmp_path):
    code = store.record(stacked[0].key)["code"]
    assert code["reads"] == {read.key: store.digests(read.key)["arrays.npz"][:12] for read in stacked[0].reads}
    tuned = replace(cells_of("mlknn")[0], tune=Tuning(n_trials=1, folds=2))
    assert run_cells([tuned], store) == {}
    assert "optuna" in store.record(tuned.key)["code"]["versions"]


def test_the_digest_is_that_of_the_file_as_it_was_loaded(tmp_path, monkeypatch):
    file = tmp_path / "own_thing.py"
    file.write_text("from multilab.methods.neighbours.mlknn import MLkNN\n\n\nclass Own(MLkNN):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = sha256_digest(file.read_bytes())[:12]
    cell = replace(cells_of("mlknn")[0], method=Method("own", "own_thing.Own", {}))
    store = Store(tmp_path / "cells")
    fit = MLkNN._fit

    def edited_meanwhile(self, X, Y):
        file.write_text(file.read_text() + "# later\n")
        fit(self, X, Y)

    cell.key  # noqa: B018  (it imports the module)
    monkeypatch.setattr(MLkNN, "_fit", edited_meanwhile)
    assert running.run_cell(cell, store) is None
    assert store.record(cell.key)["code"]["own_files"] == {"own_thing": before}


def test_the_commit_is_that_of_the_checkout():
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=PACKAGE, capture_output=True, text=True, check=False)
    commit = loaded_code.package_commit()
    assert git.stdout.startswith(commit) if git.returncode == 0 and commit else commit is None


FORGED = [
    {"files": ["methods/base.py"]},
    {"files": {"methods/base.py": 7}},
    {"commit": ["a"]},
    {"versions": "numpy"},
    {"reads": {"../../etc": "0" * 12}},
    {"own_files": {"os": None}},
    ["files"],
    "files",
]


@pytest.mark.parametrize("code", FORGED)
def test_a_record_with_another_type_of_code_is_refused(store, cells, code):
    record = store.record(cells[0].key)
    with pytest.raises(ExperimentError):
        check_record({**record, "code": code})
    assert recorded_code({**record, "code": code}) == recorded_code({})


def forge(store, key, **changes):
    """Write the files of a cell again, with another record."""
    folder = store.path(key)
    record = {**store.record(key), **changes}
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in ("DONE", "record.json")}
    shutil.rmtree(folder)
    store._finish(key, files, record)


def test_a_forged_code_opens_no_file_imports_nothing_and_ends_nothing(store, cells, tmp_path, capsys, monkeypatch):
    pipe, module = tmp_path / "pipe.py", tmp_path / "forged_module.py"
    os.mkfifo(pipe)  # reading it would never end
    module.write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    files = dict.fromkeys((str(pipe), "../../../../etc/passwd", "forged_module.py", "a\x1b[2Jb.py"), "0" * 12)
    code = {
        "files": files,
        "own_files": {"forged_module": "0" * 12},
        "commit": "\x1b[2J",
        "reads": {"f" * 64: "0" * 12},
    }
    forge(store, cells[0].key, code=code, cell_seconds=0.0)
    capsys.readouterr()
    assert main(["store", "list"]) == 0
    assert main(["store", "why", cells[0].key]) == 0
    assert main(["store", "check"]) == 0  # its scores are those of today
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert "forged_module" not in sys.modules
    assert marks(store) == [cells[0].key]


@pytest.mark.parametrize("seconds", ["soon", -1, 10**400, True, None, [1], float("nan"), float("inf")])
def test_forged_seconds_cost_no_more_than_the_command_may_spend(store, cells, seconds, monkeypatch):
    edit(monkeypatch, MLKNN)
    forge(store, cells[0].key, cell_seconds=seconds)
    check_met(cells[:1], store, compute_within, 20)


# ---------------------------------------------------------------- which results are found


def test_a_result_is_found_if_a_file_that_it_reaches_has_changed_or_is_gone(store, cells, monkeypatch):
    by_key = {cell.key: cell for cell in cells}
    assert changed_results(by_key, store, by_key.get) == []
    for file in (MLKNN, "methods/base.py", "cells/seeds.py", "core/numbers.py"):
        with monkeypatch.context() as patch:
            edit(patch, file)
            found = changed_results(by_key, store, by_key.get)
            assert {one.item.key: one.files for one in found} == {key: {file: "0" * 12} for key in by_key}
    forge(store, cells[0].key, code={"files": {"methods/removed.py": "1" * 12}})
    (found,) = changed_results(by_key, store, by_key.get)
    assert (found.item, found.files) == (cells[0], {"methods/removed.py": None})


@pytest.mark.parametrize("file", [OTHER_METHOD, "metrics/auc.py", "datasets/reading.py", "decision/guard.py"])
def test_a_file_that_the_class_does_not_import_does_not_count(store, cells, monkeypatch, file):
    edit(monkeypatch, file)
    forge(store, cells[0].key, code={"files": {**store.record(cells[0].key)["code"]["files"], file: "1" * 12}})
    assert changed_results([cells[0].key], store, {cells[0].key: cells[0]}.get) == []


def test_an_inner_fold_is_not_recomputed_also_if_its_record_does_not_name_it(store, cells, monkeypatch):
    inner = inner_cells(cells[0], Tuning(folds=2))[1]
    assert run_cells([inner], store) == {}
    edit(monkeypatch, MLKNN)
    inventory = Inventory(store)
    assert inventory.read(inner.key).inner_fold == 1
    assert inventory.outdated(inventory.read(inner.key)) is None
    assert not changed_cells([inventory.read(inner.key)], inventory)
    record = json.loads((store.path(inner.key) / "record.json").read_text())
    del record["inner_fold"]
    (store.path(inner.key) / "record.json").write_text(json.dumps(record))
    assert inventory.outdated(inventory.read(inner.key)) == "other splits"
    assert not changed_cells([inventory.read(inner.key)], inventory)
    assert len(changed_cells([inventory.read(cells[0].key)], inventory)) == 1


def ran(cell, store):
    """Return the files of the package whose functions run when a cell is computed."""
    files, seen = set(loaded_code.package_files().values()), set()

    def profile(frame, event, argument):
        if event == "call" and frame.f_code.co_name != "<module>":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                seen.add(path.relative_to(PACKAGE).as_posix())

    for read in cell.reads:
        running.ensure(read, store)
    sys.setprofile(profile)
    try:
        assert running.run_cell(cell, store) is None
    finally:
        sys.setprofile(None)
    return seen & files


REACHES = {name: {} for name in ("relm", "mlwse_l1", "decide_macro_f1", "rf_pct", "mls")}
REACHES |= {
    "mlknn": {"tune": Tuning(n_trials=1, folds=2)},
    "br": {"kind": "scores"},
    "cc": {"observed": ObservedShare(0.5, "absent")},
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("mlknn", "relm", "cc") else pytest.mark.slow) for name in REACHES]
)
def test_every_file_that_runs_is_one_that_the_class_reaches(name, tmp_path):
    method = load_method(name)
    cell = replace(cells_of(method.with_params(method.check_params), "kfold3")[0], **REACHES[name])
    others = ran(cell, Store(tmp_path)) - reached(cell)
    # the data and the rows that these make have digests in the key
    assert {file for file in others if not file.startswith(("datasets/", "model_selection/"))} == set()


def test_replaced_base_scores_count_as_changed_files(store, stacked, monkeypatch):
    read = stacked[0].reads[1]
    arrays = {**store.arrays(read.key)}
    arrays["scores"] = arrays["scores"] + 1e-9
    files = {path.name: path.read_bytes() for path in store.path(read.key).iterdir()}
    other = Store(store.root.parent / "other")
    other.write(read.key, arrays, store.record(read.key), files["config.yaml"].decode())
    store.replace(read.key, {path.name: path.read_bytes() for path in other.path(read.key).iterdir()})
    by_key = {cell.key: cell for cell in stacked}
    (found,) = changed_results(by_key, store, by_key.get)
    assert found.item == stacked[0]
    check_met(stacked, store, compute_within)  # as good as equal
    assert marks(store) == [stacked[0].key]


# ---------------------------------------------------------------- what a command recomputes


def test_of_five_results_the_cheapest_and_a_drawn_one_are_recomputed_once(store, cells, monkeypatch, computed):
    seconds = {cell.key: 5.0 - index for index, cell in enumerate(cells)}
    monkeypatch.setattr(checks, "_seconds", lambda record: seconds[record["key"]])
    edit(monkeypatch, MLKNN)
    assert run_cells(cells, store) == {}
    assert len(computed) == 2
    assert computed[0] == cells[-1].key
    assert marks(store) == sorted(computed)
    first = list(computed)
    for again in (lambda: run_cells(cells, store), lambda: run_cells_within(cells, store, 60.0)):
        again()
        assert computed == first


def test_another_edit_needs_another_check_and_draws_anew(store, cells, monkeypatch, computed):
    drawn = set()
    for number in range(8):
        edit(monkeypatch, MLKNN, f"{number:012x}")
        del computed[:]
        check_met(cells, store, compute_within)
        assert len(computed) == 2
        drawn.add(computed[1])
    assert len(drawn) > 1
    edit(monkeypatch, MLKNN, f"{0:012x}")  # the first edit again
    del computed[:]
    check_met(cells, store, compute_within)
    assert computed == []


def test_a_mark_holds_for_the_stored_result_only(store, cells, monkeypatch, computed):
    edit(monkeypatch, MLKNN)
    check_met(cells[:1], store, compute_within)
    assert marks(store) == [cells[0].key]
    forge(store, cells[0].key, host="another record")
    check_met(cells[:1], store, compute_within)
    assert computed == [cells[0].key] * 2


def test_nothing_starts_that_would_not_end_in_time(store, cells, monkeypatch, computed):
    edit(monkeypatch, MLKNN)
    monkeypatch.setattr(checks, "_seconds", lambda record: 11.0)
    check_met(cells, store, compute_within)
    check_met(cells, store, compute_within, 0.0)
    assert computed == []
    monkeypatch.setattr(checks, "_seconds", lambda record: 0.1)
    check_met(cells, store, compute_within, 0.0)
    assert computed == []


def test_a_command_has_one_budget_for_all_its_calls_and_meets_a_result_once(store, cells, monkeypatch, computed):
    edit(monkeypatch, MLKNN)
    command = checks._Command(left=0.0)
    monkeypatch.setattr(checks, "_command", lambda: (command, True))
    check_met(cells, store, compute_within)
    assert computed == []
    command.left = 10.0
    check_met(cells, store, compute_within)  # met before
    assert computed == []
    assert len(command.found) == len(cells)


def test_every_class_has_its_sample_and_the_cheapest_come_first(store, cells, stacked, monkeypatch, computed):
    monkeypatch.setattr(checks, "_seconds", lambda record: float(record["split"]))
    edit(monkeypatch, "methods/base.py")
    assert run_cells([*cells, *stacked], store) == {}
    records = [store.record(key) for key in computed]
    names = [(record["method"], record["parts"]["kind"]) for record in records]
    assert sorted(names) == sorted([("mlknn", "train"), ("mlknn", "scores"), ("mlwse_l1", "train")] * 2)
    assert [record["split"] for record in records[:3]] == [0, 0, 0]


def test_a_different_result_ends_the_command(store, cells, monkeypatch, computed):
    edit(monkeypatch, MLKNN)
    other_formula(monkeypatch)
    with pytest.raises(DifferentResultError) as raised:
        run_cells(cells, store)
    assert raised.value.exit_code == 1
    assert {"MLkNN", MLKNN, "results_version"} <= set(re.split(r"[ :,]+", str(raised.value)))
    assert len(computed) == 1
    assert marks(store) == []


def test_other_decisions_are_another_result(store, cells, monkeypatch):
    edit(monkeypatch, MLKNN)
    other_threshold(monkeypatch)
    with pytest.raises(DifferentResultError):
        check_met(cells, store, compute_within)


def test_other_values_of_trials_are_another_result_also_if_they_choose_the_same(store, monkeypatch):
    cell = replace(cells_of("mlknn")[0], tune=Tuning(n_trials=1, folds=2))
    timed = replace(cell, tune=replace(cell.tune, timeout=1e6))
    assert run_cells([cell, timed], store) == {}
    edit(monkeypatch, "experiments/search.py")
    check_met([cell], store, compute_within)
    assert marks(store) == [cell.key]
    edit(monkeypatch, "experiments/search.py", "4" * 12)
    value = search._trial_value
    monkeypatch.setattr(search, "_trial_value", lambda *given: value(*given) + 0.1)
    check_met([timed], store, compute_within)  # how many trials it has, a clock decided
    with pytest.raises(DifferentResultError):
        check_met([cell], store, compute_within)


def test_a_difference_of_rounding_is_none(store, cells, monkeypatch):
    edit(monkeypatch, MLKNN)
    posterior = MLkNN._posterior
    monkeypatch.setattr(MLkNN, "_posterior", lambda self, *given: posterior(self, *given) + 1e-8)
    check_met(cells, store, compute_within)
    assert len(marks(store)) == 2


def test_a_result_that_cannot_be_recomputed_stays_unchecked(store, cells, monkeypatch):
    edit(monkeypatch, MLKNN)

    def fail(self, X, Y):
        raise ValueError("broken")

    monkeypatch.setattr(MLkNN, "_fit", fail)
    check_met(cells, store, compute_within)
    assert marks(store) == []
    assert main(["store", "check"]) == 1


def test_a_kill_between_recomputation_and_mark_leaves_the_result_unchecked(store, cells, monkeypatch, computed):
    edit(monkeypatch, MLKNN)

    def killed(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checks, "_mark", killed)
        with pytest.raises(KeyboardInterrupt):
            check_met(cells, store, compute_within)
    assert marks(store) == []
    assert all(store.has(cell.key) for cell in cells)
    check_met(cells, store, compute_within)
    assert len(computed) == 1 + 2
    assert len(marks(store)) == 2


def test_files_that_change_during_the_recomputation_give_no_mark(store, cells, monkeypatch):
    by_key = {cell.key: cell for cell in cells}
    edit(monkeypatch, MLKNN)
    found = changed_results(by_key, store, by_key.get)
    edit(monkeypatch, MLKNN, "2" * 12)
    assert set(recompute(found, store, compute_within).values()) == {""}
    assert marks(store) == []


def test_a_stranger_s_class_is_not_imported_to_recompute_its_result(store, cells, tmp_path, monkeypatch):
    (tmp_path / "strange.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    edit(monkeypatch, MLKNN)
    settings = {**store.record(cells[0].key)["settings"], "_target_": "strange.Class"}
    forge(store, cells[0].key, settings=settings)
    inventory = Inventory(store)
    assert cells[0].key not in {one.item.key for one in changed_cells(inventory.cells(), inventory)}
    check_met(cells[:1], store, compute_within)
    assert marks(store) == []
    assert "strange" not in sys.modules


@pytest.mark.parametrize(
    "settings",
    [
        {"_target_": "multilab.core.locks.os.system", "command": "touch owned"},
        {"_target_": "multilab.methods.BinaryRelevance", "estimator": {"_target_": "multilab.core.locks.os.mkdir"}},
        {"_target_": "multilab.methods.BinaryRelevance", "estimator": {"_target_": "subprocess.run", "args": "touch"}},
        {"_target_": "multilab.cells.store.Store", "root": "owned"},
        {"_target_": "sklearn.datasets.fetch_openml", "name": "iris"},
        {"_target_": "sklearn.pipeline.Pipeline", "steps": [], "memory": "owned"},
        {"_target_": "multilab.methods.MLkNN", "_args_": [1]},
        {"_target_": "multilab.methods.MLkNN", "k": "a/b"},
        {"_target_": "hydra.utils.get_method", "path": "os.system"},
    ],
)
def test_a_stranger_s_settings_are_not_computed(store, cells, tmp_path, monkeypatch, settings):
    monkeypatch.chdir(tmp_path)
    target, *_ = settings.values()
    params = {name: value for name, value in settings.items() if name != "_target_"}
    evil = replace(cells[0], method=replace(cells[0].method, target=target, params=params))
    record = store.record(cells[0].key)
    with suppress(ExperimentError):
        record |= {"parts": evil.identity}
    key = json_digest(record["parts"]) if record["parts"] != cells[0].identity else "e" * 64
    record |= {"settings": settings, "code": {**record["code"], "files": {"cells/fitting.py": "0" * 12}}}
    config = (store.path(cells[0].key) / "config.yaml").read_text()
    store.write(key, store.arrays(cells[0].key), record, config)
    stored = Inventory(store).read(key)
    with pytest.raises(ExperimentError):
        check_runnable(stored)
    inventory = Inventory(store)
    assert key not in {one.item.key for one in changed_cells(inventory.cells(), inventory)}
    main(["store", "check", "--all"])
    assert not (tmp_path / "owned").exists()


def test_the_settings_of_all_method_files_are_computed_again():
    for name in package_names("method"):
        method = load_method(name)
        check_runnable(StoredCell("0" * 64, "done", {"method": name, "settings": method.identity()}))
        other = method.with_params({"random_state": 5})
        check_runnable(StoredCell("0" * 64, "done", {"method": name, "settings": other.identity()}))


# ---------------------------------------------------------------- units of analyses


ANALYSIS = """
FILE = "toy"
{more}

def compute(unit, store):
    return {{"value": [{value}], "name": ["a"]}}


def finish(rows):
    return rows
"""


@pytest.fixture
def unit(tmp_path, monkeypatch):
    """Write the module of an analysis and return its unit; the module has the value of the last call."""

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the file changes within the resolution of its time

    def made(value, more=""):
        (tmp_path / "toy_analysis.py").write_text(ANALYSIS.format(value=value, more=more))
        sys.modules.pop("toy_analysis", None)
        monkeypatch.syspath_prepend(tmp_path)
        return Unit("toy_analysis", "genes-toy", 0, cells_of("mlknn")[0])

    yield made
    sys.modules.pop("toy_analysis", None)


@pytest.mark.parametrize(
    ("value", "more", "differs"), [(1.0, "", False), (2.0, "", True), (2.0, "MEASURES_TIME = True", False)]
)
def test_units_of_analyses_are_checked_unless_they_measure_time(store, unit, monkeypatch, value, more, differs):
    assert run_units([unit(1.0)], store) == {}
    later = unit(value, more)
    assert "methods/base.py" in store.record(later.key)["code"]["files"]
    edit(monkeypatch, "methods/base.py")
    monkeypatch.setattr(checks, "_seconds", lambda record: 0.0)
    if differs:
        with pytest.raises(DifferentResultError):
            run_units([later], store)
    else:
        assert run_units([later], store) == {}
    assert len(marks(store)) == (not differs and not more)


# ---------------------------------------------------------------- commands


TRAIN = ["train", "dataset=genes-toy", "method=mlknn", "publish=false", "metrics=[hamming_loss]"]


def test_store_check_recomputes_a_sample_or_all_and_clears_what_is_equal(store, cells, monkeypatch, capsys):
    edit(monkeypatch, MLKNN)

    def left():
        capsys.readouterr()
        assert main(["store", "list", "--status", "unchecked", "--method", "mlknn"]) == 0
        return [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:-1]]

    assert len(left()) == 8 + 3  # test scores, those that the stack reads too, and base scores
    assert main(["store", "check"]) == 0
    assert len(left()) == 6 + 1
    assert main(["store", "check", "--all", "--method", "mlknn"]) == 0
    assert left() == []
    edit(monkeypatch, MLKNN, "3" * 12)
    other_formula(monkeypatch)
    assert main(["store", "check", "--all"]) == 1
    assert len(left()) == 8 + 3
    assert all(store.has(cell.key) for cell in cells)


def test_store_list_counts_the_equal_ones_of_a_class(store, cells, monkeypatch, capsys):
    edit(monkeypatch, MLKNN)
    check_met(cells, store, compute_within)
    capsys.readouterr()
    assert main(["store", "list"]) == 0
    lines = {line[:12]: line for line in capsys.readouterr().out.splitlines()}
    for cell in cells:
        line = lines[cell.key[:12]]
        assert ("unchecked" in line, "2 of 8" in line) == ((False,) * 2 if cell.key in marks(store) else (True,) * 2)


def test_commands_that_only_read_compute_nothing(store, monkeypatch, computed, capsys):
    edit(monkeypatch, MLKNN)
    for argv in (["results"], ["store", "list"], ["store", "clean"], ["store", "clean", "--unchecked"]):
        capsys.readouterr()
        assert main(argv) == 0
        told = [line for line in capsys.readouterr().err.splitlines() if MLKNN in line]
        assert len(told) == (argv[-1] in ("results", "list"))
    assert computed == []
    assert marks(store) == []


def test_a_command_prints_one_line_whatever_it_runs(store, monkeypatch, capsys):
    edit(monkeypatch, MLKNN)
    capsys.readouterr()
    assert main([*TRAIN[:2], "-m", "method=mlknn", "seed=0,1", *TRAIN[3:]]) == 0
    assert sum(MLKNN in line for line in capsys.readouterr().err.splitlines()) == 1
    monkeypatch.undo()
    assert main(TRAIN) == 0
    assert MLKNN not in capsys.readouterr().err


def test_a_sweep_with_a_different_result_ends_like_one_command(store, monkeypatch):
    edit(monkeypatch, MLKNN)
    other_formula(monkeypatch)
    assert main(TRAIN) == 1
    assert main([*TRAIN[:2], "-m", "method=mlknn", "seed=0,1", *TRAIN[3:]]) == 1


def test_clean_removes_unchecked_results_and_what_reads_them(store, cells, stacked, monkeypatch):
    edit(monkeypatch, MLKNN)
    check_met(cells, store, compute_within)
    equal = marks(store)
    assert len(equal) == 2
    assert main(["store", "clean", "--unchecked", "--method", "mlknn", "--yes"]) == 0
    assert sorted(store.finished()) == equal  # not even the stack, which reads removed base scores
    assert main(["store", "clean", "--method", "mlknn", "--yes"]) == 0
    assert marks(store) == equal


def test_fresh_says_equal_or_different_and_replaces_only_what_differs(store, cells, monkeypatch, capsys):
    before = {cell.key: store.digests(cell.key) for cell in cells}
    assert main([*TRAIN, "--fresh"]) == 0
    assert {cell.key: store.digests(cell.key) for cell in cells} == before
    first = capsys.readouterr().out
    edit(monkeypatch, MLKNN)
    other_threshold(monkeypatch)
    assert main([*TRAIN, "--fresh"]) == 0
    second = capsys.readouterr().out
    after = {cell.key: store.digests(cell.key) for cell in cells}
    assert all(after[key]["arrays.npz"] != before[key]["arrays.npz"] for key in before)
    assert all(store.record(cell.key)["code"]["files"][MLKNN] == "0" * 12 for cell in cells)
    losses = [float(re.search(r"hamming_loss +([\d.]+)", out)[1]) for out in (first, second)]
    assert losses[0] < losses[1]  # the kept metrics are not those of the replaced scores
    assert main([*TRAIN, "--fresh"]) == 0
    assert {cell.key: store.digests(cell.key) for cell in cells} == after


def test_equal_fresh_results_are_checked_and_missing_ones_stored(store, cells, monkeypatch):
    edit(monkeypatch, MLKNN)
    shutil.rmtree(store.path(cells[0].key))
    assert refresh(cells, store, lambda own: run_cells(cells, own)) == {}
    assert store.has(cells[0].key)
    assert marks(store) == sorted(cell.key for cell in cells[1:])


def test_why_shows_what_a_key_holds_and_what_has_changed(store, cells, stacked, monkeypatch, capsys):
    def rows(key):
        capsys.readouterr()
        assert main(["store", "why", key[:12]]) == 0
        lines = capsys.readouterr().out.splitlines()
        today = lines[0].index("today")
        return {line[: lines[0].index("stored")].strip(): line[today:] for line in lines}, "\n".join(lines)

    changed, text = rows(cells[0].key)
    assert not any(changed[name] for name in ("data", "rows", "method", "versions", "numpy", "cell"))
    assert "kfold5" in text
    assert rows(stacked[0].key)[1].count("base scores of mlknn") == 1
    edit(monkeypatch, MLKNN)
    monkeypatch.setattr(Method, "versions", lambda self, steps=(): {"MLkNN": [2]})
    changed, text = rows(cells[0].key)
    assert changed[MLKNN] == "0" * 12
    assert "MLkNN" in changed["results versions"]


STUDY = """
title: Small
datasets: [genes-toy]
methods: [mlknn, relm]
protocol: kfold3
metrics: [hamming_loss]
headline: hamming_loss
"""


@pytest.fixture
def study(tmp_path, monkeypatch, checkout):
    """A study of two methods in a folder of its own, trained."""
    shutil.copytree(checkout / "conf", tmp_path / "conf")
    (tmp_path / "conf" / "study" / "small.yaml").write_text(STUDY)
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path / "conf"))
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "fits"))
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    monkeypatch.chdir(tmp_path)
    assert main(["study", "train", "--study", "small"]) == 0
    return load_study("small")


def test_the_page_of_a_study_says_how_many_results_are_unchecked(study, monkeypatch, tmp_path):
    def table_and_note():
        assert main(["study", "evaluate", "--study", "small"]) == 0
        assert main(["study", "stats", "--study", "small"]) == 0
        assert main(["study", "report", "--study", "small"]) == 0
        page = (tmp_path / "reports" / "small" / "index.html").read_text()
        note = re.search(r'id="unchecked">(.*?)</p>', page)
        return tmp_path / "reports" / "small" / "unchecked.csv", note and re.findall(r"\d+", note[1])

    table, note = table_and_note()
    assert (table.exists(), note) == (False, None)
    edit(monkeypatch, MLKNN)
    assert main(["study", "train", "--study", "small"]) == 0
    table, note = table_and_note()
    assert pd.read_csv(table).to_dict("list") == {"class": ["MLkNN"], "results": [3], "equal": [2]}
    assert note == ["3", "2", "1"]
    assert main(["store", "check", "--all"]) == 0
    table, note = table_and_note()
    assert (table.exists(), note) == (False, None)


def test_a_study_is_computed_again_on_request_and_only_what_differs_is_replaced(study, monkeypatch):
    store, plan = Store(), Plan(study)
    before = {cell.key: store.digests(cell.key) for cell in plan.cells}
    edit(monkeypatch, MLKNN)
    other_threshold(monkeypatch)
    assert stages.refresh(plan) == 0
    replaced = {cell.method.name for cell in plan.cells if store.digests(cell.key) != before[cell.key]}
    assert replaced == {"mlknn"}
    assert stages.train(plan) == 0
    assert {one.item.key for one in changed_results(before, store, {c.key: c for c in plan.cells}.get)} == set()


# ---------------------------------------------------------------- an old store


@pytest.fixture
def old(store):
    """A result of schema 3, and a table that was encoded for all training rows."""
    key = "a" * 64
    parts = {"schema": 3, "kind": "train", "method": {"_target_": "multilab.methods.MLkNN"}, "code": {"a": "b"}}
    store.write(key, {"scores": np.zeros((2, 2))}, {"status": "done", "parts": parts, "method": "mlknn"}, "cell: x\n")
    (store.root / ".encoded").mkdir()
    (store.root / ".encoded" / "table.npz").write_bytes(b"")
    return key


def test_results_of_an_earlier_version_are_told_once_left_alone_and_removed_on_request(store, old, unit, capsys):
    assert run_units([unit(1.0)], store) == {}
    for argv in (TRAIN, ["results"], ["store", "list"], [*TRAIN[:2], "-m", "method=mlknn", "seed=0,1", *TRAIN[3:]]):
        capsys.readouterr()
        assert main(argv) == 0
        told = [line for line in capsys.readouterr().err.splitlines() if str(store.root) in line]
        assert len(told) == 1
        assert "multilab store clean --outdated --yes" in told[0]
    assert store.has(old)
    finished = set(store.finished())
    assert main(["store", "clean", "--outdated", "--yes"]) == 0
    assert finished - set(store.finished()) == {old}  # the units of analyses are of this version
    assert not list(store.root.glob(".encoded/*.npz"))
    capsys.readouterr()
    assert main(TRAIN) == 0
    assert str(store.root) not in capsys.readouterr().err


def test_a_few_records_of_a_large_store_are_read(store, cells, monkeypatch):
    record = {"status": "done", "parts": {"schema": 4}}
    for number in range(60):
        store.write_failure(f"{number:064x}", record)
    read = []
    inventory_read = Inventory.read
    monkeypatch.setattr(Inventory, "read", lambda self, key: read.append(key) or inventory_read(self, key))
    note_earlier(store)
    assert 0 < len(read) <= 20


# ---------------------------------------------------------------- a real edit


@pytest.fixture(scope="module")
def program(tmp_path_factory, checkout):
    """Return a function that runs the command line of a copy of the package, and the copy."""
    root = tmp_path_factory.mktemp("program")
    shutil.copytree(PACKAGE, root / "src" / "multilab", ignore=shutil.ignore_patterns("__pycache__"))
    environ = {
        **os.environ,
        "PYTHONPATH": str(root / "src"),
        "MULTILAB_CELLS": str(root / "cells"),
        "MULTILAB_JOBS": "1",
    }

    def run(*argv):
        return subprocess.run(
            [sys.executable, "-m", "multilab", *argv],
            cwd=root,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    return run, root / "src" / "multilab"


@pytest.mark.slow
def test_train_goes_on_after_a_comment_and_ends_after_another_formula(program):
    run, package = program
    file = package / MLKNN
    source = file.read_text()
    assert run(*TRAIN).returncode == 0
    store = Store(package.parents[1] / "cells")
    file.write_text(source + "\n# a comment\n")
    ended = run(*TRAIN)
    assert (ended.returncode, "hamming_loss" in ended.stdout) == (0, True)
    assert len(marks(store)) == 2
    formula = "likelihood = (self.s + kappa)"
    assert formula in source
    file.write_text(source.replace(formula, "likelihood = (2.0 * self.s + kappa)"))
    ended = run(*TRAIN)
    assert (ended.returncode, "hamming_loss" in ended.stdout) == (1, False)
    assert "MLkNN" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert len(marks(store)) == 2
    raised = file.read_text().replace("    def __init__(", "    results_version = 2\n\n    def __init__(", 1)
    file.write_text(raised)  # what the line says to do
    assert run(*TRAIN).returncode == 0
    assert len(store.finished()) == 10
    file.write_text(source)
    ended = run(*TRAIN)
    assert ended.returncode == 0
    assert not ended.stderr.strip()  # nothing has changed any more


def test_the_digest_of_a_file_that_is_not_loaded_is_that_on_disk():
    files = files_today()
    assert (
        files["papers/imldf/diversity.py"] == sha256_digest((PACKAGE / "papers/imldf/diversity.py").read_bytes())[:12]
    )
    assert json.dumps(sorted(files)) == json.dumps(sorted(loaded_code.package_files().values()))


def test_the_sample_is_the_same_in_any_order(store, cells, monkeypatch):
    edit(monkeypatch, MLKNN)
    by_key = {cell.key: cell for cell in cells}
    found = changed_results(by_key, store, by_key.get)
    assert [one.item for one in sample(found)] == [one.item for one in sample(found[::-1])]
