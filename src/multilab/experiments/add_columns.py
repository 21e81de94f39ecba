"""`multilab store add`: fit new columns of a study, without repeating its committed results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from multilab.cells.cell import Cell
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import run_cells
from multilab.cells.progress import ProgressBar, exit_code
from multilab.cells.store import Store
from multilab.core import record_checksums, report_dir
from multilab.experiments.dvc_files import evaluated_tables
from multilab.experiments.evaluate import evaluate, measurements, sampling_errors, tuned, unfinished
from multilab.experiments.plan import all_cells
from multilab.experiments.study import load_study
from multilab.printed import find
from multilab.statistics.result_files import (
    CELL,
    KEY_DIGITS,
    MEASURED,
    SCORES,
    TABLES,
    UNCHECKED,
    keep_measured,
    read_keys,
    read_table,
    read_unfinished,
    write_results,
)

if TYPE_CHECKING:
    from multilab.printed import PublishedTables


def add(store: Store, study: str, retry: bool = False) -> int:
    """Fit the cells that a study's committed results lack, and add their results; return an exit code.

    A cell of a known key has its numbers in the committed tables, whatever its column is called now. Rows of columns
    that the study no longer has are dropped, and so are quantities under other conventions that no published cell is
    compared with any more.

    Parameters
    ----------
    store : Store
        New cells are stored here; those of known keys need not be.
    study : str
        Name of the study.
    retry : bool
        Retry cells that exceeded a limit of the study or failed.
    """
    described, folder = load_study(study), report_dir(study)
    published = find(described.paper).tables if described.paper else None
    cells = all_cells(described)
    committed = _Committed(folder)
    gone = set() if retry else set(committed.unfinished)
    new = [cell for cell in cells if _short(cell) not in committed.keys | gone]
    print(f"{study}: {len({c.key for c in new})} of {len({c.key for c in cells})} cells are not in {folder}")
    progress = ProgressBar(f"add: cells of {study}")
    failed = run_cells(
        [*(read for cell in new for read in cell.reads), *new], store, progress=progress, limits=described.limits
    )
    if failed and not described.limits:
        print(*(f"{label} failed: {reason}" for label, reason in failed.items()), sep="\n")
        return exit_code(failed)
    lacking = [cell for cell in new if not store.has(cell.key)]
    missing = unfinished(lacking, store)
    new = [cell for cell in new if store.has(cell.key)]
    scores = evaluate(described, new, store, published)
    compared = functools.cache(functools.partial(_compared, published, described.conventions))
    old = [cell for cell in cells if _short(cell) in committed.keys]
    tables = (
        (_wanted(committed.scores(old), compared, plain=True), scores),
        (committed.measured(old), measurements(new, store)),
        (committed.tuned(old), tuned(new, store)),
        (committed.missing([cell for cell in cells if _short(cell) in gone]), missing),
    )
    order = {cell.row: position for position, cell in enumerate(cells)}
    results, costs, chosen, missing = (_merged(parts, order) for parts in tables)
    _check_quantities(results, compared, folder)
    sampled = _wanted(committed.sampling(cells), compared)
    here = [cell for cell in cells if store.has(cell.key)]
    errors = _merged((sampled, sampling_errors(described, here, store, published)), order)
    errors = errors.drop_duplicates([*CELL, "metric"], keep="last")
    others = {"tuned.csv": chosen, "sampling.csv": errors, "unfinished.csv": missing, UNCHECKED: results[:0]}
    write_results(folder, results, others, evaluated_tables(described))
    keep_measured(folder, costs, again=True)
    record_checksums(folder, [*TABLES, MEASURED])
    print(f"{folder / SCORES}: {len(cells) - len(missing)} results of {len(described.all_methods)} columns")
    if len(missing):
        print(f"{folder / 'unfinished.csv'}: {len(missing)} cells exceeded a limit or failed")
    return 0


class _Committed:
    """The committed results of a study by the key of their cell."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._locations = folder, read_keys(folder)
        self._missing = read_unfinished(folder).astype({"split": int}).merge(self._locations, on=CELL)
        self.unfinished = set(self._missing["key"])
        self.keys = set(self._locations["key"]) - self.unfinished

    def _rows(self, file: str, cells: Sequence[Cell], name: str = "", once: bool = False) -> pd.DataFrame:
        """Return the rows of cells: those of their own column, or of any column with their key.

        ``name`` is the column in which the rows of a cell differ; with ``once`` repetitions of a key have them once.
        """
        path = self._folder / file
        if not path.is_file():
            return pd.DataFrame()
        table = read_table(path, [*CELL, *([name] if name else [])], text=file == "tuned.csv")  # its JSON null is text
        table = table.astype({"split": int}).merge(self._locations, on=CELL)
        by_column = dict(iter(table.groupby([*CELL, "key"], sort=False)))
        distinct = table.drop_duplicates(["key", *([name] if name else [])])
        by_key = dict(iter(distinct.groupby("key", sort=False)))
        seen, parts = set(), []
        for cell in cells:
            rows = by_column.get((*cell.row, _short(cell)), by_key.get(_short(cell)))
            if rows is not None and not (once and (cell.key, cell.method.name) in seen):
                seen.add((cell.key, cell.method.name))
                parts.append(rows.assign(**dict(zip(CELL, cell.row, strict=True))))
        return pd.concat(parts) if parts else pd.DataFrame()

    def scores(self, cells: Sequence[Cell]) -> pd.DataFrame:
        rows = self._rows(SCORES, cells, "metric")
        return rows[[*CELL, "metric", "value", "key"]] if len(rows) else rows

    def measured(self, cells: Sequence[Cell]) -> pd.DataFrame:
        rows = self._rows("measured.csv", cells)
        return rows[[*CELL, *(name for name in rows if name not in CELL)]] if len(rows) else rows

    def tuned(self, cells: Sequence[Cell]) -> pd.DataFrame:
        rows = self._rows("tuned.csv", cells, "parameter", once=True)
        columns = ["parameter", "value", "metric", "best"]
        return rows[[*CELL, *columns]] if len(rows) else rows

    def missing(self, cells: Sequence[Cell]) -> pd.DataFrame:
        """Return the rows of cells without a result, under their current names."""
        by_key = self._missing.drop_duplicates("key").set_index("key")
        rows = [(*c.row, *by_key.loc[_short(c), ["reason", "seconds"]], c.key) for c in cells]
        return pd.DataFrame(rows, columns=[*CELL, "reason", "seconds", "key"])

    def sampling(self, cells: Sequence[Cell]) -> pd.DataFrame:
        rows = self._rows("sampling.csv", cells, "metric", once=True)
        return rows[[*CELL, "metric", "error"]] if len(rows) else rows


