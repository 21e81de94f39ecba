"""The stages of a study: what `multilab study run` does in one process, and DVC stage by stage.

Each function does the work of one stage, prints its line and leaves its receipt. Cells in the store are reused, failed
ones are reported at the end. The page, ``reports.study_folder.write_report``, and ``publish`` follow them.
"""

from __future__ import annotations

from collections.abc import Sequence

from multilab import datasets, model_selection
from multilab.cells import checks
from multilab.cells.cell import Cell
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import run_cells
from multilab.cells.progress import ProgressBar, StageLine, exit_code, print_warnings
from multilab.cells.store import Store
from multilab.claims.paper import find
from multilab.core import changed_files, record_checksums, report_dir
from multilab.experiments.analyses import run_units, tables
from multilab.experiments.dvc_files import run_command, write_parameters
from multilab.experiments.plan import Plan
from multilab.experiments.receipts import adopt_results, drop_stale_receipts, published_keys, write_keys, write_receipt
from multilab.experiments.study import Study, load_study
from multilab.statistics.result_files import KEY_DIGITS

__all__ = [
    "analyses",
    "base_scores",
    "evaluate",
    "keys",
    "preprocess",
    "refresh",
    "restore_tables",
    "train",
    "write_tables",
]


def keys(plan: Plan, adopt: bool = False) -> None:
    """Write the keys of each stage, and the settings that `dvc params` shows."""
    line = StageLine("keys")
    written = write_keys(plan)
    write_parameters(plan.study)
    drop_stale_receipts(plan.study)
    # After stale receipts are dropped, which would drop the new receipt of `publish` where there is no MLflow store.
    if adopt:
        adopt_results(plan)
    line.print(f"{len(written)} stages of {plan.study.name}")


def preprocess(plan: Plan) -> None:
    """Fetch, verify and parse the datasets of a study into the prepared store."""
    line, study = StageLine("preprocess"), plan.study
    if study.paper:
        find(study.paper).verify()
    for name in ProgressBar("preparing data")(study.datasets, len(study.datasets)):
        datasets.prepare(name)
        model_selection.splits(name, study.protocol_of(name))
    write_receipt(study, "preprocess")
    line.print(f"{len(study.datasets)} data sets")


def refresh(plan: Plan) -> int:
    """Compute all results of a study again and replace those that differ; return an exit code."""
    study, cells = plan.study, [*plan.base_scores, *plan.cells]

    def run(store: Store) -> dict[str, str]:
        failed = run_cells(cells, store, progress=ProgressBar(f"{study.name}: fresh"), limits=study.limits)
        return failed | run_units(plan.units, store, progress=ProgressBar(f"{study.name}: fresh analyses"))

    failed = checks.refresh([*cells, *plan.units], Store(), run)
    return 0 if study.limits else exit_code(failed)


def base_scores(plan: Plan) -> int:
    """Execute the cells of out-of-fold scores that the methods of a study read; return an exit code."""
    code = _execute("base_scores", plan.study, plan.base_scores)
    if code == 0:
        write_receipt(plan.study, "base_scores")
    return code


def train(plan: Plan, method: str | None = None, dataset: str | None = None) -> int:
    """Execute the cells of a study, or of a method, a dataset or both, which leaves no receipt; return an exit code."""
    if method is not None or dataset is not None:
        cells = plan.cells if method is None else plan.by_method[method]
        chosen = [cell for cell in cells if dataset in (None, cell.split_ref.dataset)]
        return _execute(" ".join(filter(None, ("train", method, dataset))), plan.study, chosen)
    code = _execute("train", plan.study, plan.cells)
    if code == 0:
        write_receipt(plan.study, "train")
    return code


