"""Encoding of a table's columns as columns of a matrix, learned from training rows.

No label is read here. What is learned can be written as JSON, without pickle.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer

from multilab.core.text import excerpt
from multilab.datasets.columns import canonical_csr
from multilab.datasets.errors import DatasetError
from multilab.datasets.kinds import Kind
from multilab.datasets.table_cells import cell_numbers, cell_texts, refuse_nested

__all__ = ["Block", "FeatureColumn"]

MAX_VALUES = 256
"""Categories beyond the most frequent ones of this number are taken together."""

MAX_TERMS = 50_000
"""Words of a column of text, and character n-grams: the most frequent ones."""

HASHED = 4096
"""Columns that further words of a text are hashed into, if it has more than `MAX_TERMS`."""

DENSE_TERMS = 2000
"""Words, and n-grams, that a method gets which makes its features dense: the most frequent ones."""

NUMBER = Kind("number")
_DATE_PARTS = ("days", "year", "month", "day", "weekday", "hour")
_WORD = re.compile(r"(?u)\b\w\w+\b")
_GRAMS = (3, 5)  # characters
_GRAM = "*"  # before and after an n-gram, so that none is a word


@dataclass(frozen=True, eq=False)
class Block:
    """The columns of a matrix that one column of a table becomes.

    Attributes
    ----------
    X : ndarray or CSR of shape (n, width)
        NaN where a value is missing and nothing replaces it.
    absent : ndarray of bool, shape (n,)
        Rows without a value.
    unknown : dict of str to int
        Texts that training did not have, with the number of rows.
    unreadable : int
        Cells that are neither missing nor a number or a date: they count as missing.
    """

    X: Any
    absent: np.ndarray
    unknown: dict[str, int]
    unreadable: int = 0


@dataclass(frozen=True)
class FeatureColumn:
    """One feature column of a table, with what was learned about it from training rows.

    Attributes
    ----------
    name : str
    values : tuple of str or None
        Categories with a 0/1 column each, or the words of a text and then its character n-grams (``*ing *``), in the
        order of the columns; None for numbers and dates.
    fill : float or str or None
        Value that replaces a missing one: a number (for a date, its days) or one of ``values``. None if nothing does.
    kind : Kind
        See `multilab.datasets.kinds.Kind`.
    others : bool
        Whether a last 0/1 column stands for rare categories and those that training did not have.
    indicator : bool
        Whether a last column says that the value is missing.
    weights : tuple of float or None
        Inverse document frequency of each word.
    hashed : int
        Number of columns that words which are not among ``values`` are hashed into.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.datasets.feature_columns import FeatureColumn
    >>> from multilab.datasets.kinds import Kind
    >>> tempo = FeatureColumn.learn("tempo", Kind("number"), pd.Series([60.0, None, 90.0]))
    >>> tempo.fill, tempo.feature_names, tempo.block(pd.Series([None, 120.0])).X.tolist()
    (75.0, ['tempo', 'tempo is missing'], [[75.0, 1.0], [120.0, 0.0]])
    >>> words = FeatureColumn.learn("text", Kind("text"), pd.Series(["a quiet song", "a loud song"]))
    >>> words.values
    ('song', 'loud', 'quiet')
    """

    name: str
    values: tuple[str, ...] | None = None
    fill: float | str | None = None
    kind: Kind = NUMBER
    others: bool = False
    indicator: bool = False
    weights: tuple[float, ...] | None = None
    hashed: int = 0

    @classmethod
    def learn(cls, name: str, kind: Kind, cells: pd.Series) -> FeatureColumn:
        """Learn the column from training rows.

        Parameters
        ----------
        name : str
        kind : Kind
        cells : Series of shape (n,)
            Numbers, or texts; a categorical Series is read once per category.

        Notes
        -----
        Missing numbers and dates get the median. A category is rare if it has less than a thousandth of the rows, or a
        single row of 100 or more. Text keeps the :data:`MAX_TERMS` words that occur in most rows, ties in alphabetical
        order, without those in a single row of 100 or more; if there are more words, all others (also new ones) are
        hashed into :data:`HASHED` columns by MurmurHash3, which has no seed here and is the same everywhere. Character
        n-grams (3 to 5 characters, within words with a blank at both ends) are chosen in the same way, up to the same
        number, without hashing.
        """
        if kind.name in ("number", "date"):
            numbers, _ = _numbers(cells, kind, name)
            present = numbers[~np.isnan(numbers)]
            fill = float(np.median(present)) + 0.0 if len(present) else 0.0
            return cls(name, None, fill, kind, indicator=len(present) < len(numbers))
        texts, codes = _texts(cells)
        present = codes >= 0
        rows = np.bincount(codes[present], minlength=len(texts))
        if kind.name == "text":
            return cls._of_text(name, kind, texts, rows, len(codes))
        least = max(2 if len(codes) >= 100 else 1, math.ceil(len(codes) / 1000))
        order = sorted(range(len(texts)), key=lambda k: (-rows[k], texts[k]))
        kept = [texts[k] for k in order[:MAX_VALUES] if rows[k] >= least]
        rare = bool(rows.sum() > sum(rows[k] for k in order[:MAX_VALUES] if rows[k] >= least))
        return cls(name, tuple(sorted(kept)), None, kind, others=rare, indicator=not present.all())

    @classmethod
    def _of_text(cls, name: str, kind: Kind, texts: Sequence[str], rows: np.ndarray, n: int) -> FeatureColumn:
        least = 2 if n >= 100 else 1
        words, frequency, more = _terms(_words, texts, rows, least)
        grams, of_grams, _ = _terms(_grams, texts, rows, least) if kind.style == "chars" else ([], np.empty(0, int), 0)
        values, frequency = (*words, *grams), np.concatenate([frequency, of_grams])
        column = cls(name, values, None, kind, weights=(), hashed=HASHED if more else 0)
        if column.hashed:
            hashed = column._hashed_words(texts)
            hashed.data[:] = 1
            frequency = np.concatenate([frequency, np.rint(hashed.T @ rows).astype(int)])
        weights = (math.log((1 + n) / (1 + int(count))) + 1 for count in frequency)
        return replace(column, weights=tuple(weights))

    @cached_property
    def width(self) -> int:
        """Number of columns of the matrix."""
        own = len(_DATE_PARTS) if self.kind.name == "date" else 1 if self.values is None else len(self.values)
        return own + self.others + self.indicator + self.hashed

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the matrix."""
        if self.kind.name == "date":
            names = [f"{self.name}: {part}" for part in _DATE_PARTS]
        else:
            names = [self.name] if self.values is None else [f"{self.name}={value}" for value in self.values]
        names += [f"{self.name}: hashed words {k}" for k in range(self.hashed)]
        names += [f"{self.name} is another"] if self.others else []
        return names + ([f"{self.name} is missing"] if self.indicator else [])

    @cached_property
    def is_text(self) -> bool:
        """Whether the column holds free text: a sparse block, which is not scaled."""
        return self.kind.name == "text"

    @property
    def is_plain(self) -> bool:
        """Whether the cells are plain numbers, so a reader need not keep them as text."""
        return self.kind == NUMBER and self.values is None

    @property
    def is_valid(self) -> bool:
        """Whether the types are right, and missing values are filled with a value of the column."""
        if not isinstance(self.name, str) or self.is_text != (self.weights is not None):
            return False
        if self.weights is not None and len(self.weights) != self.width:
            return False
        if self.fill is None or self.values is not None:
            return self.fill is None or self.fill in (self.values or ())
        return isinstance(self.fill, int | float) and not isinstance(self.fill, bool) and bool(np.isfinite(self.fill))

    @property
    def example(self) -> Any:
        """An example cell: the median, a category, or the most frequent words."""
        if self.kind.name == "date" and self.fill is not None:
            return str(np.datetime64(int(self.fill), "D"))
        if self.fill is not None or not self.values:
            return self.fill
        return " ".join(self.values[:3]) if self.is_text else self.values[0]

    def block(self, cells: pd.Series, strict: bool = False) -> Block:
        """Return the columns of rows.

        Raises
        ------
        DatasetError
            If ``strict`` is set and a cell is neither missing nor a number or date of this column.
        """
        if self.kind.name in ("number", "date"):
            return self._of_numbers(cells, strict)
        return self._of_words(cells) if self.is_text else self._of_categories(cells)

    def _of_numbers(self, cells: pd.Series, strict: bool) -> Block:
        numbers, unreadable = _numbers(cells, self.kind, self.name, strict)
        absent = np.isnan(numbers)
        if self.fill is not None:
            numbers[absent] = self.fill
        X = _date_parts(numbers) if self.kind.name == "date" else numbers[:, None]
        return Block(np.hstack([X, absent[:, None].astype(float)]) if self.indicator else X, absent, {}, unreadable)

    def _of_categories(self, cells: pd.Series) -> Block:
        texts, codes = _texts(cells)
        position = {value: k for k, value in enumerate(self.values or ())}
        known = np.array([position.get(text, -1) for text in texts], dtype=np.intp)
        absent = codes < 0
        columns = np.where(absent, -1, known[codes] if len(texts) else -1)
        X = np.zeros((len(codes), self.width))
        rows = np.flatnonzero(columns >= 0)
        X[rows, columns[rows]] = 1.0
        new = ~absent & (columns < 0)
        counts = np.bincount(codes[new], minlength=len(texts))
        if self.others:
            X[new, len(position)] = 1.0
        if self.indicator:
            X[absent, -1] = 1.0
        elif self.fill is not None:
            X[absent, position[str(self.fill)]] = 1.0
        return Block(X, absent, {texts[k]: int(counts[k]) for k in np.flatnonzero(counts)})

    def _of_words(self, cells: pd.Series) -> Block:
        texts, codes = _texts(cells)
        texts = [*texts, ""]
        of_words = sum(not _is_gram(value) for value in self.values or ())
        weights = np.asarray(self.weights)
        halves = [
            (_counts(_words, texts, (self.values or ())[:of_words]), weights[:of_words]),
            (_counts(_grams, texts, (self.values or ())[of_words:]), weights[of_words : len(self.values or ())]),
        ]
        if self.hashed:
            both = sp.hstack([halves[0][0], self._hashed_words(texts)], format="csr")
            halves[0] = both, np.concatenate([halves[0][1], weights[len(self.values or ()) :]])
        blocks = [_weighted(counts, of) for counts, of in halves]
        if self.hashed:  # the columns of hashed words are the last
            words, grams = sp.csc_array(blocks[0]), blocks[1]
            blocks = [words[:, :of_words], grams, words[:, of_words:]]
        X = sp.csr_array(sp.hstack(blocks, format="csr"))
        return Block(canonical_csr(X[codes]), codes < 0, {})  # a missing text (-1) is the empty one

    def _hashed_words(self, texts: Sequence[str]) -> sp.csr_array:
        """Return how often words that are not among ``values`` occur, of shape (n, hashed)."""
        known = set(self.values or ())
        hasher = FeatureHasher(self.hashed, input_type="string", alternate_sign=False)
        return sp.csr_array(hasher.transform([word for word in _words(text) if word not in known] for text in texts))

    @property
    def dense_columns(self) -> np.ndarray:
        """Positions of the columns for a method that makes its features dense, see :data:`DENSE_TERMS`."""
        if not self.is_text:
            return np.arange(self.width)
        grams = np.array([_is_gram(value) for value in self.values or ()], dtype=bool)
        return np.sort(np.concatenate([np.flatnonzero(half)[:DENSE_TERMS] for half in (~grams, grams)]))

    @property
    def grams(self) -> np.ndarray:
        """Which columns are of character n-grams, shape (width,)."""
        own = [self.is_text and _is_gram(value) for value in self.values or ()]
        return np.array(own + [False] * (self.width - len(own)), dtype=bool)

    def without_grams(self) -> FeatureColumn:
        """Return the column of text as `learn` makes it of words alone."""
        kept = ~self.grams
        values = tuple(value for value, keep in zip(self.values or (), kept, strict=False) if keep)
        weights = tuple(weight for weight, keep in zip(self.weights or (), kept, strict=True) if keep)
        return replace(self, values=values, weights=weights, kind=Kind("text"))

    def summary(self, cells: pd.Series) -> np.ndarray | list[str | None]:
        """Return a summary of the cells, numbers or categories, to compare new cells with.

        Days for dates, the number of words for text; NaN or None for missing values.
        """
        if self.kind.name in ("number", "date"):
            return _numbers(cells, self.kind, self.name)[0]
        texts, codes = _texts(cells)
        if self.is_text:
            words = np.array([*(len(_WORD.findall(text)) for text in texts), np.nan])
            return words[codes]
        known = {*(self.values or ())}
        return [None if code < 0 else texts[code] if texts[code] in known or not self.others else "" for code in codes]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _grams(text: str) -> list[str]:
    """Return the character n-grams of a text, within words with a blank at both ends."""
    grams = []
    for word in text.lower().split():
        padded = f" {word} "
        for n in range(_GRAMS[0], _GRAMS[1] + 1):
            grams += [f"{_GRAM}{padded[k : k + n]}{_GRAM}" for k in range(max(len(padded) - n + 1, 0))]
    return grams


