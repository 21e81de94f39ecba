"""Cards: every committed one is sound, a wrong one says what is wrong, and a new one needs no other edit."""

from __future__ import annotations

import inspect
import os
from typing import Any

import pytest
import yaml

from multilab.datasets import DatasetError, card, cards, load, prepare, prepared_meta, read

SHA = "ab" * 32
COMMIT = "0123456789" * 4
FILE = {"role": "full", "path": "mine/mine.arff"}
ADDRESS = {"repository": "https://github.com/someone/data", "commit": COMMIT, "source": "mine.arff"}


@pytest.fixture
def own_cards(tmp_path, monkeypatch):
    """Return a function that writes a card into a folder of its own."""
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))

    def write(name: str, /, **content) -> None:
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content), "utf-8")

    return write


def test_all_cards_are_sound():
    names = cards()
    assert len(names) >= 44
    assert names == sorted(names)
    for name in names:
        one = card(name)
        assert one.name == name
        assert one.title
        assert one.citation
        if not one.available:
            assert one.reason
            continue
        assert one.licence
        assert one.digest
        assert None not in (one.expected.instances, one.expected.features, one.expected.cardinality)
        for file in one.files:
            assert file.repository
            assert file.bytes
            assert not file.path.endswith((".xz", ".bz2"))


def test_embedded_cards_need_no_file():
    made = {name for name in cards() if card(name).generator}
    scenarios = {"scenario1", "scenario2", "scenario3", "scenario4"}
    assert made == {"digit-segments", "genes-toy", "topics-toy"} | scenarios
    assert not any(card(name).files for name in made)


def test_clinical_data_is_pointed_to_only(checkout):
    (file,) = card("ccd").files
    assert file.repository == "https://github.com/AiXia520/MLWSE"
    assert not [path for path in (checkout / "src").rglob("ccd*") if path.suffix != ".yaml"]


def test_sets_that_cannot_be_had_say_why():
    one = card("pascal-voc07")
    assert not one.available
    with pytest.raises(DatasetError, match=r"pascal-voc07 is not available: the image features"):
        load("pascal-voc07")
    assert prepared_meta("pascal-voc07") is None


def test_similar_names_are_suggested():
    with pytest.raises(DatasetError, match=r"no dataset 'emotion'; did you mean 'emotions'"):
        card("emotion")
    with pytest.raises(DatasetError, match=r"no dataset 'zzzzzzzz'.*searched"):
        card("zzzzzzzz")
    for bad in ("../emotions", "Emotions", "", "a/b", None):
        with pytest.raises(DatasetError, match="not a dataset name"):
            card(bad)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"titel": "T"}, "unknown key 'titel'; did you mean 'title'"),
        ({"name": "other", "title": "T"}, "name is 'other' but the file is called mine.yaml"),
        ({"files": [FILE]}, "title is missing"),
        ({"title": 3}, "title must be text"),
        ({"title": "T"}, "no file role full"),
        ({"title": "T", "available": "no"}, "available must be true or false"),
        ({"title": "T", "available": False}, "needs a reason"),
        ({"title": "T", "files": FILE}, "files must be a list"),
        ({"title": "T", "files": [{"path": "x"}]}, r"files\[0\]\.role is missing"),
        ({"title": "T", "files": [{"role": "full"}]}, r"files\[0\]\.path is missing"),
        ({"title": "T", "files": [{**FILE, "role": "ful"}]}, "role 'ful' is none of .* did you mean 'full'"),
        (
            {"title": "T", "files": [{**FILE, "sha": SHA}]},
            r"files\[0\]: unknown key 'sha'; did you mean 'sha256'",
        ),
        ({"title": "T", "files": [{**FILE, "sha256": 12}]}, "64 hex digits in quotes"),
        ({"title": "T", "files": [{**FILE, "bytes": "9"}]}, "bytes must be an integer"),
        ({"title": "T", "files": [{**FILE, "path": "../x"}]}, "may not leave its folder"),
        ({"title": "T", "files": [{**FILE, "path": "/etc/passwd"}]}, "may not leave its folder"),
        ({"title": "T", "files": [{**FILE, "path": "C:\\x"}]}, "may not leave its folder"),
        ({"title": "T", "files": [{**FILE, "member": "../../x"}]}, "member .* may not leave its folder"),
        ({"title": "T", "files": [{**FILE, **ADDRESS}]}, "needs bytes and sha256"),
        ({"title": "T", "files": [{**FILE, "commit": COMMIT}]}, "repository, commit and source together"),
        ({"title": "T", "files": [{**FILE, **ADDRESS, "commit": "0123"}]}, "full 40 hex digits"),
        (
            {"title": "T", "files": [{**FILE, **ADDRESS, "repository": "https://x.org/a/b"}]},
            "https://github.com/",
        ),
        ({"title": "T", "files": [{**FILE, "url": "ftp://x.org/a"}]}, "url must be an https:// address"),
        ({"title": "T", "files": [{**FILE, "member": "a.csv"}]}, "member needs an address"),
        ({"title": "T", "files": [FILE, dict(FILE)]}, "two files have the role full"),
        ({"title": "T", "files": [FILE, {**FILE, "role": "b-variant"}]}, "two files have the same name"),
        ({"title": "T", "files": [{**FILE, "role": "train"}]}, "not both train and test"),
        ({"title": "T", "files": [FILE, {"role": "train", "path": "t"}]}, "train and test come together"),
        ({"title": "T", "generator": {"k": 1}}, "generator needs a name"),
        ({"title": "T", "generator": {"name": "scenario"}, "files": [FILE]}, "needs a name, and no files"),
        ({"title": "T", "files": [FILE], "expected": {"rows": 3}}, "expected: unknown key 'rows'"),
        ({"title": "T", "files": [FILE], "expected": {"labels": "3"}}, "expected.labels must be an integer"),
        ({"title": "T", "files": [FILE], "splits": {3: {"first": 2}}}, "splits: the key 3 must be small letters"),
        ({"title": "T", "files": [FILE], "digest": "abc"}, "digest must be 64 hex digits"),
        (
            {"title": "T", "files": [FILE], "reader": {"labels": 3}},
            "reader: unknown key 'labels'; did you mean",
        ),
    ],
)
def test_a_wrong_card_says_what_is_wrong(content, message, own_cards):
    own_cards("mine", **content)
    with pytest.raises(DatasetError, match=message) as caught:
        card("mine")
    assert "mine.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_broken_yaml_is_named_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))
    (tmp_path / "mine.yaml").write_text("title: T\nfiles: [\n", "utf-8")
    with pytest.raises(DatasetError, match=r"mine\.yaml:3: not valid YAML"):
        card("mine")
    (tmp_path / "mine.yaml").write_text("- a list\n", "utf-8")
    with pytest.raises(DatasetError, match="must be a mapping"):
        card("mine")


