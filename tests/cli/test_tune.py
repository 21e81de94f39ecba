"""`multilab tune`: what it prints, how a search is continued, and where its trials are kept."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest

from helpers.searches import run_search
from multilab.cells.cell import Cell, SplitRef, split_refs
from multilab.cells.conf import load_protocol
from multilab.cells.errors import ExperimentError
from multilab.cells.method import load_method
from multilab.cells.settings import Tuning, with_optuna_names
from multilab.cells.store import Store
from multilab.cli import main
from multilab.experiments import search
from multilab.experiments.search import search_name

TUNE = ["tune", "dataset=scenario3", "method=mlknn", "tune.metric=hamming_loss", "publish=false"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder with an empty store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    return tmp_path


@pytest.fixture
def fits(monkeypatch):
    """Count how many times an inner fold is fitted."""
    value, calls = search._value, []

    def counted(*arguments):
        calls.append(arguments)
        return value(*arguments)

    monkeypatch.setattr(search, "_value", counted)
    return calls


def tune(capsys, *argv, code=0):
    assert main([*TUNE, *argv]) == code
    return capsys.readouterr()


def test_tune_has_a_help_of_its_own(capsys):
    assert main(["tune", "--help"]) == 0
    text = capsys.readouterr().out
    assert "Tune the hyperparameters" in text
    assert "Fit and score" not in text
    for setting in ("n_trials", "metric", "folds", "sampler", "timeout", "pruner", "storage"):
        assert f"tune.{setting}" in text


def test_it_prints_what_changed_against_the_default(folder, capsys):
    text = tune(capsys, "tune.n_trials=4").out
    lines = text.splitlines()
    best, default = re.search(r"best hamming_loss ([\d.]+), (?:the )?default (?:has )?([\d.]+)", lines[0]).groups()
    store = Store()
    cell = all_rows_cell("scenario3")
    plan = Tuning(n_trials=4, metric="hamming_loss")
    name = search_name(cell, plan)
    _, trials = run_search(cell, plan, store, store.journal(name), name=name)
    rows = list(csv.DictReader(io.StringIO(trials)))
    values = [float(row["hamming_loss"]) for row in rows]
    assert (rows[0]["k"], rows[0]["s"]) == ("10", "1.0")
    assert (best, default) == (f"{min(values):.4f}", f"{values[0]:.4f}")
    chosen = rows[values.index(min(values))]
    changed = [line for line in lines if re.match(r"  (k|s): ", line)]
    assert len(changed) == sum(float(chosen[name]) != own for name, own in (("k", 10), ("s", 1.0)))
    assert "4 trials (4 complete; 4 run now)" in lines[0]
    assert not re.search("reference|Pattern Recognition|search:|notes", text)
    assert not (folder / "mlflow.db").exists()


def test_it_says_where_the_study_is_and_how_to_open_it(folder, capsys):
    import optuna
    from optuna.storages.journal import JournalFileBackend

    text = tune(capsys, "tune.n_trials=2").out
    name, path = re.search(r"^study: (\S+) in (\S+)$", text, re.MULTILINE).groups()
    assert name.startswith("scenario3-mlknn-hamming_loss-")
    assert f"optuna-dashboard {path}" in text
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder / path)))
    assert len(optuna.load_study(study_name=name, storage=storage).trials) == 2


def test_the_command_it_prints_trains_with_the_best_arguments(folder, capsys):
    text = tune(capsys, "tune.n_trials=3").out
    command = re.search(r"^train with it: multilab (train .*)$", text, re.MULTILINE).group(1)
    changed = dict(re.findall(r"^  (k|s): \S+ -> (\S+)$", text, re.MULTILINE))
    assert main([*command.split(), "protocol=kfold3", "publish=false"]) == 0
    printed = capsys.readouterr().out
    for name, value in changed.items():
        assert re.search(rf"method\.{name}={re.escape(value[:5])}", printed)


def test_a_search_goes_on_from_its_finished_trials(folder, capsys, fits):
    tune(capsys, "tune.n_trials=3")
    assert len(fits) == 3 * 3
    text = tune(capsys, "tune.n_trials=5").out
    assert len(fits) == 5 * 3
    assert "5 trials (5 complete; 2 run now)" in text
    assert "0 run now" in tune(capsys, "tune.n_trials=5").out
    assert len(fits) == 5 * 3


def test_a_continued_search_finds_what_one_of_that_length_finds(folder, capsys, monkeypatch):
    def result(text):
        return [line for line in text.splitlines() if not line.startswith(("study:", "  open it"))][1:]

    tune(capsys, "tune.n_trials=3")
    continued = result(tune(capsys, "tune.n_trials=6").out)
    monkeypatch.setenv("MULTILAB_CELLS", str(folder / "others"))
    assert result(tune(capsys, "tune.n_trials=6").out) == continued


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("tune.n_trials=0", "tune.n_trials"),
        ("tune.n_trials=-4", "tune.n_trials"),
        ("tune.timeout=0", "tune.timeout"),
        ("tune.pruner=MedianPrunner", "MedianPruner"),
        ("tune.metric=haming_loss", "hamming_loss"),
        ("tune.folds=1", "tune.folds"),
    ],
)
def test_a_wrong_setting_is_refused_before_any_work(folder, capsys, fits, setting, text):
    error = tune(capsys, setting, code=2).err
    assert "Traceback" not in error
    assert text in error.strip().splitlines()[-1]
    assert not fits


def test_trials_can_be_kept_in_a_database(folder, capsys, fits):
    import optuna

    url = f"sqlite:///{folder / 'trials.db'}"
    text = tune(capsys, "tune.n_trials=2", f"tune.storage={url}").out
    name = re.search(r"^study: (\S+) in ", text, re.MULTILINE).group(1)
    assert url in text
    study = optuna.load_study(study_name=name, storage=url)
    assert study.metric_names == ["hamming_loss"]
    assert len(study.trials) == 2
    for trial in study.trials:
        assert trial.user_attrs.keys() == {"fold_0", "fold_1", "fold_2"}
        assert np.mean(list(trial.user_attrs.values())) == pytest.approx(trial.value)
    assert not list((folder / "cells").glob(".journals/*.log"))
    tune(capsys, "tune.n_trials=3", f"tune.storage={url}")
    assert len(fits) == 3 * 3


def test_a_database_that_cannot_be_opened_is_one_line_without_its_password(folder, capsys):
    error = tune(capsys, "tune.storage=nosuchdriver://me:secret@host/x", code=2).err.strip().splitlines()[-1]
    assert "tune.storage=nosuchdriver://me:***@host/x cannot be opened" in error
    assert "secret" not in error
    assert "nosuchdriver" in error.partition("cannot be opened: ")[2]  # the reason: there is no such driver


def test_no_trial_starts_after_the_time_limit(folder, capsys, fits):
    text = tune(capsys, "tune.n_trials=50", "tune.timeout=0.000001").out
    assert len(fits) == 3
    assert "1 trials (1 complete; 1 run now)" in text
    assert "stopped by tune.timeout" in text


def all_rows_cell(dataset):
    known = split_refs(dataset, load_protocol("kfold5"))[0]
    part = SplitRef(known.dataset, known.dataset_digest, known.protocol, -1, "all rows")
    return Cell("train", part, load_method("mlknn"))


@pytest.mark.parametrize(("pruner", "fits_of_the_bad"), [("NopPruner", 3), ("MedianPruner", 1)])
def test_a_pruned_trial_ends_after_the_first_fold(tmp_path, monkeypatch, pruner, fits_of_the_bad):
    plan, calls = Tuning(n_trials=7, metric="hamming_loss", pruner=pruner), []

    def value(method, inputs, cell, plan):
        calls.append(method.params["k"])
        return 0.1 if len(calls) <= 18 else 0.9  # the first six trials are good, the seventh is bad from its first fold

    monkeypatch.setattr(search, "_value", value)
    cell, store = all_rows_cell("scenario3"), Store(tmp_path / "cells")
    _, trials = run_search(cell, plan, store, tmp_path / "a.log")
    assert len(calls) == 18 + fits_of_the_bad
    assert len(trials.splitlines()) == 1 + (7 if pruner == "NopPruner" else 6)
    run_search(cell, plan, store, tmp_path / "a.log")
    assert len(calls) == 18 + fits_of_the_bad  # a pruned trial counts as a finished one


def test_settings_that_are_not_used_leave_the_key_of_a_tuned_cell_alone():
    block = {
        "n_trials": 5,
        "folds": 3,
        "order": 1,
        "metric": "hamming_loss",
        "sampler": "tpe",
        "conventions": "default",
    }
    unused = {**block, "sampler": "TPESampler", "timeout": None, "pruner": "NopPruner", "storage": None}
    assert (
        Tuning.from_mapping(unused).identity()
        == Tuning.from_mapping({"n_trials": 5, "metric": "hamming_loss"}).identity()
    )
    assert Tuning.from_mapping(unused).identity() == block
    assert Tuning.from_mapping({**unused, "pruner": "MedianPruner", "timeout": 60}).identity()["timeout"] == 60
    with pytest.raises(ExperimentError, match="n_trials"):
        Tuning.from_mapping({**unused, "n_trials": -1})


def test_keys_and_names_of_searches_have_their_own_spelling_of_optunas_classes():
    pairs = [("TPESampler", "tpe"), ("RandomSampler", "random"), ("QMCSampler", "qmc"), ("GridSampler", "grid")]
    for sampler, recorded in pairs:
        plan = Tuning.from_mapping({"n_trials": 5, "sampler": sampler, "pruner": "MedianPruner"})
        assert (plan.identity()["sampler"], plan.identity()["pruner"]) == (recorded, "median")
        sequence = search._sequence(all_rows_cell("scenario3"), plan)
        assert {name: sequence[name] for name in sequence.keys() - {"versions", "optuna"}} == {
            "sampler": recorded,
            "pruner": "median",
        }
        assert Tuning(**with_optuna_names(plan.identity())) == plan
        with pytest.raises(ExperimentError, match=f"tune.sampler must be .*'{recorded}'"):
            Tuning.from_mapping({"sampler": recorded})


def test_a_tuned_ad_hoc_run_has_the_key_of_its_settings(folder, capsys):
    argv = [
        "train",
        "dataset=scenario3",
        "protocol=kfold3",
        "publish=false",
        "tune.n_trials=2",
        "tune.metric=hamming_loss",
    ]
    assert main(argv) == 0
    tuning = Tuning(n_trials=2, metric="hamming_loss")
    for part in split_refs("scenario3", load_protocol("kfold3")):
        assert Store().has(Cell("train", part, load_method("mlknn"), 0, tuning).key)


def test_the_name_of_a_search_depends_on_what_decides_its_values():
    cell, plan = all_rows_cell("scenario3"), Tuning()
    name = search_name(cell, plan)
    for same in ({"n_trials": 7}, {"timeout": 3.0}, {"storage": "sqlite:///x.db"}):
        assert search_name(cell, replace(plan, **same)) == name
    for other in ({"folds": 4}, {"metric": "macro_f1"}, {"sampler": "RandomSampler"}, {"pruner": "MedianPruner"}):
        assert search_name(cell, replace(plan, **other)) != name
    changed = replace(cell, method=cell.method.with_params({"s": 2.0}))
    assert search_name(changed, plan) != name
    assert np.unique([name, search_name(replace(cell, seed=1), plan)]).size == 2
