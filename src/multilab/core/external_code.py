"""Identity of code outside this package: versions of installed distributions, digests of the user's files.

Nothing is executed: modules are located as Python would find them, and their imports are read from their syntax trees.
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

from multilab.core.code_digests import (
    Node,
    merkle_digest,
    package_modules,
    package_node,
    reached_modules,
    read_code,
    save_parsed_code,
)
from multilab.core.digests import json_digest
from multilab.core.errors import MultilabError

_PACKAGE = "multilab"
_MISSING = "not there"
_OTHER_NAMES = {"sklearn": ("scikit-learn",)}


class OutsideCodeError(MultilabError):
    """Code outside the package whose identity cannot be determined."""


@dataclass(frozen=True)
class OutsideCode:
    """Identity of code outside the package.

    Attributes
    ----------
    distributions : dict
        Versions of the installed distributions reached, by name.
    files : dict
        For each target in a file, by its dotted name, the digest of the files reached from there, whatever they are
        called. Imports of files are followed, those of this package included, imports of distributions are not.
    environment : tuple of str
        Environment variables that these files read by a literal name.
    unseen : tuple of str
        What they read that this identity does not cover, each as a text: file, line and what is read.
    nodes : dict
        The nodes of the Merkle digest that are reached, by name.
    """

    distributions: dict[str, str]
    files: dict[str, str]
    environment: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    nodes: dict[str, Node] = field(default_factory=dict)


def outside_code(targets: Iterable[str], known: Iterable[str] = ()) -> OutsideCode:
    """Return what identifies the code behind dotted names outside the package.

    Parameters
    ----------
    targets : iterable of str
        Dotted names of classes or functions, e.g. ``"xgboost.XGBClassifier"``.
    known : iterable of str
        Distributions whose versions are left out, because they are in every key.

    Raises
    ------
    OutsideCodeError
        If a target is neither in an installed distribution nor in a Python file.
    """
    importlib.invalidate_caches()
    reached = _Reached()
    digests: dict[str, str] = {}
    modules = {target: reached.target(target) for target in targets}
    files = {
        target: json_digest(sorted(merkle_digest(name, reached.node, digests) for name in names))
        for target, names in modules.items()
        if names
    }
    nodes = reached_modules((name for names in modules.values() for name in names), reached.node)
    save_parsed_code()
    distributions = {name: version for name, version in reached.distributions.items() if name not in set(known)}
    codes = {name: read_code(str(path), name) for name, path in reached.paths.items()}
    environment = {variable for code in codes.values() for variable in code.environment}
    unseen = [f"{reached.paths[name]}: {text}" for name, code in codes.items() for text in code.unseen]
    return OutsideCode(dict(sorted(distributions.items())), files, tuple(sorted(environment)), tuple(unseen), nodes)


@dataclass
class _Reached:
    """The distributions and files reached so far."""

    distributions: dict[str, str] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)
    tops: dict[str, tuple[str, str]] = field(default_factory=dict)

    def target(self, target: str) -> list[str]:
        """Return the modules in files that a target reads."""
        top = target.partition(".")[0]
        if top in sys.stdlib_module_names:
            self.distributions["python"] = f"{sys.version_info.major}.{sys.version_info.minor}"
        elif top == "__main__" or "." not in target:
            raise OutsideCodeError(
                f"{target}: only code in a module can be identified; move it into a file and import it"
            )
        modules, text = self.modules(target)
        if text == _MISSING:
            raise OutsideCodeError(f"{target}: no module {top!r} is found on the Python path")
        return modules

    def node(self, name: str) -> Node:
        """Return the content of a module in a file, and what it imports."""
        if name.partition(".")[0] == _PACKAGE:
            return package_node(name, (_PACKAGE,))
        try:
            code = read_code(str(self.paths[name]), name)
        except (OSError, SyntaxError, ValueError) as error:
            raise OutsideCodeError(f"{name}: cannot read {self.paths[name]}: {error}") from None
        reads = [(*self.modules(reference), bound) for reference, bound in code.imports]
        imports = [(f"{text} as {bound}", modules) for modules, text, bound in reads if bound or modules]
        return Node(code.text, imports, code.strings)

    def modules(self, reference: str) -> tuple[list[str], str]:
        """Return the modules in files that a reference reads, its parent packages first, and its text without them."""
        top = reference.partition(".")[0]
        if top == _PACKAGE:
            return package_modules(reference, (_PACKAGE,))
        if top in sys.stdlib_module_names or self._installed(reference):
            return [], reference
        chain = _chain(reference)
        for name, path in chain:
            if path.suffix != ".py":
                raise OutsideCodeError(
                    f"{reference}: {path} is compiled and in no installed distribution, so a change of it could not "
                    f"be noticed; install it with pip, not as editable"
                )
            self.paths[name] = path
        if not chain:
            return [], _MISSING  # an optional import: installing it later may change the result
        return [name for name, _ in chain], reference.removeprefix(chain[-1][0]).lstrip(".")

    def _installed(self, reference: str) -> bool:
        """Record the distribution that a reference belongs to, if it is in one."""
        top = reference.partition(".")[0]
        distribution = self.tops.get(top)
        if distribution is None:
            chain = _chain(reference)
            distribution = _distribution(top, chain[-1][1]) if chain else None
            if distribution and chain[0][0] == top:  # a namespace package may be spread over several distributions
                self.tops[top] = distribution
        if distribution:
            self.distributions[distribution[0]] = distribution[1]
        return distribution is not None


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
    editable install does not list the file, which then counts as a user file.
    """
    from importlib.metadata import packages_distributions  # not for everyone who imports multilab

    for name in (top, *_OTHER_NAMES.get(top, ())):
        if distribution := _listed(name, file):
            return distribution
    if any(file.is_relative_to(folder) for folder in _folders_of_distributions(tuple(sys.path))):
        for name in sorted(set(packages_distributions().get(top, ()))):
            if distribution := _listed(name, file):
                return distribution
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
