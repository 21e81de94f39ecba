"""Tables in LaTeX, with the rules of ``booktabs``."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from multilab.core.text import latex
from multilab.reports.tables.entry import Entry, TextTable

_SIGNS = {
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "χ²": r"$\chi^2$",
    "−": "$-$",
    "–": "--",
    "∞": r"$\infty$",
    "<": "$<$",
    "≤": r"$\leq$",
    "\u202f": r"\,",
}


def latex_table(table: TextTable, caption: str, label: str) -> str:
    """Return a floating table with its caption and label; what is below the rows of a page comes after a rule."""
    rows = [[latex_text(title), *map(latex_entry, entries)] for title, entries in (*table.rows, *table.foot)]
    text = latex_rows(list(map(latex_text, (table.corner, *table.heads))), rows, latex_text(caption), label)
    if not table.foot:
        return text
    lines = text.splitlines()
    lines.insert(lines.index(r"\bottomrule") - len(table.foot), r"\midrule")
    return "\n".join(lines) + "\n"


def latex_rows(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", label: str = "") -> str:
    """Return texts that are LaTeX already as a ``tabular``, in a ``table`` if there is a caption."""
    frame = pd.DataFrame(list(rows), columns=list(heads))
    numbers = "r" * (len(heads) - 1)
    return frame.to_latex(
        index=False, escape=False, column_format=f"l{numbers}", caption=caption or None, label=label or None
    )


def latex_entry(entry: Entry) -> str:
    """Return an entry, bold if it is the best, with its standard deviation."""
    text = latex_text(entry.text)
    bold = rf"\textbf{{{text}}}" if entry.best else text
    return rf"{bold} $\pm$ {latex_text(entry.std)}" if entry.std else bold


def latex_text(text: str) -> str:
    """Return a text with the characters that LaTeX reads as commands escaped, and signs as its commands."""
    escaped = latex(text)
    for sign, command in _SIGNS.items():
        escaped = escaped.replace(sign, command)
    return escaped
