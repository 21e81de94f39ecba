"""The arguments of `multilab compare`, checked before any work starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from multilab.commands.arguments import seconds_of
from multilab.commands.composition import check_dataset
from multilab.core import report_dir
from multilab.core.messages import unknown_name
from multilab.experiments.errors import ExperimentError
from multilab.metrics.registry import DEFINED

__all__ = ["DEFAULT_FOLDS", "Request"]

DEFAULT_FOLDS = 5
"""As those of `multilab fit`, whose protocol is kfold5."""


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
        folds = arguments.get("cv", str(DEFAULT_FOLDS))
        if not folds.isdecimal() or int(folds) < 2:
            raise ExperimentError(f"cv must be a number of folds, at least 2, not {folds!r}")
        out = arguments.get("out") or report_dir("compare") / dataset
        budget = seconds_of("budget", arguments.get("budget", "10m"))
        return cls(dataset, arguments.get("methods"), budget, metric, int(folds), Path(out))

    @property
    def protocol(self) -> dict[str, int]:
        """The protocol of the splits, which `multilab train protocol=kfold5` has too."""
        return {"kfold": self.cv, "stratify": 1, "seed": 0}
