"""Which printed cells an erratum or an alias is about."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from multilab.claims.errors import ClaimsError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KEYS", "mask", "read_yaml"]

KEYS = ("table", "dataset", "method", "metric")
"""What names a printed cell."""


def mask(cells: pd.DataFrame, where: Mapping[str, Any]) -> pd.Series:
    """Return which rows a selector holds for.

    Parameters
    ----------
    cells : DataFrame
        With the columns of :data:`KEYS`, as words.
    where : mapping
        Key to a word or a list of words, all of which must hold; an absent key allows everything. A selector that only
        has ``place``, a passage of the text, touches no cell.

    Raises
    ------
    ClaimsError
        For a key that is none of these.
    """
    import pandas as pd

    unknown = sorted(set(where) - {*KEYS, "place"})
    if unknown:
        raise ClaimsError(f"{unknown[0]!r} selects no printed cells; a selector has {', '.join(KEYS)} or place")
    chosen = pd.Series(set(where) != {"place"}, index=cells.index, dtype=bool)
    for key in KEYS:
        if key in where:
            words = where[key] if isinstance(where[key], list | tuple) else [where[key]]
            chosen &= cells[key].isin([str(word) for word in words])
    return chosen


@functools.cache
def read_yaml(*path: str) -> Any:
    """Return the content of a YAML file of this room, ``None`` if there is none; not to be changed by the caller."""
    import yaml

    entry = files("multilab.claims").joinpath(*path)
    if not entry.is_file():
        return None
    try:
        return yaml.safe_load(entry.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ClaimsError(f"{'/'.join(path)}: not valid YAML: {' '.join(str(error).split())}") from None