def _is_gram(value: str) -> bool:
    return value[:1] == _GRAM


def _terms(
    split: Callable[[str], list[str]], texts: Sequence[str], rows: np.ndarray, least: int
) -> tuple[list[str], np.ndarray, int]:
    """Return the most frequent terms, the rows that have each, and how many further ones there are."""
    try:
        vectorizer = CountVectorizer(analyzer=split)
        counts = vectorizer.fit_transform(texts) if texts else None
    except ValueError:  # no text has a term
        counts = None
    if counts is None:
        return [], np.empty(0, dtype=int), 0
    counts.data[:] = 1
    frequency = np.asarray(counts.T @ rows).ravel().astype(int)
    terms = vectorizer.get_feature_names_out()
    order = np.lexsort((terms, -frequency))
    order = order[frequency[order] >= least]
    kept = order[:MAX_TERMS]
    return terms[kept].tolist(), frequency[kept], len(order) - len(kept)


def _counts(split: Callable[[str], list[str]], texts: Sequence[str], terms: Sequence[str]) -> sp.csr_array:
    if not terms:
        return sp.csr_array((len(texts), 0))
    vectorizer = CountVectorizer(analyzer=split, vocabulary={term: k for k, term in enumerate(terms)})
    return sp.csr_array(vectorizer.transform(texts), dtype=np.float64)


