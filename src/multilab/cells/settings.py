"""Blocks of settings of a cell: hidden labels, limits, the search."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from multilab.cells.conf import check_setting_names
from multilab.cells.errors import ExperimentError
from multilab.core.messages import unknown_name
from multilab.core.settings import IN_KEY_AS, NOT_IN_KEY, OMITTED_AT_DEFAULT, convert, identity

if TYPE_CHECKING:
    from multilab.cells.cell import Cell

__all__ = ["OPTUNA_IN_KEYS", "CellLimits", "ObservedShare", "Tuning", "with_optuna_names"]

AtLeastOne = Annotated[int, Meta(ge=1)]
Seconds = Annotated[  # an integer stays one: it is part of keys
    Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)] | None, Meta(description="a number of seconds > 0")
]
OPTUNA_IN_KEYS = {
    "TPESampler": "tpe",
    "RandomSampler": "random",
    "QMCSampler": "qmc",
    "GridSampler": "grid",
    "NopPruner": "none",
    "MedianPruner": "median",
}
"""Classes of Optuna, as settings name them, and their spelling in keys."""

_HIDDEN = ("missing", "absent")


@dataclass(frozen=True)
class ObservedShare:
    """Partially observed training labels.

    Attributes
    ----------
    share : float
        Expected share of the training labels that stay observed, in (0, 1).
    hidden : {"missing", "absent"}
        How a hidden label appears to methods: ``missing`` (-1, "not observed"), for methods that learn from partially
        observed labels, or ``absent`` (0), as if unrecorded labels counted as absent.
    """

    share: float
    hidden: str = "missing"

    @classmethod
    def from_setting(cls, value: Any, location: str = "observed") -> ObservedShare | None:
        """Build it from a share, or from a block ``{share, hidden}``; return None if all labels are observed.

        Raises
        ------
        ExperimentError
        """
        block = value if isinstance(value, dict) else {"share": 1.0 if value is None else value}
        check_setting_names(location, "share of observed labels", block, ("share", "hidden"))
        share, hidden = block.get("share"), block.get("hidden", "missing")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise ExperimentError(f"{location}: the share of observed labels must be in (0, 1], got {share!r}")
        if hidden not in _HIDDEN:
            raise ExperimentError(f"{location}: {unknown_name('treatment of hidden labels', str(hidden), _HIDDEN)}")
        return None if share == 1 else cls(float(share), str(hidden))

    def to_dict(self) -> dict[str, Any]:
        """Return the block as it is written in settings and in the key of a cell."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the setting as it is written on the command line."""
        return f"{self.share:g}" if self.hidden == "missing" else f"{{share:{self.share:g},hidden:{self.hidden}}}"


@dataclass(frozen=True)
class CellLimits:
    """Limits of a cell: the ``limits`` block ``{seconds, gigabytes}`` of a study.

    A cell that exceeds a limit counts as unfinished, and so do the later splits of its data set. Limits do not affect a
    cell's key, because they do not change the result of a cell that finishes.

    Attributes
    ----------
    seconds : float
        Processor time of one fit with its predictions.
    gigabytes : float
        Memory (GiB) in addition to what the process uses when the cell begins.
    """

    seconds: Annotated[float, Meta(gt=0, le=sys.float_info.max)]
    gigabytes: Annotated[float, Meta(gt=0, le=sys.float_info.max)]

    def seconds_of(self, cell: Cell) -> float:
        """Return the processor time of a cell: that of one fit, times the number of fits it makes."""
        fits = cell.method.inner_cv["folds"] if cell.kind == "scores" else 1
        return self.seconds * (fits if cell.tune is None else fits + cell.tune.n_trials * cell.tune.folds)


@dataclass(frozen=True)
class Tuning:
    """Search for hyperparameters: the ``tune`` block of a study, a variant or an ad hoc run.

    Attributes
    ----------
    n_trials : int
        Number of finished trials; a resumed search adds the missing ones.
    folds, order : int
        Inner stratified folds of the training set.
    metric : str
        Key of `multilab.metrics.score_all`; its direction is looked up.
    conventions : str
        Preset of the metrics.
    sampler : {"TPESampler", "RandomSampler", "QMCSampler", "GridSampler"}
        Class of Optuna. ``QMCSampler`` covers the space evenly with a scrambled Sobol sequence; ``GridSampler`` tries
        all points of a space of ``choices``.
    timeout : float, optional
        Seconds after which no new trial starts; at least one trial is finished.
    pruner : {"NopPruner", "MedianPruner"}
        Class of Optuna. ``MedianPruner`` stops a trial whose running mean over the inner folds is worse than the median
        of earlier trials.
    members : bool
        Whether the base methods of a stack are also tuned, each by itself on the complete training set. Their tuned
        arguments are then used in the inner folds on which the stack is tuned.
    storage : str, optional
        Optuna storage URL (``sqlite:///trials.db``); default: a journal file in the store of cells.
    """

    n_trials: AtLeastOne = 20
    folds: Annotated[int, Meta(ge=2)] = 3
    order: AtLeastOne = 1
    metric: str = "ranking_loss"
    conventions: str = "default"
    sampler: Literal["TPESampler", "RandomSampler", "QMCSampler", "GridSampler"] = field(
        default="TPESampler", metadata={IN_KEY_AS: OPTUNA_IN_KEYS}
    )
    timeout: Seconds = field(default=None, metadata=OMITTED_AT_DEFAULT)
    pruner: Literal["NopPruner", "MedianPruner"] = field(
        default="NopPruner", metadata={IN_KEY_AS: OPTUNA_IN_KEYS, **OMITTED_AT_DEFAULT}
    )
    members: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    storage: str | None = field(default=None, metadata=NOT_IN_KEY)

    @classmethod
    def from_mapping(cls, block: Any, location: str = "tune") -> Tuning:
        """Build the settings of a search from a ``tune`` block; an unknown key is refused."""
        return convert(block, cls, at=location, error=ExperimentError)

    def search(
        self,
        cell: Cell,
        folds: Sequence[Any],
        journal: Any,
        progress: Callable[[Iterable[int], int], Iterable[int]] | None = None,
        name: str | None = None,
    ) -> Any:
        """Search for the best arguments of a cell's method, see `multilab.experiments.search.search`."""
        return search_module().search(cell, self, folds, journal, progress, name)

    @property
    def of_members(self) -> Tuning | None:
        """Tuning of the base methods of a stack, ``None`` if they are not tuned."""
        return replace(self, members=False) if self.members else None

    def identity(self) -> dict[str, Any]:
        """Return the settings that decide a result, for the key of a cell."""
        return identity(self)


def with_optuna_names(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a search in a record, where two are spelt as in keys, with Optuna's names of these."""
    names = {key: name for name, key in OPTUNA_IN_KEYS.items()}
    return {**block, **{at: names.get(str(block[at]), block[at]) for at in ("sampler", "pruner") if at in block}}


def search_module() -> Any:
    """Return the module that searches, by its name: it needs Optuna and lies above this package."""
    return importlib.import_module("multilab.experiments.search")
