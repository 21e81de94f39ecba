"""Columns of files: names, those that are left out, and what ARFF declares of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from multilab.core.files import PathLike
from multilab.core.messages import did_you_mean
from multilab.core.text import first_few
from multilab.datasets.errors import DatasetError

INDEX_NAME = re.compile(r"__index_level_\d+__")
"""Name of an index without a name in a file that pandas or Arrow wrote; other programs do not copy the metadata that
say so."""


def to_number(text: str) -> float:
    """Return the finite decimal number of ``text``, else NaN.

    Further input of Python's ``float`` is refused: nan, inf, underscores, digits of other scripts, blanks.
    """
    try:
        value = float(text)
    except ValueError:
        return math.nan
    usual = text.isascii() and "_" not in text and not text[0].isspace() and not text[-1].isspace()
    return value if usual and math.isfinite(value) else math.nan


def to_numbers(texts: Iterable[str]) -> list[float]:
    """Return :func:`to_number` of each text."""
    return list(map(to_number, texts))


@dataclass(frozen=True)
class TableColumn:
    """Attribute of an ARFF file: name, nominal values in order of declaration (None: numeric), line."""

    name: str
    values: tuple[str, ...] | None = None
    line: int | None = None

    @cached_property
    def numbers(self) -> tuple[float, ...] | None:
        """The nominal values as distinct numbers, or None if one of them is not a number."""
        numbers = tuple(to_numbers(self.values or ()))
        return numbers if numbers and not np.isnan(numbers).any() and len(set(numbers)) == len(numbers) else None

    @property
    def binary(self) -> bool:
        """Whether the column is nominal and its values are 0 and 1 (or one of them)."""
        return self.values is not None and self.numbers is not None and set(self.numbers) <= {0.0, 1.0}

    @property
    def plain(self) -> bool:
        """Whether the code of a value is its number, so that nothing has to be recoded."""
        return self.values is None or (self.binary and self.numbers in ((0.0, 1.0), (0.0,)))

    @property
    def width(self) -> int:
        """Number of columns it is coded in: one per value unless it holds numbers only, or 0 and 1."""
        return 1 if self.plain or self.binary else len(self.values or ())


def canonical_csr(matrix: Any) -> sp.csr_array:
    """Return float64 CSR with sorted 32-bit indices (64 where needed), no duplicates, no stored zeros."""
    csr = sp.csr_array(matrix, dtype=np.float64)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    if max(*csr.shape, csr.nnz) < 2**31:  # scikit-learn's liblinear and libsvm take 32-bit indices only
        csr.indices = csr.indices.astype(np.int32, copy=False)
        csr.indptr = csr.indptr.astype(np.int32, copy=False)
    return csr


def positions_left(names: Sequence[str], drop: Sequence[str], path: PathLike) -> list[int]:
    """Return the positions of the columns that are neither dropped nor an index of pandas.

    Raises
    ------
    DatasetError
        If a name to drop is not a column.
    """
    known = set(names)
    for name in drop:
        if name not in known:
            hint = did_you_mean(name, known)
            raise DatasetError(f"drop: '{name[:60]}' is not a column{hint[:200]}", path)
    left_out = set(drop)
    return [j for j, name in enumerate(names) if name not in left_out and not INDEX_NAME.fullmatch(name)]


def dropped_note(drop: Sequence[str], names: Sequence[str] = ()) -> list[str]:
    """Return the notes about dropped columns, and about those among ``names`` that are an index of pandas, if any."""
    index = [name for name in names if INDEX_NAME.fullmatch(name) and name not in drop]
    notes = [f"read as an index and left out: {', '.join(index)}"] if index else []
    return notes + ([f"left out as requested: {first_few((repr(name[:60]) for name in drop), 10)}"] if drop else [])
