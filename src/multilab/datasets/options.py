"""Options for reading a data file: one record that defines those of cards, of the command line and of functions."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from msgspec import Meta

from multilab.core.files import PathLike
from multilab.core.messages import option, unknown_name
from multilab.core.text import comma_separated
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import ENCODINGS

__all__ = ["FORMATS", "TABLES", "Reading", "check_format", "choices", "option_text", "reading_of", "takes_reading"]

Format = Literal["arff", "csv", "excel", "feather", "json", "mat", "parquet", "svmlight", "xc"]
Count = Annotated[int, Meta(ge=0, description="an integer >= 0")]
Names = Annotated[str | list[str], Meta(description="text or a list of texts")]

FORMATS = {
    ".arff": "arff",
    ".mat": "mat",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".feather": "feather",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".xlsx": "excel",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".svmlight": "svmlight",
    ".txt": "xc",
}
"""Extension (without that of a compression) to format."""

TABLES = ("csv", "excel", "feather", "json", "parquet")
"""Formats of tables: files with named columns of numbers, texts and dates."""

_TEXTS = ("arff", "csv", "json", "svmlight", "xc")
_OPTIONS_OF = {
    "encoding": _TEXTS,
    "header": ("csv",),
    "decimal": ("csv",),
    "on_bad_lines": ("csv",),
    "missing_labels": ("arff", *TABLES),
    "columns": ("arff", *TABLES),
    "drop": ("arff", *TABLES),
    **dict.fromkeys(("tags", "item", "tag", "separator", "min_count"), TABLES),
    **dict.fromkeys(("test", "join", "on", "vectors", "groups"), TABLES),
    **dict.fromkeys(("labels_xml", "labels_first", "labels_last", "label_columns", "label_prefix"), ("arff", *TABLES)),
    "keys": ("mat",),
    **dict.fromkeys(("n_features", "first_feature", "first_label"), ("svmlight",)),
}
"""The formats that have an option; an option that is not listed here exists in all formats."""


def _about(help: str, *, flag: str = "", metavar: str = "", file: bool = False) -> dict[str, Any]:
    """Return what a command line says of an option; a file is not in a card's reader but among its files."""
    # `NOT_IN_FILE` of core.settings for a file; that module imports yaml, and the help of a command needs this one only
    return {"help": help, "flag": flag, "metavar": metavar, "in_file": not file}


