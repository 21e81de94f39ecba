"""One value of a table, and numbers as text."""

import math
from dataclasses import dataclass

ARROWS = {"min": "↓", "max": "↑", "": ""}
"""The sign of the direction in which a metric is good."""


@dataclass(frozen=True)
class Entry:
    """One value of a table, as text.

    Attributes
    ----------
    text : str
        The value.
    std : str
        Standard deviation, empty where there is none.
    best : bool
        Whether no other value of its row or column is better.
    gain : int
        1 where the value is an improvement, -1 where it is the opposite.
    """

    text: str
    std: str = ""
    best: bool = False
    gain: int = 0


Row = tuple[str, tuple[Entry, ...]]
"""Title and entries of a row."""


@dataclass(frozen=True)
class TextTable:
    """A table ready to print on a page, in Markdown or in LaTeX.

    Attributes
    ----------
    corner : str
        Text of the first cell of the header.
    heads : tuple of str
        Titles of the columns.
    rows : tuple of (str, tuple of Entry)
    foot : tuple of (str, tuple of Entry)
        Rows below the others: average ranks, results of tests.
    """

    corner: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    foot: tuple[Row, ...] = ()

    @property
    def spread(self) -> bool:
        """Whether any entry has a standard deviation."""
        return any(entry.std for _, entries in self.rows for entry in entries)


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with about ``digits`` significant digits, with an exponent only where it is needed."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = abs(value)
    if size < 1e-4 or size >= 1e7:
        return f"{value:.{digits - 1}e}"
    before = math.floor(math.log10(size)) + 1
    return f"{value:,.{max(0, digits - before)}f}".replace(",", "\u202f").replace("-", "−")


def p_text(value: float | None, sign: str = "p = ") -> str:
    """Return a p value with two digits, ``p < 0.0001`` for less; with an empty sign only the number."""
    if value is None:
        return "–"
    return f"{sign.replace('=', '<') or '< '}0.0001" if value < 1e-4 else f"{sign}{number(value, 2)}"


def signed_text(value: float, digits: int) -> str:
    """Return a difference with its sign and a fixed number of decimals."""
    return f"{value:+.{digits}f}".replace("-", "−")


def thousands(value: float) -> str:
    """Return a number with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", "\u202f")
