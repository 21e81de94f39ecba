"""Numbers for JSON, finite and with meaningful digits only, and whole numbers as arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np


def finite(value: Any, places: int | None = None) -> Any:
    """Return a number for JSON, or a dict of such: rounded to some decimals, ``None`` for NaN and infinity.

    What is no floating-point number (a count, a text, ``None``) is returned as it is.

    Examples
    --------
    >>> from multilab.core.numbers import finite
    >>> finite(0.12345, 3), finite(float("nan"), 3), finite(7, 3)
    (0.123, None, 7)
    """
    if isinstance(value, dict):
        return {key: finite(item, places) for key, item in value.items()}
    if not isinstance(value, float | np.floating):
        return value
    if not math.isfinite(value):
        return None
    return float(value) if places is None else round(float(value), places)


def significant(value: float, digits: int = 6) -> float | None:
    """Round a number to some significant digits, more than any table shows.

    Examples
    --------
    >>> from multilab.core.numbers import significant
    >>> significant(1234.56789), significant(float("inf"))
    (1234.57, None)
    """
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def whole_number(value: Any, name: str, least: int, error: Callable[[str], Exception]) -> int:
    """Return the argument ``name`` of a function, a whole number of at least ``least``; raise an ``error`` otherwise.

    Examples
    --------
    >>> from multilab.core.numbers import whole_number
    >>> whole_number(2.0, "k", 1, ValueError)
    Traceback (most recent call last):
    ...
    ValueError: `k` must be a whole number, got 2.0 (float)
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise error(f"`{name}` must be a whole number, got {value!r} ({type(value).__name__})")
    if value < least:
        raise error(f"`{name}` must be >= {least}, got {value}")
    return int(value)
