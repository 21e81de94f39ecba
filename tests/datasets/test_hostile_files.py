"""Small files that ask for much: each ends as a data set or as one clear line, under 3 s and 1 GB, never in a crash."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
import zlib
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from helpers.readers_samples import mat_element, mat_file, mat_variable
from helpers.readers_worker import run_jobs
from multilab.datasets import DatasetError, read
from multilab.datasets.columns import canonical_csr

pytest.importorskip("pyarrow")
pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and peak memory are Linux's"),
    pytest.mark.xdist_group("hostile"),  # one worker makes the results that they share
]

BLANKS = " " * 1_000_000
DIGITS = "7" * 5_000
FIRST = {"labels_first": 1}


def nominal(values: int, rows: int, sparse: bool = False) -> bytes:
    names = ",".join(f"v{k}" for k in range(values))
    body = "{}\n" * rows if sparse else "".join(f"1,v{k % values}\n" for k in range(rows))
    return f"@relation r\n@attribute l {{0,1}}\n@attribute a {{{names}}}\n@data\n{body}".encode()


def many_labels(count: int, rows: int) -> bytes:
    header = "".join(f"@attribute l{k} {{0,1}}\n" for k in range(count))
    return f"@relation 'r: -C {count}'\n{header}@attribute x numeric\n@data\n{'{0 1}' + chr(10)}".encode() + (
        b"{0 1}\n" * (rows - 1)
    )


def many_nominal(count: int, rows: int, row: str) -> bytes:
    header = "".join(f"@attribute a{k} {{3,2,1}}\n" for k in range(count))
    return f"@relation r\n@attribute l {{0,1}}\n{header}@data\n".encode() + f"{row}\n".encode() * rows


def sparse_mat(**changes: int) -> bytes:
    """Return a sparse data matrix of 10 x 3 whose index arrays are changed after SciPy wrote them."""
    data = sp.csc_matrix(np.arange(30.0).reshape(10, 3) % 4)
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"data": data, "target": np.eye(10, 2, dtype=np.uint8)})
    content = bytearray(buffer.getvalue())
    starts = {name: content.index(getattr(data, name).astype("<i4").tobytes()) for name in ("indices", "indptr")}
    for name, value in changes.items():
        array, position = name.rsplit("_", 1)
        struct.pack_into("<i", content, starts[array] + 4 * int(position), value)
    return bytes(content)


TARGET = mat_variable("target", 6, (10, 2), (2, np.eye(10, 2, dtype=np.uint8).tobytes("F")))


def sparse_parts(pointers: list[int], kind: int, *values: tuple[int, bytes]) -> bytes:
    """Return a file with a sparse matrix of 10 x 4 of five entries with these column pointers of a type."""
    starts = np.array(pointers, {5: "<i4", 12: "<i8"}[kind]).tobytes()
    rows = np.arange(5, dtype="<i4").tobytes()
    return mat_file(mat_variable("data", 5, (10, 4), (5, rows), (kind, starts), *values, nonzero=5), TARGET)


def long_shape() -> bytes:
    """Return a file whose first variable has 45 million dimensions."""
    variable = mat_variable("other", 6, np.full(45_000_000, 1_234_567), (9, bytes(8)))
    data = mat_variable("data", 6, (10, 1), (9, bytes(80)))
    return mat_file(mat_element(15, zlib.compress(variable, 1)), data, TARGET)


def many_variables() -> bytes:
    return gzip.compress(mat_file(mat_variable("x", 6, (1, 1), (9, bytes(8))) * 200_000, TARGET), 1)


def nested_cells() -> bytes:
    """Return a file whose features are 50,000 cells, each within the other."""
    head = mat_variable("data", 1, (1, 1))[8:]
    sizes = len(head) * np.arange(1, 50_001) + 8 * np.arange(50_000)
    return mat_file(b"".join(struct.pack("<II", 14, size) + head for size in sizes[::-1].tolist()), TARGET)


def xml(encoding: str) -> str:
    return f'<?xml version="1.0" encoding="{encoding}"?>\n<labels><label name="l"/></labels>'


def parquet(rows: int) -> bytes:
    """Return two constant columns of many rows, which take a few kilobytes."""
    from pyarrow import BufferOutputStream, array, parquet, table

    zeros = array(np.zeros(rows, dtype=np.int8))
    stream = BufferOutputStream()
    parquet.write_table(table({"x": zeros, "l": zeros}), stream)
    return stream.getvalue().to_pybytes()


def parquet_levels(cells: list, name: bytes) -> bytes:
    """Return a column that is declared to have a value in each place, with counts of values and of missing ones."""
    from pyarrow import BufferOutputStream, array, parquet, table

    stream = BufferOutputStream()
    parquet.write_table(table({"x": array(cells), "l": array([0, 1])}), stream)
    sound = stream.getvalue().to_pybytes()
    length = bytes([len(name)])  # as the description in Thrift has it
    declared = sound.replace(b"\x25\x02\x18" + length + name, b"\x25\x00\x18" + length + name)
    assert declared != sound
    return declared


def feather_offsets() -> bytes:
    """Return a column of lists that are far behind the end of its texts, in a file that is not compressed."""
    from pyarrow import feather, table

    stream = io.BytesIO()
    columns = {"x": [["one", "two"], ["three"], ["four"]], "l": [0, 1, 0]}
    feather.write_feather(table(columns), stream, compression="uncompressed")
    offsets, outside = (np.array(places, "<i4").tobytes() for places in ([0, 2, 3, 4], [0, 2**30, 3, 2**30]))
    assert offsets in stream.getvalue()
    return stream.getvalue().replace(offsets, outside, 1)


def parquet_lists(rows: int, size: int) -> bytes:
    """Return rows of long lists of zeros, which take a few kilobytes."""
    import pyarrow as pa
    from pyarrow import parquet

    lists = pa.ListArray.from_arrays(np.arange(rows + 1) * size, pa.array(np.zeros(rows * size)))
    stream = pa.BufferOutputStream()
    parquet.write_table(pa.table({"x": lists, "l": np.arange(rows) % 2}), stream)
    return stream.getvalue().to_pybytes()


def csv_field(field: str) -> str:
    return f"x,l\n{field},0\n1,1\n"


def among_numbers(field: str) -> str:
    return csv_field(field) + "2,0\n3,1\n"


# name -> (file name, content, options, what the message says or None where the file may also be read)
FILES: dict[str, tuple[str, bytes | str | Callable[[], bytes], dict, str | None]] = {
    "csv blanks": ("a.csv", csv_field("1" + BLANKS), {"labels_last": 1}, None),
    "csv blanks before": ("a.csv", csv_field(BLANKS + "1"), {"labels_last": 1}, None),
    "csv blanks inside": ("a.csv", csv_field(f"1{BLANKS}1"), {"labels_last": 1}, "field limit"),
    "csv tabs": ("a.csv", csv_field("1" + "\t" * 100_000), {"labels_last": 1}, None),
    "arff blanks": ("a.arff", f"@relation 'r: -C 1'\n@attribute l {{0,1}}\n@attribute x numeric\n@data\n0,1{BLANKS}\n1,"
                    f"{BLANKS}2\n", {}, None),
    "arff blanks inside": ("a.arff", f"@relation 'r: -C 1'\n@attribute l {{0,1}}\n@attribute x numeric\n@data\n"
                           f"0,1{BLANKS}1\n", {}, "is not a finite number"),
    "blanks in xz": ("a.csv.xz", lambda: lzma.compress(csv_field("1" + BLANKS).encode()), {"labels_last": 1}, None),
    "20,000 nominal values": ("a.arff", lambda: nominal(20_000, 20), FIRST, None),
    "100,000 nominal values": ("a.arff", lambda: nominal(100_000, 20), FIRST, None),
    "20,000 values and rows": ("a.arff.xz", lambda: lzma.compress(nominal(20_000, 20_000)), FIRST, "out of proportion"),
    "missing value of many": ("a.arff.xz", lambda: lzma.compress(nominal(20_000, 9_000, True).replace(b"{}", b"{1 ?}")),
                              FIRST, "out of proportion"),
    "implied nominal values": ("a.arff.xz", lambda: lzma.compress(many_nominal(5_000, 50_000, "{0 1}")), FIRST,
                               "out of proportion"),
    "coded nominal values": ("a.arff", lambda: many_nominal(3_000, 300, "{0 1,1 2,2 1,7 2}"), FIRST, None),
    "6 KB that ask for 8.9 GB": ("a.arff.xz", lambda: lzma.compress(many_labels(20_000, 50_000)), {},
                                 "out of proportion"),
    "xc labels": ("a.txt", "1000 1 1000000\n" + "0 0:1\n" * 1000, {}, "out of proportion"),
    "xc rows and labels": ("a.txt", "2 1 1999999\n0 0:1\n7 0:1\n", {}, None),
    "svmlight label": ("a.svm", "1900000 1:1\n" + "1 1:1\n" * 499, {}, "out of proportion"),
    "svmlight label, few rows": ("a.svm", "1900000 1:1\n" + "1 1:1\n" * 50, {}, None),
    "svmlight feature": ("a.svm", "1 1900000:1\n" * 50, {}, None),
    "xz bomb": ("a.csv.xz", lambda: lzma.compress(bytes(48 * 2**20), preset=0), FIRST, "out of proportion"),
    "gz bomb": ("a.csv.gz", lambda: gzip.compress(bytes(48 * 2**20), 6), FIRST, "out of proportion"),
    "bz2 bomb": ("a.csv.bz2", lambda: bz2.compress(bytes(24 * 2**20), 9), FIRST, "out of proportion"),
    "parquet rows": ("a.parquet", lambda: parquet(20_000_000), {"labels_last": 1}, "out of proportion"),
    "parquet levels": ("a.parquet", lambda: parquet_levels([1.0, None], b"x"), {"labels_last": 1},
                       "not a readable Parquet file"),
    "parquet levels of a list": ("a.parquet", lambda: parquet_levels([[1.0, None], [2.0]], b"element"),
                                 {"labels_last": 1}, "not a readable Parquet file"),
    "feather offsets": ("a.feather", feather_offsets, {"labels_last": 1}, "is damaged"),
    "parquet lists": ("a.parquet", lambda: parquet_lists(1000, 40_000), {"labels_last": 1}, "out of proportion"),
    "digits in csv": ("a.csv", among_numbers("1." + DIGITS + "x"), {"labels_last": 1}, "in row 1"),
    "infinite digits in csv": ("a.csv", among_numbers(DIGITS), {"labels_last": 1}, "in row 1"),
    "digits of a label": ("a.csv", f"x,l\n1,{DIGITS[:200]}\n", {"labels_last": 1}, "non-binary label"),
    "digits in arff": ("a.arff", f"@relation r\n@attribute l {{0,1}}\n@attribute x numeric\n@data\n1,{DIGITS}\n", FIRST,
                       "is not a finite number"),
    "digits in svmlight": ("a.svm", f"1 1:{DIGITS}\n", {}, "is not a finite number"),
    "digits in xc": ("a.txt", f"1 1 1\n{DIGITS} 0:1\n", {}, "beyond any limit"),
    "long attribute name": ("a.arff", f"@relation r\n@attribute {'n' * 200_000} string\n@data\n1\n", FIRST, "string"),
} | {
    f"mat {name}={value}": ("a.mat", partial(sparse_mat, **{name: value}), {}, "not a readable MATLAB file")
    for name, value in [("indices_4", v) for v in (10, 11, 100, 10**5, 10**8, -(10**8), -1)]
    + [("indptr_1", 40), ("indptr_1", -5), ("indptr_2", 10**8)]
} | {
    "mat without entries": ("a.mat", lambda: sparse_mat(indptr_1=10**6, indptr_2=5, indptr_3=0), {},
                            "not a readable MATLAB file"),
    "mat last pointer": ("a.mat", lambda: sparse_mat(indptr_3=10**8), {}, "MATLAB file"),
    "mat pointers whose differences overflow": ("a.mat", lambda: sparse_parts(
        [0, 2**63 - 1, -(2**63), -1, 5], 12, (9, bytes(40))), {}, "not a readable MATLAB file"),
    "mat without values": ("a.mat", lambda: sparse_parts([0, 0, 0, 0, 0], 5), {}, "not a readable MATLAB file"),
    "mat unknown type": ("a.mat", lambda: mat_file(mat_variable("data", 6, (10, 1), (60_000, bytes(80))), TARGET), {},
                         "not a readable MATLAB file"),
    "mat nested cells": ("a.mat", nested_cells, {}, "not a matrix of real numbers"),
    "mat long shape": ("a.mat", long_shape, {}, None),
    "mat many variables": ("a.mat.gz", many_variables, {}, "not a readable MATLAB file"),
}  # fmt: skip

ENCODINGS = ["utf9", "GB2312", "UTF-7", "idna", "punycode", "rot13", "hex", "undefined"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return the outcome of every file, each read in the same separate process."""
    jobs = {}
    for i, (name, (file, content, options, _)) in enumerate(FILES.items()):
        folder = tmp_path_factory.mktemp(f"hostile{i}")
        content = content() if callable(content) else content
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        jobs[name] = {"path": str(folder / file), "options": options}
    folder = tmp_path_factory.mktemp("encodings")
    (folder / "a.arff").write_text("@relation r\n@attribute l {0,1}\n@attribute x numeric\n@data\n0,1\n", "utf-8")
    for encoding in [*ENCODINGS, "utf-8"]:
        (folder / f"{encoding}.xml").write_text(xml(encoding), "utf-8")
        jobs[encoding] = {"path": str(folder / "a.arff"), "options": {"labels_xml": str(folder / f"{encoding}.xml")}}
    return dict(zip(jobs, run_jobs(list(jobs.values()), folder), strict=True))


