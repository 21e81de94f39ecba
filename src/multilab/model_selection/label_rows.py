"""Labels of the rows to split, with a hint if they are tags."""

from __future__ import annotations

from typing import Any

from multilab.core.tables import refuse_tags
from multilab.datasets.errors import DatasetError
from multilab.model_selection.iterative_stratification import kfold
from multilab.model_selection.iterative_stratification.columns import LabelMatrix, check_label_matrix


def label_matrix(Y: Any) -> LabelMatrix:
    """Return `check_label_matrix` of labels.

    Raises
    ------
    DatasetError
        The labels are no matrix of 0 and 1, or tags.
    """
    _refuse_tags(Y)
    return check_label_matrix(Y)


def labels_of(X: Any, y: Any) -> LabelMatrix:
    """Return the labels of ``split(X, y)``, see :func:`label_matrix`."""
    if y is not None:
        _refuse_tags(y)
    return kfold.labels_of(X, y)


def _refuse_tags(Y: Any) -> None:
    try:
        refuse_tags(Y)
    except ValueError as error:
        raise DatasetError(f"labels: {error}") from None
