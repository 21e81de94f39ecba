"""Selectors of published cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from multilab.claims.errors import check_keys

KEYS = ("table", "dataset", "method", "metric")
"""Columns that identify a published cell."""


def check_selector(where: Any, location: str) -> None:
    """Refuse a selector with other keys than :data:`KEYS`, or than ``location`` alone.

    Raises
    ------
    ClaimsError
    """
    check_keys(location, "a selector of published cells", where, (*KEYS, "location"))


def mask(cells: pd.DataFrame, where: Mapping[str, Any]) -> pd.Series:
    """Return the rows that a selector selects.

    Parameters
    ----------
    cells : DataFrame
        With the columns :data:`KEYS`, as text.
    where : mapping
        Values of columns, one or a list; a column that is not named may have any value. A selector that only has
        ``location``, a passage of the text, selects no cell.

    Raises
    ------
    ClaimsError
        For another key.
    """
    check_selector(where, "selector")
    chosen = pd.Series(set(where) != {"location"}, index=cells.index, dtype=bool)
    for key in KEYS:
        if key in where:
            values = where[key] if isinstance(where[key], list | tuple) else [where[key]]
            chosen &= cells[key].isin([str(value) for value in values])
    return chosen
