"""Data files instead of datasets, ``train dataset=./my.csv labels='tag_*'``, and the options of its reader."""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from multilab.core.messages import as_argument, options_spelled_by
from multilab.core.shell import command
from multilab.core.text import comma_separated, first_few, visible

if TYPE_CHECKING:
    from multilab.datasets.profiling import TableProfile

_EXTENSIONS = (
    ".arff",
    ".csv",
    ".json",
    ".jsonl",
    ".libsvm",
    ".mat",
    ".ndjson",
    ".parquet",
    ".svm",
    ".svmlight",
    ".tsv",
    ".txt",
    ".xlsx",
)
_COMPRESSED = (".bz2", ".gz", ".xz")
_COUNTS = ("labels_first", "labels_last", "min_count", "n_features", "first_feature", "first_label")
_NAMES = ("labels", "drop", "label_names")
_TEXTS = (
    "label_prefix",
    "tags",
    "item",
    "tag",
    "separator",
    "labels_xml",
    "text",
    "missing",
    "missing_labels",
    "encoding",
    "decimal",
    "on_bad_lines",
    "join",
    "on",
    "test",
    "vectors",
    "groups",
)
_TRUTHS = ("header",)
_PAIRS = ("columns",)
_FEW = 5  # rows: fewer than the folds of the default protocol
_MANY = 50  # one-hot columns of a text column
_LISTED = 5  # entries of a list in a profile


def _truth(ctx: click.Context, param: click.Parameter, value: str | None) -> bool | None:
    return None if value is None else value == "true"


def _split(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else comma_separated(value)


def _variables(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str] | None:
    if value is None:
        return None
    pairs = [pair.partition("=") for pair in value.split(",")]
    if not all(name and variable for name, _, variable in pairs):
        raise click.BadParameter(f"{value!r} is not of the form data=X,target=Y.", ctx, param)
    return {name.strip(): variable.strip() for name, _, variable in pairs}


def _kinds(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str] | None:
    pairs = [pair.rpartition("=") for pair in comma_separated(value or "")]
    if not all(name and kind for name, _, kind in pairs):
        raise click.BadParameter(f"{value!r} is not of the form review=text,price=number:comma.", ctx, param)
    return {name.strip(): kind.strip() for name, _, kind in pairs} or None


_READER: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("--labels", "label_columns"),
        {
            "metavar": "A,B",
            "help": "Label columns, or patterns such as 'tag_*'.",
        },
    ),
    (("--label-prefix",), {"metavar": "TEXT", "help": "Labels are the columns whose names begin with TEXT."}),
    (("--tags",), {"metavar": "COLUMN", "help": "Column with the tags of each row, such as red|blue."}),
    (("--item",), {"metavar": "COLUMN", "help": "With --tag: the table has a row for each item and tag."}),
    (("--tag",), {"metavar": "COLUMN", "help": "The column of the tag in a table with a row for each item and tag."}),
    (("--separator",), {"metavar": "TEXT", "help": "Separator of tags (default: | ; or , whichever occurs)."}),
    (("--min-count",), {"type": int, "metavar": "N", "help": "Leave out tags with fewer than N rows."}),
    (("--labels-first",), {"type": int, "metavar": "N", "help": "The first N columns are labels."}),
    (("--labels-last",), {"type": int, "metavar": "N", "help": "The last N columns are labels."}),
    (("--labels-xml",), {"metavar": "FILE", "help": "Mulan XML naming the labels (default: next to the ARFF)."}),
    (("--label-names",), {"metavar": "A,B", "callback": _split, "help": "Labels of a file that does not name them."}),
    (("--join",), {"metavar": "FILE", "help": "A second file with the labels (or other columns) of the same rows."}),
    (("--on",), {"metavar": "COLUMN", "help": "With --join: the key column of both files. It is not a feature."}),
    (("--test",), {"metavar": "FILE", "help": "A file of the same columns: the test rows of the split `official`."}),
    (("--vectors",), {"metavar": "FILE", "help": "A .npy file of numbers for all rows, such as embeddings."}),
    (
        ("--groups",),
        {
            "metavar": "COLUMN",
            "help": "Column of groups, such as patients, that are never split between training and test rows.",
        },
    ),
    (("--drop",), {"metavar": "A,B", "help": "Columns to leave out, such as row identifiers."}),
    (
        ("--columns",),
        {
            "metavar": "NAME=KIND,...",
            "callback": _kinds,
            "help": "Kinds of columns, instead of recognising them: number, number:comma (1.234,5), number:point "
            "(1,234.5), date, date:day (31.1.2024), date:month (1/31/2024), category, text, text:chars, embed:FOLDER.",
        },
    ),
    (
        ("--text",),
        {
            "type": click.Choice(["one_hot", "drop", "error"]),
            "help": "Encode all rows at once: text becomes 0/1 columns, is dropped, or is refused.",
        },
    ),
    (
        ("--missing",),
        {
            "type": click.Choice(["impute", "keep", "error"]),
            "help": "Encode all rows at once: missing values are imputed, kept as NaN, or refused.",
        },
    ),
    (
        ("--missing-labels",),
        {
            "type": click.Choice(["error", "keep"]),
            "help": "Missing values in label columns: refuse (default), or keep as labels that were not observed.",
        },
    ),
    (("--encoding",), {"metavar": "NAME", "help": "Encoding of text (default: UTF-8 or Windows-1252)."}),
    (
        ("--header",),
        {
            "type": click.Choice(["true", "false"]),
            "callback": _truth,
            "help": "Whether the first line of a CSV file names the columns (default: true).",
        },
    ),
    (
        ("--decimal",),
        {
            "type": click.Choice([".", ","]),
            "help": "Decimal separator of a CSV file; the other one may separate thousands.",
        },
    ),
    (
        ("--on-bad-lines",),
        {
            "type": click.Choice(["error", "skip"]),
            "help": "Lines of a CSV file that do not fit its header: refuse (default) or leave out.",
        },
    ),
    (
        ("--format",),
        {
            "type": click.Choice(["arff", "csv", "excel", "json", "mat", "parquet", "svmlight", "xc"]),
            "help": "Format of the file (default: by its name).",
        },
    ),
    (
        ("--keys",),
        {"metavar": "KEY=VARIABLE,...", "callback": _variables, "help": "Variables of a MATLAB file."},
    ),
    (("--n-features",), {"type": int, "metavar": "N", "help": "Number of features of an svmlight file."}),
    (("--first-feature",), {"type": click.IntRange(0, 1), "metavar": "N", "help": "Index of its first feature."}),
    (("--first-label",), {"type": click.IntRange(0, 1), "metavar": "N", "help": "Index of its first label."}),
)
"""The options of the readers: those under ``reader:`` of a dataset card, with - for _."""

