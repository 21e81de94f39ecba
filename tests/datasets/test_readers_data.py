"""The real benchmark files: every set has the published numbers, and copies of a set agree."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from helpers.readers_samples import card_content
from multilab.datasets import check, read
from multilab.datasets.arff import parse_header, parse_rows
from multilab.datasets.characteristics import describe
from multilab.datasets.file_access import Limits, decode, read_bytes
from multilab.datasets.labels import choose_labels
from multilab.datasets.options import Reading

pytestmark = pytest.mark.data

YAHOO = ["arts", "business", "computers", "education", "entertainment", "health"]
YAHOO += ["recreation", "reference", "science", "social", "society"]
SETS = [
    "emotions",
    "flags",
    "scene",
    "yeast",
    "birds",
    "gpositive-go",
    "chd-49",
    "enron",
    "langlog",
    "medical",
]
SETS += [
    "virus-go",
    "water-quality",
    "3s-bbc1000",
    "virus-pseaac",
    "cal500",
    "image",
    "slashdot",
    "reuters-k500",
]
SETS += ["ccd", *[f"yahoo-{name}" for name in YAHOO], *[f"rcv1subset{i}-top944" for i in (1, 2, 3)]]


@pytest.fixture(scope="session")
def index(benchmark_data):
    entries = json.loads((benchmark_data / "index.json").read_text())["datasets"]
    return {entry["name"]: entry for entry in entries}


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def files(entry, *roles):
    """Return the paths of the files with one of the roles that are not conversions of another."""
    files = [f for f in entry["files"] if f["role"] in roles]
    return [f["path"] for f in files]


def numbers(data, entry):
    """Return what the full file, or the training and test file together, hold."""
    xml = files(entry, "labels-xml")
    options = {"labels_xml": data / xml[0]} if xml else {}
    mats = [p for p in files(entry, "full", "train+test") if p.endswith(".mat")]
    if mats:
        return describe(card_content(data / mats[0]))
    full = files(entry, "full")
    paths = full[:1] or files(entry, "train")[:1] + files(entry, "test")[:1]
    parts = [card_content(data / p, **options) for p in paths]
    complete = {"rows": [len(p.Y) for p in parts], "Y": np.vstack([p.Y for p in parts])}
    assert len({tuple(p.feature_names) for p in parts}) == 1
    assert len({tuple(p.label_names) for p in parts}) == 1
    actual = describe(parts[0])
    if len(parts) == 2:
        actual["instances"] = sum(complete["rows"])
        actual["cardinality"] = float(complete["Y"].sum() / len(complete["Y"]))
        actual["distinct_label_sets"] = len(np.unique(complete["Y"], axis=0))
        actual["rows_without_label"] = int((~complete["Y"].any(axis=1)).sum())
        actual["labels_never_set"] = int((~complete["Y"].any(axis=0)).sum())
    return actual


def test_every_set_of_the_index_is_tested(index):
    assert sorted(index) == sorted(SETS)
    assert len(SETS) == 33


@pytest.mark.parametrize("name", SETS)
def test_set_has_the_published_numbers(benchmark_data, index, name):
    entry = index[name]
    actual = numbers(benchmark_data, entry)
    for key in ("instances", "features", "labels"):
        assert actual[key] == entry[key], key
    assert actual["cardinality"] == pytest.approx(entry["cardinality"], abs=5.1e-4)
    for ours, theirs in (
        ("distinct_label_sets", "distinct_label_sets"),
        ("rows_without_label", "all_zero_label_rows"),
        ("labels_never_set", "labels_never_set"),
    ):
        if entry.get(theirs) is not None:
            assert actual[ours] == entry[theirs], ours
    assert actual["missing_values"] == 0


def test_nominal_features(benchmark_data):
    flags = card_content(benchmark_data / "flags/flags.arff", labels_xml=benchmark_data / "flags/flags.xml")
    assert (flags.original_features, flags.nominal_features, flags.X.shape[1]) == (19, 9, 43)
    assert flags.feature_names[:7] == [*(f"landmass={i}" for i in range(1, 7)), "zone=1"]
    np.testing.assert_array_equal(flags.X[:, :6].sum(axis=1), 1)
    birds = check(benchmark_data / "birds/birds.arff")
    assert (birds["features"], birds["nominal_features"], birds["columns"]) == (260, 2, 260)
    coded = card_content(benchmark_data / "birds/birds.arff", labels_xml=benchmark_data / "birds/birds.xml")
    assert coded.X.shape[1] == 260 + 12 - 1
    assert "Swainson's Thrush" in birds["label_names"]
    for name, count in (("enron", 1001), ("medical", 1449)):
        actual = check(benchmark_data / f"{name}/{name}.arff")
        assert actual["nominal_features"] == actual["features"] == actual["columns"] == count


def test_labels_come_in_the_order_of_the_columns(benchmark_data):
    yeast = check(benchmark_data / "yeast/yeast.arff.xz")
    assert yeast["label_names"] == [f"Class{k}" for k in range(1, 15)]
    langlog = check(benchmark_data / "langlog/Langlog.arff")
    assert langlog["label_names"][:2] == ["Errors", "Humor"]


def test_wrong_c_of_a_filtered_file_is_not_followed(benchmark_data, tmp_path):
    for name in ("medical/medical.arff", "langlog/llog.arff"):
        alone = tmp_path / "alone.arff"
        alone.write_bytes((benchmark_data / name).read_bytes())
        with pytest.raises(ValueError, match="not reliable after a filter"):
            check(alone)


def test_meka_and_mulan_files_of_scene_agree(benchmark_data):
    folder = benchmark_data / "scene"
    meka = read(folder / "Scene.arff.bz2")
    parts = [read(folder / f"scene-{p}.arff.xz", labels_xml=folder / "scene.xml") for p in ("train", "test")]
    assert [len(p.Y) for p in parts] == [1211, 1196]
    assert meka.label_names == ["beach", "sunset", "foliage", "field", "mountain", "urban"]
    assert parts[0].label_names == ["Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban"]
    np.testing.assert_array_equal(np.vstack([p.X for p in parts]), meka.X)
    np.testing.assert_array_equal(np.vstack([p.Y for p in parts]), meka.Y)


def test_two_files_of_langlog_agree_up_to_the_order_of_columns(benchmark_data):
    folder = benchmark_data / "langlog"
    one, two = (read(folder / f"{s}.arff", labels_xml=folder / f"{s}.xml") for s in ("Langlog", "llog"))
    assert set(one.label_names) == set(two.label_names)
    assert set(one.feature_names) == set(two.feature_names)
    features = [two.feature_names.index(name) for name in one.feature_names]
    labels = [two.label_names.index(name) for name in one.label_names]
    np.testing.assert_array_equal(one.Y, two.Y[:, labels])
    np.testing.assert_array_equal(one.X.toarray(), two.X[:, features].toarray())


@pytest.mark.parametrize("name", YAHOO)
def test_yahoo_matlab_files_equal_their_conversions(benchmark_data, index, name):
    entry = index[f"yahoo-{name}"]
    folder = benchmark_data / f"yahoo-{name}"
    mat = read(benchmark_data / next(f["path"] for f in entry["files"] if f["path"].endswith(".mat")))
    parts = [read(folder / f"{name}-{p}.arff.xz", labels_xml=folder / f"{name}.xml") for p in ("train", "test")]
    assert len(parts[0].Y) == 2000
    np.testing.assert_array_equal(mat.splits["official"][0], np.arange(2000))
    assert mat.feature_names == parts[0].feature_names
    assert mat.label_names == parts[0].label_names
    np.testing.assert_array_equal(mat.X, np.vstack([p.X.toarray() for p in parts]))
    np.testing.assert_array_equal(mat.Y, np.vstack([p.Y for p in parts]))


@pytest.mark.parametrize("i", [1, 2, 3])
def test_rcv1_matlab_files_equal_their_conversions(benchmark_data, i):
    folder = benchmark_data / f"rcv1subset{i}-top944"
    mat = read(folder / f"rcv1s{i}.mat")
    arff = read(folder / f"{folder.name}.arff.xz", labels_xml=folder / f"{folder.name}.xml")
    np.testing.assert_array_equal(mat.X, arff.X.toarray())
    np.testing.assert_array_equal(mat.Y, arff.Y)


@pytest.mark.parametrize("name", ["flags/flags", "emotions/emotions", "birds/birds", "virus-go/VirusGO", "enron/enron"])
def test_quick_and_careful_reader_agree(benchmark_data, name):
    path, xml = benchmark_data / f"{name}.arff", benchmark_data / f"{name}.xml"
    header = parse_header(decode(read_bytes(path)), path, Limits())
    labels = choose_labels(Reading(labels_xml=xml), [column.name for column in header.columns], path)
    table = dense(parse_rows(header.rest, header.first_line, header.columns, labels, path, Limits()))
    raw = card_content(path, labels_xml=xml)
    np.testing.assert_array_equal(table[:, labels], raw.Y)
    numeric = [j for j, c in enumerate(header.columns) if c.plain and j not in set(labels)]
    ours = [raw.feature_names.index(header.columns[j].name) for j in numeric]
    np.testing.assert_array_equal(table[:, numeric], dense(raw.X)[:, ours])
