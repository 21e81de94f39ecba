"""Iterative stratification: properties of the assignment of rows, on random tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from multilab.datasets import DatasetError, load
from multilab.model_selection import stratified_assignment
from multilab.model_selection.iterative_stratification import check_label_matrix, fold_sizes, stratification_columns
from references.stratification import assignment_by_rows, with_pairs

fast = settings(max_examples=40, deadline=None, derandomize=True)
tables = st.tuples(st.integers(2, 40), st.integers(0, 7)).flatmap(
    lambda shape: hnp.arrays(np.uint8, shape, elements=st.sampled_from([0, 0, 0, 1]))
)
orders = st.sampled_from([1, 2])
seeds = st.integers(0, 2**32)


@st.composite
def subsets(draw: st.DrawFn, n: int) -> list[int]:
    """Return sizes of 1 to 5 subsets of n rows; some may be empty."""
    borders = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return np.diff([0, *borders, n]).tolist()


@fast
@given(data=st.data(), Y=tables, order=orders, seed=seeds)
def test_the_assignment_is_that_of_the_form_row_by_row(data, Y, order, seed):
    sizes = data.draw(subsets(len(Y)))
    expected = assignment_by_rows(Y, sizes, order, seed, 1)
    assert stratified_assignment(Y, sizes, order=order, seed=seed, repeat=1).tolist() == expected.tolist()


@pytest.mark.parametrize("order", [1, 2])
def test_the_assignment_is_that_of_the_form_row_by_row_on_more_rows(order):
    Y = load("topics-toy").Y
    for sizes in (fold_sizes(len(Y), 10), [len(Y) - 70, 70]):
        expected = assignment_by_rows(Y, sizes, order, 5)
        assert stratified_assignment(Y, sizes, order=order, seed=5).tolist() == expected.tolist()


@fast
@given(data=st.data(), Y=tables, order=orders, seed=seeds)
def test_sizes_are_exact_and_the_form_of_y_does_not_matter(data, Y, order, seed):
    sizes = data.draw(subsets(len(Y)))
    assignment = stratified_assignment(Y, sizes, order=order, seed=seed)
    assert np.bincount(assignment, minlength=len(sizes)).tolist() == sizes
    coo = sp.coo_array(Y.astype(float))
    twice = sp.coo_array((np.tile(coo.data / 2, 2), np.tile(coo.coords, 2)), shape=Y.shape)
    zeros = sp.csr_array((Y.ravel().astype(np.int8), np.indices(Y.shape).reshape(2, -1)), shape=Y.shape)
    rows = sp.csr_array(Y.astype(float))
    halves = sp.csr_array((rows.data.repeat(2) / 2, rows.indices.repeat(2), 2 * rows.indptr), shape=Y.shape)
    sparse = (sp.csr_array(Y), sp.csc_matrix(Y), sp.lil_array(Y), twice, halves, zeros)
    for form in (Y.astype(bool), Y.astype(float), *sparse):
        again = stratified_assignment(form, sizes, order=order, seed=seed)
        assert again.tolist() == assignment.tolist()


@fast
@given(Y=tables, order=orders, seed=seeds, folds=st.integers(2, 5))
def test_the_rarest_label_is_within_one_row_of_its_share(Y, order, seed, folds):
    """Its rows come first; a subset that needs a row has a free one, and takes one only if its need is positive."""
    folds = min(folds, len(Y))
    columns = with_pairs(Y) if order == 2 else Y.astype(bool)
    columns = columns[:, columns.any(axis=0)]
    if columns.shape[1]:
        sizes = fold_sizes(len(Y), folds)
        assignment = stratified_assignment(Y, sizes, order=order, seed=seed)
        rare = columns[:, np.argmin(columns.sum(axis=0))]
        counts = np.bincount(assignment[rare], minlength=folds)
        assert (np.abs(counts - rare.sum() * np.array(sizes) / len(Y)) <= 1).all()


@fast
@given(Y=tables, order=orders, seed=seeds, folds=st.integers(2, 4))
def test_a_fold_above_its_share_of_a_label_got_these_rows_for_other_labels(Y, order, seed, folds):
    """With more rows without labels than all folds but one hold, no fold is ever full while labels are dealt out.

    Then a row goes to a fold that needs it. So a fold holds one row or more above its share of a label only if all its
    rows with that label came with a rarer one: none of them has that label alone.
    """
    Y = np.vstack([Y, np.zeros((len(Y) * folds, Y.shape[1]), dtype=np.uint8)])
    sizes = fold_sizes(len(Y), folds)
    assignment = stratified_assignment(Y, sizes, order=order, seed=seed)
    alone = Y.sum(axis=1) == 1
    for fold, size in enumerate(sizes):
        rows = assignment == fold
        above = Y[rows].sum(axis=0) - Y.sum(axis=0) * size / len(Y) >= 1
        assert not Y[rows & alone][:, above].any()


def hidden(Y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return the labels as float with NaN in a share of the cells."""
    return np.where(np.random.default_rng(seed).random(Y.shape) < share, np.nan, Y)


