"""A dataset card is data: nothing in it is run, followed out of its folder, or expanded without bound."""

from __future__ import annotations

import os
import sys

import pytest
import yaml

from helpers.readers_worker import run_jobs
from multilab.datasets import DatasetError, card, cards, load, prepared_meta
from multilab.datasets.card_file import MAX_BYTES
from multilab.datasets.reading import FORMATS

BASE = "title: T\nfiles: [{role: full, path: toy.csv}]\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MULTILAB_DATA", raising=False)

    def _write(text: str | bytes, name: str = "mine.yaml") -> None:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return _write


CODE = [
    ("# @package _global_\n" + BASE, r":1: .*'# @package' is refused"),
    ("#@package hydra.job\n" + BASE, r":1: .*'# @package' is refused"),
    (BASE + "  #  @PACKAGE _global_\n", r":3: .*'# @package' is refused"),
    (BASE + "hydra: {callbacks: {x: {_target_: joblib.load}}}\n", "the key '_target_' is refused"),
    (BASE + "hydra: {run: {dir: /tmp}}\n", "unknown key 'hydra'"),
    (BASE + "defaults: [/method: mlknn]\n", "unknown key 'defaults'"),
    (BASE + "_target_: os.getcwd\n", ":3: .*the key '_target_' is refused"),
    (BASE + "reader: {format: csv, keys: {_target_: os.getcwd}}\n", "the key '_target_' is refused"),
    ("title: T\ngenerator:\n  name: scenario\n  _target_: os.getcwd\n", ":4: .*the key '_target_' is refused"),
    ('title: T\ngenerator: {name: scenario, k: {"_target_": x}}\n', "the key '_target_' is refused"),
    (BASE + "notes: ${oc.env:HOME}\n", ":3: .*interpolations"),
    (BASE + "? {a: 1}\n: 2\n", ":3: a key must be plain text"),
    (BASE + "notes: !!python/object/apply:os.getcwd []\n", "the tag .*python.* is refused"),
    (BASE + "notes: !mine x\n", "the tag '!mine' is refused"),
    ("title: &a T\nfiles: [{role: full, path: toy.csv}]\nnotes: *a\n", ":1: .*anchors and aliases"),
    (BASE + "<<: {notes: x}\n", "merge keys"),
    (BASE + "notes: a\nnotes: b\n", ":4: the key 'notes' is given twice"),
    (BASE + "---\n" + BASE, "not valid YAML: .*single document|not valid YAML: but found another document"),
]

VALUES = [
    (BASE + "reader: {format: pickle}\n", "reader.format must be arff, csv, .*, got 'pickle'"),
    (BASE + "reader: {format: [csv]}\n", "reader.format must be text"),
    (BASE + "reader: {labels_last: two}\n", "reader.labels_last must be an integer"),
    (BASE + "reader: {labels_last: -2}\n", "reader.labels_last must be an integer >= 0, got -2"),
    (BASE + "reader: {label_columns: 3}\n", "label_columns must be text or a list of texts"),
    (BASE + "reader: {label_columns: [1, 2]}\n", r"label_columns\[0\] must be text, got 1"),
    (BASE + "reader: {keys: {data: [X]}}\n", "reader.keys.data must be text"),
    (BASE + "splits: {meka: {last: 3}}\n", "splits.meka: unknown key 'last'; the keys are first"),
    (BASE + "splits: {meka: {first: 0}}\n", "splits.meka.first must be an integer >= 1, got 0"),
    (BASE + "expected: {instances: .nan}\n", "expected.instances must be an integer"),
    (BASE + "expected: {cardinality: .inf}\n", "expected.cardinality must be a number"),
    (BASE + "expected: {labels: 2.5}\n", "expected.labels must be an integer"),
    ("title: T\ngenerator: {name: scenario, 'a b': 1}\n", "generator: 'a b' is not the name of an argument"),
    ("title: T\ngenerator: {name: scenario, k: {a: 1}}\n", "generator.k must be"),
    ("title: T\ngenerator: {name: scenario, n: 10_000_000_000}\n", "generator: n is 10000000000, more than the limit"),
    ("title: T\nfiles: [{role: full, path: a, bytes: -1}]\n", "bytes must be an integer >= 0"),
    (
        "title: T\nfiles: [{role: full, path: a, url: 'http://localhost:80@x.org/a'}]\n",
        "url must be an https:// address",
    ),
    ("title: T\nfiles: [{role: full, path: a, url: 'https://x.org/a b'}]\n", "url must be an https:// address"),
    (BASE + "openml_id: " + "9" * 5000 + "\n", "too long for a number"),
    (BASE + "openml_id: " + "1:" * 60_000 + "1\n", "too long for a number"),
    (BASE + "notes: 2020-99-99\n", "not valid YAML: month must be in"),
    (BASE + 'notes: "\\e]0;owned\\a"\n', ":3: control characters are refused"),
    (BASE + 'notes: "\\u202e"\n', ":3: control characters are refused"),
    (BASE + "# \u202e hidden\n", ":3: control characters are refused"),
    (BASE.encode() + b"notes: \x1b[2J\n", "not valid YAML"),
    (BASE.encode() + b"notes: \xff\n", ":3: .*not UTF-8"),
    (BASE + "notes: '" + "x" * MAX_BYTES + "'\n", f"larger than {MAX_BYTES} bytes"),
    (BASE + "notes: [" + "1," * 30_000 + "]\n", "more than 20000 entries"),
    (BASE + "notes: " + "[" * 20 + "]" * 20 + "\n", "more than 12 levels"),
    (BASE + "notes:\n" + "".join(" " * i + "- \n" for i in range(20)), "more than 12 levels|not valid YAML"),
]


