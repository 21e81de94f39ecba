"""A laboratory for multi-label learning.

``import multilab`` is cheap: the packages (``multilab.metrics``, ``multilab.datasets``, ``multilab.methods``, ...)
are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.2.0"

_PACKAGES = (
    "cells",
    "comparison",
    "datasets",
    "decision",
    "experiments",
    "metrics",
    "methods",
    "mlflow_metrics",
    "model_selection",
    "models",
    "papers",
    "printed",
    "reports",
    "statistics",
    "testing",
)

__all__ = ["AutoMultiLabel", "__version__", "compare", "conf_dir", "evaluate", *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        try:
            return importlib.import_module(f"multilab.{name}")
        except ModuleNotFoundError as error:
            from multilab.core.lazy import imported_by_name

            if imported_by_name():
                raise
            raise AttributeError(str(error)) from error  # what hasattr, inspect.getmembers and help() expect
    if name == "conf_dir":
        from multilab.core import conf_dir

        return conf_dir
    if name in ("AutoMultiLabel", "compare", "evaluate"):
        from multilab import comparison

        return getattr(comparison, name)
    from multilab.core.lazy import renamed

    return renamed(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
