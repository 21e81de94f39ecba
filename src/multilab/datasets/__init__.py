"""Benchmark data: cards, files, canonical matrices and splits.

``load("emotions")`` returns a :class:`Dataset`, ``splits("emotions", {"kfold": 5, "stratify": 1})`` its
folds. Names are imported when they are first used, so that ``prepared_meta`` and ``split_digests`` stay
free of NumPy.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Card": "catalogue",
    "Dataset": "dataset",
    "DatasetError": "errors",
    "DatasetWarning": "errors",
    "IterativeStratifiedKFold": "folds",
    "Split": "folds",
    "card": "catalogue",
    "card_folders": "catalogue",
    "cards": "catalogue",
    "check": "reading",
    "describe": "description",
    "fetch": "fetching",
    "indices_digest": "folds",
    "load": "prepared",
    "make_splits": "folds",
    "normalise_protocol": "protocol",
    "prepare": "prepared",
    "prepared_meta": "prepared",
    "read": "reading",
    "sample_scenario": "synthetic",
    "split_digests": "sidecars",
    "splits": "sidecars",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
