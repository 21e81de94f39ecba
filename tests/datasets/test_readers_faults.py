"""Errors of ARFF files and their XML: one line with the exact position."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from helpers.readers_samples import DENSE, XML, numeric
from multilab.datasets import read
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits


@pytest.fixture
def write(tmp_path):
    def _write(content: str | bytes, name: str = "small.arff") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


FAULTS = [
    ("1,0,1,2,a\n1,0,1,2\n", 9, "4 fields, expected 5"),
    ("1,0,1,2,a\n\n% c\n1,0,1,2,a,3\n", 11, "6 fields, expected 5"),
    ("1,0,1,2,a\n1,0,1,2,d\n", 9, "'d' is not a value of nominal attribute 'z'"),
    ("1,0,1,2,a\n2,0,1,2,a\n", 9, "'2' is not a value of nominal attribute 'l1'"),
    ("1,0,1,2,a\n1,0.5,1,2,a\n", 9, "non-binary label: 'l2' is 0.5"),
    ("1,0,1,2,a\n?,0,1,2,a\n", 9, "label 'l1' is missing"),
    ("1,0,1,2,a\n1,?,1,2,a\n", 9, "label 'l2' is missing"),
    ("1,0,1,2,a\n1,0,1x,2,a\n", 9, "'1x' of attribute 'x' is not a finite number"),
    ("1,0,1,2,a\n1,0,infinity,2,a\n", 9, "'infinity' of attribute 'x' is not a finite number"),
    ("1,0,1,2,a\n1,0,1,-inf,a\n", 9, "'-inf' of attribute 'y' is not a finite number"),
    ("1,0,1,2,a\n1,0,1,1e999,a\n", 9, "'1e999' of attribute 'y' is not a finite number"),
    ("1,0,1_0,2,a\n", 8, "'1_0' of attribute 'x' is not a finite number"),
    ("1,0,,2,a\n", 8, "'' of attribute 'x' is not a finite number"),
    ("1,0,1,2,'a\n", 8, "cannot read the row from ''a'"),
    ("1,0,1,2,'a'b\n", 8, "cannot read the row from ''a'b'"),
    ("1,0,1,2,a\n{0 1}\n", 9, "dense and sparse rows are mixed"),
    ("{0 1}\n1,0,1,2,a\n", 9, "dense and sparse rows are mixed"),
    ("{0 1,2 3\n", 8, "truncated: no closing brace"),
    ("{0 1}\n{0 1,5 3}\n", 9, "index 5, but the last attribute has the index 4"),
    ("{0 1}\n{0 1,99999999999999999999 3}\n", 9, "index 99999999999999999999, but the last"),
    ("{0 1}\n{2 1,2 3}\n", 9, "index 2 is given twice"),
    ("{0 1}\n{2 1,3}\n", 9, "cannot read the sparse row from '3}'"),
    ("{0 1}\n{2 1 3 4}\n", 9, "cannot read the sparse row"),
    ("{0 1}\n{2 1,,3 4}\n", 9, "cannot read the sparse row"),
    ("{0 1}\n{2.0 1}\n", 9, "cannot read the sparse row"),
    ("{0 1}\n{-2 1}\n", 9, "cannot read the sparse row"),
    ("{0 1}\n{2 inf}\n", 9, "'inf' of attribute 'x' is not a finite number"),
    ("{0 1}\n{1 2}\n", 9, "non-binary label: 'l2' is 2"),
    ("{0 1}\n{1 ?}\n", 9, "label 'l2' is missing"),
    ("{0 1}\n{4 d}\n", 9, "'d' is not a value of nominal attribute 'z'"),
    ("{0 1} {5}\n", 8, "unexpected '{5}' after the row"),
    ("\n% nothing\n", 7, "no row follows @data"),
]


@pytest.mark.parametrize(("rows", "line", "reason"), FAULTS)
@pytest.mark.parametrize("quoted", [True, False])
def test_fault_in_a_row_names_its_line(write, rows, line, reason, quoted):
    text = numeric(rows)
    if not quoted:  # a file that begins on the quick way, too: the nominal values are numbers
        text = text.replace("{a,b,c}", "{7,8,9}").replace(",a", ",7").replace("'a", "'7")
        reason = reason.replace("'a", "'7")
    path = write(text)
    with pytest.raises(DatasetError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


HEADERS = [
    (
        "@relation r\n@attribute a {0,1}\n@attribute b numeric\n@attribute a numeric\n@data\n",
        4,
        "declared on line 2",
    ),
    ("@relation r\n@attribute a string\n@data\n", 2, "'a' is of type 'string'"),
    ("@relation r\n@attribute a date 'yyyy'\n@data\n", 2, "'a' is of type 'date'"),
    ("@relation r\n@attribute a {0,1\n@data\n", 2, "cannot read the values"),
    ("@relation r\n@attribute a {}\n@data\n", 2, "cannot read the values"),
    ("@relation r\n@attribute a {0,,1}\n@data\n", 2, "cannot read the values"),
    ("@relation r\n@attribute a {0,0}\n@data\n", 2, "lists the value '0' twice"),
    ("@relation r\n@attribute a {0,1} junk\n@data\n", 2, "unexpected 'junk'"),
    ("@relation r\n\n@attribute a\n@data\n", 3, "cannot read the attribute declaration"),
    ("@relation r\n@attribute 'a numeric\n@data\n", 2, "cannot read the attribute declaration"),
    ("@relation r\n@attribute a numeric\n1,2\n", 3, "expected @relation, @attribute or @data"),
    ("@relation r\n@attribute a numeric\n", 2, "ends before @data"),
    ("@relation r\n@data\n1\n", 2, "@data before any @attribute"),
    ("<labels/>\n", 1, "expected @relation"),
]


@pytest.mark.parametrize(("text", "line", "reason"), HEADERS)
def test_fault_in_the_header_names_its_line(write, text, line, reason):
    path = write(text)
    with pytest.raises(DatasetError, match=reason) as caught:
        read(path, labels_first=1)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_label_declared_with_other_values(write):
    path = write(DENSE)
    with pytest.raises(DatasetError, match=r":7: non-binary label: 'wind \"x\"' has the values"):
        read(path, label_columns=['wind "x"'])


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (XML.replace("hail", "snow"), 4, "label 'snow' is not a column of small.arff"),
        (XML.replace("hail", "sun"), 4, "label 'sun' is listed twice"),
        (XML.replace(' name="sun"', ""), 3, "a label has no name"),
        (XML.replace("labels>", "label>"), 5, "not well-formed XML"),
        (XML.replace("<labels", "<tags").replace("/labels", "/tags"), 2, "the root is <tags>"),
        ("not XML at all", 1, "not well-formed XML"),
        (XML.replace("<labels", "<!DOCTYPE labels>\n<labels"), 2, "declaration is refused"),
        (
            '<!DOCTYPE x [<!ENTITY a "aaaa">\n<!ENTITY b "&a;&a;">]>\n<labels><label name="&b;"/></labels>',
            1,
            "declaration is refused",
        ),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><labels/>', 1, "declaration is refused"),
    ],
)
def test_wrong_xml_names_its_line(write, text, line, reason):
    arff = '@relation r\n@attribute sun {0,1}\n@attribute hail {0,1}\n@attribute "rain\'s end" {0,1}\n'
    arff += "@attribute x numeric\n@data\n1,0,0,4\n"
    assert read(write(arff), labels_xml=write(XML, "l.xml")).Y.tolist() == [[1, 0, 0]]
    xml = write(text, "l.xml")
    with pytest.raises(DatasetError, match=reason) as caught:
        read(write(arff), labels_xml=xml)
    assert str(caught.value).startswith(f"{xml}:{line}: ")


def test_xml_without_labels_and_too_large(write, monkeypatch):
    with pytest.raises(DatasetError, match="names no label"):
        read(write(DENSE), labels_xml=write("<labels></labels>", "l.xml"))
    monkeypatch.setattr("multilab.datasets.labels.MAX_NAMES_BYTES", 40)
    with pytest.raises(DatasetError, match="larger than the limit of 40 bytes"):
        read(write(DENSE), labels_xml=write(XML, "l.xml"))


def test_files_that_cannot_be_opened(write, tmp_path):
    with pytest.raises(DatasetError, match="no such file"):
        read(tmp_path / "absent.arff")
    (tmp_path / "folder.arff").mkdir()
    with pytest.raises(DatasetError, match="it is a folder, not a data file"):
        read(tmp_path / "folder.arff")
    for content in (b"", gzip.compress(b"")):
        with pytest.raises(DatasetError, match="the file is empty"):
            read(write(content))
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        packed = pack(DENSE.encode() * 50)
        for damaged in (packed[: len(packed) // 2], packed[:20] + b"\x00\xff\x00" + packed[23:]):
            with pytest.raises(DatasetError, match=r"damaged|cannot be read"):
                read(write(damaged))
    with pytest.raises(DatasetError, match=r"unknown extension '\.doc'"):
        read(write("x", "small.doc.gz"))


def test_decompression_bomb_and_too_many_attributes(write):
    bomb = write(gzip.compress(b"%" * 10_000_000), "bomb.arff.gz")
    assert bomb.stat().st_size < 20_000
    with pytest.raises(DatasetError, match="larger than the limit of 1000000 bytes"):
        read(bomb, limits=Limits(max_bytes=1_000_000))
    with pytest.raises(DatasetError, match=r":5: more than the limit of 3 attributes"):
        read(write(numeric("1,0,1,2,a\n")), limits=Limits(max_columns=3))
    with pytest.raises(DatasetError, match="the label matrix would have 3 x 2 entries"):
        read(write(numeric("{0 1}\n" * 3)), limits=Limits(max_cells=5))
    with pytest.raises(DatasetError, match="the table would have 3 x 5 entries"):
        read(write(numeric("1,0,1,2,a\n" * 3)), limits=Limits(max_cells=5))


@pytest.mark.parametrize("hostile", ["@attribute " + "a" * 200_000, "@attribute x {" + " " * 200_000 + "x",
                                     "@attribute x {" + "'\\" * 100_000, "{" + "1 " * 100_000,
                                     "@attribute x " + "real [" * 50_000])  # fmt: skip
def test_hostile_lines_are_refused_in_linear_time(write, hostile):
    with pytest.raises(DatasetError):
        read(write(f"@relation r\n{hostile}\n"), labels_first=1)
    with pytest.raises(DatasetError):
        read(write(numeric(f"{hostile}\n")))
