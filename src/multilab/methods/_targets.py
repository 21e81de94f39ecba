# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""The target of `fit`: classes of a one-dimensional y, and label names of a data frame."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array

from multilab.core.tables import table_values
from multilab.methods.errors import MethodError

TAGS = "sklearn.preprocessing.MultiLabelBinarizer makes such columns from lists of tags"


def target_values(y: Any) -> Any:
    """Return y as an array of numbers where it holds numbers (see `table_values`).

    Raises
    ------
    MethodError
        If its rows are of unequal length, as lists of tags are.
    """
    try:
        return table_values(y)
    except ValueError:
        raise MethodError(f"y has rows of unequal length: give one 0/1 column per label ({TAGS})") from None


def binary_classes(y: Any) -> tuple[np.ndarray | None, Any]:
    """Return the two classes of a one-dimensional y and its 0/1 column; None and y for a label matrix.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, q), or sparse matrix
        Of one dimension: two values of any type that can be ordered, the larger one is the label.

    Returns
    -------
    classes : ndarray of shape (2,) or None
    y : the given label matrix, or ndarray of shape (n, 1), bool

    Raises
    ------
    MethodError
        If a one-dimensional y does not hold two values, or holds real numbers of a regression.
    ValueError
        If it holds NaN or infinity (raised by scikit-learn).
    """
    if (y.ndim if hasattr(y, "ndim") else target_values(y).ndim) != 1:
        return None, y
    try:
        array = check_array(y, dtype=None, ensure_2d=False, input_name="y")
        kind, classes = type_of_target(array, input_name="y"), np.unique(array)
    except TypeError as error:  # bytes; None among texts
        raise MethodError(
            f"y of one dimension must hold two classes, numbers or texts ({error}); "
            f"for more, pass one 0/1 column per label ({TAGS})"
        ) from error
    if kind != "binary":
        raise MethodError(
            f"{describe_target(array)} y of one dimension must hold two classes; "
            "for more, pass one 0/1 column per class, as sklearn.preprocessing.LabelBinarizer makes them from classes, "
            "and sklearn.preprocessing.MultiLabelBinarizer from lists of tags"
        )
    if len(classes) < 2:
        raise MethodError(f"y holds one class only, {classes.tolist()}: a classification needs two")
    return classes, (array == classes[1])[:, None]


def describe_target(array: np.ndarray) -> str:
    """Describe values that are not 0/1, in scikit-learn's terms where it has some."""
    kind = type_of_target(array.ravel())
    if kind == "binary":
        return f"y holds the values {np.unique(array).tolist()}."
    if kind == "multiclass":
        return "Only binary classification is supported. The type of the target is multiclass."
    return f"Unknown label type: {kind}."


def label_names(y: Any) -> np.ndarray | None:
    """Return the column names of a data frame, or the name of a series, if they are text; else None."""
    names = getattr(y, "columns", None)
    if names is None:
        names = [getattr(y, "name", None)]
    return np.asarray(names, dtype=object) if all(isinstance(name, str) for name in names) else None


def to_frame(values: np.ndarray, names: np.ndarray | None, X: Any) -> Any:
    """Return a DataFrame with one row per row of X and one column per label, with the index of X if it has one."""
    import pandas as pd  # only here: half a second at the import of every method otherwise

    values = values[:, None] if values.ndim == 1 else values
    columns = [f"label{number}" for number in range(values.shape[1])] if names is None else names
    return pd.DataFrame(values, index=X.index if isinstance(X, pd.DataFrame) else None, columns=columns)
