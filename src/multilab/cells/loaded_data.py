"""Data and splits that a process has loaded: the last two of each."""

from __future__ import annotations

import functools
import json
from typing import Any

from multilab import datasets, model_selection
from multilab.cells.errors import ExperimentError

__all__ = ["forget_loaded", "loaded_dataset", "loaded_splits"]


@functools.lru_cache(maxsize=2)
def loaded_dataset(name: str, digest: str) -> Any:
    """Return a dataset; refuse one with another digest: another command may replace a table meanwhile."""
    data = datasets.load(name)
    if data.digest != digest:
        raise ExperimentError(f"{name} has changed since this command began; run it again")
    return data


@functools.lru_cache(maxsize=2)
def loaded_splits(dataset: str, protocol: str) -> list[Any]:
    """Return the splits of a dataset under a protocol, which is JSON."""
    return model_selection.splits(dataset, json.loads(protocol))


def forget_loaded() -> None:
    """Forget them: other data, or other rows, have their names now."""
    loaded_dataset.cache_clear()
    loaded_splits.cache_clear()
