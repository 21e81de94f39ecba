"""The encoder of tables in pipelines of scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from multilab.datasets import DatasetError, FrameEncoder
from multilab.methods import BinaryRelevance


def frame(n=60):
    rng = np.random.default_rng(0)
    words = rng.permuted(np.tile(["goal", "salt", "more", "today"], (n, 1)), axis=1)[:, :3]
    return pd.DataFrame(
        {
            "remark": [f"{' '.join(row)} number{i}" for i, row in enumerate(words)],
            "price": [f"{cents / 100:.2f} €".replace(".", ",") for cents in rng.integers(100, 9999, n)],
            "when": pd.date_range("2024-01-01", periods=n),
            "ok": rng.random(n) < 0.5,
            "n": rng.integers(0, 5, n),
            7: pd.Categorical(rng.choice(["a", "b"], n)),
        }
    )


def labels(rows):
    return np.column_stack([rows["remark"].str.contains(word) for word in ("goal", "salt")]).astype(int)


def test_in_a_pipeline_it_learns_text():
    rows = frame()
    Y = labels(rows)
    model = make_pipeline(FrameEncoder(), BinaryRelevance(LogisticRegression(C=100)))
    assert (cross_val_predict(model, rows[["remark", "n"]], Y, cv=KFold(3)) == Y).mean() > 0.95


def test_each_fold_learns_from_its_training_rows_alone():
    rows = frame()
    changed = rows.assign(remark=rows["remark"].mask(rows.index >= 40, "words of test rows"))
    one, other = (FrameEncoder().fit(each.iloc[:40]).encoder_ for each in (rows, changed))
    assert one == other
    assert FrameEncoder().fit(changed).encoder_ != FrameEncoder().fit(rows).encoder_


def test_names_kinds_and_shapes():
    rows = frame()
    encoder = FrameEncoder().fit(rows)
    assert encoder.feature_names_in_.tolist() == ["remark", "price", "when", "ok", "n", "7"]
    kinds = [str(column.kind) for column in encoder.encoder_.columns]
    assert kinds == ["text", "number:comma in €", "date:year", "number", "number", "category"]
    X = encoder.transform(rows[rows.columns[::-1]])
    assert sp.issparse(X)
    assert X.shape == (60, len(encoder.get_feature_names_out()))
    dense = FrameEncoder().fit_transform(rows[["n", "ok"]])
    np.testing.assert_array_equal(dense, rows[["n", "ok"]].to_numpy(float))
    named = FrameEncoder().set_output(transform="pandas").fit_transform(rows[["n", 7]])
    assert list(named) == ["n", "7=a", "7=b"]
    copy = clone(FrameEncoder({"n": "category"}))
    assert copy.fit(rows).encoder_.columns[4].values == ("0", "1", "2", "3", "4")


def test_what_cannot_be_read_is_said_in_one_line():
    rows = pd.DataFrame({"when": ["01/02/2024", "03/04/2024"] * 5, "n": range(10)})
    with pytest.raises(DatasetError, match="by columns=when=date:day or when=date:month"):
        FrameEncoder().fit(rows)
    encoder = FrameEncoder({"when": "date:day"}, strict=True).fit(rows)
    with pytest.raises(DatasetError, match="column 'when', row 1: '31/31/2024' is not a date:day"):
        encoder.transform(pd.DataFrame({"when": ["31/31/2024"], "n": [1]}))
    with pytest.raises(DatasetError, match="columns of the training data are missing: 'n'"):
        encoder.transform(rows[["when"]])
    with pytest.raises(DatasetError, match="a data frame, got ndarray"):
        FrameEncoder().fit(np.zeros((3, 2)))


def test_integers_beyond_64_bits_are_numbers_and_those_beyond_floats_are_refused():
    rows = pd.DataFrame({"x": [10**30, 2, None, 4] * 5, "id": [f"{10**25}", "b", "c", "d"] * 5, "v": [[0.5, 1]] * 20})
    encoder = FrameEncoder({"id": "category"}).fit(rows)
    assert encoder.transform(rows.assign(x=[2**70, *rows["x"][1:]]))[0, 0] == float(2**70)
    assert encoder.transform(rows.assign(id=10**25))[0].tolist() == encoder.transform(rows)[0].tolist()
    for wrong in (rows.assign(x=[10**400, *rows["x"][1:]]), rows.assign(v=[[10**400, 1.0]] * 20)):
        with pytest.raises(DatasetError, match="row 1"):
            encoder.transform(wrong)
        with pytest.raises(DatasetError, match="row 1"):
            FrameEncoder({"id": "category"}).fit(wrong)