@pytest.mark.parametrize("name", FILES)
def test_hostile_file_is_bounded(name, results):
    result, message = results[name], FILES[name][3]
    assert result["outcome"] in (("ok", "refused") if message is None else ("refused",)), result
    assert (message or "") in result["message"]
    assert result["peak_mb"] < 1024, result


def test_blanks_around_numbers_are_still_accepted(results, tmp_path):
    assert results["arff blanks"]["outcome"] == "ok"
    (tmp_path / "a.csv").write_text("x,y,l\n1   ,   2,0  \n   3 , 4   ,  1\n", "utf-8")
    raw = read(tmp_path / "a.csv", labels_last=1)
    assert raw.X.to_numpy().tolist() == [[1, 2], [3, 4]]
    assert raw.Y.tolist() == [[0], [1]]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_unknown_xml_encoding_is_refused(encoding, results):
    assert results[encoding]["outcome"] == "refused", results[encoding]
    assert f"{encoding}.xml:1: the encoding that the XML declares" in results[encoding]["message"]


def test_known_xml_encoding_is_read(results):
    assert results["utf-8"]["outcome"] == "ok"


def test_long_text_is_not_quoted_in_full(results):
    for name in ("digits in csv", "infinite digits in csv", "digits in arff", "digits in svmlight", "digits in xc"):
        message = results[name]["message"].rpartition("/")[2]
        assert len(message) < 200, message
    assert len(results["long attribute name"]["message"].rpartition("/")[2]) < 250