def _execute(stage: str, study: Study, cells: Sequence[Cell]) -> int:
    store, line, progress = Store(), StageLine(stage), ProgressBar(f"{study.name}: {stage}")
    missing = {cell.key for cell in cells if not store.has(cell.key)}
    if missing:
        from multilab.experiments.study import check_study

        # Only if something is fitted: the check imports the estimators.
        check_study(study)
        if lost := len({key[:KEY_DIGITS] for key in missing} & published_keys(study)):
            print(f"{lost} cells of {report_dir(study.name)} are not in {store.root}; they are fitted again")
    failed = run_cells(cells, store, progress=progress, limits=study.limits)
    line.print_cells(cells, progress.total, len(failed))
    print_warnings([cell for cell in cells if store.has(cell.key)], store)
    if study.limits and failed:  # a result like others: rows of unfinished.csv
        print(f"{len(failed)} cells exceeded a limit of the study or failed, the first: {next(iter(failed.items()))}")
        return 0
    return exit_code(failed)


def analyses(plan: Plan) -> int:
    """Execute the units of the analyses of a study and write their tables; return an exit code."""
    line, progress, store = StageLine("analyses"), ProgressBar(f"{plan.study.name}: analyses"), Store()
    failed = {}
    if plan.units:
        from multilab.statistics.result_files import table_file, write_table

        failed = run_units(plan.units, store, progress=progress)
        if not failed:
            folder = report_dir(plan.study.name)
            written = {table_file(name): table for name, table in tables(plan.units, store).items()}
            for name, table in written.items():
                write_table(folder / name, table)
            record_checksums(folder, list(written))
    if not failed:
        write_receipt(plan.study, "analyses")
    line.print_cells(plan.units, progress.total, len(failed))
    print_warnings(plan.units, store)
    return exit_code(failed)


def evaluate(plan: Plan) -> None:
    """Compute the metrics of a study from its stored scores."""
    line, store = StageLine("evaluate"), Store()
    cells = write_tables(plan, store)
    write_receipt(plan.study, "evaluate")
    line.print(f"{len(cells)} cells", f"{len(plan.study.metrics)} metrics")
    print_warnings(cells, store)


def write_tables(plan: Plan, store: Store) -> list[Cell]:
    """Write the scores of a study, their keys and what was measured; return the finished cells.

    Raises
    ------
    ExperimentError
        If a cell is not in the store, and the study has no limits that it may have passed.
    """
    from multilab.experiments.evaluate import evaluate, measurements, sampling_errors, tuned, unchecked, unfinished
    from multilab.statistics.result_files import TABLES, write_results, write_table

    study, folder = plan.study, report_dir(plan.study.name)
    cells = [cell for cell in plan.cells if store.has(cell.key)]
    missing = [cell.label for cell in plan.cells if not store.has(cell.key)]
    if missing and not study.limits:
        raise ExperimentError(
            f"{len(missing)} of {len(plan.cells)} cells of {study.name} are not in {store.root}, the first: "
            f"{missing[0]}; `{run_command(study.name)}` fits them"
        )
    published = find(study.paper).tables if study.paper else None
    scores = evaluate(study, cells, store, published)
    errors = sampling_errors(study, cells, store, published)
    if study.label_counts:
        from multilab.experiments.label_counts import decisions_by_label

        write_table(folder / "labels.csv", decisions_by_label(cells, store))
    else:
        (folder / "labels.csv").unlink(missing_ok=True)
    lacking = unfinished(plan.cells, store)
    costs, chosen, older = measurements(cells, store), tuned(cells, store), unchecked(cells, store)
    write_results(folder, scores, costs, chosen, errors, lacking, older)
    record_checksums(folder, TABLES)
    return cells


def restore_tables(name: str) -> None:
    """Recompute the tables of a study from the store if one is missing or was edited.

    Raises
    ------
    ExperimentError
        If they are to be recomputed and a cell is not in the store.
    """
    from multilab.statistics.result_files import SCORES, TABLES

    folder = report_dir(name)
    changed = [file for file in changed_files(folder) if file in TABLES]
    if not changed and not (folder / SCORES).is_file():
        changed = [SCORES]
    if changed:
        print(f"{folder / changed[0]} is missing or was edited; it is recomputed from the stored cells")
        write_tables(Plan(load_study(name)), Store())
