"""No file imports itself, directly or through others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def modules(checkout):
    """Return the syntax tree of every module of the package, by dotted name."""
    root = checkout / "src"
    paths = sorted((root / "multilab").rglob("*.py"))
    return {_name(path.relative_to(root)): (path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths}


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the import statements of a tree, those in functions included, those for type checkers not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from imports(other)
        else:
            yield from imports(node)


def imported(statement: ast.Import | ast.ImportFrom, known: set[str]) -> set[str]:
    """Return the modules of the package that a statement imports; a name of a package is its module, if it is one."""
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names} & known
    module = statement.module or ""
    submodules = {f"{module}.{alias.name}" for alias in statement.names} & known
    names = {alias.name for alias in statement.names if f"{module}.{alias.name}" not in known}
    return submodules | ({module} & known if names else set())


def test_no_import_cycle_between_files(modules):
    graph = {
        name: {target for statement in imports(tree) for target in imported(statement, set(modules))} - {name}
        for name, (_, tree) in modules.items()
    }
    while leaves := [name for name, targets in graph.items() if not targets & graph.keys()]:
        for name in leaves:
            del graph[name]
    while importers := set(graph) - {target for targets in graph.values() for target in targets}:
        for name in importers:
            del graph[name]
    assert {name: sorted(targets & graph.keys()) for name, targets in graph.items()} == {}