def _weighted(counts: sp.csr_array, weights: np.ndarray) -> sp.csr_array:
    """Return TF-IDF with sublinear counts, each row of norm 1."""
    X = canonical_csr(counts)
    X.data = (1.0 + np.log(X.data)) * weights[X.indices]
    norms = np.sqrt(np.asarray((X * X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(X.indptr))
    return X


def _numbers(cells: pd.Series, kind: Kind, name: str, strict: bool = False) -> tuple[np.ndarray, int]:
    """Return cells as numbers, NaN where one is missing or, unless ``strict``, unreadable, and how many are that."""
    if kind.name == "number" and (cells.dtype.kind in "biuf" or (strict and kind == NUMBER)):
        return cell_numbers(cells, name), 0
    texts, codes = _texts(cells)
    values, wrong = kind.numbers(texts)
    values, wrong = np.append(values, np.nan)[codes], np.append(wrong, False)[codes]
    if kind.name == "number" and cells.dtype == object:  # numbers among texts are what they are
        for row, cell in enumerate(cells.tolist()):
            if isinstance(cell, int | float | np.number):
                values[row], wrong[row] = (cell, False) if np.isfinite(cell) else (np.nan, not np.isnan(cell))
    if strict and wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        text = excerpt(repr(cells.iloc[row]))
        raise DatasetError(
            f"column {name[:60]!r}, row {row + 1}: {text} is not a {kind}; training had these in this column"
        )
    return values, int(wrong.sum())


def _texts(cells: pd.Series) -> tuple[list[str], np.ndarray]:
    """Return the different texts of cells, and the position of each row's text among them, -1 of a missing one."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        texts, codes = cell_texts(pd.Series(cells.cat.categories)), cells.cat.codes.to_numpy()
        texts = [*texts, None]
    else:
        refuse_nested(cells)
        texts, codes = cell_texts(cells), np.arange(len(cells))
    position: dict[str, int] = {}
    lookup = np.array(
        [-1 if text is None else position.setdefault(text, len(position)) for text in texts], dtype=np.intp
    )
    return list(position), lookup[codes]


def _date_parts(days: np.ndarray) -> np.ndarray:
    """Return days since 1970 and the parts of the date, of shape (n, 6); the weekday of a Monday is 0."""
    moments = pd.to_datetime(pd.Series(np.floor(days)), unit="D")
    hours = np.floor((days - np.floor(days)) * 24 + 1e-6)
    parts = [days, moments.dt.year, moments.dt.month, moments.dt.day, moments.dt.day_of_week, hours]
    return np.column_stack([np.asarray(part, dtype=np.float64) for part in parts])
