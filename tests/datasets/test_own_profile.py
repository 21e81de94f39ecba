"""Profile and plan of a file of one's own: what is noticed, what is chosen, what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from multilab.datasets import DatasetError, plan_reading, profile_table, read, read_frames
from multilab.datasets.frame_reading import RawTable


def table(**columns):
    frame = pd.DataFrame(columns)
    return RawTable(frame.drop(columns=["y", "z"]), frame[["y", "z"]].astype(np.uint8), ())


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
    leaks = profile_table(RawTable(frame[["n_tag_rock", "brocktag"]], frame[["tag_rock"]].astype(np.uint8), ())).leaks
    assert leaks == {"n_tag_rock": "its name holds that of the label 'tag_rock'"}


def test_duplicate_rows_and_those_with_other_labels():
    profile = profile_table(table(a=[1, 1, 1, 2, np.nan, np.nan], t=pd.Categorical(list("xxxx") + [None] * 2), **Y))
    assert (profile.duplicates, profile.conflicts) == (3, 3)  # rows 2 and 3 repeat the first, row 6 the fifth
    same = {"y": [1, 1, 0], "z": [0, 0, 0]}
    assert profile_table(table(a=[1, 1, 2], **same)).conflicts == 0


def test_identifiers_and_free_text(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("id,remark,size,y\n" + "".join(f"{i + 7},remark {i},{i % 5},{i % 2}\n" for i in range(30)))
    profile = profile_table(read_frames(path, labels_last=1))
    assert profile.identifiers == ["id"]
    assert profile.free_text == {"remark": 30}
    assert profile.text == {}


def test_a_plan_follows_the_defaults_and_says_what_was_done(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("colour,size,tag_a,tag_b\nred,1,1,0\nblue,,0,1\n,3,1,1\n")
    plan = plan_reading(path, label_columns="tag_*")
    assert plan.reader == {"label_columns": ["tag_*"], "text": "one_hot", "missing": "impute"}
    assert any("imputed" in note for note in plan.content["notes"])
    raw = read(path, **plan.reader)
    assert raw.label_names == ["tag_a", "tag_b"]
    assert raw.X.tolist() == [[0, 1, 1], [1, 0, 2], [1, 0, 3]]
    assert plan_reading(path, label_prefix="tag_", missing="keep").content["missing_values"] == 2
    for option in ({"missing": "error"}, {"text": "error"}):
        with pytest.raises(DatasetError, match="leave the"):
            plan_reading(path, label_prefix="tag_", **option)


def test_free_text_is_refused_with_what_leaves_it_out(tmp_path):
    path = tmp_path / "set.csv"
    rows = "".join(f"k{i},n{i},,{i % 5},{'ab'[i % 2]},{i % 2}\n" for i in range(30))
    path.write_text(f"key,note,none,size,kind,y\n{rows}")
    with pytest.raises(DatasetError, match=r"drop=size,none,key,note, or text=drop") as caught:
        plan_reading(path, labels_last=1, drop="size")
    assert "free text in key (30 different values), note (30 different values)" in str(caught.value)
    assert plan_reading(path, labels_last=1, drop="size,none,key,note").content["columns"] == 2
    plan = plan_reading(path, labels_last=1, text="drop")
    assert plan.reader == {"labels_last": 1, "drop": ["none", "kind", "key", "note"]}
    assert plan.content["columns"] == 1
    plan = plan_reading(path, labels_last=1, text="one_hot")  # as requested
    assert plan.content["columns"] == 63
    assert plan.profile.empty == plan.reader["drop"] == ["none"]


def test_names_that_are_too_many_for_a_message(tmp_path):
    path = tmp_path / "set.csv"
    names = [f"free_text_{i}" for i in range(20)]
    rows = "".join(",".join([f"{name} {i}" for name in names] + [str(i), str(i % 2)]) + "\n" for i in range(30))
    path.write_text(",".join(names) + f",size,y\n{rows}")
    with pytest.raises(DatasetError, match="and 15 more: leave it out by text=drop"):
        plan_reading(path, labels_last=1)
