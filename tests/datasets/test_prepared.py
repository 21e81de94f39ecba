"""The prepared store: read once, verified always, rebuilt when damaged; keys without NumPy."""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import yaml

from helpers.readers_samples import card_content
from multilab import datasets
from multilab.core import data_dir
from multilab.datasets import DatasetError, TableEncoder, describe, load, prepare, prepared_meta
from multilab.datasets.serialisation import write_folder
from multilab.model_selection import split_digests, splits, stored_splits

KFOLD = {"kfold": 3, "stratify": 1}
HEAD = "@relation r\n" + "".join(f"@attribute {name} numeric\n" for name in ("u", "v", "w"))
HEAD += "@attribute red {0,1}\n@attribute blue {0,1}\n@data\n"
XML = "<labels><label name='blue'/><label name='red'/></labels>"


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path / "cards"))
    (tmp_path / "cards").mkdir()


@pytest.fixture
def colours(tmp_path):
    """Return a function that writes a set of one to three ARFF files and its card."""

    def write(parts: dict[str, list[str]], **changes) -> None:
        files = [{"role": "labels-xml", "path": "c.xml"}]
        (tmp_path / "cards" / "c.xml").write_text(XML, "utf-8")
        for role, rows in parts.items():
            files.append({"role": role, "path": f"c-{role}.arff"})
            (tmp_path / "cards" / f"c-{role}.arff").write_text(HEAD + "\n".join(rows) + "\n", "utf-8")
        card = {"title": "Colours", "files": files, **changes}
        (tmp_path / "cards" / "colours.yaml").write_text(yaml.safe_dump(card), "utf-8")

    return write


FULL = ["1,0,0,1,0", "0,1,0,0,1", "1,0,0,1,0", "0,0,2.5,1,1", "1,0,0,1,1"]
SPARSE = ["{0 1,3 1}", "{1 1,4 1}", "{0 1,3 1}", "{2 2.5,3 1,4 1}", "{0 1,3 1,4 1}"]


@pytest.mark.parametrize("rows", [FULL, SPARSE])
def test_official_rows_are_found_in_the_full_file(rows, colours):
    """Rows 0 and 2 are equal: the first belongs to the training set, the second to the test set."""
    train, test = [rows[3], rows[0]], [rows[4], rows[2], rows[1]]
    colours({"full": rows, "train": train, "test": test})
    dataset = load("colours")
    assert sp.issparse(dataset.X) == (rows is SPARSE)
    assert dataset.label_names == ["red", "blue"]
    official = dataset.splits["official"]
    assert [part.tolist() for part in official] == [[3, 0], [4, 2, 1]]
    (split,) = splits("colours", {"split": "official"})
    assert [split.train.tolist(), split.test.tolist()] == [[3, 0], [4, 2, 1]]


@pytest.mark.parametrize("rows", [FULL, SPARSE])
def test_without_a_full_file_train_is_followed_by_test(rows, colours):
    colours({"train": rows[:2], "test": rows[2:]}, splits={"meka": {"first": 4}})
    dataset = load("colours")
    dense = dataset.X.toarray() if sp.issparse(dataset.X) else dataset.X
    assert dense.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 2.5], [1, 0, 0]]
    assert [part.tolist() for part in dataset.splits["official"]] == [[0, 1], [2, 3, 4]]
    assert [part.tolist() for part in dataset.splits["meka"]] == [[0, 1, 2, 3], [4]]
    assert all(part.dtype == np.int64 for split in dataset.splits.values() for part in split)


@pytest.fixture
def tables(tmp_path):
    """Return a function that writes a set of one to three CSV files, and its card without kinds of columns."""

    def write(parts: dict[str, list[str]]) -> None:
        for role, rows in parts.items():
            (tmp_path / "cards" / f"t-{role}.csv").write_text("size,town,day,y\n" + "\n".join(rows) + "\n", "utf-8")
        files = [{"role": role, "path": f"t-{role}.csv"} for role in parts]
        card = {"title": "Towns", "files": files, "reader": {"label_columns": ["y"]}}
        (tmp_path / "cards" / "towns.yaml").write_text(yaml.safe_dump(card), "utf-8")

    return write


TOWNS = ["1,b,1/2/2024,0", ",a,31/1/2024,1", "1,b,1/2/2024,0", "-0.0,,1/3/2024,1", "2.5,c,1/4/2024,0"]


