"""Names of datasets, methods and metrics on the page of a paper's study."""

from __future__ import annotations

import re
from collections.abc import Callable

from multilab.claims.paper import Paper
from multilab.reports.data import ReportData, metric_title

Names = Callable[[str, str], str]
"""Return the name of a dataset, method or metric; the first argument says which of the three."""


def names_on_page(report: ReportData, paper: Paper | None) -> Names:
    """Return names as printed in a study's paper, else the display names of the study."""
    printed = paper.printed_names if paper is not None else {}

    def name_of(key: str, name: str) -> str:
        if key == "metric":
            return metric_title(re.sub(r"\[(.*)\]", r" of \1", name))
        return str(printed.get(key, {}).get(name) or report.titles.get(name, name))

    return name_of
