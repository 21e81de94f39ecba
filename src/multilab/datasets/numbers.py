"""The quick way through the body of a text file that holds nothing but well-formed numbers.

Both functions return None as soon as anything is unusual (a quote, a comment, a missing value, a wrong
count): the careful readers then take over, accept what is merely unusual and find the line of what is wrong.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

__all__ = ["dense_numbers", "sparse_numbers"]

_PLAIN = b"0123456789+-.eE,\n "
_DELIMITER = np.zeros(256, dtype=bool)
_DELIMITER[list(b" ,{}\n")] = True
_DIGIT = np.zeros(256, dtype=bool)
_DIGIT[list(b"0123456789")] = True
_FOLLOWS = np.zeros((256, 256), dtype=bool)  # which delimiter may come next in {i v,i v}
for _pair in (b"{ ", b"{}", b" ,", b" }", b", ", b"}\n", b"\n{"):
    _FOLLOWS[_pair[0], _pair[1]] = True
_POWERS = np.array([float(10**_k) for _k in range(23)])


def dense_numbers(body: bytes, columns: int) -> np.ndarray | None:
    """Return lines of comma-separated finite numbers as an array with ``columns`` columns, else None.

    Numbers are rounded as Python's ``float`` does. Empty lines are skipped.
    """
    body = _tidy(body)
    octets = np.frombuffer(body, dtype=np.uint8)
    if not len(octets) or body.translate(None, _PLAIN):
        return None
    ends = octets[(octets == ord(",")) | (octets == ord("\n"))] == ord("\n")
    rows = int(ends.sum()) + 1
    if len(ends) != rows * columns - 1 or not ends[columns - 1 :: columns].all():
        return None
    flat = _parse(body.replace(b"\n", b","))
    if flat is None or len(flat) != rows * columns:
        return None
    return flat.reshape(rows, columns)


def sparse_numbers(body: bytes, columns: int) -> sp.csr_array | None:
    """Return lines ``{index value,index value}`` as a CSR array with ``columns`` columns, else None.

    Stored zeros are kept. The structure is checked on the delimiters alone: between braces they must
    alternate blank and comma, and only a value may hold anything but digits.
    """
    body = _tidy(body)
    for loose, tight in ((b", ", b","), (b"{ ", b"{"), (b" }", b"}")):
        body = body.replace(loose, tight)
    octets = np.frombuffer(body, dtype=np.uint8)
    if not len(octets) or body.translate(None, _PLAIN + b"{}"):
        return None
    place = np.flatnonzero(_DELIMITER[octets])
    delimiters = octets[place]
    if delimiters[0] != ord("{") or delimiters[-1] != ord("}") or place[0] or place[-1] != len(octets) - 1:
        return None
    if not _FOLLOWS[delimiters[:-1], delimiters[1:]].all():
        return None
    signs = np.flatnonzero(~(_DIGIT | _DELIMITER)[octets])
    if (delimiters[np.searchsorted(place, signs) - 1] != ord(" ")).any():
        return None
    blanks = np.cumsum(delimiters == ord(" "))
    counts = np.diff(blanks[delimiters == ord("}")], prepend=0)
    text = body.translate(bytes.maketrans(b" \n", b",,"), b"{}")
    while b",," in text:  # left by empty rows
        text = text.replace(b",,", b",")
    flat = _parse(text.strip(b",")) if counts.sum() else np.empty(0)
    if flat is None or len(flat) != 2 * counts.sum():
        return None
    return _as_csr(flat, counts, columns)


def _as_csr(flat: np.ndarray, counts: np.ndarray, columns: int) -> sp.csr_array | None:
    indices, values = flat[::2], flat[1::2]
    if len(indices) and indices.max() >= columns:
        return None
    pointers = np.concatenate([[0], np.cumsum(counts)])
    table = sp.csr_array((values.copy(), indices.astype(np.int64), pointers), shape=(len(counts), columns))
    table.sort_indices()
    rows = np.repeat(np.arange(len(counts)), counts)
    repeated = (np.diff(table.indices) == 0) & (np.diff(rows) == 0)
    return None if repeated.any() else table


def _tidy(body: bytes) -> bytes:
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n")
    body = body.strip(b"\n ")
    while b"\n\n" in body:
        body = body.replace(b"\n\n", b"\n")
    return body


def _parse(text: bytes) -> np.ndarray | None:
    """Return comma-separated finite numbers, each the double that is nearest to its decimal, else None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # before NumPy 2.3 unread text was a warning; the count tells, too
        try:
            if (
                not any(mark in text for mark in (b"e", b"E", b" "))
                and (flat := _short_decimals(text)) is not None
            ):
                return flat
            flat = np.fromstring(text, dtype=np.float64, sep=",")
        except ValueError:
            return None
    return flat if np.isfinite(flat).all() else None


def _short_decimals(text: bytes) -> np.ndarray | None:
    """Return numbers like -12.345 of at most 15 digits or so several times faster than by ``strtod``.

    The digits without the point are read as an integer, which is divided by a power of ten. Both are doubles
    exactly (up to 2**53 and 10**22), so that the quotient is the correctly rounded one (W. D. Clinger, How
    to read floating point numbers accurately, PLDI 1990).
    """
    octets = np.frombuffer(text, dtype=np.uint8)
    marks = np.append(np.flatnonzero((octets == ord(",")) | (octets == ord("."))), len(octets))
    points = np.flatnonzero(octets[marks[:-1]] == ord("."))
    whole = np.fromstring(text.translate(None, b"."), dtype=np.int64, sep=",")
    if len(whole) != len(marks) - len(points) or whole.max() > 2**53 or whole.min() < -(2**53):
        return None
    flat = whole.astype(np.float64)
    if len(points):
        places = marks[points + 1] - marks[points] - 1
        if (np.diff(points) == 1).any() or places.max() >= len(_POWERS):
            return None
        flat[points - np.arange(len(points))] /= _POWERS[places]
    return flat
