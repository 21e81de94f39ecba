"""The encoder of raw rows makes one matrix of the training file, a data frame and the dataset, and refuses others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from helpers.models_for_use import own_table, write_card
from multilab.datasets import DatasetError, TableEncoder, encoder_of, load


def test_the_training_file_gives_the_training_matrix(own_csv):
    """The oracle is scikit-learn's imputation by the median and its one-hot coding."""
    encoder, table = encoder_of("mine"), pd.read_csv(own_csv)
    rows = encoder.encode(encoder.read(own_csv))
    age = SimpleImputer(strategy="median", add_indicator=True).fit_transform(table[["age"]])
    town = OneHotEncoder(sparse_output=False).fit_transform(table[["town"]])  # the last category is NaN
    expected = np.hstack([age, town, table[["income", "member"]].to_numpy(float)])
    assert encoder.feature_names[:2] == ["age", "age is missing"]
    assert encoder.feature_names[2:] == ["town=Bath", "town=Ely", "town=York", "town is missing", "income", "member"]
    np.testing.assert_array_equal(rows.X, expected)
    np.testing.assert_array_equal(encoder.encode(load("mine").X).X, expected)
    assert rows.imputed == {"age": 8, "town": 5}
    assert rows.unknown == {}


def test_a_data_frame_of_pandas_gives_the_same_matrix(own_csv):
    encoder = encoder_of("mine")
    np.testing.assert_array_equal(encoder.encode(pd.read_csv(own_csv)).X, encoder.encode(load("mine").X).X)


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
    of_town = [name.startswith("town") for name in encoder.feature_names]
    assert rows.X[:, of_town].sum(axis=1).tolist() == [1, 0, 0, 0]
    assert rows.unknown == {"town": {"Paris": 2, "Rome": 1}}
    assert "3 rows have texts that training did not: 'Paris', 'Rome'" in rows.notes()[0]


def test_holes_that_training_did_not_have_are_imputed_too(own_csv):
    encoder, table = encoder_of("mine"), pd.read_csv(own_csv)
    income = encoder.columns[encoder.names.index("income")]
    assert income.fill == table["income"].median()
    table["income"] = np.nan
    assert encoder.encode(table).imputed["income"] == len(table)


def test_an_encoder_of_a_file_without_holes_has_no_column_for_them(tmp_path, monkeypatch):
    """A number becomes the median; a category is none of those that are known."""
    table = own_table(60, seed=4).dropna()
    write_card(tmp_path, table, "complete")
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))
    encoder = encoder_of("complete")
    assert encoder.feature_names == ["age", "town=Bath", "town=Ely", "town=York", "income", "member"]
    rows = encoder.encode(table.head(1).assign(age=np.nan, town=None))
    assert rows.X[0, :4].tolist() == [table["age"].median(), 0, 0, 0]
    assert rows.imputed == {"age": 1, "town": 1}


@pytest.mark.parametrize("name", ["genes-toy", "mine"])
def test_json_round_trip(name):
    encoder = encoder_of(name)
    assert TableEncoder.from_json(encoder.to_json()) == encoder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns=["town", "age"]), "columns of the training data are missing: 'age', 'town'"),
        (lambda t: t.assign(height=1), "columns that the training data did not have: 'height'; leave them out"),
        (lambda t: pd.concat([t, t[["age"]]], axis=1), "columns occur twice: 'age'"),
        (lambda t: t.assign(age="old"), "column 'age', row 1: 'old'"),
        (lambda t: t.assign(income=np.inf), "column 'income', row 1: not a finite number"),
        (lambda t: t.assign(income=[[1]] * len(t)), "column 'income', row 1: "),
    ],
)
def test_other_tables_are_refused_by_name(own_csv, change, message):
    with pytest.raises(DatasetError) as caught:
        encoder_of("mine").encode(change(pd.read_csv(own_csv)), strict=True)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cell_that_cannot_be_read_is_missing_and_counted(own_csv):
    encoder, table = encoder_of("mine"), pd.read_csv(own_csv)
    wrong = table.assign(age=table["age"].astype(object).where(table.index > 1, "old"))
    rows = encoder.encode(wrong)
    np.testing.assert_array_equal(rows.X, encoder.encode(table.assign(age=table["age"].where(table.index > 1))).X)
    assert rows.unreadable == {"age": 2}


def test_a_hole_is_refused_where_the_training_rows_were_a_matrix():
    data = load("genes-toy")
    rows = pd.DataFrame(data.X, columns=data.feature_names)
    rows.iloc[2, 0] = np.nan
    with pytest.raises(DatasetError, match=f"'{data.feature_names[0]}' has 1 missing values, the first in row 3"):
        encoder_of("genes-toy").encode(rows)
    with pytest.raises(DatasetError, match=f"'{data.feature_names[0]}', row 3: 'much'"):
        encoder_of("genes-toy").encode(rows.astype(object).fillna("much"))