def test_one_name_in_two_folders_is_refused(own_cards):
    own_cards("emotions", title="Another", files=[FILE])
    with pytest.raises(DatasetError, match="two cards are called 'emotions'"):
        card("emotions")


def test_reader_options_are_those_of_the_reader(own_cards):
    """A card may have each option of `read` that is no file of its own, and of a value that `read` takes."""
    not_of_cards = {"source", "name", "limits", "labels_xml", "test", "join", "vectors"}  # the last four: `files`
    options = set(inspect.signature(read).parameters) - not_of_cards
    examples: dict[str, Any] = {
        "header": True,
        "columns": {"a": "text"},
        "keys": {"data": "A"},
        "missing_labels": "keep",
        "decimal": ",",
        "on_bad_lines": "skip",
        "format": "csv",
        "encoding": "cp1252",
        "first_feature": 0,
        "first_label": 1,
        **dict.fromkeys(("min_count", "labels_first", "labels_last", "n_features"), 1),
        **{option: ["a"] for option in ("label_columns", "label_names", "drop")},
    }
    for option in options:
        value = examples.get(option, "a")
        own_cards("mine", title="T", files=[FILE], reader={option: value})
        assert card("mine").reader.given() == {option: value}
    for option in not_of_cards:
        own_cards("mine", title="T", files=[FILE], reader={option: "a"})
        with pytest.raises(DatasetError, match=f"reader: unknown key '{option}'"):
            card("mine")


def test_a_throw_away_card_works_without_another_edit(tmp_path, monkeypatch):
    """A CSV file and a card of six lines, in two folders of one's own."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setenv("MULTILAB_CARDS", os.pathsep.join(map(str, folders)))
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "cache"))
    (folders[1] / "weather.csv").write_text("wind,sun,rain,warm\n1.5,3,1,0\n2,0.5,0,0\n0,4,0,1\n", "utf-8")
    (folders[1] / "weather.yaml").write_text(
        "title: Three days\n"
        "files: [{role: full, path: weather.csv}]\n"
        "reader: {label_columns: [rain, warm]}\n"
        "splits: {official: {first: 2}}\n"
        "expected: {instances: 3, features: 2, labels: 2, cardinality: 0.6667}\n",
        "utf-8",
    )
    assert "weather" in cards()
    dataset = load("weather")
    assert dataset.X.to_numpy().tolist() == [[1.5, 3], [2, 0.5], [0, 4]]
    assert dataset.Y.tolist() == [[1, 0], [0, 0], [0, 1]]
    assert dataset.splits["official"][0].tolist() == [0, 1]
    meta = prepare("weather").meta
    assert meta["source"] == "local"
    assert prepared_meta("weather") == meta
    # Without a checksum in the card, the content of the file is the identity.
    (folders[1] / "weather.csv").write_text("wind,sun,rain,warm\n1.5,3,1,0\n2,0.5,0,0\n0,9,0,1\n", "utf-8")
    assert prepared_meta("weather") is None
    assert load("weather").X["sun"][2] == 9
    (folders[1] / "weather.csv").unlink()
    assert prepared_meta("weather") is None
    with pytest.raises(DatasetError, match=r"weather\.csv was not found"):
        load("weather")


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"instances": 4}, r"weather: expected 4 instances, found 3"),
        ({"features": 3}, r"weather: expected 3 features, found 2"),
        ({"labels": 1}, r"weather: expected 1 labels, found 2"),
        ({"cardinality": 0.6668}, r"weather: expected 0.6668 cardinality, found 0.666"),
    ],
)
def test_wrong_counts_name_card_expected_and_found(expected, message, own_cards, tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "weather.csv").write_text("wind,sun,rain,warm\n1.5,3,1,0\n2,0.5,0,0\n0,4,0,1\n", "utf-8")
    content = {
        "title": "Three days",
        "files": [{"role": "full", "path": "weather.csv"}],
        "reader": {"label_columns": ["rain", "warm"]},
    }
    own_cards("weather", **content, expected=expected)
    with pytest.raises(DatasetError, match=message):
        load("weather")
    assert prepared_meta("weather") is None
    own_cards("weather", **content, digest=SHA)
    with pytest.raises(DatasetError, match=f"weather: expected the digest {SHA}, found"):
        load("weather")
    # What was stored under a sound card is compared with the card of today.
    own_cards("weather", **content)
    digest = load("weather").digest
    own_cards("weather", **content, expected=expected)
    with pytest.raises(DatasetError, match=message):
        prepared_meta("weather")
    own_cards("weather", **content, digest=digest)
    assert load("weather").digest == digest
