"""Files as pandas, R, OpenML and LIBSVM write them: index columns, text for truth values, missing values, text."""

from __future__ import annotations

import io
import lzma
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from helpers.readers_samples import content
from multilab.datasets import DatasetError, DatasetWarning, check, read


@pytest.fixture
def write(tmp_path):
    def _write(content: str | bytes, name: str) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


def refused(reason: str, path: Path, **options) -> None:
    with pytest.raises(DatasetError) as caught:
        read(path, **options)
    assert str(caught.value).startswith(str(path))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def table(n: int = 12) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    numbers = {"width": rng.normal(size=n).round(3), "count": rng.integers(0, 5, n)}
    return pd.DataFrame({**numbers, "l_a": rng.integers(0, 2, n), "l_b": rng.integers(0, 2, n)})


# ---- index columns ----


@pytest.mark.parametrize(
    ("index", "dropped"),
    [
        (pd.Index([i * i for i in range(12)]), "__index_level_0__"),
        (pd.Index([f"row {i}" for i in range(12)]), "__index_level_0__"),
        (pd.Index([i * i for i in range(12)], name="patient"), "patient"),
        (pd.RangeIndex(12), None),
    ],
)
def test_the_index_of_a_parquet_file_is_no_feature(index, dropped, tmp_path):
    pytest.importorskip("pyarrow")
    frame = table().set_index(index)
    frame.to_parquet(tmp_path / "set.parquet")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        raw = content(tmp_path / "set.parquet", label_prefix="l_")
    assert raw.feature_names == ["width", "count"]
    np.testing.assert_array_equal(raw.X, frame[["width", "count"]])
    messages = [str(one.message) for one in caught if one.category is DatasetWarning]
    assert len(messages) == len(raw.notes) == (dropped is not None)
    if dropped is not None:
        assert f"'{dropped}'" in raw.notes[0]
        assert raw.notes[0] in messages[0]
        assert check(tmp_path / "set.parquet", labels_last=2)["notes"] == list(raw.notes)  # the index comes last