def as_int8(Y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(Y), -1, Y).astype(np.int8)


@fast
@given(Y=tables.filter(lambda Y: Y.shape[1] > 0), order=orders, seed=seeds)
def test_unobserved_labels_may_be_nan_or_minus_one(Y, order, seed):
    partial = hidden(Y, 0.3, seed)
    if np.isnan(partial).all() or not (partial == 0).any():
        return
    sizes = fold_sizes(len(Y), 2)
    expected = stratified_assignment(partial, sizes, order=order, seed=seed).tolist()
    for form in (as_int8(partial), partial.astype(object), sp.csr_array(partial), sp.csc_array(as_int8(partial))):
        assert stratified_assignment(form, sizes, order=order, seed=seed).tolist() == expected


def test_a_nullable_frame_is_read():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, None, 0], "b": [True, False, None]}).astype({"a": "Int64", "b": "boolean"})
    labels = check_label_matrix(frame)
    assert labels.positive.toarray().tolist() == [[True, True], [False, False], [False, False]]
    assert labels.unobserved.toarray().tolist() == [[False, False], [True, False], [False, True]]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_positive_and_observed_rows_of_a_label_are_both_balanced(share):
    """On the average over labels, folds and 5 tables, at most half the deviation of random folds."""
    ratios = {"positive": [], "observed": []}
    for seed in range(5):
        partial = hidden(load("genes-toy").Y, share, seed)
        sizes = fold_sizes(len(partial), 5)
        folds = stratified_assignment(partial, sizes, seed=seed)
        plain = np.random.default_rng(seed).permutation(folds)
        for name, table in (("positive", partial == 1), ("observed", ~np.isnan(partial))):
            spread = [
                np.abs([table[where == fold].mean(axis=0) - table.mean(axis=0) for fold in range(5)]).mean()
                for where in (folds, plain)
            ]
            ratios[name].append(spread[0] / spread[1])
    assert np.mean(ratios["positive"]) < 0.5
    assert np.mean(ratios["observed"]) < 0.5


def test_the_columns_are_pairs_then_labels_then_the_rarer_of_negative_and_unobserved_rows():
    nan = np.nan
    Y = [[1, 1, 0], [1, 0, nan], [0, 1, 0], [0, 0, 0], [0, nan, nan], [0, nan, 1]]
    columns = stratification_columns(Y, order=2).toarray().astype(int)
    assert columns.T.tolist() == [
        [1, 0, 0, 0, 0, 0],  # labels 0 and 1
        [1, 1, 0, 0, 0, 0],
        [1, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 1, 1],  # label 1: two negative and two unobserved rows
        [0, 1, 0, 0, 1, 0],  # label 2: three negative and two unobserved rows
    ]
    Y[2][2] = Y[3][2] = nan
    assert stratification_columns(Y)[:, [-1]].toarray().ravel().astype(int).tolist() == [1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([["a", "b"]]), "0 and 1"),
        ([[0.5, 1]], "0 and 1"),
        ([[1, -1], [0, 1]], "0 and 1"),  # signed labels: -1 means "not observed" in int8 only
        (np.array([[1, -1]], dtype=np.int8), "no 0"),
        (np.array([[-1, -1]], dtype=np.int8), "no label is observed"),
        (sp.csr_array([[2, 0]]), "0 and 1"),
        (np.zeros((2, 2, 2)), "shape"),
    ],
)
def test_other_labels_are_refused(labels, message):
    with pytest.raises(DatasetError, match=message):
        check_label_matrix(labels)
