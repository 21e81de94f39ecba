"""Ensembles over label groups in skops files, which have no mappings whose keys are tuples."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from multilab.methods.ensembles._label_groups import FittedGroups

__all__ = ["GroupVotes", "restore_groups", "storable_groups"]


class GroupVotes:
    """Content of `FittedGroups` as lists.

    Parameters
    ----------
    groups : list of list of int
    times : list of int
    models, inputs : object
    """

    def __init__(self, groups: list[list[int]], times: list[int], models: Any, inputs: Any) -> None:
        self.groups = groups
        self.times = times
        self.models = models
        self.inputs = inputs


@contextlib.contextmanager
def storable_groups(model: Any) -> Iterator[None]:
    """Replace the `FittedGroups` inside a model by `GroupVotes` while a block runs."""
    replaced = [(owner, name, vars(owner)[name]) for owner, name in _owners(model, FittedGroups)]
    for owner, name, groups in replaced:
        keys = [[int(label) for label in group] for group in groups.times]
        setattr(owner, name, GroupVotes(keys, list(groups.times.values()), groups.models, groups.inputs))
    try:
        yield
    finally:
        for owner, name, groups in replaced:
            setattr(owner, name, groups)


def restore_groups(model: Any) -> None:
    """Replace the `GroupVotes` inside a model by `FittedGroups`."""
    for owner, name in list(_owners(model, GroupVotes)):
        stored = vars(owner)[name]
        times = {tuple(group): n for group, n in zip(stored.groups, stored.times, strict=True)}
        setattr(owner, name, FittedGroups(times, stored.models, stored.inputs))


def _owners(model: Any, kind: type) -> Iterator[tuple[Any, str]]:
    """Yield the objects inside a model with an attribute of a class, and the attribute's name."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, list | tuple):
            waiting += thing
        elif isinstance(thing, dict):
            waiting += thing.values()
        elif type(thing).__module__.startswith(("multilab.", "sklearn.")) and hasattr(thing, "__dict__"):
            for name, value in list(vars(thing).items()):
                if isinstance(value, kind):
                    yield thing, name
                waiting.append(value)
