"""Protocols: mappings that describe the train/test splits of a dataset, and their canonical form.

Nothing heavy is imported here, so that the digest of a protocol takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any

from multilab.datasets.errors import DatasetError

_KINDS = {
    "kfold": {"stratify": 0, "seed": 0, "repeats": 1},
    "holdout": {"stratify": 0, "seed": 0, "repeats": 1},
    "split": {},
    "first": {},
    "explicit": {},
}
_OPTIONAL = {
    "split": ("train_size",),
    "kfold": ("within",),
}  # without a default, so that protocols from before have the same form


def normalise_protocol(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Validate a protocol and return its canonical form, with all defaults filled in.

    Parameters
    ----------
    protocol : mapping
        Exactly one of these forms; ``title`` is allowed everywhere and ignored.

        - ``{kfold: k, stratify: 0|1|2, seed: s, repeats: r}``: k folds, plain (0) or by iterative stratification of
          order 1 or 2. With ``within: {protocol: ..., split: i}`` they are inner folds: of the training rows of split i
          of a protocol, of all rows if i is -1.
        - ``{holdout: {train_size: a}, stratify: 0|1|2, seed: s, repeats: r}``: ``a`` is a share between 0 and 1 or a
          number of rows; a share gives ``floor(a * n)`` training rows, where ``a`` is the decimal number as written.
        - ``{split: name}``: a split that comes with the dataset, e.g. ``official``. With ``train_size: m`` the
          training set is the first m of its training rows followed by its test rows.
        - ``{first: m}``: the first m rows are the training set, the others the test set.
        - ``{explicit: [{train: [...], test: [...]}, ...]}``: row indices, counted from 0.

    Returns
    -------
    dict
        A dictionary with JSON values only; two protocols that mean the same give the same dictionary.

    Raises
    ------
    DatasetError
        If the protocol is malformed. The message names the wrong key.

    Examples
    --------
    >>> from multilab.model_selection import normalise_protocol
    >>> normalise_protocol({"kfold": 5, "stratify": 1})
    {'kfold': 5, 'stratify': 1, 'seed': 0, 'repeats': 1}
    """
    if not isinstance(protocol, Mapping):
        raise DatasetError(f"a protocol must be a mapping such as {{kfold: 5}}, got {type(protocol).__name__}")
    given = {str(key): value for key, value in protocol.items() if key != "title"}
    kinds = [kind for kind in _KINDS if kind in given]
    if len(kinds) != 1:
        raise DatasetError(
            f"a protocol needs exactly one of {', '.join(_KINDS)}; given: {', '.join(given) or 'nothing'}"
        )
    kind = kinds[0]
    known = (*_KINDS[kind], *_OPTIONAL.get(kind, ()))
    unknown = sorted(set(given) - {kind} - set(known))
    if unknown:
        allowed = ", ".join(known) or "no other key"
        raise DatasetError(f"protocol {kind}: unknown key {', '.join(unknown)} (allowed: {allowed})")
    plain: dict[str, Any] = {key: _integer(given.get(key, default), key) for key, default in _KINDS[kind].items()}
    optional: dict[str, Any] = {"train_size": lambda value: _rows(value, "split: train_size"), "within": _within}
    plain |= {key: optional[key](given[key]) for key in _OPTIONAL.get(kind, ()) if key in given}
    if plain.get("stratify", 0) not in (0, 1, 2):
        raise DatasetError(f"protocol {kind}: stratify must be 0 (plain), 1 or 2, got {plain['stratify']}")
    if plain.get("repeats", 1) < 1 or plain.get("seed", 0) < 0:
        raise DatasetError(f"protocol {kind}: repeats must be at least 1 and seed at least 0")
    return {kind: _PARSERS[kind](given[kind]), **plain}


def _integer(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise DatasetError(f"protocol: {key} must be an integer, got {value!r}")
    return int(value)


def _within(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or set(value) != {"protocol", "split"}:
        raise DatasetError("protocol kfold: within needs protocol and split and nothing else")
    return {"protocol": normalise_protocol(value["protocol"]), "split": _integer(value["split"], "split")}


def _parse_kfold(value: Any) -> int:
    folds = _integer(value, "kfold")
    if folds < 2:
        raise DatasetError(f"protocol kfold: at least 2 folds, got {folds}")
    return folds


def _parse_holdout(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or set(value) != {"train_size"}:
        raise DatasetError("protocol holdout: write {train_size: 0.7} (a share) or {train_size: 200} (rows)")
    size = value["train_size"]
    is_share = isinstance(size, float) and 0 < size < 1
    is_count = isinstance(size, int) and not isinstance(size, bool) and size >= 1
    if not (is_share or is_count):
        raise DatasetError(f"protocol holdout: train_size must be a share in (0, 1) or a number of rows, got {size!r}")
    # The share as written: 0.7 means 7/10 and not the nearest binary number, so floor(0.7 * 10) is 7.
    return {"train_size": str(Fraction(str(size)))}


def _parse_split(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise DatasetError(f"protocol split: the name of a split, got {value!r}")
    return value


def _parse_first(value: Any) -> int:
    return _rows(value, "first")


def _rows(value: Any, key: str) -> int:
    rows = _integer(value, key)
    if rows < 1:
        raise DatasetError(f"protocol {key}: at least one training row, got {rows}")
    return rows


def _parse_explicit(value: Any) -> list[dict[str, list[int]]]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise DatasetError("protocol explicit: a list of {train: [...], test: [...]}")
    folds = []
    for entry in value:
        if not isinstance(entry, Mapping) or set(entry) != {"train", "test"}:
            raise DatasetError("protocol explicit: every entry needs train and test and nothing else")
        folds.append({key: [_integer(row, "row index") for row in entry[key]] for key in ("train", "test")})
    return folds


_PARSERS = {
    "kfold": _parse_kfold,
    "holdout": _parse_holdout,
    "split": _parse_split,
    "first": _parse_first,
    "explicit": _parse_explicit,
}
