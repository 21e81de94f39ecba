"""The benchmark sets: counts, digests and official splits of all of them, from the real files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from helpers.readers_samples import card_content
from multilab.datasets import card, cards, load, prepare
from multilab.model_selection import splits

pytestmark = pytest.mark.data


def mirrored() -> list[str]:
    """Return the sets with files that are in the mirror: a card may be added for a file that is elsewhere."""
    index = Path(os.environ.get("MULTILAB_DATA", "")) / "index.json"
    entries = json.loads(index.read_text("utf-8"))["datasets"] if index.is_file() else []
    return sorted({entry["name"] for entry in entries} & {name for name in cards() if card(name).files})


NAMES = mirrored()
FILES = {name: {file.role: file for file in card(name).files} for name in NAMES}
MATCHED = [name for name in NAMES if {"full", "train"} <= set(FILES[name])]


def dense(X) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


def path_of(name: str, role: str) -> Path:
    """Return the file of the mirror, compressed or not."""
    path = Path(os.environ["MULTILAB_DATA"]) / FILES[name][role].path
    return next(p for p in (path, path.with_name(path.name + ".xz"), path.with_name(path.name + ".bz2")) if p.is_file())


def test_every_set_of_the_mirror_has_a_card(benchmark_data):
    index = json.loads((benchmark_data / "index.json").read_text("utf-8"))["datasets"]
    assert sorted(entry["name"] for entry in index) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_set_is_what_its_index_says(name, benchmark_data):
    """The index was computed by other code than ours; loading also checks the card's counts and digest."""
    index = json.loads((benchmark_data / "index.json").read_text("utf-8"))["datasets"]
    entry = next(one for one in index if one["name"] == name)
    prepared = prepare(name)
    meta = prepared.meta
    assert meta["digest"] == card(name).digest
    assert meta["source"] == "mirror"
    for mine, theirs in (
        ("instances", "instances"),
        ("features", "features"),
        ("labels", "labels"),
        ("distinct_label_sets", "distinct_label_sets"),
        ("rows_without_label", "all_zero_label_rows"),
        ("labels_never_set", "labels_never_set"),
        ("nominal_features", "nominal_features"),
    ):
        if theirs in entry:
            assert meta[mine] == entry[theirs], mine
    decimals = 3 if name == "ccd" else 4
    assert round(meta["cardinality"], decimals) == pytest.approx(entry["cardinality"], abs=1e-9)
    dataset = load(name)
    assert dataset.X.shape == (meta["instances"], meta["columns"])
    assert dataset.Y.shape == (meta["instances"], meta["labels"])
    assert len(dataset.feature_names) == meta["columns"]
    assert len(set(dataset.label_names)) == meta["labels"]
    assert np.isfinite(dataset.X.data if sp.issparse(dataset.X) else dataset.X).all()


@pytest.mark.parametrize("name", MATCHED)
def test_official_splits_are_the_official_files(name, benchmark_data):
    """Row by row: the indexed rows of the full set are the rows of the files, and every row is used once."""
    dataset = load(name)
    for rows, role in zip(dataset.splits["official"], ("train", "test"), strict=True):
        raw = card_content(path_of(name, role), labels_xml=path_of(name, "labels-xml"))
        assert np.array_equal(dense(dataset.X[rows]), dense(raw.X))
        assert np.array_equal(dataset.Y[rows], raw.Y)
        assert raw.label_names == dataset.label_names
    everything = np.concatenate(dataset.splits["official"])
    assert np.array_equal(np.sort(everything), np.arange(len(dataset.Y)))


@pytest.mark.slow
def test_sizes_of_the_named_splits(benchmark_data):
    sizes = {(name, split): tuple(map(len, parts)) for name in NAMES for split, parts in load(name).splits.items()}
    expected = {
        ("emotions", "official"): (391, 202),
        ("flags", "official"): (129, 65),
        ("scene", "official"): (1211, 1196),
        ("yeast", "official"): (1500, 917),
        ("birds", "official"): (322, 323),
        ("enron", "official"): (1123, 579),
        ("medical", "official"): (333, 645),
        ("virus-pseaac", "official"): (131, 76),
        ("image", "official"): (1501, 499),
        ("slashdot", "meka"): (1891, 1891),
        ("reuters-k500", "official"): (4014, 1986),
        ("reuters-k500", "meka"): (3000, 3000),
    }
    expected |= {(name, "official"): (2000, 3000) for name in NAMES if name.startswith("yahoo")}
    assert sizes == expected


@pytest.mark.parametrize("name", ["emotions", "scene", "image", "virus-pseaac", "birds", "yahoo-arts"])
def test_sets_whose_parts_follow_each_other(name, benchmark_data):
    train, test = load(name).splits["official"]
    assert np.array_equal(np.concatenate([train, test]), np.arange(len(load(name).Y)))


def test_the_meka_editions_hold_the_same_rows(benchmark_data):
    for name in ("scene", "reuters-k500"):
        dataset = load(name)
        meka = card_content(path_of(name, "full-meka-variant"))
        assert np.array_equal(dense(dataset.X), dense(meka.X))
        assert np.array_equal(dataset.Y, meka.Y)


def test_official_splits_by_protocol(benchmark_data):
    (split,) = splits("yeast", {"split": "official"})
    train, test = load("yeast").splits["official"]
    assert np.array_equal(split.train, train)
    assert np.array_equal(split.test, test)
