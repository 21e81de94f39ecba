"""Rebuild the page of a study from its committed files alone: no data, no cells."""

from __future__ import annotations

from multilab.experiments.errors import ExperimentError
from multilab.stages.common import arguments, report_dir


def main(argv: list[str]) -> int:
    """`multilab report study=NAME`."""
    from multilab.reports import build_report

    study = arguments(argv, "study").get("study", "quick")
    if not report_dir(study).is_dir():
        raise ExperimentError(f"{report_dir(study)} is not here; run `multilab plan study={study}` and `dvc repro`")
    print(f"report: {build_report(report_dir(study))}")
    return 0
