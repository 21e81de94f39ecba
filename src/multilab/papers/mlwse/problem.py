"""MLWSE on the base scores of a unit, taken apart so that one Gram matrix serves many parameter values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from multilab.cells import running
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build
from multilab.methods.solvers.penalties import SparseGroupPenalty
from multilab.methods.stacking.mlwse import MLWSE
from multilab.methods.stacking.objective import StackingLoss
from multilab.metrics.registry import defined

if TYPE_CHECKING:
    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit


@dataclass(frozen=True, eq=False)
class Problem:
    """Optimisation problem of MLWSE on the base scores of a unit.

    Attributes
    ----------
    model : MLWSE
        Not fitted.
    loss : StackingLoss
        At the method's beta.
    start : ndarray of shape (mq, q)
        The paper's starting point.
    Y_train : ndarray
        Labels of the training rows.
    S_test, Y_test : ndarray
        Scores of the test rows by the base methods refitted on the training rows, and their labels.
    """

    model: MLWSE
    loss: StackingLoss
    start: np.ndarray
    Y_train: np.ndarray
    S_test: np.ndarray
    Y_test: np.ndarray

    @property
    def strength(self) -> str:
        """Name of the argument that scales the penalty: ``alpha`` (L1) or ``lam`` (L21)."""
        return "lam" if self.model.penalty == "l21" else "alpha"

    def penalty(self, **changes: float) -> SparseGroupPenalty:
        """Return the penalty at the method's arguments, or at changed ones."""
        model = clone(self.model).set_params(**changes)
        return model.unit_penalty(*self.loss.cross.shape).scaled(getattr(model, self.strength))

    def options(self) -> dict[str, Any]:
        """Return the method's arguments for the solver."""
        return {name: getattr(self.model, name) for name in ("algorithm", "tol", "kkt_tol", "max_iter")}

    def scores(self, W: np.ndarray, metrics: list[str]) -> dict[str, float]:
        """Return metrics of the test rows under the weights W."""
        return measured(self.Y_test, self.S_test @ W, metrics, self.model.threshold)


def problem_of(unit: Unit, store: Store) -> Problem:
    """Return the problem of a unit, computing its base scores if they are missing.

    Raises
    ------
    ExperimentError
        If the method is not MLWSE on base scores without an intercept.
    """
    assert unit.cell is not None
    model = build(unit.cell.method)
    if not isinstance(model, MLWSE) or not unit.cell.reads or model.fit_intercept:
        raise ExperimentError(f"{unit.label}: expected MLWSE on base scores with fit_intercept at its default")
    inputs = running.scaled_rows(unit.cell, store)
    loss, _, start = model.problem(inputs.X_train, inputs.Y_train)
    return Problem(model, loss, start, inputs.Y_train, inputs.X_test, inputs.Y_test)


def measured(Y: np.ndarray, scores: np.ndarray, metrics: list[str], threshold: float = 0.5) -> dict[str, float]:
    """Return metrics of scores and of the decisions ``scores >= threshold`` (eq. 10)."""
    decisions = (scores >= threshold).astype(np.uint8)
    given = {"scores": scores, "decisions": decisions}
    return {name: float(defined(name).function(Y, given[defined(name).needs])) for name in metrics}
