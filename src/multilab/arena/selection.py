"""Datasets by name, pattern, domain or size."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from multilab.arena.errors import ArenaError
from multilab.core.messages import unknown_name

_COMPARED = re.compile(r"(\w+)(<=|>=|<|>)(\d+(?:\.\d+)?)")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FACTS = ("n", "d", "q", "cardinality", "density")
"""Facts of a dataset that are compared with a number: rows, features, labels, labels per row, the same per label."""


def select_sets(facts: Iterable[Mapping[str, Any]], wanted: str) -> list[str]:
    """Return the names of the datasets that match an expression.

    Parameters
    ----------
    facts : iterable of mapping
        One per dataset: ``name``, ``domain`` (``text``, ``image``, ...) and the numbers :data:`FACTS`.
    wanted : str
        Comma-separated names, patterns (``yahoo-*``) and domains, of which one must match; conditions such as
        ``n<2000`` or ``q>=20`` must all hold.

    Raises
    ------
    ArenaError
        If a name or fact is unknown, or no dataset matches.

    Examples
    --------
    >>> from multilab.arena import select_sets
    >>> facts = [{"name": "enron", "domain": "text", "n": 1702}, {"name": "yeast", "domain": "biology", "n": 2417}]
    >>> select_sets(facts, "text,n<2000")
    ['enron']
    """
    facts = list(facts)
    names, conditions = [], []
    for part in filter(None, (part.strip() for part in wanted.split(","))):
        match = _COMPARED.fullmatch(part)
        if match is None:
            names.append(part)
        elif match[1] not in FACTS:
            raise ArenaError(unknown_name("fact of a dataset", match[1], FACTS))
        else:
            conditions.append((match[1], _OPERATORS[match[2]], float(match[3])))
    if not names and not conditions:
        raise ArenaError(f"sets={wanted!r} names no dataset")
    for name in names:
        if not any(_named(each, name) for each in facts):
            known = sorted({str(each.get("domain")) for each in facts}) + [each["name"] for each in facts]
            raise ArenaError(unknown_name("dataset or domain", name, known))
    chosen = [
        str(each["name"])
        for each in facts
        if (not names or any(_named(each, name) for name in names))
        and all(each.get(fact) is not None and compare(each[fact], limit) for fact, compare, limit in conditions)
    ]
    if not chosen:
        raise ArenaError(f"no dataset matches {wanted!r}")
    return chosen


def sources_of(facts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the source of each dataset from its facts: related ones have the same, others their own name."""
    return {each["name"]: each.get("source", each["name"]) for each in facts}


def _named(facts: Mapping[str, Any], name: str) -> bool:
    return facts.get("domain") == name or fnmatchcase(facts["name"], name)
