"""The arguments of `multilab compare`, checked before any work starts."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from multilab.commands.composition import check_dataset
from multilab.core import report_dir
from multilab.core.messages import unknown_name
from multilab.experiments.errors import ExperimentError
from multilab.metrics.registry import DEFINED

__all__ = ["Request"]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Request:
    """What a comparison was called with.

    Attributes
    ----------
    dataset : str
    methods : str or None
        Comma-separated names and globs; None is the portfolio.
    budget : float
        Seconds.
    metric : str
        Orders the leaderboard and is what the tests are about.
    cv : int
        Number of stratified folds.
    out : Path
        Folder of the report.
    """

    dataset: str
    methods: str | None
    budget: float
    metric: str
    cv: int
    out: Path

    @staticmethod
    def names() -> tuple[str, ...]:
        """Return the names of the arguments."""
        return ("dataset", "methods", "budget", "metric", "cv", "out")

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, str]) -> "Request":
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
        folds = arguments.get("cv", "5")
        if not folds.isdecimal() or int(folds) < 2:
            raise ExperimentError(f"cv must be a number of folds, at least 2, not {folds!r}")
        out = arguments.get("out") or report_dir("compare") / dataset
        budget = _seconds(arguments.get("budget", "10m"))
        return cls(dataset, arguments.get("methods"), budget, metric, int(folds), Path(out))

    @property
    def protocol(self) -> dict[str, int]:
        """The protocol of the splits, which `multilab train protocol=kfold5` has too."""
        return {"kfold": self.cv, "stratify": 1, "seed": 0}


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS or not 0 < float(match[1]) < math.inf:
        raise ExperimentError(f"budget must be a time such as 90s, 10m or 2h, not {text!r}")
    return float(match[1]) * _UNITS[match[2]]
