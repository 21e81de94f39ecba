"""Tags as labels: what counts as tags, how texts are split into them, and their 0/1 columns."""

from __future__ import annotations

import ast
import json
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.core.tables import is_absent, pandas_frame
from multilab.core.text import excerpt, first_few

if TYPE_CHECKING:
    import pandas as pd

MISSING_CELLS = frozenset({"", "?", "na", "nan", "null", "n/a", "#n/a", "<na>"})
"""Texts, in lower case, of a cell that holds nothing."""
SEPARATORS = ("|", ";", ",")
"""Separators of tags that are recognised. A blank has to be asked for: tags such as "science fiction" hold it."""
MAX_CELLS = 2**28
"""Largest matrix that is made of tags, one byte per row and tag, as the largest sparse Y that is made dense."""
_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
_SCALARS = (str, int, float, np.generic, type(None))
_TRUTH = {"0", "1"}  # a matrix that was read as text
_NUMBERS = ("scores", "probabilities")
_SHOWN = 3  # unknown tags in a warning


# ---------------------------------------------------------------- texts


def split_tags(cell: str, separator: str | None) -> list[str]:
    """Return the tags of a cell, each once, in the order of the cell.

    Parameters
    ----------
    cell : str
        ``a|b`` or a list as JSON or Python writes it: ``["a", "b"]``, ``['a', 'b']``.
    separator : str or None
        None: the cell is one tag, unless it is a list.

    Examples
    --------
    >>> from multilab.core.tags import split_tags
    >>> split_tags("red | blue", "|"), split_tags("['science fiction', 'war']", None)
    (['red', 'blue'], ['science fiction', 'war'])
    """
    parts = _list_in(cell)
    if parts is None:
        parts = [cell] if separator is None else cell.split(separator)
    return _tags_of(parts)


def known_tags(cells: Sequence[str], known: Collection[str], separator: str | None = None) -> list[list[str]]:
    """Return the tags of new cells; without a separator, split in the way that finds most of the known tags.

    New cells alone may not tell: ``science fiction`` is one tag or two.
    """
    marks = (separator,) if separator is not None else (None, *SEPARATORS)
    split = ([split_tags(cell, mark) for cell in cells] for mark in marks)
    return max(split, key=lambda tags: sum(tag in known for one in tags for tag in one))


def separator_of(cells: Mapping[str, int], what: str, advice: Callable[[str | None], str] | None = None) -> str | None:
    """Return the separator of the tags in cells, None if each cell is a list or one tag.

    Parameters
    ----------
    cells : mapping of str to int
        The different cells, with their numbers of rows.
    what : str
        What holds the tags, for messages.
    advice : callable, optional
        Returns how a separator is given; for None, that every cell is one tag.

    Raises
    ------
    ValueError
        Several separators occur, or only blanks do.
    """
    advice = advice or _as_lists
    plain = [cell for cell in cells if _list_in(cell) is None]
    found = [mark for mark in SEPARATORS if any(mark in cell for cell in plain)]
    if len(found) == 1:
        return found[0]
    if found:
        example = excerpt(max(plain, key=lambda cell: sum(mark in cell for mark in found)), 40)
        shown = " or ".join(f"{advice(mark)} ({_repeats(cells, mark)})" for mark in found)
        raise ValueError(f"{what} such as {example!r} hold several separators: give {shown}")
    blanks = next((cell for cell in plain if len(cell.split()) > 1), None)
    if blanks is not None:
        raise ValueError(
            f"{what} such as {excerpt(blanks, 40)!r} hold blanks and no other separator: {advice(' ')} splits them at "
            f"blanks ({_repeats(cells, ' ')}), {advice(None)} takes every cell as one tag ({_repeats(cells, None)})"
        )
    return None


def _as_lists(separator: str | None) -> str:
    """Return how texts become lists of tags where there is no option for a separator."""
    return "lists by .map(lambda tag: [tag])" if separator is None else f"lists by .str.split({separator!r})"


