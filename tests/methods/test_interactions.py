"""Interactions of iMLDF: paths, random interaction trees, regions and what they give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from helpers.toy import make_data
from multilab.methods.forests.compact_forest import grow_forest
from multilab.methods.forests.interactions import (
    ABOVE,
    BELOW,
    LayerPaths,
    Regions,
    Trees,
    TreeStack,
    _levels,
    auxiliary_sets,
    chosen_regions,
    combined,
    layer_sets,
    ranked,
)

NAN = np.nan


def forest(n_trees: int = 4) -> tuple[np.ndarray, np.ndarray, list]:
    X, Y = make_data()
    X = X.astype(np.float32)
    return X, Y, [one.tree_ for one in RandomForestClassifier(n_trees, random_state=0).fit(X, Y).estimators_]


def inside(X: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Return which rows (first axis) fulfil which box; a condition that is not there holds."""
    low, high = boxes[:, ABOVE], boxes[:, BELOW]
    return ((X[:, None] > low) | np.isnan(low)).all(axis=2) & ((X[:, None] <= high) | np.isnan(high)).all(axis=2)


def test_leaf_boxes_are_where_the_tree_sends_its_rows() -> None:
    X, _, trees = forest()
    stack = TreeStack.of(trees)
    assert len(stack.leaves) == sum(tree.n_leaves for tree in trees)
    np.testing.assert_array_equal(stack.sizes.sum(), 4 * len(X))
    rows = np.random.default_rng(1).normal(size=(500, 12)).astype(np.float32)
    contained = inside(rows, stack.boxes(stack.leaves, 12))
    first = np.cumsum([0, *(tree.node_count for tree in trees)])
    expected = np.stack([tree.apply(rows) + start for tree, start in zip(trees, first, strict=False)])
    np.testing.assert_array_equal(stack.leaves[contained.nonzero()[1]], np.sort(expected, axis=0).T.ravel())


def test_paths_of_a_layer_hold_the_row_and_those_of_its_leaf_alone() -> None:
    X, Y, _ = forest()
    forests = [grow_forest(kind, X, Y, seed, n_estimators=3)[0] for seed, kind in enumerate(("random", "extra"))]
    paths = LayerPaths.of(forests)
    assert len(paths.roots) == 6
    leaves = [one.tree(index).apply(X) for one in forests for index in range(3)]
    for tree, at in enumerate(leaves):
        boxes = paths.boxes(np.full(len(X), tree), X)
        np.testing.assert_array_equal(inside(X, boxes), at[:, None] == at)


