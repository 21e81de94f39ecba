"""What training rows teach of the columns of a table, and what it makes of new rows."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils import murmurhash3_32

from helpers.own_files import saved
from multilab.datasets import DatasetError, TableEncoder, feature_columns, plan_reading, read
from multilab.datasets.feature_columns import FeatureColumn
from multilab.datasets.kinds import Kind

TEXTS = ["A quiet song, a quiet night", "the LOUD song", "", "song song song night", "naïve café at 10 pm"]


def learned(cells, kind):
    return FeatureColumn.learn("x", Kind.parse(kind), pd.Series(cells))


def block(column, cells):
    X = column.block(pd.Series(cells)).X
    return X.toarray().tolist() if hasattr(X, "toarray") else X.tolist()


def test_numbers_are_imputed_by_the_median_of_training_rows_and_marked():
    column = learned([1.0, np.nan, 5.0, 9.0], "number")
    assert column.feature_names == ["x", "x is missing"]
    assert block(column, [np.nan, 2.0]) == [[5, 1], [2, 0]]
    assert block(learned([1.0, 3.0], "number"), [np.nan]) == [[2]]  # no indicator that training never saw at 1
    assert block(learned([np.nan, np.nan], "number"), [np.nan, 4.0]) == [[0, 1], [4, 0]]


def test_numbers_in_disguise():
    column = learned(["1.200,5 €", "n/a", "3 €"], "number:comma in €")
    assert column.fill == pytest.approx((1200.5 + 3) / 2)
    new = column.block(pd.Series(["7,5 €", 7.5, "many", None]))
    assert new.X.tolist() == [[7.5, 0], [7.5, 0], [column.fill, 1], [column.fill, 1]]
    assert (new.unreadable, new.absent.tolist()) == (1, [False, False, True, True])
    with pytest.raises(DatasetError, match="column 'x', row 3: 'many' is not a number:comma in €"):
        column.block(pd.Series(["7,5 €", 7.5, "many", None]), strict=True)


def test_dates_are_elapsed_days_and_parts():
    column = learned(["29.02.2024 18:30", "01.01.1970"], "date:day")
    names = ["x: days", "x: year", "x: month", "x: day", "x: weekday", "x: hour"]
    assert column.feature_names == names
    (leap,) = block(column, ["29.02.2024 18:30"])
    assert leap[1:] == [2024, 2, 29, 3, 18]  # a Thursday
    assert leap[0] == pytest.approx((pd.Timestamp("2024-02-29 18:30") - pd.Timestamp(0)) / pd.Timedelta(days=1))
    assert block(column, ["31.12.1969"]) == [[-1, 1969, 12, 31, 2, 0]]


def test_categories_are_sorted_and_rare_ones_together():
    cells = ["b"] * 60 + ["a"] * 38 + ["once", "twice", None]
    column = learned(cells, "category")
    assert column.feature_names == ["x=a", "x=b", "x is another", "x is missing"]
    new = column.block(pd.Series(["a", "once", "new", "new", None]))
    assert new.X.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert new.unknown == {"once": 1, "new": 2}
    plain = learned(["a", "b"], "category")
    assert block(plain, ["c", "b"]) == [[0, 0], [0, 1]]


def test_text_equals_tf_idf_of_scikit_learn():
    column = learned(TEXTS, "text")
    peer = TfidfVectorizer(sublinear_tf=True).fit(TEXTS)
    new = [*TEXTS, "unheard words", "quiet quiet LOUD"]
    order = [peer.vocabulary_[word] for word in column.values]
    assert sorted(order) == list(range(len(peer.vocabulary_)))
    np.testing.assert_allclose(block(column, new), peer.transform(new).toarray()[:, order], atol=1e-15)
    assert block(column, [None]) == [[0] * column.width]


def test_words_are_chosen_by_the_rows_that_have_them_and_then_by_the_alphabet():
    column = learned(["b a a a", "c b", "d b c"], "text")
    assert learned(["bb aa aa aa", "cc bb", "dd bb cc"], "text").values == ("bb", "cc", "aa", "dd")
    assert column.values == ()  # words have two letters
    many = learned([f"rare{i} common" for i in range(100)], "text")
    assert many.values == ("common",)
    assert many.weights == (1.0,)


def test_a_category_of_equal_cells_is_read_once_per_value_and_equals_plain_cells():
    cells = pd.Series(["x y1", "zz yy", None, "zz yy"] * 10)
    for kind in ("category", "text"):
        one, other = (FeatureColumn.learn("x", Kind(kind), each) for each in (cells, cells.astype("category")))
        assert one == other
        assert block(one, cells) == block(one, cells.astype("category"))


def encoder_and_rows(n=40):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "remark": rng.choice(TEXTS, n),
            "tempo": rng.choice([60.0, 90.5, np.nan], n),
            "when": rng.choice(["1/31/2024", "2/1/2024"], n),
            "key": pd.Categorical(rng.choice(["C", "D"], n)),
        }
    )
    kinds = ("text", "number", "date:month", "category")
    of_columns = {name: Kind.parse(kind) for name, kind in zip(rows, kinds, strict=True)}
    return TableEncoder.learn(rows, of_columns, ["happy"], ["id"]), rows


def test_an_encoder_survives_json_and_says_what_it_did():
    encoder, rows = encoder_and_rows()
    again = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    assert (again.encode(rows).X != encoder.encode(rows).X).nnz == 0
    assert encoder.width == len(encoder.feature_names) == encoder.encode(rows).X.shape[1]
    assert [encoder.feature_names[j] for j in encoder.unscaled] == [f"remark={w}" for w in encoder.columns[0].values]
    new = pd.DataFrame({"key": ["E"], "when": ["31.2.2024"], "tempo": ["fast"], "remark": [None], "id": [7]})
    encoded = encoder.encode(new)
    assert encoded.unknown == {"key": {"E": 1}}
    assert encoded.unreadable == {"tempo": 1, "when": 1}
    assert encoded.imputed == {"tempo": 1, "when": 1}
    assert "cells that cannot be read count as missing: 'tempo' (1), 'when' (1)" in encoded.notes()
    with pytest.raises(DatasetError, match="column 'tempo', row 1: 'fast'"):
        encoder.encode(new, strict=True)


def test_an_encoder_learns_nothing_of_rows_that_it_was_not_given():
    encoder, rows = encoder_and_rows()
    train = rows.iloc[:30]
    other = rows.copy()
    other.loc[30:, "remark"] = "words of test rows only"
    other.loc[30:, "tempo"] = 1e9
    other["key"] = other["key"].astype(object).mask(other.index >= 30, "Z")
    assert TableEncoder.learn(other.iloc[:30], encoder.kinds) == TableEncoder.learn(train, encoder.kinds)
    assert TableEncoder.learn(other, encoder.kinds) != TableEncoder.learn(rows, encoder.kinds)  # the rows do matter


def test_batches_are_encoded_as_the_whole():
    encoder, rows = encoder_and_rows()
    whole = encoder.encode(rows).X.toarray()
    parts = [encoder.encode(rows.iloc[start : start + 7]).X.toarray() for start in range(0, len(rows), 7)]
    np.testing.assert_array_equal(np.vstack(parts), whole)


def test_weights_are_finite():
    column = learned(["aa bb"] * 3, "text")
    assert column.weights == (math.log(4 / 4) + 1,) * 2


@pytest.mark.parametrize("kind", ["parquet", "xlsx", "csv"])
def test_dates_of_a_frame_of_parquet_and_of_excel_are_dates(kind, tmp_path):
    when = pd.to_datetime(["2024-01-31 06:00", None, "2023-12-24", "2024-02-29"] * 5, format="mixed")
    frame = pd.DataFrame({"when": when, "x": range(20), "y": [0, 1] * 10})
    path = saved(frame, tmp_path, kind)
    plan = plan_reading(path, labels_last=1)
    assert plan.reader["columns"]["when"] == "date:year"
    data = read(path, **plan.reader)
    days, unreadable = data.kinds["when"].numbers(data.X["when"].cat.categories.tolist())
    assert (sorted(days), unreadable.any()) == ([19715.0, 19753.25, 19782.0], False)
    encoder = TableEncoder.learn(frame[["when"]], {"when": data.kinds["when"]})  # the frame itself
    assert encoder.encode(frame[["when"]]).X[:2].tolist() == [
        [19753.25, 2024, 1, 31, 2, 6, 0],
        [19753.25, 2024, 1, 31, 2, 6, 1],
    ]


def test_words_beyond_the_most_frequent_ones_are_hashed(monkeypatch):
    monkeypatch.setattr(feature_columns, "MAX_TERMS", 2)
    monkeypatch.setattr(feature_columns, "HASHED", 8)
    column = learned(["song quiet night", "song quiet", "song loud café"], "text")
    assert (column.values, column.hashed, column.width) == (("song", "quiet"), 8, 10)
    assert column.feature_names[1:3] == ["x=quiet", "x: hashed words 0"]
    (row, other, new) = (np.array(block(column, [text])[0]) for text in ("song loud", "song café", "song unheard"))
    place = {word: abs(murmurhash3_32(word, 0)) % 8 for word in ("loud", "café", "unheard", "night")}
    assert [np.flatnonzero(one[2:]).tolist() for one in (row, other, new)] == [
        [place["loud"]],
        [place["café"]],
        [place["unheard"]],
    ]
    rows = sum(place[word] == place["loud"] for word in ("loud", "night"))  # café is in the row of loud
    weight = math.log(4 / (1 + rows)) + 1
    assert row[2 + place["loud"]] / row[0] == pytest.approx(weight / column.weights[0])
    encoder = TableEncoder((column,), sparse=True, learned=True)
    again = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    assert again.columns[0].is_valid
    assert encoder.dense_columns.tolist() == [0, 1]


def test_character_n_grams_beside_the_words():
    column = learned(["singing song", "sings"], "text:chars")
    assert [value for value in column.values if "*" not in value] == ["singing", "sings", "song"]
    assert {"*sin*", "*ing*", "* sin*", "*ngs *"} <= set(column.values)
    words, grams = (np.array(["*" in value for value in column.values]) == flag for flag in (False, True))
    X = np.array(block(column, ["singing song", "sinking", "qqq"]))
    np.testing.assert_allclose(np.linalg.norm(X[:, grams], axis=1), [1, 1, 0])
    np.testing.assert_allclose(np.linalg.norm(X[:, words], axis=1), [1, 0, 0])
    assert X[1, column.values.index("*ing*")] > 0  # a word that training did not have
    peer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True).fit(["singing song", "sings"])
    order = [peer.vocabulary_[value[1:-1]] for value in np.array(column.values)[grams]]
    np.testing.assert_allclose(X[:2, grams], peer.transform(["singing song", "sinking"]).toarray()[:, order])


def test_a_method_that_makes_its_features_dense_gets_the_most_frequent_words(monkeypatch):
    monkeypatch.setattr(feature_columns, "DENSE_TERMS", 2)
    encoder, rows = encoder_and_rows()
    names = [encoder.feature_names[k] for k in encoder.dense_columns]
    assert [name for name in names if name.startswith("remark=")] == [
        f"remark={w}" for w in encoder.columns[0].values[:2]
    ]
    assert len(names) == encoder.width - encoder.columns[0].width + 2
    numbers = TableEncoder.learn(rows[["tempo", "key"]], {"tempo": Kind("number"), "key": Kind("category")})
    assert numbers.dense_columns is None
