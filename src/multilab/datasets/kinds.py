"""Kinds of feature columns, recognised from their cells: numbers (also written as text), dates, text and categories."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from multilab.core.messages import did_you_mean
from multilab.core.tags import MISSING_CELLS
from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError
from multilab.datasets.table_cells import MAX_CATEGORY, number_in

__all__ = ["MISSING_FEATURES", "Kind", "kind_of"]

MISSING_FEATURES = MISSING_CELLS | {"-", "--", "."}
"""Cells of a feature that are missing, in lower case. Spreadsheets and statistics programs write dashes and a point
for them. They are not in MISSING_CELLS because a label column may hold "-" against "+"."""

_MISSING_WORDS = frozenset(
    (
        *("none", "unknown", "unspecified", "undefined", "missing", "not available", "not known", "not specified"),
        *("no data", "n.a.", "n.a", "n.d.", "tbd", "tba"),
    )
)
"""Cells that are missing among numbers or dates, in lower case; among names they are names. Not words such as "free"
or "not applicable", which may mean 0."""

_STYLES = {"number": ("", "point", "comma"), "date": ("year", "day", "month"), "category": ("",), "text": ("", "chars")}
_AGREEING = 99  # of 100 cells that are not missing
_LONGEST = 40  # characters of a number or a date, so that long texts are not searched
_TRUTH = {"true": 1.0, "false": 0.0}  # as in table_cells.py: a boolean column of a data frame and of a CSV are equal

# Numbers. Digits are ASCII: float() would also read those of other scripts.
_CURRENCY = "$€£¥₹₽₩₺₴₪₫₦฿"
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|SGD|HKD|KRW|RUB|TRY|Rs\\.?|kr\\.?"
_BLANK = "[ \u00a0\u2009\u202f]"
_NUMBER_CELL = re.compile(
    rf"([-+\u2212]?){_BLANK}?((?:[A-Z]{{0,3}}[{_CURRENCY}]|(?:{_CODES})(?![A-Za-z]))?){_BLANK}?([-+\u2212]?)"
    rf"([0-9.,]+(?:[ \u00a0\u2009\u202f'\u2019][0-9.,]+)*)((?:[eE][-+]?[0-9]+)?)"
    rf"{_BLANK}?((?:[^\W\d_]|[%‰°/{_CURRENCY}]){{0,15}})\.?"
)
_ORDINALS = frozenset({"st", "nd", "rd", "th", "ª", "º", "er", "e", "ème", "ère"})
_PLAIN_INTEGER = r"[0-9]+|[1-9][0-9]{0,2}(?:(?P<blank>[ \u00a0\u2009\u202f'\u2019])[0-9]{3}(?:(?P=blank)[0-9]{3})*)"
_BODIES = {
    "": re.compile(rf"(?:{_PLAIN_INTEGER})(?:\.[0-9]*)?|\.[0-9]+"),
    # 1,234,567 and the Indian 12,34,567; not 0,123
    "point": re.compile(rf"(?:{_PLAIN_INTEGER}|[1-9][0-9]{{0,2}}(?:,[0-9]{{2,3}})*,[0-9]{{3}})(?:\.[0-9]*)?|\.[0-9]+"),
    "comma": re.compile(rf"(?:{_PLAIN_INTEGER}|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+)(?:,[0-9]+)?|,[0-9]+"),
}
_BLANKS = dict.fromkeys(" \u00a0\u2009\u202f'\u2019", "")
_REMOVED = {
    "": str.maketrans(_BLANKS),
    "point": str.maketrans(_BLANKS | {",": ""}),
    "comma": str.maketrans(_BLANKS | {".": "", ",": "."}),
}
_EXACT_DIGITS = 15  # more are rounded by a float: an identifier
_PHONE_DIGITS = 8  # after a plus
_CODE_DIGITS = 9  # integers of one width: phone numbers, customers, articles
_UNIX_TIME = (631152000, 2524608000)  # seconds, 1990 to 2050: of one width too, and a quantity

# Dates
_MONTH_NAMES = (  # English; those of the calendar module follow the locale
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_MONTHS = {short: k for k, name in enumerate(_MONTH_NAMES, 1) for short in (name, name[:3])} | {"sept": 9}
_YEARS = (1800, 2200)
_TIME = (
    r"(?:(?:[Tt]|,? {1,2})(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?: ?([AaPp])\.?[Mm]\.?)?"
    r"(?: ?([Zz]|UTC|GMT|[-+]\d\d(?::?\d\d)?))?)?"
)
_MONTH = r"(\d{1,2}|[A-Za-z]{3,9})"
_NAMED = r"([A-Za-z]{3,9})"
_DATE_CELLS = {  # patterns, and the groups of year, month and day
    "year": ((re.compile(rf"(\d{{4}})([-/.]){_MONTH}\2(\d{{1,2}}){_TIME}", re.ASCII), (1, 3, 4)),),
    "day": (
        (re.compile(rf"(\d{{1,2}})([-/.]){_MONTH}\2(\d{{4}}){_TIME}", re.ASCII), (4, 3, 1)),
        (re.compile(rf"(\d{{1,2}})\.?( ){_NAMED}[.,]? (\d{{4}}){_TIME}", re.ASCII), (4, 3, 1)),
    ),
    "month": (
        (re.compile(rf"{_MONTH}([-/.])(\d{{1,2}})\2(\d{{4}}){_TIME}", re.ASCII), (4, 1, 3)),
        (re.compile(rf"{_NAMED}\.?( )(\d{{1,2}}),? (\d{{4}}){_TIME}", re.ASCII), (4, 1, 3)),
    ),
}
_EPOCH = date(1970, 1, 1).toordinal()

# Text (see the notes of kind_of)
_SENTENCE_WORDS = 3  # in the mean: names of shops, towns and products have fewer
_LONG_WORDS = 8  # in the mean: nobody names a thing so
_LONG_TEXTS = 100  # different ones: the answers that a survey offers are fewer
_WORD = re.compile(r"(?<!\S)(?:[^\w\s]|[\d_])*[^\W\d_]")  # its start up to the first letter: linear in the length
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")  # Thai, Japanese, Chinese: no blanks between words


@dataclass(frozen=True)
class Kind:
    """Kind of a feature column.

    Parameters
    ----------
    name : {"number", "category", "text", "date"}
    style : str
        How the cells are written. Numbers: "" (1234.5), "point" (1,234.5: commas separate thousands) or "comma"
        (1.234,5). Dates: "year" (2024-01-31, 2024/1/31, ISO 8601 with time and zone), "day" (31.1.2024, 31 Jan 2024) or
        "month" (1/31/2024, January 31, 2024); "" is "year". Text: "" (words) or "chars" (words and character n-grams);
        "chars" is never recognised and must be given.
    unit : str
        Unit of the numbers that :func:`kind_of` found (``%``, ``€``, ``min``); cells with another unit are unreadable.
        With "", any unit is read.

    Examples
    --------
    >>> Kind.parse("number:comma").numbers(["1.234,5", "12 €", "n/a", "many"])
    (array([1234.5,   12. ,    nan,    nan]), array([False, False, False,  True]))
    >>> print(Kind("date", "day"), Kind("number", "comma", "€"))
    date:day number:comma in €
    """

    name: str
    style: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        if self.name == "date" and not self.style:
            object.__setattr__(self, "style", "year")
        object.__setattr__(self, "unit", _unit(self.unit))
        known = self.style in _STYLES.get(self.name, ()) and (self.name == "number" or not self.unit)
        if not known:
            shown = f"{self.name}:{self.style}" if self.style else self.name
            names = _names()
            hint = did_you_mean(shown, names) or f"; choose from {', '.join(names)}"
            raise DatasetError(f"'{excerpt(shown)}' is not a kind of column{hint}")

    def __str__(self) -> str:
        shown = f"{self.name}:{self.style}" if self.style else self.name
        return f"{shown} in {self.unit}" if self.unit else shown

    @classmethod
    def parse(cls, text: str) -> Kind:
        """Return the kind that ``str`` wrote as ``text``; "date" alone is "date:year".

        Raises
        ------
        DatasetError
            If no kind has this name. The message has the nearest one.

        Examples
        --------
        >>> Kind.parse("date:month")
        Kind(name='date', style='month', unit='')
        """
        kind, _, unit = text.strip().partition(" in ")
        name, _, style = kind.strip().lower().partition(":")
        return cls(name, style, unit.strip())

    @classmethod
    def recognised(cls, texts: Sequence[str], counts: np.ndarray, codes: np.ndarray) -> tuple[tuple[Kind, ...], str]:
        """Return the kind of a column of texts by `kind_of`, or two of them with what makes it ambiguous.

        A column most of whose cells are plain numbers is a mistake as often as a category: that is ambiguous, too.

        Parameters
        ----------
        texts : sequence of str
            The different cells, without blanks around them.
        counts : ndarray of int
            Number of rows with each.
        codes : ndarray of int, shape (n,)
            Position of each row's text among them, -1 where it is missing.
        """
        found = kind_of(texts, counts.tolist())
        if len(found) > 1:
            return found, ", ".join(repr(excerpt(text)) for text in texts[:2])
        if found[0].name not in ("category", "text"):
            return found, ""
        plain = np.array([number_in(text) is not None for text in texts], dtype=bool)
        if plain.all() or counts[plain].sum() <= counts.sum() / 2:
            return found, ""
        row = int(np.append(~plain, False)[codes].argmax())
        why = f"mostly numbers, but {excerpt(texts[codes[row]])!r} in row {row + 1}"
        return (cls("number"), cls("category")), why

    def numbers(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells of a column of numbers or dates as numbers.

        Each cell is read by itself: the same in every batch.

        Parameters
        ----------
        texts : sequence of str

        Returns
        -------
        values : ndarray of float64
            Numbers without currency, unit and percent sign (39% is 39); ``true`` and ``false`` are 1 and 0. Dates are
            days since 1970-01-01 UTC with the time of day as a fraction; times without a zone as they stand. NaN where
            a cell is missing or unreadable.
        unreadable : ndarray of bool
            Cells that are neither missing nor of this kind.

        Examples
        --------
        >>> Kind("date", "day").numbers(["2.1.1970", "1.1.1970 12:00", "31.2.2024"])
        (array([1. , 0.5, nan]), array([False, False,  True]))
        """
        if self.name not in ("number", "date"):
            raise DatasetError(f"cells of a column of kind {self.name} are not numbers")
        values = np.full(len(texts), math.nan)
        unreadable = np.zeros(len(texts), dtype=bool)
        for row, cell in enumerate(texts):
            text = cell.strip()
            value = _date(text, self.style) if self.name == "date" else self._number(text)
            if value is not None:
                values[row] = value
            elif not _is_missing(text):
                unreadable[row] = True
        return values, unreadable

    def _number(self, text: str) -> float | None:
        parts = _number_parts(text)
        if parts is None:
            return None
        value = parts.value(self.style)
        if value is None or not self.unit or parts.unit == self.unit:
            return value
        return value if _may_lack_unit(parts, self.unit) else None


