"""The commands about studies, among them the stages that DVC calls, and ``gate``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from multilab.cells.errors import ExperimentError, TrackingError
from multilab.cli.options import (
    COUNT,
    DATASET,
    METHOD,
    SEED,
    STUDY,
    engine_options,
    fresh_option,
    study_option,
    tracking_option,
)
from multilab.core import report_dir, write_atomically
from multilab.core.shell import command, short_path
from multilab.core.text import comma_separated

if TYPE_CHECKING:
    from multilab.experiments.plan import Plan
    from multilab.experiments.study import Study


@click.group()
def study() -> None:
    """Run studies, build their pages, check their numbers."""


@study.command()
@click.argument("name")
def new(name: str) -> None:
    """Write the settings and the pipeline of a new study.

    It writes conf/study/NAME.yaml, for you to edit, and reports/NAME/dvc.yaml, and adds the datasets to data/dvc.yaml.
    For an existing study, it writes only the pipelines. NAME consists of letters, digits, - and _.
    """
    from multilab.cells.conf import names, new_settings_dir
    from multilab.experiments.dvc_files import pin_version, run_command, settings_text, write_pipeline
    from multilab.experiments.study import check_study, load_study

    if not name.replace("-", "").replace("_", "").isalnum():
        raise click.BadParameter(f"{name!r} has other characters than letters, digits, - and _.", param_hint="NAME")
    settings = new_settings_dir() / "study" / f"{name}.yaml"
    if name not in names("study"):
        write_atomically(settings, settings_text(name))
        print(f"{short_path(settings)}  the datasets, methods and metrics of the study: edit it")
    described = load_study(name)
    check_study(described)
    pipeline, data = write_pipeline(described)
    print(f"{short_path(pipeline)}  its pipeline; after a change of its datasets or methods, run this command again")
    print(f"{short_path(data)}  the pipeline of the datasets")
    if pinned := pin_version():
        print(f"{pinned}  pins the version of multilab, which the stages depend on")
    here = f"{command('multilab')} study run --study {name}"
    without = "" if run_command(name) == here else f" (without DVC: {here})"
    print(f"Next: {run_command(name)}{without}")


@study.command()
@study_option()
@fresh_option
@engine_options
def run(study: str, fresh: bool) -> int:
    """Run all stages of a study in this process.

    Use this to run a study without DVC.
    """
    from multilab.experiments import stages
    from multilab.experiments.plan import Plan
    from multilab.experiments.study import check_study, load_study
    from multilab.models.mlflow_store import tracking

    described = load_study(study)
    check_study(described)
    plan = Plan(described)
    stages.preprocess(described)
    if fresh and (code := stages.refresh(plan)):
        return code
    for execute in (stages.base_scores, stages.train, stages.analyses):
        if code := execute(plan):
            return code
    stages.evaluate(plan)
    _write_statistics(described)
    page = _write_page(study)
    _publish(described, tracking())
    print(f"report: {page}")
    return 0


@study.command()
@study_option()
@click.option("--headline", is_flag=True, help="Print the finding and the table.")
@click.option("--readme", is_flag=True, help="Update the README and the page of all studies.")
@click.option("--all", "every", is_flag=True, help="Write the pages of all studies instead.")
@click.option("--latex", metavar="FOLDER", help="Write tables in LaTeX and diagrams as PDF to this folder instead.")
def report(study: str, headline: bool, readme: bool, every: bool, latex: str | None) -> int:
    """Build the page of a study from its results.

    It needs neither data nor cells. For a paper, --latex writes a table of datasets by methods for each metric, the
    average ranks with Friedman's test, and critical-difference diagrams.
    """
    from multilab.experiments.dvc_files import PAGE
    from multilab.reports import finding_text, headline_markdown
    from multilab.reports.all_pages import all_pages, overview

    if every:
        return all_pages()
    folder = report_dir(study)
    if not folder.is_dir():
        raise ExperimentError(f"{folder} does not exist; run `{command('multilab')} study run --study {study}`")
    if latex:
        from multilab.reports.paper_files import write_paper_files

        files = write_paper_files(folder, latex)
        print(f"{short_path(Path(latex))}  {len(files)} tables and diagrams; the tables need \\usepackage{{booktabs}}")
        return 0
    page = folder / PAGE
    if not headline or not page.is_file():
        page = _write_page(study)
    if readme:
        overview(folder.parent)
    if headline:
        _show(headline_markdown(folder))
        print(f"\n{finding_text(folder)}\n")
    print(f"report:  {page.resolve()}")
    return 0


@click.command()
@click.option("--study", type=STUDY, help="Only this study (default: all methods and metrics, then the quick study).")
@click.option("--method", type=METHOD, metavar="NAME,...", help="Only these methods of the study.")
@click.option(
    "--dataset", type=DATASET, metavar="NAME,...", help="Compare with the committed scores on these datasets."
)
@click.option("--cell", metavar="NAME,...", help="Recompute these cells of the committed scores: flags/0/mlknn.")
@click.option("--sample", type=COUNT, help="Recompute N random cells of the committed scores.")
@click.option("--seed", type=SEED, help="Seed of the random cells (default: a new one each time).")
@click.option("--store", metavar="FOLDER", help="New folder that keeps the cells (default: a temporary one).")
@click.option("--accept", metavar="FOLDER", help="Write the reference numbers to this folder: tests/references.")
@click.option("--verbose", is_flag=True, help="Print by how much each method beats the constant predictor.")
@engine_options
def gate(
    study: str | None,
    method: str | None,
    dataset: str | None,
    cell: str | None,
    sample: int | None,
    seed: int | None,
    store: str | None,
    accept: str | None,
    verbose: bool,
) -> int:
    """Recompute results and compare with the committed numbers.

    The command uses no cache and lists all differences. The exit code is 1 if a number differs.

    \b
    multilab gate                                        all methods and metrics, then the quick study
    multilab gate --study quick                          all numbers of a study that has reference numbers
    multilab gate --study mlwse-core --sample 20         random cells of a committed study
    multilab gate --study mlwse --method br --dataset flags   all cells of a method on a dataset
    """
    from multilab.experiments.gate import load_reference, recompute_sample, recompute_study
    from multilab.experiments.study import check_study, load_study

    if accept and (method or dataset or cell or sample):
        raise click.UsageError(
            "--accept writes the reference of all methods; leave out --method, --dataset, --cell, --sample."
        )
    described = load_study(study or "quick")
    if not (method or dataset or cell or sample):
        check_study(described)
    failed = 0
    if not (study or method or dataset or cell or sample):
        from multilab.experiments.version_gate import check_versions

        failed = check_versions(accept)
        if failed and accept:
            return failed
    methods, datasets, cells = (comma_separated(names) if names else None for names in (method, dataset, cell))
    _check_columns(described, methods, datasets)
    with tempfile.TemporaryDirectory(prefix="multilab-gate-") as folder:
        if sample or datasets or cells or (methods and load_reference(described.name) is None):
            return recompute_sample(described, store or folder, sample, seed, methods, datasets, cells)
        return failed | recompute_study(described, store or folder, methods, accept, verbose)


def _check_columns(study: Study, methods: list[str] | None, datasets: list[str] | None) -> None:
    """Refuse names that a study does not have."""
    from multilab.core.messages import unknown_name

    for kind, names, columns in (("method", methods, study.all_methods), ("dataset", datasets, study.datasets)):
        for name in names or ():
            if name not in columns:
                raise ExperimentError(f"study {study.name}: {unknown_name(kind, name, columns)}")


@study.command()
@study_option()
@click.option("--runs", is_flag=True, help="Publish runs of `train` and `tune` instead of a study.")
@tracking_option
@click.option("--tracking-artifacts", metavar="URI", help="Where MLflow keeps the artifacts.")
def publish(study: str, runs: bool, tracking_uri: str | None, tracking_artifacts: str | None) -> int:
    """Publish a study, or single runs, to MLflow.

    The view is rebuilt from the result files. --runs also publishes what was computed while the server was unreachable.
    """
    from multilab.experiments.study import load_study
    from multilab.models.mlflow_store import tracking

    where = tracking(tracking_uri, tracking_artifacts)
    if runs:
        return _publish_runs(where)
    _publish(load_study(study), where)
    return 0


def _publish(study: Study, where: dict[str, str]) -> None:
    from multilab.experiments.publish import publish_study

    try:
        publish_study(study, where)
    except TrackingError as error:
        later = f"multilab study publish --study {study.name}"
        raise TrackingError(f"{error}; the results are complete, publish later: {later}") from error


def _publish_runs(where: dict[str, str]) -> int:
    """Publish all runs and searches that are noted in the store of cells."""
    from multilab.cells.store import Store
    from multilab.experiments.publish import publish_results
    from multilab.experiments.train import read_runs
    from multilab.experiments.tune import read_searches

    store = Store()
    runs, left_out = read_runs(store, where)
    searches, searches_left_out = read_searches(store, where)
    results, left_out = [*runs, *searches], left_out + searches_left_out
    if results:
        publish_results(results, where)
    elif not left_out:
        print(f"nothing to publish: no runs of `multilab train` or `multilab tune` in {store.root}")
    if left_out:
        total = len(results) + left_out
        print(f"{left_out} of {total} runs left out: settings, code or data changed since; run them again")
    return 0


# ---------------------------------------------------------------- the stages, which DVC calls


@study.command("base-scores", hidden=True)
@study_option()
@engine_options
def base_scores(study: str) -> int:
    """Make the out-of-fold base scores that the methods of a study read."""
    from multilab.experiments import stages

    return stages.base_scores(_plan(study))


@study.command(hidden=True)
@study_option()
@click.option("--method", type=METHOD, help="Only this method; writes no pack.")
@click.option("--dataset", type=DATASET, help="Only this dataset; writes no pack.")
@engine_options
def train(study: str, method: str | None, dataset: str | None) -> int:
    """Fit and score the methods of a study over its datasets and splits.

    Cells that are in the store are not fitted again. `multilab gate` recomputes them without it.
    """
    from multilab.experiments import stages

    plan = _plan(study)
    _check_columns(plan.study, [method] if method else None, [dataset] if dataset else None)
    return stages.train(plan, method, dataset)


@study.command(hidden=True)
@study_option()
@engine_options
def analyses(study: str) -> int:
    """Compute what a paper measures in addition to scores.

    Writes tables next to the scores: the data of its figures and of its tables on simulated data.
    """
    from multilab.experiments import stages

    return stages.analyses(_plan(study))


@study.command(hidden=True)
@study_option()
def evaluate(study: str) -> None:
    """Compute the metrics of a study from its stored scores.

    Writes scores.csv.gz, keys.csv (the cell behind each score) and, for tuned cells, tuned.csv (what the searches
    chose). Seconds and memory of cells that measured.csv lacks are added to it; `multilab study costs` writes it anew.
    """
    from multilab.experiments import stages

    stages.evaluate(_plan(study))


@study.command(hidden=True)
@study_option()
def stats(study: str) -> None:
    """Compare the methods of a study.

    Writes statistics.json.gz and metrics.json. Each variant of two methods or more is
    compared by itself in statistics-VARIANT.json.gz, of the same form.
    """
    _write_statistics(_plan(study).study)


@study.command()
@study_option()
def costs(study: str) -> int:
    """Write the costs of a study anew.

    The command writes the seconds and memory of the cells in the store to measured.csv, and the machine to
    environment.json. Stages only add cells that measured.csv lacks, so that the files do not change with every run. The
    rows of results that came from a pack are kept, because their costs were not measured here.
    """
    from multilab.cells.store import Store
    from multilab.experiments.stages import keep_costs

    written = keep_costs(_plan(study), Store(), again=True)
    path = report_dir(study) / "measured.csv"
    print(f"{path}  {'measured on this machine' if written else 'unchanged: no result of the store was measured here'}")
    return 0


def _plan(study: str) -> Plan:
    from multilab.experiments.dvc_files import check_pinned_version
    from multilab.experiments.plan import Plan
    from multilab.experiments.study import load_study

    check_pinned_version()
    return Plan(load_study(study))


def _write_statistics(study: Study) -> None:
    """Do the work of the stage ``stats``."""
    from multilab.cells.progress import StageLine
    from multilab.cells.store import Store
    from multilab.experiments.stages import unpack
    from multilab.experiments.study_results import write_statistics

    line = StageLine("stats")
    unpack(study, Store())
    write_statistics(study)
    more = len(study.all_methods) - len(study.methods)
    variants = f", and {more} of variants," if more else ""
    line.print(f"{len(study.methods)} methods{variants} on {len(study.datasets)} datasets")


def _write_page(study: str) -> Path:
    from multilab.reports.all_pages import study_page

    return study_page(report_dir(study))


# ---------------------------------------------------------------- what the commands print


def _show(markdown: str) -> None:
    """Print a Markdown table for a terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    columns = 25 * (markdown.partition("\n")[0].count("|") - 1)  # wider than the terminal, a table wraps its numbers
    console = Console(width=max(shutil.get_terminal_size().columns, min(columns, 160)))
    console.print(Markdown(markdown.strip()))
