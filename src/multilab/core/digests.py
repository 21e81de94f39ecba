"""Digests of settings and arrays: the identity of everything that is computed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # NumPy is not imported here, so that the command line starts at once
    import numpy as np


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no NaN, floats as Python prints them."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def json_digest(value: Any) -> str:
    """Return the sha256 (64 hex digits) of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def sha256_digest(content: bytes) -> str:
    """Return the sha256 (64 hex digits) of bytes."""
    return hashlib.sha256(content).hexdigest()


def sha256_digests(contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return the sha256 of each of several files, by name."""
    return {name: sha256_digest(content) for name, content in contents.items()}


def array_digest(*arrays: np.ndarray) -> str:
    """Return one sha256 for dense arrays: their dtypes (little endian), shapes and values in C order."""
    import numpy as np

    sha = hashlib.sha256()
    for array in arrays:
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        sha.update(f"{plain.dtype.str}{plain.shape}".encode())
        sha.update(plain.tobytes())
    return sha.hexdigest()
