"""The result files of a study in ``reports/<study>``: the one reader and the one writer of its tables.

``scores.csv.gz`` holds a row per dataset, split, method and metric, ``keys.csv`` the first digits of the keys of the
cells behind each dataset and method, in the order of the splits, ``tuned.csv`` what the searches chose,
``unfinished.csv`` the cells without a result, ``unchecked.csv`` how many were computed by files that have changed
since, and ``measured.csv`` seconds, memory and model size, which no stage rewrites. Numbers are read back to the last
bit. Large files that DVC neither plots nor compares are compressed, which their name says.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from multilab.core import read_content, write_content
from multilab.statistics.errors import StatisticsError

SCORES = "scores.csv.gz"
"""The table of scores; a study with this file has results."""
UNCHECKED = "unchecked.csv"
"""Results that other files than those of today have computed, by class."""
MEASURED = "measured.csv"
"""What was measured of the cells; `keep_measured` writes it."""
TABLES = (SCORES, "keys.csv", "tuned.csv", "sampling.csv", "labels.csv", "unfinished.csv", UNCHECKED)
"""The tables of a study that are computed from stored cells."""

# Older versions of pandas read the last bit back only on request.
_EXACT = {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}

KEY_DIGITS = 12
"""Digits of a key in the tables: two of 25,000 keys are the same with a probability of 1e-6."""
CELL = ["dataset", "split", "method"]
"""Columns that name a cell: one method on one split of one dataset."""
_NAMES = ("dataset", "method", "metric", "keys", "table")
_NO_KEY = "-"  # of a split that is not in the study


def variant_column(method: str, variant: str) -> str:
    """Return the name of the column of a method in a variant: ``mls-svm``."""
    return f"{method}-{variant}"


def method_of_column(column: str) -> str:
    """Return the method of a column, in a variant or not: the inverse of :func:`variant_column`.

    No name of a variant has a ``-``, and none of a method of the package.
    """
    return column.rpartition("-")[0] or column


def read_table(path: Path | str, columns: Iterable[str] = (), text: bool = False) -> pd.DataFrame:
    """Return one table of a study.

    Parameters
    ----------
    path : path
        The CSV file; compressed where its name ends in ``.gz``.
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
        table = pd.read_csv(io.BytesIO(read_content(path)), **options, **_EXACT)
    except (OSError, ValueError) as error:
        raise StatisticsError(f"{path} cannot be read: {error}") from error
    missing = sorted(set(columns) - set(table.columns))
    if missing:
        raise StatisticsError(f"{path} lacks the column {missing[0]!r}")
    return table


def read_unfinished(folder: Path | str) -> pd.DataFrame:
    """Return the cells of a study without a result: dataset, split, method, reason, seconds; may be empty."""
    path, columns = Path(folder) / "unfinished.csv", [*CELL, "reason", "seconds"]
    return read_table(path, columns) if path.is_file() else pd.DataFrame(columns=columns)


def read_keys(folder: Path | str) -> pd.DataFrame:
    """Return dataset, split, method and the first digits of the key of all cells of a study, unfinished ones too."""
    path = Path(folder) / "keys.csv"
    if not path.is_file():
        return pd.DataFrame(columns=[*CELL, "key"])
    rows = read_table(path, ["dataset", "method", "keys"]).itertuples(index=False)
    cells = [(row.dataset, split, row.method, key) for row in rows for split, key in enumerate(row.keys.split())]
    return pd.DataFrame([cell for cell in cells if cell[-1] != _NO_KEY], columns=[*CELL, "key"])


def write_keys(folder: Path | str, keys: pd.DataFrame) -> None:
    """Write ``keys.csv`` from the columns dataset, split, method and key."""
    rows = []
    for (dataset, method), cells in keys.groupby(["dataset", "method"], sort=False):
        by_split = dict(zip(cells["split"], cells["key"], strict=True))
        known = [str(by_split.get(split, _NO_KEY))[:KEY_DIGITS] for split in range(max(by_split) + 1)]
        rows.append((dataset, method, " ".join(known)))
    write_table(Path(folder) / "keys.csv", pd.DataFrame(rows, columns=["dataset", "method", "keys"]))


def write_table(path: Path | str, table: pd.DataFrame) -> None:
    """Write one table of a study atomically, compressed where its name ends in ``.gz``."""
    write_content(path, table.to_csv(index=False, lineterminator="\n"))


def table_file(name: str) -> str:
    """Return the file of a table by its name: tables of scores are compressed.

    Examples
    --------
    >>> from multilab.statistics.result_files import table_file
    >>> table_file("sweeps"), table_file("scores-table3")
    ('sweeps.csv', 'scores-table3.csv.gz')
    """
    return f"{name}.csv.gz" if name.startswith("scores") else f"{name}.csv"


