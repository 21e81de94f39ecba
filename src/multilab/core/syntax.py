"""Syntax trees as text: what a Python file computes, without what cannot change a number.

The text is the same on all supported versions of Python, which ``ast.dump`` is not. Left out are comments, formatting,
docstrings, ``__all__``, ``pass``, the text of raised errors, and imports for type checkers. Imports are returned apart,
so that their order, and whether they are at the top of a file or in a function, does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Imports = list[tuple[str, str]]
"""Dotted references and the names they are bound to; without a name, an attribute of an imported module."""

_NO_EFFECT = {"ctx", "kind", "type_comment", "type_ignores"}


def parse_code(content: bytes, package: str) -> tuple[str, Imports]:
    """Return the text of a file's syntax tree, and its imports.

    Parameters
    ----------
    content : bytes
        The file.
    package : str
        The package that its relative imports start from.
    """
    tree = ast.parse(content)
    imports = {pair for node in _nodes(tree) for pair in _imported(node, package)}
    names = dict(sorted((name, reference) for reference, name in imports))
    attributes = {(reference, "") for reference in _attributes(tree, names)}
    return _text(tree), sorted(imports | attributes)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree but those for type checkers only."""
    for child in ast.iter_child_nodes(tree):
        if not _for_type_checkers(child):
            yield child
            yield from _nodes(child)


def _for_type_checkers(node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or node.orelse:
        return False
    return getattr(node.test, "id", getattr(node.test, "attr", "")) == "TYPE_CHECKING"


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """Yield what an import statement refers to: the reference, and the name it is bound to."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield from [(alias.name, alias.asname)] if alias.asname else [(top, top), (alias.name, "")]
    elif isinstance(node, ast.ImportFrom) and node.module not in ("__future__", "typing"):
        parents = package.split(".")
        stem = [*parents[: len(parents) - node.level + 1]] if node.level else []
        for alias in node.names:
            yield ".".join([*stem, *filter(None, [node.module]), alias.name]), alias.asname or alias.name


def _attributes(tree: ast.AST, names: dict[str, str]) -> Iterator[str]:
    """Yield the dotted references of attributes of imported names: ``methods.MLkNN`` may load a file lazily."""
    for node in _nodes(tree):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in names:
            yield ".".join([names[node.id], *reversed(parts)])


def _text(node: object, raised: bool = False) -> str:
    """Return a node as text: its class and the fields that are not empty."""
    if isinstance(node, list):
        return f"[{','.join(_text(item, raised) for item in node if not _without_effect(item))}]"
    if raised and (isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)):
        return "Message"
    if isinstance(node, ast.JoinedStr):
        return f"JoinedStr[{','.join(_pieces(node))}]"
    if not isinstance(node, ast.AST):
        return ascii(node)
    fields = [
        f"{name}={_text(value, raised or isinstance(node, ast.Raise))}"
        for name in node._fields
        if name not in _NO_EFFECT and (value := getattr(node, name, None)) is not None and value != []
    ]
    return f"{type(node).__name__}({','.join(fields)})"


def _pieces(node: ast.JoinedStr) -> Iterator[str]:
    """Yield the pieces of an f-string; versions of Python cut its constant text differently."""
    text = ""
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            text += str(piece.value)
            continue
        if text:
            yield ascii(text)
        text = ""
        yield _text(piece)
    if text:
        yield ascii(text)


def _without_effect(node: object) -> bool:
    """Tell whether a statement cannot change a result, or is counted elsewhere."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [getattr(target, "id", "") for target in targets] == ["__all__"]
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Import | ast.ImportFrom) or (
        isinstance(node, ast.AST) and _for_type_checkers(node)
    )
