"""Metrics by which a method's code and settings choose, and their digests, which are part of its key."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from multilab.core import definition_digest
from multilab.core.code_digests import Node, package_modules, package_node, reached_modules, registered_functions

__all__ = ["chosen_metrics", "metric_digests", "names_in", "package_nodes"]

_METRICS = "multilab.metrics"


def metric_digests(names: frozenset[str]) -> dict[str, str]:
    """Return the digests of metrics by name: each of its formula and of what that uses. Unknown names have none."""
    known = registered_functions()
    return {name: definition_digest(known[name], _METRICS)[:16] for name in sorted(names & known.keys())}


def chosen_metrics(nodes: Mapping[str, Node], settings: frozenset[str]) -> frozenset[str]:
    """Return the metrics that code may look up.

    A module looks metrics up if it imports what has the table of metrics (``METRICS``, ``defined``, ``score_all``,
    ``get_scorer``). It chooses by those whose names stand, as strings, in the settings, in this module, or in modules
    that use it; by all metrics if there are none.

    Parameters
    ----------
    nodes : dict of str to Node
        The code: modules with all that they import.
    settings : frozenset of str
        The strings of the settings.
    """
    known = frozenset(registered_functions())
    chosen: frozenset[str] = frozenset()
    users = _users(nodes, f"{_METRICS}.registry")
    tables = {name for name in users if name.startswith(_METRICS) and ":" not in name}
    for name in (name for name in users if not name.startswith(_METRICS)):
        if tables.intersection(_targets(nodes[name])):
            named = {text for user in _users(nodes, name) for text in nodes[user].strings}
            chosen |= known & (settings | named) or known
    return chosen


@functools.lru_cache(maxsize=256)
def package_nodes(target: str, within: tuple[str, ...]) -> dict[str, Node]:
    """Return the code behind a dotted name in this package and all that it imports from the packages ``within``."""
    modules, _ = package_modules(target, ("",))
    return reached_modules(modules, lambda name: package_node(name, within))


def names_in(settings: Any) -> Iterator[str]:
    """Yield the strings anywhere in settings."""
    if isinstance(settings, str):
        yield settings
    elif isinstance(settings, Mapping | list | tuple):
        for item in settings.values() if isinstance(settings, Mapping) else settings:
            yield from names_in(item)


def _targets(node: Node) -> Iterator[str]:
    return (target for _, targets in node.imports for target in targets)


def _users(nodes: Mapping[str, Node], module: str) -> set[str]:
    """Return a module, if it is among the nodes, and all that read it, directly or not."""
    users = {module} & nodes.keys()
    size = 0
    while len(users) > size:
        size = len(users)
        users |= {name for name, node in nodes.items() if users.intersection(_targets(node))}
    return users
