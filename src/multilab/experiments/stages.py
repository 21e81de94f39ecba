"""The stages of a study: what `multilab study run` does in one process, and DVC stage by stage.

Each function does the work of one stage and prints its line. A stage that computes first unpacks the packs of results
that are there, then computes what the store lacks, and writes its own pack; failed cells are reported at the end.
``experiments.study_results.write_statistics``, the page and MLflow follow them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from multilab import datasets, model_selection
from multilab.cells import checks
from multilab.cells.cell import Cell
from multilab.cells.environment import environment
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import run_cells
from multilab.cells.packs import read_pack, write_pack
from multilab.cells.progress import ProgressBar, StageLine, exit_code, print_warnings
from multilab.cells.store import Store
from multilab.core import record_checksums, report_dir, write_content
from multilab.experiments.analyses import run_units, tables
from multilab.experiments.dvc_files import evaluated_tables, pack_paths, run_command
from multilab.experiments.plan import Plan
from multilab.experiments.study import Study, check_study
from multilab.printed import find
from multilab.statistics.result_files import KEY_DIGITS, MEASURED, keep_measured, read_keys, read_unfinished

__all__ = ["analyses", "base_scores", "evaluate", "keep_costs", "preprocess", "refresh", "train", "unpack"]

_PACKED = ("base_scores", "train", "analyses")


def preprocess(study: Study) -> None:
    """Fetch, verify and parse the datasets of a study, and split them."""
    line = StageLine("preprocess")
    _check(study)
    for name in ProgressBar("preparing data")(study.datasets, len(study.datasets)):
        datasets.prepare(name)
        model_selection.splits(name, study.protocol_of(name))
    line.print(f"{len(study.datasets)} datasets")


def unpack(study: Study, store: Store) -> None:
    """Put the results of a study's packs into the store, where it lacks them."""
    for path in (path for stage in _PACKED for path in pack_paths(study, stage).values() if path.is_file()):
        if added := read_pack(path, store):
            print(f"{path}: {added} results are in {store.root} now")


def _pack(study: Study, stage: str, items: Sequence[Any], store: Store) -> None:
    """Write what a stage has computed; of private datasets to a file of its own."""
    for private, path in pack_paths(study, stage).items():
        write_pack(path, [item for item in items if datasets.card(_dataset(item)).private == private], store)


def _dataset(item: Any) -> str:
    return str(item.split_ref.dataset if isinstance(item, Cell) else item.dataset)


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
    _check(plan.study)
    return _execute("base_scores", plan.study, plan.base_scores)


def train(plan: Plan, method: str | None = None, dataset: str | None = None) -> int:
    """Execute the cells of a study, or of a method, a dataset or both, which writes no pack; return an exit code."""
    _check(plan.study)
    if method is None and dataset is None:
        return _execute("train", plan.study, plan.cells)
    cells = plan.cells if method is None else plan.by_method[method]
    chosen = [cell for cell in cells if dataset in (None, cell.split_ref.dataset)]
    return _execute(" ".join(filter(None, ("train", method, dataset))), plan.study, chosen, packed=False)


def _execute(stage: str, study: Study, cells: Sequence[Cell], packed: bool = True) -> int:
    store, line, progress = Store(), StageLine(stage), ProgressBar(f"{study.name}: {stage}")
    unpack(study, store)
    missing = {cell.key for cell in cells if not store.has(cell.key)}
    if missing:
        check_study(study)  # only if something is fitted: the check imports the estimators
        committed = set(read_keys(report_dir(study.name))["key"])
        if lost := len({key[:KEY_DIGITS] for key in missing} & committed):
            print(f"{lost} cells of {report_dir(study.name)} are not in {store.root}; they are fitted again")
    failed = run_cells(cells, store, progress=progress, limits=study.limits)
    line.print_cells(cells, progress.total, len(failed))
    print_warnings([cell for cell in cells if store.has(cell.key)], store)
    if failed and not study.limits:
        return exit_code(failed)
    if failed:  # a result like others: rows of unfinished.csv
        print(f"{len(failed)} cells exceeded a limit of the study or failed, the first: {next(iter(failed.items()))}")
    if packed:
        _pack(study, stage, cells, store)
    return 0


def _check(study: Study) -> None:
    """Refuse a study without data before anything is computed."""
    if not study.datasets or not study.methods:
        raise ExperimentError(f"conf/study/{study.name}.yaml: a study needs at least one dataset and one method")
    for card in map(datasets.card, study.datasets):
        if not card.available:
            raise ExperimentError(f"conf/study/{study.name}.yaml: no data of {card.name}: {card.reason}")


