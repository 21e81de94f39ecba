"""Estimators in scikit-learn's style: one method is one file, looked up by its class name.

``multilab.methods.MLkNN`` is looked up in the files of this package when it is first used, so that a new file
needs no entry anywhere and ``import multilab.methods`` stays cheap. Modules here import each other by
module, never from here: the identity of a result follows those imports.
"""

from importlib.util import find_spec
from typing import Any

from multilab.core.lazy import RENAMED, imported_by_name, renamed
from multilab.methods.discovery import all_estimators, find_class, public_classes

__all__ = ["all_estimators"]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # names that the import system looks up
        raise AttributeError(f"module 'multilab.methods' has no attribute {name!r}")
    if f"{__name__}.{name}" in RENAMED:
        return renamed(__name__, name)
    importing = imported_by_name()
    try:
        return find_class(name)
    except AttributeError as error:
        if importing and find_spec(f"{__name__}.{name}") is None:
            raise ImportError(str(error), name=__name__) from None
        raise
    except ImportError as error:
        if importing or error.name is None:
            raise
        raise AttributeError(str(error)) from error.__cause__  # what hasattr, inspect.getmembers and help() expect


def __dir__() -> list[str]:
    return sorted({*__all__, *public_classes()})
