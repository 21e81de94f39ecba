"""Tables as people have them, from `multilab datasets add` with the one option that names the labels to the matrices.

Each case is a file, the options, the labels and their matrix, and the features as the encoder makes them of all rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from helpers.own_files import saved
from multilab.cli import main
from multilab.datasets import encoder_of, load


class Case(NamedTuple):
    file: str
    content: Any
    options: list[str]
    labels: list[str]
    Y: list[list[int]]
    features: list[str]
    X: list[list[float]]


AB = ["a", "b"]
Y = [[1, 1], [1, 0], [0, 0], [0, 1]]
N, COLUMN = [[1.5], [2.5], [3.5], [4.5]], ["n"]
TAGGED = {"n": np.ravel(N), "tags": [["a", "b"], ["a"], [], ["b"]]}
CASES = {
    "tags with pipes": Case("t.csv", "n,tags\n1.5,a|b\n2.5,a\n3.5,\n4.5,b\n", ["--tags", "tags"], AB, Y, COLUMN, N),
    "tags with commas": Case("t.csv", 'n,tags\n1.5,"a, b"\n2.5,a\n3.5,\n4.5,b\n', ["--tags", "tags"], AB, Y, COLUMN, N),
    "tags with semicolons": Case(
        "t.csv", "n,tags\n1.5,a; b\n2.5,a\n3.5,\n4.5,b\n", ["--tags", "tags"], AB, Y, COLUMN, N
    ),
    "lists of Python": Case(
        "t.csv", "n,tags\n1.5,\"['a', 'b']\"\n2.5,['a']\n3.5,[]\n4.5,['b']\n", ["--tags", "tags"], AB, Y, COLUMN, N
    ),
    "numbers as tags": Case(
        "t.csv", 'n,ids\n1.5,"17,2"\n2.5,17\n3.5,\n4.5,2\n', ["--tags", "ids"], ["17", "2"], Y, COLUMN, N
    ),
    "tags with blanks": Case(
        "t.tsv", "n\ttags\n1.5\tb a\n2.5\ta\n3.5\t\n4.5\tb\n", ["--tags", "tags", "--separator", " "], AB, Y, COLUMN, N
    ),
    "lists of Parquet": Case("t.parquet", TAGGED, ["--tags", "tags"], AB, Y, COLUMN, N),
    "lists of JSON": Case(
        "t.json", json.dumps(pd.DataFrame(TAGGED).to_dict("records")), ["--tags", "tags"], AB, Y, COLUMN, N
    ),
    "JSON lines": Case(
        "t.jsonl",
        '{"n": 1.5, "a": true, "b": true}\n{"n": 2.5, "a": true, "b": false}\n{"b": false, "a": false, "n": 3.5}\n'
        '{"n": 4.5, "a": false, "b": true}\n',
        ["--labels", "a,b"],
        AB,
        Y,
        COLUMN,
        N,
    ),
    "Excel": Case("t.xlsx", {**TAGGED, "tags": ["a|b", "a", None, "b"]}, ["--tags", "tags"], AB, Y, COLUMN, N),
    "long format": Case(
        "t.csv",
        "film,n,tag\nx,1.5,a\ny,2.5,a\nz,3.5,\nx,1.5,b\nu,4.5,b\n",
        ["--item", "film", "--tag", "tag"],
        AB,
        Y,
        COLUMN,
        N,
    ),
    "a blank is no": Case(
        "t.csv", "n,k_a,k_b\n1.5,1,1\n2.5,1,\n3.5,,\n4.5,,1\n", ["--label-prefix", "k_"], ["k_a", "k_b"], Y, COLUMN, N
    ),
    "a blank beside zeros is not observed": Case(
        "t.csv",
        "n,k_a,k_b\n1.5,1,1\n2.5,,0\n3.5,0,0\n4.5,0,\n",
        ["--label-prefix", "k_"],
        ["k_a", "k_b"],
        [[1, 1], [-1, 0], [0, 0], [0, -1]],
        COLUMN,
        N,
    ),
    "yes and no": Case(
        "t.csv", "a,n,b\nyes,1.5,Y\nYes,2.5,N\nno,3.5,N\nno,4.5,Y\n", ["--labels", "a,b"], AB, Y, COLUMN, N
    ),
    "1 and -1": Case("t.csv", "a,n,b\n1,1.5,1\n1,2.5,-1\n-1,3.5,-1\n-1,4.5,1\n", ["--labels", "a,b"], AB, Y, COLUMN, N),
    "label names with commas": Case(
        "t.csv",
        'n,"odor, fatty","odor, sweet"\n1.5,1,1\n2.5,1,0\n3.5,0,0\n4.5,0,1\n',
        ["--label-prefix", "odor"],
        ["odor, fatty", "odor, sweet"],
        Y,
        COLUMN,
        N,
    ),
    "no header": Case(
        "t.csv",
        "1.5,1,1\n2.5,1,0\n3.5,0,0\n4.5,0,1\n",
        ["--labels-last", "2", "--header", "false"],
        ["c2", "c3"],
        Y,
        ["c1"],
        N,
    ),
    "unnamed trailing columns": Case(
        "t.csv", "n,a,b,,\n1.5,1,1,,\n2.5,1,0,,\n3.5,0,0,,\n4.5,0,1,,\n", ["--labels", "a,b"], AB, Y, COLUMN, N
    ),
    "quoted line breaks": Case(
        "t.csv",
        'word,a,b\n"up\n""x""",1,1\n"up\n""x""",1,0\ndown,0,0\ndown,0,1\n',
        ["--labels", "a,b"],
        AB,
        Y,
        ["word=down", 'word=up\n"x"'],
        [[0, 1], [0, 1], [1, 0], [1, 0]],
    ),
    "UTF-16 with tabs and decimal commas": Case(
        "t.txt",
        "n\ta\tb\n1,5\tyes\tyes\n2,5\tyes\tno\n3,5\tno\tno\n4,5\tno\tyes\n".encode("utf-16"),
        ["--labels", "a,b"],
        AB,
        Y,
        COLUMN,
        N,
    ),
    "Windows-1252": Case(
        "t.csv",
        "stadt,a,b\nKöln,1,1\nKöln,1,0\nBonn,0,0\nBonn,0,1\n".encode("cp1252"),
        ["--labels", "a,b"],
        AB,
        Y,
        ["stadt=Bonn", "stadt=Köln"],
        [[0, 1], [0, 1], [1, 0], [1, 0]],
    ),
    "UTF-8 with a bad byte": Case(
        "t.csv",
        "stadt,a,b\nKöln,1,1\nKöln,1,0\nŁódź,0,0\n".encode() + b"M\xfcnchen,0,1\n",
        ["--labels", "a,b"],
        AB,
        Y,
        ["stadt=Köln", "stadt=M\ufffdnchen", "stadt=Łódź"],
        [[1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]],
    ),
    "numbers in disguise": Case(
        "t.csv",
        "temp;price;share;age;a;b\n32,2;800;39%;060Y;1;1\n4,7;9.600;58%;011M;1;0\n;6.500;n/a;012Y;0;0\n16,6;8.900;4%;013Y;0;1\n",
        ["--labels", "a,b", "--columns", "price=number:comma,age=category"],
        AB,
        Y,
        [
            "temp",
            "temp is missing",
            "price",
            "share",
            "share is missing",
            *(f"age={one}" for one in ("011M", "012Y", "013Y", "060Y")),
        ],
        [
            [32.2, 0, 800, 39, 0, 0, 0, 0, 1],
            [4.7, 0, 9600, 58, 0, 1, 0, 0, 0],
            [16.6, 1, 6500, 39, 1, 0, 1, 0, 0],
            [16.6, 0, 8900, 4, 0, 0, 0, 1, 0],
        ],
    ),
    "plain numbers": Case(
        "t.csv",
        "n;m;a;b\n1.5;800;1;1\n2.5;9600;1;0\n3.5;1;0;0\n4.5;2;0;1\n",
        ["--labels", "a,b"],
        AB,
        Y,
        ["n", "m"],
        [[1.5, 800], [2.5, 9600], [3.5, 1], [4.5, 2]],
    ),
    "dates and an identifier": Case(
        "t.csv",
        "zip,day,a,b\n01234,31.1.1970,1,1\n98765,1.1.1970,1,0\n01234,2.1.1970,0,0\n98765,1.1.1970,0,1\n",
        ["--labels", "a,b"],
        AB,
        Y,
        ["zip=01234", "zip=98765", *(f"day: {part}" for part in ("days", "year", "month", "day", "weekday", "hour"))],
        [
            [1, 0, 30, 1970, 1, 31, 5, 0],
            [0, 1, 0, 1970, 1, 1, 3, 0],
            [1, 0, 1, 1970, 1, 2, 4, 0],
            [0, 1, 0, 1970, 1, 1, 3, 0],
        ],
    ),
    "text": Case(
        "t.csv",
        'remark,a,b\n"the song, the night",1,1\nthe loud song,1,0\nthe quiet night,0,0\n,0,1\n',
        ["--labels", "a,b", "--columns", "remark=text"],
        AB,
        Y,
        [f"remark={word}" for word in ("the", "night", "song", "loud", "quiet")],
        [],  # below
    ),
    "rare tags": Case(
        "t.csv", "n,tags\n1.5,a|b\n2.5,a|rare\n3.5,\n4.5,b\n", ["--tags", "tags", "--min-count", "2"], AB, Y, COLUMN, N
    ),
    "vectors": Case(
        "t.json",
        json.dumps([{"v": [n[0], 2], "tags": t} for n, t in zip(N, ("a|b", "a", "", "b"), strict=True)]),
        ["--tags", "tags"],
        AB,
        Y,
        ["v[0]", "v[1]"],
        [[*n, 2] for n in N],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_option_and_the_right_matrices(name, tmp_path, monkeypatch, capsys):
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MULTILAB_CACHE", raising=False)
    if isinstance(case.content, dict):
        path = saved(pd.DataFrame(case.content), tmp_path, case.file.partition(".")[2])
        path.rename(case.file)
    else:
        content = case.content if isinstance(case.content, bytes) else case.content.encode()
        Path(case.file).write_bytes(content)
    assert main(["datasets", "add", case.file, *case.options, "--name", "set"]) == 0, capsys.readouterr().err
    data, encoder = load("set"), encoder_of("set")
    assert data.label_names == case.labels
    assert data.Y.tolist() == case.Y
    assert encoder.feature_names == case.features
    X = encoder.encode(data.X).X
    X = X.toarray() if hasattr(X, "toarray") else X
    expected = case.X or tf_idf()
    np.testing.assert_allclose(X, expected, rtol=1e-12)
    new = encoder.read(case.file) if not case.options[0].startswith("--item") else None
    if new is not None:  # the file itself, as rows to predict
        again = encoder.encode(new).X
        np.testing.assert_allclose(again.toarray() if hasattr(again, "toarray") else again, expected, rtol=1e-12)


def tf_idf():
    """The columns are the, night, song, loud, quiet; rows that have each: 3, 2, 2, 1, 1 of 4."""
    idf = np.log(5 / (1 + np.array([3, 2, 2, 1, 1]))) + 1
    counts = np.array([[1 + np.log(2), 1, 1, 0, 0], [1, 0, 1, 1, 0], [1, 1, 0, 0, 1], [0] * 5])
    weighted = counts * idf
    return weighted / np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-300)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1.5,1,1\n2.5,1,0\n3.5,0,1\n", "t.csv:1: the first line is data, not names of columns"),
        ("n,a,b\n1.5,1,1\n2.5,1,0,tag\n", "t.csv:3: 4 fields, expected 3"),
        ("n;m;a;b\n1;800;1;0\n2;9.600;0;1\n3;1.500;0;1\n4;7;1;0\n", "--columns m=number or m=number:comma"),
        ('p;a;b\n"1,234";1;0\n"2,345";0;1\n', "p=number:point or p=number:comma"),
        ("d,a,b\n01/02/2024,1,0\n03/04/2024,0,1\n", "d=date:day or d=date:month"),
    ],
    ids=["no header", "ragged", "points of thousands", "commas of thousands", "day and month"],
)
def test_where_nothing_is_guessed(content, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(content)
    assert main(["datasets", "add", "t.csv", "--labels-last", "2"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not Path("data").exists()


def test_a_summary_of_the_labels_is_warned_of(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = (rng.random((60, 3)) < 0.3).astype(int)
    frame = pd.DataFrame(labels, columns=["f_a", "f_b", "f_c"]).assign(x=rng.normal(size=60))
    frame = frame.assign(any_fault=labels.any(axis=1).astype(int), n_faults=labels.sum(axis=1))
    frame.to_csv("t.csv", index=False)
    assert main(["datasets", "add", "t.csv", "--label-prefix", "f_"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "give labels away" in line]
    assert "'any_fault': it says whether there is any label" in line
    assert "'n_faults': it is the number of labels" in line