def test_sets_of_a_layer_are_about_what_its_trees_split_by() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 6)).astype(np.float32)
    Y = np.repeat(((X[:, 0] > 0.5) & (X[:, 1] <= 0.4)).astype(np.uint8)[:, None], 2, axis=1)
    paths = LayerPaths.of([grow_forest("random", X, Y, 0, n_estimators=30, max_features=None)[0]])
    samples = [layer_sets(paths, X, Trees(10, 4, "relax"), seed) for seed in range(5)]
    assert all(len(signs) >= 2 and list(signs) == sorted(signs) for sample in samples for signs, _ in sample)
    best, _, stability = ranked(samples)[0]
    assert stability == 1.0
    assert {sign // 2 for sign in best} <= {0, 1}
    again = layer_sets(paths, X, Trees(10, 4, "relax"), 0)
    assert [signs for signs, _ in again] == [signs for signs, _ in samples[0]]
    alike = LayerPaths.of([grow_forest("random", X, np.zeros_like(Y), 0, n_estimators=3)[0]])
    assert layer_sets(alike, X, Trees(10, 4, "relax"), 0) == []


def test_columns_of_trees_on_some_features_get_their_names() -> None:
    X, Y, _ = forest()
    tree = RandomForestClassifier(1, random_state=0).fit(X[:, [2, 7]], Y).estimators_[0].tree_
    boxes = TreeStack.of([tree], [np.array([2, 7])]).boxes(np.flatnonzero(tree.children_left < 0), 12)
    assert np.flatnonzero(~np.isnan(boxes).all(axis=(0, 1))).tolist() == [2, 7]


def test_the_worked_example_of_figure_1() -> None:
    # columns 0..3 are x1..x4: {x1 >= t1, x2 < t2, x3 >= t3} and {x2 < t2', x4 >= t4', x3 >= t3'}
    one, other = np.full((2, 1, 2, 4), NAN)
    one[0, ABOVE, 0], one[0, BELOW, 1], one[0, ABOVE, 2] = 1.0, 2.0, 3.0
    other[0, BELOW, 1], other[0, ABOVE, 3], other[0, ABOVE, 2] = 2.5, 4.0, 2.0
    chains = np.stack([one, other])
    for rule, below, above in (("relax", 2.5, 2.0), ("tight", 2.0, 3.0), ("median", 2.25, 2.5)):
        region = combined(chains, rule)[0]
        expected = np.full((2, 4), NAN)
        expected[BELOW, 1], expected[ABOVE, 2] = below, above
        np.testing.assert_array_equal(region, expected)
        np.testing.assert_array_equal(combined(chains[::-1], rule)[0], region)  # in any order


@pytest.mark.parametrize("rule", ["relax", "tight", "median"])
def test_nodes_have_the_signs_that_all_leaves_of_their_chain_share(rule: str) -> None:
    X, _, trees = forest()
    stack = TreeStack.of(trees)
    rng = np.random.default_rng(0)
    chains = list(_levels(lambda count: stack.boxes(rng.choice(stack.leaves, count), 12), Trees(6, 4, rule)))
    assert [len(level) for level in chains] == [6, 12, 24, 48]
    leaves = inside(X, chains[0])
    np.testing.assert_array_equal(leaves.sum(axis=0) > 0, True)  # the first level are leaves themselves
    for parents, children in itertools.pairwise(chains):
        parents = np.repeat(parents, 2, axis=0)
        shared = ~np.isnan(children)
        assert (shared <= ~np.isnan(parents)).all()
        if rule == "median":
            continue
        widest = rule == "relax"
        parents = np.where(shared, parents, NAN)  # restricted to the shared signs
        one, two = inside(X, children), inside(X, parents)
        assert (one >= two).all() if widest else (one <= two).all()


def test_auxiliary_sets_are_reproducible_and_about_important_columns() -> None:
    X, Y, _ = forest()
    weights = np.array([0.5, 0.4, 0.1] + [0.0] * 9)
    sets = auxiliary_sets(X, Y, weights, Trees(10, 3, "relax"), 5)
    assert sets
    for signs, thresholds in sets:
        assert len(signs) == len(set(signs)) == len(thresholds) >= 2
        assert list(signs) == sorted(signs)
        assert max(signs) < 6
    again = auxiliary_sets(X, Y, weights, Trees(10, 3, "relax"), 5)
    assert [signs for signs, _ in again] == [signs for signs, _ in sets]
    assert auxiliary_sets(X, np.zeros_like(Y), weights, Trees(10, 3, "relax"), 5) == []
    assert auxiliary_sets(X, Y, np.zeros(12), Trees(10, 3, "relax"), 5) == []


def test_sets_are_ranked_by_stability_then_count_then_signs() -> None:
    def t(*values: float) -> np.ndarray:
        return np.array(values)

    a, b, c, d = (0, 3), (1, 2), (4, 6), (4, 7)
    samples = [[(a, t(1, 1)), (a, t(2, 4)), (c, t(0, 0)), (d, t(0, 0))], [(a, t(9, 5)), (b, t(1, 2))], [(b, t(3, 4))]]
    ranking = ranked(samples)
    assert [(signs, stability) for signs, _, stability in ranking] == [(a, 2 / 3), (b, 2 / 3), (c, 1 / 3), (d, 1 / 3)]
    np.testing.assert_array_equal(ranking[0][1], [2, 4])  # medians over the nodes


def regions_of(*sets: tuple[tuple[int, ...], list[float]], n: int = 10) -> tuple[Regions, np.ndarray, np.ndarray]:
    X, Y, _ = forest()
    return chosen_regions([(s, np.array(t), 1.0) for s, t in sets], X, Y, n), X, Y


def test_regions_know_their_rows_labels_and_distances() -> None:
    regions, X, Y = regions_of(((0, 3), [0.5, -0.5]), ((5,), [0.2]))
    expected = np.stack([(X[:, 0] <= 0.5) & (X[:, 1] > -0.5), X[:, 2] > np.float32(0.2)], axis=1)
    member, corner = regions.inside(X)
    np.testing.assert_array_equal(member, expected)
    for k in range(2):
        np.testing.assert_allclose(regions.labels[k], Y[expected[:, k]].mean(axis=0), rtol=1e-6)
    span = np.ptp(X, axis=0)
    apart = [np.abs(X[:, 0] - 0.5) / span[0], np.abs(X[:, 1] + 0.5) / span[1], np.abs(X[:, 2] - 0.2) / span[2]]
    np.testing.assert_allclose(corner[:, 0], np.where(expected[:, 0], apart[0] + apart[1], 0), atol=1e-6)
    np.testing.assert_allclose(corner[:, 1], np.where(expected[:, 1], apart[2], 0), atol=1e-6)
    boundary = regions.inside(X, "boundary")[1]
    np.testing.assert_allclose(boundary[:, 0], np.where(expected[:, 0], np.minimum(*apart[:2]), 0), atol=1e-6)
    # with one condition both are the distance to the boundary
    np.testing.assert_array_equal(boundary[:, 1], corner[:, 1])
    assert not corner[~member].any()
    at_corner = np.zeros((1, 12), dtype=np.float32)
    at_corner[0, [0, 2]] = regions.thresholds[[0, 2]]
    at_corner[0, 1] = np.nextafter(np.float32(-0.5), np.float32(1))
    assert regions.inside(at_corner)[1][0, 0] == pytest.approx(0, abs=1e-7)


def test_representations() -> None:
    regions, X, _ = regions_of(((0, 3), [0.5, -0.5]), ((5,), [0.2]))
    member, distance = regions.inside(X)
    q = regions.labels.shape[1]
    apart = regions.represent(X, None, "per_interaction").reshape(len(X), 2, q)
    np.testing.assert_allclose(apart, member[:, :, None] * regions.labels)
    together = regions.represent(X, "corner", "aggregated")
    np.testing.assert_array_equal(together[:, :2], distance)
    both, none = member.all(axis=1), ~member.any(axis=1)
    assert both.any()
    assert none.any()
    np.testing.assert_allclose(together[both, 2:], np.tile(regions.labels.mean(axis=0), (both.sum(), 1)), rtol=1e-6)
    assert not together[none].any()
    assert regions.represent(X, None, None).shape == (len(X), 0)
    assert regions.represent(X, "boundary", None).shape == (len(X), 2)


def test_regions_with_nearly_no_or_all_rows_are_passed_over() -> None:
    everything, nothing, half = ((0, 2), [50.0, 50.0]), ((1, 3), [50.0, 50.0]), ((1,), [0.0])
    regions, X, _ = regions_of(everything, nothing, half, half, half, n=2)
    assert len(regions) == 2
    np.testing.assert_array_equal(regions.inside(X)[0][:, 0], X[:, 0] > 0)
    none, X, _ = regions_of(everything)
    assert len(none) == 0
    assert none.represent(X, "corner", "aggregated").shape == (len(X), 5)


def test_a_single_region_has_its_label_frequencies() -> None:
    X, Y, _ = forest()
    nearly = np.sort(X[:, 0])[9]  # 190 of 200 rows
    regions = chosen_regions([((1,), np.array([nearly]), 1.0)], X, Y, 1)
    np.testing.assert_allclose(regions.labels[0], Y[X[:, 0] > nearly].mean(axis=0), rtol=1e-6)
    assert ((regions.labels >= 0) & (regions.labels <= 1)).all()
