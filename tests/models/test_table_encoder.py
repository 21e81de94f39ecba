"""The encoder of raw rows makes of the training file the matrix that the reader made, and refuses other tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from helpers.models_for_use import own_table, write_card
from multilab.datasets import DatasetError, TableEncoder, encoder_of, load, read_frames


def rows_of(path, encoder):
    return read_frames(path, labelled=False, text_columns=encoder.text_columns).features


def test_the_training_file_gives_the_training_matrix(own_csv):
    encoder = encoder_of("mine")
    rows = encoder.encode(rows_of(own_csv, encoder))
    np.testing.assert_array_equal(rows.X, load("mine").X)
    assert rows.imputed == {"age": 8, "town": 5}
    assert rows.unknown == {}


def test_a_data_frame_of_pandas_gives_the_same_matrix(own_csv):
    np.testing.assert_array_equal(encoder_of("mine").encode(pd.read_csv(own_csv)).X, load("mine").X)


@pytest.mark.parametrize("missing", ["keep", "impute"])
def test_missing_values_are_those_of_the_reader(tmp_path, monkeypatch, missing):
    path = write_card(tmp_path, own_table(60, seed=3), "holes", missing=missing)
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))
    encoder = encoder_of("holes")
    np.testing.assert_array_equal(encoder.encode(rows_of(path, encoder)).X, load("holes").X)


@pytest.mark.parametrize("name", ["genes-toy", "topics-toy"])
def test_sets_without_text_columns(name):
    data, encoder = load(name), encoder_of(name)
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    rows = encoder.encode(pd.DataFrame(X, columns=data.feature_names))
    assert sp.issparse(rows.X) == sp.issparse(data.X)
    np.testing.assert_array_equal(rows.X.toarray() if sp.issparse(rows.X) else rows.X, X)


def test_columns_may_have_another_order_and_labels_may_be_left_out(own_csv):
    encoder, table = encoder_of("mine"), pd.read_csv(own_csv)
    features = table[["town", "member", "income", "age"]]
    np.testing.assert_array_equal(encoder.encode(features).X, encoder.encode(table).X)


def test_unknown_texts_are_zero_columns_and_counted(own_csv):
    encoder, table = encoder_of("mine"), pd.read_csv(own_csv).head(4)
    table["town"] = ["York", "Paris", "Paris", "Rome"]
    rows = encoder.encode(table)
    start = encoder.names.index("town")
    assert rows.X[:, start : start + 3].sum(axis=1).tolist() == [1, 0, 0, 0]
    assert rows.unknown == {"town": {"Paris": 2, "Rome": 1}}
    assert "3 rows have texts that training did not: 'Paris', 'Rome'" in rows.notes()[0]


def test_holes_that_training_did_not_have_are_imputed_too(own_csv):
    encoder, table = encoder_of("mine"), pd.read_csv(own_csv)
    income = encoder.columns[encoder.names.index("income")]
    assert income.fill == table["income"].median()
    table["income"] = np.nan
    assert encoder.encode(table).imputed["income"] == len(table)


def test_a_file_without_holes_and_a_card_that_imputes_give_an_encoder_that_imputes(tmp_path, monkeypatch):
    table = own_table(60, seed=4).dropna()
    write_card(tmp_path, table, "complete", missing="impute")
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))
    holes = table.head(1).assign(age=np.nan, town=None)
    filled = table.head(1).assign(age=table["age"].median(), town=table["town"].mode()[0])
    encoder = encoder_of("complete")
    rows = encoder.encode(holes)
    np.testing.assert_array_equal(rows.X, encoder.encode(filled).X)
    assert rows.imputed == {"age": 1, "town": 1}


def test_json_round_trip():
    encoder = encoder_of("genes-toy")
    assert TableEncoder.from_json(encoder.to_json()) == encoder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns=["town", "age"]), "columns of the training data are missing: 'age', 'town'"),
        (lambda t: t.assign(height=1), "columns that the training data did not have: 'height'; leave them out"),
        (lambda t: pd.concat([t, t[["age"]]], axis=1), "columns occur twice: 'age'"),
        (lambda t: t.assign(age="old"), "column 'age', row 1: 'old' is not a finite number"),
        (lambda t: t.assign(income=np.inf), "column 'income', row 1: not a finite number"),
        (lambda t: t.assign(income=[[1]] * len(t)), "column 'income', row 1: [1] is not a finite number"),
    ],
)
def test_other_tables_are_refused_by_name(own_csv, change, message):
    with pytest.raises(DatasetError) as caught:
        encoder_of("mine").encode(change(pd.read_csv(own_csv)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_hole_is_refused_where_the_reader_refuses_one(tmp_path, monkeypatch):
    write_card(tmp_path, own_table(40).dropna(), "full", missing="error")
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))
    rows = own_table(40).dropna()
    rows.loc[rows.index[2], "age"] = np.nan
    with pytest.raises(DatasetError, match="column 'age' has 1 missing values, the first in row 3"):
        encoder_of("full").encode(rows)
