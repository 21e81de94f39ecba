"""Errors of the package, and the refusal of misspelt keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from multilab.core import MultilabError
from multilab.core.messages import closest


class ClaimsError(MultilabError, ValueError):
    """A paper, a published cell, an erratum or a claim that does not exist or is not well formed."""


class NotYet(ClaimsError):
    """Results that a claim is checked on do not exist yet; the message says what is missing."""


def check_keys(location: str, kind: str, block: Any, known: Collection[str]) -> None:
    """Refuse a block that is not a mapping, or that has an unknown key.

    Raises
    ------
    ClaimsError
        With the location, the key, and the closest known one.
    """
    if not isinstance(block, Mapping):
        raise ClaimsError(f"{location}: expected a mapping with {', '.join(known)}, got {block!r}")
    for key in block:
        if key not in known:
            near = closest(str(key), known)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
            raise ClaimsError(f"{location}: {key!r} is not a key of {kind}; {hint}")
