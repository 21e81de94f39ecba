"""The examples in the docstrings run, and public functions have one."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
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
NEEDS = {
    "multilab.arena.elo": ("bencheval",),
    "multilab.methods.forests.omikuji": ("omikuji",),
    "multilab.methods.networks.tabm": ("torch", "tabm"),
}
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
    *(("metrics", name) for name in ("score_all", "preset", *metrics.registry.ALL_METRICS)),
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


def documented_defaults(module: Path) -> Iterator[tuple[str, object, object]]:
    """Give argument, documented and actual default of the functions and classes of a file, where both are literals."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            function = node
        elif isinstance(node, ast.ClassDef):
            made = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
            function = made[0] if made else None
        else:
            continue
        if function is None or not (docstring := ast.get_docstring(node)):
            continue
        given = function.args
        defaults = {argument.arg: value for argument, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)}
        defaults |= {a.arg: value for a, value in zip(reversed(given.args), reversed(given.defaults), strict=False)}
        for name, default in defaults.items():
            said = re.search(rf"^ *(?:\w+, )*{name}(?:, \w+)* : .*default[ =](.*)$", docstring, re.MULTILINE)
            if said and default:
                with suppress(SyntaxError, ValueError):  # in words, or a constant's name
                    yield f"{node.name}({name})", ast.literal_eval(said[1]), ast.literal_eval(default)


def test_documented_defaults_are_those_of_the_signatures() -> None:
    found = [entry for path in sorted(PACKAGE.rglob("*.py")) for entry in documented_defaults(path)]
    assert ("DBPNN(learning_rate_init)", 1e-3, 1e-3) in found
    assert [entry for entry in found if entry[1] != entry[2]] == []
