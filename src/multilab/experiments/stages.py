"""Run the cells of a stage: what is in the store is reused, what failed is reported at the end."""

from collections.abc import Sequence

from multilab.core import report_dir
from multilab.experiments.arguments import check_study
from multilab.experiments.cells import Cell
from multilab.experiments.execute import run_cells
from multilab.experiments.progress import ProgressBar, StageLine, exit_code, print_warnings
from multilab.experiments.receipts import published_keys
from multilab.experiments.store import Store
from multilab.experiments.study import Study


def run_stage(name: str, study: Study, cells: Sequence[Cell]) -> int:
    """Run the cells of a stage that are missing in the store and return the exit code of the stage."""
    store, line, progress = Store(), StageLine(name), ProgressBar(f"{study.name}: {name}")
    missing = {cell.key for cell in cells if not store.has(cell.key)}
    if missing:
        check_study(study)
        if lost := len(missing & published_keys(study)):
            print(f"{lost} cells of {report_dir(study.name)} are not in {store.root}; they are fitted again")
    failed = run_cells(cells, store, progress=progress, limits=study.limits)
    line.print_cells(cells, progress.total, len(failed))
    print_warnings([cell for cell in cells if store.has(cell.key)], store)
    if study.limits and failed:  # a result like others: rows of unfinished.csv
        print(f"{len(failed)} cells passed a limit of the study or failed, the first: {next(iter(failed.items()))}")
        return 0
    return exit_code(failed)
