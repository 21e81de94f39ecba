"""What a search begins, and when: by a clock that only the fits move on."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from multilab import AutoMultiLabel
from multilab.cells import execute
from multilab.cells.execute import Outcome
from multilab.comparison import auto, fits
from multilab.comparison.fits import run_methods
from multilab.comparison.plan import MethodRun
from multilab.comparison.portfolio import load_portfolio
from multilab.comparison.training_set import Fit
from multilab.models import load_model


@dataclass
class Machine:
    """One core whose time passes with the declared seconds of its units only."""

    seconds_of: object
    now: float = 0.0
    begun: list = field(default_factory=list)

    def monotonic(self):
        return self.now

    def run(self, units, store, seconds, n_jobs=1, tick=None, work=None):
        outcome, began = Outcome(), self.now
        for unit in [one for one in units if not store.has(one.key)]:
            self.begun.append(unit.label)
            left = seconds - (self.now - began)
            self.now += min(self.seconds_of(unit), left)
            if self.seconds_of(unit) > left:
                outcome.stopped = True
                break
            if reason := work(unit, store):
                outcome.failures[unit.label] = reason
        outcome.seconds = self.now - began
        return outcome


@pytest.fixture
def machine(monkeypatch):
    def made(seconds_of):
        one = Machine(seconds_of)
        for module in (auto, fits):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=one.monotonic))
        monkeypatch.setattr(fits, "run_units_within", one.run)
        monkeypatch.setattr(execute, "run_units_within", one.run)
        return one

    return made


@dataclass(frozen=True)
class Unit:
    key: str
    label: str


class Done(set):
    """A store that keeps keys alone."""

    has = set.__contains__


def planned(name, seconds, folds=5):
    member = load_portfolio().members[name]
    cells = [Unit(f"{name}-{k}", f"{name}, fold {k}") for k in range(folds)]
    return MethodRun(member, cells, seconds, 1.0, 1.0, keys=frozenset(cell.key for cell in cells))


WATCHER = SimpleNamespace(refresh=lambda: None, finished=lambda entry: None)


def run(machine, entries, seconds, **options):
    store = Done()
    run_methods(entries, store, seconds, seconds, 1, WATCHER, lambda unit, kept: kept.add(unit.key), **options)
    return [entry.status for entry in entries]


def test_a_method_that_cannot_end_is_not_begun(machine):
    one = machine(lambda unit: 1.0)
    assert run(one, [planned("mldf", 1e6), planned("mlknn", 5.0)], 100.0) == ["left out", "done"]
    assert not any(label.startswith("mldf") for label in one.begun)


def test_the_first_fold_corrects_an_estimate_and_those_of_later_methods(machine):
    one = machine(lambda unit: 30.0 if unit.key.startswith("relm") else 1.0)
    entries = [planned("relm", 50.0), planned("mlknn", 40.0), planned("erf_pct", 5.0)]
    assert run(one, entries, 100.0) == ["stopped", "left out", "done"]  # 150 s, 3 times 40 s, 3 times 5 s
    assert one.begun == ["relm, fold 0", *(f"erf_pct, fold {k}" for k in range(5))]
    assert entries[0].spent == 30


def test_fits_before_the_first_method_scale_its_estimate(machine):
    one = machine(lambda unit: 1.0)
    assert run(one, [planned("mlknn", 40.0)], 100.0, ratios=[3.0]) == ["left out"]
    assert not one.begun


def rows(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, (X[:, :3] + rng.normal(size=(n, 3)) > [0, 0.8, 1.5]).astype(np.uint8)


def searched(machine, limit, svm=10.0):
    """Fit with linear machines that take ``svm`` seconds on all rows, and other methods that do not end."""

    def seconds_of(unit):
        if not isinstance(unit, Fit):
            return 0.0
        share = unit.rows / 400 if unit.rows else 1.0 if unit.fold is None else 0.8
        return svm * share if unit.method.name == "br_linear_svm" else 0.01 if "frequencies" in unit.label else 1e4

    one = machine(seconds_of)
    model = AutoMultiLabel(limit).fit(*rows())
    assert model.predict(rows()[0]).shape == (400, 3)
    assert one.now <= limit
    return model, one.begun


def test_a_slow_first_fit_does_not_keep_the_search_from_all_rows(machine):
    slow = iter([4.0])  # once, as on a busy machine; 200 of 4,000 rows would mean 80 s

    def seconds_of(unit):
        if not isinstance(unit, Fit):
            return 0.0
        if unit.rows:
            return next(slow, 0.2)
        return 2.0 if unit.method.name == "br_linear_svm" else 1e4

    one = machine(seconds_of)
    AutoMultiLabel(40.0).fit(*rows(4000))
    assert "br_linear_svm, all rows" in one.begun


def test_the_first_fit_is_on_few_rows_and_is_the_model_if_no_other_ends(machine, tmp_path):
    model, begun = searched(machine, 10.0)
    assert begun[1] == "br_linear_svm, 200 rows"
    assert not any(label.startswith("br_linear_svm, all") for label in begun)
    assert model.best_ == "br_linear_svm"
    fitted = model.estimator_
    assert np.mean(fitted.classifier.predict(fitted.transform_rows(rows()[0])) == rows()[1]) > 0.75
    model.save(tmp_path / "model")
    frame = pd.DataFrame(rows()[0], columns=[f"x{k}" for k in range(4)])
    saved = load_model(tmp_path / "model").predict_proba_frame(frame)
    np.testing.assert_array_equal(saved, model.predict_proba(rows()[0]))


def test_without_time_for_folds_thresholds_come_from_a_holdout_and_the_model_has_all_rows(machine):
    model, begun = searched(machine, 32.0)
    assert [label for label in begun if label.startswith("br_linear_svm, ")] == [
        "br_linear_svm, 200 rows",
        "br_linear_svm, all rows",
        "br_linear_svm, fold 0",
        "br_linear_svm, metrics",
    ]
    assert model.best_.startswith("br_linear_svm")
    assert model.leaderboard_.loc["br_linear_svm", "state"] == "done"
    held = np.concatenate([test for _, test in model._folds])
    assert len(model._folds) == 2
    assert len(set(held)) == len(held) == pytest.approx(80, abs=2)
    assert all(not set(others) & set(test) for others, test in model._folds)


def test_with_time_for_folds_all_rows_are_scored(machine):
    model, begun = searched(machine, 80.0)
    assert sum(label.startswith("br_linear_svm, fold") for label in begun) == 5
    assert sorted(np.concatenate([test for _, test in model._folds])) == list(range(400))


def test_a_holdout_is_saved_with_the_metrics_of_its_rows(machine, tmp_path):
    model, _ = searched(machine, 32.0)
    model.save(tmp_path / "model")
    about = load_model(tmp_path / "model").metadata
    assert about.evaluation["test_rows"] == sum(len(test) for _, test in model._folds)
    assert about.metrics["macro_f1"]["mean"] == pytest.approx(model.leaderboard_.loc[model.best_, "score"])
