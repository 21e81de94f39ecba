"""The ranges of MLWSE's parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from multilab.methods.base import MethodError

__all__ = ["check_parameters"]

_CHOICES = {
    "penalty": ("l1", "l21"),
    "loss_scale": ("sum", "mean"),
    "group_weight": ("sqrt_labels", "size"),
    "weights": ("full", "diagonal"),
}


def check_parameters(model: Any) -> None:
    """Raise MethodError when a parameter of an `MLWSE` is out of its range, naming it and the range."""
    for name, allowed in _CHOICES.items():
        if getattr(model, name) not in allowed:
            raise MethodError(f"{name} is {' or '.join(map(repr, allowed))}, not {getattr(model, name)!r}")
    for name in ("alpha", "lam", "beta", "eta", "tol", "kkt_tol"):
        if not (getattr(model, name) >= 0 and np.isfinite(getattr(model, name))):
            raise MethodError(f"{name} must be a finite number >= 0, not {getattr(model, name)!r}")
    if model.penalty == "l21" and model.alpha > 1:
        raise MethodError(f"alpha mixes the two parts of L21 and lies in [0, 1]; it is {model.alpha}")
    if model.eta == 0:
        raise MethodError("eta must be positive: S^T S alone is singular for real scores")
    if model.max_iter < 1:
        raise MethodError(f"max_iter must be at least 1, not {model.max_iter}")
