"""The classical ensembles: what they must equal where an ensemble has nothing to do, and their parts written out."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom, chi2_contingency, ttest_rel
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from helpers.multilabel_checks import make_data
from multilab.methods.base import MethodError
from multilab.methods.ensembles._label_groups import random_partitions, random_subsets
from multilab.methods.ensembles._members import draw_rows
from multilab.methods.ensembles.cde import CDE, chi_square, conditional_t, diverse, partition_scores
from multilab.methods.ensembles.ebr import EBR
from multilab.methods.ensembles.ecc import ECC
from multilab.methods.ensembles.eps import EPS
from multilab.methods.ensembles.mls import MLS
from multilab.methods.ensembles.pessimistic_tree import PessimisticTree, upper_errors
from multilab.methods.ensembles.pruned_sets import PrunedSets, prune
from multilab.methods.ensembles.rakel import RAkEL
from multilab.methods.transformation._label_sets import distinct_rows
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.transformation.classifier_chain import ClassifierChain
from multilab.methods.transformation.label_powerset import LabelPowerset

TREE = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2)
FIXED = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=5)
WHOLE = {"n_estimators": 1, "bootstrap": False, "max_samples": 1.0, "random_state": 3}


def assert_equal(ours: Any, other: Any, X: np.ndarray, *, scores: bool = True) -> None:
    left, right = ours.predict_with_scores(X), other.predict_with_scores(X)
    if scores:
        np.testing.assert_array_equal(left[0], right[0])
    np.testing.assert_array_equal(left[1], right[1])


@pytest.mark.parametrize("base", [KNeighborsClassifier(3), LogisticRegression(), TREE], ids=lambda b: type(b).__name__)
def test_one_member_without_sampling_is_the_base_method(base: Any) -> None:
    X, Y, X_test = make_data(seed=1)
    ensemble = EBR(base, **WHOLE).fit(X, Y)
    seed = ensemble.estimators_[0].random_state
    assert_equal(ensemble, BinaryRelevance(base, random_state=seed).fit(X, Y), X_test)
    chains = ECC(base, combine="confidence", **WHOLE).fit(X, Y)
    order = chains.estimators_[0].order_
    seed = chains.estimators_[0].random_state
    chain = ClassifierChain(chains.estimators_[0].estimator, order="random", random_state=seed).fit(X, Y)
    np.testing.assert_array_equal(np.sort(order), range(4))
    assert_equal(chains, chain, X_test)
    voted = ECC(base, **WHOLE).fit(X, Y)
    assert_equal(voted, chain, X_test, scores=False)
    np.testing.assert_array_equal(voted.predict_proba(X_test), chain.predict(X_test))
    pruned = EPS(base, p=1, b=2, **WHOLE).fit(X, Y)
    seed = pruned.estimators_[0].random_state
    single = PrunedSets(base, p=1, b=2, random_state=seed).fit(X, Y)
    np.testing.assert_array_equal(pruned.predict_proba(X_test), single.predict(X_test))


def test_pruned_sets_that_prune_nothing_are_the_label_powerset() -> None:
    X, Y, X_test = make_data(seed=2)
    powerset = LabelPowerset(FIXED).fit(X, Y)
    assert_equal(PrunedSets(FIXED, p=0).fit(X, Y), powerset, X_test)
    # no label set is frequent: nothing is left to prune to
    assert_equal(PrunedSets(FIXED, p=len(Y)).fit(X, Y), powerset, X_test)
    assert_equal(PrunedSets(TREE, p=0, random_state=5).fit(X, Y), powerset, X_test)  # an integer is the seed itself
    assert PrunedSets(FIXED, random_state=np.random.RandomState(4)).fit(X, Y)._inputs.base.random_state != 5


def test_rakel_with_single_labels_is_binary_relevance_and_with_all_the_powerset() -> None:
    X, Y, X_test = make_data(seed=3)
    relevance, powerset = BinaryRelevance(FIXED).fit(X, Y), LabelPowerset(KNeighborsClassifier(3)).fit(X, Y)
    singles = RAkEL(KNeighborsClassifier(3), k=1, random_state=0).fit(X, Y)
    assert singles.subsets_ == [(0,), (1,), (2,), (3,)]
    assert_equal(singles, BinaryRelevance(KNeighborsClassifier(3)).fit(X, Y), X_test, scores=False)
    for k in (4, 9):
        everything = RAkEL(KNeighborsClassifier(3), k=k, random_state=0).fit(X, Y)
        assert everything.subsets_ == [(0, 1, 2, 3)]
        assert_equal(everything, powerset, X_test, scores=False)
        np.testing.assert_array_equal(everything.predict_proba(X_test), powerset.predict(X_test))
    assert relevance.predict(X_test).shape == (15, 4)


def test_rakel_votes_among_the_subsets_that_hold_a_label() -> None:
    X, Y, X_test = make_data(seed=4, q=6)
    base = KNeighborsClassifier(3)
    model = RAkEL(base, random_state=2).fit(X, Y)
    assert len(model.subsets_) == len(set(model.subsets_)) == 12
    votes, voters = np.zeros((len(X_test), 6)), np.zeros(6)
    for subset in model.subsets_:
        votes[:, subset] += LabelPowerset(base).fit(X, Y[:, subset]).predict(X_test)
        voters[list(subset)] += 1
    scores, decisions = model.predict_with_scores(X_test)
    np.testing.assert_array_equal(scores, votes / voters)
    np.testing.assert_array_equal(decisions, 2 * votes >= voters)
    missed = RAkEL(base, n_estimators=1, cover=False, random_state=2).fit(X, Y)
    outside = [label for label in range(6) if label not in missed.subsets_[0]]
    assert not missed.predict_proba(X_test)[:, outside].any()


@pytest.mark.parametrize("q", [1, 2, 3])
def test_rakel_on_few_labels(q: int) -> None:
    X, Y, X_test = make_data(q=4)
    model = RAkEL(TREE, random_state=0).fit(X, Y[:, :q])
    assert model.subsets_ == [tuple(range(q))]
    assert model.predict(X_test).shape == (len(X_test), q)


def test_a_chain_ensemble_on_one_label_is_a_relevance_ensemble() -> None:
    X, Y, X_test = make_data(seed=5)
    for combine in ("vote", "confidence"):
        pair = [kind(TREE, combine=combine, random_state=7).fit(X, Y[:, :1]) for kind in (EBR, ECC)]
        assert_equal(*pair, X_test)


def test_cde_on_independent_labels_is_binary_relevance() -> None:
    X, _, X_test = make_data(seed=6, n=64)
    # a full factorial: all pairs have chi-square 0
    Y = np.array([[(i >> b) & 1 for b in range(4)] for i in range(64)])
    assert chi_square(Y).max() == 0
    model = CDE(KNeighborsClassifier(3), n_estimators=1, n_candidates=2000, random_state=0).fit(X, Y)
    assert model.partitions_ == [[(0,), (1,), (2,), (3,)]]
    assert_equal(model, BinaryRelevance(KNeighborsClassifier(3)).fit(X, Y), X_test, scores=False)


def test_cde_keeps_dependent_labels_together() -> None:
    X, Y, X_test = make_data(seed=7, n=64)
    Y = np.array([[(i >> b) & 1 for b in range(4)] for i in range(64)])
    Y[:, 3] = Y[:, 0]
    model = CDE(TREE, n_estimators=1, n_candidates=2000, random_state=0).fit(X, Y)
    assert model.partitions_ == [[(0, 3), (1,), (2,)]]
    decisions = model.predict(X_test)
    np.testing.assert_array_equal(decisions[:, 0], decisions[:, 3])
    everything = CDE(TREE, n_estimators=500, n_candidates=2000, n_kept=500, random_state=0).fit(X, Y)
    assert len(everything.partitions_) == 15  # Bell number of 4
    assert sorted(everything.partitions_[0]) == [(0, 3), (1,), (2,)]


def test_stacking_on_the_own_prediction_only_is_binary_relevance() -> None:
    rng = np.random.default_rng(8)
    X = rng.uniform(size=(80, 3))
    Y = (X > 0.5).astype(int)  # learnt without error up to the rows at the border
    model = MLS(FIXED, meta_labels=0.1, random_state=0).fit(X, Y)
    assert [c.tolist() for c in model.meta_columns_] == [[0], [1], [2]]
    X_test = rng.uniform(size=(200, 3))
    assert_equal(model, BinaryRelevance(FIXED).fit(X, Y), X_test, scores=False)


def test_stacking_written_out() -> None:
    X, Y, X_test = make_data(seed=9)
    base, meta = KNeighborsClassifier(5), LogisticRegression()
    model = MLS(base, meta, meta_labels=0.5, include_features=True, cv=4, random_state=1).fit(X, Y)
    relevance = BinaryRelevance(base).fit(X, Y)
    first = relevance.predict_proba(X_test)
    assert (model.base_scores_ != relevance.predict_proba(X)).any(), "in-sample scores"
    phi = np.corrcoef(Y.T) ** 2
    for label in range(4):
        columns = np.sort(np.argsort(-phi[label], kind="stable")[:2])
        assert label in columns
        second = LogisticRegression().fit(np.hstack([X, model.base_scores_[:, columns]]), Y[:, label])
        expected = second.predict_proba(np.hstack([X_test, first[:, columns]]))[:, 1]
        np.testing.assert_allclose(model.predict_proba(X_test)[:, label], expected, rtol=0, atol=1e-12)
    sparse = MLS(base, meta, meta_labels=0.5, include_features=True, cv=4, random_state=1).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(sparse.predict_proba(X_test), model.predict_proba(X_test), rtol=0, atol=1e-9)


def test_samples_of_rows() -> None:
    np.testing.assert_array_equal(draw_rows(0, 9, 1.0, False), range(9))
    for seed in range(5):
        part = draw_rows(seed, 100, 0.66, False)
        assert len(part) == len(set(part.tolist())) == 66
        again = draw_rows(seed, 100, 1.0, True)
        assert len(again) == 100 > len(set(again.tolist()))
        assert (np.diff(again) >= 0).all()
    # 0.632 of the rows on average; the number of different rows has a standard deviation below 0.4 sqrt(n)
    distinct = [len(np.unique(draw_rows(seed, 1000, 1.0, True))) for seed in range(50)]
    assert abs(np.mean(distinct) - 632.3) < 4 * 0.4 * np.sqrt(1000) / np.sqrt(50)
    with pytest.raises(MethodError, match="max_samples"):
        draw_rows(0, 10, 0.0, True)


@pytest.mark.parametrize("kind", [EBR, ECC])
def test_confidence_and_votes_are_means_of_the_members(kind: Any) -> None:
    X, Y, X_test = make_data(seed=10)
    for combine, part in (("confidence", 0), ("vote", 1)):
        model = kind(TREE, n_estimators=5, combine=combine, random_state=1).fit(X, Y)
        expected = np.mean([m.predict_with_scores(X_test)[part] for m in model.estimators_], axis=0)
        np.testing.assert_allclose(model.predict_proba(X_test), expected, rtol=0, atol=1e-15)


def test_pruning_written_out() -> None:
    a, b, ab, abc, c, empty = ([1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 0, 0])
    Y = np.array([a, ab, b, a, abc, b, b, ab, c, empty, empty], dtype=np.uint8)
    # frequent (more than once): a twice, b three times, ab twice, the empty set twice; rare: abc (row 4), c (row 8)
    rows, sets = prune(Y, p=1, strategy="A", b=2)
    assert rows.tolist() == [0, 1, 2, 3, 4, 4, 5, 6, 7, 9, 10]
    assert sets[4:6].tolist() == [ab, b]  # the larger first, then the more frequent; c has no frequent subset
    rows, sets = prune(Y, p=1, strategy="A", b=9)
    assert sets[rows == 4].tolist() == [ab, b, a]
    rows, sets = prune(Y, p=1, strategy="B", b=1)
    assert sets[rows == 4].tolist() == [ab]
    with pytest.raises(MethodError, match="strategy='C'"):
        prune(Y, p=1, strategy="C", b=1)  # type: ignore[arg-type]


def test_random_subsets_are_different_and_all_equally_likely() -> None:
    assert random_subsets(4, 2, 6, 0) == list(combinations(range(4), 2))
    many = random_subsets(60, 3, 120, 0)  # drawn, since there are 34220
    assert len(set(many)) == 120
    assert all(len(set(s)) == 3 and s == tuple(sorted(s)) for s in many)
    drawn = [random_subsets(5, 2, 1, seed)[0] for seed in range(600)]
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 10
    # chi-square with 9 degrees of freedom: above 33.7 once in 10 000
    assert ((counts - 60) ** 2 / 60).sum() < 33.7


def test_random_partitions_are_those_of_labels_and_separators() -> None:
    for q, bell in ((1, 1), (2, 2), (3, 5), (4, 15)):
        partitions = random_partitions(q, 2000, 0)
        assert len(partitions) == bell
        assert (partitions[:, 0] == 0).all()
        assert (partitions <= np.arange(q)).all()
        assert (np.take_along_axis(partitions, partitions.astype(int), axis=1) == partitions).all()


def test_scores_of_partitions_and_their_diversity() -> None:
    dependence = np.array([[0, 5, -1.0], [5, 0, -2], [-1, -2, 0]])
    partitions = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]])
    assert partition_scores(partitions, dependence).tolist() == [2, 8, -4, -6, -2]
    # distances from the first: 2 each for the next three, 3 for the last
    assert diverse(partitions, 2, 0.0) == [0, 4]
    assert diverse(partitions, 2, 1.0) == [0, 1]
    assert sorted(diverse(partitions, 9, 0.4)) == [0, 1, 2, 3, 4]


def test_chi_square_is_scipys_without_correction() -> None:
    Y = (np.random.default_rng(11).uniform(size=(50, 4)) < [0.3, 0.5, 0.7, 0.0]).astype(np.uint8)
    ours = chi_square(Y)
    for i, j in combinations(range(3), 2):
        table = np.array([[((Y[:, i] == r) & (Y[:, j] == s)).sum() for s in (0, 1)] for r in (0, 1)])
        assert ours[i, j] == pytest.approx(chi2_contingency(table, correction=False).statistic, rel=1e-12)
    assert not ours[3].any()
    assert not np.diag(ours).any()


def test_conditional_dependence_is_a_paired_t_test() -> None:
    X, Y, _ = make_data(seed=12, q=3)
    Y[:, 2] = Y[:, 0]
    base = KNeighborsClassifier(3)
    ours = conditional_t(base, X, Y, 10, seed=0)
    np.testing.assert_array_equal(ours, ours.T)
    from sklearn.model_selection import KFold

    both = []
    for label, other in ((0, 1), (1, 0)):
        accuracy = np.zeros((10, 2))
        for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=0).split(X)):
            for way, Z in enumerate((X, np.column_stack([X, Y[:, other]]))):
                accuracy[fold, way] = base.fit(Z[train], Y[train, label]).score(Z[test], Y[test, label])
        gain = accuracy[:, 1] - accuracy[:, 0]
        both.append(-1.0 if gain.mean() < 0 else ttest_rel(accuracy[:, 1], accuracy[:, 0]).statistic)
    assert ours[0, 1] == pytest.approx(max(both), rel=1e-9)
    assert ours[0, 2] > 3.25 > ours[0, 1]
    model = CDE(base, n_estimators=1, dependence="conditional", n_candidates=300, random_state=0).fit(X, Y)
    assert (0, 2) in model.partitions_[0]


def test_support_vector_machines_as_base() -> None:
    X, Y, X_test = make_data(seed=13)
    machine = SVC(gamma=0.7)
    kernels = RAkEL(machine, k=2, random_state=0).fit(X, Y)
    plain = LabelPowerset(machine).fit(X, Y[:, kernels.subsets_[0]])
    np.testing.assert_array_equal(next(kernels._members.decisions(X_test))[1], plain.predict(X_test))
    for model in (EBR(machine, calibration="sigmoid"), ECC(machine), EPS(machine), MLS(machine, calibration="sigmoid")):
        scores, decisions = model.set_params(random_state=0).fit(X, Y).predict_with_scores(X_test)
        assert ((scores >= 0) & (scores <= 1)).all()
        np.testing.assert_array_equal(decisions, scores >= 0.5)
    with pytest.raises(MethodError, match="combine='vote'"):
        EBR(machine).fit(X, Y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (EBR(n_estimators=0), "n_estimators=0"),
        (ECC(combine="median"), "combine='median'"),  # type: ignore[arg-type]
        (EPS(max_samples=1.5), "max_samples=1.5"),
        (RAkEL(k=0), "k=0"),
        (CDE(dependence="phi"), "dependence='phi'"),  # type: ignore[arg-type]
        (CDE(diversity=2.0), "diversity=2.0"),
        (MLS(meta_labels=0.0), "meta_labels=0.0"),
        (MLS(cv=1), "cv=1"),
    ],
)
def test_wrong_arguments_are_named(model: Any, message: str) -> None:
    X, Y, _ = make_data()
    with pytest.raises(MethodError, match=message):
        model.fit(X, Y)


def test_a_tree_s_own_checks_are_not_lost() -> None:
    """Rows and parameters are checked once for all trees, not never."""
    X, Y, _ = make_data()
    for kind in (EBR, ECC, EPS, RAkEL, CDE):
        with pytest.raises(ValueError, match="max_depth"):
            kind(DecisionTreeClassifier(max_depth=-1)).fit(X, Y)
        with pytest.raises(ValueError, match=r"float32|infinity"):
            kind(TREE).fit(X * 1e300, Y)


def test_label_sets_are_numbered_in_the_order_of_their_first_row() -> None:
    Y = (np.random.default_rng(15).uniform(size=(200, 20)) < 0.1).astype(np.uint8)
    for labels in (Y, np.asfortranarray(Y), Y[::2], Y[:, ::3], Y[:, [4, 2, 9]]):
        sets, number = distinct_rows(labels)
        np.testing.assert_array_equal(sets[number], labels)
        first = np.unique(number, return_index=True)[1]
        assert len(np.unique(labels, axis=0)) == len(sets) == len(first)
        assert (np.diff(first) > 0).all()


def test_upper_errors_are_quinlans() -> None:
    # C4.5 programs for machine learning, section 4.2: U_.25(0, 6), U_.25(0, 9), U_.25(0, 1)
    np.testing.assert_allclose(upper_errors(np.array([6.0, 9, 1]), np.zeros(3), 0.25), [0.206, 0.143, 0.750], atol=5e-4)
    # with errors the book interpolates (U_.25(1, 16) = .157); the definition is that p at which P(at most E) = CF
    rows, errors = np.array([16.0, 168, 9]), np.array([1.0, 24, 8])
    np.testing.assert_allclose(binom.cdf(errors, rows, upper_errors(rows, errors, 0.25)), 0.25, rtol=1e-9)
    assert upper_errors(np.array([4.0]), np.array([4.0]), 0.25)[0] == 1.0


def test_a_pessimistic_tree_keeps_what_is_there_and_drops_noise() -> None:
    rng = np.random.default_rng(14)
    X = rng.uniform(size=(300, 5))
    y = (X[:, 2] > 0.4).astype(int)
    noisy = np.where(rng.uniform(size=300) < 0.1, 1 - y, y)
    grown = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=0).fit(X, noisy)
    tree = PessimisticTree(random_state=0).fit(X, noisy)
    assert tree.n_leaves_ < grown.get_n_leaves() / 3
    X_test = rng.uniform(size=(500, 5))
    truth = X_test[:, 2] > 0.4
    assert (tree.predict(X_test) != truth).mean() < (grown.predict(X_test) != truth).mean()
    clear = PessimisticTree(random_state=0).fit(X, y)
    assert clear.n_leaves_ == 2
    np.testing.assert_array_equal(clear.predict(X), y)
    noise = PessimisticTree(random_state=0).fit(X, rng.integers(2, size=300))
    assert noise.n_leaves_ < 30
    np.testing.assert_allclose(
        PessimisticTree(random_state=0).fit(sp.csr_array(X), noisy).predict_proba(X_test), tree.predict_proba(X_test)
    )
