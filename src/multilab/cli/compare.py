"""The commands ``compare`` and ``regressions``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multilab.cells.errors import ExperimentError
from multilab.cli.files import FEW, named_dataset, reader_options
from multilab.cli.options import DATASET, FILE, FOLDS, LEVEL, METHOD, METRIC, Duration, engine_options, tracking_option
from multilab.core import report_dir, write_atomically
from multilab.core.files import refuse_overwriting
from multilab.core.messages import unknown_name


@click.command()
@click.option(
    "--dataset",
    type=DATASET,
    required=True,
    help="A dataset, or a data file (all options: `multilab datasets add --help`).",
)
@click.option("--method", type=METHOD, metavar="NAME,...", help="Names and patterns (default: conf/portfolio.yaml).")
@click.option("--budget", type=Duration(), default="10m", show_default=True, help="Time for everything: 90s, 10m, 2h.")
@click.option(
    "--metric",
    type=METRIC,
    default="macro_f1",
    show_default=True,
    help="Metric that orders the methods and is tested.",
)
@click.option("--cv", type=FOLDS, default=5, show_default=True, help="Number of stratified folds.")
@click.option("-o", "--output", metavar="FOLDER", help="Folder of the report (reports/compare/NAME).")
@click.option("--publish", is_flag=True, help="Publish a run per method to MLflow, as `multilab train` does.")
@tracking_option
@engine_options
@reader_options(shown=FEW)
def compare(
    dataset: str,
    method: str | None,
    budget: float,
    metric: str,
    cv: int,
    output: str | None,
    publish: bool,
    tracking_uri: str | None,
    reader: dict[str, Any],
) -> int:
    """Compare methods on one dataset within a time budget.

    \b
    multilab compare --dataset yeast                                     the portfolio, 5 folds, 10 minutes
    multilab compare --dataset yeast --budget 90s --metric ranking_loss  less time, another first metric
    multilab compare --dataset yeast --method br_logistic,'elm*'         other methods, by name and pattern
    multilab compare --dataset mine --cv 10 --output reports/mine        more folds, another folder
    multilab compare --dataset my.csv --labels 'tag_*'                   a file of your own

    Before anything is fitted, seconds and memory of every method are estimated from the size of the table. Cheap
    methods run first, all on the same stratified folds; 70 % of the budget is for the fits. Methods that exceed the
    budget are listed and skipped; a method that takes 4 times its estimate is stopped. Every fit is stored: the next
    run continues, and a larger budget adds methods.

    The report shows ranks, intervals, quality against seconds, the effect of thresholds and calibration, a table per
    label, a learning curve, and a recommendation with its reason. The same folder has the numbers as CSV and
    leaderboard.json with the value of each metric on each split and the digest of its rows. Thresholds are recommended
    only if their gain is significant; a method that assigns a label far too often is not recommended.

    The exit code is 0 if a method besides the baseline finished, 1 if none did, 2 for a mistake in the command. In
    Python: from multilab import compare.
    """
    from multilab.comparison.plan import Request
    from multilab.comparison.results import write_files
    from multilab.comparison.run import closing_text, compare_within_budget
    from multilab.experiments.compose import check_dataset
    from multilab.experiments.track_comparison import track_comparison
    from multilab.metrics.registry import ALL_METRICS
    from multilab.reports.comparison_page import write_comparison_page

    name = named_dataset(dataset, reader)
    if "," in name:
        raise ExperimentError(
            f"--dataset takes one dataset, got {name}; several: `multilab train -m dataset={name} method=...`, then "
            "`multilab results`"
        )
    check_dataset(name)
    if metric not in ALL_METRICS:
        raise ExperimentError(unknown_name("metric", metric, ALL_METRICS))
    folder = Path(output) if output else report_dir("compare") / name
    results = compare_within_budget(Request(name, method, budget, metric, cv, folder))
    write_files(results)
    write_comparison_page(results)
    print(closing_text(results))
    if publish:
        track_comparison(results, tracking_uri)
    return 0 if results.finished else 1


@click.command()
@click.argument("now", type=FILE)
@click.option("--baseline", type=FILE, help="leaderboard.json of the earlier state (default: print the values of NOW).")
@click.option("--metric", type=METRIC, help="Metric to test (default: the first one of the comparison).")
@click.option("--level", type=LEVEL, default=0.05, show_default=True, help="Significance level of all tests together.")
@click.option(
    "--tolerance",
    type=float,
    metavar="NUMBER",
    default=0.001,
    show_default=True,
    help="Ignore losses up to this value.",
)
@click.option("--markdown", type=FILE, help="Also write the table as Markdown.")
def regressions(
    now: Path, baseline: Path | None, metric: str | None, level: float, tolerance: float, markdown: Path | None
) -> int:
    """List methods that got worse since an earlier comparison.

    \b
    multilab compare --dataset mine --output reports/now
    multilab regressions reports/now/leaderboard.json --baseline reports/main/leaderboard.json

    NOW is the current leaderboard.json. The test is the one-sided corrected resampled t test over the splits, with
    Holm's correction over the methods.

    Exit code: 0 no regression, 1 at least one, 2 the comparison is not possible (other splits, no such file).
    """
    from multilab.comparison.regressions import find_regressions, read_leaderboard

    if markdown:
        refuse_overwriting(markdown, now, *([baseline] if baseline else []))
    result = find_regressions(
        read_leaderboard(now),
        read_leaderboard(baseline) if baseline else None,
        metric=metric,
        alpha=level,
        tolerance=tolerance,
    )
    shown = result.table.drop(columns=["p"])
    print(shown.to_string(float_format=lambda v: f"{v:.4f}", na_rep="-"), result.summary(), sep="\n")
    if markdown:
        write_atomically(markdown, result.to_markdown())
    return int(bool(result.names))
