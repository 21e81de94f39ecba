"""Digests of code: what a module computes, whatever its file is called and wherever it is.

The digest is a Merkle hash: that of a file covers its syntax tree and, instead of the path of each import, the digest
of what is imported. Files that import each other in a circle are digested as one group. Nothing is executed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from multilab.core.digests import json_digest
from multilab.core.files import read_json, write_atomically
from multilab.core.paths import data_dir
from multilab.core.syntax import Imports, parse_code

_PACKAGE = Path(__file__).resolve().parents[1]
_CACHE = "code-digests.json"
_FORMAT = 3  # raised when what is cached of a file changes

Node = tuple[str, list[tuple[str, list[str]]]]
"""Digest of a file's own content, and of each import its text and the nodes that it reads."""


def code_digest(module: str, within: str | Iterable[str]) -> str:
    """Return the sha256 of the code of a module, its imports included.

    Parameters
    ----------
    module : str
        Dotted name of a module or of something in it, e.g. ``"multilab.methods.neighbours.mlknn"``.
    within : str or iterable of str
        Only imports of these packages are followed, e.g. ``"multilab.methods"``.

    Returns
    -------
    str
        Digest that neither the names of the files move, nor what :mod:`multilab.core.syntax` leaves out. A package's
        ``__init__`` counts only when it is imported from; a name that a package loads lazily
        (``from multilab.methods import MLkNN``) leads to the file that defines it.
    """
    packages = (within,) if isinstance(within, str) else tuple(within)
    modules, _ = package_modules(module, ("",))
    digests = [merkle_digest(m, lambda name: package_node(name, packages), _digests(packages)) for m in modules]
    save_parsed_code()
    return json_digest(sorted(digests))


@functools.cache
def _digests(within: tuple[str, ...]) -> dict[str, str]:
    """Return the digests known in this process, by module."""
    return {}


def package_node(module: str, within: tuple[str, ...]) -> Node:
    """Return the content of a module of this package, and its imports."""
    own, imports = read_code(str(_module_file(module)), module)
    return own, [read for reference, name in imports if (read := _import(reference, name, within))]


def _import(reference: str, bound: str, within: tuple[str, ...]) -> tuple[str, list[str]] | None:
    """Return an import of this package's code: without the path of a module of the package, with its name elsewhere."""
    if reference.partition(".")[0] != _PACKAGE.name:
        return (f"{reference} as {bound}", []) if bound else None
    modules, attribute = package_modules(reference, within)
    return (f"{attribute} as {bound}", modules) if bound or modules else None


def merkle_digest(root: str, read: Callable[[str], Node], digests: dict[str, str]) -> str:
    """Return the digest of a node and all it reads, circles included (Tarjan's strongly connected components).

    Parameters
    ----------
    root : str
        Name of the node.
    read : callable
        Returns a node by name.
    digests : dict
        Digests by name; extended by those of all nodes reached.
    """
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    nodes: dict[str, Node] = {}

    def visit(name: str) -> None:
        index[name] = lowest[name] = len(index)
        stack.append(name)
        nodes[name] = read(name)
        for target in (target for _, targets in nodes[name][1] for target in targets if target not in digests):
            if target not in index:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in stack:
                lowest[name] = min(lowest[name], index[target])
        if lowest[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            own = {member: _own_digest(nodes[member], nodes, digests) for member in group}
            circle = [sorted(own.values())] if len(group) > 1 else []
            digests.update({member: json_digest([own[member], *circle]) for member in group})

    if root not in digests:
        visit(root)
    return digests[root]


def _own_digest(node: Node, nodes: dict[str, Node], digests: dict[str, str]) -> str:
    """Return the digest of a node; one of its own circle is represented by its content."""
    content, imports = node
    reads = [[text, sorted(digests.get(t) or f"circle {nodes[t][0]}" for t in targets)] for text, targets in imports]
    return json_digest([content, sorted(reads)])


def _module_file(name: str) -> str | None:
    """Return the file of a module of this package; called thousands of times for a few keys, so without Path."""
    parts = name.split(".")
    if parts[0] != _PACKAGE.name:
        return None
    base = os.path.join(_PACKAGE, *parts[1:])
    return next((path for path in (f"{base}.py", os.path.join(base, "__init__.py")) if os.path.isfile(path)), None)


def package_modules(reference: str, within: tuple[str, ...]) -> tuple[list[str], str]:
    """Return the modules that a dotted reference to this package reads, those within some packages, and the rest."""
    module, attribute = reference, ""
    while module and _module_file(module) is None:
        module, _, name = module.rpartition(".")
        attribute = f"{name}.{attribute}".strip(".")
    if not module:
        return [], attribute
    modules = [module]
    if attribute and any(prefix.startswith(module) or module.startswith(prefix) for prefix in within):
        modules = _lazy_homes(str(_module_file(module)), module, attribute.partition(".")[0]) or modules
    return [name for name in modules if _is_within(name, within)], attribute


def _is_within(module: str, packages: tuple[str, ...]) -> bool:
    return any(not package or module == package or module.startswith(package + ".") for package in packages)


@functools.lru_cache(maxsize=1024)
def _lazy_homes(path: str, package: str, name: str) -> list[str]:
    """Return the modules that define a name which a package's ``__getattr__`` loads, found without importing them."""
    if not path.endswith("__init__.py") or "__getattr__" not in Path(path).read_text("utf-8"):
        return []
    defines = re.compile(rf"^(?:class|def|async def) {re.escape(name)}\b|^{re.escape(name)}\b[^=\n]*=", re.MULTILINE)
    folder = Path(path).parent
    files = [file for file in sorted(folder.rglob("*.py")) if defines.search(file.read_text("utf-8"))]
    return [".".join((package, *file.relative_to(folder).with_suffix("").parts)) for file in files]


def read_code(path: str, module: str) -> tuple[str, Imports]:
    """Return the digest of a file's syntax tree, and its imports.

    Parsing takes most of the time of a stage with nothing to do, so its result is cached in the data folder for as long
    as the file has the same content. Times of files are not trusted: copying and unpacking set them at will.
    """
    content = Path(path).read_bytes()
    cached, mark = _cached(), [_FORMAT, module, hashlib.sha256(content).hexdigest()]
    if cached.get(path, [None])[0] != mark:
        package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
        text, imports = parse_code(content, package)
        cached[path] = [mark, hashlib.sha256(text.encode()).hexdigest(), imports]
        _new.append(path)
    return cached[path][1], cached[path][2]


_new: list[str] = []  # files parsed since the last save_parsed_code()


@functools.cache
def _cached() -> dict[str, list[Any]]:
    try:
        cached = read_json(data_dir() / _CACHE)
        return cached if isinstance(cached, dict) and all(len(entry) == 3 for entry in cached.values()) else {}
    except (OSError, ValueError, TypeError):
        return {}


def save_parsed_code() -> None:
    """Save what `read_code` parsed for the next process."""
    if _new and data_dir().is_dir():
        _new.clear()
        with contextlib.suppress(OSError):  # a folder that is shared read-only
            write_atomically(data_dir() / _CACHE, json.dumps(_cached()))
