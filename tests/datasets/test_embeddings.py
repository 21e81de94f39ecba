"""Sentence embeddings by a model in a local folder; the library is a stand-in, since it is not in the lock."""

from __future__ import annotations

import json
import os
import sys
import types

import numpy as np
import pandas as pd
import pytest
import yaml

from multilab import AutoMultiLabel
from multilab.cli.main import main
from multilab.datasets import (
    DatasetError,
    FrameEncoder,
    TableEncoder,
    add_dataset,
    dataset,
    embeddings,
    encoder_of,
    load,
)
from multilab.models import load_model

WORDS = ("good", "bad")


class SentenceTransformer:
    """Model whose vector of a text counts its characters, and two words."""

    embedded: list[str] = []  # noqa: RUF012

    def __init__(self, folder, local_files_only=False):
        assert local_files_only
        with open(f"{folder}/model.bin") as file:  # raises as the library does
            file.read()

    def encode(self, texts, batch_size, show_progress_bar, convert_to_numpy):
        assert batch_size > 1
        assert not show_progress_bar
        self.embedded += texts
        return np.array([[len(text), *(text.count(word) for word in WORDS)] for text in texts], dtype=np.float32)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Return the folder of a model."""
    library = types.ModuleType("sentence_transformers")
    library.SentenceTransformer, library.__version__ = SentenceTransformer, "6.0.1"
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    monkeypatch.setattr(embeddings, "_named", set())
    forget()
    SentenceTransformer.embedded.clear()
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "model.bin").write_text("weights")
    yield tmp_path / "small"
    forget()


def forget():
    embeddings._model.cache_clear()
    embeddings._digest_once.cache_clear()


def reviews(n=80, seed=0):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 2)) < 0.5).astype(int)
    texts = [" ".join(["so", *(word for word, y in zip(WORDS, row, strict=True) if y)]) for row in Y]
    return pd.DataFrame({"review": texts, "x": np.arange(n) / 10, "is_good": Y[:, 0], "is_bad": Y[:, 1]})


def test_a_text_becomes_numbers_and_the_encoder_remembers_folder_and_digest(model):
    rows = pd.DataFrame({"review": ["good", None, "good", "so bad"], "x": [1.0, 2.0, 3.0, 4.0]})
    encoder = FrameEncoder({"review": f"embed:{model}"}).fit(rows)
    assert encoder.get_feature_names_out().tolist() == ["review[0]", "review[1]", "review[2]", "x"]
    assert encoder.transform(rows).tolist() == [[4, 1, 0, 1], [0, 0, 0, 2], [4, 1, 0, 3], [6, 0, 1, 4]]
    assert SentenceTransformer.embedded == ["good", "", "so bad"] * 2  # each different text once
    written = json.loads(json.dumps(encoder.encoder_.to_json()))
    folder, _, digest = written["embeddings"]["review"].partition("#")
    assert folder == f"embed:{model}"
    assert len(digest) == 64
    (model / "model.bin").write_text("other weights")
    with pytest.raises(DatasetError, match=r"^the files in .* are not those that training had .* fit again$"):
        TableEncoder.from_json(written).encode(rows)


def test_one_line_says_what_is_missing(model, tmp_path, monkeypatch):
    rows = reviews().drop(columns=["is_good", "is_bad"])
    for kind, message in (
        ("embed:nowhere", "nowhere"),
        (f"embed:{tmp_path}", "holds no model that sentence-transformers can load: .*model.bin"),
    ):
        with pytest.raises(DatasetError, match=f"^[^\\n]*{message}[^\\n]*$"):
            FrameEncoder({"review": kind}).fit(rows)
    with pytest.raises(DatasetError, match="no feature column is called 'revue'; did you mean 'review'"):
        FrameEncoder({"revue": f"embed:{model}"}).fit(rows)
    forget()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(DatasetError, match=r"^columns of kind embed need .* pip install .*sentence-transformers"):
        FrameEncoder({"review": f"embed:{model}"}).fit(rows)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([["a", "b", "c"]], "cannot embed the texts: could not convert string to float: 'a'"),
        ([[1, 2], [3]], "cannot embed the texts: setting an array element"),
        ([[1, np.nan]], "does not give one vector of finite numbers per text"),
        ([1], "does not give one vector of finite numbers per text"),
    ],
)
def test_a_model_that_gives_no_vectors_of_numbers_gets_one_line(model, monkeypatch, vectors, message):
    monkeypatch.setattr(SentenceTransformer, "encode", lambda *_, **__: vectors)
    with pytest.raises(DatasetError, match=f"^the model in [^\n]*{message}[^\n]*$"):
        FrameEncoder({"review": f"embed:{model}"}).fit(pd.DataFrame({"review": ["so good"]}))


def test_a_dataset_of_ones_own_has_the_numbers_and_its_card_the_digest(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reviews().to_csv("table.csv", index=False)
    add_dataset("table.csv", label_prefix="is_", columns={"review": "embed:small"})
    (path,) = tmp_path.rglob("table.yaml")
    kinds = yaml.safe_load(path.read_text())["reader"]["columns"]
    assert sorted(kinds) == ["review", "x"]
    assert kinds["review"].startswith(f"embed:{model}#")
    data, encoder = load("table"), encoder_of("table")
    assert list(data.X.columns) == ["review[0]", "review[1]", "review[2]", "x"]
    assert encoder.embeddings == {"review": kinds["review"]}
    np.testing.assert_array_equal(encoder.encode(encoder.read("table.csv")).X, data.X.to_numpy())


def test_python_and_the_command_embed_new_rows_alike(model, tmp_path, monkeypatch):
    pytest.importorskip("hydra")
    monkeypatch.chdir(tmp_path)
    new = reviews(20, seed=1)
    new.to_csv("new.csv", index=False)
    auto = AutoMultiLabel(time_limit=None, budget_fits=6, columns={"review": f"embed:{model}"})
    auto.fit(reviews(), "is_*").save("model")
    np.testing.assert_array_equal(auto.predict(new), new[["is_good", "is_bad"]])
    np.testing.assert_array_equal(load_model("model").predict_proba_frame(new), auto.predict_proba(new))
    assert main(["predict", "model", "new.csv", "-o", "out.csv"]) == 0
    np.testing.assert_array_equal(pd.read_csv("out.csv")[["is_good", "is_bad"]], auto.predict(new))


def test_a_folder_that_only_a_file_names_is_not_read(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = reviews()
    rows.to_csv("table.csv", index=False)
    add_dataset("table.csv", label_prefix="is_", columns={"review": "embed:small"})
    encoder = FrameEncoder({"review": "embed:small"}).fit(rows.drop(columns=["is_good", "is_bad"])).encoder_
    expected = encoder.encode(rows[["review", "x"]]).X
    written = json.loads(json.dumps(encoder.to_json()))
    embeddings._named.clear()  # as in another process
    forget()
    SentenceTransformer.embedded.clear()
    with pytest.raises(DatasetError, match="MULTILAB_EMBEDDINGS"):
        TableEncoder.from_json(written).encode(rows[["review", "x"]])
    (card,) = tmp_path.rglob("table.yaml")
    with pytest.raises(DatasetError, match="MULTILAB_EMBEDDINGS"):
        from_card(card)
    assert SentenceTransformer.embedded == []
    monkeypatch.setenv("MULTILAB_EMBEDDINGS", os.pathsep.join(["elsewhere", "./small"]))
    np.testing.assert_array_equal(TableEncoder.from_json(written).encode(rows[["review", "x"]]).X, expected)
    from_card(card)


def from_card(path):
    """Read the files of a card as if its data had not been prepared."""
    reader = yaml.safe_load(path.read_text())["reader"]
    return dataset._read({"full": path.parents[2] / "table.csv"}, "full", reader)


def test_files_that_are_replaced_have_another_digest_and_other_vectors(model, monkeypatch):
    rows = pd.DataFrame({"review": ["good"]})
    kinds = {"review": f"embed:{model}"}
    first = FrameEncoder(kinds).fit(rows)
    (model / "model.bin").write_text("WEIGHTS")  # as long as before
    loaded = []
    monkeypatch.setattr(SentenceTransformer, "__init__", lambda self, folder, **_: loaded.append(folder))
    second = FrameEncoder(kinds).fit(rows)
    assert first.encoder_.embeddings != second.encoder_.embeddings
    assert loaded == [str(model)]
    FrameEncoder(kinds).fit(rows)
    assert loaded == [str(model)]  # the same files are loaded once


@pytest.mark.parametrize("version", ["5.5.1", "", "dev"])
def test_versions_that_run_the_code_of_a_folder_are_refused(model, monkeypatch, version):
    monkeypatch.setattr(sys.modules["sentence_transformers"], "__version__", version)
    with pytest.raises(DatasetError, match="sentence-transformers 6 or later"):
        FrameEncoder({"review": f"embed:{model}"}).fit(pd.DataFrame({"review": ["good"]}))
    assert SentenceTransformer.embedded == []
