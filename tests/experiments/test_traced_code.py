"""What a cell executes is in its key: every method is run and traced, and each module that was executed is edited."""

from __future__ import annotations

import ast
import sys
import threading
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import multilab
from helpers.code_copy import forget
from multilab.experiments import fitting
from multilab.experiments.cells import Cell, split_refs
from multilab.experiments.conf import entrant_names, package_names
from multilab.experiments.errors import ExperimentError
from multilab.experiments.method import Method, load_method
from multilab.experiments.running import run_cell
from multilab.experiments.search import search
from multilab.experiments.store import Store
from multilab.experiments.study import ObservedShare, Tuning
from multilab.model_selection import indices_digest

pytestmark = pytest.mark.slow

SOURCE = Path(multilab.__file__).parent
PROTOCOL = {"kfold": 2, "stratify": 1, "seed": 0}
TUNE = Tuning(n_trials=2, folds=2, metric="macro_f1")

# Executed by a cell and in no key, with the reason.
KEYS, STORAGE = "computes keys", "stores what the modules in the key compute"
SETTINGS, NAMES_OF_MODULES = "settings, which are in the key", "finds the module of a name"
NOT_IN_KEYS = {
    "__init__": NAMES_OF_MODULES,
    "core/code_digests": KEYS,
    "core/digests": KEYS,
    "core/external_code": KEYS,
    "core/files": STORAGE,
    "core/lazy": NAMES_OF_MODULES,
    "core/locks": "locks",
    "core/messages": "messages",
    "core/parallel": "how many fits run side by side, which changes no result",
    "core/paths": "names of folders",
    "core/settings": SETTINGS,
    "core/syntax": KEYS,
    "core/tables": "reads data frames; a cell has arrays of numbers, which it returns as they are",
    "core/text": "messages",
    "experiments/cells": KEYS,
    "experiments/chosen_metrics": KEYS,
    "experiments/conf": SETTINGS,
    "experiments/trials": STORAGE,
    "experiments/fit_costs": "seconds and memory, number of BLAS threads",
    "experiments/method": "settings, which are in the key; how a search sets them is in the key of tuned cells",
    "experiments/study": SETTINGS,
    "experiments/running": "hands data from one module in the key to the next; measures and stores",
    "experiments/store": STORAGE,
    "methods/__init__": NAMES_OF_MODULES,
    "methods/discovery": NAMES_OF_MODULES,
    "model_selection/train_test_splits": "digests of splits, which are in the key",
}


class Trace:
    """The functions of this package that are executed, but for those that run while a module is imported."""

    def __init__(self) -> None:
        self.executed: set[tuple[str, int]] = set()
        self._importing = threading.local()

    def __call__(self, frame, event, _arg) -> None:
        code = frame.f_code
        if code.co_name == "<module>":
            depth = getattr(self._importing, "depth", 0)
            self._importing.depth = depth + (event == "call") - (event == "return")
        elif event == "call" and not getattr(self._importing, "depth", 0) and "multilab" in code.co_filename:
            self.executed.add((code.co_filename, code.co_firstlineno))

    def __enter__(self) -> Trace:
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def lines(self) -> dict[str, set[int]]:
        """Return the first lines of the executed functions by module: ``methods/base``."""
        lines = defaultdict(set)
        for file, line in self.executed:
            if Path(file).is_relative_to(SOURCE):
                lines[Path(file).relative_to(SOURCE).with_suffix("").as_posix()].add(line)
        return lines


@pytest.fixture(scope="module")
def small():
    """Forty training and twenty test rows of the toy data with four labels."""
    with pytest.MonkeyPatch.context() as patch:
        data = fitting._dataset("genes-toy")
        rows = np.arange(60)
        rows_of = type("Split", (), {"train": rows[:40], "test": rows[40:]})
        toy = type("Toy", (), {"X": data.X[:60, :8], "Y": data.Y[:60, :4], "digest": data.digest})
        patch.setattr(fitting, "_dataset", lambda name: toy)
        patch.setattr(fitting, "_splits", lambda dataset, protocol: [rows_of, rows_of])
        yield replace(split_refs("genes-toy", PROTOCOL)[0], digest=indices_digest(rows[:40], rows[40:]))


def small_method(name: str) -> Method:
    method = load_method(name)
    if len(method.base_scores) > 1:
        return method.with_params({"base_scores": ["mlknn", "br_logistic"]})
    return method if method.base_scores else method.with_params(method.check_params)


