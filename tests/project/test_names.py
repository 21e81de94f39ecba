"""One name, one thing: a public class or function is defined in one file only."""

from __future__ import annotations

import ast
from collections import defaultdict

ALLOWED = {
    "main": "every stage has one",
    "compute": "every analysis of a paper has one",
    "finish": "every analysis of a paper has one",
    "check": "of a data file, for users; of a claim, a decorator",
}


def test_public_names_are_defined_in_one_file(checkout):
    root = checkout / "src" / "multilab"
    files = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                files[node.name].append(str(path.relative_to(root)))
    twins = {name: paths for name, paths in files.items() if len(set(paths)) > 1 and name not in ALLOWED}
    assert twins == {}


def test_stages_are_thin(checkout):
    lengths = {
        path.name: len(path.read_text(encoding="utf-8").splitlines())
        for path in (checkout / "src" / "multilab" / "stages").glob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > 60} == {}
