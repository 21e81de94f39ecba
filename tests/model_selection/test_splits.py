"""Train/test splits: exact sizes, balanced labels, the same indices on every machine."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from multilab.datasets import DatasetError, load
from multilab.model_selection import (
    IterativeStratifiedKFold,
    indices_digest,
    make_splits,
    normalise_protocol,
    stratified_assignment,
)

# sha256 of the five folds' digests, {kfold: 5, seed: 0}, with stratify 0, 1 and 2.
PINNED = {
    "digit-segments": (
        "c00a3c73a4ccbb873411a631051f89ca5916a24b23ecf8cda584971e2781a743",
        "6d1f6f078652005d9327d520229d3d6d96e9a75564eb33d50ee8677f2af7af2a",
        "53936bd66525172caf71c52a5e2b2963fdc4bed73fa7f8fadfb2c54cd03b804b",
    ),
    "scenario1": (
        "3cfa50cb72db15972263ef26ba9f53db5b77a5c8d81b0ee83beec17f502c4bcb",
        "b37d034bb0b72c4474c79a095e27a0e75c450fb6fdc3a459e1e7526b11700234",
        "b37d034bb0b72c4474c79a095e27a0e75c450fb6fdc3a459e1e7526b11700234",
    ),
}
PINNED_DATA = {
    "emotions": (
        "334e1c8c229a66ea9bd84c41ecf77098a816c7a621750ef6aff344407898ec1b",
        "814f50d77697de521b9d34f7cef018736339295461854805636462d846b52e60",
        "348b6f90c9068231009817bc496d4fea236e480135ac08e1ac29d5726cc51c68",
    ),
    "yeast": (
        "90cd6ef0bb3ae594b459f5902baa750d9d8a40b82bd51aca745b99287403782b",
        "0fc2d8590193da0033262701643cfa2eec97f7de97a14e6221e0a4eefad370f6",
        "75f0c8965b90a4938de74c11a04fab95bdf69b804c5254474e1782272643d2a2",
    ),
}


def random_labels(n: int, q: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((n, q)) < rng.uniform(0.01, 0.4, q)).astype(np.uint8)


def imbalance(Y: np.ndarray, splits: list) -> float:
    """Mean over labels and folds of |share of positives in the fold - share in the full set|."""
    overall = Y.mean(axis=0)
    return float(np.mean([np.abs(Y[test].mean(axis=0) - overall) for _, test in splits]))


def pair_table(Y: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(Y.shape[1], k=1)
    return Y[:, first] & Y[:, second]


def pin(Y: np.ndarray, order: int) -> str:
    splits = make_splits(Y, {"kfold": 5, "stratify": order})
    return hashlib.sha256("".join(split.digest for split in splits).encode()).hexdigest()


def by_the_book(Y: np.ndarray, sizes: list[int], order: int, seed: int) -> np.ndarray:
    """Iterative stratification written down row by row, with fractions, to compare with."""
    n, q = Y.shape
    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0,)))
    numbers = [int(number) for number in bits.random_raw(n)]
    waiting = sorted(range(n), key=lambda row: numbers[row])
    sets = [frozenset(np.flatnonzero(row).tolist()) for row in Y]
    things = [frozenset(pair) for pair in itertools.combinations(range(q), 2)] if order == 2 else []
    things = [t for t in things + [frozenset([label]) for label in range(q)] if any(t <= s for s in sets)]
    wants = {t: [Fraction(sum(t <= s for s in sets) * size, n) for size in sizes] for t in things}
    free, where = list(sizes), np.full(n, -1)

    def assign(row: int, wanted: list) -> None:
        open_ones = [j for j in range(len(sizes)) if free[j]]
        best = max((wanted[j], free[j]) for j in open_ones)
        ties = [j for j in open_ones if (wanted[j], free[j]) == best]
        j = ties[0] if len(ties) == 1 else ties[int(bits.random_raw()) % len(ties)]
        where[row] = j
        free[j] -= 1
        for t in things:
            wants[t][j] -= t <= sets[row]
        waiting.remove(row)

    while any(sets[row] for row in waiting):
        left = {t: sum(t <= sets[row] for row in waiting) for t in things}
        rarest = min((t for t in things if left[t]), key=lambda t: left[t])
        for row in [row for row in waiting if rarest <= sets[row]]:
            assign(row, wants[rarest])
    for row in list(waiting):
        assign(row, free)
    return where


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_the_algorithm_is_that_of_the_book(order, seed):
    Y = random_labels(60, 6, seed=seed)
    for sizes in ([20, 20, 20], [42, 18], [15, 15, 14, 16]):
        expected = by_the_book(Y, sizes, order, seed)
        assert stratified_assignment(Y, sizes, order=order, seed=seed).tolist() == expected.tolist()


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(("n", "folds"), [(10, 10), (11, 2), (57, 5), (200, 7)])
def test_every_row_is_tested_once_and_sizes_are_even(n, folds, order):
    Y = random_labels(n, 6, seed=n)
    splits = make_splits(Y, {"kfold": folds, "stratify": order})
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(n))
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) <= 1
    for train, test in splits:
        assert train.dtype == test.dtype == np.int64
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()
        assert sorted(np.concatenate([train, test])) == list(range(n))


@pytest.mark.parametrize("name", PINNED)
def test_the_folds_of_embedded_sets_are_these(name):
    Y = load(name).Y
    assert tuple(pin(Y, order) for order in (0, 1, 2)) == PINNED[name]


@pytest.mark.data
@pytest.mark.parametrize("name", PINNED_DATA)
def test_the_folds_of_benchmark_sets_are_these(name, benchmark_data):
    Y = load(name).Y
    assert tuple(pin(Y, order) for order in (0, 1, 2)) == PINNED_DATA[name]


def test_seed_and_repeat_change_the_folds_and_nothing_else_does():
    Y = random_labels(120, 5, seed=1)
    base = [s.digest for s in make_splits(Y, {"kfold": 4, "stratify": 1, "seed": 3, "repeats": 2})]
    again = [s.digest for s in make_splits(sp.csr_array(Y), {"kfold": 4, "stratify": 1, "seed": 3, "repeats": 2})]
    assert again == base
    assert len(set(base)) == 8
    assert [s.digest for s in make_splits(Y, {"kfold": 4, "stratify": 1, "seed": 3})] == base[:4]
    assert not set(base) & {s.digest for s in make_splits(Y, {"kfold": 4, "stratify": 1, "seed": 4})}
    assert [s.name for s in make_splits(Y, {"kfold": 2, "repeats": 2})] == [
        "repeat0-fold0",
        "repeat0-fold1",
        "repeat1-fold0",
        "repeat1-fold1",
    ]


def test_one_label_is_dealt_out_exactly():
    Y = np.zeros((103, 1), dtype=np.uint8)
    Y[::4] = 1  # 26 positives
    counts = [int(Y[test].sum()) for _, test in make_splits(Y, {"kfold": 5, "stratify": 1})]
    assert sorted(counts) == [5, 5, 5, 5, 6]


def test_disjoint_labels_are_dealt_out_exactly():
    Y = np.repeat(np.eye(4, dtype=np.uint8), [5, 10, 25, 60], axis=0)
    for _, test in make_splits(Y, {"kfold": 5, "stratify": 1}):
        assert Y[test].sum(axis=0).tolist() == [1, 2, 5, 12]


def test_order_two_deals_out_pairs():
    """Two labels, 10 rows with both: every fold gets its one row of the pair, and its share of each label."""
    Y = np.repeat(np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=np.uint8), [10, 30, 30, 30], axis=0)
    for _, test in make_splits(Y, {"kfold": 10, "stratify": 2}):
        assert int((Y[test, 0] & Y[test, 1]).sum()) == 1
        assert Y[test].sum(axis=0).tolist() == [4, 4]


def test_stratified_folds_are_better_balanced_than_plain_ones():
    """Over 20 random tables, on the average; the plain folds are what chance gives."""
    ratios = {1: [], 2: []}
    pairs = []
    for seed in range(20):
        Y = random_labels(400, 12, seed=seed)
        plain, first, second = (make_splits(Y, {"kfold": 5, "stratify": order, "seed": seed}) for order in (0, 1, 2))
        ratios[1].append(imbalance(Y, first) / imbalance(Y, plain))
        ratios[2].append(imbalance(Y, second) / imbalance(Y, plain))
        table = pair_table(Y)
        pairs.append(imbalance(table, second) / imbalance(table, first))
    assert max(ratios[1]) < 0.5
    assert max(ratios[2]) < 0.8
    assert np.mean(pairs) < 0.9


@pytest.mark.data
@pytest.mark.parametrize("name", ["emotions", "birds"])
def test_stratified_folds_are_better_balanced_on_real_data(name, benchmark_data):
    Y = load(name).Y
    plain, first, second = (make_splits(Y, {"kfold": 5, "stratify": order}) for order in (0, 1, 2))
    assert imbalance(Y, first) < imbalance(Y, plain) / 2
    assert imbalance(Y, second) < imbalance(Y, plain)
    assert imbalance(pair_table(Y), second) < imbalance(pair_table(Y), plain)


@pytest.mark.data
def test_order_two_splits_the_largest_set_evenly(benchmark_data):
    splits = make_splits(load("reuters-k500").Y, {"kfold": 5, "stratify": 2})
    assert [len(test) for _, test in splits] == [1200] * 5


@pytest.mark.parametrize("order", [1, 2])
def test_odd_labels(order):
    none = np.zeros((12, 3), dtype=np.uint8)
    every = np.ones((12, 3), dtype=np.uint8)
    rare = none.copy()
    rare[:2, 1] = 1  # fewer positives than folds
    for Y in (none, every, rare, none[:, :0]):
        splits = make_splits(Y, {"kfold": 4, "stratify": order})
        assert [len(test) for _, test in splits] == [3, 3, 3, 3]
    held = [int(rare[test, 1].sum()) for _, test in make_splits(rare, {"kfold": 4, "stratify": order})]
    assert sorted(held) == [0, 0, 1, 1]


def test_impossible_requests_are_refused():
    Y = random_labels(6, 2, seed=0)
    with pytest.raises(DatasetError, match="7 folds of 6 rows"):
        make_splits(Y, {"kfold": 7, "stratify": 1})
    with pytest.raises(DatasetError, match="0 and 1"):
        make_splits(Y * 2 + 1, {"kfold": 2})
    with pytest.raises(DatasetError, match="0 and 1"):
        make_splits(np.full((4, 2), np.inf), {"kfold": 2})
    with pytest.raises(DatasetError, match="no label is observed"):
        make_splits(np.full((4, 2), np.nan), {"kfold": 2})
    with pytest.raises(DatasetError, match="do not sum"):
        stratified_assignment(Y, [3, 2])
    with pytest.raises(DatasetError, match="order 1 or 2"):
        next(IterativeStratifiedKFold(2, order=0).split(Y, Y))
    with pytest.raises(DatasetError, match="labels"):
        next(IterativeStratifiedKFold(2).split(Y))


@pytest.mark.parametrize("order", [0, 1])
def test_holdout(order):
    Y = random_labels(10, 3, seed=2)
    splits = make_splits(Y, {"holdout": {"train_size": 0.7}, "repeats": 3, "stratify": order})
    assert [(len(train), len(test)) for train, test in splits] == [(7, 3)] * 3
    assert len({s.digest for s in splits}) == 3
    assert [s.name for s in splits] == ["holdout0", "holdout1", "holdout2"]
    (count,) = make_splits(Y, {"holdout": {"train_size": 4}, "stratify": order})
    assert len(count.train) == 4
    with pytest.raises(DatasetError, match="leaves one set empty"):
        make_splits(Y, {"holdout": {"train_size": 0.05}})
    with pytest.raises(DatasetError, match="leaves one set empty"):
        make_splits(Y, {"holdout": {"train_size": 10}})


def test_stratified_holdout_keeps_shares():
    Y = np.repeat(np.eye(4, dtype=np.uint8), [10, 20, 30, 40], axis=0)
    (split,) = make_splits(Y, {"holdout": {"train_size": 0.7}, "stratify": 1})
    assert Y[split.train].sum(axis=0).tolist() == [7, 14, 21, 28]


def test_named_first_and_explicit_splits():
    Y = random_labels(6, 2, seed=0)
    named = {"official": (np.array([4, 0, 2]), np.array([1, 3, 5]))}
    (split,) = make_splits(Y, {"split": "official"}, named)
    assert split.train.tolist() == [4, 0, 2]
    assert split.digest == indices_digest([4, 0, 2], [1, 3, 5])
    with pytest.raises(DatasetError, match="no split 'meka'; this dataset has: official"):
        make_splits(Y, {"split": "meka"}, named)
    for size, train, test in ((2, [4, 0], [2, 1, 3, 5]), (3, [4, 0, 2], [1, 3, 5]), (4, [4, 0, 2, 1], [3, 5])):
        (moved,) = make_splits(Y, {"split": "official", "train_size": size}, named)
        assert (moved.train.tolist(), moved.test.tolist(), moved.name) == (train, test, f"official-{size}")
    with pytest.raises(DatasetError, match="neither may be empty"):
        make_splits(Y, {"split": "official", "train_size": 6}, named)
    (split,) = make_splits(Y, {"first": 4})
    assert (split.train.tolist(), split.test.tolist()) == ([0, 1, 2, 3], [4, 5])
    with pytest.raises(DatasetError, match="neither may be empty"):
        make_splits(Y, {"first": 6})
    (split,) = make_splits(Y, {"explicit": [{"train": [5, 1], "test": [0]}]})
    assert (split.train.tolist(), split.test.tolist(), split.name) == ([5, 1], [0], "fold0")
    with pytest.raises(DatasetError, match="row 6 does not exist"):
        make_splits(Y, {"explicit": [{"train": [6], "test": [0]}]})
    with pytest.raises(DatasetError, match="twice"):
        make_splits(Y, {"explicit": [{"train": [0, 1], "test": [1]}]})


def test_the_digest_knows_order_part_and_rows():
    assert indices_digest([1, 2], [3]) == indices_digest(np.array([1, 2], dtype=np.int32), (3,))
    others = [([2, 1], [3]), ([1], [2, 3]), ([3], [1, 2]), ([1, 2], [4])]
    assert len({indices_digest(*o) for o in others} | {indices_digest([1, 2], [3])}) == 5


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ({}, "exactly one of"),
        ({"kfold": 5, "split": "official"}, "exactly one of"),
        ({"kfold": 5, "shuffle": True}, "unknown key shuffle"),
        ({"kfold": 1}, "at least 2 folds"),
        ({"kfold": 2.5}, "must be an integer"),
        ({"kfold": True}, "must be an integer"),
        ({"kfold": 5, "stratify": 3}, "stratify must be 0"),
        ({"kfold": 5, "seed": -1}, "seed at least 0"),
        ({"kfold": 5, "repeats": 0}, "repeats must be at least 1"),
        ({"holdout": 0.7}, "train_size"),
        ({"holdout": {"train_size": 1.5}}, "a share in"),
        ({"split": "official", "seed": 1}, "unknown key seed"),
        ({"split": 3}, "name of a split"),
        ({"first": 0}, "at least one"),
        ({"split": "official", "train_size": 0}, "at least one"),
        ({"split": "official", "train_size": 0.5}, "must be an integer"),
        ({"explicit": []}, "a list of"),
        ({"explicit": [{"train": [0]}]}, "train and test"),
        ("kfold", "a mapping"),
    ],
)
def test_malformed_protocols_are_refused(protocol, message):
    with pytest.raises(DatasetError, match=message):
        normalise_protocol(protocol)


def test_protocols_that_mean_the_same_are_the_same():
    full = {"kfold": 5, "stratify": 0, "seed": 0, "repeats": 1}
    assert normalise_protocol({"kfold": np.int64(5), "title": "five"}) == full
    assert normalise_protocol({"holdout": {"train_size": 0.7}}) == normalise_protocol(
        {"holdout": {"train_size": 0.70}, "seed": 0, "stratify": 0, "repeats": 1}
    )


def test_every_protocol_of_conf_is_valid(checkout):
    import yaml

    files = sorted((checkout / "conf" / "protocol").glob("*.yaml"))
    assert {"kfold3", "kfold5", "kfold10", "kfold5_order2", "official", "holdout70"} <= {f.stem for f in files}
    for file in files:
        normalise_protocol(yaml.safe_load(file.read_text("utf-8")))


def test_the_splitter_works_in_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X[:, 0] > 0.8).astype(int)
    splitter = IterativeStratifiedKFold(3, order=1, random_state=5)
    scores = cross_val_score(LogisticRegression(), X, y, cv=splitter)
    assert len(scores) == splitter.get_n_splits() == 3
    mine = [indices_digest(*split) for split in splitter.split(X, y)]
    assert mine == [s.digest for s in make_splits(y, {"kfold": 3, "stratify": 1, "seed": 5})]
    assert repr(splitter) == "IterativeStratifiedKFold(n_splits=3, order=1, random_state=5)"


def test_protocols_need_no_numpy():
    code = "import sys, multilab.model_selection as d; d.normalise_protocol({'first': 5}); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "multilab.model_selection.protocol" in run.stdout.split()
    assert "numpy" not in run.stdout.split()