def test_sound_sparse_mat_is_read(tmp_path):
    path = tmp_path / "a.mat"
    path.write_bytes(sparse_mat())
    expected = canonical_csr(sp.csc_matrix(np.arange(30.0).reshape(10, 3) % 4)).toarray()
    np.testing.assert_array_equal(read(path).X.toarray(), expected)


def test_two_variables_of_one_name_are_refused(tmp_path):
    buffers = [io.BytesIO(), io.BytesIO()]
    for buffer, value in zip(buffers, (1.0, 2.0), strict=True):
        scipy.io.savemat(buffer, {"data": np.full((3, 2), value), "target": np.eye(3, 2)})
    path = tmp_path / "a.mat"
    path.write_bytes(buffers[0].getvalue() + buffers[1].getvalue()[128:])
    with pytest.raises(DatasetError, match="two variables are called data"):
        read(path)


def test_memory_that_is_not_there_is_one_line(tmp_path, monkeypatch):
    def no_memory(*_, **__):
        raise MemoryError

    monkeypatch.setattr("multilab.datasets.reading.read_svmlight", no_memory)
    (tmp_path / "a.svm").write_text("0 0:1\n")
    with pytest.raises(DatasetError, match=r"a\.svm: there is not enough memory to read it"):
        read(tmp_path / "a.svm")


