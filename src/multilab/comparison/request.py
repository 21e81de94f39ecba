"""What a comparison was asked for."""

from dataclasses import dataclass
from pathlib import Path

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

    @property
    def protocol(self) -> dict[str, int]:
        """The protocol of the splits, which `multilab train protocol=kfold5` has too."""
        return {"kfold": self.cv, "stratify": 1, "seed": 0}