def _repeats(cells: Mapping[str, int], separator: str | None) -> str:
    """Return how many tags there are with a separator, and how often each occurs: tags repeat, fragments do too."""
    counts: Counter[str] = Counter()
    for cell, number in cells.items():
        counts.update(dict.fromkeys(split_tags(cell, separator), int(number)))
    return f"{len(counts)} tags, {sum(counts.values()) / len(counts):.3g} rows each" if counts else "no tag"


def several_tags(text: str) -> bool:
    """Return whether a text has the form of several tags: a separator, or a list as JSON or Python writes it."""
    return any(mark in text for mark in SEPARATORS) or _list_in(text) is not None


def _list_in(cell: str) -> list[Any] | None:
    """Return the list that a cell holds as JSON or Python writes it, None if it holds none."""
    if not (cell.startswith("[") and cell.endswith("]")):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
            return value
    return None


def _tags_of(parts: Iterable[Any]) -> list[str]:
    texts = (" ".join(str(part).split()) for part in parts if part is not None)
    return list(dict.fromkeys(text for text in texts if text.lower() not in MISSING_CELLS))


# ---------------------------------------------------------------- labels of any form


def tag_lists(
    labels: Any, known: Collection[str] | None = None, *, classes: bool = False, name: str = "labels"
) -> list[list[str]] | None:
    """Return the tags of each row; None if labels are no tags, such as a matrix.

    This is the one place that says what tags are: lists, tuples or sets of texts; texts such as ``red|blue``, or with
    one tag each; a missing cell is a row without any. They are the items of a list, of a series or of a one-column data
    frame (pandas, polars, Arrow), or of an array of objects. Numbers are tags in sets, and in lists of unequal length
    that hold others than 0 and 1.

    Parameters
    ----------
    labels : object
    known : collection of str, optional
        The tags that there may be: texts are split so that most of these are found.
    classes : bool, default False
        Whether one or two different texts without a separator are the classes of a binary problem, and no tags.
    name : str, default "labels"
        For messages.

    Raises
    ------
    ValueError
        Texts can be split in several ways.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.core.tags import tag_lists
    >>> tag_lists(pd.Series(["red|blue", None, "red"]))
    [['red', 'blue'], [], ['red']]
    >>> tag_lists([[1, 0], [0, 1]]) is None
    True
    """
    cells = _cells(labels)
    first = None if cells is None else next((cell for cell in cells if not is_absent(cell)), None)
    if cells is None or not isinstance(first, (str, *_COLLECTIONS)):
        return None
    present = [cell for cell in cells if not is_absent(cell)]
    if isinstance(first, str):
        texts = ["" if is_absent(cell) else cell.strip() for cell in cells if is_absent(cell) or isinstance(cell, str)]
        counts = Counter(texts)
        if len(texts) < len(cells) or counts.keys() <= _TRUTH:
            return None
        different = counts.keys() - {""}
        two = len(different) == 2 or (len(present) == len(cells) and len(different) < 2)
        if classes and two and not any(map(several_tags, counts)):
            return None
        if known is not None:
            return known_tags(texts, known)
        separator = separator_of(counts, name)
        split = {text: split_tags(text, separator) for text in counts}
        return [split[text] for text in texts]
    if not all(isinstance(cell, _COLLECTIONS) for cell in present) or not _hold_tags(present, known):
        return None
    return [[] if is_absent(cell) else _tags_of(cell) for cell in cells]


def _cells(labels: Any) -> Sequence[Any] | None:
    """Return the items of labels in one dimension, of a data frame of one column; None of numbers and matrices."""
    if isinstance(labels, list | tuple):
        return labels
    if hasattr(labels, "toarray") or getattr(getattr(labels, "dtype", None), "kind", "O") not in "OUT":
        return None
    if isinstance(labels, np.ndarray):
        return labels.tolist() if labels.ndim == 1 else None
    if len(getattr(labels, "shape", (0,))) == 2:
        return _cells(pandas_frame(labels).iloc[:, 0]) if labels.shape[1] == 1 and hasattr(labels, "columns") else None
    if hasattr(labels, "to_pylist"):  # Arrow, of which narwhals knows chunked arrays only
        return labels.to_pylist()
    import narwhals as nw  # only here: methods and metrics of arrays need no data frame

    column = nw.from_native(labels, pass_through=True, allow_series=True)
    return column.to_list() if isinstance(column, nw.Series) else None


