"""The command `multilab cells add`: a study with new columns, without fitting again what its results hold."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from multilab.commands.progress import ProgressBar, exit_code
from multilab.commands.stage_keys import TABLES
from multilab.core import record_checksums, report_dir
from multilab.experiments.cells import Cell, all_cells
from multilab.experiments.errors import ExperimentError
from multilab.experiments.evaluation import MEASURED, evaluate, measurements, sampling_errors, tuned
from multilab.experiments.store import Store
from multilab.experiments.study import load_study
from multilab.experiments.workers import run_cells
from multilab.papers import find
from multilab.statistics.result_files import read_table, write_results

_CELL = ["dataset", "split", "method"]


def add(store: Store, study: str = "") -> int:
    """Fit the cells of a study that its committed results lack, and add their results; return an exit code.

    A cell of a known key has its numbers in the committed tables, whatever its column is called now. Rows of columns
    that the study no longer has are dropped.

    Parameters
    ----------
    store : Store
        New cells are stored here; those of known keys need not be.
    study : str
        Name of the study.
    """
    if not study:
        raise ExperimentError("expected: multilab cells add study=NAME")
    described, folder = load_study(study), report_dir(study)
    published = find(described.paper).tables if described.paper else None
    cells = all_cells(described)
    committed = _Committed(folder)
    new = [cell for cell in cells if cell.key not in committed.keys]
    print(f"{study}: {len({c.key for c in new})} of {len({c.key for c in cells})} cells are not in {folder}")
    progress = ProgressBar(f"add: cells of {study}")
    failed = run_cells([*(read for cell in new for read in cell.reads), *new], store, progress=progress)
    if failed:
        print(*(f"{label} failed: {reason}" for label, reason in failed.items()), sep="\n")
        return exit_code(failed)
    scores = evaluate(described, new, store, published)
    old = [cell for cell in cells if cell.key in committed.keys]
    tables = (
        (committed.scores(old), scores),
        (committed.measured(old), measurements(new, store)),
        (committed.tuned(old), tuned(new, store)),
    )
    order = {_location(cell): position for position, cell in enumerate(cells)}
    results, costs, chosen = (_merged(parts, order) for parts in tables)
    _check_quantities(results, folder)
    known = committed.sampling(cells)
    here = [cell for cell in cells if store.has(cell.key)]
    errors = _merged((known, sampling_errors(described, here, store, published)), order)
    write_results(folder, results, costs, chosen, errors.drop_duplicates([*_CELL, "metric"], keep="last"))
    record_checksums(folder, TABLES)
    print(f"{folder / 'scores.csv'}: {len(cells)} results of {len(described.all_methods)} columns")
    return 0


class _Committed:
    """The committed results of a study by the key of their cell."""

    def __init__(self, folder: Path) -> None:
        keys = read_table(folder / "keys.csv", [*_CELL, "key"])
        self.keys = set(keys["key"])
        self._folder, self._locations = folder, keys

    def _by_key(self, file: str, columns: Sequence[str] = ()) -> dict[str, pd.DataFrame]:
        path = self._folder / file
        if not path.is_file():
            return {}
        table = read_table(path, [*_CELL, *columns], text=file == "tuned.csv")  # its JSON null is text
        table = table.astype({"split": int}).merge(self._locations, on=_CELL)
        first = table.drop_duplicates(["key", *_CELL]).drop_duplicates("key")[[*_CELL, "key"]]
        kept = table.merge(first, on=[*_CELL, "key"]).drop(columns=_CELL)
        return {str(key): rows for key, rows in kept.groupby("key", sort=False)}

    def _rows(self, file: str, cells: Sequence[Cell], once: bool = False) -> pd.DataFrame:
        by_key = self._by_key(file)
        seen, parts = set(), []
        for cell in cells:
            if cell.key in by_key and not (once and (cell.key, cell.method.name) in seen):
                seen.add((cell.key, cell.method.name))
                dataset, split, method = _location(cell)
                parts.append(by_key[cell.key].assign(dataset=dataset, split=split, method=method))
        return pd.concat(parts) if parts else pd.DataFrame()

    def scores(self, cells: Sequence[Cell]) -> pd.DataFrame:
        rows = self._rows("scores.csv", cells)
        return rows[[*_CELL, "metric", "value", "key"]] if len(rows) else rows

    def measured(self, cells: Sequence[Cell]) -> pd.DataFrame:
        rows = self._rows("measured.csv", cells)
        return rows[[*_CELL, *MEASURED, "alone", "key"]] if len(rows) else rows

    def tuned(self, cells: Sequence[Cell]) -> pd.DataFrame:
        rows = self._rows("tuned.csv", cells, once=True)
        columns = ["parameter", "value", "metric", "best", "tune_seconds"]
        return rows[[*_CELL, *columns]] if len(rows) else rows

    def sampling(self, cells: Sequence[Cell]) -> pd.DataFrame:
        rows = self._rows("sampling.csv", cells, once=True)
        return rows[[*_CELL, "metric", "error"]] if len(rows) else rows


def _location(cell: Cell) -> tuple[str, int, str]:
    return cell.split_ref.dataset, cell.split_ref.split, cell.method.name


def _merged(parts: Sequence[pd.DataFrame], order: dict[tuple[str, int, str], int]) -> pd.DataFrame:
    """Return tables as one, in the order of the study's cells."""
    filled = [part for part in parts if len(part)]
    if not filled:
        return parts[-1]
    table = pd.concat(filled, ignore_index=True)
    position = [order[row] for row in table[_CELL].itertuples(index=False, name=None)]
    return table.iloc[sorted(range(len(table)), key=position.__getitem__)].reset_index(drop=True)


def _check_quantities(scores: pd.DataFrame, folder: Path) -> None:
    """Refuse a method of which only the new cells have some quantity: the paper's names changed since."""
    for method, rows in scores.groupby("method", sort=False):
        counts = rows.groupby("metric", sort=False).size()
        lacking = counts[counts < counts.max()]
        if len(lacking):
            raise ExperimentError(
                f"{folder / 'scores.csv'} lacks {lacking.index[0]} for some results of {method}: the published cells "
                "are compared with another quantity now; run the study again"
            )
