"""Label matrices: validation, classes of a one-dimensional y, sparse ones, and the rows that observe a label."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array

from multilab.core.tables import NUMBERED_TAGS, in_another_order, pandas_frame, table_values
from multilab.core.tags import same_columns, tag_columns, tag_lists, tags_for_model
from multilab.methods.errors import MethodError


def with_tag_columns(y: Any, known: Any = None, model: Any = None) -> Any:
    """Return tags as a data frame of 0/1 columns, other labels as they are, see `multilab.core.tags.tag_columns`.

    Parameters
    ----------
    y : object
        Labels. One or two different texts without a separator are the classes of a binary problem.
    known : iterable of str, optional
        The columns; another tag is an error.
    model : object, optional
        The fitted model whose labels are the columns; other tags are left out with a warning.

    Raises
    ------
    MethodError
        y is the name of a column, or cannot be split into tags.
    """
    if isinstance(y, str):
        raise MethodError(f"y={y!r} is one text: pass the labels themselves, such as frame[{y!r}]")
    try:
        if model is not None:
            return tags_for_model(y, model)
        return tag_columns(y, known, classes=known is None, name="y", refuse_unknown=True)
    except ValueError as error:
        raise MethodError(str(error)) from None


def labels_and_scores(Y: Any, scores: Any, names: tuple[str, str] = ("Y", "scores")) -> tuple[Any, Any]:
    """Return labels and scores of the same rows, where Y may hold tags: the columns of the scores name the labels.

    Raises
    ------
    MethodError
        Y holds tags and the scores have no names, or two data frames have their columns in another order.
    """
    try:
        if tag_lists(Y, classes=True) is not None:
            Y, scores = same_columns(Y, scores, names=names)
    except ValueError as error:
        raise MethodError(str(error)) from None
    Y, scores = pandas_frame(Y), pandas_frame(scores)
    if in_another_order(getattr(Y, "columns", None), getattr(scores, "columns", None)):
        first, second = names
        raise MethodError(f"{second} has the columns of {first} in another order: pass {second}[{first}.columns]")
    return Y, scores


def check_labels(y: Any, y_mask: Any = None, *, missing: bool = False, owner: str = "check_labels") -> np.ndarray:
    """Return the label matrix as a new C-contiguous array of shape (n, q): uint8, or int8 with -1 for "not observed".

    Parameters
    ----------
    y : array-like or sparse matrix of shape (n, q)
        Values 0/1 of any number type, or booleans. One column is allowed, one dimension is not. NaN, and -1 in an int8
        y, mean that a label was not observed.
    y_mask : array-like or sparse matrix of shape (n, q), optional
        True where the label is observed; the values of y elsewhere are ignored.
    missing : bool, default=False
        Whether labels may be unobserved.
    owner : str, default="check_labels"
        Name of what needs a dense y, for messages.

    Returns
    -------
    ndarray of shape (n, q)
        uint8 where all labels are observed, else int8. A label that no row observes counts as one that no row has.

    Raises
    ------
    MethodError
        If y is not two-dimensional, holds anything else, has unobserved labels although ``missing`` is False, or is
        sparse and too large to be made dense (`MAX_DENSE_BYTES`).
    ValueError
        If y holds infinity (raised by scikit-learn).
    """
    if y is None:
        raise MethodError("the method requires y to be passed, but the target y is None")
    array = check_array(
        target_values(y),
        accept_sparse=True,
        dtype=None,
        ensure_2d=False,
        ensure_all_finite="allow-nan",
        input_name="y",
        ensure_min_samples=0,
        ensure_min_features=0,
    )
    array = _densified(array, owner) if sp.issparse(array) else np.asarray(array)
    hidden = _unobserved(array, y_mask)
    positive = array == 1
    valid = positive | (array == 0)
    if hidden is not None:
        valid |= hidden
    if not np.all(valid):
        raise MethodError(_wrong_values(array if hidden is None else array[~hidden]))
    if array.ndim != 2:
        raise MethodError(
            f"y must have two dimensions, one column per label, and has shape {array.shape}; "
            "for a classification with a single label pass y.reshape(-1, 1)"
        )
    if array.shape[1] == 0:
        raise MethodError(f"y has shape {array.shape}: there must be at least one label column")
    labels = np.zeros(array.shape, dtype=np.uint8)
    labels[positive] = 1
    if hidden is None:
        return labels
    if not missing:
        raise MethodError(f"{hidden.sum()} of the {hidden.size} labels in y are not observed (NaN or -1)")
    return _with_unobserved(labels, hidden)


def _densified(y: Any, owner: str) -> np.ndarray:
    """Return a sparse y as a dense array; a `MethodError` of a too large one reports wrong values first."""
    refusal = refusal_of_dense(y, owner)
    if refusal is None:
        return y.toarray()
    stored = sp.coo_array(y).data  # lil and dok keep lists
    stored = stored[stored == stored]
    allowed = (0, 1, -1) if y.dtype == np.int8 else (0, 1)
    raise MethodError(refusal if np.isin(stored, allowed).all() else _wrong_values(stored))


def _wrong_values(values: np.ndarray) -> str:
    advice = "for -1/+1 labels pass (y > 0)" if values.dtype.kind in "biufc" else "for tags pass a list for each row"
    return f"{describe_target(values)} y must hold 0 and 1 only; {advice}"


def _unobserved(array: np.ndarray, y_mask: Any) -> np.ndarray | None:
    """Return where labels are not observed, or None if all are."""
    hidden: Any = False
    if array.dtype.kind in "fO":
        hidden = array != array  # NaN, also among objects
    elif array.dtype == np.int8:
        hidden = array == -1
        if y_mask is None and hidden.any() and not (array == 0).any():
            raise MethodError(
                "y holds no 0, and -1 in an int8 y means that a label is not observed; for -1/+1 labels pass (y > 0)"
            )
    if y_mask is not None:
        mask = y_mask.toarray() if sp.issparse(y_mask) else np.asarray(y_mask)
        if mask.shape != array.shape:
            raise MethodError(
                f"y_mask has shape {mask.shape} and y {array.shape}: give one value per label of each row"
            )
        if not np.isin(mask, (0, 1)).all():
            raise MethodError("y_mask must be True where a label is observed and False elsewhere")
        hidden = (mask == 0) | hidden
    return hidden if np.any(hidden) else None


def _with_unobserved(labels: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return the labels as int8 with -1 where they are hidden; a label that all rows hide is 0 in all of them."""
    if hidden.all():
        raise MethodError("no label of y is observed: there is nothing to learn from")
    partial = hidden & ~hidden.all(axis=0)
    labels[hidden] = 0
    if not partial.any():
        return labels
    return np.where(partial, np.int8(-1), labels.astype(np.int8))