# ---- control characters ----

TITLE = "\x1b]0;owned\x07"
MARKS = TITLE + "\u202e" + "\x9b2J" + "\x7f"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("a.csv", f"x,l\n1,{MARKS}\n"),
        ("a.csv", f"x,{MARKS},{MARKS}\n1,1,1\n"),
        ("a.arff", f"@relation r\n@attribute {TITLE} string\n@data\n1\n"),
        ("a.arff", f"{MARKS}\n"),
        ("a.svm", f"1 {MARKS}\n"),
        ("a.txt", f"1 1 1\n{MARKS} 0:1\n"),
        (f"{TITLE}.csv", "x\n"),
        ("\udcff.csv", "x\n"),
    ],
    ids=["csv", "csv names", "arff", "arff line", "svmlight", "xc", "path", "path that is not UTF-8"],
)
def test_control_characters_of_a_file_are_escaped(file, content, tmp_path):
    path = tmp_path / file
    path.write_text(content, "utf-8")
    with pytest.raises(DatasetError) as caught:
        read(path, **({"labels_last": 1} if file.endswith((".csv", ".arff")) else {}))
    shown = str(caught.value)
    assert shown.isprintable()
    shown.encode("utf-8")
    assert caught.value.path == str(path)


def test_message_keeps_its_start_its_end_and_checksums():
    sha = "ab" * 32
    assert str(DatasetError(f"expected sha256 {sha}", "f", 2)) == f"f:2: expected sha256 {sha}"
    long = str(DatasetError("start " + "many terms " * 500 + "end", "f"))
    assert long.startswith("f: start many")
    assert long.endswith("terms end")
    assert len(long) < 850
    assert str(DatasetError("'" + "9" * 5000 + "' is no number")) == "'" + "9" * 56 + "... is no number"


def test_label_list_is_not_quoted(tmp_path):
    (tmp_path / "secret").write_text("passphrase:x:0:0\n", "utf-8")
    (tmp_path / "a.csv").write_text("x,l\n1,1\n", "utf-8")
    with pytest.raises(DatasetError, match="secret:1: the name on this line is not a column of") as caught:
        read(tmp_path / "a.csv", label_columns=tmp_path / "secret")
    assert "passphrase" not in str(caught.value)


def test_long_column_name_is_no_path(tmp_path):
    (tmp_path / "a.csv").write_text("x,l\n1,1\n", "utf-8")
    with pytest.raises(DatasetError, match="is not a column"):
        read(tmp_path / "a.csv", label_columns="n" * 5000)