def test_official_rows_are_found_in_the_full_table(tables):
    """The first rows of the parts alone do not tell whether 1/2/2024 is in January; texts have other positions."""
    tables({"full": TOWNS, "train": [TOWNS[4], TOWNS[0]], "test": [TOWNS[2], TOWNS[3].replace("-0.0", "0"), TOWNS[1]]})
    dataset = load("towns")
    assert {name: str(kind) for name, kind in dataset.kinds.items()} == {
        "size": "number",
        "town": "category",
        "day": "date:day",
    }
    assert [part.tolist() for part in dataset.splits["official"]] == [[4, 0], [2, 3, 1]]


def test_a_table_whose_parts_differ_in_type_is_refused(tables):
    tables({"full": TOWNS, "train": ["1,2,1/2/2024,0", "1,3,1/2/2024,0"], "test": TOWNS[1:4]})
    with pytest.raises(DatasetError, match=r"t-train\.csv: row 1 is missing"):
        load("towns")
    tables({"full": TOWNS, "train": ["many,b,1/2/2024,0"], "test": TOWNS[1:]})
    with pytest.raises(DatasetError, match=r"t-train\.csv: column 'size' "):
        load("towns")


def test_a_table_in_two_files_has_the_texts_of_both(tables):
    tables({"train": TOWNS[:2], "test": TOWNS[2:]})
    dataset = load("towns")
    assert dataset.X["town"].cat.categories.tolist() == ["a", "b", "c"]
    assert dataset.X["size"].fillna(-1).tolist() == [1, -1, 1, 0, 2.5]
    assert dataset.Y.tolist() == [[0], [1], [0], [1], [0]]
    assert [part.tolist() for part in dataset.splits["official"]] == [[0, 1], [2, 3, 4]]
    tables({"train": TOWNS[:2], "test": [TOWNS[2], "4,d,1/4/2024,7"]})
    with pytest.raises(DatasetError, match=r"row 2 of the test rows: .*'y' is 7"):
        load("towns")


@pytest.mark.parametrize("rows", [FULL, SPARSE])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_kinds_of_columns_make_a_table_of_an_arff_file(parts, rows, colours):
    train, test = rows[:2], rows[2:]
    files = [{"full": rows}, {"train": train, "test": test}, {"full": rows, "train": train, "test": test}][parts - 1]
    colours(files, reader={"columns": {"u": "category", "v": "number", "w": "number"}})
    dataset = load("colours")
    assert {name: str(kind) for name, kind in dataset.kinds.items()} == {"u": "category", "v": "number", "w": "number"}
    assert dataset.X.to_numpy().tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 2.5], [1, 0, 0]]
    assert dataset.Y.tolist() == [[1, 0], [0, 1], [1, 0], [1, 1], [1, 1]]
    assert [part.tolist() for part in dataset.splits.get("official", ())] == ([[0, 1], [2, 3, 4]] if parts > 1 else [])
    encoder = TableEncoder.learn(dataset.X[:2], dataset.kinds)
    encoded = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 2.5], [0, 1, 0, 0]]
    assert encoder.encode(dataset.X).X.tolist() == encoded


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"full": FULL, "train": [FULL[0]], "test": ["9,9,9,1,0"]}, r"c-test\.arff: row 1 is missing"),
        (
            {"full": FULL, "train": [FULL[1]], "test": [FULL[1]]},
            r"c-test\.arff: row 1 is missing, or occurs less often",
        ),
        ({"full": FULL, "train": SPARSE, "test": FULL}, "sparse rows and another dense"),
        ({"train": FULL, "test": SPARSE}, "sparse rows and another dense"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, message, colours):
    colours(parts)
    with pytest.raises(DatasetError, match=message):
        load("colours")


def test_parts_with_other_columns_are_refused(colours, tmp_path):
    colours({"train": FULL[:2], "test": FULL[2:]})
    test = tmp_path / "cards" / "c-test.arff"
    test.write_text(test.read_text().replace("attribute v", "attribute z"), "utf-8")
    with pytest.raises(DatasetError, match=r"c-test\.arff: feature_names differ .* 'z' instead of 'v'"):
        load("colours")


@pytest.mark.parametrize("rule", [{"first": 0}, {"last": 2}, 3])
def test_wrong_named_splits_are_refused(rule, colours):
    colours({"full": FULL}, splits={"meka": rule})
    with pytest.raises(DatasetError, match=r"splits\.meka"):
        load("colours")


def test_a_named_split_leaves_rows_to_test(colours):
    colours({"full": FULL}, splits={"meka": {"first": 5}})
    with pytest.raises(DatasetError, match=r"split meka must be \{first: m\} with 0 < m < 5, not \{'first': 5\}"):
        load("colours")


