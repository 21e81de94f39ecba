"""Tables with faults of the programs that wrote them: what is mended says so, what changes values is asked."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from helpers.readers_samples import content
from multilab.datasets import Dataset, DatasetError, DatasetWarning, FrameEncoder, add_dataset, load, plan_reading, read
from multilab.datasets.file_access import Limits
from multilab.datasets.kinds import Kind, kind_of
from multilab.datasets.reading import file_format
from multilab.datasets.table_encoder import encoder_of

N = 40


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_DATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


# ---- lines that do not fit the header ----

QUOTES = (
    'plot,year,l\n"a quiet film",1990,0\n"the 5" disk, so "loud" it is",1991,1\n"two, three",1992,1\n'
    '"unclosed 5"",1993,0\n"next",1994,1\n"last",1995,0\n'
)


def test_the_lines_with_quotes_in_quotes_are_left_out_on_request(folder):
    path = write(folder / "set.csv", QUOTES)
    with pytest.raises(DatasetError) as caught:
        read(path, label_columns="l", columns={"plot": "text", "year": "number"})
    assert caught.value.line == 3
    assert "on_bad_lines=skip" in caught.value.reason
    options = {"label_columns": "l", "columns": {"plot": "text", "year": "number"}, "on_bad_lines": "skip"}
    data = read(path, **options)
    assert data.X["year"].tolist() == [1990, 1992, 1995]  # that of 1994 is within the quotes of 1993
    assert data.X["plot"].tolist() == ["a quiet film", "two, three", "last"]
    assert data.Y.ravel().tolist() == [0, 1, 0]
    assert any("3, 5-6" in note for note in content(path, **options).notes)


def test_lines_with_too_many_or_too_few_fields(folder):
    path = write(folder / "set.csv", "a,b,l\n1,2,0\n1,2,3,0\n\n4,5,1\n6,7\n8,9,0\n10,11,1\n")
    data = read(path, label_columns="l", on_bad_lines="skip")
    assert data.X.to_numpy().tolist() == [[1, 2], [4, 5], [8, 9], [10, 11]]
    assert data.Y.ravel().tolist() == [0, 1, 0, 1]
    with pytest.raises(DatasetError) as caught:
        read(path, label_columns="l")
    assert caught.value.line == 3
    write(path, "a,b,l\n1,2,0\n1,2,3,0\n4,5,2\n1,2,0\n")  # the lines of later faults are those of the file
    with pytest.raises(DatasetError) as caught:
        read(path, label_columns="l", on_bad_lines="skip")
    assert caught.value.line == 4


def test_no_fragment_of_a_record_over_several_lines_is_taken_for_a_record(folder):
    head = 'plot,year,l\n"one\nline more",1990,0\n"good",1991,1\n'
    broken = '"a 5" disk\nand, so, on\nto the "end",1992,1\n'
    path = write(folder / "set.csv", head + broken + '"fine, too",1993,0\n"three\nlines\nhere",1994,1\n')
    data = read(path, label_columns="l", columns={"plot": "text", "year": "number"}, on_bad_lines="skip")
    assert data.X["year"].tolist() == [1990, 1991, 1993, 1994]


def test_bad_lines_are_scanned_once(folder):
    """Quotes that open again and again would be followed to the end of the file from each line."""
    path = write(folder / "set.csv", "a,b,l\n1,2,0\n" + 'x","\n' * 20_000)
    with pytest.raises(DatasetError):
        read(path, label_columns="l")
    assert read(path, label_columns="l", on_bad_lines="skip").X.to_numpy().tolist() == [[1, 2]]


def test_a_table_in_which_most_lines_do_not_fit_has_another_fault(folder):
    path = write(folder / "set.csv", "a,b,l\n" + "1,2,0,x\n" * 9 + "1,2,0\n")
    with pytest.raises(DatasetError) as caught:
        read(path, label_columns="l")
    assert "on_bad_lines" not in caught.value.reason


def test_the_choice_is_in_the_card_and_not_for_new_rows(folder):
    rows = [f"{i % 7},{i % 5},{i % 2}" for i in range(N)]
    write(folder / "set.csv", "\n".join(["a,b,l", *rows[:20], "1,2,3,4", *rows[20:]]) + "\n")
    added = add_dataset("set.csv", label_columns="l", on_bad_lines="skip")
    assert added.card.reader.on_bad_lines == "skip"
    assert load("set").X.shape == (N, 2)
    with pytest.raises(DatasetError) as caught:  # every new row gets its prediction
        encoder_of("set").read(write(folder / "new.csv", "a,b\n1,2\n1,2,3\n"))
    assert caught.value.line == 3


# ---- columns without a name at the end ----


def test_nearly_empty_last_columns_without_a_name_are_left_out(folder):
    rows = "".join(f"{i},{i % 2},{'x' if i == 4 else ''},\n" for i in range(N))
    added = add_dataset(write(folder / "set.csv", "a,l,,\n" + rows), label_columns="l")
    assert load("set").feature_names == ["a"]
    assert any("c3 (1 of 40 cells)" in note for note in added.plan.content["notes"])
    new = encoder_of("set").read(write(folder / "new.csv", "a,l,,\n7,,x,x\n"))  # however many cells new rows have
    assert sorted(new) == ["a", "l"]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_other_last_columns_are_called_by_their_position(kind, folder):
    table = [["a", "l", None, None], *([i, i % 2, i * 2, i % 3 or None] for i in range(N))]
    new = [["a", "l", None, None], [7, None, None, None]]
    moved = [["a", None, None], [7, 8, 9]]
    for name, rows in (("set", table), ("new", new), ("moved", moved)):
        if kind == "xlsx":
            book = pytest.importorskip("openpyxl").Workbook()
            for row in rows:
                book.active.append(row)
            book.save(folder / f"{name}.xlsx")
        else:
            lines = (",".join("" if cell is None else str(cell) for cell in row) for row in rows)
            write(folder / f"{name}.csv", "\n".join(lines) + "\n")
    added = add_dataset(f"set.{kind}", label_columns="l")
    assert list(added.card.reader.columns) == ["a", "c3", "c4"]
    frame = load("set").X
    assert frame["c3"].tolist() == [2 * i for i in range(N)]
    assert frame["c4"].isna().sum() == len(range(0, N, 3))
    encoder = encoder_of("set")
    if kind == "csv":  # in a sheet, columns without any cell do not exist
        assert encoder.read(folder / f"new.{kind}")[["a", "c3"]].isna().to_numpy().tolist() == [[False, True]]
    assert list(encoder.read(folder / f"moved.{kind}")) == ["a"]  # its third column is the fourth of training


def test_a_first_line_of_data_with_blanks_is_no_header(folder):
    with pytest.raises(DatasetError) as caught:
        read(write(folder / "set.csv", "1.5,2,,\n2.5,3,1,1\n3.5,1,0,0\n"), labels_last=1)
    assert caught.value.line == 1


# ---- an index of pandas ----


def untidy_frame():
    index = np.arange(N)[::-1]
    return pd.DataFrame({"__index_level_0__": index, "x": np.arange(N) % 7, "l": np.arange(N) % 2})


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_an_index_by_its_name_is_no_feature(kind, folder):
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pandas(untidy_frame()).replace_schema_metadata(None), "set.parquet")
    elif kind == "csv":
        untidy_frame().to_csv("set.csv", index=False)
    else:
        untidy_frame().to_json("set.json", orient="records")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)
        added = add_dataset(f"set.{kind}", label_columns="l")
        data = load("set")
    assert data.feature_names == ["x"]
    assert any("__index_level_0__" in note for note in added.plan.content["notes"])


def test_an_index_in_a_frame_is_no_feature():
    data = Dataset.from_frame(untidy_frame(), labels="l")
    assert data.feature_names == ["x"]


def test_a_name_may_begin_with_an_underscore(folder):
    rows = "".join(f"{i % 7},{i % 3},{i % 2}\n" for i in range(N))
    write(folder / "set.csv", "_id,x,l\n" + rows)
    assert add_dataset("set.csv", label_columns="l").card.reader.columns == {"_id": "number", "x": "number"}


# ---- lists of words ----

WORDS = [["oil", "fan", "fan", f"part{i}"] for i in range(N)]


def test_lists_of_words_are_a_text(folder):
    rows = pd.DataFrame({"words": WORDS, "tags": [["noise"] if i % 2 else ["noise", "leak"] for i in range(N)]})
    rows.loc[3, "tags"] = None
    rows.to_json("set.json", orient="records", lines=True)
    with pytest.raises(DatasetError) as caught:
        plan_reading("set.json")
    assert "tags=tags" in caught.value.reason
    plan = plan_reading("set.json", tags="tags")
    assert plan.reader["columns"] == {"words": "text"}
    data = Dataset.from_frame(rows, tags="tags")
    assert {name: str(kind) for name, kind in data.kinds.items()} == {"words": "text"}
    assert data.label_names == ["leak", "noise"]


def test_a_pipeline_takes_lists_of_words():
    rows = pd.DataFrame({"words": WORDS, "x": range(N)})
    encoder = FrameEncoder().fit(rows)
    names = encoder.get_feature_names_out().tolist()
    assert {"words=oil", "words=fan", "x"} <= set(names)
    new = pd.DataFrame({"words": [["oil"], {"fan"}, np.array(["oil", "fan"])], "x": 0})
    X = encoder.transform(new)[:, [names.index("words=oil"), names.index("words=fan")]]
    assert (X.toarray() > 0).tolist() == [[True, False], [False, True], [True, True]]


@pytest.mark.parametrize("cell", [{"a": 1}, [["a"]], [{"a": 1}], [1, 2]])
def test_other_nested_cells_are_refused(cell):
    with pytest.raises(DatasetError) as caught:
        Dataset.from_frame(pd.DataFrame({"a": ["x", cell], "l": [0, 1]}), labels="l")
    assert "row 2" in str(caught.value)


# ---- files of an unknown extension ----

TABS = "".join(f"{35 + i % 5},{i % 10}\t{1 + i % 3},5\t{'yes' if i % 2 else 'no'}\n" for i in range(N))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_table_of_an_unknown_extension_is_recognised(encoding, folder):
    write(folder / "set.data", TABS, encoding)
    added = add_dataset("set.data", labels_last=1, header=False)
    assert added.card.reader.format == "csv"
    assert added.card.reader.columns == {"c1": "number:comma", "c2": "number:comma"}
    assert any("tabs" in note for note in added.plan.content["notes"])
    X = load("set").X
    assert Kind.parse("number:comma").numbers(X["c1"].astype(str))[0][:3].tolist() == [35.0, 36.1, 37.2]
    encoded = encoder_of("set").encode(encoder_of("set").read(write(folder / "new.data", TABS, encoding))).X
    np.testing.assert_array_equal(encoded[:2], [[35.0, 1.5], [36.1, 2.5]])


def test_a_first_line_of_decimal_commas_is_data(folder):
    with pytest.raises(DatasetError) as caught:
        read(write(folder / "set.data", "36,7\t1,5\t0\n35,1\t2,5\t1\n"), labels_last=1)
    assert caught.value.line == 1
    assert "header=false" in caught.value.reason


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a;b\n1;2\n3;4\n", "csv"),
        ("% remark\n@RELATION r\n@attribute a numeric\n", "arff"),
        ('{"a": 1}\n{"a": 2}\n', "json"),
    ],
)
def test_formats_by_content(text, kind, folder):
    assert file_format(write(folder / "set.unknown", text)) == kind


@pytest.mark.parametrize("text", ["one\ntwo\nthree\n", "a,b\n1\n2,3,4\n", "a,b\n\0\n", ""])
def test_other_content_is_not_guessed(text, folder):
    with pytest.raises(DatasetError):
        file_format(write(folder / "set.unknown", text))


# ---- words for missing numbers ----


def test_a_word_for_a_missing_number_is_missing(folder):
    cells = ["Unknown" if i == 7 else "none" if i % 9 == 4 else str(i % 24) for i in range(N)]
    write(folder / "set.csv", "x,l\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells)))
    added = add_dataset("set.csv", label_columns="l")
    assert added.card.reader.columns == {"x": "number"}
    assert any("'x'" in note for note in added.plan.content["notes"])
    values, unreadable = Kind("number").numbers(cells)
    assert np.isnan(values).sum() == unreadable.sum() == cells.count("none") + 1


def test_words_that_may_change_a_value_are_asked(folder):
    rows = "".join(f"{'Free' if i % 9 == 4 else i % 24},{i % 2}\n" for i in range(N))
    with pytest.raises(DatasetError) as caught:
        plan_reading(write(folder / "set.csv", "x,l\n" + rows), label_columns="l")
    assert "columns=x=number" in caught.value.reason


def test_a_missing_word_among_names_is_a_name():
    assert kind_of(["red", "Unknown", "blue"], [5, 3, 2]) == (Kind("category"),)
    assert kind_of(["1", "2", "Unknown"], [1, 1, 9]) == (Kind("category"),)
    assert kind_of(["12 min", "90 min", "unknown"], [4, 5, 1]) == (Kind("number", unit="min"),)
    assert kind_of(["1,050", "3,100", "Unknown"], [1, 1, 1]) == (Kind("number", "point"), Kind("number", "comma"))


# ---- labels ----


def test_too_many_last_columns_name_what_would_be_a_feature(folder):
    path = write(folder / "set.csv", "id,a,l,m\n" + "".join(f"{i},{i % 3},{i % 2},1\n" for i in range(9)))
    with pytest.raises(DatasetError) as caught:
        read(path, labels_last=3, drop="id")
    assert "'a'" in caught.value.reason
    assert read(path, labels_last=2, drop="id").feature_names == ["a"]


def test_separators_are_proposed_with_the_tags_they_make(folder):
    rows = "".join(f"{i},{'brand sites' if i % 2 else 'social media'}\n" for i in range(N))
    with pytest.raises(DatasetError) as caught:
        plan_reading(write(folder / "set.csv", "x,tags\n" + rows), tags="tags")
    assert "4 tags, 20 rows each" in caught.value.reason
    assert "2 tags, 20 rows each" in caught.value.reason


def test_too_many_tags_come_with_a_count_that_fits(folder):
    rows = "".join(f"{i % 7},a|b{i}\n" if i % 2 else f"{i % 7},c{i}\n" for i in range(N))
    path, limits = write(folder / "set.csv", "x,tags\n" + rows), Limits(max_cells=4 * N)
    with pytest.raises(DatasetError) as caught:
        read(path, tags="tags", limits=limits)
    assert "min_count=2" in caught.value.reason
    assert read(path, tags="tags", min_count=2, limits=limits).label_names == ["a"]


# ---- the same command again ----


def test_the_same_file_and_options_are_no_second_dataset(folder):
    write(folder / "set.csv", "a,b,l\n" + "".join(f"{i % 7},{i % 5},{i % 2}\n" for i in range(N)))
    first = add_dataset("set.csv", label_columns="l")
    card = first.card.location.stat().st_mtime_ns
    again = add_dataset("set.csv", label_columns="l")
    assert again.unchanged
    assert not first.unchanged
    assert again.paths == first.paths
    assert again.card.location.stat().st_mtime_ns == card
    for other in ({"drop": "b"}, {"reference": True}):
        with pytest.raises(DatasetError):
            add_dataset("set.csv", label_columns="l", **other)
    with (folder / "set.csv").open("a") as stream:
        stream.write("1,1,1\n")
    with pytest.raises(DatasetError):
        add_dataset("set.csv", label_columns="l")
    assert not add_dataset("set.csv", label_columns="l", force=True).unchanged