def analyses(plan: Plan) -> int:
    """Execute the units of the analyses of a study and write their tables; return an exit code."""
    if not plan.units:
        return 0
    from multilab.statistics.result_files import table_file, write_table

    line, progress, store = StageLine("analyses"), ProgressBar(f"{plan.study.name}: analyses"), Store()
    unpack(plan.study, store)
    failed = run_units(plan.units, store, progress=progress)
    if not failed:
        folder = report_dir(plan.study.name)
        written = {table_file(name): table for name, table in tables(plan.units, store).items()}
        for name, table in written.items():
            write_table(folder / name, table)
        record_checksums(folder, list(written))
        _pack(plan.study, "analyses", plan.units, store)
    line.print_cells(plan.units, progress.total, len(failed))
    print_warnings(plan.units, store)
    return exit_code(failed)


def evaluate(plan: Plan) -> None:
    """Compute the metrics of a study from its stored scores: its tables, and costs of cells that were not measured yet.

    Raises
    ------
    ExperimentError
        If a cell is not in the store, and the study has no limits that it may have passed.
    """
    from multilab.experiments import evaluate as compute
    from multilab.statistics.result_files import TABLES, UNCHECKED, write_results, write_table

    study, store, line, folder = plan.study, Store(), StageLine("evaluate"), report_dir(plan.study.name)
    unpack(study, store)
    cells = _finished(plan, store)
    published = find(study.paper).tables if study.paper else None
    scores = compute.evaluate(study, cells, store, published)
    made = {
        "tuned.csv": compute.tuned(cells, store),
        "sampling.csv": compute.sampling_errors(study, cells, store, published),
        "unfinished.csv": compute.unfinished(plan.cells, store, read_unfinished(folder)),
        UNCHECKED: compute.unchecked(cells, store),
    }
    if study.label_counts:
        from multilab.experiments.label_counts import decisions_by_label

        write_table(folder / "labels.csv", decisions_by_label(cells, store))
    else:
        (folder / "labels.csv").unlink(missing_ok=True)
    write_results(folder, scores, made, evaluated_tables(study))
    record_checksums(folder, TABLES)
    keep_costs(plan, store)
    line.print(f"{len(cells)} cells", f"{len(study.metrics)} metrics")
    print_warnings(cells, store)


def _finished(plan: Plan, store: Store) -> list[Cell]:
    """Return the finished cells of a study, all but for those that limits may have stopped."""
    cells = [cell for cell in plan.cells if store.has(cell.key)]
    missing = [cell.label for cell in plan.cells if not store.has(cell.key)]
    if missing and not plan.study.limits:
        raise ExperimentError(
            f"{len(missing)} of {len(plan.cells)} cells of {plan.study.name} are not in {store.root}, the first: "
            f"{missing[0]}; `{run_command(plan.study.name)}` fits them"
        )
    return cells


def keep_costs(plan: Plan, store: Store, again: bool = False) -> bool:
    """Write seconds and memory of cells that ``measured.csv`` lacks, and the machine if no file describes it.

    With ``again`` also those that are written, as far as the store knows them: nothing is known of results from a pack.
    Return whether a file was written.
    """
    from multilab.experiments.evaluate import measurements

    folder, cells = report_dir(plan.study.name), [cell for cell in plan.cells if store.has(cell.key)]
    costs, about = measurements(cells, store), folder / "environment.json"
    measured = keep_measured(folder, costs, again)
    if described := not about.is_file() or (again and measured):
        write_content(about, json.dumps(_environment(plan.study), indent=1, sort_keys=True) + "\n")
    record_checksums(folder, [MEASURED, about.name])
    return measured or described


def _environment(study: Study) -> dict[str, Any]:
    """Return the environment, with the other libraries that methods of the study name, as far as they are installed."""
    described, named = environment(), {}
    for name in study.all_methods:
        try:
            named[name] = study.method(name).outside.distributions
        except ExperimentError:  # not installed here: the cells came from another machine
            continue
    libraries = {name: sorted(packages) for name, packages in named.items() if packages}
    if not libraries:
        return described
    versions = described["versions"] | {package: number for each in named.values() for package, number in each.items()}
    return described | {"versions": versions, "libraries": libraries}
