"""Lazy imports of the names of a package, and public names that were renamed."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

RENAMED: dict[str, tuple[str, str]] = {}
"""Old public names, each with the new name and the first version without the old one, with their modules:
``{"multilab.methods.MLKNN": ("multilab.methods.MLkNN", "0.4")}``."""


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package with lazily imported names.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    modules : mapping of str to sequence of str
        The names that each module of the package defines.

    Examples
    --------
    >>> __getattr__, __dir__, __all__ = lazy_names("multilab.core", {"digests": ["json_digest"]})
    >>> __all__
    ['json_digest']
    >>> __getattr__("json_digest").__module__
    'multilab.core.digests'
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name in homes:
            try:
                return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
            except ModuleNotFoundError as error:
                if imported_by_name():
                    raise
                raise AttributeError(str(error)) from error  # what hasattr, inspect.getmembers and help() expect
        return renamed(package, name)

    return load, lambda: sorted(homes), sorted(homes)


def renamed(package: str, name: str) -> Any:
    """Return what an old name of a package is called now, with a FutureWarning; call it in ``__getattr__``.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    name : str
        The name that the package does not define.

    Raises
    ------
    AttributeError
        If :data:`RENAMED` does not have the name.

    Examples
    --------
    >>> from multilab.core.lazy import renamed
    >>> renamed("multilab.core", "digest")
    Traceback (most recent call last):
    AttributeError: module 'multilab.core' has no attribute 'digest'
    """
    if (old := f"{package}.{name}") not in RENAMED:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    new, removed_in = RENAMED[old]
    message = f"{old} is deprecated and will be removed in multilab {removed_in}; use {new}"
    warnings.warn(message, FutureWarning, stacklevel=3)  # the line that uses the name
    module, _, attribute = new.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def imported_by_name() -> bool:
    """Return whether the ``__getattr__`` of a package that calls this serves ``from package import name``.

    That statement first calls ``hasattr``, so that an AttributeError does not reach the user.
    """
    return sys._getframe(2).f_code.co_name == "_handle_fromlist"
