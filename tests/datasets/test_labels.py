"""Labels as people write them: tags in a column, a row per item and tag, yes and no, a blank; JSON and UTF-16."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from helpers.own_files import saved
from helpers.readers_samples import content
from multilab.core.tags import split_tags
from multilab.datasets import Dataset, DatasetError, add_dataset, encoder_of, load, plan_reading, read
from multilab.datasets.reading import file_format

EXPECTED = [[0, 1], [1, 1], [0, 0], [1, 0]]  # blue, red
X = [[1.5], [2.5], [3.5], [4.5]]


def write(folder, name, text, **options):
    path = folder / name
    path.write_text(text, **options)
    return path


@pytest.mark.parametrize(
    "cells",
    [
        ["red", "red|blue", "", "blue"],
        ["red", "blue | red", "?", "blue|blue"],
        ["red", "red, blue", "", "blue"],
        ["red", "red; blue", "", "blue"],
        ["['red']", "['red', 'blue']", "[]", "['blue']"],
        ['["red"]', '["red", "blue"]', "[]", '["blue"]'],
    ],
)
@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "parquet", "xlsx"])
def test_tags_of_a_column(cells, kind, tmp_path):
    frame = pd.DataFrame({"x": np.ravel(X), "tags": cells})
    raw = content(saved(frame, tmp_path, kind), tags="tags")
    assert raw.label_names == ["blue", "red"]
    assert raw.Y.tolist() == EXPECTED
    assert raw.Y.dtype == np.uint8
    assert raw.X.to_numpy().tolist() == X
    assert raw.feature_names == ["x"]
    assert "labels are the 2 tags of 'tags'; 1 rows have none" in raw.notes


def test_numbers_as_tags(tmp_path):
    path = write(tmp_path, "set.csv", 'x,ids\n1,"2,17"\n2,17\n3,\n')
    raw = read(path, tags="ids")
    assert (raw.label_names, raw.Y.tolist()) == (["17", "2"], [[1, 1], [1, 0], [0, 0]])
    frame = pd.DataFrame({"x": [1, 2, 3], "ids": [2, 17, None]})
    assert Dataset.from_frame(frame, tags="ids").label_names == ["17", "2"]


@pytest.mark.parametrize("kind", ["json", "parquet", "frame"])
def test_lists_as_tags(kind, tmp_path):
    frame = pd.DataFrame({"x": np.ravel(X), "tags": [["red"], ["red", "blue"], [], ["blue"]]})
    if kind == "frame":
        data = Dataset.from_frame(frame, tags="tags")
    elif kind == "json":
        path = write(tmp_path, "set.json", frame.to_json(orient="records"))
        data = read(path, tags="tags")
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / "set.parquet")
        data = read(tmp_path / "set.parquet", tags="tags")
    assert (data.label_names, data.Y.tolist(), data.X.to_numpy().tolist()) == (["blue", "red"], EXPECTED, X)


def test_two_separators_or_blanks_are_asked_for(tmp_path):
    path = write(tmp_path, "set.csv", 'x,tags\n1,"a, b|c"\n2,c\n')
    with pytest.raises(DatasetError, match=r"separator='\|' \(2 tags.* or separator=',' \(3 tags"):
        read(path, tags="tags")
    assert read(path, tags="tags", separator="|").label_names == ["a, b", "c"]
    path = write(tmp_path, "set.csv", "x,tags\n1,science fiction\n2,war\n")
    with pytest.raises(DatasetError, match=r"separator=' ' .*3 tags.* separator='\|' .*2 tags"):
        read(path, tags="tags")
    assert read(path, tags="tags", separator=" ").label_names == ["fiction", "science", "war"]
    assert read(path, tags="tags", separator="|").label_names == ["science fiction", "war"]


def test_rare_tags_are_left_out_and_listed(tmp_path):
    path = write(tmp_path, "set.csv", "x,tags\n1,a|b\n2,a\n3,a|c\n4,c\n")
    raw = content(path, tags="tags", min_count=2)
    assert (raw.label_names, raw.Y.tolist()) == (["a", "c"], [[1, 0], [1, 0], [1, 1], [0, 1]])
    assert any("b (1)" in note for note in raw.notes)
    with pytest.raises(DatasetError, match="no tag has 9 rows or more"):
        read(path, tags="tags", min_count=9)


def test_a_row_for_each_item_and_tag(tmp_path):
    path = write(tmp_path, "set.csv", "film,year,genre\nb,1999,war\na,2001,drama\nb,1999,drama\nc,1990,\nb,1999,war\n")
    raw = read(path, item="film", tag="genre")
    assert raw.X["year"].tolist() == [1999, 2001, 1990]  # in the order of their first rows
    assert (raw.label_names, raw.Y.tolist()) == (["drama", "war"], [[1, 1], [1, 0], [0, 0]])
    path = write(tmp_path, "set.csv", "film,year,genre\nb,1999,war\nb,2001,drama\n")
    with pytest.raises(DatasetError, match=r"rows 1 and 2 .* film='b'.* 'year'"):
        read(path, item="film", tag="genre")
    counted = write(tmp_path, "set.csv", "film,x,genre\na,1,war\na,1,war\nb,2,drama\nc,3,war\n")
    assert read(counted, item="film", tag="genre", min_count=2).label_names == ["war"]  # of two films, in three rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": "tag"}, "'tag' is not a column; did you mean 'tags'"),
        ({"tags": "tags", "label_columns": "x"}, "give one of the two"),
        ({"item": "x"}, "item and tag belong together"),
        ({"tags": "tags", "item": "x", "tag": "tags"}, "exclude each other"),
        ({"label_columns": "x", "min_count": 2}, "need tags"),
        ({"tags": "tags", "min_count": 0}, "at least 1"),
        ({"tags": "tags", "separator": ""}, "must not be empty"),
        ({"tags": "tags", "drop": "x"}, "no feature is left"),
    ],
)
def test_wrong_options(options, message, tmp_path):
    path = write(tmp_path, "set.csv", "x,tags\n1,a|b\n2,a\n")
    with pytest.raises(DatasetError, match=message):
        read(path, **options)


def test_a_text_beside_tags_is_a_feature(tmp_path):
    path = write(tmp_path, "set.csv", "x,town,tags\n1,Rome,a|b\n2,Lima,a\n")
    data = read(path, tags="tags")
    assert data.feature_names == ["x", "town"]
    assert data.X["town"].tolist() == ["Rome", "Lima"]


@pytest.mark.parametrize(
    ("cells", "values", "note"),
    [
        (["yes", "no", "yes", "no"], [1, 0, 1, 0], "'yes' and 'no' read as 1 and 0"),
        (["Y", "N", "Y", "Y"], [1, 0, 1, 1], "'y' and 'n' read as 1 and 0"),
        (["-1", "1", "1", "-1"], [0, 1, 1, 0], "'1' and '-1' read as 1 and 0"),
        (["x", "", "x", ""], [1, 0, 1, 0], "'x' read as 1, a blank means no"),
        (["1", "", "1", ""], [1, 0, 1, 0], "a blank means no"),
        (["true", "", "true", ""], [1, 0, 1, 0], "a blank means no"),
        (["true", "false", "true", "false"], [1, 0, 1, 0], None),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "json", "xlsx", "parquet", "frame"])
def test_values_of_labels(cells, values, note, kind, tmp_path):
    frame = pd.DataFrame({"x": np.ravel(X), "y": cells})
    if kind == "frame":
        raw = Dataset.from_frame(frame, labels=["y"])
    else:
        raw = content(saved(frame, tmp_path, kind), labels_last=1)
        assert raw.notes == (() if note is None else (f"labels 'y': {note}",))
    assert raw.Y.ravel().tolist() == values


def test_a_blank_beside_zeros_is_not_observed(tmp_path):
    path = write(tmp_path, "set.csv", "x,a,b\n1,1,1\n2,0,\n3,,1\n4,no,\n")
    with pytest.raises(DatasetError, match="label 'a' is missing"):
        read(path, labels_last=2)
    raw = read(path, labels_last=2, missing_labels="keep")
    assert raw.Y.tolist() == [[1, 1], [0, 0], [-1, 1], [0, 0]]
    plan = plan_reading(path, labels_last=2)
    assert [label.unobserved for label in plan.profile.labels] == [1, 0]


def test_without_an_option_a_proposal_is_made_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "wide.csv", "x,tag_a,tag_b\n1,0,1\n2,1,0\n")
    with pytest.raises(DatasetError, match=r"which columns are labels\? Perhaps label_prefix=tag_ \(2 columns\) or"):
        add_dataset("wide.csv")
    write(tmp_path, "long.csv", "x,genres\n1,a|b\n2,b|c\n")
    with pytest.raises(DatasetError, match=r"which columns are labels\? Perhaps tags=genres"):
        add_dataset("long.csv")
    write(tmp_path, "plain.csv", "x,z\n1.5,2\n2,3\n")
    with pytest.raises(DatasetError, match="give tags=COLUMN"):
        add_dataset("plain.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.csv", "plain.csv", "wide.csv"]


def test_a_table_of_tags_is_added_and_loaded_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"x": i, "genres": ["war"] if i % 2 else ["war", "drama"]} for i in range(8)]
    write(tmp_path, "films.jsonl", "\n".join(map(json.dumps, rows)))
    added = add_dataset("films.jsonl", tags="genres")
    assert added.card.reader.given() == {"tags": "genres", "columns": {"x": "number"}}
    data = load("films")
    assert (data.label_names, data.Y.sum(axis=0).tolist()) == (["drama", "war"], [4, 8])
    encoder = encoder_of("films")
    rows = encoder.read("films.jsonl")
    assert rows[["drama", "war"]].to_numpy().tolist() == data.Y.tolist()
    assert encoder.encode(rows).X.tolist() == data.X.to_numpy().tolist()
    write(tmp_path, "new.json", '[{"x": 2}]')
    assert list(encoder.read("new.json")) == ["x"]


def test_utf_16_with_tabs_in_a_txt_file(tmp_path):
    path = write(tmp_path, "set.txt", "town\tx\tl\nKöln\t1\tyes\nŁódź\t2\tno\n", encoding="utf-16")
    raw = content(path, labels_last=1)
    assert raw.X["town"].tolist() == ["Köln", "Łódź"]
    assert raw.Y.tolist() == [[1], [0]]
    assert "the text is UTF-16" in raw.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "expected an object, got 1"),
        ('{"x": 1}\n{"x": {"y": 2}}\n', r":2: 'x' is an object"),
        ('{"x": 1}\n{"x": \n', r":2: not readable as JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"x": 1e999, "l": 1}\n{"x": 2, "l": 0}', "infinite value"),
        ('{"x": [1, 2], "l": 1}\n', "the cell is a list"),
        ("\n\n", "the table has no row"),
    ],
)
def test_wrong_json(text, message, tmp_path):
    with pytest.raises(DatasetError, match=message):
        read(write(tmp_path, "set.jsonl", text), label_columns="l")


def test_json_keys_that_objects_lack_are_missing(tmp_path):
    path = write(tmp_path, "set.json", '[{"x": 1, "l": true}, {"z": null, "l": false}, {"x": 3, "z": 2.5, "l": true}]')
    raw = read(path, label_columns=["l"])
    np.testing.assert_array_equal(raw.X, [[1, np.nan], [np.nan, np.nan], [3, 2.5]])
    assert raw.Y.ravel().tolist() == [1, 0, 1]


def test_what_is_no_list_is_a_tag():
    assert split_tags("[draft]", None) == ["[draft]"]
    assert split_tags("[[1]]", None) == ["[[1]]"]
    assert split_tags("[" * 9999, None) == ["[" * 9999]


def test_empty_columns_without_a_name_at_the_end(tmp_path):
    path = write(tmp_path, "set.csv", "x,l,,\n1,0,,\n2,1, ,\n")
    raw = content(path, label_columns="l")
    assert (raw.feature_names, raw.X.to_numpy().tolist()) == (["x"], [[1], [2]])
    assert any("the last 2 columns" in note for note in raw.notes)
    raw = read(write(tmp_path, "set.csv", "x,l,,\n1,0,,5\n2,1,,7\n"), label_columns="l")
    assert (raw.feature_names, raw.X.to_numpy().tolist()) == (["x", "c4"], [[1, 5], [2, 7]])


def sheet(path, rows):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_excel(tmp_path):
    path = sheet(tmp_path / "set.xlsx", [["x", "town", "l", None], [1.5, "Köln", True], [], [None, "Rome", False]])
    raw = read(path, label_columns="l")
    assert raw.feature_names == ["x", "town"]
    np.testing.assert_array_equal(raw.X["x"], [1.5, np.nan])
    assert raw.X["town"].tolist() == ["Köln", "Rome"]
    assert raw.Y.ravel().tolist() == [1, 0]


def test_wrong_excel(tmp_path):
    for rows, message in (
        ([["x", "l"]], "has no row"),
        ([["x", None, "l"], [1, 2, 0]], "column 2 has no name"),
        ([["x", "x", "l"], [1, 2, 0]], "'x' occurs twice"),
        ([["x", "l"], [1, 3]], "expected 0 or 1"),
    ):
        with pytest.raises(DatasetError, match=message):
            read(sheet(tmp_path / "set.xlsx", rows), label_columns="l")
    broken = (tmp_path / "set.xlsx").read_bytes()
    (tmp_path / "set.xlsx").write_bytes(broken[: len(broken) // 2])
    with pytest.raises(DatasetError, match="not a readable Excel file"):
        read(tmp_path / "set.xlsx", label_columns="l")


@pytest.mark.parametrize("row", ['{"a": "x\\uD800"}', '{"a\\ud800": 1}', '{"a": ["x", "\\udc00y"]}'])
def test_half_of_a_character_in_json_is_refused_with_its_row(tmp_path, row):
    path = tmp_path / "set.json"
    path.write_text(f'[{{"a": "\\ud83d\\ude00", "l": 1}}, {row[:-1]}, "l": 0}}]')
    for reads in (read, add_dataset):
        with pytest.raises(DatasetError) as caught:
            reads(path, label_columns="l")
        assert caught.value.line == 2
    path.write_text('[{"a": "\\ud83d\\ude00", "l": 1}, {"a": "b", "l": 0}]')
    assert read(path, label_columns="l").X["a"].tolist() == ["\U0001f600", "b"]


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/workbook.xml", "[Content_Types].xml", "_rels/.rels"])
@pytest.mark.parametrize(
    ("encoding", "before"), [("utf-16", ""), ("utf-8", f"<!--{'x' * 5000}-->"), ("iso-8859-1", f"<?x {'x' * 70_000}?>")]
)
def test_a_document_type_in_a_part_of_an_excel_file_is_refused_wherever_it_hides(tmp_path, part, encoding, before):
    whole = sheet(tmp_path / "whole.xlsx", [["x", "l"], [1.5, 0], [2.5, 1]])
    for document_type in ("", "<!DOCTYPE x [<!ENTITY a 'aaaa'>]>"):
        with zipfile.ZipFile(whole) as source, zipfile.ZipFile(tmp_path / "set.xlsx", "w") as archive:
            for name in source.namelist():
                content = source.read(name)
                if name == part:
                    xml = content.decode().partition("?>")[2] if content.startswith(b"<?xml") else content.decode()
                    head = f'<?xml version="1.0" encoding="{encoding}"?>'
                    content = f"{head}{before}{document_type}{xml}".encode(encoding)
                archive.writestr(name, content)
        if document_type:
            with pytest.raises(DatasetError, match="document type"):
                read(tmp_path / "set.xlsx", label_columns="l")
        else:
            assert read(tmp_path / "set.xlsx", label_columns="l").Y.ravel().tolist() == [0, 1]


def test_excel_bombs(tmp_path):
    pytest.importorskip("openpyxl")
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * (1 << 26))
    with pytest.raises(DatasetError, match="out of proportion"):
        read(tmp_path / "bomb.xlsx", labels_last=1)
    with zipfile.ZipFile(tmp_path / "laughs.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
    with pytest.raises(DatasetError, match="a document type is refused"):
        read(tmp_path / "laughs.xlsx", labels_last=1)
    path = sheet(tmp_path / "wide.xlsx", [["x", "l"], [1, 0]])
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(path)
    for row in range(3, 3000):
        book.active.cell(row, 16384, 1)
    book.save(path)
    with pytest.raises(DatasetError, match="out of proportion"):
        read(path, labels_last=1)


@pytest.mark.slow
def test_a_row_number_beyond_those_of_excel(tmp_path):
    pytest.importorskip("openpyxl")
    path, changed = tmp_path / "set.xlsx", tmp_path / "changed.xlsx"
    pd.DataFrame({"x": range(9), "y": [0, 1, 0] * 3}).to_excel(path, index=False)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(changed, "w") as other:
        for name in archive.namelist():
            other.writestr(name, archive.read(name).replace(b'<row r="5"', b'<row r="99999999999999"'))
    with pytest.raises(DatasetError, match="1,048,576"):
        read(changed, labels_last=1)


def sheet_of(folder, rows):
    """Return an Excel file whose sheet has the names x and l, and rows of XML."""
    with zipfile.ZipFile(sheet(folder / "whole.xlsx", [["x", "l"]])) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    with zipfile.ZipFile(folder / "set.xlsx", "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part.replace(b"</sheetData>", f"{rows}</sheetData>".encode()))
    return folder / "set.xlsx"


@pytest.mark.parametrize(
    "rows",
    [
        '<row r="3"><c r="A3"><v>2</v></c></row><row r="2"><c r="A2"><v>1</v></c></row>',
        '<row r="2"><c r="A2"><v>1</v></c></row><row r="2"><c r="A2"><v>2</v></c></row>',
        '<row r="2"><c r="B2"><v>1</v></c><c r="A2"><v>1</v></c></row>',
        '<row r="2"><c r="A2"><v>1</v></c><c r="B2"><v>1</v></c><c r="B2"><v>0</v></c></row>',
        '<row r="2"><c r="A7"><v>1</v></c><c r="B2"><v>1</v></c></row>',
    ],
)
def test_rows_and_cells_of_a_sheet_that_are_not_in_order_are_refused(tmp_path, rows):
    """openpyxl leaves them out."""
    with pytest.raises(DatasetError, match="out of order"):
        read(sheet_of(tmp_path, rows), label_columns="l")


def test_rows_and_cells_of_a_sheet_without_places_or_with_gaps(tmp_path):
    rows = (
        '<row r="3"><c r="A3"><v>4</v></c><c r="B3"><v>0</v></c></row><row><c><v>5</v></c><c r="B4"><v>1</v></c></row>'
    )
    raw = read(sheet_of(tmp_path, rows), label_columns="l")
    assert (raw.X["x"].tolist(), raw.Y.tolist()) == ([4, 5], [[0], [1]])


def test_what_openpyxl_warns_of_is_no_matter_of_the_reader(tmp_path, recwarn):
    """A date that no calendar has is an error value in its cell."""
    from datetime import date

    path, changed = tmp_path / "set.xlsx", tmp_path / "changed.xlsx"
    sheet(path, [["day", "l"], [date(2024, 1, 31), 0], [date(2024, 2, 1), 1], [date(2024, 2, 2), 0]])
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(changed, "w") as other:
        for name in archive.namelist():
            other.writestr(name, archive.read(name).replace(b"<v>45323</v>", b"<v>-9999999</v>"))
    raw = content(changed, label_columns="l")
    assert raw.X["day"].tolist() == ["2024-01-31 00:00:00", "#VALUE!", "2024-02-02 00:00:00"]
    assert not recwarn.list


def test_a_name_that_occurs_twice_in_an_object_of_json(tmp_path):
    for rows, line in (('[{"x": 1, "l": 0, "x": 2}]', None), ('{"x": 1, "l": 0}\n{"x": 1, "x": 1, "l": 1}', 2)):
        with pytest.raises(DatasetError, match="'x' occurs twice") as caught:
            read(write(tmp_path, "set.json", rows), label_columns="l")
        assert caught.value.line == line


def test_identifiers_of_many_digits_in_json_stay_different(tmp_path):
    first, second = 2**53, 2**53 + 1  # the same as floats
    rows = [{"id": first, "x": 1, "tag": second}, {"id": second, "x": 2, "tag": first}, {"id": first, "x": 3}]
    path = write(tmp_path, "set.json", json.dumps(rows))
    raw = read(path, tags="tag", groups="id")
    assert raw.groups.tolist() == [0, 1, 0]
    assert raw.label_names == [str(first), str(second)]


@pytest.mark.parametrize("kind", ["csv", "json", "xlsx", "parquet", "frame"])
def test_numbers_as_values_of_labels(kind, tmp_path):
    frame = pd.DataFrame({"x": np.ravel(X), "sign": [-1, 1, 1, -1], "one": [1, None, 1, None], "both": [1, 0, 0, 1]})
    before = frame.copy()
    if kind == "frame":
        raw = Dataset.from_frame(frame, labels=["sign", "one", "both"])
    else:
        raw = content(saved(frame, tmp_path, kind), labels_last=3)
        assert raw.notes == ("labels 'sign': '1' and '-1' read as 1 and 0", "labels 'one': a blank means no")
    assert raw.Y.T.tolist() == [[0, 1, 1, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    pd.testing.assert_frame_equal(frame, before)


def test_a_cell_of_a_row_for_each_item_and_tag_is_one_tag(tmp_path):
    text = 'film,x,genre\na,1,"drama, romance"\na,1,science fiction\nb,2,war\n'
    path = write(tmp_path, "set.csv", text)
    assert read(path, item="film", tag="genre").label_names == ["drama, romance", "science fiction", "war"]
    split = read(path, item="film", tag="genre", separator=",").label_names
    assert split == ["drama", "romance", "science fiction", "war"]


def test_items_of_parquet_are_not_rounded(tmp_path):
    pytest.importorskip("pyarrow")
    items = [2**53, 2**53 + 1, 2**53]
    pd.DataFrame({"id": items, "x": [1, 1, 1], "tag": [7, 8, 9]}).to_parquet(tmp_path / "set.parquet")
    raw = read(tmp_path / "set.parquet", item="id", tag="tag")
    assert (raw.label_names, raw.Y.tolist()) == (["7", "8", "9"], [[1, 0, 1], [0, 1, 0]])


def test_a_tag_with_the_name_of_a_feature_is_refused(tmp_path):
    path = write(tmp_path, "set.csv", "war,x,tags\n7,1,war|drama\n8,2,drama\n")
    with pytest.raises(DatasetError, match="'war'"):
        read(path, tags="tags")
    assert read(path, tags="tags", drop="war").label_names == ["drama", "war"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1,2\t1:0.5 2:1\n", "svmlight"),
        ("0\t3:1\n", "svmlight"),
        ("2\t3\t2\n0\t0:1\n", "xc"),
        ("x\ty\n1\t0\n", "csv"),
        ("x\ttime:start\tl\n1\t2\t0\n", "csv"),
        ("1.5\t0\n", "csv"),
    ],
)
def test_tabs_in_a_txt_file_are_also_those_of_sparse_rows(text, kind, tmp_path):
    assert file_format(write(tmp_path, "set.txt", text)) == kind


def test_a_proposal_knows_all_values_of_labels(tmp_path):
    for cells, proposed in (
        ("Yes,No\n2,No,Yes", "label_prefix=y_"),
        ("x,\n2,,x", "label_prefix=y_"),
        ("-1,1\n2,1,-1", "label_prefix=y_"),
        ("7,8\n2,8,9", "Name them"),
    ):
        with pytest.raises(DatasetError, match=proposed):
            plan_reading(write(tmp_path, "set.csv", f"x,y_a,y_b\n1.5,{cells}\n3,{cells.partition(chr(10))[0]}\n"))


@pytest.mark.parametrize("kind", ["csv", "json", "xlsx", "parquet"])
def test_labels_of_new_rows_are_read_as_those_of_training(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {
        "x": [1.5, 2.5, 3.5, 4.5],
        "a": ["yes", "no", "no", "yes"],
        "b": [1, None, 1, None],
        "c": [-1, 1, 1, -1],
        "d": ["x", None, "x", "x"],
    }
    add_dataset(saved(pd.DataFrame(rows), tmp_path, kind), name="own", labels_last=4)
    assert encoder_of("own").read(f"set.{kind}")[["a", "b", "c", "d"]].to_numpy().tolist() == load("own").Y.tolist()


def test_a_blank_of_new_rows_is_not_observed_where_training_has_such_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    add_dataset(write(tmp_path, "own.csv", "x,l\n1,1\n2,0\n3,\n4,1\n"), labels_last=1)
    rows = encoder_of("own").read(write(tmp_path, "new.csv", "x,l\n5,1\n6,\n"))
    np.testing.assert_array_equal(rows["l"], [1, np.nan])


def test_tags_of_new_rows_are_split_as_those_of_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    add_dataset(write(tmp_path, "own.csv", "x,tags\n1,science fiction|war\n2,war\n3,war\n4,\n"), tags="tags")
    rows = encoder_of("own").read(write(tmp_path, "new.csv", 'x,tags\n5,science fiction\n6,"war, peace"\n7,war|new\n'))
    assert rows[["science fiction", "war"]].to_numpy().tolist() == [[1, 0], [0, 0], [0, 1]]


def test_numbers_of_parquet_are_tags_of_new_rows(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": [1, 2, 3, 4], "tag": [7, 8, None, 7]}).to_parquet("own.parquet")
    add_dataset("own.parquet", tags="tag")
    assert encoder_of("own").read("own.parquet")[["7", "8"]].to_numpy().tolist() == load("own").Y.tolist()
