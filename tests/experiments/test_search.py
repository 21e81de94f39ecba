"""Hyperparameter search: inside the training set, resumable, the paper's values first."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState, create_trial

from helpers.searches import run_search
from multilab.cells import rows as rows_of_cells
from multilab.cells import running
from multilab.cells.cell import Cell, split_refs
from multilab.cells.conf import load_protocol
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method, load_method
from multilab.cells.records import check_arguments
from multilab.cells.settings import Tuning
from multilab.cells.store import Store
from multilab.experiments import search
from multilab.experiments.study import load_study
from multilab.experiments.trials import Journal, ended_trials, finished_trials, load_search
from multilab.metrics import METRICS, registry


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells")


def cell_of(name, dataset="scenario1", **changes):
    part = split_refs(dataset, load_protocol("kfold3"))[0]
    method = load_method(name)
    return Cell("train", part, replace(method, **changes) if changes else method)


def rows(trials):
    return list(csv.DictReader(io.StringIO(trials)))


def test_the_papers_values_are_the_first_trial(store, tmp_path):
    plan = Tuning(n_trials=3, metric="hamming_loss")
    best, trials = run_search(cell_of("mlknn"), plan, store, tmp_path / "a.log")
    assert [row["trial"] for row in rows(trials)] == ["0", "1", "2"]
    assert (rows(trials)[0]["k"], rows(trials)[0]["s"]) == ("10", "1.0")
    values = [float(row["hamming_loss"]) for row in rows(trials)]
    assert values[[int(r["k"]) for r in rows(trials)].index(best["k"])] == min(values)


def test_the_first_draw_of_the_tuned_arena_are_the_values_that_its_study_names():
    study = load_study("arena-tuned")
    assert (study.tune.n_trials, study.tune.folds, study.tune.sampler) == (15, 3, "RandomSampler")
    for name in study.methods:
        method = study.method(name)
        space = search.distributions(method)
        assert set(search._default_point(method, space)) == set(space), name


def test_values_of_the_estimator_inside_are_found_in_the_nested_settings(store, tmp_path):
    _, trials = run_search(cell_of("br"), Tuning(n_trials=1, metric="hamming_loss"), store, tmp_path / "a.log")
    assert rows(trials)[0]["estimator__C"] == "1.0"


def test_a_killed_search_resumes_to_the_same_result(store, tmp_path, monkeypatch):
    cell, plan = cell_of("mlknn"), Tuning(n_trials=6, metric="hamming_loss")
    uninterrupted = run_search(cell, plan, store, tmp_path / "uninterrupted.log")

    value, count = search._value, iter(range(100))

    def killed(*arguments):
        if next(count) == 7:  # in the middle of the third trial: it has two of its three folds
            raise KeyboardInterrupt
        return value(*arguments)

    monkeypatch.setattr(search, "_value", killed)
    with pytest.raises(KeyboardInterrupt):
        run_search(cell, plan, store, tmp_path / "resumed.log")
    monkeypatch.setattr(search, "_value", value)
    best, trials = run_search(cell, plan, store, tmp_path / "resumed.log")
    assert best == uninterrupted[0]
    without_numbers = [[row[k] for k in row if k != "trial"] for row in rows(trials)]
    assert without_numbers == [[row[k] for k in row if k != "trial"] for row in rows(uninterrupted[1])]
    again = run_search(cell, plan, store, tmp_path / "resumed.log")
    assert again == (best, trials)


CUBE = {
    "s": {"type": "float", "low": 0.5, "high": 4.5},
    "k": {"type": "int", "low": 1, "high": 8},
    "scale": {"type": "categorical", "choices": [None, "minmax"]},
}


@pytest.fixture
def planted(monkeypatch):
    """Replace fits by planted values and errors, and kill the search at a fit."""

    class Planted:
        calls, killed_at = 0, None

        def value(self, method, inputs, cell, plan):
            self.calls += 1
            if self.calls == self.killed_at:
                raise KeyboardInterrupt
            if method.params["k"] % 4 == 3:
                raise ValueError("planted")
            return 100 * method.params["s"] % 1  # no trend that a sampler could follow away from bad trials

    planted = Planted()
    monkeypatch.setattr(search, "_value", planted.value)
    return planted


@pytest.mark.parametrize(
    ("killed_at", "storage"), [(1, None), (5, None), (18, None), (5, "sqlite:///{folder}/trials.db")], ids=str
)
@pytest.mark.parametrize(
    "sampler", ["TPESampler", *(pytest.param(name, marks=pytest.mark.slow) for name in ("RandomSampler", "QMCSampler"))]
)
def test_a_killed_and_continued_search_has_the_trials_of_an_undisturbed_one(
    store, tmp_path, planted, sampler, storage, killed_at
):
    cell = cell_of("mlknn", search=CUBE)
    plan = Tuning(n_trials=16, metric="hamming_loss", sampler=sampler, pruner="MedianPruner")
    undisturbed = result_of(cell, plan, store, tmp_path / "a.log")
    states = [state for _, state, _ in undisturbed]
    assert {TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED} == set(states)

    disturbed = replace(plan, storage=storage and storage.format(folder=tmp_path))
    planted.calls, planted.killed_at = 0, killed_at
    with pytest.raises(KeyboardInterrupt):
        run_search(cell, disturbed, store, tmp_path / "b.log", "x")
    run_search(cell, replace(disturbed, n_trials=11), store, tmp_path / "b.log", "x")
    assert result_of(cell, disturbed, store, tmp_path / "b.log") == undisturbed


def result_of(cell, plan, store, journal):
    """Run a search and return the arguments, state and value of each trial that ended by itself."""
    run_search(cell, plan, store, journal, "x")
    return [(t.params, t.state, t.value) for t in ended_trials(load_search(plan.storage, journal, "x"))]


@pytest.mark.parametrize("seed", range(3))
def test_quasi_random_trials_cover_the_space_evenly(store, tmp_path, planted, seed):
    plan = Tuning(n_trials=17, metric="hamming_loss", sampler="QMCSampler")
    cell = replace(cell_of("mlknn", search=CUBE), seed=seed)
    first, *others = [params for params, _, _ in result_of(cell, plan, store, tmp_path / "a.log")]
    assert first["s"] == 1.0  # the method's own value
    # 16 points of a Sobol sequence: one in each sixteenth of every axis
    assert sorted(int(4 * (point["s"] - 0.5)) for point in others) == list(range(16))
    assert sorted(point["k"] for point in others) == sorted([*range(1, 9), *range(1, 9)])
    assert [point["scale"] for point in others].count(None) == 8


def test_the_search_never_sees_a_test_row(store, tmp_path, monkeypatch):
    cell = cell_of("mlwse_l1", base_scores=("br",))
    monkeypatch.setattr("multilab.cells.cell.load_method", cheap)
    train, test = rows_of_cells.indices(cell.split_ref)
    seen = []
    gather = running.gather

    def watching(inner, into):
        if inner.method.name == "mlwse_l1":  # and not a base method, whose scores are gathered for it
            inner_train, inner_test = rows_of_cells.indices(inner.split_ref)
            seen.append((set(inner_train), set(inner_test)))
            assert inner.reads, "the method reads base scores of the inner fold"
            assert all(read.split_ref == inner.split_ref for read in inner.reads)
        return gather(inner, into)

    monkeypatch.setattr(running, "gather", watching)
    run_search(cell, Tuning(n_trials=2, metric="hamming_loss"), store, tmp_path / "a.log")
    assert len(seen) == 3
    for inner_train, inner_test in seen:
        assert inner_train | inner_test == set(train)
        assert not inner_train & inner_test
        assert not (inner_train | inner_test) & set(test)


def cheap(name):
    """Return a base method with logistic regression instead of the support vector machine."""
    method = load_method(name)
    return replace(method, params={"estimator": {"_target_": "sklearn.linear_model.LogisticRegression"}})


def test_a_tuned_cell_keeps_its_journal_and_what_it_chose(store):
    cell = replace(cell_of("mlknn"), tune=Tuning(n_trials=3, metric="hamming_loss"))
    assert cell.key != cell_of("mlknn").key
    assert running.run_cell(cell, store) is None
    record = store.record(cell.key)
    assert set(record["tuned"]) == {"k", "s"}
    assert (store.path(cell.key) / "trials.csv").is_file()
    assert (store.path(cell.key) / "journal.log").stat().st_size > 0
    again = Store(store.root.parent / "again")
    assert running.run_cell(cell, again) is None
    np.testing.assert_array_equal(again.arrays(cell.key)["scores"], store.arrays(cell.key)["scores"])


def test_the_grid_sampler_walks_every_point_once(store, tmp_path):
    grid = {"k": {"type": "categorical", "choices": [3, 5]}, "s": {"type": "categorical", "choices": [1.0, 2.0]}}
    plan = Tuning(n_trials=4, metric="hamming_loss", sampler="GridSampler")
    _, trials = run_search(cell_of("mlknn", search=grid), plan, store, tmp_path / "a.log")
    assert sorted((r["k"], r["s"]) for r in rows(trials)) == [("3", "1.0"), ("3", "2.0"), ("5", "1.0"), ("5", "2.0")]


def test_a_search_whose_trials_all_fail_says_why(store, tmp_path):
    space = {"k": {"type": "int", "low": 5000, "high": 6000}}
    with pytest.raises(ExperimentError, match=r"every trial of the search failed.*neighbours"):
        run_search(cell_of("mlknn", search=space), Tuning(n_trials=2), store, tmp_path / "a.log")


def test_a_search_for_what_is_undefined_says_so(store, tmp_path):
    plan = Tuning(n_trials=2, metric="ranking_loss")  # of one label there is no ranking
    with pytest.raises(ExperimentError, match=r"every trial of the search failed.*ranking_loss is undefined"):
        run_search(cell_of("mlknn"), plan, store, tmp_path / "a.log")


def test_a_search_computes_the_metric_that_it_optimises_and_no_other(store, tmp_path, monkeypatch):
    """So that the key of a tuned cell needs the formula of this metric only."""

    def fails(*_):
        raise ZeroDivisionError

    for name, metric in METRICS.items():
        if name != "hamming_loss":
            monkeypatch.setitem(registry._STANDARD, name, replace(metric, formula=fails))
            monkeypatch.setitem(registry._ALL, name, replace(metric, formula=fails))
    run_search(cell_of("mlknn"), Tuning(n_trials=2, metric="hamming_loss"), store, tmp_path / "a.log")


def test_a_method_without_a_space_cannot_be_tuned(store, tmp_path):
    with pytest.raises(ExperimentError, match="nothing to tune"):
        run_search(cell_of("mlknn", search={}), Tuning(n_trials=2), store, tmp_path / "a.log")


def test_tuned_members_give_their_arguments_to_the_stack(store, monkeypatch):
    monkeypatch.setattr("multilab.cells.cell.load_method", cheap_searched)
    plan = Tuning(n_trials=2, metric="hamming_loss", sampler="GridSampler", members=True)
    cell = replace(cell_of("mlwse_l1", base_scores=("br",), search=grid_of("alpha", [0.1, 1.0])), tune=plan)
    scores, member = cell.reads
    assert member.tune == replace(plan, members=False)
    assert scores.reads == (replace(scores, kind="train"),)
    assert running.run_cell(cell, store) is None
    chosen = store.record(member.key)["tuned"]
    assert set(chosen) == {"estimator__C"}
    # the out-of-fold scores are those of the member with what it chose
    fixed = replace(scores, tune=None, method=scores.method.with_params(chosen))
    assert running.run_cell(fixed, store) is None
    np.testing.assert_array_equal(store.arrays(scores.key)["scores"], store.arrays(fixed.key)["scores"])
    plain = replace(cell, tune=replace(plan, members=False))
    assert plain.reads[1].tune is None
    assert plain.key != cell.key


def grid_of(name, choices):
    return {name: {"type": "categorical", "choices": choices}}


def cheap_searched(name):
    return replace(cheap(name), search=grid_of("estimator__C", [0.001, 1000.0]))


def test_a_tuned_cell_from_elsewhere_gives_numbers_and_choices_of_the_space_only():
    space = {"k": {"type": "int", "low": 1, "high": 9}, "mode": {"type": "categorical", "choices": ["a", ["b", 1]]}}
    check_arguments({"k": 3, "mode": "a"}, space)
    check_arguments({"k": None, "mode": ["b", 1]}, space)
    for chosen in (
        {"k": {"_target_": "os.system", "command": "x"}},
        {"mode": "c"},
        {"base_scores": ["evil.yaml"]},
        {"mode": [{"_target_": "os.system"}]},
        ["k"],
    ):
        with pytest.raises(ExperimentError, match="cannot have chosen"):
            check_arguments(chosen, space)


def test_trials_of_a_strangers_journal_name_no_class_and_no_file(tmp_path):
    journal = Journal(tmp_path / "a.log", tmp_path / "final.log")
    study = journal.study("x", "minimize", 5)
    choices = [1, "fast", {"_target_": "os.system", "command": "touch x"}, ["/tmp/evil.yaml"]]
    for value in choices:
        distribution = CategoricalDistribution(choices)
        study.add_trial(create_trial(params={"k": value}, distributions={"k": distribution}, value=0.0))
    assert [trial.params["k"] for trial in finished_trials(journal.path, "x")] == [1, "fast"]


def test_a_trial_scales_the_rows_as_it_says(store, tmp_path):
    """Columns of other sizes: neighbours in scaled rows are others, so that no two values are equal."""
    space = {"preprocessing": {"type": "categorical", "choices": ["none", "minmax", "standard"]}}
    part = split_refs("genes-toy", {"kfold": 3, "stratify": 1, "seed": 0})[0]
    cell = Cell("train", part, Method("scaled", "multilab.methods.MLkNN", {"k": 5}, search=space))
    _, trials = run_search(cell, Tuning(n_trials=3, folds=2, sampler="GridSampler"), store, tmp_path / "a.log")
    assert len({row["ranking_loss"] for row in rows(trials)}) == 3
    tuned, other = replace(cell, tune=Tuning(n_trials=3)), replace(cell.method, search={})
    assert tuned.identity["scaling"]
    assert "scaling" not in replace(tuned, method=other).identity
