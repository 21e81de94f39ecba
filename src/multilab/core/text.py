"""Text from files, made safe for messages and the terminal, and the text of docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

LISTED = 6
"""Items that :func:`listed` names."""

BETTER = {"min": "lower is better", "max": "higher is better"}
"""Meaning of the direction of a metric."""

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}


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


def listed(items: Iterable[str], most: int = LISTED) -> str:
    """Return ``a, b and c``; for a long list, the first items and the number of the others."""
    each = list(items)
    if len(each) > most:
        each = [*each[: most - 1], f"{len(each) - most + 1} others"]
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"


def first_few(items: Iterable[str], most: int) -> str:
    """Return ``a, b, c``; if there are more than ``most`` items, the first ones and the number of the others."""
    each = list(items)
    more = f" and {len(each) - most} more" if len(each) > most else ""
    return ", ".join(each[:most]) + more


def comma_separated(text: str) -> list[str]:
    """Return the items of ``a, b`` or ``[a, b]``, without blanks around them and without empty ones."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return [item.strip() for item in inner.split(",") if item.strip()]


def latex(text: object) -> str:
    r"""Return a text with the characters that LaTeX reads as commands escaped: ``macro\_f1``."""
    return re.sub(r"[\\~^±&%$#_{}]", lambda match: _LATEX.get(match.group(), "\\" + match.group()), str(text))


def markdown_cell(text: object) -> str:
    """Return a text that cannot end a cell of a Markdown table, nor be read as HTML or as a mention."""
    escaped = str(text).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("@", "@\u200b")
    return " ".join(escaped.split())


def docstring(thing: Any) -> str:
    """Return the docstring of a module, class or function; where ``python -OO`` has removed it, from the source."""
    text = inspect.getdoc(thing)
    if text is None and sys.flags.optimize > 1:
        try:
            tree: Any = ast.parse(textwrap.dedent(inspect.getsource(thing)))
        except (OSError, TypeError, SyntaxError):  # no source: it was typed into a shell
            return ""
        text = ast.get_docstring(tree if inspect.ismodule(thing) else tree.body[0])
    return text or ""