def statistics_file(variant: str = "") -> str:
    """Return the file with the comparisons of a study's own methods, or of those of a variant."""
    return f"statistics-{variant}.json.gz" if variant else "statistics.json.gz"


def tables_of(folder: Path | str) -> dict[str, Path]:
    """Return the files of all tables in a folder by their names, in the order of these."""
    paths = (path for path in Path(folder).iterdir() if path.name.endswith((".csv", ".csv.gz")))
    return dict(sorted((path.name.partition(".")[0], path) for path in paths))


def read_scores(folder: Path | str, extra: bool = False) -> pd.DataFrame:
    """Return the scores of a study: dataset, split, method, metric, value, and the cell key where it is known.

    Parameters
    ----------
    folder : path
        The folder ``reports/<study>``.
    extra : bool
        Append the rows of ``scores-*.csv.gz``: results under other protocols that a paper also reports.
    """
    needed = [*CELL, "metric", "value"]
    scores = _with_keys(Path(folder), read_table(Path(folder) / SCORES, needed))
    if not extra:
        return scores
    return pd.concat([scores, *(read_table(p, needed) for p in sorted(Path(folder).glob(table_file("scores-*"))))])


def read_measured(folder: Path | str) -> pd.DataFrame | None:
    """Return seconds, memory and model size of the cells of a study, ``None`` if they were not measured."""
    path = Path(folder) / MEASURED
    return _with_keys(Path(folder), read_table(path, CELL)) if path.is_file() else None


def _with_keys(folder: Path, table: pd.DataFrame) -> pd.DataFrame:
    return table.merge(read_keys(folder), on=CELL, how="left") if (folder / "keys.csv").is_file() else table


def keep_measured(folder: Path | str, measured: pd.DataFrame, again: bool = False) -> bool:
    """Write what was measured of the cells that ``measured.csv`` lacks; return whether the file was written.

    Seconds and memory are of one run and one machine, so that rows that are there stay, as they are written.

    Parameters
    ----------
    folder : path
        The folder ``reports/<study>``.
    measured : DataFrame
        A row for each cell of the study, in their order; its numbers are missing where nothing is known. Rows of other
        cells are removed.
    again : bool
        Also replace the rows of which something is known.
    """
    path, numbers = Path(folder) / MEASURED, [name for name in measured.columns if name not in (*CELL, "alone", "key")]
    measured = measured.drop(columns="key", errors="ignore")
    known = measured.dropna(subset=numbers, how="all")
    if path.is_file():
        written = read_table(path, CELL, text=True)
        places = {cell: place for place, cell in enumerate(measured[CELL].itertuples(index=False, name=None))}
        cells = [(row.dataset, int(row.split), row.method) for row in written.itertuples(index=False)]
        replaced = set(known[CELL].itertuples(index=False, name=None)) if again else set()
        kept = written[[cell in places and cell not in replaced for cell in cells]]
        there = {cell for cell in cells if cell in places} - replaced
        new = known[[cell not in there for cell in known[CELL].itertuples(index=False, name=None)]]
        if new.empty and len(kept) == len(written):
            return False
        known = pd.concat([kept, new.astype(object)], ignore_index=True)
        rows = zip(known["dataset"], known["split"].astype(int), known["method"], strict=True)
        known = known.iloc[sorted(range(len(known)), key=[places[row] for row in rows].__getitem__)]
    write_table(path, known)
    return True


def write_results(
    folder: Path | str,
    scores: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    always: Iterable[str] = (),
) -> None:
    """Write the tables of a study's cells.

    Parameters
    ----------
    folder : path
        The folder ``reports/<study>``.
    scores : DataFrame
        With a column ``key``, which is written to ``keys.csv``.
    tables : mapping of file name to DataFrame
        ``tuned.csv``, ``sampling.csv``, ``unfinished.csv`` (with the ``key``), ``unchecked.csv``. Without rows there is
        no such file.
    always : iterable of str
        Files that are written without rows, too, because DVC expects them.
    """
    folder, keys = Path(folder), [scores[[*CELL, "key"]].drop_duplicates()]
    for name, table in tables.items():
        if name == "unfinished.csv":
            keys.append(table[[*CELL, "key"]])
            table = table.drop(columns="key")
        if table.empty and name not in always:
            (folder / name).unlink(missing_ok=True)
        else:
            write_table(folder / name, table)
    write_keys(folder, pd.concat([part for part in keys if len(part)] or keys))
    write_table(folder / SCORES, scores.drop(columns="key"))  # the last: its presence says that there are results
