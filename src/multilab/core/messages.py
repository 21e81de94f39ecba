"""Messages: unknown names with the closest known one, options as they are written, and text that is safe to print."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from multilab.core.text import visible

_SHORT_LIST = 12  # names; a longer list is printed only if no name is close


def printable(text: str) -> str:
    """Return a text as one line with control characters escaped: those of a file must not reach a terminal."""
    return visible(" ".join(text.split()))


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like ``name`` (upper and lower case count as equal), ``None`` if none is."""
    lowered = {str(other).lower(): str(other) for other in known}
    matches = difflib.get_close_matches(str(name).lower(), sorted(lowered), n=1)
    return lowered[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'that'?``, or nothing if no known name is close."""
    match = closest(name[:100], known)
    return f"; did you mean {match!r}?" if match else ""


def as_argument(name: str, value: object = None) -> str:
    """Return an option as it is written in Python: ``drop``, ``drop=id``."""
    return name if value is None else f"{name}={value}"


_spelling: ContextVar[Callable[[str, object], str]] = ContextVar("spelling", default=as_argument)


def option(name: str, value: object = None) -> str:
    """Return an option of a reader of data files, with its value if any, as the reader of the message writes it.

    That is as in Python and in a card, except within :func:`options_spelled_by`.

    Parameters
    ----------
    name : str
        As in Python.
    value : object, optional
        Its ``str`` is shown.

    Examples
    --------
    >>> from multilab.core.messages import option, options_spelled_by
    >>> option("drop"), option("drop", "id")
    ('drop', 'drop=id')
    >>> with options_spelled_by(lambda name, value: f"--{name} {value}"):
    ...     option("drop", "id")
    '--drop id'
    """
    return _spelling.get()(name, value)


@contextmanager
def options_spelled_by(spelling: Callable[[str, object], str]) -> Iterator[None]:
    """Spell the options in messages as a front end does.

    Parameters
    ----------
    spelling : callable
        Gets the name of an option and its value, ``None`` for the name alone, and returns the text.
    """
    token = _spelling.set(spelling)
    try:
        yield
    finally:
        _spelling.reset(token)


def pip_install(*packages: str, extra: str = "") -> str:
    """Return the command that installs packages, in the versions that multilab declares.

    multilab itself is on no package index: with ``multilab[lab]`` in such a command, whoever registers that name would
    be installed. So messages name the packages of an extra.

    Parameters
    ----------
    *packages : str
        Names of distributions.
    extra : str, optional
        Add the packages of this extra that are not installed.

    Examples
    --------
    >>> from multilab.core.messages import pip_install
    >>> pip_install("openpyxl")
    "pip install 'openpyxl>=3.1'"
    """
    from importlib.metadata import PackageNotFoundError, distribution, requires

    def is_installed(name: str) -> bool:
        try:
            return bool(distribution(name))
        except PackageNotFoundError:
            return False

    declared: dict[str, str] = {}
    wanted = list(packages)
    for line in (requires("multilab") if is_installed("multilab") else None) or ():
        requirement, _, marker = line.partition(";")
        name = re.split(r"[<>=!~ ]", requirement, maxsplit=1)[0]
        declared[name] = requirement.strip()
        if extra and re.search(rf"extra == ['\"]{extra}['\"]", marker) and not is_installed(name):
            wanted.append(name)
    return f"pip install {' '.join(shlex.quote(declared.get(name, name)) for name in dict.fromkeys(wanted))}"


def unknown_name(kind: str, name: str, known: Iterable[str], command: str = "") -> str:
    """Return one line for an unknown name: the closest known name, or the known names.

    Parameters
    ----------
    kind : str
        What the name should name: ``dataset``.
    name : str
        The name that does not exist.
    known : iterable of str
        The names that exist.
    command : str, optional
        The command that lists them. With it, a long list is printed only if no name is close.
    """
    names = [str(other) for other in known]
    match = did_you_mean(str(name), names)
    message = f"no {kind} is called {str(name)!r}{match}"
    if match and command and len(names) > _SHORT_LIST:
        return f"{message} (`{command}` lists all {len(names)})"
    return f"{message}{' There are:' if match else '; there are:'} {', '.join(names) or 'none'}"