def _hold_tags(lists: Sequence[Any], known: Collection[str] | None) -> bool:
    """Return whether collections are those of tags, and not the rows of a matrix or arrays of one for each label."""
    if any(getattr(cell, "ndim", 1) != 1 for cell in lists):
        return False
    items = next((cell for cell in lists if len(cell)), ())
    first, widths = next(iter(items), ""), {len(cell) for cell in lists}
    if isinstance(first, bool) or not isinstance(first, str | int | np.integer):
        return False
    if not all(isinstance(tag, _SCALARS) for cell in lists for tag in cell):
        return False
    if isinstance(items, set | frozenset):
        return True
    if isinstance(first, str):
        return len(widths) > 1 or not len(items) or not all(tag in _TRUTH for cell in lists for tag in cell)
    others = {tag for cell in lists for tag in cell} - {0, 1}
    if known is not None:
        return widths != {len(known)} and any(str(tag) in known for tag in others)
    return len(widths) > 1 and bool(others)


def tag_columns(
    labels: Any,
    known: Iterable[Any] | None = None,
    *,
    classes: bool = False,
    name: str = "labels",
    refuse_unknown: bool = False,
) -> Any:
    """Return tags as a data frame with a 0/1 column for each, and any other labels as they are.

    Parameters
    ----------
    labels, classes, name
        See :func:`tag_lists`.
    known : iterable of str, optional
        The columns, such as the labels of a model. Other tags are left out: one warning counts them. Default: the tags,
        sorted, as `sklearn.preprocessing.MultiLabelBinarizer` has them.
    refuse_unknown : bool, default False
        Whether other tags are an error.

    Returns
    -------
    DataFrame of shape (n, q), uint8; or ``labels``, a data frame of polars or Arrow as one of pandas

    Raises
    ------
    ValueError
        No row has a tag, there are too many cells, or texts can be split in several ways.

    Examples
    --------
    >>> from multilab.core.tags import tag_columns
    >>> tag_columns([["red", "blue"], [], ["red"]])
       blue  red
    0     1    1
    1     0    0
    2     0    1
    """
    names = None if known is None else [str(one) for one in known]
    lists = tag_lists(labels, names and set(names), classes=classes, name=name)
    if lists is None:
        return pandas_frame(labels)
    return columns_of(lists, names, name, getattr(labels, "index", None), refuse_unknown)


def columns_of(
    lists: Sequence[Sequence[str]],
    known: Sequence[str] | None = None,
    name: str = "labels",
    index: Any = None,
    refuse_unknown: bool = False,
) -> pd.DataFrame:
    """Return lists of tags as `tag_columns` does."""
    import pandas as pd  # only here: half a second at the import of every method otherwise

    names = sorted({tag for tags in lists for tag in tags}) if known is None else list(known)
    if not names:
        raise ValueError(f"{name}: no row has a tag")
    if len(lists) * len(names) > MAX_CELLS:
        raise ValueError(
            f"{name}: {len(lists):,} rows x {len(names):,} tags are too many for a dense matrix: pass "
            "sklearn.preprocessing.MultiLabelBinarizer(sparse_output=True).fit_transform(lists)"
        )
    position = {tag: k for k, tag in enumerate(names)}
    flat = [tag for tags in lists for tag in tags]
    rows = np.repeat(np.arange(len(lists)), [len(tags) for tags in lists])
    columns = np.array([position.get(tag, -1) for tag in flat], dtype=np.intp)
    values = np.zeros((len(lists), len(names)), dtype=np.uint8)
    values[rows[columns >= 0], columns[columns >= 0]] = 1
    unknown = Counter(flat[k] for k in np.flatnonzero(columns < 0))
    if unknown:
        shown = first_few((repr(excerpt(tag, 30)) for tag, _ in unknown.most_common()), _SHOWN)
        where = f"{len(np.unique(rows[columns < 0]))} of {len(lists)} rows ({shown})"
        found = f"tags that are no label and cannot be predicted: {len(unknown)}, in {where}"
        if refuse_unknown:
            raise ValueError(f"{name}: {found}")
        warnings.warn(f"{name}: left out {found}", UserWarning, stacklevel=3)
    return pd.DataFrame(values, index=index if hasattr(index, "is_unique") else None, columns=names)


