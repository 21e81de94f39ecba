"""Docstrings of estimators have an example; stacking, ELM and the solvers do not import each other."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from multilab import methods

METHODS = Path(methods.__file__).parent
FAMILIES = sorted(p.name for p in METHODS.iterdir() if (p / "__init__.py").exists() and p.name != "solvers")


def imports(path: Path) -> set[str]:
    """Return the second level of every module of ``multilab.methods`` that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module}
    names |= {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    return {name.split(".")[2] for name in names if name.startswith("multilab.methods.")}


@pytest.mark.parametrize("estimator", methods.all_estimators(), ids=lambda c: c.__name__)
def test_the_docstring_of_an_estimator_has_an_example_and_starts_with_one_line(estimator: type) -> None:
    lines = inspect.cleandoc(estimator.__doc__ or "").splitlines()
    assert lines[0].endswith((".", ":"))
    assert not lines[1]
    assert "Examples" in lines  # run by tests/project/test_doctests.py
    assert f"{estimator.__name__}(" in "".join(line for line in lines if ">>> " in line)


@pytest.mark.parametrize(("package", "others"), [("stacking", ["elm"]), ("elm", ["stacking"]), ("solvers", FAMILIES)])
def test_stacking_elm_and_solvers_do_not_import_each_other(package: str, others: list[str]) -> None:
    for path in (METHODS / package).glob("*.py"):
        assert not imports(path) & set(others), path.name