def target_values(y: Any) -> Any:
    """Return y as an array of numbers where it holds numbers (see `table_values`).

    Raises
    ------
    MethodError
        If its rows are of unequal length.
    """
    try:
        return table_values(y)
    except ValueError:
        raise MethodError(f"y has rows of unequal length; {NUMBERED_TAGS}") from None


def binary_classes(y: Any, known: np.ndarray | None = None) -> tuple[np.ndarray | None, Any]:
    """Return the two classes of a one-dimensional y and its 0/1 column; None and y for a label matrix.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, q), or sparse matrix
        Of one dimension: two values of any type that can be ordered, the larger one is the label.
    known : ndarray of shape (2,), optional
        The classes, where y may hold one of them only.

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
            "for more, pass one 0/1 column per label"
        ) from error
    if kind != "binary":
        raise MethodError(
            f"{describe_target(array)} y of one dimension must hold two classes; "
            "for more, pass one 0/1 column per class: sklearn.preprocessing.LabelBinarizer().fit_transform(y)"
        )
    if known is not None:
        if len(known) != 2 or not np.isin(classes, known).all():
            raise MethodError(f"y holds the classes {classes.tolist()}, expected two of {known.tolist()}")
        classes = known
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


Layout = Literal["csr", "csc"]

MAX_DENSE_BYTES = 2**28
"""Largest sparse Y, as one byte per label of a row, that a method makes dense: its scores take eight times as much."""


def canonical_labels(y: Any, layout: Layout) -> Any | None:
    """Return a sparse label matrix as a new uint8 CSR or CSC array in canonical form, without stored zeros.

    Parameters
    ----------
    y : sparse matrix of shape (n, q), or any other
    layout : {"csr", "csc"}

    Returns
    -------
    csr_array or csc_array of shape (n, q), or None
        None where `check_labels` has to judge: y is not sparse, has other values than 0 and 1, or
        no labels.
    """
    if not sp.issparse(y) or y.ndim != 2 or y.shape[1] == 0:
        return None
    labels = (sp.csr_array if layout == "csr" else sp.csc_array)(y, copy=True)
    labels.sum_duplicates()
    labels.eliminate_zeros()
    if not np.all(labels.data == 1):
        return None
    labels.data = np.ones(labels.nnz, dtype=np.uint8)
    return labels


def refusal_of_dense(y: Any, owner: str) -> str | None:
    """Return why a sparse y is not made dense, or None if it is small enough.

    Parameters
    ----------
    y : sparse matrix
    owner : str
        Name of what needs a dense Y.
    """
    size = int(np.prod(y.shape, dtype=np.int64))
    if size <= MAX_DENSE_BYTES:
        return None
    shape = " x ".join(f"{length:,}" for length in y.shape)
    return (
        f"y of {shape} would take {size / 2**20:,.0f} MiB dense, and its scores eight times as much; {owner} needs it "
        f"dense, and a sparse y is made dense up to {MAX_DENSE_BYTES // 2**20} MiB: pass y.toarray() if that fits, or "
        "take a method that learns from a sparse y (guide page: many labels)"
    )


def label_column(Y: Any, label: int) -> np.ndarray:
    """Return one column of a dense or CSC label matrix as a dense array of shape (n,)."""
    if not sp.issparse(Y):
        return Y[:, label]
    column = np.zeros(Y.shape[0], dtype=Y.dtype)
    column[Y.indices[Y.indptr[label] : Y.indptr[label + 1]]] = 1
    return column


def label_columns(Y: Any) -> Iterator[np.ndarray]:
    """Yield the columns of a dense or CSC label matrix as dense arrays."""
    return (label_column(Y, label) for label in range(Y.shape[1]))


def is_partial(Y: np.ndarray) -> bool:
    """Return whether a validated label matrix has unobserved labels (-1): its type says so."""
    return Y.dtype == np.int8


def has_unobserved(Y: Any) -> bool:
    """Return whether a validated label matrix, dense or sparse, holds a label that is not observed."""
    return bool(is_partial(Y) and (Y < 0).sum())


def learns_from_missing(estimator: Any) -> bool:
    """Return whether a classifier, or each step of a pipeline that sees labels, can learn from unobserved ones."""
    return _refusing_missing(estimator) is None


def check_learns_from_missing(estimator: Any) -> None:
    """Raise a `MethodError` if a classifier, or a step of a pipeline, cannot learn from unobserved labels."""
    if (refusing := _refusing_missing(estimator)) is not None:
        raise MethodError(
            f"{type(refusing).__name__} cannot learn from partially observed labels; the guide on missing labels "
            "lists the methods that can"
        )


def _refusing_missing(estimator: Any) -> Any:
    """Return what sees labels and cannot learn from unobserved ones: the estimator or a step of it; None if all can."""
    for _, step in getattr(estimator, "steps", ()):
        is_classifier = hasattr(step, "predict")
        if is_classifier or hasattr(step, "_accepts_missing_labels"):
            refusing = _refusing_missing(step)
            if is_classifier or refusing is not None:
                return refusing
    return None if getattr(estimator, "_accepts_missing_labels", False) else estimator


def observed_groups(Y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the labels that are observed in the same rows, and these rows.

    What is solved for several labels at once is solved once per group then, each on its rows alone.

    Parameters
    ----------
    Y : ndarray of shape (n, q)
        0/1, or int8 with -1 for unobserved labels.

    Returns
    -------
    list of (labels, rows)
        Numbers, both ascending; every label is in one group.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.methods.labels import observed_groups
    >>> Y = np.array([[1, -1, 0], [0, 1, 1]], dtype=np.int8)
    >>> [(labels.tolist(), rows.tolist()) for labels, rows in observed_groups(Y)]
    [([0, 2], [0, 1]), ([1], [1])]
    """
    observed = Y >= 0
    groups: dict[bytes, list[int]] = {}
    for label, pattern in enumerate(np.packbits(observed, axis=0).T):
        groups.setdefault(pattern.tobytes(), []).append(label)
    return [(np.array(labels), np.flatnonzero(observed[:, labels[0]])) for labels in groups.values()]


def centred(Y: np.ndarray) -> np.ndarray:
    """Return the labels minus their means, shape (n, q); mean and residuals of a label are those of its observed rows.

    The residual of an unobserved label is 0: a covariance with it is that of the rows that observe the label, and
    columns sum to 0.
    """
    if not is_partial(Y):
        return Y - Y.mean(axis=0)
    observed = Y >= 0
    means = np.where(observed, Y, 0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    return np.where(observed, Y - means, 0.0)
