"""Labels that were not observed, from files to datasets: int8 with -1, in digest, cards and store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from multilab.cli import main
from multilab.datasets import DatasetError, check, load, prepare, read
from multilab.datasets.characteristics import data_digest

EXPECTED = [[1, 0], [-1, 0], [0, -1], [0, 1]]
ARFF = """@relation r
@attribute x numeric
@attribute a {0,1}
@attribute b {VALUES}
@data
"""
FILES = {
    "nominal.arff": ARFF.replace("VALUES", "0,1") + "1,1,0\n2,?,0\n3,0,?\n4,0,1\n",
    "flipped.arff": ARFF.replace("VALUES", "1,0") + "1,1,0\n2,?,0\n3,0,?\n4,0,1\n",
    "truth.arff": ARFF.replace("VALUES", "TRUE,FALSE") + "1,1,FALSE\n2,?,FALSE\n3,0,?\n4,0,TRUE\n",
    "numeric.arff": ARFF.replace("{VALUES}", "numeric") + "1,1,0\n2,?,0\n3,0,?\n4,0,1\n",
    "sparse.arff": ARFF.replace("{VALUES}", "numeric") + "{0 1,1 1}\n{0 2,1 ?}\n{0 3,2 ?}\n{0 4,2 1}\n",
    "numbers.csv": "x,a,b\n1,1,0\n2,,0\n3,0,\n4,0,1\n",
    "texts.csv": "x,a,b\n1,true,0\n2,NA,0\n3,false,?\n4,false,1\n",
}
NAMES = {"label_columns": ["a", "b"]}


@pytest.mark.parametrize("name", FILES)
def test_missing_labels_are_kept_on_request_only(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FILES[name])
    with pytest.raises(DatasetError, match="label 'a' is missing"):
        read(path, **NAMES)
    raw = read(path, **NAMES, missing_labels="keep")
    assert raw.Y.dtype == np.int8
    assert raw.Y.tolist() == EXPECTED
    assert raw.Y.flags.c_contiguous
    content = check(path, **NAMES, missing_labels="keep")
    assert content["missing_values"] == 0
    assert content["unobserved_labels"] == 2
    assert content["cardinality"] == pytest.approx(2 / 3)  # one of three observed rows of each label
    assert (content["distinct_label_sets"], content["rows_without_label"], content["labels_never_set"]) == (2, 2, 0)


def test_missing_labels_of_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "set.parquet"
    pd.DataFrame({"x": [1.0, 2, 3, 4], "a": [1, None, 0, 0], "b": [0, 0, None, 1]}).to_parquet(path)
    with pytest.raises(DatasetError, match="row 2: label 'a' is missing"):
        read(path, **NAMES)
    assert read(path, **NAMES, missing_labels="keep").Y.tolist() == EXPECTED


@pytest.mark.parametrize("name", FILES)
def test_other_faults_of_labels_stay_errors(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FILES[name].replace("\n4,0", "\n4,7").replace("\n4,false", "\n4,7").replace("4,2 1}", "4,2 7}"))
    with pytest.raises(DatasetError, match=r"non-binary label|is not a value of nominal attribute"):
        read(path, **NAMES, missing_labels="keep")


def test_formats_and_values_of_the_option(tmp_path: Path) -> None:
    path = tmp_path / "set.svm"
    path.write_text("1 1:2.0\n")
    with pytest.raises(DatasetError, match="has no option missing_labels"):
        read(path, missing_labels="keep")
    with pytest.raises(DatasetError, match="missing_labels must be one of error, keep"):
        read(path, missing_labels="impute")


def test_complete_labels_keep_type_and_digest(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text("x,a,b\n1,1,0\n2,0,1\n")
    kept, plain = read(path, **NAMES, missing_labels="keep"), read(path, **NAMES)
    assert kept.Y.dtype == plain.Y.dtype == np.uint8
    names = (["x"], ["a", "b"])
    digests = {data_digest(plain.X, Y, *names) for Y in (plain.Y, plain.Y.astype(np.int8), plain.Y.astype(float))}
    assert digests == {data_digest(kept.X, kept.Y, *names)}


def test_the_digest_sees_what_is_observed() -> None:
    X, names = np.zeros((2, 1)), (["x"], ["a", "b"])
    partial = np.array([[1, -1], [0, 1]], dtype=np.int8)
    as_float = np.where(partial < 0, np.nan, partial)
    assert data_digest(X, partial, *names) == data_digest(X, as_float, *names)
    others = [np.where(partial < 0, filler, partial).astype(np.uint8) for filler in (0, 1, 255)]
    others.append(np.array([[1, 0], [-1, 1]], dtype=np.int8))
    assert len({data_digest(X, Y, *names) for Y in (partial, *others)}) == 5


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))
    monkeypatch.delenv("MULTILAB_DATA", raising=False)
    return tmp_path


def write_card(folder: Path, files: dict[str, str], **reader: object) -> None:
    for role, text in files.items():
        (folder / f"{role}.csv").write_text(text)
    content = {
        "title": "Mine",
        "reader": {"label_columns": ["a", "b"], **reader},
        "files": [{"role": role, "path": f"{role}.csv"} for role in files],
    }
    (folder / "mine.yaml").write_text(yaml.safe_dump(content))


def test_a_card_says_that_labels_may_be_missing(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_card(own_folders, {"full": FILES["numbers.csv"]})
    with pytest.raises(DatasetError, match="label 'a' is missing"):
        prepare("mine")
    write_card(own_folders, {"full": FILES["numbers.csv"]}, missing_labels="keep")
    assert prepare("mine").meta["unobserved_labels"] == 2
    data = load("mine")
    assert data.Y.dtype == np.int8
    assert data.Y.tolist() == EXPECTED
    assert data.digest == read(own_folders / "full.csv", **NAMES, missing_labels="keep").digest
    assert main(["datasets", "show", "mine"]) in (0, None)
    assert "unobserved_labels 2" in capsys.readouterr().out


@pytest.mark.parametrize("partial", ["train", "test"])
def test_one_of_two_files_with_unobserved_labels(partial: str, own_folders: Path) -> None:
    complete = "x,a,b\n5,1,1\n6,0,0\n"
    files = {role: FILES["numbers.csv"] if role == partial else complete for role in ("train", "test")}
    write_card(own_folders, files, missing_labels="keep")
    Y = load("mine").Y
    assert Y.dtype == np.int8
    expected = [EXPECTED, [[1, 1], [0, 0]]]
    assert Y.tolist() == [row for rows in (expected if partial == "train" else expected[::-1]) for row in rows]