@dataclass(frozen=True)
class Reading:
    """Options for reading a data file.

    The command line has an option for each attribute. A card has them below ``reader:`` (further files among its
    ``files:``), and functions that read a file or a data frame take them as keyword arguments.

    Attributes
    ----------
    label_columns : sequence of str, text with commas, or path-like
        Names of the label columns, or patterns in which ``*`` and ``?`` match any text and any character; or a file
        with one name per line. Only one of the options that choose label columns may be given; without any, ``-C n`` in
        the relation name of an ARFF file decides.
    label_prefix : str
        Beginning of the names of the label columns.
    tags : str
        Column with the tags of each row, which become the labels: ``red|blue``, ``red, blue``, ``['red', 'blue']``, or
        lists. A row with a blank cell has no label.
    item, tag : str
        The two columns of a table with a row for each item and tag.
    separator : str
        Separator of the tags in a cell. By default the one of ``|``, ``;`` and ``,`` that occurs; a cell of the column
        ``tag`` is one tag.
    min_count : int
        Tags with fewer rows are left out.
    labels_first, labels_last : int
        The first or the last columns are the labels.
    labels_xml : path-like
        Mulan's XML file that names the labels.
    label_names : sequence of str
        Names of the labels in a format without names (MATLAB, svmlight, Extreme Classification); in other formats the
        same as ``label_columns``.
    join, on : path-like and str
        A file with further columns of the same rows, usually the labels, and the key column of both files, which is not
        a feature. With ``item`` and ``tag``, the second file may have any number of rows for a key.
    test : path-like
        A second file with the same columns, whose rows are the test rows of the split "official".
    vectors : path-like
        A ``.npy`` file with numbers for all rows in their order, such as embeddings. They become the columns
        ``vectors[0]``, ``vectors[1]``, ...
    groups : str
        Column with the group of each row, such as a patient; it is not a feature. No split has rows of one group on
        both sides.
    drop : sequence of str, or text with commas
        Columns that are left out, such as row identifiers.
    columns : mapping of str to str
        Kinds of feature columns, see `multilab.datasets.kinds.Kind`. The kinds of other columns are recognised.
    missing_labels : {"error", "keep"}
        Whether missing values in label columns are an error, or labels that were not observed.
    encoding : str
        Encoding of a text file. Default: UTF-8, or Windows-1252 if no character beyond ASCII is valid UTF-8.
    header : bool
        Whether the first line of a CSV file names the columns; columns without names are called ``c1``, ``c2``, ... By
        default it names them, and a first line that looks like data is refused.
    decimal : {".", ","}
        Decimal separator of the numbers in a CSV file; the other one may separate thousands: with a comma, ``1.234,5``
        is 1234.5. By default it is a point, and nothing separates thousands.
    on_bad_lines : {"error", "skip"}
        Whether lines of a CSV file that do not fit its header are refused, or left out.
    format : str
        Format of the file. By default it is recognised by the name of the file, or by the content.
    keys : mapping of str to str
        Names of the variables of a MATLAB file: ``data``, ``target`` and others.
    n_features, first_feature, first_label : int
        Number of features of an svmlight file, and the index (0 or 1) of its first feature and of its first label.

    Examples
    --------
    >>> from multilab.datasets.options import Reading
    >>> Reading(tags="moods", drop=["id"]).given()
    {'tags': 'moods', 'drop': ['id']}
    """

    label_columns: Names | None = field(
        default=None, metadata=_about("Label columns, or patterns such as 'tag_*'.", flag="labels", metavar="A,B")
    )
    label_prefix: str | None = field(
        default=None, metadata=_about("Labels are the columns whose names begin with TEXT.", metavar="TEXT")
    )
    tags: str | None = field(
        default=None, metadata=_about("Column with the tags of each row, such as red|blue.", metavar="COLUMN")
    )
    item: str | None = field(
        default=None, metadata=_about("With --tag: the table has a row for each item and tag.", metavar="COLUMN")
    )
    tag: str | None = field(
        default=None,
        metadata=_about("The column of the tag in a table with a row for each item and tag.", metavar="COLUMN"),
    )
    separator: str | None = field(
        default=None, metadata=_about("Separator of tags (default: | ; or , whichever occurs).", metavar="TEXT")
    )
    min_count: Count | None = field(
        default=None, metadata=_about("Leave out tags with fewer than N rows.", metavar="N")
    )
    labels_first: Count | None = field(default=None, metadata=_about("The first N columns are labels.", metavar="N"))
    labels_last: Count | None = field(default=None, metadata=_about("The last N columns are labels.", metavar="N"))
    labels_xml: Any = field(
        default=None,
        metadata=_about("Mulan XML naming the labels (default: next to the ARFF).", metavar="FILE", file=True),
    )
    label_names: Names | None = field(
        default=None, metadata=_about("Labels of a file that does not name them.", metavar="A,B")
    )
    join: Any = field(
        default=None,
        metadata=_about(
            "A second file with the labels (or other columns) of the same rows.", metavar="FILE", file=True
        ),
    )
    on: str | None = field(
        default=None,
        metadata=_about("With --join: the key column of both files. It is not a feature.", metavar="COLUMN"),
    )
    test: Any = field(
        default=None,
        metadata=_about(
            "A file of the same columns: the test rows of the split `official`.", metavar="FILE", file=True
        ),
    )
    vectors: Any = field(
        default=None,
        metadata=_about("A .npy file of numbers for all rows, such as embeddings.", metavar="FILE", file=True),
    )
    groups: str | None = field(
        default=None,
        metadata=_about(
            "Column of groups, such as patients, that are never split between training and test rows.", metavar="COLUMN"
        ),
    )
    drop: Names | None = field(
        default=None, metadata=_about("Columns to leave out, such as row identifiers.", metavar="A,B")
    )
    columns: dict[str, str] | None = field(
        default=None,
        metadata=_about(
            "Kinds of columns (default: recognised): number, number:comma (1.234,5), number:point (1,234.5), "
            "date, date:day (31.1.2024), date:month (1/31/2024), category, text, text:chars, embed:FOLDER.",
            metavar="NAME=KIND,...",
        ),
    )
    missing_labels: Literal["error", "keep"] | None = field(
        default=None,
        metadata=_about("Missing values in label columns: refuse (default), or keep as labels that were not observed."),
    )
    encoding: str | None = field(
        default=None, metadata=_about("Encoding of text (default: UTF-8 or Windows-1252).", metavar="NAME")
    )
    header: bool | None = field(
        default=None, metadata=_about("Whether the first line of a CSV file names the columns (default: true).")
    )
    decimal: Literal[".", ","] | None = field(
        default=None, metadata=_about("Decimal separator of a CSV file; the other one may separate thousands.")
    )
    on_bad_lines: Literal["error", "skip"] | None = field(
        default=None, metadata=_about("Lines of a CSV file that do not fit its header: refuse (default) or leave out.")
    )
    format: Format | None = field(default=None, metadata=_about("Format of the file (default: by its name)."))
    keys: dict[str, str] | None = field(
        default=None, metadata=_about("Variables of a MATLAB file.", metavar="KEY=VARIABLE,...")
    )
    n_features: Count | None = field(
        default=None, metadata=_about("Number of features of an svmlight file.", metavar="N")
    )
    first_feature: Literal[0, 1] | None = field(
        default=None, metadata=_about("Index of its first feature.", metavar="N")
    )
    first_label: Literal[0, 1] | None = field(default=None, metadata=_about("Index of its first label.", metavar="N"))

    def given(self, names: Collection[str] = ()) -> dict[str, Any]:
        """Return the options that have a value, of some names or of all."""
        chosen = {one.name: getattr(self, one.name) for one in fields(self) if not names or one.name in names}
        return {name: value for name, value in chosen.items() if value is not None}

    def without(self, *names: str) -> Reading:
        """Return the record without the values of some options."""
        return replace(self, **dict.fromkeys(names))

    @property
    def keeps_missing_labels(self) -> bool:
        """Whether labels may be missing."""
        return self.missing_labels == "keep"

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns to leave out."""
        return tuple(self.drop or ())

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The columns of tags, keys and groups: they are read as texts, and are no features."""
        return tuple(name for name in (self.tags, self.item, self.tag, self.on, self.groups) if name is not None)

    @property
    def text_columns(self) -> frozenset[str]:
        """The columns that are texts, whatever they hold: those, and features of another kind than numbers."""
        others = (name for name, kind in (self.columns or {}).items() if kind != "number")
        return frozenset([*self.own_columns, *others])