def tags_for_model(labels: Any, model: Any, name: str = "y") -> Any:
    """Return tags as 0/1 columns of a fitted model's labels, and any other labels as they are.

    Parameters
    ----------
    labels : object
        See :func:`tag_lists`.
    model : object
        A classifier with ``label_names_``, or a pipeline that ends in one.
    name : str, default "y"
        For messages.

    Raises
    ------
    ValueError
        The labels are tags, and those of the model have no names.
    """
    if not hasattr(model, "label_names_") and hasattr(model, "steps"):
        model = model.steps[-1][1]
    classes, names = getattr(model, "classes_", None), getattr(model, "label_names_", None)
    if isinstance(classes, np.ndarray) and classes.shape == (2,):  # of a binary problem
        return pandas_frame(labels)
    if names is not None:
        return tag_columns(labels, names, name=name)
    if tag_lists(labels, name=name) is not None:
        raise ValueError(
            f"{name} holds tags, and the labels of {type(model).__name__} have no names: fit it to tags, or to a data "
            "frame of labels"
        )
    return pandas_frame(labels)


def same_columns(
    Y: Any, *given: Any, label_names: Iterable[Any] | None = None, names: Sequence[str] = ("Y", "decisions")
) -> tuple[Any, ...]:
    """Return labels and predictions of the same rows, where tags become 0/1 columns of one set of labels.

    The labels are ``label_names``, else the columns of the data frame among the arguments, else all tags of all of them
    (as `sklearn.preprocessing.MultiLabelBinarizer` has them when fitted to both). Without tags nothing is changed.

    Parameters
    ----------
    Y, *given : object
        None is allowed.
    label_names : iterable of str, optional
    names : sequence of str
        Names of the arguments in messages. Those called scores or probabilities are never tags.

    Raises
    ------
    ValueError
        A matrix without column names stands beside tags, or no tag is a label.

    Examples
    --------
    >>> from multilab.core.tags import same_columns
    >>> Y, decisions = same_columns([["red"], ["blue"]], [["red"], ["green"]])
    >>> decisions
       blue  green  red
    0     0      0    1
    1     0      1    0
    """
    tables = tuple(map(pandas_frame, (Y, *given)))
    known = None if label_names is None else [str(one) for one in label_names]
    known = known or next(filter(None, map(_column_names, tables)), None)
    lists: list[list[list[str]] | None] = []
    seen = known and set(known)
    for table, name in zip(tables, names, strict=False):
        lists.append(None if name in _NUMBERS else tag_lists(table, seen, name=name))
        if lists[-1] is not None and seen is None:  # predictions are split by the tags of Y
            seen = {tag for tags in lists[-1] for tag in tags}
    if all(one is None for one in lists):
        return tables
    if known is None:
        unnamed = next((k for k, one in enumerate(lists) if one is None and tables[k] is not None), None)
        if unnamed is not None:
            tags = next(k for k, one in enumerate(lists) if one is not None)
            raise ValueError(
                f"{names[tags]} holds tags, and the columns of {names[unnamed]} have no names: pass a data frame with "
                "a column for each tag, such as model.predict_frame(X)"
            )
        known = sorted({tag for one in lists for tags in one or () for tag in tags})
    elif any(one and not any(tag in known for tags in one for tag in tags) for one in lists if any(one or ())):
        raise ValueError(f"none of the tags is a label: the labels are {first_few(map(repr, known), _SHOWN)}")
    made = (
        table if one is None else columns_of(one, known, name, getattr(table, "index", None))
        for table, one, name in zip(tables, lists, names, strict=False)
    )
    return tuple(made)


def _column_names(table: Any) -> list[str] | None:
    """Return the names of the columns of a data frame of labels, None of a column of tags and of a matrix."""
    names = getattr(table, "columns", None)
    if names is None or len(names) == 0 or not all(isinstance(name, str) for name in names):
        return None
    return None if tag_lists(table) is not None else list(names)