def kind_of(texts: Sequence[str], counts: Sequence[int]) -> tuple[Kind, ...]:
    """Return the kind of a column of texts, or two kinds if it is ambiguous, so that nothing is guessed.

    Parameters
    ----------
    texts : sequence of str
        The different cells, without blanks around them.
    counts : sequence of int
        Number of rows with each.

    Returns
    -------
    tuple of Kind
        One kind, or the two that are possible.

    Notes
    -----
    A column holds numbers or dates if at least 99 of 100 cells that are not missing do. A word such as ``Unknown`` is
    missing there, if it is in less than half of the cells.

    - **Numbers** have one unit or currency, or none. A cell with a single reading decides for the others: ``1,234`` is
      ambiguous, but not next to ``1,5``. If all points stand before three digits (9.612), they are decimal points; but
      integers below 1000 in the same column show thousands if a cell ends in 0 (9.600 next to 800), else both readings
      remain. Both also remain if there are no such integers and most cells end in 0.
    - **Dates** are ambiguous if no day is above 12. Years have four digits, months are numbers or English names.
    - **Identifiers** are categories: leading zeros without a unit, a plus and 8 digits, more than 15 digits, and
      integers of one width that have at least 9 digits and mostly differ (but Unix times are numbers) or of which one
      begins with 0.
    - **Text** has at least 3 words (or more than 100 characters) per cell on average, and more than half of the cells
      are different. If it has 8 words (or more than 100 characters) per cell, more than 100 different cells suffice.
    - Everything else is a **category**: names, any number of codes of one word, the long answers a survey offers.

    Examples
    --------
    >>> [str(kind) for kind in kind_of(["32,2", "1.000", "n/a"], [5, 2, 9])]
    ['number:comma']
    >>> [str(kind) for kind in kind_of(["1,234", "17"], [1, 1])]
    ['number:point', 'number:comma']
    >>> [str(kind) for kind in kind_of(["90 min", "102 min"], [1, 1])]
    ['number in min']
    >>> [str(kind) for kind in kind_of(["01/02/2024", "11/12/2024"], [1, 1])]
    ['date:day', 'date:month']
    >>> [str(kind) for kind in kind_of(["01234", "98765"], [1, 1])]
    ['category']
    """
    cells = [
        (text, int(count)) for text, count in zip(texts, counts, strict=True) if count > 0 and not _is_missing(text)
    ]
    total = sum(count for _, count in cells)
    if not total:
        return (Kind("category"),)
    present = [(text, count) for text, count in cells if text.lower() not in _MISSING_WORDS]
    here = sum(count for _, count in present)
    short = [(text, count) for text, count in present if len(text) <= _LONGEST]
    if 2 * here > total and _nearly_all(sum(count for _, count in short), here):
        kinds = _numbers(short, here) or _dates(short, here)
        if kinds:
            return kinds
    return (Kind("text" if _is_text(cells, total) else "category"),)


