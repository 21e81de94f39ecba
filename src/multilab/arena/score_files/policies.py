"""Decision policies that need scores and the label cardinality of the training rows only."""

from __future__ import annotations

import re

import numpy as np

from multilab.arena.errors import ArenaError
from multilab.decision.thresholds import label_ranks

__all__ = ["check_policy", "decisions_by"]

POLICIES = ("stored", "a threshold such as 0.4", "cardinality", "top_k", "top_3")
_PER_LABEL = ("labels", "per_label", "macro_f1", "micro_f1", "global", "cost")


def check_policy(policy: str) -> str:
    """Return a policy; refuse one that does not exist, or that needs more than the scores of test rows.

    Raises
    ------
    ArenaError
        Naming the policies that there are, or the range of a threshold.
    """
    if policy in ("stored", "cardinality", "top_k") or re.fullmatch(r"top_[1-9]\d*", policy):
        return policy
    if policy in _PER_LABEL:
        raise ArenaError(
            f"policy={policy}: thresholds are chosen on out-of-fold scores of the training rows, which score files do "
            f"not hold; the methods decide_* compute such decisions"
        )
    try:
        threshold = float(policy)
    except ValueError:
        raise ArenaError(f"no policy {policy!r}; there are {', '.join(POLICIES)}") from None
    if "_" in policy or not policy.isascii() or not 0 <= threshold <= 1:  # Python also reads 1_0 and other digits
        raise ArenaError(f"policy={policy}: a threshold must be >= 0 and <= 1, such as 0.4")
    return str(threshold)


def decisions_by(policy: str, scores: np.ndarray, cardinality: float) -> np.ndarray | None:
    """Return the decisions of a policy, ``None`` where it does not apply.

    Parameters
    ----------
    policy : str
        A number in [0, 1] is one threshold for all labels, reached or passed; it does not apply to scores outside of
        [0, 1]. ``cardinality`` is the threshold at which the test rows get as many labels as training rows have on
        average, rounded to a number of cells that equal scores allow. ``top_k`` are the labels of highest score in each
        row, as many as a training row has on average, rounded, at least one; ``top_3`` are three.
    scores : ndarray of shape (n, q)
    cardinality : float
        Mean number of labels of the training rows.

    Returns
    -------
    ndarray of uint8, shape (n, q), or None
    """
    if policy == "cardinality":
        chosen = scores >= cardinality_threshold(scores, cardinality)
    elif policy.startswith("top_"):
        k = max(1, round(cardinality)) if policy == "top_k" else int(policy.removeprefix("top_"))
        chosen = label_ranks(scores.astype(float)) < k
    elif scores.min() < 0 or scores.max() > 1:
        return None
    else:
        chosen = scores >= float(policy)
    return chosen.astype(np.uint8)


def cardinality_threshold(scores: np.ndarray, cardinality: float) -> float:
    """Return the threshold at which rows have a mean number of labels nearest to ``cardinality``.

    Of two numbers equally near, the smaller; +inf assigns none.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.arena.score_files.policies import cardinality_threshold
    >>> cardinality_threshold(np.array([[0.9, 0.2], [0.6, 0.6]]), 1.0)
    0.9
    """
    values, counts = np.unique(-scores, return_counts=True)
    assigned = np.concatenate([[0], np.cumsum(counts)])
    best = int(np.argmin(np.abs(assigned - cardinality * len(scores))))
    return float(-values[best - 1]) if best else np.inf
