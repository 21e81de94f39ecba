"""Prediction of many rows by a fitted estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from multilab.core import MultilabError
from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError

__all__ = ["BATCH", "predict_rows"]

BATCH = 5000
"""Rows that are predicted at a time."""


def predict_rows(
    model: Any, X: Any, progress: Callable[[Iterable[int], int], Iterable[int]] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (float64) and decisions (uint8), both of shape (n, q).

    Rows are predicted in batches, so that kernels and distances between new rows and training rows, and scaled and
    dense copies of the rows, need no more memory for a long table than for a short one.

    Parameters
    ----------
    model : MethodPipeline
        Fitted.
    X : ndarray or CSR of shape (n, d)
        Encoded rows.
    progress : callable, optional
        Wraps the batches.

    Raises
    ------
    DatasetError
        If the estimator fails, for example because of an overflow with very large numbers.
    """
    starts = range(0, max(X.shape[0], 1), BATCH)
    parts = []
    for start in progress(starts, len(starts)) if progress else starts:
        try:
            parts.append(model.predict_with_scores(X[start : start + BATCH]))
        except MultilabError:
            raise
        except (ArithmeticError, LookupError, ValueError) as error:  # numbers that overflow, a damaged model
            where = f"rows {start + 1} to {min(start + BATCH, X.shape[0])}"
            reason = f"{type(error).__name__}: {excerpt(str(error))}"
            raise DatasetError(f"{where}: the model fails ({reason})") from error
    scores, decisions = zip(*parts, strict=True)
    return np.concatenate(scores), np.concatenate(decisions)
