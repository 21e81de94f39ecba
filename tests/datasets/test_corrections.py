"""Corrected labels: what a table changes, what it must fit, and the card that names it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from multilab.datasets import (
    Correction,
    DatasetError,
    add_corrected,
    add_dataset,
    card,
    load,
    own_dir,
    read_corrections,
    register_file,
)
from multilab.datasets.corrections import corrected

ROWS = [("120", 1, 0), ("60", 0, 1), ("90", 1, 1), ("75", 0, 0), ("80", 1, 0)]
TABLE = "row,label,given,corrected\n1,happy,1,0\n4,sad,0,1\n5,sad,0,?\n3,sad,1,1\n2,sad,1,\n"


def text(rows) -> str:
    return "tempo,happy,sad\n" + "".join(f"{tempo},{happy},{sad}\n" for tempo, happy, sad in rows)


@pytest.fixture
def songs(tmp_path, monkeypatch):
    """Add a small dataset, and write a table of corrections."""
    monkeypatch.chdir(tmp_path)
    Path("songs.csv").write_text(text(ROWS))
    Path("right.csv").write_text(TABLE)
    return add_dataset("songs.csv", label_columns=["happy", "sad"]).card.name


def test_a_table_changes_the_labels_that_it_names(songs):
    made, table = add_corrected(songs, "right.csv")
    data = load(made.name)
    assert data.Y.tolist() == [[0, 0], [0, 1], [1, 1], [0, 1], [1, -1]]
    assert data.Y.dtype == np.int8
    assert load(songs).Y.tolist() == [[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]]
    assert set(read_corrections(table)) == {
        Correction(1, "happy", 1, 0),
        Correction(4, "sad", 0, 1),
        Correction(5, "sad", 0, -1),
    }


def test_corrected_data_are_those_of_a_file_without_errors(songs):
    rows = [*ROWS[:1], ("60", 1, 1), *ROWS[2:]]
    Path("without-errors.csv").write_text(text(rows))
    right = load(add_dataset("without-errors.csv", label_columns=["happy", "sad"]).card.name)
    made, _ = add_corrected(songs, [Correction(2, "happy", 0, 1)])
    assert load(made.name).digest == right.digest


def test_corrections_of_a_corrected_set_are_added_to_its_own(songs):
    first, _ = add_corrected(songs, "right.csv")
    later = [Correction(1, "happy", 0, 1), Correction(5, "sad", -1, 1), Correction(2, "sad", 1, 0)]
    second, table = add_corrected(first.name, later, name="again")
    assert load(second.name).Y.tolist() == [[1, 0], [0, 0], [1, 1], [0, 1], [1, 1]]
    assert load(second.name).Y.dtype == np.uint8
    assert set(read_corrections(table)) == {
        Correction(4, "sad", 0, 1),
        Correction(5, "sad", 0, 1),
        Correction(2, "sad", 1, 0),
    }
    assert second.title.count("corrected") == 1
    with pytest.raises(DatasetError):
        add_corrected(second.name, [Correction(*one[:2], one[3], one[2]) for one in read_corrections(table)])


def test_a_registered_file_and_a_file_of_names_are_found_from_the_new_card(songs):
    Path("names.txt").write_text("happy\nsad\n")
    Path("others.csv").write_text(text(ROWS[::-1]))
    name = register_file("others.csv", label_columns="names.txt").name
    made, _ = add_corrected(name, [Correction(5, "happy", 1, 0)], name="others-right")
    assert load(made.name).Y.tolist() == [[1, 0], [0, 0], [1, 1], [0, 1], [0, 0]]


def test_a_generated_set_and_a_set_of_tags_are_corrected(songs):
    made, _ = add_corrected("genes-toy", [Correction(300, "division", int(load("genes-toy").Y[299, 0]), -1)])
    assert (load(made.name).Y == -1).sum() == 1
    Path("tagged.csv").write_text("tempo,moods\n120,happy|sad\n60,sad\n90,\n")
    name = add_dataset("tagged.csv", tags="moods").card.name
    made, _ = add_corrected(name, [Correction(3, "happy", 0, 1)])
    assert load(made.name).Y.tolist() == [[1, 1], [0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("row,label,given\n1,happy,1\n", 1),
        ("row,label,given,corrected\n0,happy,1,0\n", 2),
        ("row,label,given,corrected\none,happy,1,0\n", 2),
        ("row,label,given,corrected\n1,happy,1,\n6,happy,1,0\n", 3),
        ("row,label,given,corrected\n1,angry,1,0\n", 2),
        ("row,label,given,corrected\n1,happy,0,1\n", 2),
        ("row,label,given,corrected\n1,happy,1,0\n1,happy,1,?\n", 3),
        ("row,label,given,corrected\n1,happy,1,2\n", 2),
        ("row,label,given,corrected\n1,happy,1,no\n", 2),
        ("row,label,given,corrected\n1,happy,yes,0\n", 2),
        ("row,label,given,corrected\n1,happy\n2,sad,1,nobody knows\n", 3),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_its_line(songs, table, line):
    Path("wrong.csv").write_text(table)
    with pytest.raises(DatasetError) as refused:
        add_corrected(songs, "wrong.csv")
    assert (refused.value.path, refused.value.line) == ("wrong.csv", line)
    assert len(str(refused.value).splitlines()) == 1
    assert [path.name for path in own_dir().glob("*.yaml")] == ["songs.yaml"]


@pytest.mark.parametrize("table", ["row,label,given,corrected\n", "row,label,given,corrected\n3,sad,1,1\n2,sad,1,\n"])
def test_a_table_without_a_change_is_refused(songs, table):
    Path("empty.csv").write_text(table)
    with pytest.raises(DatasetError):
        add_corrected(songs, "empty.csv")


def test_semicolons_of_a_spreadsheet_and_further_columns_are_read(songs):
    lines = TABLE.replace(",", ";").splitlines()
    Path("sheet.csv").write_text("\ufeff" + "".join(f"{line};note\r\n" for line in lines), "utf-8")
    assert read_corrections("sheet.csv").keys() == read_corrections("right.csv").keys()


def test_a_name_that_is_taken_needs_force_and_the_origin_is_never_replaced(songs):
    add_corrected(songs, "right.csv", name="right")
    with pytest.raises(DatasetError):
        add_corrected(songs, "right.csv", name="right")
    add_corrected(songs, [Correction(1, "sad", 0, 1)], name="right", force=True)
    assert load("right").Y.tolist()[0] == [1, 1]
    with pytest.raises(DatasetError):
        add_corrected(songs, "right.csv", name=songs, force=True)


def test_a_changed_table_is_noticed(songs):
    made, table = add_corrected(songs, "right.csv")
    table.write_text(table.read_text().replace("5,sad,0,?", "5,sad,0,1"))
    with pytest.raises(DatasetError):
        load(made.name)
    assert card(made.name).name == made.name


def test_sparse_labels_are_corrected_and_have_no_unobserved_ones():
    Y = sp.csr_array(np.array([[1, 0, 0], [0, 1, 1]], dtype=np.uint8))
    right = corrected(Y, "abc", {Correction(1, "a", 1, 0): 2, Correction(1, "c", 0, 1): 3})
    assert sp.issparse(right)
    assert right.dtype == np.uint8
    assert right.nnz == 3
    assert right.toarray().tolist() == [[0, 0, 1], [0, 1, 1]]
    with pytest.raises(DatasetError):
        corrected(Y, "abc", {Correction(1, "a", 1, -1): 2})