FEW = ("label_columns", "label_prefix", "tags", "drop")
"""The options that most files need."""

READER_NAMES = tuple(flags[-1].lstrip("-").replace("-", "_") for flags, _ in _READER)
_FLAGS = dict(zip(READER_NAMES, (flags[0] for flags, _ in _READER), strict=True))


def reader_options(function: Any = None, *, shown: Sequence[str] = READER_NAMES) -> Any:
    """Add the options of the readers of data files to a command, which gets those given as one argument ``reader``.

    The help lists those of ``shown``, all by default; `multilab datasets add --help` has the others.
    """
    if function is None:
        return functools.partial(reader_options, shown=shown)

    @functools.wraps(function)
    def wrapped(**values: Any) -> Any:
        reader_values = {name: values.pop(name) for name in READER_NAMES}
        return function(reader={name: value for name, value in reader_values.items() if value is not None}, **values)

    for name, (flags, settings) in reversed([*zip(READER_NAMES, _READER, strict=True)]):
        wrapped = click.option(*flags, hidden=name not in shown, **settings)(wrapped)
    return wrapped


def naming_flags() -> AbstractContextManager[None]:
    """Name the options in messages as the command line does, not as a card and Python do."""
    return options_spelled_by(_as_flag)


def _as_flag(name: str, value: object) -> str:
    flag = _FLAGS.get(name, f"--{name}")  # `datasets add` has more options than the readers
    return flag if value is None else f"{flag} {value}"


def _as_setting(name: str, value: object) -> str:
    return as_argument("labels" if name == "label_columns" else name, value)


