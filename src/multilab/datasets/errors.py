"""What can be wrong with a data file, said in one line that names the place."""

from __future__ import annotations

import os
import re

from multilab.ground.errors import MultilabError
from multilab.ground.text import excerpt, visible

__all__ = ["DatasetError", "DatasetWarning"]

_MAX_REASON = 800  # characters; the start and the end of a longer reason are shown
_END = 200
_LONG_WORD = re.compile(r"[^\s/]{101,}")  # a checksum has 64 characters; paths are left alone


class DatasetError(MultilabError, ValueError):
    """A data file, card or option that cannot be used as it is.

    Parameters
    ----------
    reason : str
        What is wrong and, where it is not obvious, what to do. Line breaks become spaces.
    path : path-like, optional
        The file it was found in.
    line : int, optional
        Number of the line in that file, counted from 1 (in the decompressed text); ignored without ``path``.

    Notes
    -----
    ``str()`` gives ``path:line: reason``, ``path: reason`` or ``reason``: always one line, of bounded length and
    without control characters, whatever the file contains.
    """

    def __init__(self, reason: str, path: str | os.PathLike[str] | None = None, line: int | None = None):
        self.reason = _one_line(str(reason))
        self.path = None if path is None else os.fspath(path)
        self.line = None if line is None else int(line)
        place = "" if path is None else visible(str(self.path))
        place = "" if path is None else f"{place}: " if self.line is None else f"{place}:{self.line}: "
        super().__init__(place + self.reason)

    def __reduce__(self):  # so that it survives the way back from a worker process
        return (type(self), (self.reason, self.path, self.line))


def _one_line(reason: str) -> str:
    text = visible(_LONG_WORD.sub(lambda word: excerpt(word[0]), " ".join(reason.split())))
    if len(text) <= _MAX_REASON:
        return text
    return f"{text[: _MAX_REASON - _END - 5]} ... {text[-_END:]}"


class DatasetWarning(UserWarning):
    """Something in a data file that a reader decided by itself, or that probably is not what the user wants."""
