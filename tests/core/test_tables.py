"""Label frames of every type of pandas, wherever labels are taken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from multilab.comparison import compare
from multilab.core.tables import table_values
from multilab.datasets.errors import DatasetError
from multilab.datasets.imbalance import irlbl
from multilab.decision import TunedThresholdClassifier, macro_f1_thresholds
from multilab.methods import MLkNN
from multilab.methods.base import MethodError
from multilab.methods.labels import check_labels
from multilab.metrics import bootstrap, bounds, confusion_counts, get_scorer, macro_f1, per_label, score_all
from multilab.metrics.errors import MetricError
from multilab.model_selection import (
    IterativeStratifiedGroupKFold,
    IterativeStratifiedKFold,
    train_test_split,
)

rng = np.random.default_rng(0)
PLAIN = pd.DataFrame((rng.random((40, 3)) < 0.4).astype(int), columns=["a", "b", "c"])
P = pd.DataFrame(rng.random((40, 3)), columns=["a", "b", "c"])
X = rng.normal(size=(40, 4))
HIDDEN = rng.random((40, 3)) < 0.1
TYPES = {
    "Int64": lambda Y: Y.astype("Int64"),
    "UInt8": lambda Y: Y.astype("UInt8"),
    "Float64": lambda Y: Y.astype("Float64"),
    "boolean": lambda Y: Y.astype(bool).astype("boolean"),
    "int64[pyarrow]": lambda Y: Y.astype("int64[pyarrow]"),
    "bool[pyarrow]": lambda Y: Y.astype(bool).astype("bool[pyarrow]"),
    "category": lambda Y: Y.astype("category"),
    "category of bool": lambda Y: Y.astype(bool).astype("category"),
    "object": lambda Y: Y.astype(object),
    "mixed": lambda Y: pd.DataFrame({"a": Y["a"].astype("Int64"), "b": Y["b"] > 0, "c": Y["c"].astype("category")}),
}


@pytest.fixture(params=TYPES)
def kind(request):
    if "pyarrow" in request.param:
        pytest.importorskip("pyarrow")
    return TYPES[request.param]


def test_a_frame_of_any_type_has_the_values_of_a_plain_one(kind):
    Y, decisions = kind(PLAIN), kind((P > 0.5).astype(int))
    plain, decided = PLAIN.to_numpy(), (P > 0.5).to_numpy()
    assert macro_f1(Y, decisions) == macro_f1(plain, decided)
    assert score_all(Y, P, decisions) == score_all(plain, P.to_numpy(), decided)
    pd.testing.assert_frame_equal(per_label(Y, P), per_label(PLAIN, P))
    pd.testing.assert_frame_equal(confusion_counts(Y, decisions), confusion_counts(PLAIN, decided))
    assert bootstrap("macro_f1", Y, decisions, n_draws=5, random_state=0) == bootstrap(
        "macro_f1", plain, decided, n_draws=5, random_state=0
    )
    assert bootstrap(macro_f1, Y, decisions, n_draws=5, random_state=0) == bootstrap(
        macro_f1, plain, decided, n_draws=5, random_state=0
    )
    model = MLkNN(k=3).fit(X, Y)
    assert get_scorer("ranking_loss")(model, X, Y) == get_scorer("ranking_loss")(model, X, plain)
    assert model.score(X, Y) == model.score(X, plain)
    np.testing.assert_array_equal(macro_f1_thresholds(Y, P), macro_f1_thresholds(plain, P))
    np.testing.assert_array_equal(irlbl(Y), irlbl(plain))
    tuned = [TunedThresholdClassifier(MLkNN(k=3), cv=2).fit(X, labels).thresholds_ for labels in (Y, plain)]
    np.testing.assert_array_equal(*tuned)
    folds = [list(IterativeStratifiedKFold(3).split(X, labels)) for labels in (Y, plain)]
    for (train, test), (expected, held_out) in zip(*folds, strict=True):
        np.testing.assert_array_equal(train, expected)
        np.testing.assert_array_equal(test, held_out)


def test_a_missing_value_is_a_label_that_was_not_observed(kind):
    Y = kind(PLAIN).mask(HIDDEN)
    plain = np.where(HIDDEN, np.nan, PLAIN)
    np.testing.assert_array_equal(check_labels(Y, missing=True), check_labels(plain, missing=True))
    assert macro_f1(Y, P > 0.5) == macro_f1(plain, P > 0.5)
    assert bounds("hamming_loss", Y, P > 0.5) == bounds("hamming_loss", plain, P > 0.5)
    tuned, expected = (TunedThresholdClassifier(MLkNN(k=3), cv=2).fit(X, each) for each in (Y, plain))
    np.testing.assert_array_equal(tuned.thresholds_, expected.thresholds_)
    with pytest.raises(MetricError, match="must be finite"):
        score_all(PLAIN, P.astype("Float64").mask(HIDDEN))
    for train, test in IterativeStratifiedKFold(2).split(X, Y):
        assert len(train) == len(test) == 20


@pytest.mark.parametrize("missing", [pd.NA, None, np.nan])
def test_objects_with_any_mark_of_a_missing_value_are_read(missing):
    values = table_values(PLAIN.astype(object).mask(HIDDEN, missing))
    np.testing.assert_array_equal(values, np.where(HIDDEN, np.nan, PLAIN))
    assert values.dtype == np.float64


def test_comparing_takes_what_fit_takes():
    boards = [compare([MLkNN(k=3)], X, Y, cv=2, metrics=["macro_f1"]) for Y in (PLAIN.convert_dtypes(), PLAIN)]
    assert not boards[0].failures
    assert boards[0].table["macro_f1"].tolist() == boards[1].table["macro_f1"].tolist()


@pytest.mark.parametrize("table", [PLAIN.astype(str), PLAIN.astype(str).astype("category"), PLAIN.assign(c="x")])
def test_texts_are_no_labels(table):
    with pytest.raises(MethodError, match="must hold 0 and 1 only"):
        MLkNN().fit(X, table)
    with pytest.raises(MetricError, match="not numbers"):
        macro_f1(table, P > 0.5)
    with pytest.raises(DatasetError, match="must be a table of 0 and 1"):
        list(IterativeStratifiedKFold(2).split(X, table))


def test_frames_with_the_same_columns_in_another_order_are_refused():
    Y, other = PLAIN, P[["c", "a", "b"]]
    model = MLkNN(k=3).fit(X, Y)
    calls = [
        lambda: macro_f1(Y, other > 0.5),
        lambda: score_all(Y, other),
        lambda: score_all(Y, P, other > 0.5),
        lambda: per_label(Y, other),
        lambda: confusion_counts(Y, other > 0.5),
        lambda: bounds("macro_f1", Y, other > 0.5),
        lambda: bounds("macro_f1", Y.mask(HIDDEN), other > 0.5),
        lambda: bootstrap("ranking_loss", Y, other),
        lambda: bootstrap(macro_f1, Y, other > 0.5),
        lambda: macro_f1(Y, P > 0.5, y_mask=~(other > 0.9)),
        lambda: get_scorer("macro_f1")(model, X, Y[["c", "a", "b"]]),
        lambda: model.score(X, Y[["c", "a", "b"]]),
        lambda: macro_f1_thresholds(Y, other),
    ]
    for call in calls:
        with pytest.raises((MetricError, MethodError), match="in another order"):
            call()
    renamed = (P > 0.5).set_axis(["p_a", "p_b", "p_c"], axis=1)
    assert macro_f1(Y, renamed) == macro_f1(Y, P > 0.5) == macro_f1(Y, (other > 0.5)[["a", "b", "c"]])


def test_a_comparison_keeps_groups_together():
    groups = np.arange(len(PLAIN)) % 8
    board = compare([MLkNN(k=3)], X, PLAIN, cv=2, groups=groups, metrics=["macro_f1"])
    same = compare([MLkNN(k=3)], X, PLAIN, cv=IterativeStratifiedGroupKFold(2), groups=groups, metrics=["macro_f1"])
    assert board.table["macro_f1"].tolist() == same.table["macro_f1"].tolist()


def test_rows_of_unequal_length_are_one_line():
    ragged = [[1, 0], [1], [0, 1], [1, 1]]
    with pytest.raises(MethodError, match="unequal length"):
        MLkNN(k=1).fit(X[:4], ragged)
    with pytest.raises(DatasetError, match="rows of unequal length"):
        list(IterativeStratifiedKFold(2).split(X[:4], ragged))


def test_groups_of_mixed_types_are_one_line():
    groups = np.array([1, "a"] * 20, dtype=object)
    with pytest.raises(DatasetError, match=r"groups .* int, str"):
        list(IterativeStratifiedGroupKFold(2).split(X, PLAIN, groups))
    with pytest.raises(DatasetError, match=r"groups .* int, str"):
        train_test_split(X, PLAIN, groups=groups)
