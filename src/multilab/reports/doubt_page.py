"""Page and table of `multilab datasets doubt`: the labels to look at, with the rows that they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import scipy.sparse as sp

from multilab.cells.environment import environment
from multilab.comparison.doubt import Doubts
from multilab.core import write_atomically
from multilab.core.text import excerpt, listed
from multilab.datasets import read_corrections
from multilab.reports.errors import ReportError
from multilab.reports.page import flat, write_page
from multilab.reports.tables.entry import thousands

__all__ = ["TABLE", "write_doubt_page"]

TABLE = "doubts.csv"
_SHOWN = 200  # cells on the page; the table has all
_COLUMNS = 6  # of the row of a table
_CHARACTERS = 120  # of a text in it
_LABELS = 12  # of the row


def write_doubt_page(
    found: Doubts, folder: Path, *, commands: Sequence[str] = (), settings: Mapping[str, Any] | None = None
) -> Path:
    """Write ``index.html`` and ``doubts.csv`` into a folder and return the path of the page.

    Rows are numbered from 1 in both. The last column of the table, ``corrected``, is for the right label; entries of a
    table that is there already are kept.

    Raises
    ------
    MultilabError
        If the table there has entries that the new one has no line for, or Jinja2 is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = found.table.assign(row=found.table["row"] + 1, doubted=found.table["doubted"].astype(int), corrected="")
    table["probability"] = table["probability"].round(4)
    _keep_corrections(table, folder / TABLE)
    write_atomically(folder / TABLE, table.to_csv(index=False, lineterminator="\n"))
    shape = found.data.Y.shape
    content = {
        "title": found.data.name,
        "facts": [("rows", thousands(shape[0])), ("labels", thousands(shape[1])), ("methods", len(found.methods))],
        "methods": listed(found.methods, len(found.methods)),
        "left_out": found.left_out,
        "ranking": found.ranking,
        "doubted": int(found.table["doubted"].sum()),
        "some": len(found.table),
        "values": thousands(shape[0] * shape[1]),
        "n_methods": len(found.methods),
        "commands": commands,
        "labels": _labels(found),
        "cells": [_cell(found, row) for row in found.table.head(_SHOWN).itertuples()],
        "of_rows": isinstance(found.data.X, pd.DataFrame),
        "file": TABLE,
        "origin": flat({**(settings or {}), "environment": environment()}),
    }
    return write_page(folder / "index.html", "doubt.html.j2", content)


def _keep_corrections(table: pd.DataFrame, path: Path) -> None:
    """Enter the corrections of the table in a file, which a user has worked on."""
    if not path.is_file():
        return
    entered = {(one.row, one.label, one.given): one.corrected for one in read_corrections(path)}
    cells = list(zip(table["row"], table["label"], table["given"], strict=True))
    if lost := len(entered.keys() - set(cells)):
        raise ReportError(f"{path} has {lost} corrections that would be lost: name another folder (-o)")
    table["corrected"] = [str(entered.get(cell, "")).replace("-1", "?") for cell in cells]


def _labels(found: Doubts) -> list[dict[str, Any]]:
    """Return each label with its doubted cells, the one with most of them first."""
    doubted = found.table[found.table["doubted"]]
    counts = doubted.groupby(["label", "given"]).size().unstack(fill_value=0).reindex(columns=[0, 1], fill_value=0)
    given = (found.data.Y == 1).sum(axis=0)
    rows = [
        {"label": name, "given": int(count), "without": 0, "with": 0}
        | ({"without": int(counts.loc[name, 0]), "with": int(counts.loc[name, 1])} if name in counts.index else {})
        for name, count in zip(found.data.label_names, given, strict=True)
    ]
    return sorted(rows, key=lambda row: -row["without"] - row["with"])


def _cell(found: Doubts, cell: Any) -> dict[str, Any]:
    """Return a cell with what its row holds, and the other labels of the row."""
    data, row = found.data, int(cell.row)
    labels = data.Y[[row]].toarray()[0] if sp.issparse(data.Y) else data.Y[row]
    others = [name for name, value in zip(data.label_names, labels, strict=True) if value == 1 and name != cell.label]
    shown = ""
    if isinstance(data.X, pd.DataFrame):
        values = data.X.iloc[row, :_COLUMNS].dropna()
        shown = "; ".join(f"{name}: {excerpt(_text(value), _CHARACTERS)}" for name, value in values.items())
    return {
        "row": row + 1,
        "label": cell.label,
        "given": cell.given,
        "probability": f"{cell.probability:.2f}",
        "methods": cell.methods,
        "doubted": cell.doubted,
        "others": listed(others, _LABELS) if others else "–",
        "content": shown,
    }


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