def cell_of(name: str, ref) -> Cell:
    """Return the cell of a method, or of a tuned one (``tuned mlknn``)."""
    kind, _, method = name.rpartition(" ")
    observed = ObservedShare(0.7, "absent") if kind == "partly observed" else None
    return Cell("train", ref, small_method(method), tune=TUNE if kind == "tuned" else None, observed=observed)


def installed(name: str) -> bool:
    try:
        load_method(name).check_installed()
    except ExperimentError:
        return False
    return True


NAMES = [
    *filter(installed, sorted({*package_names("method"), *entrant_names("method")})),
    "tuned mlknn",
    "tuned mlwse_l1",
]


@pytest.fixture(scope="module")
def executed(small, tmp_path_factory):
    """The executed functions of the cell of each method: module -> method -> first lines."""
    store = Store(tmp_path_factory.mktemp("traced"))
    by_module: dict[str, dict[str, set[int]]] = defaultdict(dict)
    for name in NAMES:
        cell = cell_of(name, small)
        for read in cell.reads:
            run_cell(read, store)
        with Trace() as trace:
            assert run_cell(cell, store) is None, name
        for module, lines in trace.lines().items():
            by_module[module][name] = lines
    return by_module


def edited(text: str, line: int | None) -> str:
    """Return a module with another value, or with another statement in the top-level function of a line."""
    if line is None:
        return f"{text}\n_EDITED = 1\n"
    first = next(
        node.body[0].lineno
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
        and min([node.lineno, *(d.lineno for d in node.decorator_list)]) <= line <= (node.end_lineno or 0)
    )
    lines = text.splitlines(keepends=True)
    return "".join([*lines[: first - 1], "    _edited = 1\n", *lines[first - 1 :]])


def test_an_edit_of_an_executed_module_moves_the_key_or_is_listed(executed, small, source, package_copy):
    """Metrics are edited function by function: a cell counts those that it chooses by, not the others of their file."""

    def keys(names):
        forget()
        return {name: cell_of(name, small).key for name in names}

    before, unmoved = keys(NAMES), set()
    for module, methods in sorted(executed.items()):
        if module in NOT_IN_KEYS:
            continue
        path = package_copy / f"{module}.py"
        text = path.read_text()
        formulas = "\n@metric(" in text
        wanted = defaultdict(set)
        for name, lines in methods.items():
            for line in lines if formulas else [None]:
                wanted[line].add(name)
        for line, names in wanted.items():
            path.write_text(edited(text, line))
            after = keys(names)
            unmoved |= {(module, line, name) for name in names if after[name] == before[name]}
        path.write_text(text)
    assert not unmoved


@pytest.mark.parametrize("name", ["imldf", "decide_macro_f1", "stack_mlwse", "tuned mlknn"])
def test_without_the_listed_modules_the_arrays_are_the_same(small, name, tmp_path, monkeypatch):
    """Nothing is stored, locked, measured or handed on by them, nor read; a search keeps its trials in a database."""
    cell, store = cell_of(name, small), Store(tmp_path / "cells")
    assert run_cell(cell, store) is None
    readers = [module for module in sys.modules.values() if "table_values" in getattr(module, "__dict__", {})]
    assert readers
    for module in readers:
        monkeypatch.setattr(module, "table_values", lambda table: table)

    def direct(cell, method, inputs):
        return fitting.fit_and_score(cell, method, inputs, nullcontext(), nullcontext())[1]

    scores = []
    for read in cell.reads:
        inputs = fitting.feature_inputs(read)
        own = read.kind == "scores"
        scores.append(
            fitting.out_of_fold(read, inputs, nullcontext()) if own else direct(read, read.method, inputs)["scores"]
        )
    inputs = fitting.base_score_inputs(cell, scores) if scores else fitting.feature_inputs(cell)
    method = cell.method
    if cell.tune:
        tune = replace(cell.tune, storage=f"sqlite:///{tmp_path}/trials.db")
        folds = [fitting.feature_inputs(inner) for inner in fitting.inner_cells(cell, tune)]
        best = search(cell, tune, folds, tmp_path / "journal").best
        method = replace(method, params={**method.params, **best})
    arrays, stored = direct(cell, method, inputs), store.arrays(cell.key)
    assert arrays.keys() == stored.keys()
    for array in arrays:
        np.testing.assert_array_equal(arrays[array], stored[array])
