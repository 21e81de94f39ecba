"""Checks on what the methods learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multilab.claims.checks import check
from multilab.claims.evidence import Evidence, Finding
from multilab.statistics import signed_rank_p

__all__ = ["correlation_sign", "cosines", "share_of_zero"]


@check
def share_of_zero(
    evidence: Evidence,
    methods: Sequence[str],
    at_least: float,
    array: str = "W_",
    blocks: int | None = None,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if for every method the median share (over datasets) of entries that are exactly 0 reaches ``at_least``.

    With ``blocks`` the array's rows are that many groups of equal size (base classifiers); the numbers then tell how
    many whole groups are zero.
    """
    numbers, holds = {}, True
    for method in methods:
        found = [kept[0] for kept in evidence.arrays(method, [array], datasets).values()]
        shares = [float(np.mean(one == 0)) for one in found]
        holds &= float(np.median(shares)) >= at_least
        told = {"median": round(float(np.median(shares)), 4), "largest": round(max(shares), 4), "datasets": len(shares)}
        if blocks:
            groups = [group for one in found for group in np.array_split(one, blocks)]
            told["zero groups"] = sum(not group.any() for group in groups)
        numbers[method] = told
    return Finding.of(holds, numbers)


@check
def correlation_sign(
    evidence: Evidence,
    methods: Sequence[str],
    affinity: str = "label_affinity_",
    weights: str = "W_",
    sign: int = 1,
    datasets: Sequence[str] | None = None,
) -> Finding:
    """Holds if cosines of label columns and of weight columns correlate with the given sign.

    Spearman's correlation of the off-diagonal entries per dataset (at least 3 labels), then Wilcoxon's signed-rank
    test over the datasets: holds if significant with that sign for every method, fails if significant with the other
    sign for one or the median has it for all, else inconclusive.
    """
    from scipy.stats import spearmanr

    numbers, verdicts = {}, []
    for method in methods:
        rhos = {}
        for dataset, (labels, W) in evidence.arrays(method, [affinity, weights], datasets).items():
            above = np.triu_indices(len(labels), 1)
            a, b = labels[above], cosines(W)[above]
            if len(labels) >= 3 and np.ptp(a) > 0 and np.ptp(b) > 0:
                rhos[dataset] = float(spearmanr(a, b).statistic)
        values = np.array(list(rhos.values())) * sign
        p = signed_rank_p(values) if len(values) else 1.0
        median = float(np.median(values)) if len(values) else 0.0
        verdicts.append((p < evidence.alpha, median))
        told: dict[str, object] = {name: round(rho, 3) for name, rho in rhos.items()}
        numbers[method] = {"median": round(median * sign, 3), "p": round(float(p), 4), **told}
    if all(sure and median > 0 for sure, median in verdicts):
        return Finding("holds", numbers)
    if any(sure and median < 0 for sure, median in verdicts) or all(median < 0 for _, median in verdicts):
        return Finding("fails", numbers)
    return Finding("inconclusive", numbers, f"no clear sign over the datasets at {evidence.alpha}")


def cosines(W: np.ndarray) -> np.ndarray:
    """Return the cosine similarities of the columns of a matrix; 0 for a column of zeros."""
    norms = np.linalg.norm(W, axis=0)
    scaled = W / np.where(norms > 0, norms, 1.0)
    return scaled.T @ scaled