def _names() -> list[str]:
    return [f"{name}:{style}" if style else name for name, styles in _STYLES.items() for style in styles]


def _is_missing(text: str) -> bool:
    return len(text) < 6 and text.lower() in MISSING_FEATURES


def _nearly_all(count: int, total: int) -> bool:
    return count * 100 >= total * _AGREEING


@dataclass(frozen=True, slots=True)
class _Parts:
    """Cell that may be a number."""

    sign: str
    body: str
    exponent: str
    unit: str

    def value(self, style: str) -> float | None:
        """Return the number if the cell is one in this style."""
        if self.body in _TRUTH:
            return _TRUTH[self.body]
        if _BODIES[style].fullmatch(self.body) is None:
            return None
        value = float(self.body.translate(_REMOVED[style]) + self.exponent)
        if math.isinf(value):
            return None
        return -value if self.sign in ("-", "\u2212") else value

    def digits(self) -> int:
        """Return the number of digits of an integer without thousands points or commas, else 0."""
        if self.exponent or "." in self.body or "," in self.body or self.body in _TRUTH:
            return 0
        return sum(map(str.isdecimal, self.body))

    def is_identifier(self) -> bool:
        """Return whether the cell alone looks like an identifier, not a quantity."""
        if self.unit:
            return False
        digits = self.digits()
        return (
            (self.body[0] == "0" and self.body[1:2].isdecimal())
            or digits > _EXACT_DIGITS
            or (self.sign == "+" and digits >= _PHONE_DIGITS)
        )


