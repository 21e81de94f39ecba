"""Digests of settings, arrays and code: the identity of everything that is computed."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilab.ground.files import write_atomically
from multilab.ground.places import data_dir

if TYPE_CHECKING:  # NumPy is not imported here, so that keys can be computed in a few milliseconds
    import numpy as np

__all__ = ["array_digest", "canonical_json", "code_digest", "json_digest"]

_PACKAGE = Path(__file__).resolve().parents[1]
_KEPT = "code-digests.json"
_FORMAT = 2  # raised when what is kept of a file changes


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no NaN, floats as Python prints them."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def json_digest(value: Any) -> str:
    """Return the sha256 (64 hex digits) of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def array_digest(*arrays: np.ndarray) -> str:
    """Return one sha256 for dense arrays: their dtypes (little endian), shapes and values in C order."""
    import numpy as np

    sha = hashlib.sha256()
    for array in arrays:
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        sha.update(f"{plain.dtype.str}{plain.shape}".encode())
        sha.update(plain.tobytes())
    return sha.hexdigest()


def code_digest(module: str, within: str | Iterable[str]) -> str:
    """Return the sha256 of what a module's code says, its imports included.

    Parameters
    ----------
    module : str
        Dotted name of a module or of something in it, e.g. ``"multilab.methods.neighbours.mlknn"``.
    within : str or iterable of str
        Only imports of these packages are followed, e.g. ``"multilab.methods"``.

    Returns
    -------
    str
        Digest over the syntax trees without docstrings of all files reached, so that a formatter, a comment or a
        docstring changes nothing. Package ``__init__`` files count only when they are imported from; a name that a
        package loads lazily (``from multilab.methods import MLkNN``) leads to the file that defines it. Nothing is
        executed.
    """
    return json_digest(package_code([module], (within,) if isinstance(within, str) else tuple(within)))


def package_code(references: Iterable[str], within: tuple[str, ...]) -> dict[str, str]:
    """Return the digests of the syntax trees of this package's modules that are reached, by module name."""
    seen: dict[str, str] = {}
    queue = [module for reference in references for module in _modules(reference, ("",))]
    while queue:
        name = queue.pop()
        path = None if name in seen else _module_file(name)
        if path is None:
            continue
        seen[name], imports = read_code(path, name)
        queue += [module for reference in imports for module in _modules(reference, within)]
    keep_read_code()
    return seen


def _module_file(name: str) -> str | None:
    """Return the file of a module of this package; asked thousands of times for a few keys, so without Path objects."""
    parts = name.split(".")
    if parts[0] != _PACKAGE.name:
        return None
    base = os.path.join(_PACKAGE, *parts[1:])
    for path in (f"{base}.py", os.path.join(base, "__init__.py")):
        if os.path.isfile(path):
            return path
    return None


def _modules(reference: str, within: tuple[str, ...]) -> list[str]:
    """Return the modules of this package that a dotted reference reads, as far as they lie within some packages."""
    module, name = reference, ""
    while module and _module_file(module) is None:
        module, _, name = module.rpartition(".")
    if not module:
        return []
    found = [module] if _is_within(module, within) else []
    if name and any(prefix.startswith(module) or module.startswith(prefix) for prefix in within):
        found += [home for home in _lazy_homes(str(_module_file(module)), module, name) if _is_within(home, within)]
    return found


def _is_within(module: str, packages: tuple[str, ...]) -> bool:
    return any(not package or module == package or module.startswith(package + ".") for package in packages)


@functools.lru_cache(maxsize=1024)
def _lazy_homes(path: str, package: str, name: str) -> list[str]:
    """Return the modules that define a name which a package's ``__getattr__`` loads, found without importing them."""
    if not path.endswith("__init__.py") or "\ndef __getattr__(" not in Path(path).read_text("utf-8"):
        return []
    defines = re.compile(rf"^(?:class|def|async def) {re.escape(name)}\b|^{re.escape(name)}\b[^=\n]*=", re.MULTILINE)
    folder = Path(path).parent
    files = [file for file in sorted(folder.rglob("*.py")) if defines.search(file.read_text("utf-8"))]
    return [".".join((package, *file.relative_to(folder).with_suffix("").parts)) for file in files]


def read_code(path: str, module: str) -> tuple[str, list[str]]:
    """Return the digest of a file's syntax tree and the dotted references of its imports.

    Parsing takes most of the time of a stage with nothing to do, so its result is kept in the data folder for as long
    as the file has the same content. Times of files are not trusted: copying and unpacking set them at will.
    """
    content = Path(path).read_bytes()
    kept, mark = _kept(), [_FORMAT, sys.version, module, hashlib.sha256(content).hexdigest()]
    if kept.get(path, [None])[0] != mark:
        kept[path] = [mark, *_parse_code(path, module, content)]
        _new.append(path)
    _, digest, imports = kept[path]
    return digest, imports


_new: list[str] = []  # files parsed since the last keep_read_code()


@functools.cache
def _kept() -> dict[str, list[Any]]:
    try:
        found = json.loads((data_dir() / _KEPT).read_text("utf-8"))
        return found if isinstance(found, dict) and all(len(entry) == 3 for entry in found.values()) else {}
    except (OSError, ValueError, TypeError):
        return {}


def keep_read_code() -> None:
    """Keep what `read_code` parsed for the next process."""
    if _new and data_dir().is_dir():
        _new.clear()
        with contextlib.suppress(OSError):  # a folder that is shared read-only
            write_atomically(data_dir() / _KEPT, json.dumps(_kept()))


def _parse_code(path: str, module: str, content: bytes) -> tuple[str, list[str]]:
    tree = ast.parse(content, path)
    package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
    imports: set[str] = set()
    names: dict[str, str] = {}  # what an imported name stands for
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imports.add(alias.name)
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            stem = node.module or ""
            if node.level:
                stem = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], stem]).strip(".")
            imports.update(f"{stem}.{alias.name}" for alias in node.names)
            names.update({alias.asname or alias.name: f"{stem}.{alias.name}" for alias in node.names})
    imports.update(_attributes(tree, names))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _drop_docstring(node)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), sorted(imports)


def _attributes(tree: ast.AST, names: dict[str, str]) -> set[str]:
    """Return the dotted references of attributes of imported names: ``methods.MLkNN`` may load a file lazily."""
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        parts, at = [node.attr], node.value
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in names:
            found.add(".".join([names[at.id], *reversed(parts)]))
    return found


def _drop_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        node.body = node.body[1:] or [ast.Pass()]
