"""`multilab compare`: a comparison within a budget of time, its tables and its page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from multilab.commands.arguments import seconds_of
from multilab.commands.composition import check_dataset
from multilab.comparison.request import DEFAULT_FOLDS, Request
from multilab.comparison.results import write_files
from multilab.comparison.run import closing_text, compare_within_budget
from multilab.core import report_dir
from multilab.core.messages import unknown_name
from multilab.experiments.errors import ExperimentError
from multilab.metrics.registry import DEFINED
from multilab.reports.comparison.page import write_comparison_page

__all__ = ["ARGUMENTS", "request_from", "run_comparison"]

ARGUMENTS = ("dataset", "methods", "budget", "metric", "cv", "out")


def run_comparison(request: Request) -> int:
    """Compare the methods, write the report and print the leaderboard with the recommendation.

    Returns
    -------
    int
        0; 1 if no method but the baseline finished.
    """
    results = compare_within_budget(request)
    write_files(results)
    write_comparison_page(results)
    print(closing_text(results))
    return 0 if results.finished else 1


def request_from(arguments: Mapping[str, str]) -> Request:
    """Check the ``name=value`` arguments.

    Raises
    ------
    MultilabError
        In one line: what is wrong, and what there is.
    """
    dataset = arguments.get("dataset", "")
    if not dataset:
        raise ExperimentError("name a dataset, as in `multilab compare dataset=yeast`")
    check_dataset(dataset)
    metric = arguments.get("metric", "macro_f1")
    if metric not in DEFINED:
        raise ExperimentError(unknown_name("metric", metric, DEFINED))
    folds = arguments.get("cv", str(DEFAULT_FOLDS))
    if not folds.isdecimal() or int(folds) < 2:
        raise ExperimentError(f"cv must be a number of folds, at least 2, not {folds!r}")
    out = arguments.get("out") or report_dir("compare") / dataset
    budget = seconds_of("budget", arguments.get("budget", "10m"))
    return Request(dataset, arguments.get("methods"), budget, metric, int(folds), Path(out))
