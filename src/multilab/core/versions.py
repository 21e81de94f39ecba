"""Declared versions of the code that computes results, which are part of the keys of stored results.

A class declares ``results_version = 2`` in its body, a module of functions ``RESULTS_VERSION = 2``, and a metric
``version=2`` in its decorator. What declares nothing has version 1. Whoever changes numbers raises the version of what
computes them: `declared_versions` finds it from every class and function that names it, however many steps away, so
that all results that the change can reach get new keys. A change that moves no number raises nothing, and no result is
lost. ``multilab gate`` recomputes all methods and names the class whose numbers moved under an unchanged version.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

__all__ = ["declared_versions", "files_digest", "formulas_digest", "major_minor", "reached", "strings_in"]

_PACKAGE = Path(__file__).resolve().parents[1]
_FORMULAS = ("core", "decision", "metrics", "papers", "statistics")
# The score of scikit-learn's interface measures a model. Where a class keeps its annotations depends on the Python.
_NO_RESULT = ("score", "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__")


def declared_versions(things: Iterable[Any], own: Collection[str] = ()) -> dict[str, list[int]]:
    """Return the versions above 1 of classes, functions and modules and of all that these name, transitively.

    Parameters
    ----------
    things : iterable
        Classes and functions. Of a module all classes and functions that it defines.
    own : collection of str
        Modules outside the package whose names are followed, too. Their versions do not count.

    Returns
    -------
    dict of str to list of int
        By the name of the class, the metric or the module, without its package: what moves to another file keeps its
        version. A list holds the versions of all that have one name.

    Notes
    -----
    Names are those of the compiled code: global names and imports inside functions. A name that is only computed
    (``getattr(module, name)``, a string in a table) is not seen, nor is what an object holds.

    Examples
    --------
    >>> from multilab.core.versions import declared_versions
    >>> class Solver:
    ...     results_version = 3
    >>> Solver.__module__ = "multilab.methods.solver"
    >>> declared_versions([Solver])
    {'Solver': [3]}
    """
    found = _versions(tuple(things), frozenset(own))
    return {name: list(versions) for name, versions in found.items()}


@functools.lru_cache(maxsize=1024)  # a process never loads other code
def _versions(things: tuple[Any, ...], own: frozenset[str]) -> dict[str, list[int]]:
    declared = {one for thing in reached(things, own) for one in _declared(thing)}
    versions: dict[str, list[int]] = {}
    for name, module, version in sorted(declared):
        if version != 1 and module.partition(".")[0] == _PACKAGE.name:
            versions.setdefault(name, []).append(version)
    return {name: sorted(found) for name, found in versions.items()}


@functools.lru_cache(maxsize=1024)
def reached(things: tuple[Any, ...], own: frozenset[str] = frozenset()) -> tuple[Any, ...]:
    """Return the classes, functions, modules and collections that some name, transitively, these included."""
    seen: dict[int, Any] = {}  # holds the objects, so that an id stays theirs
    waiting = list(things)
    while waiting:
        thing = _unwrapped(waiting.pop())
        if id(thing) in seen or not _followed(thing, own):
            continue
        seen[id(thing)] = thing
        waiting += _named(thing, own)
    return tuple(seen.values())


def strings_in(code: Iterable[Any], without: str) -> Iterator[str]:
    """Yield the strings in functions, and in the collections that they name, of all packages but one."""
    for thing in code:
        if isinstance(thing, FunctionType) and not thing.__module__.startswith(without):
            named = [thing.__globals__.get(name) for name in _names(thing.__code__)]
            for texts in (thing.__code__.co_consts, *(one for one in named if isinstance(one, list | tuple | set))):
                yield from (one for one in texts if isinstance(one, str))


def _unwrapped(thing: Any) -> Any:
    """Return the function behind decorators, properties and partial calls."""
    if isinstance(thing, FunctionType) and not hasattr(thing, "__wrapped__"):
        return thing
    for name in ("func", "fget", "__func__", "__wrapped__"):
        inner = inspect.getattr_static(thing, name, None) if not isinstance(thing, type | ModuleType) else None
        if callable(inner):
            return _unwrapped(inner)
    return thing


def _followed(thing: Any, own: Collection[str]) -> bool:
    if isinstance(thing, dict | list | tuple | set | frozenset):
        return True
    if not isinstance(thing, type | FunctionType | ModuleType):
        return False
    module = thing.__name__ if isinstance(thing, ModuleType) else str(thing.__module__)
    return module.partition(".")[0] == _PACKAGE.name or module in own


def _declared(thing: Any) -> Iterator[tuple[str, str, int]]:
    """Yield name, module and version of a class or function, and of its module."""
    if isinstance(thing, type | FunctionType):
        yield thing.__name__, thing.__module__, vars(thing).get("results_version", 1)
    module = thing if isinstance(thing, ModuleType) else sys.modules.get(getattr(thing, "__module__", ""))
    if module is not None:
        name = module.__name__
        yield name.rpartition(".")[2], name, getattr(module, "RESULTS_VERSION", 1)


def _named(thing: Any, own: Collection[str]) -> Iterator[Any]:
    """Yield what a class, a function, a module or a collection names."""
    if isinstance(thing, dict):
        yield from thing.values()
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from thing
    elif isinstance(thing, ModuleType):
        yield from (one for one in vars(thing).values() if getattr(one, "__module__", None) == thing.__name__)
    elif isinstance(thing, type):
        yield from thing.__mro__
        yield from (value for name, value in vars(thing).items() if name not in _NO_RESULT)
    elif isinstance(thing, FunctionType):
        names = _names(thing.__code__)
        values = [thing.__globals__[name] for name in names if name in thing.__globals__]
        values += [_module(name) for name in names if name.startswith(f"{_PACKAGE.name}.")]
        for value in values:  # grows: an attribute of a module may be a module
            if not isinstance(value, ModuleType):
                yield value
            elif _followed(value, own):
                known = [getattr(value, name) for name in names if hasattr(value, name)]
                values += [one for one in known if one not in values]
        for cell in thing.__closure__ or ():
            yield from [cell.cell_contents] if _filled(cell) else []


@functools.cache
def _names(code: CodeType) -> frozenset[str]:
    """Return the names of a function's code, those of the functions in it included."""
    inner = [_names(one) for one in code.co_consts if isinstance(one, CodeType)]
    return frozenset(code.co_names).union(*inner)


def _module(name: str) -> Any:
    """Return a module that a function imports."""
    try:
        return importlib.import_module(name)
    except ImportError:  # of an optional library
        return None


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def major_minor(version: str) -> str:
    """Return the first two numbers of a version: what counts of a library in keys.

    Examples
    --------
    >>> from multilab.core.versions import major_minor
    >>> major_minor("2.4.1"), major_minor("1.17.0rc1")
    ('2.4', '1.17')
    """
    return ".".join(version.split(".")[:2])


@functools.cache
def files_digest(*parts: str) -> str:
    """Return the sha256 of files of this package: of their names and bytes, whatever they import.

    For what is cheap to make again and must never be out of date: any edit moves it, also one of a comment.

    Parameters
    ----------
    *parts : str
        Folders and files of this package, e.g. ``"datasets"`` or ``"cells/rows.py"``.
    """
    digest = hashlib.sha256()
    for path in map(_PACKAGE.joinpath, sorted(set(parts))):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(_PACKAGE).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def formulas_digest(*more: str) -> str:
    """Return the `files_digest` of the files that may decide a metric, and of others."""
    return files_digest(*_FORMULAS, *more)
