"""What the ensembles share: the default tree, seeds, samples of rows, and votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from multilab.methods.base import MethodError, MultiLabelClassifier

__all__ = ["Combine", "average", "c45_substitute", "check_combine", "draw_rows", "draw_seeds", "fit_members"]

Combine = Literal["confidence", "vote"]


def c45_substitute() -> DecisionTreeClassifier:
    """Return the base classifier used where the papers have C4.5 (Weka's J48).

    Both split on information and keep 2 rows per leaf. C4.5 also divides the gain by the information of the split,
    prunes pessimistically, and splits a nominal feature into all its values at once.
    """
    return DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)


def draw_seeds(random_state: Any, count: int) -> list[int]:
    """Return one seed per member.

    Raises
    ------
    MethodError
        If ``count`` is not a positive integer.
    """
    if not isinstance(count, int | np.integer) or count < 1:
        raise MethodError(f"n_estimators={count!r}: give the number of members, 1 or more")
    return check_random_state(random_state).randint(2**31 - 1, size=count).tolist()


def draw_rows(seed: int, n: int, max_samples: float, bootstrap: bool) -> np.ndarray:
    """Return the row numbers a member is trained on, ascending.

    Parameters
    ----------
    seed : int
        The member's; the draw is independent of what else the member does with it.
    n : int
        Number of training rows.
    max_samples : float in (0, 1]
        Share of n that is drawn, rounded down, at least one row.
    bootstrap : bool
        With or without replacement.
    """
    if not 0 < max_samples <= 1:
        raise MethodError(f"max_samples={max_samples!r} must be in (0, 1]")
    size = max(1, int(max_samples * n))
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    return np.sort(rng.integers(n, size=size) if bootstrap else rng.choice(n, size=size, replace=False))


def fit_members(
    member: MultiLabelClassifier,
    X: Any,
    Y: np.ndarray,
    seeds: Sequence[int],
    max_samples: float,
    bootstrap: bool,
    n_jobs: int | None,
) -> list[MultiLabelClassifier]:
    """Return one clone of ``member`` per seed, fitted on its own sample of the rows.

    Trees and libsvm release the interpreter lock, so members are fitted in threads on the one X.
    """

    def fit(seed: int) -> MultiLabelClassifier:
        rows = draw_rows(seed, len(Y), max_samples, bootstrap)
        model = clone(member).set_params(random_state=seed)
        return model.fit(X[rows], Y[rows])

    return Parallel(n_jobs=n_jobs, prefer="threads")(delayed(fit)(seed) for seed in seeds)


def average(members: Sequence[MultiLabelClassifier], X: Any, combine: Combine) -> np.ndarray:
    """Return the mean of the members' scores ("confidence") or decisions ("vote"), shape (n, q)."""
    total = np.zeros((X.shape[0], members[0].n_labels_))
    for member in members:
        scores, decisions = member._both(X)
        total += scores if combine == "confidence" else decisions
    return total / len(members)


def check_combine(combine: Combine, member: MultiLabelClassifier, base: BaseEstimator) -> None:
    """Raise MethodError for an unknown rule, or for the mean of margins, which have no common scale."""
    if combine not in ("confidence", "vote"):
        raise MethodError(f"combine={combine!r}: give 'confidence' or 'vote'")
    if combine == "confidence" and member._score_kind() == "margin":
        raise MethodError(
            f"{type(base).__name__} gives margins, whose mean is no confidence: "
            "set combine='vote', or calibration='sigmoid'"
        )
