"""What a cell executes is in its key: every method is run and traced, and each module that was executed is edited."""

from __future__ import annotations

import ast
import sys
import threading
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import multilab
from helpers.code_copy import forget
from multilab.experiments import fitting
from multilab.experiments.cells import Cell, split_refs
from multilab.experiments.conf import package_names
from multilab.experiments.errors import ExperimentError
from multilab.experiments.method import Method, load_method
from multilab.experiments.own_settings import entrant_names
from multilab.experiments.running import run_cell
from multilab.experiments.store import Store
from multilab.experiments.study import Tuning

pytestmark = pytest.mark.slow

SOURCE = Path(multilab.__file__).parent
PROTOCOL = {"kfold": 2, "stratify": 1, "seed": 0}
TUNE = Tuning(n_trials=2, folds=2, metric="macro_f1")

# Executed by a cell and in no key, with the reason.
NOT_IN_KEYS = {
    "core": "digests, checksums, files and messages: what they make is compared, stored or shown",
    "datasets": "reads the prepared data, whose digest is in the key",
    "experiments/arguments": "refuses settings",
    "experiments/cell_processes": "starts processes",
    "experiments/cells": "describes the cell: what it returns is the key",
    "experiments/chosen_metrics": "computes keys",
    "experiments/conf": "reads settings, which are in the key",
    "experiments/databases": "storage of trials, which are computed from the seeds in the key",
    "experiments/journals": "storage of trials, which are computed from the seeds in the key",
    "experiments/locks": "locks",
    "experiments/measuring": "seconds and memory",
    "experiments/method": "settings, which are in the key; how a search sets them is in the key of tuned cells",
    "experiments/own_settings": "finds the files of settings, which are in the key",
    "experiments/running": "hands data from one module in the key to the next, measures and stores",
    "experiments/store": "storage",
    "experiments/study": "settings, which are in the key",
    "experiments/threads": "number of BLAS threads",
    "methods/__init__": "finds the module of a class",
    "methods/_discovery": "finds the module of a class",
    "model_selection/protocol": "makes the splits, whose digests are in the key",
    "model_selection/stored_splits": "reads the splits, whose digests are in the key",
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
        toy = type("Toy", (), {"X": data.X[:60, :8], "Y": data.Y[:60, :4]})
        patch.setattr(fitting, "_dataset", lambda name: toy)
        patch.setattr(fitting, "_splits", lambda dataset, protocol: [rows_of, rows_of])
        yield split_refs("genes-toy", PROTOCOL)[0]


def small_method(name: str) -> Method:
    method = load_method(name)
    if len(method.base_scores) > 1:
        return method.with_params({"base_scores": ["mlknn", "br_logistic"]})
    return method if method.base_scores else method.with_params(method.check_params)


def cell_of(name: str, ref) -> Cell:
    """Return the cell of a method, or of a tuned one (``tuned mlknn``)."""
    kind, _, method = name.rpartition(" ")
    return Cell("train", ref, small_method(method), tune=TUNE if kind else None)


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


def reason(module: str) -> str | None:
    return NOT_IN_KEYS.get(module) or NOT_IN_KEYS.get(module.partition("/")[0])


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
        if reason(module):
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
