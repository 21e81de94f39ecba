"""Limits of the cells of a study: processor time and memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from multilab.experiments.conf import check_setting_names
from multilab.experiments.errors import ExperimentError

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

    seconds: float
    gigabytes: float

    @classmethod
    def from_mapping(cls, block: Any, location: str = "limits") -> CellLimits:
        """Build limits from their block; anything but two positive numbers is refused."""
        names = [field.name for field in fields(cls)]
        check_setting_names(location, "block of limits", block, names)
        for name in names:
            value = block.get(name) if isinstance(block, Mapping) else None
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ExperimentError(f"{location}.{name} must be a number > 0, got {value!r}")
        return cls(float(block["seconds"]), float(block["gigabytes"]))

    def seconds_of(self, cell: Cell) -> float:
        """Return the processor time of a cell: that of one fit, times the number of fits it makes."""
        fits = cell.method.inner_cv["folds"] if cell.kind == "scores" else 1
        return self.seconds * (fits if cell.tune is None else fits + cell.tune.n_trials * cell.tune.folds)
