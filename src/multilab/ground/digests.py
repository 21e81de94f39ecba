"""Digests of settings, arrays and code: the identity of everything that is computed."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import json
import os
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
        Dotted name, e.g. ``"multilab.methods.neighbours.mlknn"``.
    within : str or iterable of str
        Only imports of these packages are followed, e.g. ``"multilab.methods"``.

    Returns
    -------
    str
        Digest over the syntax trees without docstrings of all files reached, so that a formatter, a comment or a
        docstring changes nothing. Package ``__init__`` files count only when ``module`` is itself a package that
        is imported from; nothing is executed.
    """
    prefixes = (within,) if isinstance(within, str) else tuple(within)
    seen: dict[str, str] = {}
    queue = [module]
    while queue:
        name = queue.pop()
        path = None if name in seen else _module_file(name)
        if path is None:
            continue
        stat = path.stat()
        tree, imports = _read_code(str(path), name, stat.st_mtime_ns, stat.st_size)
        seen[name] = tree
        queue += [i for i in map(_imported, imports) if any(i == p or i.startswith(p + ".") for p in prefixes)]
    _keep()
    return json_digest(seen)


def _module_file(name: str) -> Path | None:
    """Return the file of a module of this package; asked thousands of times for a few keys, so without Path objects."""
    parts = name.split(".")
    if parts[0] != _PACKAGE.name:
        return None
    base = os.path.join(_PACKAGE, *parts[1:])
    for path in (f"{base}.py", os.path.join(base, "__init__.py")):
        if os.path.isfile(path):
            return Path(path)
    return None


def _read_code(path: str, module: str, mtime: int, size: int) -> tuple[str, list[str]]:
    """Return the digest of a file's syntax tree and what it imports, ``module`` or ``module:name``.

    Parsing takes most of the time of a stage with nothing to do, so what was read is kept in the data folder for as
    long as the file has the same time (in nanoseconds) and size.
    """
    kept, mark = _kept(), [sys.version, module, mtime, size]
    if kept.get(path, [None])[0] != mark:
        kept[path] = [mark, *_parse_code(path, module)]
        _new.append(path)
    _, digest, imports = kept[path]
    return digest, imports


_new: list[str] = []  # files read since the last _keep()


@functools.cache
def _kept() -> dict[str, list[Any]]:
    try:
        found = json.loads((data_dir() / _KEPT).read_text("utf-8"))
        return found if isinstance(found, dict) and all(len(entry) == 3 for entry in found.values()) else {}
    except (OSError, ValueError, TypeError):
        return {}


def _keep() -> None:
    if _new and data_dir().is_dir():
        _new.clear()
        with contextlib.suppress(OSError):  # a folder that is shared read-only
            write_atomically(data_dir() / _KEPT, json.dumps(_kept()))


def _imported(what: str) -> str:
    """Return the module that an import reads: a name imported from a package may be a module or not."""
    module, _, name = what.partition(":")
    whole = f"{module}.{name}"
    return whole if name and _module_file(whole) else module


def _parse_code(path: str, module: str) -> tuple[str, list[str]]:
    tree = ast.parse(Path(path).read_bytes())
    package = module if Path(path).name == "__init__.py" else module.rpartition(".")[0]
    imports: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            stem = node.module or ""
            if node.level:
                stem = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], stem]).strip(".")
            imports.update(f"{stem}:{alias.name}" for alias in node.names)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _drop_docstring(node)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), sorted(imports)


def _drop_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        node.body = node.body[1:] or [ast.Pass()]
