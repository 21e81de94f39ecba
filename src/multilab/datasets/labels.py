"""Labels in tables: tags in one column, a row per item and tag, yes and no, a blank for no."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multilab.core.files import PathLike
from multilab.core.messages import did_you_mean, option
from multilab.core.text import excerpt, first_few
from multilab.datasets.columns import TableColumn
from multilab.datasets.encode import CodedTable
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import require_cells
from multilab.datasets.table_cells import MISSING_CELLS, SEPARATORS

__all__ = ["TagOptions", "known_tags", "split_tags", "tagged"]

_SHOWN = 8  # rare tags that a note lists


@dataclass(frozen=True)
class TagOptions:
    """Column of tags and their format; empty if labels are columns.

    Attributes
    ----------
    tags : str or None
        Column whose cells hold any number of tags: ``a|b``, ``a, b``, ``a; b``, ``['a', 'b']``.
    item, tag : str or None
        Columns of a table with a row for each item and tag.
    separator : str or None
        What separates the tags of a cell. Default: of ``tags`` the one of ``|``, ``;`` and ``,`` that occurs; a cell of
        ``tag`` is one tag.
    min_count : int or None
        Tags with fewer rows are left out.
    """

    tags: str | None = None
    item: str | None = None
    tag: str | None = None
    separator: str | None = None
    min_count: int | None = None

    def given(self) -> bool:
        """Return whether tags are the labels.

        Raises
        ------
        DatasetError
            Options that exclude each other, or one without another that it needs.
        """
        if self.tags is not None and (self.item is not None or self.tag is not None):
            raise DatasetError(
                f"{option('tags')} and {option('item')} with {option('tag')} exclude each other: a cell "
                "holds several tags, or one"
            )
        if (self.item is None) != (self.tag is None):
            raise DatasetError(
                f"{option('item')} and {option('tag')} belong together: the columns of a table with a row for "
                "each item and tag"
            )
        chosen = self.tags is not None or self.tag is not None
        if not chosen and (self.separator is not None or self.min_count is not None):
            raise DatasetError(
                f"{option('separator')} and {option('min_count')} need {option('tags')}, the column that holds the tags"
            )
        if self.min_count is not None and self.min_count < 1:
            raise DatasetError(f"{option('min_count')} must be at least 1, got {self.min_count}")
        if self.separator == "":
            raise DatasetError(f"{option('separator')} must not be empty")
        return chosen

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are always read as text."""
        return tuple(name for name in (self.tags, self.item, self.tag) if name is not None)


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
    >>> from multilab.datasets.labels import split_tags
    >>> split_tags("red | blue", "|"), split_tags("['science fiction', 'war']", None)
    (['red', 'blue'], ['science fiction', 'war'])
    """
    parts: Iterable[Any] | None = _list_in(cell)
    if parts is None:
        parts = [cell] if separator is None else cell.split(separator)
    texts = (" ".join(str(part).split()) for part in parts)
    return list(dict.fromkeys(text for text in texts if text.lower() not in MISSING_CELLS))


def known_tags(cells: Sequence[str], known: Collection[str], separator: str | None) -> list[list[str]]:
    """Return the tags of new cells; without a separator, split in the way that finds most of the known tags.

    New cells alone may not tell: ``science fiction`` is one tag or two.
    """
    marks = (separator,) if separator is not None else (None, *SEPARATORS)
    split = ([split_tags(cell, mark) for cell in cells] for mark in marks)
    return max(split, key=lambda tags: sum(tag in known for one in tags for tag in one))


def tagged(table: CodedTable, options: TagOptions) -> CodedTable:
    """Return a table without labels with its tags as labels.

    Parameters
    ----------
    table : CodedTable
        Every column a feature, those of the options nominal.
    options : TagOptions

    Returns
    -------
    CodedTable
        Without the columns of the options. The labels are the tags, sorted; a row without any has none of them.

    Raises
    ------
    DatasetError
        A column of the options is absent, there is no tag, no feature is left, a tag has the name of a feature, two
        rows of one item differ, or the separator is not given and the cells do not tell it.
    """
    names = [column.name for column in table.columns]
    for name in options.columns:
        if name not in names:
            raise DatasetError(f"'{excerpt(name)}' is not a column{did_you_mean(name, names)}", table.path)
    if hasattr(table.values, "tocsc"):
        raise DatasetError("the rows are sparse: their labels are columns, not tags", table.path)
    column, separator = str(options.tags or options.tag), options.separator
    cells, codes = _texts(table, names.index(column))
    if separator is None and options.tags is not None:
        separator = _separator(cells, np.bincount(codes, minlength=len(cells)), column, table.path)
    tags = [split_tags(cell, separator) for cell in cells]
    kept = [j for j, name in enumerate(names) if name not in options.columns]
    if not kept:
        raise DatasetError("no feature is left besides the tags", table.path)
    rows = np.arange(len(table.values))
    firsts = rows
    if options.item is not None:
        items, item_codes = _texts(table, names.index(options.item))
        if blank := np.flatnonzero(np.array([not item for item in items])[item_codes]).size:
            raise DatasetError(f"'{excerpt(options.item)}' is missing in {blank} rows", table.path)
        firsts, rows = _items(table, item_codes, items, kept, options.item)
    every, counts = _counted(tags, codes, rows, len(firsts))
    left_out = [tag for tag in every if counts[tag] < (options.min_count or 1)]
    wanted = [tag for tag in every if tag not in set(left_out)]
    if not wanted:
        what = f"no tag has {options.min_count} rows or more" if left_out else "no row has a tag"
        raise DatasetError(f"{what} in column '{excerpt(column)}'", table.path)
    if both := [names[j] for j in kept if names[j] in set(wanted)]:
        raise DatasetError(f"'{excerpt(both[0])}' is a tag and a column: rename the column, or drop it", table.path)
    try:
        require_cells(len(firsts), len(wanted), "the label matrix", table.path, table.limits)
    except DatasetError as error:
        raise DatasetError(error.reason + _count_that_fits(counts, len(firsts), table), table.path) from None
    position = {tag: k for k, tag in enumerate(wanted)}
    by_text = [[position[tag] for tag in one if tag in position] for one in tags]
    Y = np.zeros((len(firsts), len(wanted)))
    for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
        Y[row, by_text[code]] = 1.0
    train_rows = table.train_rows
    if train_rows is not None and options.item is not None:
        train_rows = int((firsts < train_rows).sum())
        later = np.arange(len(rows)) >= (table.train_rows or 0)
        if (later & (rows < train_rows)).any():
            item = items[item_codes[int(np.flatnonzero(later & (rows < train_rows))[0])]]
            raise DatasetError(f"the item {excerpt(item)!r} is in the training and in the test file", table.path)
    return replace(
        table,
        train_rows=train_rows,
        values=np.ascontiguousarray(table.values[firsts][:, kept]),
        label_values=Y,
        columns=[table.columns[j] for j in kept],
        label_columns=[TableColumn(tag, None, 1) for tag in wanted],
        notes=(*table.notes, *_notes(column, options.min_count, left_out, counts, Y)),
    )


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


def _count_that_fits(counts: Counter[str], rows: int, table: CodedTable) -> str:
    """Return the smallest round ``min_count`` with which the label matrix is within the limits, as advice."""
    for least in (2, 5, 10, 20, 50, 100, 200, 500, 1000):
        number = sum(count >= least for count in counts.values())
        try:
            require_cells(rows, number, "the label matrix", table.path, table.limits)
        except DatasetError:
            continue
        return f"; {option('min_count', least)} leaves {number} of the {len(counts)} tags" if number else ""
    return ""


def _separator(cells: Sequence[str], rows: np.ndarray, column: str, path: PathLike) -> str | None:
    """Return the separator of the tags of a column, None if each cell is a list or one tag.

    ``rows`` are the numbers of rows with each cell.
    """
    plain = [cell for cell in cells if _list_in(cell) is None]
    found = [mark for mark in SEPARATORS if any(mark in cell for cell in plain)]
    if len(found) == 1:
        return found[0]
    name = excerpt(column)
    if found:
        example = excerpt(max(plain, key=lambda cell: sum(mark in cell for mark in found)), 40)
        shown = " or ".join(f"{option('separator', repr(mark))} ({_repeats(cells, rows, mark)})" for mark in found)
        raise DatasetError(f"tags of '{name}' such as {example!r} hold several separators: give {shown}", path)
    blanks = next((cell for cell in plain if len(cell.split()) > 1), None)
    if blanks is not None:
        raise DatasetError(
            f"tags of '{name}' such as {excerpt(blanks, 40)!r} hold blanks and no other separator: "
            f"{option('separator', repr(' '))} splits them at blanks ({_repeats(cells, rows, ' ')}), "
            f"{option('separator', repr('|'))} takes every cell as one tag ({_repeats(cells, rows, None)})",
            path,
        )
    return None


def _repeats(cells: Sequence[str], rows: np.ndarray, separator: str | None) -> str:
    """Return how many tags there are with a separator, and how often each occurs: tags repeat, fragments do too."""
    counts: Counter[str] = Counter()
    for cell, number in zip(cells, rows.tolist(), strict=True):
        counts.update(dict.fromkeys(split_tags(cell, separator), number))
    return f"{len(counts)} tags, {sum(counts.values()) / len(counts):.3g} rows each" if counts else "no tag"


def _texts(table: CodedTable, j: int) -> tuple[list[str], np.ndarray]:
    """Return the different texts of a column, the first empty for missing cells, and the position of each row's."""
    codes = np.asarray(table.values[:, j])
    return ["", *(table.columns[j].values or ())], np.where(np.isnan(codes), 0, codes + 1).astype(np.intp)


