"""Printed numbers: a value with the interval that its decimals leave open."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_NUMBER = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")
TINY = 1e-9
"""Slack of comparisons, for the binary representation of decimal numbers."""


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """A number as it is printed.

    Attributes
    ----------
    text : str
        The characters in the table.
    value : float
        The number.
    decimals : int
        Digits after the point.
    """

    text: str
    value: float
    decimals: int

    @property
    def half(self) -> float:
        """Half a unit of the last decimal: the number that was rounded is within it."""
        return 0.5 * 10.0**-self.decimals

    @property
    def low(self) -> float:
        """Smallest number that is rounded to this one."""
        return self.value - self.half - TINY

    @property
    def high(self) -> float:
        """Largest number that is rounded to this one."""
        return self.value + self.half + TINY

    def holds(self, value: float, slack: float = 0.0) -> bool:
        """Return whether ``value``, known to within ``slack``, can be what was rounded."""
        return self.low - slack <= value <= self.high + slack

    def cut_off(self, value: float) -> bool:
        """Return whether ``value`` gives this number when its further decimals are cut off."""
        return 0 <= value - self.value + TINY < 10.0**-self.decimals

    def scaled(self, factor_of_ten: int) -> PrintedNumber:
        """Return the number divided by a power of ten; the text stays."""
        return PrintedNumber(self.text, self.value / 10.0**factor_of_ten, self.decimals + factor_of_ten)

    def like(self, value: float) -> str:
        """Return another value with the decimals of this one."""
        return f"{value:.{max(self.decimals, 0)}f}"


def parse_number(text: str) -> PrintedNumber | None:
    """Return the number of a text, ``None`` if it is none.

    Examples
    --------
    >>> from multilab.audit import parse_number
    >>> parse_number(".50"), parse_number("DNF")
    (PrintedNumber(text='.50', value=0.5, decimals=2), None)
    """
    plain = text.strip().rstrip("%").replace("\N{MINUS SIGN}", "-").strip()
    match = _NUMBER.fullmatch(plain)
    if not match or not (match[2] or match[3]):
        return None
    value = float(plain)
    if not math.isfinite(value):
        return None
    return PrintedNumber(plain, value, len(match[3] or "") - int(match[4] or 0))


def one_slip_away(text: str) -> list[str]:
    """Return the numbers that differ from a printed one by one slip of the pen.

    A slip changes one digit, exchanges two neighbouring digits, or moves the point by one position.
    """
    variants = []
    for position, char in enumerate(text):
        if not char.isdigit():
            continue
        variants += [text[:position] + digit + text[position + 1 :] for digit in "0123456789" if digit != char]
        following = text[position + 1 : position + 2]
        if following.isdigit() and following != char:
            variants.append(text[:position] + following + char + text[position + 2 :])
    if "." in text:
        point = text.index(".")
        bare = text[:point] + text[point + 1 :]
        variants += [
            bare[:moved] + "." + bare[moved:] for moved in (point - 1, point + 1) if 0 <= moved <= len(bare) - 1
        ]
    return variants
