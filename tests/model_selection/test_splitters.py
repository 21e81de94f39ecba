"""Splitters: sets that partition the rows, exact sizes, groups on one side, and use as ``cv`` in scikit-learn."""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import (
    BaseCrossValidator,
    BaseShuffleSplit,
    GridSearchCV,
    check_cv,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.tree import DecisionTreeClassifier

from model_selection.test_stratification_properties import orders, seeds, tables
from multilab.datasets import DatasetError, load
from multilab.model_selection import (
    IterativeStratifiedGroupKFold,
    IterativeStratifiedKFold,
    IterativeStratifiedShuffleSplit,
    RepeatedIterativeStratifiedKFold,
    indices_digest,
    make_splits,
    train_test_split,
)
from multilab.model_selection.iterative_stratification import stratification_columns

fast = settings(max_examples=30, deadline=None, derandomize=True)
SPLITTERS = {
    "kfold": IterativeStratifiedKFold(3, random_state=4),
    "repeated": RepeatedIterativeStratifiedKFold(3, n_repeats=2, random_state=4),
    "shuffle": IterativeStratifiedShuffleSplit(4, test_size=0.3, random_state=4),
    "group": IterativeStratifiedGroupKFold(3, random_state=4),
}
PARTITIONS = [name for name in SPLITTERS if name in ("kfold", "group")]


def changed(splitter, **changes):
    """Return a copy of a splitter with other arguments."""
    other = copy.copy(splitter)
    vars(other).update(changes)
    return other


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = load("genes-toy")
    return data.X[:120], data.Y[:120], np.arange(120) // 4


def as_lists(splits) -> list[tuple[list[int], list[int]]]:
    return [(train.tolist(), test.tolist()) for train, test in splits]


@pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("order", [1, 2])
def test_splits_are_equal_when_repeated_and_for_sparse_and_framed_labels(splitter, order):
    X, Y, groups = problem()
    splitter = changed(splitter, order=order)
    expected = as_lists(splitter.split(X, Y, groups))
    forms = (Y, sp.csr_array(Y), sp.csc_matrix(Y), pd.DataFrame(Y), Y.astype(float), Y.tolist())
    assert all(as_lists(splitter.split(X, form, groups)) == expected for form in forms)
    assert as_lists(splitter.split(None, Y, groups)) == expected
    assert len(expected) == splitter.get_n_splits(X, Y, groups) == splitter.get_n_splits()
    for train, test in expected:
        assert train == sorted(set(train))
        assert test == sorted(set(test))
        assert not set(train) & set(test)


PINNED = {  # of genes-toy, 120 rows; the same on every processor
    "kfold": "9f4bf220e20e",
    "repeated": "b242a0e0c571",
    "shuffle": "2c824596bb39",
    "group": "671c79646eb9",
}


@pytest.mark.parametrize("name", PINNED)
def test_the_splits_are_these(name):
    digests = [indices_digest(*split) for split in SPLITTERS[name].split(*problem())]
    assert indices_digest([int(digest[:12], 16) for digest in digests], [])[:12] == PINNED[name]


def test_random_states():
    X, Y, groups = problem()
    for splitter in SPLITTERS.values():
        first, other, same, drawn, again = (
            as_lists(changed(splitter, random_state=state).split(X, Y, groups))
            for state in (4, 5, np.int64(4), np.random.RandomState(1), np.random.RandomState(1))
        )
        assert first == same
        assert first != other
        assert drawn == again
        fresh = changed(splitter, random_state=None)
        assert len(list(fresh.split(X, Y, groups))) == len(first)
        for wrong in (-1, 0.5, "0"):
            with pytest.raises(DatasetError, match="random_state"):
                next(changed(splitter, random_state=wrong).split(X, Y, groups))


def test_repetitions_are_those_of_the_protocol():
    X, Y, _ = problem()
    repeated = list(RepeatedIterativeStratifiedKFold(4, n_repeats=2, order=2, random_state=9).split(X, Y))
    protocol = make_splits(Y, {"kfold": 4, "repeats": 2, "stratify": 2, "seed": 9})
    assert [indices_digest(*split) for split in repeated] == [split.digest for split in protocol]
    assert as_lists(repeated[:4]) == as_lists(IterativeStratifiedKFold(4, order=2, random_state=9).split(X, Y))
    with pytest.raises(DatasetError, match="n_repeats"):
        next(RepeatedIterativeStratifiedKFold(n_repeats=0).split(X, Y))


def test_shuffle_splits_are_those_of_the_protocol():
    X, Y, _ = problem()
    splits = IterativeStratifiedShuffleSplit(3, train_size=0.7, random_state=9).split(X, Y)
    protocol = make_splits(Y, {"holdout": {"train_size": 0.7}, "repeats": 3, "stratify": 1, "seed": 9})
    assert [indices_digest(*split) for split in splits] == [split.digest for split in protocol]


sizes = st.one_of(st.none(), st.integers(1, 30), st.integers(1, 99).map(lambda percent: percent / 100))


@fast
@given(Y=tables, order=orders, seed=seeds, test_size=sizes, train_size=sizes)
def test_sizes_follow_the_rule(Y, order, seed, test_size, train_size):
    n = len(Y)

    def rows(size, rounded):
        return rounded(Fraction(round(size * 100), 100) * n) if isinstance(size, float) else size

    test = rows(0.1 if test_size is None and train_size is None else test_size, math.ceil)
    train = rows(train_size, math.floor)
    test = n - train if test is None else test
    train = n - test if train is None else train
    splitter = IterativeStratifiedShuffleSplit(
        2, test_size=test_size, train_size=train_size, order=order, random_state=seed
    )
    if train < 1 or test < 1 or train + test > n:
        with pytest.raises(DatasetError, match="both need a row"):
            next(splitter.split(Y, Y))
    else:
        assert [(len(one), len(other)) for one, other in splitter.split(Y, Y)] == [(train, test)] * 2


@pytest.mark.parametrize("size", [0, -1, 0.0, 1.0, 1.5, True, "a", float("nan")])
def test_sizes_that_are_none_are_refused(size):
    Y = np.eye(4)
    for name in ("test_size", "train_size"):
        with pytest.raises(DatasetError, match=f"{name} must be"):
            next(IterativeStratifiedShuffleSplit(**{name: size}).split(Y, Y))


def test_rows_left_out_are_stratified_too():
    Y = np.repeat(np.eye(4, dtype=np.uint8), [10, 20, 30, 40], axis=0)
    for train, test in IterativeStratifiedShuffleSplit(3, train_size=0.5, test_size=0.3).split(Y, Y):
        assert Y[train].sum(axis=0).tolist() == [5, 10, 15, 20]
        assert Y[test].sum(axis=0).tolist() == [3, 6, 9, 12]


def test_train_test_split_returns_slices_of_the_same_type():
    X, Y, groups = problem()
    frame, names = pd.DataFrame(X, index=np.arange(120) + 7), [f"row {i}" for i in range(120)]
    parts = train_test_split(frame, pd.DataFrame(Y), sp.coo_array(X), groups, names, pd.Series(names), test_size=30)
    assert [type(part) for part in parts] == [
        *(2 * [pd.DataFrame] + 2 * [pd.DataFrame] + 2 * [sp.csr_array]),
        *(2 * [np.ndarray] + 2 * [list] + 2 * [pd.Series]),
    ]
    ((train, test),) = IterativeStratifiedShuffleSplit(1, test_size=30).split(X, Y)
    assert parts[0].index.tolist() == (train + 7).tolist()
    assert parts[1].index.tolist() == (test + 7).tolist()
    assert parts[3].to_numpy().tolist() == Y[test].tolist()
    assert parts[9] == [names[row] for row in test]
    assert parts[6].tolist() == groups[train].tolist()


def test_train_test_split_by_other_labels_and_without():
    X, Y, _ = problem()
    train, test = train_test_split(np.arange(120), stratify=sp.csr_array(Y), order=2, random_state=3)
    same_train, same_test, *_ = train_test_split(np.arange(120), Y, order=2, random_state=3)
    assert (train.tolist(), test.tolist()) == (same_train.tolist(), same_test.tolist())
    assert len(test) == 30
    train, test = train_test_split(np.arange(120), stratify=None, train_size=50, test_size=20, random_state=3)
    assert (len(train), len(test), len(set(train) | set(test))) == (50, 20, 70)
    assert train.tolist() != list(range(50))
    with pytest.raises(DatasetError, match="1 arrays"):
        train_test_split(X)
    with pytest.raises(DatasetError, match="stratify='Y'"):
        train_test_split(X, Y, stratify="Y")
    with pytest.raises(DatasetError, match="at least one array"):
        train_test_split()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        train_test_split(X, Y[1:])
    with pytest.raises(DatasetError, match=r"120.*119"):
        train_test_split(X, stratify=Y[1:])


@pytest.mark.parametrize("stratify", ["labels", None])
@pytest.mark.parametrize("size", [0.1, 0.25, 0.3, 0.5, 0.9])
def test_train_test_split_keeps_groups_together(size, stratify):
    _, Y, _ = problem()
    groups = np.arange(120) // 3
    rows = np.arange(120)
    train, test, Y_train, Y_test = train_test_split(rows, Y, groups=groups, test_size=size, stratify=stratify)
    assert sorted([*train, *test]) == rows.tolist()
    assert not set(groups[train]) & set(groups[test])
    assert abs(len(test) - 120 * size) <= 3
    if stratify:
        assert np.abs(Y_test.sum(axis=0) - size * Y.sum(axis=0)).max() <= 3
    assert np.array_equal(Y_train, Y[train])


def test_train_test_split_of_groups_needs_two_and_leaves_no_row_out():
    X, Y, _ = problem()
    _, test = train_test_split(np.arange(120), stratify=Y, groups=np.arange(120) < 90, test_size=0.25)
    assert test.tolist() in (list(range(90)), list(range(90, 120)))
    with pytest.raises(DatasetError, match="2 folds of 1 groups"):
        train_test_split(X, Y, groups=np.zeros(120))
    with pytest.raises(DatasetError, match="not both"):
        train_test_split(X, Y, groups=np.arange(120), test_size=0.2, train_size=0.2)
    with pytest.raises(DatasetError, match="one value per row"):
        train_test_split(X, Y, groups=np.arange(60))


@st.composite
def grouped(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    Y = draw(tables)
    return Y, np.array(draw(st.lists(st.integers(0, 9), min_size=len(Y), max_size=len(Y))))


@fast
@given(data=grouped(), order=orders, seed=seeds, folds=st.integers(2, 4))
def test_no_group_is_on_both_sides_and_no_move_or_exchange_is_better(data, order, seed, folds):
    Y, groups = data
    splitter = IterativeStratifiedGroupKFold(folds, order=order, random_state=seed)
    if len(set(groups)) < folds:
        with pytest.raises(DatasetError, match=rf"{folds} folds of"):
            next(splitter.split(Y, Y, groups))
        return
    fold_of = np.full(len(Y), -1)
    for fold, (train, test) in enumerate(splitter.split(Y, Y, groups)):
        assert len(test)
        assert not set(groups[train]) & set(groups[test])
        assert sorted([*train, *test]) == list(range(len(Y)))
        fold_of[test] = fold
    columns = np.hstack([stratification_columns(Y, order).toarray(), np.ones((len(Y), 1), dtype=bool)])
    weights = 16 * len(Y) // columns.sum(axis=0)

    def objective(where: np.ndarray) -> int:
        counts = np.array([columns[where == fold].sum(axis=0) for fold in range(folds)])
        return int((weights * (folds * counts - columns.sum(axis=0)) ** 2).sum())

    reached = objective(fold_of)
    for group in set(groups):
        mine = groups == group
        if (mine | (fold_of != fold_of[mine][0])).all():
            continue  # its fold would be empty
        assert all(objective(np.where(mine, fold, fold_of)) >= reached for fold in range(folds))
    for one, other in itertools.combinations(sorted(set(groups)), 2):
        swapped = fold_of.copy()
        swapped[groups == one], swapped[groups == other] = fold_of[groups == other][0], fold_of[groups == one][0]
        assert objective(swapped) >= reached


@fast
@given(data=grouped(), order=orders, seed=seeds)
def test_the_fold_of_a_group_depends_neither_on_the_order_of_rows_nor_on_names_in_the_same_order(data, order, seed):
    Y, groups = data
    if len(set(groups)) < 2:
        return
    splitter = IterativeStratifiedGroupKFold(2, order=order, random_state=seed)
    rows = np.random.default_rng(seed).permutation(len(Y))
    names = np.array([f"group {group}" for group in groups], dtype=object)
    for (_, test), (_, moved), (_, named) in zip(
        splitter.split(Y, Y, groups),
        splitter.split(Y, Y[rows], groups[rows]),
        splitter.split(Y, Y, names),
        strict=True,
    ):
        assert set(rows[moved]) == set(test) == set(named)


def test_groups_are_moved_until_no_move_is_better():
    """With more groups than are exchanged, moves alone lead to the end, here in two passes."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(600), rng.integers(1, 30, 600))
    Y = (rng.random((len(groups), 12)) < rng.beta(0.3, 1, (600, 12))[groups]).astype(int)
    fold_of = np.empty(len(Y), dtype=int)
    for fold, (_, test) in enumerate(IterativeStratifiedGroupKFold(4).split(Y, Y, groups)):
        fold_of[test] = fold
    columns = np.column_stack([Y, np.ones(len(Y), dtype=int)])
    of_group = np.array([columns[groups == group].sum(axis=0) for group in range(600)])
    in_fold = np.array([columns[fold_of == fold].sum(axis=0) for fold in range(4)])
    missing = columns.sum(axis=0) - 4 * in_fold
    weights = 16 * len(Y) // columns.sum(axis=0)

    def objective(missing: np.ndarray) -> int:
        return int((weights * missing**2).sum())

    for group, old in enumerate(fold_of[np.unique(groups, return_index=True)[1]]):
        for new in set(range(4)) - {old}:
            moved = missing.copy()
            moved[old] += 4 * of_group[group]
            moved[new] -= 4 * of_group[group]
            assert objective(moved) >= objective(missing)


def test_groups_are_balanced_by_labels():
    """40 groups of 5 rows with the same label set, 4 label sets 10 times: every fold can get an equal share."""
    Y = np.repeat(np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 0]]), 50, axis=0)
    groups = np.arange(200) // 5
    for _, test in IterativeStratifiedGroupKFold(5).split(Y, Y, groups):
        assert Y[test].sum(axis=0).tolist() == [10, 20, 10]
        assert len(test) == 40


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (None, "groups of the rows are missing"),
        ([1, 2], "one value per row"),
        ([1.0, 2.0, np.nan], "missing values"),
        (np.array(["a", None, "b"], dtype=object), "missing values"),
        ([1, 1, 1], "2 folds of 1 groups"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(groups, message):
    with pytest.raises(DatasetError, match=message):
        next(IterativeStratifiedGroupKFold(2).split(np.eye(3), np.eye(3), groups))


@pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)
def test_bad_input_is_refused(splitter):
    X, Y, groups = problem()
    with pytest.raises(DatasetError, match="needs the labels"):
        next(splitter.split(X))
    with pytest.raises(DatasetError, match=r"119.*120"):
        next(splitter.split(X[1:], Y, groups))
    with pytest.raises(DatasetError, match="order 1 or 2"):
        next(changed(splitter, order=3).split(X, Y, groups))


@pytest.mark.parametrize("name", SPLITTERS)
def test_every_splitter_is_a_cv_of_scikit_learn(name):
    X, Y, groups = problem()
    splitter = SPLITTERS[name]
    model = MultiOutputClassifier(DecisionTreeClassifier(max_depth=2, random_state=0))
    assert isinstance(splitter, BaseShuffleSplit if name == "shuffle" else BaseCrossValidator)
    assert check_cv(splitter) is splitter
    assert repr(eval(repr(splitter))) == repr(splitter)
    assert "random_state=4" in repr(splitter)
    result = cross_validate(model, X, Y, groups=groups, cv=splitter, return_indices=True, scoring=subset_accuracy)
    expected = as_lists(splitter.split(X, Y, groups))
    indices = zip(result["indices"]["train"], result["indices"]["test"], strict=True)
    assert as_lists(indices) == expected
    search = GridSearchCV(model, {"estimator__max_depth": [1, 2]}, cv=splitter, scoring=subset_accuracy)
    search.fit(X, Y, groups=groups)
    assert search.n_splits_ == splitter.get_n_splits(X, Y, groups)
    assert clone(search).cv.random_state == 4
    curve, *_ = learning_curve(model, X, Y, groups=groups, cv=splitter, train_sizes=[0.5, 1.0], scoring=subset_accuracy)
    assert len(curve) == 2
    if name in PARTITIONS:
        assert cross_val_predict(model, X, Y, groups=groups, cv=splitter).shape == Y.shape
    else:
        with pytest.raises(ValueError, match="only works for partitions"):
            cross_val_predict(model, X, Y, cv=splitter)


def subset_accuracy(model, X, Y):
    return float((np.asarray(model.predict(X)) == Y).all(axis=1).mean())


class Majority(ClassifierMixin, BaseEstimator):
    """Predict the more frequent value of every label."""

    def fit(self, X, y):
        self.vote_ = (np.asarray(y.mean(axis=0)) >= 0.5).astype(int).ravel()
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return np.tile(self.vote_, (X.shape[0], 1))


def test_groups_are_routed():
    X, Y, groups = problem()
    splitter = SPLITTERS["group"]
    with sklearn.config_context(enable_metadata_routing=True):
        result = cross_validate(
            Majority(), X, Y, params={"groups": groups}, cv=splitter, return_indices=True, scoring=subset_accuracy
        )
        search = GridSearchCV(Majority(), {}, cv=splitter, scoring=subset_accuracy).fit(X, Y, groups=groups)
        assert cross_val_predict(Majority(), X, Y, params={"groups": groups}, cv=splitter).shape == Y.shape
        with pytest.raises(TypeError, match="groups"):
            cross_validate(Majority(), X, Y, params={"groups": groups}, cv=SPLITTERS["kfold"], scoring=subset_accuracy)
    assert [test.tolist() for test in result["indices"]["test"]] == [
        t.tolist() for _, t in splitter.split(X, Y, groups)
    ]
    assert search.n_splits_ == 3


def test_a_search_takes_sparse_labels():
    """`cross_validate` refuses them itself."""
    X, Y, _ = problem()
    sizes = []
    scoring = lambda model, X, Y: float(sizes.append((X.shape[0], Y.nnz)) or 0)  # noqa: E731
    GridSearchCV(Majority(), {}, cv=SPLITTERS["kfold"], scoring=scoring).fit(X, sp.csr_array(Y))
    assert sizes == [(len(test), Y[test].sum()) for _, test in SPLITTERS["kfold"].split(X, Y)]


def test_labels_by_the_name_of_a_column():
    tags = ["red|blue", "red", "", "blue"] * 10
    frame = pd.DataFrame({"x": range(40), "tags": tags, "red": ["r" in tag for tag in tags]})
    Y = pd.DataFrame({tag: [int(tag in one) for one in tags] for tag in ("blue", "red")})
    for labels, columns in (("tags", Y), (["red"], Y[["red"]]), ("re*", Y[["red"]])):
        folds = [list(IterativeStratifiedKFold(2).split(frame, given)) for given in (labels, columns)]
        np.testing.assert_array_equal(folds[0][0][1], folds[1][0][1])
    parts = [train_test_split(frame, stratify=given)[1] for given in ("tags", Y)]
    pd.testing.assert_frame_equal(*parts)
    with pytest.raises(DatasetError, match="tags"):
        next(IterativeStratifiedKFold(2).split(frame, "tag"))
    with pytest.raises(DatasetError, match="stratify"):
        train_test_split(frame.to_numpy(), stratify="tags")
