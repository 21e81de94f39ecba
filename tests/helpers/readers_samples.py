"""Small files that the tests of the readers share."""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np

from multilab.datasets.dataset import raw_source
from multilab.datasets.file_access import Limits
from multilab.datasets.options import reading_of
from multilab.datasets.raw_data import RawData
from multilab.datasets.reading import read_content

DENSE = """% a comment
@relation 'Small: -C 2 -split-number 1' %50

@attribute sun {0,1}
@ATTRIBUTE 'rain\\'s end' {0, 1}
@attribute height REAL
@attribute "wind \\"x\\"" {weak,'very strong', none} % how it blows
@attribute dry {1,0}
@attribute month integer [1,12]
@data
1,0,1.5,weak,1,3

% between
0,1,-2e-1,'very strong',0,12
1,1,.25,none,1,1
"""

XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="sun"></label>
<label name="hail"><label name="rain's end"/></label>
</labels>
"""


def numeric(rows: str, relation: str = "r: -C 2") -> str:
    """Return a file of two labels (one nominal, one numeric), two numbers and one nominal {a,b,c}."""
    return (
        f"@relation '{relation}'\n@attribute l1 {{0,1}}\n@attribute l2 numeric\n@attribute x numeric\n"
        f"@attribute y numeric\n@attribute z {{a,b,c}}\n@data\n{rows}"
    )


def mat_element(kind: int, payload: bytes, order: str = "<") -> bytes:
    """Return an element of a MATLAB file, padded to eight bytes; of up to four bytes, the small form of the format."""
    if kind < 14 and 0 < len(payload) <= 4:
        return struct.pack(order + "I", len(payload) << 16 | kind) + payload.ljust(4, b"\0")
    padding = b"" if kind == 15 else bytes(-len(payload) % 8)
    return struct.pack(order + "II", kind, len(payload)) + payload + padding


def mat_variable(
    name: str, array_class: int, shape: object, *parts: tuple[int, bytes], order: str = "<", nonzero: int = 0
) -> bytes:
    """Return a variable of a MATLAB file: flags, shape, name, and the parts as they are given (type and content)."""
    flags = struct.pack(order + "II", array_class, nonzero)
    head = [(6, flags), (5, np.asarray(shape, order + "i4").tobytes()), (1, name.encode())]
    return mat_element(14, b"".join(mat_element(kind, content, order) for kind, content in [*head, *parts]), order)


def mat_file(*variables: bytes, order: str = "<") -> bytes:
    """Return a MATLAB file of the variables."""
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(
        order + "HH", 0x0100, 0x4D49
    )  # version, and "MI" as a number
    return head + b"".join(variables)


def content(path: str | os.PathLike[str], *, limits: Limits | None = None, **options: Any) -> RawData:
    """Return what `multilab.datasets.read` finds in a file before it chooses the kinds of the columns."""
    return raw_source(path, None, limits, options)[0]


def card_content(path: str | os.PathLike[str], **options: Any) -> RawData:
    """Return what a card with these options reads: without kinds of columns, the attributes of ARFF as a matrix."""
    return read_content(path, reading_of(options, path))