FILES = {"test": "test", "join": "labels", "vectors": "vectors", "labels_xml": "labels-xml"}
"""Options that are further files, and the roles of these files in a card."""

LABELS = ("labels_xml", "label_names", "labels_first", "labels_last", "label_columns", "label_prefix")
"""Options that choose label columns."""

TAGS = ("tags", "item", "tag", "separator", "min_count")
"""Options of labels that are tags."""

_T = TypeVar("_T", bound=Callable[..., Any])


def reading_of(options: Mapping[str, Any], path: PathLike | None = None) -> Reading:
    """Return the record of some options.

    Raises
    ------
    DatasetError
        If an option is unknown or has a wrong value, excludes another one, or needs another one.
    """
    known = [one.name for one in fields(Reading)]
    for name in options:
        if name not in known:
            raise DatasetError(unknown_name("option", name, known), path)
    values = {name: value for name, value in options.items() if value is not None}
    for name, allowed in choices().items():
        if name in values and values[name] not in allowed:
            shown = ", ".join(map(str, allowed))
            raise DatasetError(f"{option(name)} must be one of {shown}, not {values[name]!r}", path)
    if "drop" in values:
        values["drop"] = names_to_drop(values["drop"], path)
    reading = Reading(**values)
    _check(reading, path)
    return reading


def check_format(reading: Reading, kind: str, path: PathLike, hint: str = "") -> None:
    """Refuse options that a format does not have."""
    formats_of = {"frame": "json"}  # a data frame has what a table without text of its own has
    kind_of = formats_of.get(kind, kind)
    given = reading.given([name for name, formats in _OPTIONS_OF.items() if kind_of not in formats])
    if kind == "frame":
        given |= reading.given(("format", "encoding"))
    if reading.missing_labels == "error":
        given.pop("missing_labels", None)
    if given:
        raise DatasetError(f"the format '{kind}' has no option {', '.join(map(option, given))}{hint}", path)


