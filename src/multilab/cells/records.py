"""Types of what a record of a cell holds: a record that was copied from another machine may hold anything."""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from multilab.cells.errors import ExperimentError
from multilab.core.files import is_deep
from multilab.core.text import excerpt

__all__ = ["RecordedCode", "check_arguments", "check_record", "is_plain", "recorded_code"]

_Name = Annotated[str, Meta(pattern=r"^[^/\\\x00-\x1f\[]{1,200}(\[[^\x00-\x1f]*)?$")]  # never a path
_Key = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Seconds = Annotated[float, Meta(ge=0, le=1e10)] | None


class _Parts(Struct):
    kind: str = ""
    dataset: str = ""
    split: str = ""
    seed: int = 0
    method: dict[str, Any] = {}
    preprocessing: str = ""
    reads: list[_Key] = []
    save_attributes: list[str] = []
    inner_cv: dict[str, Any] = {}
    observed: dict[str, Any] = {}
    tune: dict[str, Any] = {}
    versions: dict[str, Any] = {}
    seed_name: str = ""
    measure: str = ""
    encoder: str = ""
    groups: bool = False
    results_versions: dict[str, list[int]] = {}
    own_files: list[_Key] = []


class RecordedCode(Struct):
    """The code that computed a result: texts to compare and to show escaped, never to import or to open.

    Attributes
    ----------
    commit : str or None
        Of the package, where it was a checkout.
    versions : dict
        Of the libraries in the key, all of their numbers.
    files, own_files : dict
        Digests of the files of the package that were loaded, and of the user's modules.
    reads : dict
        Digests of the arrays that the cells held which it read, by key.
    """

    commit: str | None = None
    versions: dict[str, str] = {}
    files: dict[str, str] = {}
    own_files: dict[str, str] = {}
    reads: dict[_Key, str] = {}


class _Record(Struct):
    parts: _Parts = msgspec.field(default_factory=_Parts)
    label: str = ""
    dataset: _Name = "?"
    method: _Name = "?"
    split: int = -1
    inner_fold: int | None = None
    status: str = ""
    settings: dict[str, Any] = {}
    tuned: dict[str, Any] = {}
    started: _Seconds = None
    code: RecordedCode = msgspec.field(default_factory=RecordedCode)
    cell_seconds: _Seconds = None
    fit_seconds: _Seconds = None
    input_seconds: _Seconds = None
    tune_seconds: _Seconds = None
    predict_seconds: _Seconds = None
    warnings: list[str] | dict[str, int] | None = None
    warning_categories: list[str] = []


def check_record(record: Any) -> None:
    """Refuse a record with values of other types than ours, or with a path in the place of a name.

    Raises
    ------
    ExperimentError
        Naming the value.
    """
    if is_deep(record):
        raise ExperimentError("its record is not one of ours: it is nested too deeply")
    try:
        content = msgspec.convert(record, _Record)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ExperimentError(f"its record is not one of ours: {' '.join(str(error).split())[:200]}") from None
    if any(isinstance(value, float) and not math.isfinite(value) for value in msgspec.structs.astuple(content)):
        raise ExperimentError("its record is not one of ours: a time is not a number")
    check_arguments(content.tuned, content.parts.tune.get("search"))


def recorded_code(record: Any) -> RecordedCode:
    """Return what a record says of its code; nothing where it says nothing, or what is not of our types."""
    try:
        return msgspec.convert(record.get("code", {}), RecordedCode)
    except (msgspec.ValidationError, AttributeError):
        return RecordedCode()


def check_arguments(chosen: Any, space: Any) -> None:
    """Refuse arguments that a search cannot have chosen: they may name a class, which is called, or a file.

    Parameters
    ----------
    chosen : object
        Arguments by name, from a record.
    space : object
        The search space: numbers are not compared with it.

    Raises
    ------
    ExperimentError
        Naming the argument.
    """
    spaces = space if isinstance(space, dict) else {}
    for name, value in chosen.items() if isinstance(chosen, dict) else [("arguments", chosen)]:
        choices = spaces[name].get("choices") if isinstance(spaces.get(name), dict) else None
        if not (value is None or isinstance(value, int | float)) and value not in (choices or ()):
            raise ExperimentError(f"its search cannot have chosen {excerpt(f'{name}={value!r}')}")


def is_plain(value: Any) -> bool:
    """Return whether a value is a number, or a text that is no path, or a list of these."""
    if isinstance(value, str):
        return not (value.endswith(".yaml") or "/" in value or "${" in value)
    return value is None or isinstance(value, int | float) or (isinstance(value, list) and all(map(is_plain, value)))
