"""Fast parsing of the rows of an ARFF file that hold only well-formed numbers.

The functions return None if anything is unusual (a quote, a comment, a missing value, a wrong count): the slow reader
then accepts what is valid and reports the line of what is not.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

_BLOCK = 1 << 16  # bytes of a block, whose arrays stay in the cache
_PLAIN = b"0123456789+-.eE,\n"
_DELIMITER = np.zeros(256, dtype=bool)
_DELIMITER[list(b" ,{}\n")] = True
_DIGIT = np.zeros(256, dtype=bool)
_DIGIT[list(b"0123456789")] = True
_FOLLOWS = np.zeros((256, 256), dtype=bool)  # which delimiter may come next in {i v,i v}
for _pair in (b"{ ", b"{}", b" ,", b" }", b", ", b"}\n", b"\n{"):
    _FOLLOWS[_pair[0], _pair[1]] = True
_TOUCHES = np.zeros((256, 256), dtype=bool)  # and after which nothing may be between the two
for _pair in (b"{}", b"}\n", b"\n{"):
    _TOUCHES[_pair[0], _pair[1]] = True
_POWERS = np.array([float(10**_k) for _k in range(23)])


def dense_numbers(body: bytes, columns: int) -> np.ndarray | None:
    """Return lines of comma-separated finite numbers as an array with ``columns`` columns, else None.

    Numbers are rounded as Python's ``float`` does. Empty lines are skipped.
    """
    blocks = []
    start = 0
    while start < len(body):  # in blocks whose arrays stay in the cache and in allocated memory
        end = body.find(b"\n", start + _BLOCK) + 1 or len(body)
        block = _dense_lines(body[start:end], columns)
        if block is None:
            return None
        blocks.append(block)
        start = end
    return np.concatenate(blocks) if any(map(len, blocks)) else None


def _dense_lines(body: bytes, columns: int) -> np.ndarray | None:
    body = _trimmed(body)
    if b" " in body:
        while b"  " in body:  # each pass halves every run of blanks: linear time, nearly
            body = body.replace(b"  ", b" ")
        for mark in (b",", b"\n"):
            body = body.replace(b" " + mark, mark).replace(mark + b" ", mark)
    if not body:
        return np.empty((0, columns))
    marks, kinds = _marks(body)
    ends = kinds[kinds != ord(".")] == ord("\n")
    rows = int(ends.sum()) + 1
    if len(ends) != rows * columns - 1 or not ends[columns - 1 :: columns].all():
        full = _without_empty_lines(body)
        return _dense_lines(full, columns) if len(full) < len(body) else None
    flat = _parse(body.replace(b"\n", b","), marks, kinds)
    return None if flat is None else flat.reshape(rows, columns)


def sparse_numbers(body: bytes, columns: int) -> sp.csr_array | None:
    """Return lines ``{index value,index value}`` as a CSR array with ``columns`` columns, else None.

    Stored zeros are kept. The structure is checked by the delimiters alone: between braces blank and comma must
    alternate, and only a value may hold anything but digits.
    """
    body = _without_empty_lines(_trimmed(body))
    for loose, tight in ((b", ", b","), (b"{ ", b"{"), (b" }", b"}")):
        body = body.replace(loose, tight)
    octets = np.frombuffer(body, dtype=np.uint8)
    if not len(octets) or body.translate(None, _PLAIN + b" {}"):
        return None
    if body[:1] != b"{" or body[-1:] != b"}":
        return None
    position = np.flatnonzero(_DELIMITER[octets])
    delimiters = octets[position]
    pairs = delimiters[:-1], delimiters[1:]
    if not _FOLLOWS[pairs].all() or ((np.diff(position) == 1) != _TOUCHES[pairs]).any():
        return None
    signs = np.flatnonzero(~(_DIGIT | _DELIMITER)[octets])
    if (delimiters[np.searchsorted(position, signs) - 1] != ord(" ")).any():
        return None
    blanks = np.cumsum(delimiters == ord(" "))
    counts = np.diff(blanks[delimiters == ord("}")], prepend=0)
    text = body.translate(bytes.maketrans(b" \n", b",,"), b"{}")
    while b",," in text:  # left by empty rows
        text = text.replace(b",,", b",")
    text = text.strip(b",")
    flat = _parse(text, *_marks(text)) if counts.sum() else np.empty(0)
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


def _trimmed(body: bytes) -> bytes:
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n")
    return body.strip(b" \n")


def _without_empty_lines(body: bytes) -> bytes:
    return b"\n".join(filter(None, body.split(b"\n")))


def _marks(text: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and kinds of commas, line ends and decimal points."""
    octets = np.frombuffer(text, dtype=np.uint8)
    marks = np.flatnonzero(octets < ord("/"))  # blanks and signs, too
    kinds = octets[marks]
    separators = (kinds == ord(",")) | (kinds == ord(".")) | (kinds == ord("\n"))
    return (marks, kinds) if separators.all() else (marks[separators], kinds[separators])


def _parse(text: bytes, marks: np.ndarray, kinds: np.ndarray) -> np.ndarray | None:
    """Return comma-separated finite numbers, each the double that is nearest to its decimal, else None."""
    points = np.flatnonzero(kinds == ord("."))
    fields = len(marks) - len(points) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # before NumPy 2.3 unread text was a warning; the count shows it, too
        try:
            flat = _short_decimals(text, np.append(marks, len(text)), points)
            if flat is None:
                if text.translate(None, _PLAIN):
                    return None
                flat = np.fromstring(text, dtype=np.float64, sep=",")
        except ValueError:
            return None
    return flat if len(flat) == fields and np.isfinite(flat).all() else None


def _short_decimals(text: bytes, marks: np.ndarray, points: np.ndarray) -> np.ndarray | None:
    """Return numbers like -12.345 of at most 15 digits or so faster than ``strtod`` does, else None.

    The digits without the point are read as an integer, which is divided by a power of ten. Both are doubles
    exactly (up to 2**53 and 10**22), so that the quotient is the correctly rounded one (W. D. Clinger, How
    to read floating point numbers accurately, PLDI 1990). ``marks`` are the positions of separators and points
    and the end, ``points`` those of them that are points.
    """
    octets = np.frombuffer(text, dtype=np.uint8)
    if octets.min() < ord("+") or octets.max() > ord("9"):  # only + , - . / 0-9 lie in that range
        return None
    digits = text.translate(None, b".")
    # NumPy would read a lone sign as 0, and without its point .-5 as -5.
    if (b"-" in text or b"+" in text) and (
        digits[-1:] in b"+-" or any(odd in digits for odd in (b"-,", b"+,")) or b".-" in text or b".+" in text
    ):
        return None
    integers = np.fromstring(digits, dtype=np.int64, sep=",")
    if len(integers) != len(marks) - len(points) or integers.max() > 2**53 or integers.min() < -(2**53):
        return None
    flat = integers.astype(np.float64)
    if len(points):
        decimals = np.diff(marks)[points] - 1
        if (points[1:] - points[:-1] == 1).any() or decimals.max() >= len(_POWERS):
            return None
        if len(points) == len(flat):
            flat /= _POWERS[decimals]
        else:
            flat[points - np.arange(len(points))] /= _POWERS[decimals]
    return flat
