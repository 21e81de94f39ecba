"""Text that comes from a file, made safe for a message and for the terminal."""

from __future__ import annotations

from collections.abc import Sequence


def visible(text: str) -> str:
    r"""Return ``text`` with every character that a terminal does not print as an escape (``\x1b``, ``\u202e``).

    Control characters move the cursor or set the title of the terminal, bidirectional marks reorder what is read,
    and lone surrogates cannot be written as UTF-8. Blanks and the escapes themselves are printable: applying the
    function twice changes nothing.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def excerpt(text: str, limit: int = 60) -> str:
    """Return at most ``limit`` characters of ``text``: the start of a longer one and three dots."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def listed(names: Sequence[str], most: int) -> str:
    """Return ``a, b and c``; of more than ``most`` names the first ones and the number of the others."""
    shown = [*names[:most], f"{len(names) - most} more"] if len(names) > most else list(names)
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
