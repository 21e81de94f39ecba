"""MLWSE on the base scores of a unit, taken apart so that one Gram matrix serves many parameter values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.experiments.errors import ExperimentError
from multilab.methods.stacking.affinity import cosine_affinity, label_coupling
from multilab.methods.stacking.blocks import classifier_rows, unit_l1, unit_l21
from multilab.methods.stacking.objective import StackingLoss
from multilab.methods.stacking.penalty import SparseGroupPenalty

if TYPE_CHECKING:
    from multilab.experiments.analyses.unit import Unit
    from multilab.experiments.store import Store

__all__ = ["Problem", "measured", "problem_of"]

# The variants of the estimator that are not taken apart here; studies leave them at these values.
_FIXED = {
    "fit_intercept": False,
    "laplacian": "laplacian",
    "loss_scale": "sum",
    "group_weight": "sqrt_labels",
    "weights": "full",
    "groups": None,
}


@dataclass(frozen=True, eq=False)
class Problem:
    """What MLWSE is fitted on, and with.

    Attributes
    ----------
    loss : StackingLoss
        At the method's beta.
    affinity : ndarray of shape (q, q)
        Cosine similarities of the label columns.
    start : ndarray of shape (mq, q)
        The paper's starting point.
    params : dict
        Arguments of the method.
    S_test, Y_test : ndarray
        Scores of the test rows by the base methods refitted on the training rows, and their labels.
    """

    loss: StackingLoss
    affinity: np.ndarray
    start: np.ndarray
    params: dict[str, Any]
    S_test: np.ndarray
    Y_test: np.ndarray

    @property
    def strength(self) -> str:
        """Name of the argument that scales the penalty: ``alpha`` (L1) or ``lam`` (L21)."""
        return "lam" if self.params["penalty"] == "l21" else "alpha"

    def unit_penalty(self, **changes: Any) -> SparseGroupPenalty:
        """Return the penalty at strength 1, under changed arguments."""
        rows = classifier_rows(*self.loss.cross.shape)
        if self.params["penalty"] == "l1":
            return unit_l1(rows)
        return unit_l21(rows, self.loss.cross.shape[1], (self.params | changes)["alpha"])

    def penalty(self) -> SparseGroupPenalty:
        """Return the penalty at the method's arguments."""
        return self.unit_penalty().times(self.params[self.strength])

    def scores(self, W: np.ndarray, metrics: list[str]) -> dict[str, float]:
        """Return metrics of the test rows under the weights W."""
        return measured(self.Y_test, self.S_test @ W, metrics, self.params.get("threshold", 0.5))


def problem_of(unit: Unit, store: Store) -> Problem:
    """Return the problem of a unit, making its base scores if they are missing.

    Raises
    ------
    ExperimentError
        If the method is not MLWSE on base scores, or a variant of it that is not taken apart here.
    """
    from multilab.experiments.running import build, gather

    assert unit.cell is not None
    params = build(unit.cell.method).get_params()
    other = [name for name, value in _FIXED.items() if params.get(name, value) != value]
    if "penalty" not in params or not unit.cell.reads or other:
        raise ExperimentError(
            f"{unit.label}: expected MLWSE on base scores" + (f" with {other[0]} at its default" if other else "")
        )
    inputs = gather(unit.cell, store)
    Y = inputs.Y_train.astype(np.float64)
    affinity = cosine_affinity(Y)
    loss = StackingLoss.from_scores(inputs.X_train, Y, label_coupling(affinity), params["beta"])
    return Problem(loss, affinity, loss.ridge(params["eta"]), params, inputs.X_test, inputs.Y_test)


def measured(Y: np.ndarray, scores: np.ndarray, metrics: list[str], threshold: float = 0.5) -> dict[str, float]:
    """Return metrics of scores and of the decisions ``scores >= threshold`` (eq. 10)."""
    from multilab.metrics import METRICS

    decisions = (scores >= threshold).astype(np.uint8)
    given = {"scores": scores, "decisions": decisions}
    return {name: float(METRICS[name].function(Y, given[METRICS[name].needs])) for name in metrics}
