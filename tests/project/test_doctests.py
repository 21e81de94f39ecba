"""The examples in the docstrings run, and public functions have one."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import multilab
from multilab import datasets, metrics, model_selection, statistics

PACKAGE = Path(multilab.__file__).parent
MODULES = sorted(
    ".".join(("multilab", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text("utf-8")
)
NEEDS = {"multilab.arena.elo": ("bencheval",), "multilab.methods.networks.tabm": ("torch", "tabm")}
"""Packages of extras that the examples of a module need."""
FINDER = doctest.DocTestFinder(exclude_empty=True)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_run(module: str) -> None:
    for package in NEEDS.get(module, ()):
        pytest.importorskip(package)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    tests = [test for test in FINDER.find(importlib.import_module(module)) if test.examples]
    assert tests, f"{module} has examples that doctest does not find"
    output: list[str] = []
    for test in tests:
        runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)


PUBLIC = [
    *(("metrics", name) for name in ("score_all", "preset", *metrics.registry.DEFINED)),
    *(("model_selection", name) for name in model_selection.__all__),
    *(("datasets", name) for name in datasets.__all__),
    *(("statistics", name) for name in statistics.__all__),
]
PACKAGES = {"metrics": metrics, "model_selection": model_selection, "datasets": datasets, "statistics": statistics}


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_a_public_function_has_an_example(package: str, name: str) -> None:
    thing = getattr(PACKAGES[package], name)
    if inspect.isclass(thing) and (issubclass(thing, Exception | Warning) or "split" not in vars(thing)):
        return  # results that a function returns
    assert "Examples\n--------" in inspect.getdoc(thing)