def test_a_split_has_one_source(colours):
    colours({"train": FULL[:2], "test": FULL[2:]}, splits={"official": {"first": 4}})
    with pytest.raises(DatasetError, match="colours: the split official is defined by the files and by the card"):
        load("colours")


@pytest.mark.parametrize("rows", [FULL, SPARSE])
def test_the_store_gives_back_what_was_read(rows, colours, tmp_path):
    colours({"full": rows, "train": rows[:2], "test": rows[2:]})
    prepared = prepare("colours")
    raw = card_content(tmp_path / "cards" / "c-full.arff", labels_xml=tmp_path / "cards" / "c.xml")
    dataset = load("colours")
    assert describe(raw).items() <= prepared.meta.items()
    assert prepared_meta("colours") == prepared.meta
    assert prepared.path == Path(os.environ["MULTILAB_CACHE"]) / "prepared" / f"colours-{prepared.key[:16]}"
    assert dataset.digest == prepared.meta["digest"] == describe(raw)["digest"]
    assert prepared.meta["source"] == "local"
    assert prepared.meta["splits"] == ["official"]
    assert dataset.X.dtype == np.float64
    assert dataset.Y.dtype == np.uint8
    if rows is SPARSE:
        assert dataset.X.has_sorted_indices
        assert (dataset.X != raw.X).nnz == 0
    else:
        assert np.array_equal(dataset.X, raw.X)
        assert dataset.X.flags.c_contiguous
    assert np.array_equal(dataset.Y, raw.Y)
    assert dataset.Y.flags.c_contiguous
    assert (dataset.feature_names, dataset.label_names) == (raw.feature_names, raw.label_names)
    assert repr(dataset).startswith("Dataset(colours: 5 x 3 ")
    assert not list(prepared.path.parent.glob(".*"))


def test_the_file_is_parsed_once(colours, monkeypatch):
    colours({"full": FULL})
    load("colours")
    from multilab.datasets import dataset as home

    monkeypatch.setattr(home, "build_dataset", None)
    assert load("colours").Y.shape == (5, 2)


