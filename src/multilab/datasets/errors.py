"""Errors and warnings of data files: one line with file and line number."""

from __future__ import annotations

import os
import re

from multilab.core.errors import MultilabError
from multilab.core.files import PathLike
from multilab.core.text import excerpt, visible

_MAX_REASON = 800  # characters; the start and the end of a longer reason are shown
_END = 200  # characters kept from the end, where a message says what to do
_LONG_WORD = re.compile(r"[^\s/]{101,}")  # a checksum has 64 characters; paths are left alone


class DatasetError(MultilabError, ValueError):
    """Invalid data file, card or option.

    Parameters
    ----------
    reason : str
        What is wrong and, where it is not obvious, what to do. Line breaks become spaces.
    path : path-like, optional
        The file with the error.
    line : int, optional
        Number of the line in that file, counted from 1 (in the decompressed text); ignored without ``path``.

    Notes
    -----
    ``str()`` gives ``path:line: reason``, ``path: reason`` or ``reason``: always one line, of bounded length and
    without control characters, whatever the file contains.
    """

    def __init__(self, reason: str, path: PathLike | None = None, line: int | None = None):
        self.reason = _one_line(str(reason))
        self.path = None if path is None else os.fspath(path)
        self.line = None if line is None else int(line)
        prefix = "" if path is None else visible(str(self.path))
        prefix = "" if path is None else f"{prefix}: " if self.line is None else f"{prefix}:{self.line}: "
        super().__init__(prefix + self.reason)

    def __reduce__(self):  # so that it can be sent back from a worker process
        return (type(self), (self.reason, self.path, self.line))


def _one_line(reason: str) -> str:
    text = visible(_LONG_WORD.sub(lambda match: excerpt(match[0]), " ".join(reason.split())))
    if len(text) <= _MAX_REASON:
        return text
    return f"{text[: _MAX_REASON - _END - 5]} ... {text[-_END:]}"


class TooLargeError(DatasetError):
    """The content of a file is larger than the limit of bytes."""


class DatasetWarning(UserWarning):
    """Decision of a reader about a data file, or probably unwanted content of one."""
