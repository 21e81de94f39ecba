"""The cells of a submission: a method that is no column of the study, on the study's splits."""

from __future__ import annotations

import platform
from dataclasses import replace
from importlib.metadata import version

from multilab.experiments.cells import Cell, library_versions, study_cells
from multilab.experiments.study import Study


def submission_cells(study: Study, method: str, splits: str) -> list[Cell]:
    """Return the train cells of a method on the splits of a study: ``first`` of each data set, or ``all``."""
    cells = study_cells(replace(study, methods=(method,), variants={}), method)
    return [cell for cell in cells if splits == "all" or cell.split_ref.split == 0]


def versions_here() -> dict[str, str]:
    """Return the versions of Python, multilab and the libraries that are in every key."""
    return {"python": platform.python_version(), "multilab": version("multilab"), **library_versions()}