def with_registered_files(argv: Sequence[str]) -> list[str]:
    """Return settings ``name=value`` with their data files registered: paths become names of datasets.

    Parameters
    ----------
    argv : sequence of str
        A dataset in ``dataset=NAME`` (or several, separated by commas) is a path if it holds a ``/`` or ends with the
        extension of a data file. The options of the reader are ``name=value`` (``labels=tag_*``, ``drop=id``), and are
        taken out. Settings without a path stay as they are.

    Raises
    ------
    MultilabError
        A file cannot be read as a dataset, or an option is malformed.
    """
    if not any(argument.startswith("dataset=") and has_path(argument[8:]) for argument in argv):
        return list(argv)
    options = dict[str, Any]()
    others = list[str]()
    for argument in argv:
        name, equals, value = argument.partition("=")
        if equals and name in (*_COUNTS, *_NAMES, *_TEXTS, *_TRUTHS, *_PAIRS):
            options["label_columns" if name == "labels" else name] = _option(name, value)
        else:
            others.append(argument)
    with options_spelled_by(_as_setting):
        return [f"dataset={registered(word[8:], options)}" if word.startswith("dataset=") else word for word in others]


def named_dataset(dataset: str, reader: Mapping[str, Any]) -> str:
    """Return the name of a dataset, or of the dataset that a data file becomes; options as of `reader_options`."""
    if not has_path(dataset):
        return dataset
    listed = ("label_columns", "drop")
    options = {name: comma_separated(value) if name in listed else value for name, value in reader.items()}
    with naming_flags():
        return registered(dataset, options)


def large_file(dataset: str) -> bool:
    """Tell whether a dataset is a Parquet file that is read in batches of rows, or a folder of such files."""
    if not _is_path(dataset) or not (dataset.lower().endswith(".parquet") or os.path.isdir(dataset)):
        return False
    from multilab.datasets.parquet_table import is_large

    return is_large(dataset)


def has_path(dataset: str) -> bool:
    """Tell whether a dataset, or one of several, is a data file."""
    return any(map(_is_path, _datasets(dataset)))


def registered(dataset: str, options: Mapping[str, Any]) -> str:
    """Return datasets, separated by commas, with the name of the registered file for each path; report new ones."""
    return ",".join(_registered(name, options) if _is_path(name) else name for name in _datasets(dataset))


def _datasets(dataset: str) -> list[str]:
    return [dataset] if os.path.isfile(dataset) else dataset.split(",")


def _is_path(dataset: str) -> bool:
    name = dataset.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return "/" in name or name.endswith(_EXTENSIONS)


def _option(name: str, value: str) -> Any:
    from multilab.datasets import DatasetError

    if name in _NAMES:
        return comma_separated(value)
    if name in _PAIRS:
        pairs = [pair.rpartition("=") for pair in comma_separated(value)]
        return {column.strip(): kind.strip() for column, _, kind in pairs}
    if name in _TRUTHS and value not in ("true", "false"):
        raise DatasetError(f"{name} must be true or false, not {value[:40]!r}")
    if name in _TRUTHS:
        return value == "true"
    if name in _COUNTS and not value.isdecimal():
        raise DatasetError(f"{name} must be a whole number, not {value[:40]!r}")
    return int(value) if name in _COUNTS else value


def _registered(path: str, options: Mapping[str, Any]) -> str:
    from multilab.datasets import register_file

    name, plan = register_file(path, **options)
    lines = [f"{path} is the dataset {name}"]
    if plan is not None:
        lines += [f"  {line}" for line in profile_lines(plan.profile, plan.content)]
        lines.append(f"  (a name of its own: {command('multilab')} datasets add {path} ... --name NAME)")
    print(*map(visible, lines), sep="\n", file=sys.stderr)
    return name


