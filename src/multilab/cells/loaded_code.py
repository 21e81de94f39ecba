"""Files of this package that may decide a result: their digests as loaded, and those that a result can depend on.

A record holds the digests of all of them that the process had loaded. Recomputing what an edit cannot reach would be a
waste, so `reached` follows the imports of the classes and functions that compute a result.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.cells.environment import installed_version, package_commit
from multilab.cells.store import Store
from multilab.core.digests import sha256_digests
from multilab.core.external_code import imports_in

__all__ = ["code_of", "files_today", "loaded_files", "note_loaded", "package_files", "reached"]

_PACKAGE = Path(__file__).resolve().parents[1]
_LAYERS = ("core", "datasets", "decision", "methods", "metrics", "model_selection", "papers")
_STEPS = (
    *(f"cells/{name}.py" for name in ("features", "fitting", "pipeline", "rows", "seeds")),
    "experiments/search.py",
)
"""The files around the estimators."""

_IN_THE_KEY = ("multilab.datasets", "multilab.model_selection")
"""Packages whose products, data and rows, have digests in the key, which are compared when they are loaded. Of these
only modules count that are imported by their own name: the encoder of tables, the splitter of inner folds."""

_loaded: dict[str, str] = {}


@functools.cache
def package_files() -> dict[str, str]:
    """Return the files that may decide a result, relative to the package, by the name of their module."""
    paths = [path for layer in _LAYERS for path in (_PACKAGE / layer).rglob("*.py")]
    paths += [_PACKAGE / name for name in _STEPS]
    files = sorted(path.relative_to(_PACKAGE) for path in paths)
    return {".".join((_PACKAGE.name, *f.with_suffix("").parts)).removesuffix(".__init__"): f.as_posix() for f in files}


def _digests(files: Iterable[str]) -> dict[str, str]:
    """Return the beginning of the sha256 of files that exist: of the package, or with a complete path."""
    contents = {}
    for file in files:
        with contextlib.suppress(OSError):
            contents[file] = (_PACKAGE / file).read_bytes()
    return {file: digest[:12] for file, digest in sha256_digests(contents).items()}


def _as_loaded(files: Mapping[str, str]) -> dict[str, str]:
    """Return the digests that files, by their modules, had when this process first saw them loaded."""
    if new := [file for name, file in files.items() if name in sys.modules and file not in _loaded]:
        _loaded.update(_digests(new))
    return {file: _loaded[file] for file in files.values() if file in _loaded}


def loaded_files() -> dict[str, str]:
    """Return the digests of the package's files that this process has loaded, as they were when first seen."""
    return _as_loaded(package_files())


def files_today() -> dict[str, str | None]:
    """Return the digests of the files that a computation would use now: as this process has loaded them, or on disk."""
    files = package_files().values()
    return {**dict.fromkeys(files), **_digests(files), **loaded_files()}


def note_loaded(item: Any) -> None:
    """Take the digests of what is loaded before the work on an item, which may take hours: of files as they are now."""
    loaded_files()
    _own_files(item)


def _own_files(item: Any) -> dict[str, str]:
    """Return the digests of the user's modules that compute an item, as they were when first seen."""
    found = {name: getattr(sys.modules.get(name), "__file__", None) for name in sorted(item.own_modules)}
    paths = {name: path for name, path in found.items() if path}
    digests = _as_loaded(paths)
    return {name: digests[path] for name, path in paths.items() if path in digests}


def code_of(item: Any, reads: Iterable[Any], store: Store) -> dict[str, Any]:
    """Return what the record of a cell, or of a unit of an analysis, says of the code that has computed it.

    ``reads`` are the cells that it reads, of which the record says what they held then.
    """
    versions = {name: installed_version(name) for name in item.identity["versions"]}
    return {
        "commit": package_commit(),
        "versions": {name: number for name, number in versions.items() if number},
        "files": loaded_files(),
        "own_files": _own_files(item),
        "reads": {cell.key: store.arrays_digest(cell.key)[:12] for cell in reads if store.has(cell.key)},
    }


def reached(item: Any) -> frozenset[str]:
    """Return the files on which a cell, or a unit of an analysis, can depend.

    Code runs only if what computes the result imports it, however many steps away. Classes in settings and metrics are
    looked up by name, and are in ``item.code()``. A user's own files may import anything.
    """
    if item.own_modules:
        return frozenset(package_files().values())
    modules = frozenset(getattr(thing, "__module__", None) or thing.__name__ for thing in item.code())
    return _imported_from(modules) | {"cells/rows.py"}  # which imports the encoder, too, for tables only


@functools.lru_cache(maxsize=1024)
def _imported_from(modules: frozenset[str]) -> frozenset[str]:
    files, seen, waiting = package_files(), set[str](), list(modules)
    while waiting:
        name = waiting.pop()
        if name in files and name not in seen:
            seen.add(name)
            waiting += _imports(name)
    return frozenset(files[name] for name in seen)


@functools.cache
def _imports(module: str) -> frozenset[str]:
    """Return the modules that one of the package imports; all of a package from which it imports more than modules."""
    files, modules = package_files(), set[str]()
    path = _PACKAGE / files[module]
    try:
        references = list(imports_in(path.read_bytes(), module, path))
    except (OSError, SyntaxError):  # in the middle of an edit
        return frozenset(files)
    for reference in references:
        chain = [name for name in itertools.accumulate(reference.split("."), "{}.{}".format) if name in files]
        modules.update(chain)
        in_the_key = chain and chain[-1] in _IN_THE_KEY and not module.startswith("multilab.papers.")
        if chain and not in_the_key and files[chain[-1]].endswith("__init__.py"):
            modules.update(name for name in files if name.startswith(f"{chain[-1]}."))
    return frozenset(modules)
