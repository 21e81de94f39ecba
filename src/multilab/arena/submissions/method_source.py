"""Declarations of a method file and its settings, read without running them: licence, authors, dependencies.

The check of imports is best effort: it finds packages that an author forgot to declare, and code can get around it. The
container in which a submission is recomputed is the protection.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any

import yaml

from multilab.arena.errors import ArenaError

__all__ = ["MethodSource", "check_dependencies", "read_source"]

_ALWAYS = ("multilab", "numpy", "scipy", "scikit-learn", "pandas", "joblib", "pyyaml")
_TAG = r"(?m)^\s*#\s*SPDX-{}:[ \t]*(\S.*?)[ \t]*$"
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*(?: (?:AND|OR|WITH) [A-Za-z0-9][A-Za-z0-9.+-]*){0,4}")
_SCRIPT = re.compile(r"(?m)^# /// script$\s(?P<content>(?:^#(?:| .*)$\s)+)^# ///$")  # PEP 723
_PINNED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[\w, .-]*\])?\s*==\s*([A-Za-z0-9][A-Za-z0-9._!+-]*)")
_IMPORTERS = ("__import__", "exec", "eval", "compile", "__builtins__")
_IMPORTING_ATTRIBUTES = ("__import__", "import_module")
_IMPORTING_MODULES = ("importlib", "runpy", "builtins")
_MAX_DEPTH = 12


@dataclass(frozen=True)
class MethodSource:
    """Licence, authors and dependencies that a method file declares.

    Attributes
    ----------
    licence : str
        SPDX expression, from the line ``# SPDX-License-Identifier: ...``.
    authors : str
        From the lines ``# SPDX-FileCopyrightText: ...``, separated by ``; ``.
    dependencies : dict of str to str
        Pinned versions by distribution, from the block ``# /// script`` of PEP 723.
    """

    licence: str
    authors: str
    dependencies: dict[str, str]


def read_source(name: str, code: str, settings: str) -> MethodSource:
    """Return the declarations of a method file and its YAML; refuse missing ones. Nothing is executed.

    Parameters
    ----------
    name : str
        Name of the method: the file is ``<name>.py``.
    code, settings : str
        Content of the file, empty if the method has none, and of the YAML.

    Raises
    ------
    ArenaError
        If licence or author are missing, a dependency is not pinned, an import is not declared, the code imports
        without an import statement, or the YAML has anchors, tags, interpolations or code that is not declared.

    Notes
    -----
    The check of imports is best effort, no protection from the code: that is the container of the recomputation.
    """
    file = f"{name}.py" if code else f"{name}.yaml"
    licences, authors = (_tags(tag, code or settings) for tag in ("License-Identifier", "FileCopyrightText"))
    if len(licences) != 1 or not _LICENCE.fullmatch(licences[0]):
        reason = f"not {licences[0][:40]!r}" if licences else "there is none"
        raise ArenaError(f"{file}: one line `# SPDX-License-Identifier: BSD-3-Clause` must name your licence, {reason}")
    if not authors:
        raise ArenaError(f"{file}: no author; add a line `# SPDX-FileCopyrightText: 2026 Your Name`")
    declared = _dependencies(file, code or settings)
    known = {_normal(distribution) for distribution in (*_ALWAYS, *declared)}
    imports = [*_imports(file, code)] if code else []
    imports += [(f"{name}.yaml", target) for target in _yaml_targets(name, settings)]
    for location, module in imports:
        _check_import(location, module, name if code else "", known)
    return MethodSource(licences[0], "; ".join(authors), declared)


def check_dependencies(dependencies: Mapping[str, str]) -> None:
    """Refuse dependencies that are not installed in the declared version.

    Raises
    ------
    ArenaError
        With the command that installs them.
    """
    for name, declared in dependencies.items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            installed = "not installed"
        if installed != declared:
            raise ArenaError(f"{name}=={declared} is declared, here it is {installed}: pip install {name}=={declared}")


def _tags(tag: str, text: str) -> list[str]:
    return [value[:200] for value in re.findall(_TAG.format(tag), text)][:20]


def _dependencies(file: str, text: str) -> dict[str, str]:
    """Return the pinned dependencies of the block of PEP 723, none if there is no block."""
    blocks = list(_SCRIPT.finditer(text))
    if len(blocks) > 1:
        raise ArenaError(f"{file}: {len(blocks)} blocks `# /// script`; there may be one")
    if not blocks:
        return {}
    lines = blocks[0]["content"].splitlines()
    try:
        content = tomllib.loads("\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines))
        listed = content.get("dependencies", [])
        pairs = [_PINNED.fullmatch(entry.strip()) for entry in listed]
    except (tomllib.TOMLDecodeError, TypeError, AttributeError) as error:
        raise ArenaError(f"{file}: the block `# /// script` is not valid: {error}") from None
    for entry, pair in zip(listed, pairs, strict=True):
        if pair is None:
            raise ArenaError(f"{file}: dependency {entry[:60]!r} names no version; write it as lightgbm==4.7.0")
    return {pair[1]: pair[2] for pair in pairs if pair}


def _imports(file: str, code: str) -> Iterator[tuple[str, str]]:
    """Yield location and name of every module that a file imports, wherever the statement is."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ArenaError(f"{file}: not valid Python: {error}") from None
    for node in ast.walk(tree):
        location = f"{file}, line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from ((location, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ArenaError(f"{location}: a relative import; a submission is one file")
            yield location, node.module or ""
        elif isinstance(node, ast.Name) and node.id in _IMPORTERS:
            raise _hidden_import(location, node.id)
        elif isinstance(node, ast.Attribute) and node.attr in _IMPORTING_ATTRIBUTES:
            raise _hidden_import(location, node.attr)