@pytest.mark.parametrize("pure_python", [False, True])
@pytest.mark.parametrize(("text", "message"), CODE + VALUES, ids=[f"card{i}" for i in range(len(CODE + VALUES))])
def test_a_card_that_is_not_plain_data_is_refused(text, message, pure_python, write, monkeypatch):
    if pure_python:  # PyYAML without its compiled part
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    write(text)
    with pytest.raises(DatasetError, match=message) as caught:
        card("mine")
    assert "mine.yaml" in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are Linux's")
def test_deep_or_large_cards_do_not_crash_the_interpreter(tmp_path):
    pytest.importorskip("pyarrow")
    texts = {
        "brackets": "[" * 200_000,
        "braces": "title: " + "{a: " * 60_000,
        "lists": "- " * 100_000,
        "keys": "? " * 100_000,
        "large": "title: " + "x" * 50_000_000,
        "quotes": 'title: "' + "\\n" * 100_000,
    }
    jobs = []
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text, "utf-8")
        jobs.append({"card": str(tmp_path), "name": name})
    for job, result in zip(jobs, run_jobs(jobs, tmp_path), strict=True):
        assert result["outcome"] == "refused", (job, result)
        assert result["peak_mb"] < 1024


def test_unreadable_card_is_one_line(write, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    write(BASE)
    monkeypatch.setattr("pathlib.Path.open", refuse)  # root reads everything, so that chmod proves nothing
    with pytest.raises(DatasetError, match=r"mine\.yaml: the card cannot be read \(Permission denied\)"):
        card("mine")


def test_formats_of_a_card_are_those_of_the_reader(write):
    for name in sorted(set(FORMATS.values())):
        write(BASE + f"reader: {{format: {name}}}\n")
        assert card("mine").reader.given() == {"format": name}


# ---- names of labels in a file next to the card ----

CSV = "wind,sun,rain,warm\n1.5,3,1,0\n2,0.5,0,0\n0,4,0,1\n"


@pytest.mark.parametrize("option", ["label_columns", "label_names"])
@pytest.mark.parametrize("value", ["/etc/passwd", "../secret", "a/../../secret", "..\\secret"])
def test_names_are_not_read_from_another_folder(value, option, write):
    write(BASE + f"reader: {{{option}: '{value}'}}\n")
    with pytest.raises(DatasetError, match=f"reader.{option} .* must name columns, or a file in the card's folder"):
        card("mine")


def test_link_out_of_the_folder_is_refused(write, tmp_path):
    cards_folder = tmp_path / "cards"
    cards_folder.mkdir()
    (tmp_path / "secret").write_text("passphrase\n", "utf-8")
    os.symlink(tmp_path / "secret", cards_folder / "names.txt")
    os.environ["MULTILAB_CARDS"] = str(cards_folder)  # the fixture restores it
    write(BASE + "reader: {label_columns: names.txt}\n", "cards/mine.yaml")
    with pytest.raises(DatasetError, match="is a link that leaves the card's folder") as caught:
        card("mine")
    assert "passphrase" not in str(caught.value)


def test_file_of_the_working_directory_is_not_read(write, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "names.txt").write_text("rain\nwarm\n", "utf-8")
    monkeypatch.chdir(elsewhere)
    write(CSV, "toy.csv")
    write(BASE + "reader: {label_columns: names.txt}\n")
    with pytest.raises(DatasetError, match=r"label 'names.txt' is not a column of toy\.csv"):
        load("mine")


def test_file_of_names_in_the_folder_is_read_and_counts_for_the_identity(write):
    write(CSV, "toy.csv")
    write("rain\nwarm\n", "names.txt")
    write(BASE + "reader: {label_columns: names.txt}\n")
    assert load("mine").label_names == ["rain", "warm"]
    assert prepared_meta("mine")["labels"] == 2
    write("warm\n", "names.txt")
    assert prepared_meta("mine") is None
    assert load("mine").label_names == ["warm"]
    write("warm\npassphrase\n", "names.txt")
    with pytest.raises(DatasetError, match=r"names\.txt:2: the name on this line is not a column") as caught:
        load("mine")
    assert "passphrase" not in str(caught.value)


def test_names_as_one_text_are_a_list(write):
    write(CSV, "toy.csv")
    write(BASE + "reader: {label_columns: 'rain, warm'}\n")
    assert card("mine").reader.given() == {"label_columns": ["rain", "warm"]}
    assert load("mine").label_names == ["rain", "warm"]
    write(BASE + "reader: {label_columns: warm}\n")
    assert load("mine").label_names == ["warm"]


def test_cards_of_the_package_pass_unchanged():
    for name in cards():
        assert card(name).label_files == {}