def _number_parts(text: str) -> _Parts | None:
    if len(text) > _LONGEST:
        return None
    match = _NUMBER_CELL.fullmatch(text)
    if match is None:
        truth = text.lower() if len(text) < 6 else ""
        return _Parts("", truth, "", "") if truth in _TRUTH else None
    sign, before, second_sign, body, exponent, after = match.groups()
    if sign and second_sign:
        return None
    unit = _unit(before + after) if before or after else ""
    return None if unit in _ORDINALS else _Parts(sign or second_sign, body, exponent, unit)


def _unit(text: str) -> str:
    """Return a unit without differences that mean nothing: kg and KG, 1 day and 2 days, Rs and Rs."""
    unit = text.rstrip(".")
    if len(unit) == 1:
        return unit
    unit = unit.lower()
    return unit[:-1] if len(unit) > 2 and unit[-1] == "s" and unit[-2:] != "ss" else unit


def _may_lack_unit(parts: _Parts, unit: str) -> bool:
    """Return whether a number without a unit belongs to a column with one: 0.39 next to 39% may mean 39 or 0.39."""
    return not parts.unit and (unit != "%" or not parts.body.strip("0.,"))


def _numbers(cells: Sequence[tuple[str, int]], total: int) -> tuple[Kind, ...]:
    """Return the kinds of number that the cells may be."""
    found = [
        (parts, count)
        for text, count in cells
        if (parts := _number_parts(text)) is not None and not parts.is_identifier()
    ]
    if not _nearly_all(sum(count for _, count in found), total) or _are_codes(cells, found, total):
        return ()
    units = Counter[str]()
    for parts, count in found:
        units[parts.unit] += count
    unit = min((unit for unit in units if unit), key=lambda unit: (-units[unit], unit), default="")
    agreeing = [(parts, count) for parts, count in found if parts.unit == unit or _may_lack_unit(parts, unit)]
    if not _nearly_all(sum(count for _, count in agreeing), total):
        if not _nearly_all(units[""], total):
            return ()
        unit, agreeing = "", [(parts, count) for parts, count in found if not parts.unit]
    return tuple(Kind("number", style, unit) for style in _number_styles(agreeing, total))


