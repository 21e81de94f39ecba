"""Seeds by name: independent of order and of the number of jobs."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

__all__ = ["seed_estimator", "seed_for"]


def seed_for(root: int, *axes: str) -> int:
    """Return a seed in [0, 2**31) for a point named by its axes (dataset, split, method, member, ...).

    ``numpy.random.SeedSequence`` is spawned from the hashes of the axis names, one level per axis.
    """
    key = [int.from_bytes(hashlib.sha256(axis.encode()).digest()[:4], "little") for axis in axes]
    return int(np.random.SeedSequence(entropy=root, spawn_key=key).generate_state(1)[0] >> 1)


def seed_estimator(estimator: Any, root: int, *axes: str) -> Any:
    """Set every ``random_state`` of an estimator that is still ``None``, nested ones included, and return it."""
    unset = {
        name: seed_for(root, *axes, name)
        for name, value in sorted(estimator.get_params(deep=True).items())
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    return estimator.set_params(**unset) if unset else estimator
