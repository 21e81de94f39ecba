"""Profile and plan of a file of one's own: what is noticed, what is chosen, what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from helpers.readers_samples import content
from multilab.datasets import Dataset, DatasetError, plan_reading, profile_table, read
from multilab.datasets.raw_data import RawData


def data_of(features, labels):
    return RawData(features, labels.to_numpy(), list(features), list(labels), features.shape[1])


def table(**columns):
    frame = pd.DataFrame(columns)
    return data_of(frame.drop(columns=["y", "z"]), frame[["y", "z"]].astype(np.uint8))


Y = {"y": [1, 0, 1, 0, 1, 0], "z": [0, 0, 1, 1, 1, 0]}


def test_kinds_of_columns():
    text = pd.Categorical(["a", None, "b", "a", "b", "b"])
    one = pd.Categorical(["a"] * 6)
    profile = profile_table(
        table(f=[0.5, 1, 2, 3, 4, 5], i=[3, 1, 2, 3, 4, 5], b=[0, 0, 0, 1, 1, np.nan], t=text, c=[2] * 6, o=one, **Y)
    )
    assert profile.kinds == {"numbers": 1, "integers": 1, "0/1": 1, "text": 2, "constant": 1}
    assert profile.text == {"t": 2, "o": 1}
    assert profile.missing == {"b": 1, "t": 1}
    assert profile.constant == ["c", "o"]
    assert [(label.name, label.positive, label.negative) for label in profile.labels] == [("y", 3, 3), ("z", 3, 3)]


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("copy", Y["y"], "its values determine the label 'y'"),
        ("opposite", [5 - 2 * v for v in Y["z"]], "its values determine the label 'z'"),
        ("as_text", pd.Categorical([str(v) for v in Y["z"]]), "its values determine the label 'z'"),
        ("Z", [1.5, 2, 3, 4, 5, 6], "it has the name of the label 'z'"),
    ],
)
def test_leaks(name, values, reason):
    assert profile_table(table(**{name: values, "other": [1, 2, 3, 1, 2, 3]}, **Y)).leaks == {name: reason}


def test_a_leak_by_a_part_of_the_name():
    frame = pd.DataFrame({"n_tag_rock": [0.5, 2.5, 1], "brocktag": [1.5, 2, 1], "tag_rock": [1, 0, 1]})
    leaks = profile_table(data_of(frame[["n_tag_rock", "brocktag"]], frame[["tag_rock"]].astype(np.uint8))).leaks
    assert leaks == {"n_tag_rock": "its name holds that of the label 'tag_rock'"}


def test_duplicate_rows_and_those_with_other_labels():
    profile = profile_table(table(a=[1, 1, 1, 2, np.nan, np.nan], t=pd.Categorical(list("xxxx") + [None] * 2), **Y))
    assert (profile.duplicates, profile.conflicts) == (3, 3)  # rows 2 and 3 repeat the first, row 6 the fifth
    same = {"y": [1, 1, 0], "z": [0, 0, 0]}
    assert profile_table(table(a=[1, 1, 2], **same)).conflicts == 0


def test_identifiers_and_free_text(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("id,remark,size,y\n" + "".join(f"{i + 7},remark {i},{i % 5},{i % 2}\n" for i in range(30)))
    profile = profile_table(content(path, labels_last=1))
    assert profile.identifiers == ["id"]
    assert profile.free_text == {"remark": 30}
    assert profile.text == {}


def test_identifiers_of_letters_and_categories_that_may_be_free_text(tmp_path):
    path = tmp_path / "set.csv"
    rows = (f"T-{k},order {k % 60} late,{'ab'[k % 2]},{k % 2}\n" for k in range(200))
    path.write_text("id,subject,kind,y\n" + "".join(rows))
    profile = profile_table(content(path, labels_last=1))
    assert profile.identifiers == ["id"]
    assert profile.phrases == {"subject": 60}


def test_a_plan_follows_the_defaults_and_says_what_was_done(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("colour,size,tag_a,tag_b\nred,1,1,0\nblue,,0,1\n,3,1,1\n")
    plan = plan_reading(path, label_columns="tag_*")
    assert plan.reader == {"label_columns": ["tag_*"], "columns": {"colour": "category", "size": "number"}}
    assert plan.content["missing_values"] == 2
    data = read(path, **plan.reader)
    assert data.label_names == ["tag_a", "tag_b"]
    assert data.X["colour"].astype(object).fillna("").tolist() == ["red", "blue", ""]
    np.testing.assert_array_equal(data.X["size"], [1, np.nan, 3])
    assert plan_reading(path, label_columns="tag_*", columns={"size": "category"}).reader["columns"] == {
        "colour": "category",
        "size": "category",
    }


def test_empty_columns_are_left_out_and_tables_without_a_feature_or_a_label_are_refused(tmp_path):
    path = tmp_path / "set.csv"
    rows = [f"k{i},,{i % 5},{i % 2},0,1" for i in range(30)]
    path.write_text("\n".join(["key,none,size,y,never,always", *rows]) + "\n")
    plan = plan_reading(path, labels_last=3, drop="size")
    assert plan.reader == {"labels_last": 3, "drop": ["size", "none"], "columns": {"key": "category"}}
    assert (plan.profile.empty, plan.content["columns"], plan.content["missing_values"]) == (["none"], 1, 0)
    assert any("'none'" in note for note in plan.content["notes"])
    with pytest.raises(DatasetError, match="no feature is left"):
        plan_reading(path, labels_last=3, drop="key,size")
    with pytest.raises(DatasetError, match="no label differs"):
        plan_reading(path, label_columns="never,always")


def test_columns_that_are_too_many_for_a_message(tmp_path):
    path = tmp_path / "set.csv"
    names = [f"day_{i}" for i in range(20)]
    rows = [*names, "y"], ["1/2/2024"] * 20 + ["0"], ["3/4/2024"] * 20 + ["1"]
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    with pytest.raises(DatasetError, match=r"'day_0' .*and 17 more") as caught:
        plan_reading(path, labels_last=1)
    assert "day_19" not in str(caught.value)


DISGUISES = {
    "decimal commas": (["32,2", "4,7", "16,65"], "number:comma", [32.2, 4.7, 16.65]),
    "commas of thousands": (["1,234", "9,600", "12,000.5"], "number:point", [1234, 9600, 12000.5]),
    "percentages": (["39%", "58 %", "-50%"], "number in %", [39, 58, -50]),
    "currencies": (["$10.50", "$3", "$1,200.00"], "number:point in $", [10.5, 3, 1200]),
    "units": (["90 min", "1 min", "2.5 min"], "number in min", [90, 1, 2.5]),
    "two units": (["90 min", "1 Season", "2 Seasons"], "category", None),
    "ages": (["060Y", "058Y", "011M"], "category", None),
}


@pytest.mark.parametrize("case", DISGUISES)
def test_numbers_written_as_text(case, tmp_path):
    values, kind, numbers = DISGUISES[case]
    path = tmp_path / "set.csv"
    path.write_text("x;size;y;z\n" + "".join(f"{values[i % 3]};{i}.5;{i % 2};{i // 2 % 2}\n" for i in range(24)))
    plan = plan_reading(path, labels_last=2)
    assert plan.reader["columns"] == {"x": kind, "size": "number"}
    data = read(path, **plan.reader)
    assert data.X["x"].tolist()[:3] == values
    if numbers is not None:
        found, unreadable = data.kinds["x"].numbers(values)
        assert (found.tolist(), unreadable.any()) == (numbers, False)
    frame = pd.DataFrame({"x": values * 4, "y": [0, 1] * 6})
    assert str(Dataset.from_frame(frame, ["y"]).kinds["x"]) == kind


@pytest.mark.parametrize(
    "values", [["1st", "2nd", "3rd"], ["1.2.3", "1.2.10", "2.0.1"], ["10-20", "20-30", "30-40"], ["a1", "a2", "b1"]]
)
def test_text_with_digits_is_text(values, tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("x,y,z\n" + "".join(f"{values[i % 3]},{i % 2},{i // 2 % 2}\n" for i in range(24)))
    assert plan_reading(path, labels_last=2).profile.text == {"x": 3}


def test_points_that_may_separate_thousands(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("price;x;y;z\n800;1.25;1;0\n9.600;2;0;1\n6.500;3;1;1\n90;4;0;0\n")
    with pytest.raises(DatasetError, match=r"800 and 9\.600\) by columns=price=number or price=number:comma"):
        plan_reading(path, labels_last=2)
    plan = plan_reading(path, labels_last=2, columns={"price": "number:comma"})
    assert plan.reader["columns"] == {"price": "number:comma", "x": "number"}
    data = read(path, **plan.reader)
    assert data.kinds["price"].numbers(data.X["price"].tolist())[0].tolist() == [800, 9600, 6500, 90]
    assert read(path, labels_last=2, decimal=",").X["price"].tolist() == [800, 9600, 6500, 90]
    assert plan_reading(path, labels_last=2, decimal=".").reader["decimal"] == "."
    raw = content(path, labels_last=2)
    assert raw.X["price"].tolist() == [800, 9.6, 6.5, 90]
    assert any("'price'" in note for note in raw.notes)
    for cells in ("0.123\n0.450\n0.700", "1.234\n5.670\n9.000", "800\n9.6\n6.5", "1800\n9.600\n6.500"):
        path.write_text("p;y\n" + "\n".join(f"{cell};{k % 2}" for k, cell in enumerate(cells.split())) + "\n")
        assert content(path, labels_last=1).notes == ()


def test_dates_are_dates(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("when,x,y,z\n" + "".join(f"2020-01-{i + 1:02},{i}.5,{i % 2},{i // 2 % 2}\n" for i in range(24)))
    assert plan_reading(path, labels_last=2).reader["columns"] == {"when": "date:year", "x": "number"}


def test_columns_that_sum_the_labels_up():
    rng = np.random.default_rng(0)
    labels = pd.DataFrame((rng.random((300, 3)) < 0.1).astype(np.uint8), columns=["a", "b", "c"])
    some, count = labels.any(axis=1).to_numpy(), labels.sum(axis=1).to_numpy()
    nearly, half = some.copy(), some.copy()
    nearly[np.flatnonzero(some)[:3]] = False
    half[np.flatnonzero(some)[::2]] = False
    features = pd.DataFrame({"some": some * 1.0, "none": 1 - some, "n": count, "nearly": nearly * 2, "half": half * 1})
    features["text"] = pd.Categorical(np.where(some, "yes", "no"))
    assert profile_table(data_of(features, labels)).leaks == {
        "some": "it says whether there is any label in every row",
        "none": "it says whether there is any label in every row",
        "n": "it is the number of labels in every row",
        "nearly": "it says whether there is any label in 99.0% of the rows",
        "text": "it says whether there is any label in every row",
    }
    hidden = labels.astype(np.int8)
    hidden.iloc[::10, 0] = -1
    assert "n" in profile_table(data_of(features, hidden)).leaks
    independent = pd.DataFrame({"x": rng.integers(0, 2, 300), "k": rng.integers(0, 4, 300)})
    assert profile_table(data_of(independent, labels)).leaks == {}


def test_missing_labels_are_kept_and_tables_called_txt_are_read(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("x,y,z\n1.5,,1\n2.5,1,0\n3.5,0,0\n")
    plan = plan_reading(path, labels_last=2)
    assert plan.reader["missing_labels"] == "keep"
    assert [label.unobserved for label in plan.profile.labels] == [1, 0]
    path = tmp_path / "set.txt"
    path.write_text("x\ty\tz\n1.5\t0\t1\n2.5\t1\t0\n")
    assert plan_reading(path, labels_last=2).content["labels"] == 2
    assert read(path, labels_last=2).X["x"].tolist() == [1.5, 2.5]
