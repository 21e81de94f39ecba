# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Groups of weights per base classifier, and the penalties on them."""

import itertools
from collections.abc import Sequence

import numpy as np

from multilab.methods.base import MethodError
from multilab.methods.solvers.penalties import SparseGroupPenalty


def classifier_rows(p: int, q: int, groups: Sequence[int] | None = None) -> list[slice]:
    """Return the rows of W of each base classifier.

    Parameters
    ----------
    p, q : int
        Columns of S and of Y.
    groups : sequence of int, optional
        Number of columns of S per classifier; q each when None.

    Raises
    ------
    MethodError
        When the columns of S cannot be divided so.
    """
    if groups is None:
        if p % q:
            raise MethodError(
                f"S has {p} columns, not a multiple of the {q} labels of Y: one group of {q} scores per base "
                "classifier is expected; name other group sizes with groups=[...]"
            )
        sizes = [q] * (p // q)
    else:
        sizes = [int(size) for size in groups]
        if min(sizes, default=0) < 1 or sum(sizes) != p:
            raise MethodError(f"groups={sizes} must be positive and sum to the {p} columns of S")
    ends = list(itertools.accumulate(sizes, initial=0))
    return [slice(start, end) for start, end in itertools.pairwise(ends)]


def diagonal_support(rows: Sequence[slice], q: int) -> np.ndarray:
    """Return where W may differ from zero when each score serves its own label only, shape (p, q)."""
    if any(r.stop - r.start != q for r in rows):
        raise MethodError(f"weights='diagonal' needs {q} scores per base classifier, one for each label")
    return np.tile(np.eye(q, dtype=bool), (len(rows), 1))


def unit_l1(rows: Sequence[slice], support: np.ndarray | None = None) -> SparseGroupPenalty:
    """Return |W|_1."""
    return SparseGroupPenalty(1.0, np.zeros(len(rows)), rows, support)


def unit_l21(
    rows: Sequence[slice], q: int, alpha: float, group_weight: str = "sqrt_labels", support: np.ndarray | None = None
) -> SparseGroupPenalty:
    """Return alpha |W|_1 + (1 - alpha) sum_k c_k ||W_k||_F, c_k = sqrt(q) or the root of the block's size."""
    if group_weight == "size":
        weights = [r.stop - r.start if support is not None else (r.stop - r.start) * q for r in rows]
    else:
        weights = [q] * len(rows)
    return SparseGroupPenalty(alpha, (1.0 - alpha) * np.sqrt(weights), rows, support)
