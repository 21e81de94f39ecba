"""ARFF and its XML: small files of every kind, and the exact line of every fault."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multilab.datasets.arff_header import parse_header, unquote
from multilab.datasets.arff_rows import parse_rows
from multilab.datasets.errors import DatasetError
from multilab.datasets.numbers import dense_numbers, sparse_numbers, to_number
from multilab.datasets.opening import Limits, plain_name
from multilab.datasets.reading import check, read

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


@pytest.fixture
def write(tmp_path):
    def _write(content: str | bytes, name: str = "small.arff") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


def numeric(rows: str, relation: str = "r: -C 2") -> str:
    """Return a file of two labels (one nominal, one numeric), two numbers and one nominal {a,b,c}."""
    return (
        f"@relation '{relation}'\n@attribute l1 {{0,1}}\n@attribute l2 numeric\n@attribute x numeric\n"
        f"@attribute y numeric\n@attribute z {{a,b,c}}\n@data\n{rows}"
    )


def test_dense_file_with_everything(write):
    raw = read(write(DENSE))
    assert raw.label_names == ["sun", "rain's end"]
    assert raw.feature_names == [
        "height",
        'wind "x"=weak',
        'wind "x"=very strong',
        'wind "x"=none',
        "dry",
        "month",
    ]
    assert raw.Y.dtype == np.uint8
    assert raw.Y.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert raw.X.tolist() == [[1.5, 1, 0, 0, 1, 3], [-0.2, 0, 1, 0, 0, 12], [0.25, 0, 0, 1, 1, 1]]
    assert (raw.original_features, raw.nominal_features, raw.missing_values) == (4, 2, 0)
    assert raw.X.flags.c_contiguous
    assert raw.Y.flags.c_contiguous


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, lambda b: b])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_compression_and_line_ends_change_nothing(write, pack, ends):
    raw = read(write(pack(DENSE.replace("\n", ends).encode()), "other.arff"))
    assert raw.X.shape == (3, 6)
    assert raw.label_names == ["sun", "rain's end"]


def test_latin_1_and_byte_order_mark(write):
    text = "@relation 'r: -C 1'\n@attribute café {0,1}\n@attribute x numeric\n@data\n1,2\n"
    assert read(write(text.encode("latin-1"))).label_names == ["café"]
    assert read(write(text.encode("utf-8-sig"))).label_names == ["café"]


def test_negative_c_means_the_last_columns(write):
    text = (
        "@relation 'r: -C -1'\n@attribute x numeric\n@attribute y numeric\n@attribute l {0,1}\n@data\n1,2,1\n"
    )
    raw = read(write(text))
    assert raw.label_names == ["l"]
    assert raw.feature_names == ["x", "y"]


def test_xml_beats_c_and_columns_give_the_order(write):
    text = (
        "@relation 'r: -C 1'\n@attribute x numeric\n@attribute 'rain\\'s end' {0,1}\n@attribute hail {0,1}\n"
        "@attribute y numeric\n@attribute sun {0,1}\n@data\n5,1,0,6,0\n"
    )
    raw = read(write(text), labels_xml=write(XML, "small.xml"))
    assert raw.label_names == ["rain's end", "hail", "sun"]  # the XML says sun, hail, rain's end
    assert raw.Y.tolist() == [[1, 0, 0]]
    assert raw.X.tolist() == [[5, 6]]
    assert check(write(text))["label_names"] == raw.label_names  # small.xml is found beside small.arff
    assert check(write(text, "small-train.arff"))["labels"] == 3
    with pytest.raises(DatasetError, match=":8: non-binary label: 'x' is 5"):
        check(write(text, "elsewhere.arff"))  # no XML there: -C 1 counts


def test_c_left_over_from_a_filter_is_refused(write):
    text = numeric("1,0,1,2,a\n", relation="r: -C 2-weka.filters.unsupervised.attribute.Reorder")
    with pytest.raises(DatasetError, match="not to be trusted"):
        read(write(text))
    assert read(write(text), labels_first=2).Y.tolist() == [[1, 0]]


def test_omitted_entry_of_a_sparse_row_is_the_first_declared_value(write):
    text = (
        "@relation 'r: -C 2'\n@attribute l {0,1}\n@attribute m {1,0}\n@attribute c {red,green,blue}\n"
        "@attribute b {1,0}\n@attribute n {3,5}\n@attribute x numeric\n@data\n"
        "{}\n{0 1,1 0,2 green,3 0,4 5,5 2.5}\n{2 'blue', 5 0}\n{ 4 5 }\n"
    )
    raw = read(write(text))
    assert sp.issparse(raw.X)
    assert raw.feature_names == ["c=red", "c=green", "c=blue", "b", "n=3", "n=5", "x"]
    assert raw.X.toarray().tolist() == [
        [1, 0, 0, 1, 1, 0, 0],
        [0, 1, 0, 0, 0, 1, 2.5],
        [0, 0, 1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0, 1, 0],
    ]
    assert raw.Y.tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]
    assert raw.X.has_sorted_indices
    assert (raw.X.data != 0).all()
    assert raw.X.indices.dtype == np.int32


def test_sparse_and_dense_rows_say_the_same(write):
    rng = np.random.default_rng(3)
    table = np.where(rng.random((20, 6)) < 0.4, rng.integers(-5, 6, (20, 6)) / 4, 0)
    table[:, :2] = table[:, :2] != 0
    head = "@relation 'r: -C 2'\n" + "".join(f"@attribute a{j} numeric\n" for j in range(6)) + "@data\n"
    dense = read(write(head + "\n".join(",".join(map(str, row)) for row in table)))
    rows = ["{" + ",".join(f"{j} {row[j]}" for j in np.flatnonzero(row)) + "}" for row in table]
    sparse = read(write(head + "\n".join(rows)))
    np.testing.assert_array_equal(dense.X, sparse.X.toarray())
    np.testing.assert_array_equal(dense.Y, sparse.Y)


def test_missing_feature_values_are_counted_and_kept_on_request(write):
    path = write(numeric("1,0,?,2,?\n0,1,3,4,b\n"))
    with pytest.raises(DatasetError, match="2 feature values are missing"):
        read(path)
    raw = read(path, missing="keep")
    assert raw.missing_values == 2
    assert np.isnan(raw.X[0]).tolist() == [True, False, True, True, True]
    assert check(path)["missing_values"] == 2
    sparse = read(write(numeric("{0 1,2 ?}\n{1 1,4 ?}\n")), missing="keep")
    assert sparse.missing_values == 2
    assert np.isnan(sparse.X.toarray()).tolist() == [
        [True, False, False, False, False],
        [False] * 2 + [True] * 3,
    ]


FAULTS = [
    ("1,0,1,2,a\n1,0,1,2\n", 9, "4 fields, expected 5"),
    ("1,0,1,2,a\n\n% c\n1,0,1,2,a,3\n", 11, "6 fields, expected 5"),
    ("1,0,1,2,a\n1,0,1,2,d\n", 9, "'d' is not a value of nominal attribute 'z'"),
    ("1,0,1,2,a\n2,0,1,2,a\n", 9, "'2' is not a value of nominal attribute 'l1'"),
    ("1,0,1,2,a\n1,0.5,1,2,a\n", 9, "non-binary label: 'l2' is 0.5"),
    ("1,0,1,2,a\n?,0,1,2,a\n", 9, "label 'l1' is missing"),
    ("1,0,1,2,a\n1,?,1,2,a\n", 9, "label 'l2' is missing"),
    ("1,0,1,2,a\n1,0,1x,2,a\n", 9, "'1x' of attribute 'x' is not a finite number"),
    ("1,0,1,2,a\n1,0,nan,2,a\n", 9, "'nan' of attribute 'x' is not a finite number"),
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
    ("{0 1}\n{2 nan}\n", 9, "'nan' of attribute 'x' is not a finite number"),
    ("{0 1}\n{1 2}\n", 9, "non-binary label: 'l2' is 2"),
    ("{0 1}\n{1 ?}\n", 9, "label 'l2' is missing"),
    ("{0 1}\n{4 d}\n", 9, "'d' is not a value of nominal attribute 'z'"),
    ("{0 1} {5}\n", 8, "unexpected '{5}' after the row"),
    ("\n% nothing\n", 7, "no row follows @data"),
]


@pytest.mark.parametrize(("rows", "line", "reason"), FAULTS)
@pytest.mark.parametrize("words", [True, False])
def test_fault_in_a_row_names_its_line(write, rows, line, reason, words):
    text = numeric(rows)
    if not words:  # a file that begins on the quick way, too: the nominal values are numbers
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
    monkeypatch.setattr("multilab.datasets.labels_xml.MAX_XML_BYTES", 40)
    with pytest.raises(DatasetError, match="larger than the limit of 40 bytes"):
        read(write(DENSE), labels_xml=write(XML, "l.xml"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"labels_first": 0}, "0 label columns asked for, the file has 5 columns"),
        ({"labels_last": 5}, "5 label columns asked for"),
        ({"labels_first": 1, "labels_last": 1}, "labels_first and labels_last says"),
        ({"label_columns": "l1,nothing"}, "label 'nothing' is not a column"),
        ({"label_columns": ["l1", "l2", "x", "y", "z"]}, "no feature is left"),
        ({"label_prefix": "q"}, "no column is a label by label_prefix"),
        ({"format": "sas"}, "unknown format 'sas'"),
    ],
)
def test_label_options_that_do_not_fit(write, options, reason):
    with pytest.raises(DatasetError, match=reason):
        read(write(numeric("1,0,1,2,a\n")), **options)


def test_label_options_that_fit(write):
    path = write(numeric("1,0,1,2,a\n0,1,1,2,b\n"))
    names = write("l2\n\nl1\n", "names.txt")
    for options in (
        {"label_prefix": "l"},
        {"label_columns": "l2, l1"},
        {"label_columns": names},
        {"label_names": ["l1", "l2"]},
    ):
        assert read(path, **options).Y.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(DatasetError, match=r"names.txt:2: label 'l3' is not a column"):
        read(path, label_columns=write("l2\nl3\n", "names.txt"))


def test_nothing_says_which_are_the_labels(write):
    with pytest.raises(DatasetError, match="nothing says which attributes are the labels"):
        read(write(numeric("1,0,1,2,a\n", relation="r")))


def test_files_that_cannot_be_opened(write, tmp_path):
    with pytest.raises(DatasetError, match="no such file"):
        read(tmp_path / "absent.arff")
    (tmp_path / "folder.arff").mkdir()
    with pytest.raises(DatasetError, match="cannot be read"):
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


def test_plain_name():
    assert plain_name("a/scene-train.arff.XZ") == ("scene-train", ".arff")
    assert plain_name("b.Mat") == ("b", ".mat")
    assert plain_name("v1.2.csv.gz") == ("v1.2", ".csv")


def test_to_number():
    assert [to_number(t) for t in ("1", "-2.5e-3", ".5", "+7.", "0")] == [1, -0.0025, 0.5, 7, 0]
    refused = ("", " 1", "1 ", "1_0", "nan", "-inf", "1e999", "\u0661", "0x1", "a")
    assert np.isnan([to_number(t) for t in refused]).all()


def test_unquote():
    assert unquote(r"'Swainson\'s'") == "Swainson's"
    assert unquote(r"'a\tb\\nA\%'") == "a\tb\\nA%"
    assert unquote("plain\\'s") == "plain\\'s"


# ---- random files ----

names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8
)
finite = st.floats(allow_nan=False, allow_infinity=False)


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@st.composite
def tables(draw):
    kinds = draw(
        st.lists(
            st.one_of(st.none(), st.lists(names, min_size=1, max_size=4, unique=True)), min_size=1, max_size=5
        )
    )
    labels = draw(st.integers(1, 3))
    titles = draw(st.lists(names, min_size=labels + len(kinds), max_size=labels + len(kinds), unique=True))
    row = st.tuples(
        *[st.integers(0, 1)] * labels,
        *[finite if kind is None else st.integers(0, len(kind) - 1) for kind in kinds],
    )
    return titles, labels, kinds, draw(st.lists(row, min_size=1, max_size=6)), draw(st.booleans())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables())
def test_round_trip(tmp_path, table):
    titles, labels, kinds, rows, sparse = table
    domains = [["0", "1"]] * labels + kinds
    lines = [f"@relation 'r: -C {labels}'"]
    for title, domain in zip(titles, domains, strict=True):
        shown = "numeric" if domain is None else "{" + ",".join(map(quoted, domain)) + "}"
        lines.append(f"@attribute {quoted(title)} {shown}")
    lines.append("@data")
    for row in rows:
        fields = [repr(v) if d is None else quoted(d[v]) for v, d in zip(row, domains, strict=True)]
        shown = [f"{j} {text}" for j, text in enumerate(fields) if row[j] != 0] if sparse else fields
        lines.append("{" + ",".join(shown) + "}" if sparse else ",".join(shown))
    path = tmp_path / "random.arff"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    raw = read(path)
    assert raw.label_names == titles[:labels]
    assert raw.Y.tolist() == [list(row[:labels]) for row in rows]
    expected = []
    for row in rows:
        values = []
        for value, domain in zip(row[labels:], kinds, strict=True):
            if domain is None:
                values.append(value)
            elif sorted(map(to_number, domain)) in ([0], [1], [0, 1]):
                values.append(to_number(domain[value]))
            else:
                values += [float(k == value) for k in range(len(domain))]
        expected.append(values)
    X = raw.X.toarray() if sp.issparse(raw.X) else raw.X
    np.testing.assert_array_equal(X, np.array(expected, dtype=float).reshape(len(rows), -1))
    assert len(raw.feature_names) == X.shape[1]


decimals = st.one_of(
    finite.map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9).map(
        str
    ),
    st.from_regex(r"\A[+-]?(\d{1,20}\.?\d{0,24}|\.\d{1,25})\Z").filter(str.isascii),
    st.from_regex(r"\A[-+.eE0-9 ]{0,6}\Z").filter(str.isascii),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(decimals, min_size=2, max_size=2), min_size=1, max_size=4))
def test_quick_numbers_are_those_of_python(rows):
    """The quick way returns exactly what ``float`` makes of each field, or refuses."""
    body = "\n".join(",".join(row) for row in rows).encode()
    quick = dense_numbers(body, 2)
    try:
        plain = [[float(text) for text in row] for row in rows]
    except ValueError:
        assert quick is None
        return
    if all(math.isfinite(v) for row in plain for v in row):
        assert quick is not None
        np.testing.assert_array_equal(quick, plain)
        entries = sparse_numbers("\n".join(f"{{0 {a.strip()},1 {b.strip()}}}" for a, b in rows).encode(), 2)
        np.testing.assert_array_equal(entries.toarray(), plain)
    else:
        assert quick is None


@settings(max_examples=400, deadline=None)
@given(st.text("{}0123 ,.-\n", max_size=24))
def test_quick_sparse_rows_are_those_of_the_careful_reader(body):
    header = parse_header(
        "@attribute l {0,1}\n" + "".join(f"@attribute a{j} numeric\n" for j in range(3)) + "@data\n",
        "p",
        Limits(),
    )
    quick = sparse_numbers(body.encode(), 4)
    if quick is None or not np.isin(quick.toarray()[:, 0], (0, 1)).all():
        return
    careful = parse_rows(body, 1, header.columns, np.array([0]), "p", Limits())
    np.testing.assert_array_equal(quick.toarray(), careful.toarray())
