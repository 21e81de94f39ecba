"""Data files instead of datasets, ``train dataset=./my.csv labels='tag_*'``, and the options of its reader."""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any

import click

from multilab.core.messages import as_argument, options_spelled_by
from multilab.core.shell import command
from multilab.core.text import first_few, visible
from multilab.datasets.options import FORMATS, Reading, choices, option_text

if TYPE_CHECKING:
    from multilab.datasets.profiling import TableProfile

_COMPRESSED = (".bz2", ".gz", ".xz")
_FEW = 5  # rows: fewer than the folds of the default protocol
_MANY = 50  # one-hot columns of a text column
_LISTED = 5  # entries of a list in a profile


def _value(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    from multilab.datasets import DatasetError

    if value is None:
        return None
    try:
        with naming_flags():
            return option_text(str(param.name), value)
    except DatasetError as error:
        raise click.BadParameter(error.reason, ctx, param) from None


def _flag(field: Field[Any]) -> str:
    return f"--{field.metadata['flag'] or field.name}".replace("_", "-")


def _declared(field: Field[Any]) -> dict[str, Any]:
    """Return the settings of the option of the command line for a field of `Reading`."""
    about: dict[str, Any] = {"help": field.metadata["help"], "metavar": field.metadata["metavar"] or None}
    if (allowed := choices().get(field.name)) is not None:
        shown = [str(value).lower() for value in allowed]
        about |= {"type": click.Choice(shown)} if field.name != "encoding" else {}
    return about | {"callback": _value}


FEW = ("label_columns", "label_prefix", "tags", "drop")
"""The options that most files need."""

READER_NAMES = tuple(field.name for field in fields(Reading))
_FLAGS = {field.name: _flag(field) for field in fields(Reading)}


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

    for field in reversed(fields(Reading)):
        hidden = field.name not in shown
        wrapped = click.option(_FLAGS[field.name], field.name, hidden=hidden, **_declared(field))(wrapped)
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
        option = "label_columns" if name == "labels" else name
        if equals and option in READER_NAMES:
            options[option] = option_text(option, value)
        else:
            others.append(argument)
    with options_spelled_by(_as_setting):
        return [f"dataset={registered(word[8:], options)}" if word.startswith("dataset=") else word for word in others]


def named_dataset(dataset: str, reader: Mapping[str, Any]) -> str:
    """Return the name of a dataset, or of the dataset of a data file, read with the options of `reader_options`."""
    if not has_path(dataset):
        return dataset
    with naming_flags():
        return registered(dataset, reader)


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
    """Return datasets, separated by commas, with each path replaced by the name of its registered file."""
    return ",".join(_registered(name, options) if _is_path(name) else name for name in _datasets(dataset))


def _datasets(dataset: str) -> list[str]:
    return [dataset] if os.path.isfile(dataset) else dataset.split(",")


def _is_path(dataset: str) -> bool:
    name = dataset.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return "/" in name or name.endswith(tuple(FORMATS))


def _registered(path: str, options: Mapping[str, Any]) -> str:
    from multilab.datasets import register_file

    name, plan = register_file(path, **options)
    lines = [f"{path} is the dataset {name}"]
    if plan is not None:
        lines += [f"  {line}" for line in profile_lines(plan.profile, plan.content)]
        lines.append(f"  (to choose the name: {command('multilab')} datasets add {path} ... --name NAME)")
    print(*map(visible, lines), sep="\n", file=sys.stderr)
    return name


def profile_lines(profile: TableProfile, content: dict[str, Any]) -> list[str]:
    """Return the lines that tell a user what to know about a table before learning from it."""
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
        lines.append(f"note       features without any value, left out: {_first(profile.empty)}")
    lines += [f"note       {note}" for note in content["notes"]]
    lines += [
        f"note       {name}: {count} values with spaces; if it is free text: --columns {name}=text"
        for name, count in profile.phrases.items()
        if kind_of.get(name) == "category"
    ]
    return lines + [f"warning    {warning}" for warning in _warnings(profile, content)]


def _kind_counts(profile: TableProfile, kinds: Mapping[str, str]) -> Mapping[str, int]:
    """Return the number of features per kind: the kind that the reader uses, otherwise the kind in the file."""
    from multilab.datasets.kinds import Kind

    return Counter(Kind.parse(kind).name for kind in kinds.values()) if kinds else profile.kinds


def _by_kind(kinds: Mapping[str, str], values: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the names of the columns that are not plain numbers, by kind; text columns with their number of values."""
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
        lines.append(f"features that look like row identifiers; leave them out (--drop): {_first(identifiers)}")
    if profile.leaks:
        reasons = (f"{name!r}: {reason}" for name, reason in profile.leaks.items())
        lines.append(f"features that may give labels away; if they do, leave them out (--drop): {_first(reasons)}")
    if profile.duplicates:
        lines.append(
            f"{profile.duplicates} rows repeat the features of an earlier row, {profile.conflicts} of them with other "
            "labels: equal rows in training and test sets raise the scores"
        )
    if profile.constant:
        lines.append(f"features with one value only: {_first(profile.constant)}")
    if wide:
        lines.append(f"features with more than {_MANY} one-hot columns each: {_first(wide)}")
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
