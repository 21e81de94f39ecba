"""The two steps of a method that reduces dimensions and then classifies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilab.cells.errors import ExperimentError
from multilab.cells.method import build
from multilab.methods.reduction.kernel_reducer import KernelReducer

if TYPE_CHECKING:
    from multilab.experiments.analyses import Unit


def reducer_of(unit: Unit) -> tuple[Any, Any]:
    """Return the unfitted reducer and classifier of a unit's method.

    Raises
    ------
    ExperimentError
        If the method is no pipeline of a kernel reducer and a classifier.
    """
    assert unit.cell is not None
    steps = getattr(build(unit.cell.method), "named_steps", {})
    if set(steps) != {"reduce", "classify"} or not isinstance(steps["reduce"], KernelReducer):
        raise ExperimentError(
            f"{unit.label}: expected a pipeline of a kernel reducer (reduce) and a classifier (classify)"
        )
    return steps["reduce"], steps["classify"]
