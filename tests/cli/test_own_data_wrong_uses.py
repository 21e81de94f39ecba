"""Wrong uses of `datasets add` and of a file in the position of a dataset: one line each, and nothing is written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from helpers.own_files import own_rows
from multilab.cli import main

ROWS = own_rows()
TAGS = ("--label-prefix", "tag_", "--drop", "id")


def changed(old: str, new: str) -> bytes:
    assert old in ROWS
    return ROWS.replace(old, new, 1).encode()


def with_label(*values: str) -> bytes:
    """Return the rows with a third label of these values, repeated."""
    head, *rows = ROWS.splitlines()
    return "\n".join([f"{head},tag_z", *(f"{row},{values[k % len(values)]}" for k, row in enumerate(rows))]).encode()


def constant_labels() -> bytes:
    return b"a,tag_x,tag_y\n" + b"".join(f"{k},0,1\n".encode() for k in range(20))


WRONG = {
    "no file": (None, ("absent.csv", *TAGS), "absent.csv: there is no such file"),
    "folder": (None, ("sub", *TAGS), "sub: it is a folder, not a data file"),
    "empty file": (b"", TAGS, "the file is empty"),
    "names only": (b"a,b,tag_x\n", TAGS[:2], "no row follows the line of names"),
    "no labels named": (ROWS.encode(), (), "which columns are labels? Perhaps --label-prefix tag_ (2 columns) or"),
    "label that is no column": (
        ROWS.encode(),
        ("--labels", "tag_z"),
        "'tag_z' is not a column of my.csv; did you mean",
    ),
    "pattern without a match": (ROWS.encode(), ("--labels", "tg_*"), "no column matches 'tg_*'; columns are 'a', 'b'"),
    "pattern that matches all": (ROWS.encode(), ("--labels", "*"), "every column is a label by --labels"),
    "prefix without a match": (ROWS.encode(), ("--label-prefix", "t_"), "no column is a label by --label-prefix; col"),
    "too many last columns": (ROWS.encode(), ("--labels-last", "9"), "9 label columns requested, the file has 6"),
    "label that is 2": (with_label("0", "2"), TAGS, "my.csv:3: non-binary label: 'tag_z' is 2, expected 0 or 1"),
    "label that is text": (with_label("yes", "maybe"), TAGS, "my.csv:3: non-binary label: 'tag_z' is maybe"),
    "label with a hole": (
        with_label("0", "1", ""),
        (*TAGS, "--missing-labels", "error"),
        "my.csv:4: label 'tag_z' is miss",
    ),
    "constant labels only": (constant_labels(), TAGS[:2], "no label differs from row to row"),
    "name of a benchmark set": (ROWS.encode(), (*TAGS, "--name", "emotions"), "'emotions'"),
    "name that is none": (ROWS.encode(), (*TAGS, "--name", "My Set"), "'My Set' is not a dataset name (small letters"),
    "column twice": (changed("a,b,", "a,a,"), TAGS, "my.csv:1: column 'a' occurs twice"),
    "column without name": (changed("a,b,", "a,,"), TAGS, "my.csv:1: column 3 has no name"),
    "bytes that are no text": (b"\x00\x01\x02" + ROWS.encode(), TAGS, "my.csv: "),
    "row with a field too many": (ROWS.encode() + b"1,2,3,red,0,1,7\n", TAGS, "my.csv:42: 7 fields, expected 6"),
    "drop of no column": (ROWS.encode(), ("--label-prefix", "tag_", "--drop", "ide"), "drop: 'ide' is not a column"),
    "nothing left": (ROWS.encode(), ("--label-prefix", "tag_", "--drop", "id,a,b,colour"), "no feature is left"),
    "numbers and text": (
        changed("0,0.126,", "0,twelve,"),
        TAGS,
        "'a' (mostly numbers, but 'twelve' in row 1) by --columns a=number or",
    ),
    "infinite value": (
        changed("0,0.126,", "0,inf,"),
        TAGS,
        "'a' (mostly numbers, but 'inf' in row 1) by --columns a=number or",
    ),
    "extension": (b"\x00\x01\n\x00", ("my.dat", *TAGS), "my.dat: unknown extension '.dat'"),
    "no Parquet file": (ROWS.encode(), ("my.parquet", *TAGS), "not a readable Parquet file"),
    "damaged gzip file": (gzip.compress(ROWS.encode())[:60], ("my.csv.gz", *TAGS), "my.csv.gz: "),
    "columns of svmlight": (b"0 1:1\n1 1:2\n", ("my.svm", "--labels", "a"), "the format 'svmlight' has no option"),
    "MATLAB file of another kind": (ROWS.encode(), ("my.mat",), "my.mat: "),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_DATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def one_line(capsys, argv: list[str]) -> str:
    """Return the only line that a refused command prints."""
    assert main(argv) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    return printed.err


def written(content: bytes | None, arguments: tuple[str, ...]) -> list[str]:
    """Write the file of a wrong use; return its arguments, ``my.csv`` first where they name no file."""
    named = bool(arguments) and not arguments[0].startswith("-")
    path = Path(arguments[0] if named else "my.csv")
    Path("sub").mkdir()
    if content is not None:
        path.write_bytes(content)
    return [str(path), *arguments[named:]]


@pytest.mark.parametrize("case", WRONG)
def test_add(case, capsys):
    content, arguments, message = WRONG[case]
    assert message in one_line(capsys, ["datasets", "add", *written(content, arguments)])
    assert not Path("data/own").exists()


def test_a_name_that_is_taken(capsys):
    Path("my.csv").write_text(ROWS)
    assert main(["datasets", "add", "my.csv", *TAGS]) == 0
    capsys.readouterr()
    before = Path("data/own/my.yaml").read_bytes()
    assert "--force" in one_line(capsys, ["datasets", "add", "my.csv", "--label-prefix", "tag_"])
    assert Path("data/own/my.yaml").read_bytes() == before


@pytest.mark.parametrize("verb", ["train", "tune"])
def test_a_file_in_the_position_of_a_dataset(verb, capsys):
    Path("my.csv").write_text(ROWS)
    assert "./absent.csv: there is no such file" in one_line(capsys, [verb, "dataset=./absent.csv", "labels=a"])
    assert "which columns are labels? Perhaps label_prefix=tag_" in one_line(capsys, [verb, "dataset=my.csv"])
    assert "no column matches 'tg_*'" in one_line(capsys, [verb, "dataset=my.csv", "labels=tg_*"])
    assert "labels_last must be a whole number" in one_line(capsys, [verb, "dataset=my.csv", "labels_last=two"])
    argv = [verb, "dataset=my.csv", "labels=tag_*", "missing_labels=hot"]
    assert "missing_labels must be one of" in one_line(capsys, argv)
    assert not Path("data").exists()


@pytest.mark.parametrize("verb", [["results"], ["compare"], ["fit", "--method", "mlknn"]])
def test_a_file_as_the_option_dataset(verb, capsys):
    Path("my.csv").write_text(ROWS)

    def refused(*words: str) -> str:
        return one_line(capsys, [*verb, "--dataset", *words])

    for path in ("./absent.csv", "./absent/"):
        assert f"{path}: there is no such file or folder; check the path" in refused(path, "--labels", "a")
    assert "which columns are labels? Perhaps --label-prefix tag_" in refused("my.csv")
    assert "no column matches 'tg_*'" in refused("my.csv", "--labels", "tg_*")
    assert "--labels-last must be a whole number, not 'two'" in refused("my.csv", "--labels-last", "two")
    assert "'hot' is not one of 'error', 'keep'" in refused("my.csv", "--labels", "tag_*", "--missing-labels", "hot")
    assert not Path("data").exists()


def test_constant_labels_among_others_are_reported(capsys):
    Path("my.csv").write_bytes(with_label("0"))
    assert main(["datasets", "add", "my.csv", *TAGS]) == 0
    assert "warning    labels that no row has: tag_z\n" in capsys.readouterr().out
    Path("other.csv").write_bytes(with_label("1").replace(b"red", b"r\xe9d"))
    assert main(["datasets", "add", "other.csv", *TAGS]) == 0
    out = capsys.readouterr().out
    assert "warning    labels that every row has: tag_z\n" in out
    assert "note       the text is not UTF-8: read as Windows-1252 (cp1252)\n" in out