def _hidden_import(location: str, name: str) -> ArenaError:
    return ArenaError(f"{location}: {name} hides what is imported; write an import statement")


def _check_import(location: str, module: str, own: str, known: Iterable[str]) -> None:
    """Refuse a module that is neither Python's nor in a declared distribution, and those that import others."""
    top = module.partition(".")[0]
    if top in _IMPORTING_MODULES:
        raise _hidden_import(location, top)
    if top in sys.stdlib_module_names or top in ("multilab", own):
        return
    distributions = _distributions().get(top, [top])
    if not {_normal(distribution) for distribution in distributions} & set(known):
        advice = f'add it, as "{distributions[0]}==VERSION", to `dependencies` of the block `# /// script` (PEP 723)'
        raise ArenaError(f"{location}: {top[:60]!r} is imported but not declared; {advice}, or move its code here")


_distributions = functools.cache(packages_distributions)  # a fifth of a second


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _yaml_targets(name: str, text: str) -> list[str]:
    """Return the names in ``_target_`` and ``path`` of settings; refuse YAML that can grow or read the environment."""
    file, depth = f"{name}.yaml", 0
    if "${" in text:
        raise ArenaError(f"{file}: an interpolation ${{...}}; write the value")
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            tagged = getattr(event, "tag", None) is not None
            if tagged or getattr(event, "anchor", None) is not None or depth > _MAX_DEPTH:
                line = event.start_mark.line + 1
                raise ArenaError(f"{file}, line {line}: an anchor, alias, tag or more than {_MAX_DEPTH} levels")
        content = yaml.safe_load(text)
    except ArenaError:
        raise
    except (yaml.YAMLError, ValueError) as error:
        raise ArenaError(f"{file}: not valid YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ArenaError(f"{file}: not a mapping whose keys are texts")
    if not isinstance(content.get("_target_"), str):
        raise ArenaError(f"{file}: no _target_; name the class there, as {name}.{name.title().replace('_', '')}")
    return list(_strings(content))


def _strings(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for inner, item in value.items():
            yield from _strings(item, str(inner))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str) and (key == "_target_" or (key == "path" and "." in value)):
        yield value