def _items(
    table: CodedTable, codes: np.ndarray, items: Sequence[str], kept: Sequence[int], item: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each item, in the order of the file, and the item of each row."""
    _, firsts, of_rows = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(firsts, kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    firsts, of_rows = firsts[order], place[of_rows]
    values = table.values[:, kept]
    same = (values == values[firsts[of_rows]]) | (np.isnan(values) & np.isnan(values[firsts[of_rows]]))
    if not same.all():
        row, j = (int(k) for k in np.argwhere(~same)[0])
        raise DatasetError(
            f"rows {firsts[of_rows[row]] + 1} and {row + 1} are of one item, {item}={items[codes[row]]!r}, but "
            f"differ in '{excerpt(table.columns[kept[j]].name)}': leave that column out ({option('drop')})",
            table.path,
        )
    return firsts, of_rows


def _counted(
    tags: Sequence[Sequence[str]], codes: np.ndarray, rows: np.ndarray, n: int
) -> tuple[list[str], Counter[str]]:
    """Return all tags, sorted, and the number of items of each."""
    counts: Counter[str] = Counter()
    pairs = np.unique(np.column_stack([rows, codes]), axis=0)  # an item may name a tag twice
    seen = [set[str]() for _ in range(n)] if len(pairs) > n else None
    for row, code in pairs.tolist():
        new = tags[code] if seen is None else [tag for tag in tags[code] if tag not in seen[row]]
        counts.update(new)
        if seen is not None:
            seen[row].update(new)
    return sorted(counts), counts


def _notes(
    column: str, min_count: int | None, left_out: Sequence[str], counts: Counter[str], Y: np.ndarray
) -> list[str]:
    without = int((~Y.any(axis=1)).sum())
    notes = [f"labels are the {Y.shape[1]} tags of '{excerpt(column)}'; {without} rows have none"]
    if left_out:
        rarest = sorted(left_out, key=lambda tag: (-counts[tag], tag))
        shown = first_few((f"{excerpt(tag, 30)} ({counts[tag]})" for tag in rarest), _SHOWN)
        notes.append(f"left out, fewer than {min_count} rows: {shown}")
    return notes
