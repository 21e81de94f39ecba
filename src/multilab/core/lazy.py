"""Lazy imports of the names of a package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


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
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted(homes), sorted(homes)


def imported_by_name() -> bool:
    """Return whether the ``__getattr__`` of a package that calls this serves ``from package import name``.

    That statement first calls ``hasattr``, so that an AttributeError does not reach the user.
    """
    return sys._getframe(2).f_code.co_name == "_handle_fromlist"
