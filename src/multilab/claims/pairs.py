"""Names and texts of comparisons of two methods in the numbers of a finding, and their readers.

Pages and the texts of papers show them as they are in ``claims.json``.
"""

from __future__ import annotations

import re

__all__ = ["balance_of", "balance_text", "pair_name", "pair_of"]

_AGAINST = " against "


def pair_name(method: str, other: str) -> str:
    """Return the name of a number that compares two methods: ``mlwse_l1 against br``."""
    return f"{method}{_AGAINST}{other}"


def pair_of(name: str) -> tuple[str, str] | None:
    """Return the two methods of the name of a number, ``None`` if it compares no two methods."""
    method, found, other = name.partition(_AGAINST)
    return (method, other) if found else None


def balance_text(won: int, lost: int) -> str:
    """Return cells won and lost as text, to which more may be added: ``26-34``."""
    return f"{won}-{lost}"


def balance_of(text: str) -> tuple[int, int] | None:
    """Return cells won and lost from a text that begins with them, ``None`` if it does not."""
    found = re.match(r"(\d+)-(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None
