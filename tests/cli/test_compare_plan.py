"""Estimates of `multilab compare` before it starts."""

from __future__ import annotations

import io
import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from multilab.cells import execute
from multilab.cells import running as cell_running
from multilab.cells.cell import Cell, split_refs
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method, load_method
from multilab.cells.rows import indices
from multilab.cells.running import run_cell
from multilab.cells.store import Store
from multilab.cli import main
from multilab.comparison import fits
from multilab.comparison.display import Display
from multilab.comparison.fits import run_methods
from multilab.comparison.plan import (
    MethodRun,
    Sizes,
    cost_of,
    duration,
    in_order,
    plan_methods,
    refused_for_missing_labels,
)
from multilab.comparison.portfolio import load_portfolio
from multilab.comparison.scores import CellScores
from multilab.datasets import load

SIZES = Sizes(2000, 100, 10, 0.5)


def entries(patterns):
    refs = split_refs("scenario1", {"kfold": 2, "stratify": 1, "seed": 0})
    chosen = load_portfolio().select(patterns)
    return [MethodRun(member, [Cell("train", ref, member.method) for ref in refs]) for member in chosen]


def run(chosen, store, seconds=600.0):
    end = time.monotonic() + seconds
    with Display(chosen, CellScores(load("scenario1").Y, store, ("macro_f1",)), "scenario1", end, 1) as display:
        run_methods(chosen, store, seconds, end, 1, display)


def test_every_method_of_the_portfolio_has_a_cost_curve_that_grows_with_the_table():
    for name in {member.base for member in load_portfolio().members.values()}:
        small, large = cost_of(name, 500, 20, 5), cost_of(name, 50_000, 500, 50)
        assert small is not None, name
        assert large is not None
        assert large.seconds > small.seconds
        assert large.megabytes >= small.megabytes
        assert small.factor >= 1


def test_on_sparse_rows_linear_methods_come_first_and_nothing_is_standardised(tmp_path):
    portfolio = load_portfolio()
    sizes = Sizes(2000, 20_000, 10, 0.8, entries=12.0)
    (ref, _) = split_refs("scenario1", {"kfold": 2, "stratify": 1, "seed": 0})
    chosen = portfolio.select(None, sparse=True)
    planned = [MethodRun(member, [Cell("train", ref, member.method)]) for member in chosen]
    ordered = in_order(plan_methods(planned, sizes, Store(tmp_path)), portfolio, sizes)
    assert [entry.name for entry in ordered[:2]] == ["br_linear_svm", portfolio.baseline]
    assert {entry.name for entry in ordered[2:4]} == {"br_logistic", "cc_logistic"}
    assert ordered[0].seconds < 1  # by the words of a row, not by all words
    assert all(member.method.preprocessing != "standard" for member in chosen)
    changes = next(m for m in chosen if m.name == "br_logistic").changes  # `fit` must know
    assert changes == {"preprocessing": "none"}
    of_text = next(m for m in portfolio.select(None, text=True) if m.name == "br_logistic")
    assert of_text.changes == {"estimator__solver": "liblinear", "estimator__dual": True}
    assert of_text.method.preprocessing == "standard"
    assert not portfolio.select("br_logistic")[0].changes
    of_bag = next(m for m in portfolio.select(None, bag=True) if m.name == "br_linear_svm")
    assert of_bag.changes["preprocessing"] == of_bag.method.preprocessing == "tfidf"
    stack = next(m for m in chosen if m.name == "mlwse_l1").method
    assert all(load_method(name).preprocessing == "none" for name in stack.base_scores)
    assert portfolio.members["br_logistic"].method.preprocessing == "standard"  # of dense rows


def test_a_method_without_a_curve_has_no_estimate_and_runs_last(tmp_path):
    assert cost_of("no_such_method", 100, 10, 5) is None
    planned = plan_methods(entries("lwmf,br_logistic"), SIZES, Store(tmp_path))
    assert [(entry.name, entry.seconds is None) for entry in planned] == [("br_logistic", False), ("lwmf", True)]
    assert planned[1].expected(1) == "no estimate"


