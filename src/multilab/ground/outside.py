"""Identity of code outside this package: versions of installed distributions, digests of files of one's own.

Nothing is executed: modules are found as Python would find them, and their imports are read from their syntax trees.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from multilab.ground.digests import json_digest, keep_read_code, package_code, read_code
from multilab.ground.errors import MultilabError

__all__ = ["OutsideCodeError", "outside_code"]

_PACKAGE = "multilab"
_OTHER_NAMES = {"sklearn": ("scikit-learn",)}


class OutsideCodeError(MultilabError):
    """Code outside the package whose identity cannot be determined."""


def outside_code(targets: Iterable[str], known: Iterable[str] = ()) -> dict[str, Any]:
    """Return what identifies the code behind dotted names outside the package.

    Parameters
    ----------
    targets : iterable of str
        Dotted names of classes or functions, e.g. ``"xgboost.XGBClassifier"``.
    known : iterable of str
        Distributions whose versions are left out, because they are in every key.

    Returns
    -------
    dict
        ``distributions``: name -> version of the installed distributions reached; ``files``: one digest of the syntax
        trees of all other files reached, this package's included. Empty parts are left out. Imports of files are
        followed, imports of distributions are not.

    Raises
    ------
    OutsideCodeError
        If a target is neither in an installed distribution nor in a Python file.
    """
    importlib.invalidate_caches()
    reached = _Reached()
    for target in targets:
        reached.add_target(target)
    reached.follow()
    distributions = {name: version for name, version in reached.distributions.items() if name not in set(known)}
    files = reached.files | package_code(reached.ours, (_PACKAGE,))
    keep_read_code()
    found: dict[str, Any] = {"distributions": dict(sorted(distributions.items()))} if distributions else {}
    return found | ({"files": json_digest(files)} if files else {})


@dataclass
class _Reached:
    """The code reached so far, and the imports still to be followed."""

    distributions: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    ours: set[str] = field(default_factory=set)
    queue: list[str] = field(default_factory=list)
    tops: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add_target(self, target: str) -> None:
        top = target.partition(".")[0]
        if top in sys.stdlib_module_names:
            self.distributions["python"] = f"{sys.version_info.major}.{sys.version_info.minor}"
            return
        if top == "__main__" or "." not in target:
            raise OutsideCodeError(
                f"{target}: only code in a module can be identified; move it into a file and import it"
            )
        if not self._installed(target) and not self._read(target):
            raise OutsideCodeError(f"{target}: no module {top!r} is found on the Python path")

    def follow(self) -> None:
        """Follow the imports of the files reached."""
        done: set[str] = set()
        while self.queue:
            reference = self.queue.pop()
            top = reference.partition(".")[0]
            if reference in done or top in sys.stdlib_module_names:
                continue
            done.add(reference)
            if top == _PACKAGE:
                self.ours.add(reference)
            elif not self._installed(reference) and not self._read(reference):
                self.files[top] = "not there"  # an optional import: installing it later may change the result

    def _installed(self, reference: str) -> bool:
        """Record the distribution that a reference belongs to, if it is in one."""
        top = reference.partition(".")[0]
        found = self.tops.get(top)
        if found is None:
            chain = _chain(reference)
            found = _distribution(top, chain[-1][1]) if chain else None
            if found and chain[0][0] == top:  # a namespace package may be spread over several distributions
                self.tops[top] = found
        if found:
            self.distributions[found[0]] = found[1]
        return found is not None

    def _read(self, reference: str) -> bool:
        """Record the files of a reference, its parent packages first; tell whether there are any."""
        chain = _chain(reference)
        for name, path in chain:
            if name in self.files:
                continue
            if path.suffix != ".py":
                raise OutsideCodeError(
                    f"{reference}: {path} is compiled and in no installed distribution, so a change of it could not "
                    f"be noticed; install it with pip, not as editable"
                )
            try:
                self.files[name], imports = read_code(str(path), name)
            except (OSError, SyntaxError, ValueError) as error:
                raise OutsideCodeError(f"{reference}: cannot read {path}: {error}") from None
            self.queue += imports
        return bool(chain)


def _chain(reference: str) -> list[tuple[str, Path]]:
    """Return name and file of the modules that importing a dotted reference runs: its packages, then the module."""
    top, *rest = reference.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        return []
    has_file = spec.has_location and spec.origin is not None
    chain = [(top, Path(str(spec.origin)))] if has_file else []
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    name = top
    for part in rest:
        name = f"{name}.{part}"
        file = _module_in(folders, part)
        if file is not None:
            chain.append((name, file))
        folders = [folder / part for folder in folders if (folder / part).is_dir()]
        if not folders:
            break
    return chain


def _module_in(folders: list[Path], name: str) -> Path | None:
    endings = (f"{name}/__init__.py", f"{name}.py", *(f"{name}{suffix}" for suffix in EXTENSION_SUFFIXES))
    return next((folder / ending for folder in folders for ending in endings if (folder / ending).is_file()), None)


@functools.lru_cache(maxsize=1024)
def _distribution(top: str, file: Path) -> tuple[str, str] | None:
    """Return name and version of the installed distribution that lists a module's file.

    The distribution is usually called as the module; the table of all distributions takes a fifth of a second. An
    editable install does not list the file, which then counts as a file of one's own.
    """
    from importlib.metadata import packages_distributions  # not for everyone who imports multilab

    for name in (top, *_OTHER_NAMES.get(top, ())):
        if found := _listed(name, file):
            return found
    if any(file.is_relative_to(folder) for folder in _folders_of_distributions(tuple(sys.path))):
        for name in sorted(set(packages_distributions().get(top, ()))):
            if found := _listed(name, file):
                return found
    return None


def _listed(name: str, file: Path) -> tuple[str, str] | None:
    """Return name and version of a distribution if it is installed and lists a file."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution(name)
        relative = file.resolve().relative_to(Path(str(installed.locate_file(""))).resolve()).as_posix()
    except (PackageNotFoundError, ValueError):
        return None
    record = installed.read_text("RECORD")
    if record is None:  # installed by the operating system, which keeps its own list
        listed = bool({"site-packages", "dist-packages"} & set(file.parts))
    else:
        listed = f"\n{relative}," in f"\n{record}"
    return (installed.metadata["Name"], installed.version) if listed else None


@functools.cache
def _folders_of_distributions(path: tuple[str, ...]) -> list[Path]:
    """Return the folders of the Python path that hold installed distributions."""
    folders = [Path(folder or ".") for folder in path]
    return [folder for folder in folders if folder.is_dir() and any(folder.glob("*.dist-info"))]
