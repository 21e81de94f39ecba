"""Character n-grams beside words: a member of the portfolio that wins where they help, in all three doors."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from multilab import AutoMultiLabel
from multilab.cli.main import main
from multilab.comparison import portfolio, run, training_set
from multilab.comparison.plan import Sizes, refused_grams
from multilab.datasets import Dataset, FrameEncoder, feature_columns
from multilab.models import load_model

LABELS = ["is_a", "is_b"]


def endings(n=150, seed=0):
    """Return texts of words that occur once, and labels that their endings tell."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 2)) < 0.4).astype(int)

    def word(end):
        return "".join(rng.choice(list("bcdfgklmnprst"), 6)) + end

    texts = [
        " ".join([word(""), word(""), *(word(end) for end, y in zip(("ing", "ous"), row, strict=True) if y)])
        for row in Y
    ]
    return pd.DataFrame({"remark": texts, "x": rng.normal(size=n).round(3)}).assign(is_a=Y[:, 0], is_b=Y[:, 1])


@pytest.fixture
def three(monkeypatch):
    """Let the portfolio have the baseline, and one method with n-grams and without."""
    found = portfolio.load_portfolio()
    members = {name: found.members[name] for name in (found.baseline, "br_linear_svm", "br_linear_svm_chars")}
    for module in (portfolio, run):
        monkeypatch.setattr(module, "load_portfolio", lambda: replace(found, members=members))


def test_words_have_the_same_columns_with_n_grams_beside_them_and_without(monkeypatch):
    monkeypatch.setattr(feature_columns, "MAX_TERMS", 20)  # so that further words are hashed
    rows = pd.concat([endings().drop(columns=LABELS)] * 2)  # a word of one row is left out
    with_grams, words = (FrameEncoder({"remark": kind}).fit(rows) for kind in ("text:chars", "text"))
    assert with_grams.encoder_.without_grams(["remark"]) == words.encoder_
    columns = with_grams.encoder_.word_columns(["remark"])
    assert 0 < words.encoder_.columns[0].hashed < len(columns) < with_grams.encoder_.width
    assert (with_grams.transform(rows)[:, columns] != words.transform(rows)).nnz == 0


@pytest.mark.slow
def test_n_grams_are_chosen_where_they_help(three, tmp_path):
    table, new = endings(), endings(60, seed=1)
    model = AutoMultiLabel(time_limit=None, columns={"remark": "text"}).fit(table, LABELS)
    board = model.leaderboard_
    assert board.loc["br_linear_svm_chars", "score"] > board.loc["br_linear_svm", "score"] + 0.3
    assert model.best_.startswith(("br_linear_svm_chars", "stack"))
    assert (model.predict(new) == new[LABELS].to_numpy()).mean() > 0.95
    model.save(tmp_path / "model")
    saved = load_model(tmp_path / "model").predict_proba_frame(new)
    np.testing.assert_array_equal(saved, model.predict_proba(new))


@pytest.mark.slow
def test_a_model_of_words_is_saved_without_n_grams_and_is_the_same_as_if_there_were_none(three, monkeypatch):
    table = endings()
    words = AutoMultiLabel(time_limit=None, budget_fits=6, columns={"remark": "text"}).fit(table, LABELS)
    assert [str(column.kind) for column in words.encoder_.columns] == ["text", "number"]
    assert words.leaderboard_.loc["br_linear_svm_chars", "state"] == "left out"
    monkeypatch.setattr(training_set, "refused_grams", lambda *_: "too much text")
    without = AutoMultiLabel(time_limit=None, budget_fits=6, columns={"remark": "text"}).fit(table, LABELS)
    assert without.leaderboard_.loc["br_linear_svm_chars", "reason"] == "too much text"
    np.testing.assert_array_equal(without.predict_proba(table), words.predict_proba(table))


def test_n_grams_may_take_a_tenth_of_the_time():
    rows = pd.DataFrame({"a": ["x" * 250_000, None], "b": ["y" * 250_000, "y"]})
    assert refused_grams(rows, ["a"], 1, 10) == ""
    assert (
        refused_grams(rows, ["a", "b"], 1, 10) == "n-grams of all texts need about 2.0 s, more than a tenth of the time"
    )
    assert refused_grams(rows, ["a"], 5, 10).startswith("n-grams of all texts need about 5.0 s")
    assert refused_grams(rows, ["a", "b"], 1, float("inf")) == ""


def test_the_plan_makes_n_grams_of_few_rows_also_where_the_texts_are_categories(monkeypatch):
    made, grams = [], feature_columns._grams
    monkeypatch.setattr(feature_columns, "_grams", lambda text: made.append(text) or grams(text))
    table = endings(500)
    categories = Dataset.from_frame(
        table.assign(remark=table["remark"].astype("category")), LABELS, columns={"remark": "text"}
    )
    assert Sizes.of(categories, 0.8).entries_with_grams > 10
    assert len(set(made)) <= 201  # and the empty text


@pytest.mark.slow
def test_compare_and_fit_without_a_method_choose_them_too(three, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'runs.db'}")
    endings().to_csv("table.csv", index=False)
    new = endings(60, seed=1)
    new.to_csv("new.csv", index=False)
    assert main(["datasets", "add", "table.csv", "--label-prefix", "is_", "--columns", "remark=text"]) == 0
    assert main(["fit", "--dataset", "table", "--budget", "2m", "--cv", "3", "-o", "model"]) == 0
    out = capsys.readouterr().out
    assert "Use br_linear_svm_chars" in out
    model = load_model("model")
    assert [str(column.kind) for column in model.encoder.columns] == ["text:chars", "number"]
    assert json.loads((tmp_path / "model/metadata.json").read_text())["evaluation"]["settings"]["chars"] is True
    assert (model.predict_frame(new)[LABELS].to_numpy() == new[LABELS].to_numpy()).mean() > 0.95
    assert main(["fit", "--dataset", "table", "--budget", "1m", "--chars"]) == 2
    assert main(["fit", "--dataset", "genes-toy", "--method", "mlknn", "--chars"]) == 2
    assert "--chars: genes-toy has no column of words" in capsys.readouterr().err