def profile_lines(profile: TableProfile, content: dict[str, Any]) -> list[str]:
    """Return what a user should know of a table before learning from it, a line each."""
    kind_of = content.get("kinds", {})
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(_kind_counts(profile, kind_of).items()))
    lines = [f"rows       {profile.rows}", f"features   {profile.features}: {kinds}"]
    of_text = {**profile.text, **profile.free_text}
    if "kinds" in content:
        lines += [f"{kind:<10} {_first(names)}" for kind, names in _by_kind(content["kinds"], of_text).items()]
    elif of_text:
        lines.append(f"text       {_counted(of_text, 'values')}")
    if profile.missing:
        lines.append(f"missing    {_counted(profile.missing, 'rows')}")
    labels = profile.labels
    rarest = sorted((label for label in labels if label.positive), key=lambda label: label.positive)
    mean_ir = sum(rarest[-1].positive / label.positive for label in rarest) / len(rarest)
    counts = _first(f"{label.name} ({label.positive} rows)" for label in rarest)
    cardinality, without = content["cardinality"], content["rows_without_label"]
    lines.append(f"labels     {len(labels)}, {cardinality:.4g} per row, {without} rows without any")
    unobserved = {label.name: label.unobserved for label in labels if label.unobserved}
    if unobserved:
        total, of = sum(unobserved.values()), profile.rows * len(labels)
        lines.append(f"unobserved {total} of {of} label values: {_counted(unobserved, 'rows')}")
    lines.append(f"imbalance  MeanIR {mean_ir:.3g}; rarest: {counts}")
    if profile.empty:
        lines.append(f"note       left out, no row has a value: {_first(profile.empty)}")
    lines += [f"note       {note}" for note in content["notes"]]
    lines += [
        f"note       {name}: {count} values with spaces; if it is free text: --columns {name}=text"
        for name, count in profile.phrases.items()
        if kind_of.get(name) == "category"
    ]
    return lines + [f"warning    {warning}" for warning in _warnings(profile, content)]


def _kind_counts(profile: TableProfile, kinds: Mapping[str, str]) -> Mapping[str, int]:
    """Return the number of features per kind: as they are read, else as they are written."""
    from multilab.datasets.kinds import Kind

    return Counter(Kind.parse(kind).name for kind in kinds.values()) if kinds else profile.kinds


def _by_kind(kinds: Mapping[str, str], values: Mapping[str, int]) -> dict[str, list[str]]:
    """Return what columns that are no plain numbers are read as: kind to names, those of text with their values."""
    from multilab.datasets.kinds import Kind

    columns: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        if kind != "number" or name in values:
            what = Kind.parse(kind).name
            shown = [kind if kind != what else "", f"{values[name]} values" if name in values else ""]
            details = ", ".join(filter(None, shown))
            columns.setdefault(what, []).append(f"{name} ({details})" if details else name)
    return columns


def _warnings(profile: TableProfile, content: Mapping[str, Any]) -> list[str]:
    labels = profile.labels
    never = [label.name for label in labels if not label.positive]
    always = [label.name for label in labels if label.positive and not label.negative]
    few = [label.name for label in labels if 0 < label.positive < _FEW]
    kinds = content.get("kinds", {})
    wide = [name for name, count in profile.text.items() if count > _MANY and name not in kinds]
    lines = []
    identifiers = [name for name in profile.identifiers if kinds.get(name) in (None, "number", "category")]
    if identifiers:
        lines.append(f"look like row identifiers, leave them out (--drop): {_first(identifiers)}")
    if profile.leaks:
        reasons = (f"{name!r}: {reason}" for name, reason in profile.leaks.items())
        lines.append(f"features that may give labels away, leave them out (--drop) if so: {_first(reasons)}")
    if profile.duplicates:
        lines.append(
            f"{profile.duplicates} rows repeat the features of an earlier row, {profile.conflicts} of them with other "
            "labels: equal rows in training and test sets raise the scores"
        )
    if profile.constant:
        lines.append(f"features with one value only: {_first(profile.constant)}")
    if wide:
        lines.append(f"more than {_MANY} one-hot columns each: {_first(wide)}")
    if never:
        lines.append(f"labels that no row has: {_first(never)}")
    if always:
        lines.append(f"labels that every row has: {_first(always)}")
    if few:
        lines.append(f"labels with fewer than {_FEW} rows, so that some folds have none: {_first(few)}")
    return lines


def _counted(counts: dict[str, int], unit: str) -> str:
    return _first(f"{name} ({count} {unit})" for name, count in counts.items())


def _first(names: Iterable[str]) -> str:
    return first_few(names, _LISTED)
