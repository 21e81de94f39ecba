"""What `fit` takes as y: two classes of any type in one dimension, and names of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.labels import binary_classes, label_names, to_frame
from multilab.methods.neighbours.mlknn import MLkNN

pairs = st.one_of(
    *(st.lists(kind, min_size=2, max_size=2, unique=True) for kind in (st.integers(-99, 99), st.text("abc")))
)


class Threshold(MultiLabelClassifier):
    """The mean of the features as the score of all labels: the smallest classifier with a threshold of its own."""

    def __init__(self, threshold: float = 2.0) -> None:
        self.threshold = threshold

    def _fit(self, X: Any, Y: Any) -> None:
        """Learn nothing."""

    def _score_kind(self) -> str:
        return "score"

    def _scores(self, X: Any) -> np.ndarray:
        return np.repeat(X.mean(axis=1, keepdims=True), self.n_labels_, axis=1)


def test_the_base_class_decides_scores_at_the_argument_threshold() -> None:
    model = Threshold().fit([[0.0], [1.0]], [[0, 1], [1, 0]])
    assert model.predict([[1.9], [2.0], [2.1]]).tolist() == [[0, 0], [1, 1], [1, 1]]
    assert model.set_params(threshold=2.05).predict([[2.0], [2.1]]).tolist() == [[0, 0], [1, 1]]
    single = Threshold().fit([[0.0], [1.0]], ["no", "yes"])
    assert single.decision_function([[1.5], [2.0]]).tolist() == [-0.5, 0.0]
    assert single.predict([[1.5], [2.0]]).tolist() == ["no", "yes"]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(pairs, st.lists(st.booleans(), min_size=2, max_size=12).filter(lambda bits: len(set(bits)) == 2))
def test_the_larger_of_two_classes_is_the_label(pair: list[Any], bits: list[bool]) -> None:
    y = [pair[bit] for bit in bits]
    kinds = [y, np.array(y), pd.Series(y)]
    if isinstance(pair[0], str):  # numbers among objects are refused, as scikit-learn does
        kinds.append(np.array(y, dtype=object))
    for given_y in kinds:
        classes, column = binary_classes(given_y)
        assert classes is not None
        assert classes.tolist() == sorted(pair)
        assert column.shape == (len(y), 1)
        assert classes[column[:, 0].astype(int)].tolist() == y


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(1, 4), st.integers(1, 5))
def test_label_matrices_pass_as_they_are(n: int, q: int) -> None:
    for y in (np.ones((n, q)), [[1] * q] * n, pd.DataFrame(np.ones((n, q)))):
        classes, same = binary_classes(y)
        assert classes is None
        assert same is y


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 2, 1], "Only binary classification is supported.*LabelBinarizer"),
        ([0.5, 1.5, 2.0, 1.0], "Unknown label type: continuous"),
        ([1, 1, 1, 1], r"one class only, \[1\]"),
        (np.array(["a", None, "a", "b"], dtype=object), "two classes, numbers or texts"),
        ([b"a", b"b", b"a", b"b"], "two classes, numbers or texts"),
    ],
)
def test_other_y_of_one_dimension_is_refused_in_one_line(y: Any, message: str) -> None:
    with pytest.raises(MethodError, match=message) as caught:
        MLkNN(k=1).fit(np.eye(4), y)
    assert "\n" not in str(caught.value)


def test_names_that_are_not_text_are_not_names() -> None:
    assert label_names(np.eye(2)) is None
    assert label_names(pd.DataFrame(np.eye(2))) is None
    assert label_names(pd.DataFrame(np.eye(2), columns=["a", 1])) is None
    assert label_names(pd.Series([0, 1])) is None
    names = label_names(pd.DataFrame(np.eye(2), columns=["a", "b"]))
    assert names is not None
    assert names.tolist() == ["a", "b"]


def test_a_list_has_no_index() -> None:
    assert to_frame(np.eye(2), None, [[1.0], [2.0]]).index.tolist() == [0, 1]