def _are_codes(cells: Sequence[tuple[str, int]], found: Sequence[tuple[_Parts, int]], total: int) -> bool:
    """Return whether integers of one width are identifiers: with a leading zero somewhere, or of many digits."""
    widths = {parts.digits() if not parts.unit else 0 for parts, _ in found}
    if len(widths) != 1 or (width := widths.pop()) == 0:
        return False
    if any(len(text) == width and text[0] == "0" and text.isdecimal() for text, _ in cells) and width > 1:
        return True
    if width < _CODE_DIGITS or len(found) == 1 or len(found) * 2 <= total:
        return False
    values = [abs(value) / (1000 if width > 10 else 1) for parts, _ in found if (value := parts.value("")) is not None]
    return not all(_UNIX_TIME[0] <= value <= _UNIX_TIME[1] for value in values)


def _number_styles(cells: Sequence[tuple[_Parts, int]], total: int) -> tuple[str, ...]:
    """Return the styles in which nearly all cells are numbers, without those that other cells exclude."""
    read = {"": 0, "point": 0, "comma": 0}
    only_point = only_comma = 0
    with_comma = False  # among the cells that both styles read, with different values
    pointed: list[tuple[str, int]] = []
    short_integers = False
    for parts, count in cells:
        plain, point, comma = parts.value(""), parts.value("point"), parts.value("comma")
        for style, value in (("", plain), ("point", point), ("comma", comma)):
            read[style] += count if value is not None else 0
        if point is None or comma is None:
            only_point += count if point is not None else 0
            only_comma += count if comma is not None else 0
        elif point == comma:
            short_integers = short_integers or (0 < parts.digits() <= 3 and plain != 0)
        elif "," in parts.body:
            with_comma = True
        else:
            pointed.append((parts.body, count))
    english = "point" if read["point"] > read[""] else ""
    styles = [style for style in (english, "comma") if _nearly_all(read[style], total)]
    if len(styles) < 2:
        return tuple(styles)
    if bool(only_point) != bool(only_comma):
        return (english,) if only_point else ("comma",)
    if with_comma:
        return ("point", "comma")
    if not pointed:
        return (english,)
    round_ones = sum(count for body, count in pointed if body.endswith("0"))
    if short_integers:
        # A program that writes 9.600 for 9.6 writes 800.000 for 800, so that 800 next to 9.600 shows thousands.
        return ("comma",) if round_ones else (english, "comma")
    return (english, "comma") if round_ones * 2 > sum(count for _, count in pointed) else (english,)


