"""RAkEL's labelsets hold all labels; the labelsets as published may not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from multilab.cells.method import load_method
from multilab.experiments.study import load_study
from multilab.methods import BinaryRelevance, PessimisticTree
from multilab.methods.base import MethodError
from multilab.methods.ensembles._label_groups import cover_labels, random_subsets
from multilab.methods.ensembles.cde import CDE
from multilab.methods.ensembles.rakel import RAkEL

SEEDS = range(200)
FEW = {"k": 3, "n_estimators": 7}  # 21 entries for 14 labels: a random draw nearly always misses some


def fitted(seed: int, n_labels: int = 14, **arguments: object) -> RAkEL:
    X = np.zeros((4, 1))
    Y = np.ones((4, n_labels), dtype=int)
    return RAkEL(DummyClassifier(), random_state=seed, **arguments).fit(X, Y)


@pytest.mark.parametrize("arguments", [{}, FEW, {"k": 3, "n_estimators": 5}, {"k": 1}], ids=str)
def test_every_label_is_in_a_labelset_for_200_seeds(arguments: dict[str, int]) -> None:
    for seed in SEEDS:
        model = fitted(seed, **arguments)
        assert set().union(*model.subsets_) == set(range(14))
        assert len(set(model.subsets_)) == len(model.subsets_) == arguments.get("n_estimators", len(model.subsets_))
        assert {len(set(subset)) for subset in model.subsets_} == {arguments.get("k", 3)}
        assert model.predict(np.zeros((1, 1))).all()  # every label is set in all training rows


def test_as_published_labels_are_left_out_and_complete_draws_are_the_same() -> None:
    missed = 0
    for seed in SEEDS:
        published = fitted(seed, cover=False)
        if set().union(*published.subsets_) == set(range(14)):
            assert fitted(seed).subsets_ == published.subsets_
        else:
            missed += 1
            assert not published.predict(np.zeros((1, 1))).all()
            assert fitted(seed).subsets_ != published.subsets_
    assert missed


def test_all_labels_are_in_as_many_labelsets_on_average() -> None:
    n_draws, n_labels, k, count = 2000, 8, 3, 3  # 9 entries for 8 labels: exactly one label is in two labelsets
    counts = np.zeros(n_labels)
    for seed in range(n_draws):
        rng = np.random.RandomState(seed)
        subsets = cover_labels(random_subsets(n_labels, k, count, rng), n_labels, rng)
        counts += np.bincount(np.concatenate(subsets), minlength=n_labels) - 1
    assert counts.sum() == n_draws
    expected = n_draws / n_labels
    assert ((counts - expected) ** 2 / expected).sum() < 24.3  # chi-square with 7 degrees of freedom, p = .001


def test_too_few_labelsets_are_refused_with_the_number_needed() -> None:
    with pytest.raises(MethodError, match=r"n_estimators=4 .* k=3 .* all 14 labels.*n_estimators=5 or more") as error:
        fitted(0, k=3, n_estimators=4)
    assert "\n" not in str(error.value)
    assert len(fitted(0, k=3, n_estimators=4, cover=False).subsets_) == 4
    assert len(fitted(0, k=3, n_estimators=5).subsets_) == 5


def test_every_label_is_in_one_group_of_each_partition_of_cde() -> None:
    X, Y = np.zeros((6, 1)), np.ones((6, 9), dtype=int)
    for seed in range(20):
        model = CDE(DummyClassifier(), n_estimators=3, n_candidates=50, random_state=seed).fit(X, Y)
        for partition in model.partitions_:
            assert sorted(label for group in partition for label in group) == list(range(9))


def test_columns_of_the_papers_keep_the_published_labelsets() -> None:
    assert load_method("rakel").params["cover"] is True
    for name, column in (
        ("mlwse", "rakel"),
        ("mlwse", "rakel-svm"),
        ("mlwse", "rakel-tuned"),
        ("imldf", "rakel-overlapping"),
    ):
        assert load_study(name).method(column, "emotions").params["cover"] is False


def test_random_subsets_of_one_label_vote_as_binary_relevance_decides() -> None:
    """What Mulan's RAkEL without arguments is: binary relevance by votes."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 5))
    Y = (X[:, :4] + rng.normal(scale=0.5, size=(120, 4)) > 0.4).astype(int)
    votes = RAkEL(PessimisticTree(), k=1, cover=False, random_state=0).fit(X[:80], Y[:80])
    assert sorted(votes.subsets_) == [(label,) for label in range(4)]
    scores = votes.predict_proba(X[80:])
    assert set(np.unique(scores)) <= {0.0, 1.0}
    trees = BinaryRelevance(PessimisticTree(), random_state=0).fit(X[:80], Y[:80]).predict_proba(X[80:])
    decided = trees != 0.5
    assert np.array_equal(scores[decided], trees[decided] > 0.5)
