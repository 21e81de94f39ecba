"""Samplers by label: ML-ROS, ML-RUS and MLSMOTE, and that only training rows are resampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

from multilab.datasets import irlbl, mean_ir
from multilab.methods import MLROS, MLRUS, MLSMOTE, BinaryRelevance, KernelELM, MLkNN, ResampledClassifier
from multilab.methods.base import MethodError, MultiLabelClassifier
from multilab.methods.neighbours._search import exact_neighbours

SAMPLERS = [MLROS(0.3, random_state=0), MLRUS(0.3, random_state=0), MLSMOTE(random_state=0)]


def imbalanced(seed: int = 0, n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Return X and Y with labels in 60, 30, 10 and 5 percent of the rows."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 4)) < [0.6, 0.3, 0.1, 0.05]).astype(np.int64)
    Y[:40:10, 3] = 1
    Y[45:80:10, 3] = 1
    return np.round(rng.normal(size=(n, 5)), 3) + Y @ rng.normal(size=(4, 5)), Y


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 1.0, 3.0]))
def test_random_over_sampling_copies_rows_of_minority_labels(seed: int, ratio: float) -> None:
    X, Y = imbalanced(seed)
    sampler = MLROS(ratio, random_state=seed)
    new_X, new_Y = sampler.fit_resample(X, Y)
    np.testing.assert_array_equal(new_X[:80], X)
    np.testing.assert_array_equal(new_Y, Y[sampler.sample_indices_])
    np.testing.assert_array_equal(new_X, X[sampler.sample_indices_])
    copies = sampler.sample_indices_[80:]
    minority = irlbl(Y) > mean_ir(Y)
    assert 0 < len(copies) <= int(ratio * 80)
    assert Y[copies][:, minority].any(axis=1).all()
    if len(copies) < int(ratio * 80):  # stopped since no label is in the minority any more, by the first MeanIR
        before = Y[sampler.sample_indices_[:-1]]
        assert (irlbl(before)[minority] > mean_ir(Y)).any()


def test_random_over_sampling_stops_a_label_at_the_mean_ratio() -> None:
    Y = np.array([[1, 0]] * 12 + [[0, 1]])
    new_Y = MLROS(10.0, random_state=0).fit_resample(np.arange(13.0)[:, None], Y)[1]
    # MeanIR = (1 + 12) / 2 = 6.5: the second copy is the first with 12 / count <= 6.5
    assert new_Y[:, 1].sum() == 2


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.3, 1.0]))
def test_random_under_sampling_keeps_all_rows_of_minority_labels(seed: int, ratio: float) -> None:
    X, Y = imbalanced(seed)
    sampler = MLRUS(ratio, random_state=seed)
    new_X, new_Y = sampler.fit_resample(X, Y)
    rows = sampler.sample_indices_
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(new_X, X[rows])
    np.testing.assert_array_equal(new_Y, Y[rows])
    minority = Y[:, irlbl(Y) > mean_ir(Y)].any(axis=1)
    assert len(rows) == 80 - min(int(ratio * 80), (~minority).sum())
    assert set(np.flatnonzero(minority)) <= set(rows)


@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["ranking", "union", "intersection"]), st.integers(1, 7))
def test_synthetic_rows_lie_between_a_row_and_a_neighbour(seed: int, labels: Any, k: int) -> None:
    X, Y = imbalanced(seed)
    sampler = MLSMOTE(k, labels, random_state=seed)
    new_X, new_Y = sampler.fit_resample(X, Y)
    np.testing.assert_array_equal(new_X[:80], X)
    np.testing.assert_array_equal(new_Y[:80], Y)
    at = 80
    for label in np.flatnonzero(irlbl(Y) > mean_ir(Y)):
        bag = np.flatnonzero(Y[:, label])
        near = bag[exact_neighbours(X[bag], min(k, len(bag) - 1))[0]]
        for row, others in zip(bag, near, strict=True):
            # x + u (z - x) for one z and one u
            steps = [
                (new_X[at] - X[row]) @ (X[z] - X[row]) / max(float((X[z] - X[row]) @ (X[z] - X[row])), 1e-300)
                for z in others
            ]
            errors = [
                np.abs(X[row] + u * (X[z] - X[row]) - new_X[at]).max() for u, z in zip(steps, others, strict=True)
            ]
            assert min(errors) < 1e-9
            assert -1e-9 <= steps[int(np.argmin(errors))] <= 1 + 1e-9
            counts = Y[[row, *others]].sum(axis=0)
            expected = {
                "ranking": 2 * counts >= len(others) + 1,
                "union": counts > 0,
                "intersection": counts == len(others) + 1,
            }[labels]
            np.testing.assert_array_equal(new_Y[at], expected)
            at += 1
    assert at == len(new_X) == 80 + sampler.n_synthetic_


def test_mlsmote_by_a_computed_example() -> None:
    X = np.array([[0.0], [1.0], [4.0], [9.0], [10.0], [11.0]])
    Y = np.array([[0, 1], [1, 1], [1, 0], [1, 0], [1, 0], [1, 0]])
    new_X, new_Y = MLSMOTE(k=5, random_state=0).fit_resample(X, Y)
    assert len(new_X) == 8  # the second label has two rows, each the neighbour of the other
    assert ((new_X[6:] > 0) & (new_X[6:] < 1)).all()
    assert new_Y[6:].tolist() == [[1, 1], [1, 1]]  # the first label: one of two, which is half
    assert MLSMOTE(labels="intersection", random_state=0).fit_resample(X, Y)[1][6:].tolist() == [[0, 1], [0, 1]]


def test_categorical_features_get_the_most_frequent_value_of_the_neighbours() -> None:
    X, Y = imbalanced()
    X[:, 1] = np.random.default_rng(1).integers(0, 3, size=len(X))
    for table in (X, sp.csr_array(X)):
        new_X, _ = MLSMOTE(k=3, categorical_features=[1], random_state=0).fit_resample(table, Y)
        new_X = new_X.toarray() if sp.issparse(new_X) else new_X
        assert set(new_X[:, 1]) <= {0.0, 1.0, 2.0}
        label = int(np.flatnonzero(irlbl(Y) > mean_ir(Y))[0])
        bag = np.flatnonzero(Y[:, label])
        near = bag[exact_neighbours(X[bag], min(3, len(bag) - 1))[0]]
        counts = np.stack([(X[near, 1] == value).sum(axis=1) for value in range(3)])
        np.testing.assert_array_equal(new_X[80 : 80 + len(bag), 1], counts.argmax(axis=0))
    with pytest.raises(MethodError, match="from 0 to 4"):
        MLSMOTE(categorical_features=[5]).fit_resample(X, Y)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_sparse_and_other_forms_give_the_same_rows(sampler: Any) -> None:
    X, Y = imbalanced()
    X = np.where(X > 0.5, X, 0.0)
    expected_X, expected_Y = clone(sampler).fit_resample(X, Y)
    assert expected_Y.dtype == Y.dtype
    for given_X, given_Y in [
        (sp.csr_array(X), sp.csr_array(Y)),
        (sp.csc_matrix(X), Y),
        (pd.DataFrame(X), pd.DataFrame(Y)),
    ]:
        new_X, new_Y = clone(sampler).fit_resample(given_X, given_Y)
        assert sp.issparse(new_X) == sp.issparse(given_X)
        assert sp.issparse(new_Y) == sp.issparse(given_Y)
        dense = [part.toarray() if sp.issparse(part) else part for part in (new_X, new_Y)]
        np.testing.assert_allclose(dense[0], expected_X, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(dense[1], expected_Y)
    one_X, one_y = clone(sampler).fit_resample(X, np.array(["no", "yes"])[Y[:, 3]])
    assert one_y.shape == (len(one_X),)
    assert set(one_y) == {"no", "yes"}


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_balanced_labels_and_equal_seeds(sampler: Any) -> None:
    X, Y = imbalanced()
    even = np.eye(4, dtype=int)[np.arange(80) % 4]
    np.testing.assert_array_equal(clone(sampler).fit_resample(X, even)[1], even)
    np.testing.assert_array_equal(clone(sampler).fit_resample(X, np.zeros_like(Y))[0], X)
    first, second = (clone(sampler).fit_resample(X, Y)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [(MLROS(0), "ratio=0"), (MLRUS(1.5), "ratio=1.5"), (MLSMOTE(0), "k=0"), (MLSMOTE(labels="all"), "'all'")],
)
def test_wrong_arguments_are_explained(sampler: Any, message: str) -> None:
    X, Y = imbalanced()
    with pytest.raises(MethodError, match=message):
        sampler.fit_resample(X, Y)
    with pytest.raises(MethodError, match=message):
        sampler.fit(X, Y)


class Recorder(MultiLabelClassifier):
    """Classifier that remembers which rows it has seen."""

    seen: tuple[np.ndarray, ...] = ()
    tested: tuple[np.ndarray, ...] = ()

    def _fit(self, X: Any, Y: Any) -> None:
        self._Y = Y
        Recorder.seen = (*Recorder.seen, X)

    def _scores(self, X: Any) -> np.ndarray:
        Recorder.tested = (*Recorder.tested, X)
        return np.tile(self._Y.mean(axis=0), (len(X), 1))


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_cross_validation_tests_original_rows_of_the_other_folds_only(sampler: Any) -> None:
    X, Y = imbalanced()
    folds = list(KFold(4).split(X))
    for fold, (_, test) in enumerate(folds):
        X[test, 0] = fold  # a synthetic row of training rows of a single fold would have its number
    Recorder.seen, Recorder.tested = (), ()
    cross_validate(ResampledClassifier(Recorder(), sampler), X, Y, cv=folds, scoring="f1_macro")
    assert len(Recorder.seen) == len(Recorder.tested) == 4
    for fold, (train, test) in enumerate(folds):
        np.testing.assert_array_equal(Recorder.tested[fold], X[test])
        seen = {row.tobytes() for row in Recorder.seen[fold]}
        assert not seen & {row.tobytes() for row in X[test]}
        expected = clone(sampler).fit_resample(X[train], Y[train])[0]
        np.testing.assert_array_equal(Recorder.seen[fold], expected)
        assert len(expected) != len(train)


def test_it_is_the_estimator_on_resampled_rows() -> None:
    X, Y = imbalanced()
    for base in (BinaryRelevance(LogisticRegression()), KernelELM(threshold=0.1), MLkNN(k=3)):
        model = ResampledClassifier(base, SAMPLERS[0]).fit(X, Y)
        direct = clone(base).fit(*SAMPLERS[0].fit_resample(X, Y))
        assert model.n_resampled_ > len(X)
        for ours, theirs in zip(model.predict_with_scores(X), direct.predict_with_scores(X), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    forest = ResampledClassifier(RandomForestClassifier(5, random_state=0), SAMPLERS[2]).fit(X, Y)
    theirs = RandomForestClassifier(5, random_state=0).fit(*SAMPLERS[2].fit_resample(X, Y))
    np.testing.assert_array_equal(forest.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(forest.predict_proba(X), np.column_stack([p[:, 1] for p in theirs.predict_proba(X)]))


def test_parameters_of_the_sampler_are_searched_and_seeds_are_set() -> None:
    X, Y = imbalanced()
    model = ResampledClassifier(BinaryRelevance(LogisticRegression()), MLSMOTE(), random_state=3)
    search = GridSearchCV(model, {"sampler__k": [1, 3], "sampler__labels": ["union", "ranking"]}, cv=3).fit(X, Y)
    assert search.best_params_["sampler__k"] in (1, 3)
    first, second = (clone(model).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    with pytest.raises(MethodError, match="no fit_resample"):
        ResampledClassifier(sampler=LogisticRegression()).fit(X, Y)
    assert isinstance(first.sampler_, BaseEstimator)
