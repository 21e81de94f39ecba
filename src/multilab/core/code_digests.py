"""Digests of code: what a module computes, whatever its file is called and wherever it is.

The digest is a Merkle hash: that of a file covers its syntax tree and, instead of the path of each import, the digest
of what is imported. Files that import each other in a circle are digested as one group. Nothing is executed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from multilab.core.digests import json_digest
from multilab.core.files import read_sealed, write_sealed
from multilab.core.paths import data_dir
from multilab.core.syntax import Code, Definition, parse_code, parse_definitions

_PACKAGE = Path(__file__).resolve().parents[1]
_CACHE = "code-digests.json"
_FORMAT = 4  # raised when what is cached of a file changes
_FORMULAS = ("core", "decision", "metrics", "papers", "statistics")


class Node(NamedTuple):
    """A module (``multilab.metrics.auc``), or a definition in one (``multilab.metrics.auc:macro_auc``).

    Attributes
    ----------
    content : str
        Digest of its own content.
    imports : list of (str, list of str)
        Of each import its text and the nodes that it reads.
    strings : list of str
        The strings of a module that are identifiers.
    """

    content: str
    imports: list[tuple[str, list[str]]]
    strings: Sequence[str] = ()


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
def formulas_digest(*more: str) -> str:
    """Return the sha256 of the files that may decide a metric: of their names and bytes, whatever they import.

    Parameters
    ----------
    *more : str
        Further folders and files of this package, e.g. ``"datasets"`` or ``"experiments/tables.py"``.

    Returns
    -------
    str
        Digest that any edit moves, also one of a comment: computing metrics again is cheap, an old number is not.
    """
    digest = hashlib.sha256()
    for path in map(_PACKAGE.joinpath, sorted({*_FORMULAS, *more})):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(_PACKAGE).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@functools.cache
def definition_digest(name: str, within: str) -> str:
    """Return the sha256 of one function of a module, or method of a class, and of what it uses.

    Parameters
    ----------
    name : str
        Dotted name, e.g. ``"multilab.metrics.auc.macro_auc"``.
    within : str
        Only imports of this package are followed. Of its own module only the definitions count that the function uses,
        and the statements that define nothing.

    Returns
    -------
    str
        Digest that another function of the module does not move.
    """
    (module, *_), attribute = package_modules(name, ("",))
    node = module if ":" in module else f"{module}:{attribute}"
    digest = merkle_digest(node, lambda other: package_node(other, (within,)), _digests((within,)))
    save_parsed_code()
    return digest


@functools.cache
def registered_functions() -> dict[str, str]:
    """Return the metrics, name and dotted name: the functions that the decorator registers; nothing is imported."""
    names = re.compile(r"(?ms)^@metric\b.*?^def (\w+)")
    found: dict[str, str] = {}
    for file in [*sorted(_PACKAGE.glob("metrics/*.py")), *sorted(_PACKAGE.glob("papers/*/metrics.py"))]:
        module = ".".join((_PACKAGE.name, *file.relative_to(_PACKAGE).with_suffix("").parts))
        found |= {name: f"{module}.{name}" for name in names.findall(file.read_text("utf-8"))}
    return found


def reached_modules(roots: Iterable[str], read: Callable[[str], Node]) -> dict[str, Node]:
    """Return the nodes that some nodes read, these included, each by its name."""
    reached: dict[str, Node] = {}
    waiting = list(roots)
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached[name] = read(name)
            waiting += [target for _, targets in reached[name].imports for target in targets]
    return reached


@functools.cache
def _digests(within: tuple[str, ...]) -> dict[str, str]:
    """Return the digests known in this process, by node."""
    return {}


@functools.cache
def package_node(node: str, within: tuple[str, ...]) -> Node:
    """Return the content of a module of this package, or of a definition in one, and its imports."""
    module, _, definition = node.partition(":")
    path = str(_module_file(module))
    if not definition:
        code = read_code(path, module)
        reads = [read for reference, name in code.imports if (read := _import(reference, name, within))]
        return Node(code.text, reads, code.strings)
    part = _definitions(path, module)[definition]
    reads = [read for reference, name in part.imports if (read := _import(reference, name, within))]
    return Node(part.text, [*reads, *((name, [f"{module}:{name}"]) for name in part.uses)])


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
        for target in (target for _, targets in nodes[name].imports for target in targets if target not in digests):
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

    def known(target: str) -> str:
        return digests.get(target) or f"circle {nodes[target].content}"

    return json_digest([node.content, sorted([text, sorted(map(known, targets))] for text, targets in node.imports)])


@functools.cache
def _module_file(name: str) -> str | None:
    """Return the file of a module of this package; called thousands of times for a few keys."""
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
    followed = [name for name in modules if _is_within(name, within)]
    return [_registered(name, attribute.partition(".")[0]) for name in followed], attribute


def _registered(module: str, name: str) -> str:
    """Return the node of a metric, else that of its module: another metric of the file must not move the digest."""
    dotted = f"{module}.{name}"
    return f"{module}:{name}" if dotted == registered_functions().get(name) else module


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


def read_code(path: str, module: str) -> Code:
    """Return what a file computes, with the digest of its syntax tree as its text.

    Parsing takes most of the time of a stage with nothing to do, so its result is cached in the data folder for as long
    as the file has the same content. Times of files are not trusted: copying and unpacking set them at will.
    """
    return Code(*_parsed(path, module, "", lambda content, package: _hashed(parse_code(content, package))))


def _definitions(path: str, module: str) -> dict[str, Definition]:
    """Return the definitions of a file, with digests as texts; cached like `read_code`."""

    def parse(content: bytes, package: str) -> Any:
        return {name: _hashed(part) for name, part in parse_definitions(content, package).items()}

    return {name: Definition(*part) for name, part in _parsed(path, module, ":", parse).items()}


def _hashed(part: Any) -> Any:
    return part._replace(text=hashlib.sha256(part.text.encode()).hexdigest())


def _parsed(path: str, module: str, kind: str, parse: Callable[[bytes, str], Any]) -> Any:
    content = Path(path).read_bytes()
    cached, mark = _cached(), [_FORMAT, module, hashlib.sha256(content).hexdigest()]
    if cached.get(path + kind, [None])[0] != mark:
        package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
        cached[path + kind] = [mark, parse(content, package)]
        _new.append(path)
    return cached[path + kind][1]


_new: list[str] = []  # files parsed since the last save_parsed_code()


@functools.cache
def _cached() -> dict[str, list[Any]]:
    try:
        cached: dict[str, list[Any]] = read_sealed(data_dir() / _CACHE)
        return cached
    except (OSError, ValueError):
        return {}


def save_parsed_code() -> None:
    """Save what `read_code` parsed for the next process."""
    if _new and data_dir().is_dir():
        _new.clear()
        with contextlib.suppress(OSError):  # a folder that is shared read-only
            write_sealed(data_dir() / _CACHE, _cached())
