"""Limits of the cells of a study: processor time and memory."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

if TYPE_CHECKING:
    from multilab.experiments.cells import Cell

__all__ = ["CellLimits"]


@dataclass(frozen=True)
class CellLimits:
    """What a cell may use: the ``limits`` block ``{seconds, gigabytes}`` of a study.

    A cell that passes a limit counts as unfinished, and so do the later splits of its data set. The limits are in no
    key: they do not change the result of a cell that finishes.

    Attributes
    ----------
    seconds : float
        Processor time of one fit with its predictions.
    gigabytes : float
        Memory (GiB) in addition to what the process has when the cell begins.
    """

    seconds: Annotated[float, Meta(gt=0, le=sys.float_info.max)]
    gigabytes: Annotated[float, Meta(gt=0, le=sys.float_info.max)]

    def seconds_of(self, cell: Cell) -> float:
        """Return the processor time of a cell: that of one fit, times the number of fits it makes."""
        fits = cell.method.inner_cv["folds"] if cell.kind == "scores" else 1
        return self.seconds * (fits if cell.tune is None else fits + cell.tune.n_trials * cell.tune.folds)