def _dates(cells: Sequence[tuple[str, int]], total: int) -> tuple[Kind, ...]:
    """Return the kinds of date that the cells may be."""
    read = {"year": 0, "day": 0, "month": 0}
    only_day = only_month = 0
    for text, count in cells:
        if _date(text, "year") is not None:
            read["year"] += count
            continue
        day, month = _date(text, "day") is not None, _date(text, "month") is not None
        read["day"] += count if day else 0
        read["month"] += count if month else 0
        only_day += count if day and not month else 0
        only_month += count if month and not day else 0
    styles = [style for style in read if _nearly_all(read[style], total)]
    if len(styles) == 2 and bool(only_day) != bool(only_month):
        styles = ["day"] if only_day else ["month"]
    return tuple(Kind("date", style) for style in styles)


def _date(text: str, style: str) -> float | None:
    """Return the days since 1970-01-01 UTC of a cell, None if it is no date in this style."""
    if not 8 <= len(text) <= _LONGEST:
        return None
    for pattern, (year_at, month_at, day_at) in _DATE_CELLS[style]:
        if (match := pattern.fullmatch(text)) is None:
            continue
        groups = match.groups()
        named = groups[month_at - 1]
        month = int(named) if named.isdecimal() else _MONTHS.get(named.lower(), 0)
        year = int(groups[year_at - 1])
        if not _YEARS[0] <= year <= _YEARS[1]:
            return None
        try:
            days = date(year, month, int(groups[day_at - 1])).toordinal() - _EPOCH
        except ValueError:  # 31 February
            return None
        if groups[4] is None:
            return float(days)
        seconds = _seconds(*groups[4:])
        return None if seconds is None else days + seconds / 86400
    return None


def _seconds(
    hour: str, minute: str, second: str | None, fraction: str | None, half: str | None, zone: str | None
) -> float | None:
    """Return the seconds of a time of day, in UTC if it has a zone; None if there is no such time."""
    hours = int(hour)
    if half is not None:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half in "Pp" else 0)
    if hours > 23 or int(minute) > 59 or int(second or 0) > 59:
        return None
    seconds = hours * 3600.0 + int(minute) * 60 + int(second or 0) + float(f"0.{fraction or 0}")
    if zone is None or zone[0] not in "+-":
        return seconds
    away_hours, away_minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if away_hours > 23 or away_minutes > 59:
        return None
    away = away_hours * 3600 + away_minutes * 60
    return seconds - away if zone[0] == "+" else seconds + away


def _is_text(cells: Sequence[tuple[str, int]], total: int) -> bool:
    """Return whether cells are sentences, not names or codes."""
    words = sum(_words(text) * count for text, count in cells) / total
    length = sum(len(text) * count for text, count in cells) / total
    if words < _SENTENCE_WORDS and length <= MAX_CATEGORY:
        return False
    long = words >= _LONG_WORDS or length > MAX_CATEGORY
    return len(cells) * 2 > total or (long and len(cells) > _LONG_TEXTS)


def _words(text: str) -> float:
    """Return the number of words with a letter; of a script without blanks, two characters count as a word."""
    return len(_WORD.findall(text)) + (0 if text.isascii() else len(_UNSPACED.findall(text)) / 2)
