"""Reader options that suit a data file: which columns are labels, how text and missing values are treated."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multilab.core.files import PathLike
from multilab.core.text import excerpt
from multilab.datasets.characteristics import describe
from multilab.datasets.column_roles import LabelOptions
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import decode, read_bytes
from multilab.datasets.frame_reading import as_frames
from multilab.datasets.profiling import TableProfile, profile_table
from multilab.datasets.reading import encode_content, file_format, labels_xml_of, read_content

_LABELS = tuple(LabelOptions.__dataclass_fields__)


@dataclass(frozen=True)
class ReadingPlan:
    """How a file is read as a dataset, and what is in it.

    Attributes
    ----------
    path : Path
        The file.
    labels_xml : Path or None
        Mulan's XML file that names the labels of an ARFF file.
    reader : dict
        Options of `multilab.datasets.read` other than ``labels_xml``, as a card has them.
    profile : TableProfile
        What the table holds.
    content : dict
        The entries of `multilab.datasets.describe` after encoding.
    """

    path: Path
    labels_xml: Path | None
    reader: dict[str, Any]
    profile: TableProfile
    content: dict[str, Any]


def plan_reading(path: PathLike, *, text: str | None = None, missing: str | None = None, **options: Any) -> ReadingPlan:
    """Read a file and choose how its text and its missing values are treated.

    Parameters
    ----------
    path : path-like
        The file, in any format of `multilab.datasets.read`.
    text : {"one_hot", "error"}, optional
        Default: text columns become one-hot columns, and free text is refused: a column most of whose texts are
        different. With ``one_hot`` such a column is refused only if it has more than 1,000 or too long texts.
    missing : {"impute", "keep", "error"}, optional
        Default: missing values are imputed (median or most frequent value of all rows).
    **options
        Further options of `multilab.datasets.read`.

    Raises
    ------
    DatasetError
        One line with everything that has to be left out.
    """
    path = require_file(path)
    options = with_labels_xml(path, {key: value for key, value in options.items() if value is not None})
    for key in ("label_columns", "label_names"):
        if key in options:
            options[key] = _listed(options[key])
    if isinstance(options.get("drop"), str):
        options["drop"] = [name.strip() for name in options["drop"].split(",") if name.strip()]
    chosen = {key: options[key] for key in _LABELS if key in options}
    others = {key: value for key, value in options.items() if key not in _LABELS}
    content = read_content(path, LabelOptions(**chosen), text="keep", **others)
    profile = profile_table(as_frames(content))
    _refuse_columns(profile, text, others.get("drop", []), path)
    if all(label.constant for label in profile.labels):
        raise DatasetError("no label differs from row to row: every one is never set, or always", path)
    labels_xml = options.pop("labels_xml", None)
    reader = dict(options)
    if profile.text or profile.free_text:
        if text == "error":
            shown = ", ".join(repr(name[:60]) for name in [*profile.text, *profile.free_text][:10])
            raise DatasetError(f"text in {shown}: set text to 'one_hot', or leave the columns out (drop)", path)
        reader |= {"text": "one_hot"} if file_format(path) in ("csv", "parquet") else {}
    if profile.missing or missing:
        reader["missing"] = missing or "impute"
    raw = encode_content(content, reader.get("text", "error"), reader.get("missing", "error"), path)
    return ReadingPlan(path, labels_xml and Path(labels_xml), reader, profile, describe(raw))


def with_labels_xml(path: PathLike, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a reader, with the XML file next to an ARFF file if no option chooses labels."""
    xml = None if set(_LABELS) & set(options) else labels_xml_of(path, options.get("format"))
    return {**options, "labels_xml": xml} if xml else options


def require_file(path: PathLike) -> Path:
    """Return the path of a data file; refuse a folder, and a path where nothing is."""
    if not Path(path).is_file():
        raise DatasetError("it is a folder, not a data file" if Path(path).is_dir() else "there is no such file", path)
    return Path(path)


def _listed(names: Any) -> list[str]:
    """Return names of labels as a list: from a sequence, a text with commas, or a file with one name per line."""
    if isinstance(names, str) and ("," in names or not os.path.isfile(names)):
        names = names.split(",")
    elif isinstance(names, str | os.PathLike):
        names = decode(read_bytes(names)).split("\n")
    return [name.strip() for name in names if name.strip()]


def _refuse_columns(profile: TableProfile, text: str | None, dropped: list[str], path: Path) -> None:
    """Refuse all columns at once that cannot be features, with the option that leaves them out."""
    free = {} if text == "one_hot" else profile.free_text
    reasons = [f"'{name[:60]}' is free text ({count} different values)" for name, count in free.items()]
    reasons += [f"'{name[:60]}' has no value" for name in profile.empty]
    if reasons:
        more = f" and {len(reasons) - 5} more" if len(reasons) > 5 else ""
        drop = ",".join(dict.fromkeys([*dropped, *free, *profile.empty]))
        raise DatasetError(f"{', '.join(reasons[:5])}{more}: leave out by drop={excerpt(drop, 500)}", path)
