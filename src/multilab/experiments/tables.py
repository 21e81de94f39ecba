"""The tables of a study's report that are computed from stored cells."""

from collections.abc import Sequence

from multilab.claims.paper import find
from multilab.core import record_checksums, report_dir
from multilab.experiments.analyses import Unit, tables
from multilab.experiments.cells import Cell, all_cells
from multilab.experiments.errors import ExperimentError
from multilab.experiments.evaluate import evaluate, measurements, sampling_errors, tuned, unfinished
from multilab.experiments.label_counts import decisions_by_label
from multilab.experiments.pipeline_file import run_command
from multilab.experiments.store import Store
from multilab.experiments.study import Study
from multilab.statistics.result_files import TABLES, table_file, write_results, write_table


def write_tables(study: Study, store: Store) -> list[Cell]:
    """Write the scores of a study, their keys and what was measured; return the cells.

    Raises
    ------
    ExperimentError
        If a cell is not in the store, and the study has no limits that it may have passed.
    """
    cells, folder = all_cells(study), report_dir(study.name)
    missing = [cell.label for cell in cells if not store.has(cell.key)]
    if missing and not study.limits:
        raise ExperimentError(
            f"{len(missing)} of {len(cells)} cells of {study.name} are not in {store.root}, the first: {missing[0]}; "
            f"`{run_command(study.name)}` fits them"
        )
    every, cells = cells, [cell for cell in cells if store.has(cell.key)] if study.limits else cells
    published = find(study.paper).tables if study.paper else None
    scores = evaluate(study, cells, store, published)
    errors = sampling_errors(study, cells, store, published)
    if study.label_counts:
        write_table(folder / "labels.csv", decisions_by_label(cells, store))
    else:
        (folder / "labels.csv").unlink(missing_ok=True)
    write_results(folder, scores, measurements(cells, store), tuned(cells, store), errors, unfinished(every, store))
    record_checksums(folder, TABLES)
    return cells


def write_analyses(study: Study, units: Sequence[Unit], store: Store) -> None:
    """Write the tables of the finished analyses of a study."""
    folder = report_dir(study.name)
    names = []
    for name, table in tables(units, store).items():
        names.append(table_file(name))
        write_table(folder / names[-1], table)
    record_checksums(folder, names)