def test_metadata_that_pandas_did_not_write_is_ignored(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = pa.table({"x.y": [1, 2], "x": [3, 4], "l": [0, 1]})
    for metadata in (b"no JSON", b"[1]", b'{"index_columns": 3}', b'{"index_columns": [{"kind": "range"}, 7, "z"]}'):
        parquet.write_table(columns.replace_schema_metadata({b"pandas": metadata}), tmp_path / "set.parquet")
        raw = content(tmp_path / "set.parquet", labels_last=1)
        assert raw.X.to_numpy().tolist() == [[1, 3], [2, 4]]
        assert raw.notes == ()
    data = read(tmp_path / "set.parquet", labels_last=1, drop="x.y")
    assert (data.X.to_numpy().tolist(), data.feature_names) == ([[3], [4]], ["x"])


@pytest.mark.parametrize("index", [range(100, 112), [f"row {i}" for i in range(12)]])
def test_a_first_column_without_a_name_is_an_index(index, write):
    frame = table().set_index(pd.Index(index))
    path = write(frame.to_csv(), "set.csv")
    with pytest.warns(DatasetWarning, match="the first column has no name: read as an index and left out"):
        raw = read(path, label_prefix="l_")
    np.testing.assert_array_equal(raw.X, frame[["width", "count"]])
    np.testing.assert_array_equal(raw.Y, frame[["l_a", "l_b"]])
    path = write(frame[["l_a", "l_b", "width", "count"]].to_csv(), "set.csv")
    with pytest.warns(DatasetWarning):
        assert read(path, labels_first=2).label_names == ["l_a", "l_b"]  # the index is not counted
    refused("column 1 has no name", write('""\n1\n', "set.csv"), labels_first=1)
    refused("column 2 has no name", write(",,x,l\n1,2,3,0\n", "set.csv"), labels_last=1)


# ---- a file without a line of names ----

ROWS = "1.5,red,0,1\n2.5,blue,1,0\n3.5,red,1,1\n4.5,blue,0,0\n"


@pytest.mark.parametrize(
    "text",
    [
        "1.288,6.449,0,1\n0.066,4.235,1,1\n-1.092,5.031,0,0\n",
        ROWS,  # text that occurs below, too
        ROWS.replace(",", ";"),
        "1.5,,0,1\n2.5,3,1,0\n",
        "0,1,2.5,7\n1,0,1.5,2\n",
    ],
)
def test_a_file_without_names_is_refused_and_read_when_told_so(text, write):
    path = write(text, "set.csv")
    for options in ({"labels_last": 2}, {"label_columns": ["0", "1"]}):
        refused("header=false", path, **options)
    first = text.startswith("0")
    raw = read(path, header=False, **{"labels_first" if first else "labels_last": 2})
    assert len(raw.X) == text.count("\n")
    assert raw.label_names == (["c1", "c2"] if first else ["c3", "c4"])
    assert raw.Y[0].tolist() == [0, 1]
    assert raw.feature_names[0] == ("c3" if first else "c1")


@pytest.mark.parametrize("names", ["0,1,2,3", "1,2,3,4", ",0,1,2", "x,1,0,a", "10,1,20,0.5"])
def test_names_that_are_numbers(names, write):
    """Numbers that count the columns, as pandas writes them, are names; other numbers among names are, too."""
    path = write(f"{names}\n5,6,0,1\n7,8,1,0\n9,1,1,1\n", "set.csv")
    if names == "10,1,20,0.5":
        refused("the first line is data, not names of columns: 10, 1, 20, 0.5", path, labels_last=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)
        raw = read(path, labels_last=2, header=True if names == "10,1,20,0.5" else None)
    assert raw.label_names == names.split(",")[2:]
    assert len(raw.X) == 3


def test_a_repeated_name_that_is_a_label_value_hints_at_the_option(write):
    refused(
        "column '0' occurs twice; if the first line is data, header=false",
        write("a b,0,0\nc d,1,0\n", "set.csv"),
        labels_last=2,
    )
    with pytest.raises(DatasetError, match=r"column 'a' occurs twice$"):
        read(write("a,a,y\n1,2,0\n", "set.csv"), labels_last=1)


# ---- encodings ----


def test_single_bad_bytes_in_a_file_of_utf8_are_kept_as_such_and_their_lines_named(write):
    rows = "city,lab_a,lab_b\nKöln,0,1\nŁódź,1,0\nKöln,1,1\n".encode()
    path = write(rows + b"M\xe1laga,0,0\n", "set.csv")
    cities = ["Köln", "Łódź", "Köln", "M\N{REPLACEMENT CHARACTER}laga"]
    raw = content(path, labels_last=2)
    assert raw.X["city"].tolist() == cities
    assert "bytes that are not UTF-8 were read as an unknown character: line 5" in raw.notes
    mostly_wrong = write(rows + b"M\xe1laga,0,0\n" * 5, "wrong.csv")
    with pytest.raises(
        DatasetError, match=r"wrong\.csv:5: byte 0xe1 is not UTF-8.* 5 other .*=utf-8-replace.*=latin-1$"
    ):
        read(mostly_wrong, labels_last=2)
    with pytest.raises(DatasetError, match=r"set\.csv:5: byte 0xe1 is not utf-8"):
        read(path, labels_last=2, encoding="utf-8")
    assert read(path, labels_last=2, encoding="utf-8-replace").X["city"].tolist() == cities
    assert read(path, labels_last=2, encoding="latin-1").X["city"].tolist()[0] == "KÃ¶ln"


def test_windows_text_keeps_its_characters(write):
    rows = "price €,“x”,lab_a,lab_b\nKöln,1,0,1\nMálaga,2,1,0\n"
    raw = content(write(rows.encode("cp1252"), "set.csv"), labels_last=2)
    assert raw.feature_names == ["price €", "“x”"]
    assert raw.X["price €"].tolist() == ["Köln", "Málaga"]
    assert "the text is not UTF-8: read as Windows-1252 (cp1252)" in raw.notes
    refused("byte 0x81 is neither UTF-8 nor Windows-1252", write(b"\x81,l,m\n1,0,1\n2,1,0\n", "set.csv"), labels_last=2)
    arff = "@relation r\n@attribute c {Köln,Bonn}\n@attribute l {0,1}\n@data\nKöln,1\nBonn,0\n".encode("cp1252")
    raw = content(write(arff, "set.arff"), labels_last=1)
    assert raw.X["c"].tolist() == ["Köln", "Bonn"]
    assert raw.notes == ("the text is not UTF-8: read as Windows-1252 (cp1252)",)


@pytest.mark.parametrize("encoding", ["utf-16", "cp1251", "gb18030"])
def test_other_encodings_are_read_when_named(encoding, write):
    text = {"utf-16": "Łódź", "cp1251": "Омск", "gb18030": "北京"}[encoding]
    path = write(f"city,l,m\n{text},0,1\nRome,1,0\n".encode(encoding), "set.csv")
    assert read(path, labels_last=2, encoding=encoding).X["city"].tolist() == [text, "Rome"]
    refused("encoding must be one of", path, labels_last=2, encoding="zip")
    refused("the format 'mat' has no option encoding", write(b"x", "set.mat"), encoding="cp1252")


# ---- numbers in disguise ----


def test_decimal_commas_and_points_of_thousands(write):
    path = write("t;p;l;m\n32,2;800;1;0\n4,75;9.600;0;1\n-1,5;1.234.567;0;0\n;12;1;1\n", "set.csv")
    data = read(path, labels_last=2, decimal=",")
    np.testing.assert_array_equal(data.X, [[32.2, 800], [4.75, 9600], [-1.5, 1234567], [np.nan, 12]])
    path = write('t,p,l,m\n1.5,"1,234",1,0\n2.5,"9,600.5",0,1\n3.5,7,0,0\n', "set.csv")
    data = read(path, labels_last=2, decimal=".")
    assert data.X.to_numpy().tolist() == [[1.5, 1234], [2.5, 9600.5], [3.5, 7]]
    path = write("t,l,m\n0.001,1,0\n0.250,0,1\n", "set.csv")  # no thousands begin with 0: the option does not apply
    assert read(path, labels_last=2, decimal=",").X["t"].tolist() == [0.001, 0.25]
    for first in ("0.001", "1.25"):
        path = write(f"t;l;m\n1.250;1;0\n{first};0;1\n", "set.csv")
        refused(
            f":3: t: '{first}' has a decimal point, but with decimal=',' the point of '1.250'",
            path,
            labels_last=2,
            decimal=",",
        )
    text = write("t;l;m\n1,5 und 2;1;0\n1,5;0;1\nx;0;0\n", "set.csv")  # a column of text stays as it is
    assert read(text, labels_last=2, decimal=",").X["t"].tolist() == ["1,5 und 2", "1,5", "x"]


# ---- features that look like row identifiers ----


def test_columns_that_look_like_identifiers_are_reported(write):
    frame = table()
    rng = np.random.default_rng(1)
    frame.insert(0, "id", rng.permutation(12) * 7)  # by its name
    frame.insert(1, "patientId", 3 + np.arange(12)[::-1] // 4)
    frame.insert(2, "Unnamed: 0", rng.permutation(12) // 3 + 1)
    frame.insert(3, "permuted", rng.permutation(12) + 50)  # numbers the rows
    frame.insert(4, "rising", np.arange(12) ** 2)  # different, in order
    frame.insert(5, "falling", -np.arange(12.0))
    frame.insert(6, "half", np.arange(12) / 2)
    frame.insert(7, "different", rng.permutation(12) * 3 + rng.integers(0, 2, 12))
    frame.insert(8, "text_value id", [0, 0, 1, 2] * 3)  # a count
    frame.insert(9, "humid", np.arange(12) // 2)
    path = write(frame.to_csv(index=False), "set.csv")
    reported = check(path, label_prefix="l_")["id_like"]
    assert reported == ["id", "patientId", "Unnamed: 0", "permuted", "rising", "falling"]
    assert check(path, label_prefix="l_", drop=reported)["id_like"] == []
    assert check(write("x,l\n1,0\n2,1\n3,1\n", "set.csv"), labels_last=1)["id_like"] == []


def test_identifiers_of_sparse_and_nominal_features(write):
    rows = "".join(f"{i % 2} 1:{i} 2:{(i * 7) % 5 + 1} 3:{i / 4}\n" for i in range(12))
    assert check(write(rows, "set.svm"))["id_like"] == ["f1"]
    head = f"@relation r\n@attribute name {{{','.join(f'n{i}' for i in range(12))}}}\n@attribute x numeric\n"
    body = "".join(f"{{0 n{i},1 {i % 3},2 {i % 2}}}\n" for i in range(12))
    path = write(f"{head}@attribute l {{0,1}}\n@data\n{body}", "set.arff")
    assert check(path, labels_last=1)["id_like"] == ["name"]


# ---- labels ----


@pytest.mark.parametrize("values", ["{TRUE,FALSE}", "{FALSE, TRUE}", "{True,False}", "{false,true}", "{'FALSE'}"])
@pytest.mark.parametrize("sparse", [False, True])
def test_labels_of_openml(values, sparse, write):
    """Labels that are TRUE or FALSE in any order and case; what a sparse row leaves out is the first value."""
    texts = [text_value.strip().strip("'") for text_value in values[1:-1].split(",")]
    chosen = [texts[k % len(texts)] for k in range(4)]
    rows = [f"{k}.5,{text_value}" for k, text_value in enumerate(chosen)]
    if sparse:
        rows = [
            "{" + f"0 {k}.5" + ("" if text_value == texts[0] else f", 1 {text_value}") + "}"
            for k, text_value in enumerate(chosen)
        ]
    head = f"@relation r\n@attribute x numeric\n@attribute l {values}\n@data\n"
    raw = read(write(head + "\n".join(rows) + "\n", "set.arff"), label_columns="l")
    assert raw.Y[:, 0].tolist() == [int(text_value.lower() == "true") for text_value in chosen]
    assert sp.issparse(raw.X) == sparse


def test_labels_of_other_values_are_refused(write):
    for values in ("{yes,no}", "{TRUE,true}", "{TRUE,FALSE,MAYBE}", "{TRUE,0}"):
        text = f"@relation r\n@attribute x numeric\n@attribute l {values}\n@data\n1,{values[1:-1].split(',')[0]}\n"
        refused("expected 0 and 1, or true and false", write(text, "set.arff"), labels_last=1)
    refused("non-binary label: 'l' is maybe, expected 0 or 1", write("x,l\n1,yes\n2,maybe\n", "set.csv"), labels_last=1)


def test_true_and_false_in_csv(write):
    path = write("wet,x,rain,sun\nTrue,1,TRUE,false\nfalse,2,False,true\n,3,1,0\n", "set.csv")
    data = read(path, label_columns=["rain", "sun"])
    assert data.Y.tolist() == [[1, 0], [0, 1], [1, 0]]
    np.testing.assert_array_equal(data.X, [[1, 1], [0, 2], [np.nan, 3]])


# ---- formats and delimiters ----

SVMLIGHT = "1,3 1:0.5 4:-2\n2 2:1\n1 3:7\n"


@pytest.mark.parametrize("start", ["", "# written by a program\n\n"])
def test_svmlight_called_txt(start, write):
    expected = read(write(SVMLIGHT, "set.svm"))
    for path in (
        write(start + SVMLIGHT, "set.txt"),
        write(lzma.compress((start + SVMLIGHT).encode()), "set.txt.xz"),
    ):
        assert check(path)["format"] == "svmlight"
        raw = read(path, first_label=1)
        np.testing.assert_array_equal(raw.X.toarray(), expected.X.toarray())
        np.testing.assert_array_equal(raw.Y, expected.Y)
    assert check(write("1 1 1\n0 0:2\n", "set.txt"))["format"] == "xc"
    refused(":1: expected the numbers of rows", write("nothing of the kind\n", "set.txt"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('"wind, east";"sun; high";rain\n1,5;2;0\n', "set.csv"),
        ('"wind, east"\t"sun; high"\train\n1\t2\t0\n', "set.csv"),
        ('"wind, east","sun; high",rain\n1,2,0\n', "set.csv"),
        ('"wind, \n""east""";"sun; high";rain\n1;2;0\n', "set.csv"),
        ("wind, east\tsun; high\train\n1\t2\t0\n", "set.tsv"),
    ],
)
def test_delimiters_are_searched_outside_of_quotes(text, name, write):
    data = read(write(text, name), labels_last=1)
    assert data.feature_names[1] == "sun; high"
    assert data.label_names == ["rain"]
    first = data.X.iloc[0].astype(str).tolist()
    if "1,5" in text:  # a decimal comma is no delimiter
        assert first == ["1,5", "2.0"]
        assert data.kinds["wind, east"].numbers(["1,5"])[0].tolist() == [1.5]
    else:
        assert first == ["1.0", "2.0"]


# ---- missing values ----


@pytest.mark.parametrize("text_value", ["", "?", "NA", "NaN", "nan", "NAN", "null", "NULL"])
def test_texts_for_a_missing_value(text_value, write):
    path = write(f"x,y,l\n1,{text_value},1\n2,3,0\n", "set.csv")
    raw = content(path, labels_last=1)
    np.testing.assert_array_equal(raw.X, [[1, np.nan], [2, 3]])
    assert raw.missing_values == check(path, labels_last=1)["missing_values"] == 1
    refused(":2: label 'l' is missing", write(f"x,l\n1,{text_value}\n", "set.csv"), labels_last=1)
    if text_value.lower() in ("nan", "null"):
        arff = "@relation r\n@attribute x numeric\n@attribute l numeric\n@data\n"
        assert content(write(arff + f"{text_value},1\n2,0\n", "s.arff"), labels_last=1).missing_values == 1
        refused(":5: label 'l' is missing", write(arff + f"1,{text_value}\n", "s.arff"), labels_last=1)
        sparse = write(arff + f"{{0 2}}\n{{0 {text_value},1 1}}\n", "s.arff")  # a matrix has none
        refused("1 feature values are missing, the first in row 2, feature 'x'", sparse, labels_last=1)


def test_random_tables_are_read_as_pandas_reads_them(write):
    """Numbers, text for truth values, missing values and text, against pandas' own reader."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 30))
        frame = pd.DataFrame(
            {
                "number": rng.normal(size=n).round(4),
                "truth": rng.choice(["True", "False"], n),
                "town, or village": rng.choice(["Rome", "Lima", "Oslo; old", 'say "x"'], n),
                "label": rng.choice(["true", "FALSE", "0", "1"], n),
            }
        ).astype(object)
        for column in ("number", "town, or village"):
            frame.loc[rng.random(n) < 0.2, column] = rng.choice(["", "NA", "nan", "null"])
        frame.loc[0, "number"], frame.loc[0, "town, or village"] = 1.5, "Rome"
        delimiter = rng.choice([",", ";", "\t"])
        text = frame.to_csv(index=False, sep=delimiter)
        data = read(write(text, "set.csv"), labels_last=1)
        reference = pd.read_csv(io.StringIO(text), sep=delimiter).drop(columns="label")
        reference["truth"] = reference["truth"].astype(float)
        reference["town, or village"] = reference["town, or village"].astype("category")
        pd.testing.assert_frame_equal(data.X, reference, check_categorical=False)
        np.testing.assert_array_equal(data.Y[:, 0], frame["label"].isin(["true", "1"]))


# ---- text ----


def test_a_few_wrong_numbers_among_many_are_no_text(write):
    typed = write("x,l\n" + "".join(f"{i},{i % 2}\n" for i in range(9)) + "1.2.3,0\ninf,1\n", "set.csv")
    refused("'x' (mostly numbers, but '1.2.3' in row 10)", typed, labels_last=1)


def test_text_of_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    town = ["Rome", None, "Lima", "Rome"]
    dictionary = pa.DictionaryArray.from_arrays([2, None, 0, 2], ["Lima", "unused", "Rome"])
    for column in (pa.array(town), pa.array(town, pa.large_string()), dictionary):
        columns = pa.table({"town": column, "x": [1.0, 2, 3, 4], "l": [True, False, True, False]})
        parquet.write_table(columns, tmp_path / "set.parquet", row_group_size=3)
        path = tmp_path / "set.parquet"
        data = read(path, labels_last=1)
        assert data.X["town"].astype(object).where(data.X["town"].notna(), None).tolist() == town
        assert data.X["x"].tolist() == [1, 2, 3, 4]
        assert str(data.kinds["town"]) == "category"
        refused("row 1: non-binary label: 'town' is Rome, expected 0 or 1", path, label_columns="town")
    damaged = pa.array([b"Rome", b"\x83"]).view(pa.string())
    parquet.write_table(pa.table({"x": [1, 2], "town": damaged, "l": [0, 1]}), path)
    refused("column 'town' is damaged", path, labels_last=1)


def test_strings_of_parquet_stay_what_they_are(tmp_path):
    """As numbers, codes would lose zeros and last digits, and 9.600 its thousands."""
    pytest.importorskip("pyarrow")
    strings = {"zip": ["01234", "98765"], "price": ["800", "9.600"], "number": ["12345678901234567890", "1"]}
    pd.DataFrame({**strings, "l": [0, 1]}).to_parquet(tmp_path / "set.parquet")
    data = read(tmp_path / "set.parquet", label_columns="l")
    assert data.X.to_dict("list") == strings
    assert {name: str(kind) for name, kind in data.kinds.items()} == {
        "zip": "category",
        "price": "number:comma",
        "number": "category",
    }


# ---- columns left out ----


def test_columns_are_left_out_on_request(write):
    path = write("id,x,note,l\n1,1,a b,0\n3,0,,1\n", "set.csv")
    raw = content(path, labels_last=1, drop="id, note")
    assert (raw.X["x"].tolist(), raw.Y.tolist(), raw.feature_names) == ([1, 0], [[0], [1]], ["x"])
    assert raw.notes == ("left out as requested: 'id', 'note'",)
    assert read(path, labels_first=1, drop=["id", "note"]).label_names == ["x"]
    refused("drop: 'idx' is not a column; did you mean 'id'?", path, labels_last=1, drop=["idx"])
    refused("label 'id' is not a column", path, label_columns="id", drop=["id", "note"])
    refused("the format 'svmlight' has no option drop", write(SVMLIGHT, "set.svm"), drop=["f1"])


@pytest.mark.parametrize("relation", ["'r: -C 2'", "r"])
def test_attributes_are_left_out_on_request(relation, write):
    """Also those of a type that no method can use, in dense and sparse rows; -C counts all attributes."""
    head = f"@relation {relation}\n@attribute a {{0,1}}\n@attribute b {{0,1}}\n@attribute name string\n"
    head += "@attribute when date 'yyyy, mm'\n@attribute x numeric\n@data\n"
    dense = head + "1,0,'an, apple','2001, 02',5\n0,1,pear,?,6\n"
    sparse = head + "{0 1,2 'an, apple',4 5}\n{1 1,3 '2001, 02',4 6}\n"
    options = {} if "C" in relation else {"label_columns": "a,b"}
    refused("'name' is of type 'string'", write(dense, "set.arff"), **options)
    for text in (dense, sparse):
        raw = read(write(text, "set.arff"), drop=["name", "when"], **options)
        X = raw.X.toarray() if sp.issparse(raw.X) else raw.X
        assert (X.tolist(), raw.Y.tolist(), raw.feature_names) == ([[5], [6]], [[1, 0], [0, 1]], ["x"])
        one = read(write(text, "set.arff"), drop=["name", "when", "a"], **({"label_columns": "b"} if options else {}))
        assert (one.label_names, one.feature_names) == (["b"], ["x"])