def test_cheap_methods_come_first_and_base_scores_are_part_of_the_estimate(tmp_path):
    planned = plan_methods(entries("mldf,mlwse_l1,label_frequencies"), SIZES, Store(tmp_path))
    assert [entry.name for entry in planned] == ["label_frequencies", "mlwse_l1", "mldf"]
    stacking = planned[1]
    assert stacking.seconds > 2 * cost_of("mlwse_l1", 1000, 30, 10).seconds
    with_members = plan_methods(entries("mlwse_l1,br_logistic,cc_logistic,erf_pct"), SIZES, Store(tmp_path))
    shared = next(entry for entry in with_members if entry.name == "mlwse_l1")
    assert shared.seconds < stacking.seconds  # the members' own fits are counted with the members


@pytest.fixture
def holes(tmp_path, monkeypatch):
    """A dataset with missing labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).round(3)
    Y = (X[:, :2] + rng.normal(size=(60, 2)) > 0).astype(int).astype(str)
    Y[rng.random(Y.shape) < 0.1] = ""
    rows = [",".join([*map(str, x), *y]) for x, y in zip(X, Y, strict=True)]
    (tmp_path / "holes.csv").write_text("\n".join(["x1,x2,x3,f_a,f_b", *rows]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    assert main(["datasets", "add", "holes.csv", "--label-prefix", "f_", "--missing-labels", "keep"]) == 0
    return "holes"


@pytest.mark.slow
def test_every_method_of_the_portfolio_learns_from_missing_labels_or_is_left_out_by_name(holes, capsys):
    refs = split_refs(holes, {"kfold": 2, "stratify": 1, "seed": 0})
    chosen = load_portfolio().select(None)
    every = [MethodRun(member, [Cell("train", ref, member.method) for ref in refs]) for member in chosen]
    refused = {entry.name: refused_for_missing_labels(entry) for entry in every}
    assert refused["mlwse_l1"] == refused["erf_pct"] == "ERFPCT cannot learn from missing labels"
    assert not refused["label_frequencies"]
    store = Store(os.environ["MULTILAB_CELLS"])
    for entry in every:  # what is planned does not fail, and what is left out would
        reason = run_cell(entry.cells[0], store)
        assert (reason is None) == (not refused[entry.name]), (entry.name, reason)
        assert reason is None or "cannot learn from partially observed labels" in reason
    data = load(holes)
    frequencies = store.arrays(every[0].cells[0].key)["scores"][0]
    train = indices(refs[0])[0]
    np.testing.assert_allclose(frequencies, [np.mean(y[y >= 0]) for y in data.Y[train].T], rtol=1e-12)
    capsys.readouterr()
    settings = ["--method", "mlknn,mlwse_l1", "--cv", "2", "--output", "board"]
    assert main(["compare", "--dataset", holes, *settings]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("  mlwse_l1"))
    assert "left out: ERFPCT cannot learn from missing labels" in line
    methods = {m["name"]: m for m in json.loads(Path("board/leaderboard.json").read_text())["methods"]}
    assert (methods["mlwse_l1"]["status"], methods["mlwse_l1"]["note"]) == ("left out", refused["mlwse_l1"])
    assert methods["mlknn"]["status"] == "done"


def test_an_estimator_that_would_take_a_missing_label_for_a_class_is_refused(holes, tmp_path):
    (ref, _) = split_refs(holes, {"kfold": 2, "stratify": 1, "seed": 0})
    method = Method.from_mapping("dummy", {"_target_": "sklearn.dummy.DummyClassifier", "title": "Dummy"})
    reason = run_cell(Cell("train", ref, method), Store(tmp_path / "cells"))
    assert "DummyClassifier cannot learn from partially observed labels" in str(reason)


def test_what_is_stored_costs_nothing(tmp_path):
    store, (entry,) = Store(tmp_path), entries("br_logistic")
    (before,) = plan_methods([entry], SIZES, store)
    estimated = before.seconds
    assert run_cell(entry.cells[0], store) is None
    (after,) = plan_methods([entry], SIZES, store)
    assert after.seconds == pytest.approx(estimated / 2)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_live_leaderboard_is_a_table_on_a_terminal_and_lines_elsewhere(terminal, tmp_path, monkeypatch):
    class Stream(io.StringIO):
        def isatty(self):
            return terminal

    stream, store = Stream(), Store(tmp_path)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    chosen = entries("label_frequencies,mlknn")
    run(chosen, store)
    assert {entry.status for entry in chosen} == {"done"}
    text = stream.getvalue()
    assert "mlknn" in text
    assert ("splits" in text) == terminal
    assert bool(re.search(r"^mlknn +done  macro_f1 0\.\d{4}  ", text, re.MULTILINE)) != terminal


@pytest.mark.slow
def test_a_method_over_its_limit_is_stopped_and_the_next_one_runs(tmp_path, monkeypatch, capsys):
    own = cell_running.run_cell

    limits = []

    def slow(cell, store):
        return time.sleep(3600) if cell.method.name == "br_logistic" else own(cell, store)

    def recorded(cells, store, seconds, *rest):
        limits.append((cells[0].method.name, seconds))
        return within(cells, store, min(seconds, 2.0) if cells[0].method.name == "br_logistic" else seconds, *rest)

    within = execute.run_cells_within
    monkeypatch.setattr(cell_running, "run_cell", slow)
    monkeypatch.setattr(fits, "run_cells_within", recorded)
    store, chosen = Store(tmp_path), entries("br_logistic,label_frequencies")
    chosen[0].seconds, chosen[1].seconds = 0.5, None
    run(chosen, store)
    assert [entry.status for entry in chosen] == ["stopped", "done"]
    names = [name for name, _ in limits]
    assert names == ["br_logistic", "label_frequencies", "label_frequencies", "br_logistic"]  # after all others
    assert limits[0][1] == 30.0  # a twentieth of the budget is more than four times the estimate
    assert limits[3][1] > 60.0  # what is left at the end
    assert "with 0 of 2 splits" in chosen[0].note
    assert "br_logistic          stopped" in capsys.readouterr().err


def test_a_stopped_method_continues_only_if_by_what_it_took_the_rest_fits(tmp_path):
    store, (entry,) = Store(tmp_path), entries("label_frequencies")
    entry.spent = 10.0
    assert fits._rest_of(entry, store) == 20.0  # two splits, none of which ended
    assert run_cell(entry.cells[0], store) is None
    assert fits._rest_of(entry, store) == 10.0


def test_a_method_that_fails_or_does_not_fit_in_memory_is_named(tmp_path, capsys):
    store, chosen = Store(tmp_path), entries("mlknn,br_logistic")
    too_many = [replace(c, method=c.method.with_params({"k": 10**6})) for c in chosen[0].cells]
    chosen = [replace(chosen[0], cells=too_many), replace(chosen[1], megabytes=1e9)]
    run(chosen, store)
    assert [entry.status for entry in chosen] == ["failed", "left out"]
    assert "neighbours" in chosen[0].note
    assert "memory" in chosen[1].note


def test_names_globs_and_the_settings_of_the_portfolio():
    portfolio = load_portfolio()
    assert [c.name for c in portfolio.select("mlknn,'?r_logistic'".replace("'", ""))] == ["mlknn", "br_logistic"]
    assert portfolio.select("mlknn")[0].method.preprocessing == "standard"
    assert portfolio.select("decide_*")[0].why == ""
    with pytest.raises(ExperimentError, match="no method is called 'mlkn'; did you mean 'mlknn'"):
        portfolio.select("mlkn")


def test_a_portfolio_that_is_missing_or_wrong_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path))
    with pytest.raises(ExperimentError, match=str(tmp_path)):
        load_portfolio()
    for text, message in {
        "metrics: [macro_f1]": "methods is missing",
        "{methods: [mlknn], metrics: [macro_f1], baseline: mlknn}": "must be a mapping",
        "{methods: {mlknn: {k: 3}}, metrics: [macro_f1], baseline: mlknn}": "k",
    }.items():
        (tmp_path / "portfolio.yaml").write_text(text)
        with pytest.raises(ExperimentError, match=message):
            load_portfolio()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (3.21, "3.2 s"), (42, "42 s"), (150, "2.5 min"), (5400, "90 min"), (9000, "2.5 h")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
