"""A data file on a command line in the position of a dataset: ``dataset=./my.csv labels='tag_*'``, for every verb."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from multilab import datasets
from multilab.core.shell import command
from multilab.core.text import visible

_EXTENSIONS = (".arff", ".csv", ".libsvm", ".mat", ".parquet", ".svm", ".svmlight", ".tsv", ".txt")
_COMPRESSED = (".bz2", ".gz", ".xz")
_COUNTS = ("labels_first", "labels_last", "n_features", "first_feature", "first_label")
_NAMES = ("labels", "drop", "label_names")
_TEXTS = ("label_prefix", "labels_xml", "text", "missing", "missing_labels", "encoding", "decimal")
_TRUTHS = ("header",)


def with_registered_files(argv: Sequence[str]) -> list[str]:
    """Return a command line with its data files registered: paths become names of datasets.

    Parameters
    ----------
    argv : sequence of str
        The arguments of a verb. A dataset in ``dataset=NAME`` (or several, separated by commas) is a path if it holds a
        ``/`` or ends with the extension of a data file. The options of the reader are ``name=value`` (``labels=tag_*``,
        ``drop=id``), and are taken out. Arguments without a path stay as they are.

    Raises
    ------
    MultilabError
        A file cannot be read as a dataset, or an option is malformed.
    """
    if not any(argument.startswith("dataset=") and any(map(_is_path, _datasets(argument))) for argument in argv):
        return list(argv)
    options = dict[str, Any]()
    others = list[str]()
    for argument in argv:
        name, equals, value = argument.partition("=")
        if equals and name in (*_COUNTS, *_NAMES, *_TEXTS, *_TRUTHS):
            options["label_columns" if name == "labels" else name] = _option(name, value)
        else:
            others.append(argument)
    return [_with_names(argument, options) if argument.startswith("dataset=") else argument for argument in others]


def _datasets(argument: str) -> list[str]:
    """Return the datasets of an argument ``dataset=A,B``."""
    value = argument.partition("=")[2]
    return [value] if os.path.isfile(value) else value.split(",")


def _is_path(dataset: str) -> bool:
    name = dataset.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return "/" in name or name.endswith(_EXTENSIONS)


def _option(name: str, value: str) -> Any:
    if name in _NAMES:
        return [one.strip() for one in value.strip("[]").split(",") if one.strip()]
    if name in _TRUTHS and value not in ("true", "false"):
        raise datasets.DatasetError(f"{name} must be true or false, not {value[:40]!r}")
    if name in _TRUTHS:
        return value == "true"
    if name in _COUNTS and not value.isdecimal():
        raise datasets.DatasetError(f"{name} must be a whole number, not {value[:40]!r}")
    return int(value) if name in _COUNTS else value


def _with_names(argument: str, options: Mapping[str, Any]) -> str:
    """Return ``dataset=...`` with the name of the registered file for each path; report what was registered."""
    names = [_registered(one, options) if _is_path(one) else one for one in _datasets(argument)]
    return f"dataset={','.join(names)}"


def _registered(path: str, options: Mapping[str, Any]) -> str:
    from multilab.commands.own_data import profile_lines

    try:
        name, plan = datasets.register_file(path, **options)
    except datasets.DatasetError as error:
        raise datasets.DatasetError(error.reason.replace("label_columns", "labels"), error.path, error.line) from None
    lines = [f"{path} is the dataset {name}"]
    if plan is not None:
        lines += [f"  {line}" for line in profile_lines(plan.profile, plan.content)]
        lines.append(f"  (a name of its own: {command('multilab')} datasets add {path} ... --name NAME)")
    print(*map(visible, lines), sep="\n", file=sys.stderr)
    return name
