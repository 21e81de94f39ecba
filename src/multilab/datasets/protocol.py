"""How a data set is to be divided: one small mapping, checked and brought to one spelling.

Nothing heavy is imported here, so that the identity of a protocol is known in milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any

from multilab.datasets.errors import DatasetError

__all__ = ["normalise_protocol"]

_KINDS = {
    "kfold": {"stratify": 0, "seed": 0, "repeats": 1},
    "holdout": {"stratify": 0, "seed": 0, "repeats": 1},
    "split": {},
    "first": {},
    "explicit": {},
}


def normalise_protocol(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Check a protocol and return its one canonical form (defaults filled in, nothing else).

    Parameters
    ----------
    protocol : mapping
        Exactly one of these forms; ``title`` is allowed everywhere and means nothing.

        - ``{kfold: k, stratify: 0|1|2, seed: s, repeats: r}``: k folds, plain or by iterative
        stratification
          of that order.
        - ``{holdout: {train_size: a}, stratify: 0|1|2, seed: s, repeats: r}``: ``a`` is a share between 0
        and
          1 or a number of rows; a share gives ``floor(a * n)`` training rows, ``a`` taken as the decimal it
          is written as.
        - ``{split: name}``: a split the data set comes with, e.g. ``official``.
        - ``{first: m}``: the first m rows train, the others test.
        - ``{explicit: [{train: [...], test: [...]}, ...]}``: row numbers, counted from 0.

    Returns
    -------
    dict
        JSON values only; two protocols that mean the same give the same dictionary.

    Raises
    ------
    DatasetError
        Naming the key that is wrong.
    """
    if not isinstance(protocol, Mapping):
        raise DatasetError(f"a protocol is a mapping such as {{kfold: 5}}, not {type(protocol).__name__}")
    given = {str(key): value for key, value in protocol.items() if key != "title"}
    kinds = [kind for kind in _KINDS if kind in given]
    if len(kinds) != 1:
        raise DatasetError(
            f"a protocol needs exactly one of {', '.join(_KINDS)}; given: {', '.join(given) or 'nothing'}"
        )
    kind = kinds[0]
    unknown = sorted(set(given) - {kind} - set(_KINDS[kind]))
    if unknown:
        allowed = ", ".join(_KINDS[kind]) or "no other key"
        raise DatasetError(f"protocol {kind}: unknown key {', '.join(unknown)} (it takes {allowed})")
    plain = {key: _integer(given.get(key, default), key) for key, default in _KINDS[kind].items()}
    if plain.get("stratify", 0) not in (0, 1, 2):
        raise DatasetError(f"protocol {kind}: stratify is 0 (plain), 1 or 2, not {plain['stratify']}")
    if plain.get("repeats", 1) < 1 or plain.get("seed", 0) < 0:
        raise DatasetError(f"protocol {kind}: repeats must be at least 1 and seed at least 0")
    return {kind: _READERS[kind](given[kind]), **plain}


def _integer(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise DatasetError(f"protocol: {key} must be a whole number, not {value!r}")
    return int(value)


def _kfold(value: Any) -> int:
    folds = _integer(value, "kfold")
    if folds < 2:
        raise DatasetError(f"protocol kfold: at least 2 folds, not {folds}")
    return folds


def _holdout(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or set(value) != {"train_size"}:
        raise DatasetError("protocol holdout: write {train_size: 0.7} (a share) or {train_size: 200} (rows)")
    size = value["train_size"]
    is_share = isinstance(size, float) and 0 < size < 1
    is_count = isinstance(size, int) and not isinstance(size, bool) and size >= 1
    if not (is_share or is_count):
        raise DatasetError(f"protocol holdout: train_size is a share in (0, 1) or a number of rows, not {size!r}")
    # The share as written: 0.7 means 7/10 and not the binary number beside it, so floor(0.7 * 10) is 7.
    return {"train_size": str(Fraction(str(size)))}


def _split(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise DatasetError(f"protocol split: the name of a split, not {value!r}")
    return value


def _first(value: Any) -> int:
    rows = _integer(value, "first")
    if rows < 1:
        raise DatasetError(f"protocol first: at least one training row, not {rows}")
    return rows


def _explicit(value: Any) -> list[dict[str, list[int]]]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise DatasetError("protocol explicit: a list of {train: [...], test: [...]}")
    folds = []
    for entry in value:
        if not isinstance(entry, Mapping) or set(entry) != {"train", "test"}:
            raise DatasetError("protocol explicit: every entry needs train and test and nothing else")
        folds.append({part: [_integer(row, "row number") for row in entry[part]] for part in ("train", "test")})
    return folds


_READERS = {"kfold": _kfold, "holdout": _holdout, "split": _split, "first": _first, "explicit": _explicit}