@pytest.mark.parametrize("name", ["X.npy", "Y.npy", "named_splits.npz", "meta.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_damaged_store_is_rebuilt(name, damage, colours):
    colours({"full": FULL})
    before = load("colours")
    folder = prepare("colours").path
    victim = folder / name
    content = bytearray(victim.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
        victim.write_bytes(content)
    elif damage == "cut":
        victim.write_bytes(content[:-1] if name != "meta.json" else content[: len(content) // 2])
    else:
        victim.unlink()
    if damage != "flip" or name == "meta.json":  # what the quick look sees: presence, sizes, its own seal
        assert prepared_meta("colours") is None
    after = load("colours")
    assert np.array_equal(before.X, after.X)
    assert np.array_equal(before.Y, after.Y)
    assert after.digest == before.digest
    assert (after.feature_names, after.label_names) == (before.feature_names, before.label_names)
    assert prepared_meta("colours")["digest"] == before.digest


def test_no_byte_of_the_description_can_change_unseen(colours):
    colours({"full": FULL})
    before = prepare("colours").meta
    path = prepare("colours").path / "meta.json"
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        path.write_bytes(content[:position] + bytes([content[position] ^ 2]) + content[position + 1 :])
        assert prepared_meta("colours") in (None, before)  # space may become something that is no space: None
    path.write_bytes(content)
    assert prepared_meta("colours") == before


def test_the_key_is_what_decides_the_content(colours, tmp_path):
    """Text for display changes nothing; data, reader options and named splits do."""
    colours({"full": FULL})
    key = prepare("colours").key
    colours({"full": FULL}, notes="new", licence="new", citation="new", expected={"labels": 2})
    assert prepare("colours").key == key
    keys = {key}
    colours({"full": FULL}, reader={"format": "arff"})
    keys.add(prepare("colours").key)
    colours({"full": FULL}, splits={"meka": {"first": 2}})
    keys.add(prepare("colours").key)
    colours({"full": FULL[:4]})
    keys.add(prepare("colours").key)
    assert len(keys) == 4


def test_a_change_of_the_reading_code_rewrites_the_store(colours, monkeypatch):
    colours({"full": FULL})
    load("colours")
    assert prepared_meta("colours") is not None
    from multilab.datasets import prepared

    monkeypatch.setattr(prepared, "files_digest", lambda *parts: "another")
    assert prepared_meta("colours") is None
    assert prepare("colours").meta["digest"] == load("colours").digest


def test_a_folder_that_cannot_be_written_is_named(colours, tmp_path, monkeypatch):
    colours({"full": FULL})
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "file"))
    with pytest.raises(DatasetError, match=r"the data folder cannot be written.*MULTILAB_CACHE"):
        load("colours")


@pytest.mark.slow
def test_two_processes_prepare_the_same_set(colours):
    """Two at once: both succeed, all see the same content, nothing half-made is left."""
    colours({"full": FULL, "train": FULL[:2], "test": FULL[2:]})
    code = (
        "from multilab.datasets import load\nfrom multilab.model_selection import splits\n"
        "print(load('colours').digest, [s.digest for s in splits('colours', {'kfold': 2})])"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0] * 2, answers
    assert len({out for out, _ in answers}) == 1
    folder = prepare("colours").path.parent
    assert [p.name for p in folder.iterdir()] == [prepare("colours").path.name]


def test_a_folder_is_valid_however_many_write_it(tmp_path):
    """Eight threads, thirty times, over a damaged folder; nothing else is left next to it."""
    content = {"a": b"a" * 1000, "b": b"b" * 1000}
    for turn in range(30):
        folder = tmp_path / f"store{turn % 3}" / "x"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a").write_bytes(b"damaged")

        def is_valid(folder=folder) -> bool:
            try:
                return all((folder / name).read_bytes() == data for name, data in content.items())
            except OSError:  # another thread is just moving it
                return False

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _, f=folder, w=is_valid: write_folder(f, content, w), range(8)))
        assert is_valid()
        assert [p.name for p in folder.parent.iterdir()] == ["x"]


def test_splits_are_computed_once_and_stored(colours, monkeypatch):
    colours({"full": FULL * 4})
    assert split_digests("colours", KFOLD) is None
    prepare("colours")
    assert split_digests("colours", KFOLD) is None
    computed = splits("colours", KFOLD)
    assert split_digests("colours", {**KFOLD, "seed": 0, "title": "same"}) == [s.digest for s in computed]
    assert split_digests("colours", {**KFOLD, "seed": 1}) is None
    monkeypatch.setattr(stored_splits, "_compute", None)
    again = splits("colours", KFOLD)
    for one, other in zip(computed, again, strict=True):
        assert (one.name, one.digest) == (other.name, other.digest)
        assert np.array_equal(one.train, other.train)
        assert np.array_equal(one.test, other.test)
        assert other.test.dtype == np.int64
    assert load("colours").Y.shape == (20, 2)  # the stored splits do not disturb the dataset


@pytest.mark.parametrize("size", [0.7, 14])
def test_random_splits_are_computed_once_and_stored(size, colours):
    colours({"full": FULL * 4})
    protocol = {"holdout": {"train_size": size}, "repeats": 2}
    computed = splits("colours", protocol)
    assert [(len(split.train), len(split.test)) for split in computed] == [(14, 6)] * 2
    assert len({split.digest for split in computed}) == 2
    assert split_digests("colours", protocol) == [split.digest for split in splits("colours", protocol)]
    assert [split.digest for split in computed] == [split.digest for split in splits("colours", protocol)]


@pytest.mark.parametrize("kind", ["json", "npz"])
@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_damaged_splits_are_recomputed(kind, damage, colours):
    colours({"full": FULL * 4})
    computed = splits("colours", KFOLD)
    (victim,) = (data_dir() / "splits").glob(f"colours-*/splits-*.{kind}")
    if damage == "gone":
        victim.unlink()
    elif damage == "cut":
        victim.write_bytes(victim.read_bytes()[:-20])
    elif kind == "json":
        record = json.loads(victim.read_text())
        record["splits"][0]["digest"] = "0" * 64
        victim.write_text(json.dumps(record))
    else:
        np.savez(victim, **{f"{i}/{part}": np.arange(3) for i in range(3) for part in ("train", "test")})
    assert [s.digest for s in splits("colours", KFOLD)] == [s.digest for s in computed]
    assert split_digests("colours", KFOLD) == [s.digest for s in computed]


def test_an_unknown_split_names_the_set(colours):
    colours({"full": FULL})
    with pytest.raises(DatasetError, match="colours: there is no split 'official'; this dataset has: none"):
        splits("colours", {"split": "official"})


def test_digests_of_stored_splits_are_those_of_the_splits():
    made = splits("digit-segments", KFOLD)
    assert prepared_meta("digit-segments")["digest"] == load("digit-segments").digest
    assert split_digests("digit-segments", KFOLD) == [one.digest for one in made]


def test_the_package_lists_its_public_names():
    for name in datasets.__all__:
        assert getattr(datasets, name) is not None
        assert callable(getattr(datasets, name))
    assert set(datasets.__all__) <= set(dir(datasets))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = datasets.nothing
