"""The arguments of `multilab compare`, checked before any work starts."""

from dataclasses import dataclass
from pathlib import Path

from multilab.commands.composition import check_dataset
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

    def __post_init__(self) -> None:
        check_dataset(self.dataset)
        if self.metric not in DEFINED:
            raise ExperimentError(unknown_name("metric", self.metric, DEFINED))

    @property
    def protocol(self) -> dict[str, int]:
        """The protocol of the splits, which `multilab train protocol=kfold5` has too."""
        return {"kfold": self.cv, "stratify": 1, "seed": 0}
