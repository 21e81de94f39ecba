"""CSV through pandas: what it reads is what Python's csv module and ``float`` make of the file."""

from __future__ import annotations

import csv
import io
import random
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from helpers.readers_samples import content
from multilab.core.tags import MISSING_CELLS
from multilab.datasets import DatasetError, csv_files, read
from multilab.datasets.file_access import Limits
from multilab.datasets.options import Reading


@pytest.fixture
def write(tmp_path):
    def _write(content: str, name: str = "set.csv"):
        path = tmp_path / name
        path.write_text(content, "utf-8", newline="")
        return path

    return _write


def hard_numbers(count: int, seed: int) -> list[str]:
    """Return decimals that are hard to round: halfway cases, extremes, many digits, any bit pattern."""
    rng, texts = random.Random(seed), list[str]()
    while len(texts) < count:
        bits = struct.unpack("<d", rng.randbytes(8))[0]
        whole = rng.randrange(2**53, 2**63)
        texts += [
            f"{bits:.17g}",
            f"{bits:.{rng.randrange(1, 30)}e}",
            str(whole),  # between two doubles
            f"{whole}.{rng.randrange(10**9)}",
            f"{rng.randrange(10**15)}e{rng.randrange(-340, 290)}",
            f"{rng.uniform(-1000, 1000):.6f}",
            f"-.{rng.randrange(10**18):018d}",
        ]
    return [text for text in texts if np.isfinite(float(text))][:count]


def test_numbers_are_those_of_python(write):
    texts = hard_numbers(6000, seed=0)
    path = write("x,l\n" + "".join(f"{text},{i % 2}\n" for i, text in enumerate(texts)))
    expected = np.array([float(text) for text in texts])
    assert len(texts) == 6000
    np.testing.assert_array_equal(read(path, labels_last=1).X["x"], expected)


ROWS = [
    [str(i), "" if i % 7 == 3 else f"{i / 8}", "red" if i % 3 else "dark blue", "late" if i == 37 else "5", str(i % 2)]
    for i in range(40)
]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_that_turn_out_to_be_text_in_a_later_chunk(quoting, delimiter, write, monkeypatch):
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator="\r\n")
    writer.writerows([["a", "b", "c", "d, e; f", "y"], *ROWS])
    path = write(stream.getvalue())
    complete = content(path, labels_last=1)
    assert complete.X["d, e; f"].tolist() == [row[3] for row in ROWS]
    assert complete.X["c"].tolist() == [row[2] for row in ROWS]
    np.testing.assert_array_equal(complete.X["b"], [float(row[1] or "nan") for row in ROWS])
    monkeypatch.setattr(csv_files, "_CHUNK_CELLS", 15)
    monkeypatch.setattr(csv_files, "_CHUNK_ROWS", 3)
    pieces = content(path, labels_last=1)
    monkeypatch.setattr(csv_files, "_CHUNK_ROWS", 50)
    monkeypatch.setattr(csv_files, "_MANY_COLUMNS", 2)
    without_pandas = content(path, labels_last=1)
    for one in (pieces, without_pandas):
        assert one.X.equals(complete.X)
        np.testing.assert_array_equal(one.Y, complete.Y)