def _short(cell: Cell) -> str:
    return cell.key[:KEY_DIGITS]


def _compared(published: PublishedTables | None, conventions: str, method: str) -> tuple[str, ...]:
    """Return the quantities, ``metric`` or ``metric.preset``, that published cells compare a method by."""
    return published.compared(method, conventions) if published else ()


def _wanted(rows: pd.DataFrame, compared: Callable[[str], tuple[str, ...]], plain: bool = False) -> pd.DataFrame:
    """Return the rows of quantities that published cells compare their method by; with ``plain`` of all metrics too."""
    if rows.empty:
        return rows
    names = zip(rows["method"], rows["metric"], strict=True)
    return rows[[metric in compared(method) or (plain and "." not in metric) for method, metric in names]]


def _merged(parts: Sequence[pd.DataFrame], order: dict[tuple[str, int, str], int]) -> pd.DataFrame:
    """Return tables as one, in the order of the study's cells."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return parts[-1]
    table = pd.concat(filled, ignore_index=True)
    position = [order[row] for row in table[CELL].itertuples(index=False, name=None)]
    return table.iloc[sorted(range(len(table)), key=position.__getitem__)].reset_index(drop=True)


def _check_quantities(scores: pd.DataFrame, compared: Callable[[str], tuple[str, ...]], folder: Path) -> None:
    """Refuse a method without a quantity that it is compared by, or with one of its new cells alone.

    The paper's names, or the metrics, changed since.
    """
    for method, rows in scores.groupby("method", sort=False):
        counts = rows.groupby("metric", sort=False).size()
        absent = [name for name in compared(str(method)) if name not in counts.index]
        lacking = [*absent, *counts.index[counts < counts.max()]]
        if lacking:
            raise ExperimentError(
                f"{folder / SCORES} lacks {lacking[0]} for some results of {method}: the published cells are "
                "compared with another quantity now; run the study again"
            )
