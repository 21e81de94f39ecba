"""Identity of code outside this package: versions of installed distributions, contents of the user's files.

Modules are located as Python would find them. Of a file its imports are read, also those inside functions.
"""

from __future__ import annotations

import ast
import functools
import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import ModuleType

from multilab.core.digests import json_digest, sha256_digest
from multilab.core.errors import MultilabError

_PACKAGE = "multilab"
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
        For each target in a file, by its dotted name, the digest of the contents of the files that it imports,
        whatever they are called. Imports of distributions and of this package are not followed.
    modules : frozenset of str
        Names of the modules in these files.
    """

    distributions: dict[str, str]
    files: dict[str, str]
    modules: frozenset[str] = frozenset()


def outside_code(targets: Iterable[str], known: Iterable[str] = ()) -> OutsideCode:
    """Return what identifies the code behind dotted names outside the package.

    Parameters
    ----------
    targets : iterable of str
        Dotted names of classes, functions or modules, e.g. ``"xgboost.XGBClassifier"``.
    known : iterable of str
        Distributions whose versions are left out, because they are in every key.

    Raises
    ------
    OutsideCodeError
        If a target is neither in an installed distribution nor in a Python file.
    """
    importlib.invalidate_caches()
    reached = _Reached()
    files = {target: digest for target in targets if (digest := reached.target(target))}
    distributions = {name: version for name, version in reached.distributions.items() if name not in set(known)}
    return OutsideCode(dict(sorted(distributions.items())), files, frozenset(reached.contents))


@dataclass
class _Reached:
    """The distributions and files reached so far."""

    distributions: dict[str, str] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    imports: dict[str, list[str]] = field(default_factory=dict)
    tops: dict[str, tuple[str, str]] = field(default_factory=dict)

    def target(self, target: str) -> str:
        """Return the digest of the files that a target imports, nothing if it is in a distribution."""
        top = target.partition(".")[0]
        if top in sys.stdlib_module_names:
            self.distributions["python"] = f"{sys.version_info.major}.{sys.version_info.minor}"
        elif top == "__main__" or "." not in target:
            raise OutsideCodeError(
                f"{target}: only code in a module can be identified; move it into a file and import it"
            )
        elif find_spec(top) is None:
            raise OutsideCodeError(f"{target}: no module {top!r} is found on the Python path")
        seen: set[str] = set()
        waiting = self.modules(target)
        while waiting:
            if (name := waiting.pop()) not in seen:
                seen.add(name)
                waiting += [module for reference in self.imports[name] for module in self.modules(reference)]
        return json_digest(sorted(self.contents[name] for name in seen)) if seen else ""

    def modules(self, reference: str) -> list[str]:
        """Return the modules in files that a reference runs: its parent packages and itself."""
        top = reference.partition(".")[0]
        if top == _PACKAGE or top in sys.stdlib_module_names or self._installed(reference):
            return []
        chain = _chain(reference)
        for name, path in chain:
            if path.suffix != ".py":
                raise OutsideCodeError(
                    f"{reference}: {path} is compiled and in no installed distribution, so a change of it could not "
                    f"be noticed; install it with pip, not as editable"
                )
            if name not in self.contents:
                try:
                    content = path.read_bytes()
                    self.imports[name] = list(imports_in(content, name, path))
                except (OSError, SyntaxError, ValueError) as error:
                    raise OutsideCodeError(f"{name}: cannot read {path}: {error}") from None
                self.contents[name] = sha256_digest(content)
                _check_unchanged(name, path, self.contents[name])
        return [name for name, _ in chain]

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


_imported: dict[str, tuple[ModuleType, str]] = {}


def _check_unchanged(name: str, path: Path, digest: str) -> None:
    """Refuse a file that this process imported when it was another: its old code would compute under a new key."""
    if (module := sys.modules.get(name)) is None:
        return
    before, known = _imported.setdefault(name, (module, digest))
    if before is not module:
        _imported[name] = module, digest
    elif known != digest:
        raise OutsideCodeError(f"{path} has changed since this process imported it; start again")


def imports_in(content: bytes, module: str, path: Path) -> Iterator[str]:
    """Yield the dotted names that the file of a module imports anywhere in it, relative ones resolved."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            base = resolve_name(base, package) if node.level else base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))


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
