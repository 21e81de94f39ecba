"""Discovery of the classes of this package in its files, without a list of methods."""

import importlib
import inspect
import re
from functools import cache
from pathlib import Path

from multilab.core.messages import closest, pip_install

_ROOT = Path(__file__).resolve().parent
_PACKAGE = __name__.rpartition(".")[0]
# A class statement at the margin; text inside a docstring does not start with "class X(" or "class X:" there.
_CLASS = re.compile(r"^class ([A-Za-z]\w*)\s*[(:]", re.MULTILINE)


# A package above this one whose estimators meet the same contract; only its name is known here.
_ABOVE = "decision"

# What the modules of some methods import at their top and only an extra installs.
_OPTIONAL = ("torch", "tabm", "omikuji")


def public_classes(package: str = "methods") -> dict[str, str]:
    """Return the public top-level classes of a package, by name, without importing anything.

    Parameters
    ----------
    package : {"methods", "decision"}

    Returns
    -------
    dict of str to str
        Class name -> dotted name of its module.

    Raises
    ------
    ImportError
        If two files define a class of the same name.
    """
    modules: dict[str, str] = {}
    root = _ROOT.parent / package
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root).with_suffix("")
        if path.name.startswith("_") or any(part.startswith((".", "_")) for part in relative.parts):
            continue
        module = ".".join((_PACKAGE.rpartition(".")[0], package, *relative.parts))
        for name in _classes_of(path, path.stat().st_mtime_ns):
            if name in modules:
                raise ImportError(f"two methods are called {name}: in {modules[name]} and in {module}; rename one")
            modules[name] = module
    return modules


@cache
def _classes_of(path: Path, changed: int) -> list[str]:
    """Return the classes of a file, which is read again where it was changed."""
    return _CLASS.findall(path.read_text(encoding="utf-8"))


def find_class(name: str) -> type:
    """Return the public class called ``name``; its module is imported.

    Raises
    ------
    AttributeError
        If no file of the package defines it.
    ImportError
        If the packages that it needs (an extra) are not installed.
    """
    classes = public_classes()
    module = classes.get(name)
    if module is None:
        match = closest(name, classes)
        hint = f"; did you mean {match}?" if match else ""
        raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}{hint}")
    cls = _class(module, name)
    if isinstance(cls, ModuleNotFoundError):
        package = str(cls.name)
        raise ImportError(
            f"{name} needs the package {package}, which is not installed: {pip_install(package)}", name=package
        ) from cls
    return cls


def _class(module: str, name: str) -> type | ModuleNotFoundError:
    """Return a class, or the error of its module where a package of an extra is missing."""
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name not in _OPTIONAL:
            raise
        return error


def all_estimators() -> list[type]:
    """Return every public estimator class of ``multilab.methods`` and ``multilab.decision``, in alphabetical order.

    An estimator is a subclass of ``sklearn.base.BaseEstimator`` outside ``multilab.methods.base`` that is not
    abstract. All modules of the two packages are imported, except those that need an extra that is not installed.
    """
    from sklearn.base import BaseEstimator

    modules = sorted((public_classes() | public_classes(_ABOVE)).items())
    above = importlib.import_module(f"{_PACKAGE.rpartition('.')[0]}.{_ABOVE}")
    found = {name: _class(module, name) for name, module in modules if module != f"{_PACKAGE}.base"}
    classes = [getattr(above, name, c) for name, c in found.items()]  # a package may publish a subclass of the name
    return [c for c in classes if isinstance(c, type) and issubclass(c, BaseEstimator) and not inspect.isabstract(c)]