def test_the_row_of_a_fault_in_a_later_chunk(write, monkeypatch):
    monkeypatch.setattr(csv_files, "_CHUNK_CELLS", 15)
    monkeypatch.setattr(csv_files, "_CHUNK_ROWS", 3)
    lines = [f"{i},{i % 2}" for i in range(60)]
    for column, cell in ((0, "1.2.3"), (0, "inf"), (1, "3")):
        wrong = list(lines)
        wrong[50] = ",".join(cell if j == column else field for j, field in enumerate(wrong[50].split(",")))
        for text in ("\n".join(["x,y", *wrong]), '"x\nx",y\n' + "\n\n".join(wrong)):
            line = 52 if text.startswith("x") else 103
            where = rf":{line}: .*'y' is {cell}" if column else rf": .*'x.*'{cell}' in row 51"
            with pytest.raises(DatasetError, match=rf"set\.csv{where}"):
                read(write(text), labels_last=1)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('5" pipe,1\n6" pipe,0\n', ['5" pipe', '6" pipe']),  # a quote within a field is a character
        ('"a,b",1\n"c ""d""",0\n', ["a,b", 'c "d"']),
        ('"two\n\nlines",1\nx,0\n', ["two\n\nlines", "x"]),
        ("a,1\n\n\n  \nb,0\n\n", ["a", "b"]),
        (" a ,1\n\tb, 0\n", ["a", "b"]),
        ("\N{ZERO WIDTH NO-BREAK SPACE}a,1\nb,0\n", ["\N{ZERO WIDTH NO-BREAK SPACE}a", "b"]),
    ],
)
def test_quotes_blanks_and_empty_lines(body, expected, write):
    raw = content(write(f"x,y\n{body}"), labels_last=1)
    assert raw.X["x"].tolist() == expected
    assert raw.Y.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("body", "line", "reason"),
    [
        ("1,2,0\n3,1\n4,5,6,1\n", 3, "2 fields, expected 3"),  # pandas would fill the second row up
        ("1,2,0,5\n3,1\n", 2, "4 fields, expected 3"),
        ('1,2,0\n"3"\n', 3, "1 fields, expected 3"),
        ('1,"2"3,0\n', 2, "not readable as CSV"),
        ('1,"2\n3,4,0\n', 3, "not readable as CSV"),
        ("1,wet,0\n3,1\n", 3, "2 fields, expected 3"),
        (f"1,{'2' * 140_000},0\n", 2, "field limit"),
    ],
)
def test_rows_that_pandas_would_read_are_refused(body, line, reason, write):
    path = write(f"a,b,y\n{body}")
    with pytest.raises(DatasetError, match=reason) as caught:
        read(path, labels_last=1)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def records_of_python(body: str) -> list[list[str | None]] | None:
    """Return the records of two fields that the csv module reads, None if it refuses one or the width is wrong."""
    try:
        rows = [row for row in csv.reader(io.StringIO(body), strict=True) if row and (len(row) > 1 or row[0].strip())]
    except csv.Error:
        return None
    if not rows or any(len(row) != 2 for row in rows):
        return None
    fields = [[field.strip() for field in row] for row in rows]
    return [[None if field.lower() in MISSING_CELLS else field for field in row] for row in fields]


LINES = ["1,2", '"a",b', "1,", '"x\ny",""', "3,2,1", "4"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text('a1," \n', max_size=16), st.lists(st.sampled_from(LINES), max_size=9))
@example("1,2,3\n1,2", [])  # the first record of a chunk: pandas would cut it off
@example("1,2\n3,4\n1,2,3\n5,6", [])
@example("1,2,\n3,4,\n", [])
def test_records_are_those_of_the_csv_module(write, text, lines):
    body = text + "\n" + "\n".join(lines)
    path, expected = write(f"x,y\n{body}"), records_of_python(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "_CHUNK_CELLS", 1)
        patch.setattr(csv_files, "_CHUNK_ROWS", 2)
        patch.setattr(csv_files, "_BLOCK", 5)
        for form, columns in (("texts", ["x", "y"]), ("numbers", [])):
            try:
                rows = csv_files.read_csv(path, Reading(header=True), Limits(), columns)
            except DatasetError:
                assert expected is None
                continue
            assert expected is not None
            if form == "texts":
                read_cells = rows.frame.astype(object).where(rows.frame.notna(), None)
                assert read_cells.to_numpy().tolist() == expected
            assert len(rows.frame) == len(expected)


@pytest.mark.parametrize(
    "cells", ["9.600 800", "1.250 0", "9.600 tall", "0.600 800", "9.612 800", "9.600 8000", "9.6 8"]
)
def test_points_that_may_separate_thousands(cells, write):
    first, second = cells.split()
    path = write(f"a;b;y\n{first};1;1\n{second};2;0\n")
    notes = content(path, labels_last=1).notes
    assert (len(notes) == 1 and "'a'" in notes[0]) == (cells in ("9.600 800", "1.250 0"))
