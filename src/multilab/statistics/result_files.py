"""The result files of a study in ``reports/<study>``: the one reader and the one writer of its tables.

``scores.csv`` holds a row per dataset, split, method and metric, ``keys.csv`` the key of the cell behind each dataset,
split and method, ``measured.csv`` its seconds, memory and model size, ``tuned.csv`` what the searches chose,
``unfinished.csv`` the cells without a result, and ``cells.csv`` the verdict on every published cell. Numbers are read
back to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from multilab.core import write_atomically
from multilab.statistics.errors import StatisticsError

# Older versions of pandas read the last bit back only on request.
_EXACT = {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}

_CELL = ["dataset", "split", "method"]
_NAMES = ("dataset", "method", "metric", "key", "table")


def read_table(path: Path | str, columns: Iterable[str] = (), text: bool = False) -> pd.DataFrame:
    """Return one table of a study.

    Parameters
    ----------
    path : path
        The CSV file.
    columns : iterable of str
        Columns that it must have.
    text : bool
        Read every value as its text, absent ones as the empty text.

    Raises
    ------
    StatisticsError
        If the file cannot be read or lacks a column.
    """
    options = {"dtype": str, "keep_default_na": False} if text else {"dtype": dict.fromkeys(_NAMES, str)}
    try:
        table = pd.read_csv(path, **options, **_EXACT)
    except (OSError, ValueError) as error:
        raise StatisticsError(f"{path} cannot be read: {error}") from error
    missing = sorted(set(columns) - set(table.columns))
    if missing:
        raise StatisticsError(f"{path} lacks the column {missing[0]!r}")
    return table


def read_unfinished(folder: Path | str) -> pd.DataFrame:
    """Return the cells of a study without a result: dataset, split, method, reason, seconds, key; perhaps no rows."""
    path, columns = Path(folder) / "unfinished.csv", [*_CELL, "reason", "seconds", "key"]
    return read_table(path, columns) if path.is_file() else pd.DataFrame(columns=columns)


def write_table(path: Path | str, table: pd.DataFrame) -> None:
    """Write one table of a study atomically."""
    write_atomically(path, table.to_csv(index=False, lineterminator="\n"))


def read_scores(folder: Path | str, extra: bool = False) -> pd.DataFrame:
    """Return the scores of a study: dataset, split, method, metric, value, and the cell key where it is known.

    Parameters
    ----------
    folder : path
        The folder ``reports/<study>``.
    extra : bool
        Append the rows of ``scores-*.csv``: results under other protocols that a paper also reports.
    """
    needed = [*_CELL, "metric", "value"]
    scores = _with_keys(Path(folder), read_table(Path(folder) / "scores.csv", needed))
    if not extra:
        return scores
    return pd.concat([scores, *(read_table(p, needed) for p in sorted(Path(folder).glob("scores-*.csv")))])


def read_measured(folder: Path | str) -> pd.DataFrame | None:
    """Return seconds, memory and model size of the cells of a study, ``None`` if they were not measured."""
    path = Path(folder) / "measured.csv"
    return _with_keys(Path(folder), read_table(path, _CELL)) if path.is_file() else None


def _with_keys(folder: Path, table: pd.DataFrame) -> pd.DataFrame:
    path = folder / "keys.csv"
    return table.merge(read_table(path, [*_CELL, "key"]), on=_CELL, how="left") if path.is_file() else table


def write_results(
    folder: Path | str,
    scores: pd.DataFrame,
    measured: pd.DataFrame,
    tuned: pd.DataFrame,
    sampling: pd.DataFrame | None = None,
    unfinished: pd.DataFrame | None = None,
) -> None:
    """Write the tables of a study's cells.

    Parameters
    ----------
    folder : path
        The folder ``reports/<study>``.
    scores, measured : DataFrame
        With a column ``key``, which is written to ``keys.csv``.
    tuned, sampling, unfinished : DataFrame
        What the searches chose, the sampling errors, and the cells without a result (with their ``key``); without rows
        there is no such file.
    """
    folder = Path(folder)
    write_table(folder / "measured.csv", measured.drop(columns="key"))
    for name, table in (("tuned.csv", tuned), ("sampling.csv", sampling), ("unfinished.csv", unfinished)):
        if table is None or table.empty:
            (folder / name).unlink(missing_ok=True)
        else:
            write_table(folder / name, table)
    write_table(folder / "keys.csv", scores[[*_CELL, "key"]].drop_duplicates())
    write_table(folder / "scores.csv", scores.drop(columns="key"))  # the last: DVC waits for it