@functools.cache
def choices() -> dict[str, tuple[Any, ...]]:
    """Return the allowed values of each option that has a few of them."""
    hints = get_type_hints(Reading)
    choices = {name: tuple(v for part in get_args(hint) for v in get_args(part)) for name, hint in hints.items()}
    literal = {
        name: values for name, values in choices.items() if values and all(isinstance(v, str | int) for v in values)
    }
    return {**literal, "encoding": ENCODINGS, "header": (True, False)}


def names_to_drop(drop: Any, path: PathLike | None = None) -> list[str]:
    """Return the names of the columns to drop, from a sequence or one text with commas."""
    if drop is None:
        return []
    names = drop.split(",") if isinstance(drop, str) else drop
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise DatasetError(f"{option('drop')} must be a list of column names, not {drop!r}", path)
    return [name.strip() for name in names if name.strip()]


def _check(reading: Reading, path: PathLike | None) -> None:
    """Refuse options that exclude each other, or one without another that it needs."""

    def refuse(reason: str) -> DatasetError:
        return DatasetError(reason, path)

    if reading.tags is not None and (reading.item is not None or reading.tag is not None):
        raise refuse(
            f"{option('tags')} and {option('item')} with {option('tag')} exclude each other: a cell holds either "
            "several tags or one"
        )
    if (reading.item is None) != (reading.tag is None):
        raise refuse(
            f"{option('item')} and {option('tag')} belong together: the columns of a table with a row for each item "
            "and tag"
        )
    has_tags = reading.tags is not None or reading.tag is not None
    if not has_tags and (reading.separator is not None or reading.min_count is not None):
        raise refuse(
            f"{option('separator')} and {option('min_count')} need {option('tags')}, the column that holds the tags"
        )
    if reading.min_count is not None and reading.min_count < 1:
        raise refuse(f"{option('min_count')} must be at least 1, got {reading.min_count}")
    if reading.separator == "":
        raise refuse(f"{option('separator')} must not be empty")
    if has_tags and reading.given(LABELS):
        raise refuse("labels are either columns or the tags of a column; give one of the two")
    if (reading.join is None) != (reading.on is None):
        raise refuse(
            f"{option('join')} and {option('on')} belong together: the file of the labels, and the column that both "
            "files have"
        )
    if reading.join is not None and reading.item is not None and reading.item != reading.on:
        raise refuse(f"{option('item')} must be the key, {reading.on!r}, if the tags are in the joined table")


def takes_reading(function: _T) -> _T:
    """Give a function with ``**options`` the signature that has every option of `Reading` by name."""
    signature = inspect.signature(function)
    others = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    taken = {one.name for one in others}
    options = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=one.type)
        for one in dataclasses.fields(Reading)
        if one.name not in taken
    ]
    function.__signature__ = signature.replace(parameters=[*others, *options])  # type: ignore[attr-defined]
    return function


def option_text(name: str, text: str) -> Any:
    """Return the value of an option that is written as text, as on a command line.

    Raises
    ------
    DatasetError
        If the text is not a value of the option.
    """
    hint = get_type_hints(Reading)[name]
    kinds = {str(kind) for kind in get_args(hint)}
    if name in ("columns", "keys"):
        pairs = [pair.rpartition("=") for pair in comma_separated(text)]
        if not pairs or not all(key and value for key, _, value in pairs):
            example = "review=text,price=number:comma" if name == "columns" else "data=X,target=Y"
            raise DatasetError(f"{option(name)}: {text!r} is not of the form {example}")
        return {key.strip(): value.strip() for key, _, value in pairs}
    if name == "header":
        if text not in ("true", "false"):
            raise DatasetError(f"{option(name)} must be true or false, not {text[:40]!r}")
        return text == "true"
    if any("int" in kind for kind in kinds) or name in ("first_feature", "first_label"):
        if not text.isdecimal():
            raise DatasetError(f"{option(name)} must be a whole number, not {text[:40]!r}")
        return int(text)
    return comma_separated(text) if name == "drop" else text  # names of labels may be those in a file
