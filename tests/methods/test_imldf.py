"""iMLDF: layers, what is kept, what is predicted from, and what it must not know."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from helpers.toy import make_data
from multilab.methods.base import MethodError
from multilab.methods.forests._deep_forest import held_out
from multilab.methods.forests.imldf import IMLDF
from multilab.metrics import macro_auc

SMALL = {"n_trees": 4, "n_forests": 2, "random_state": 0, "n_subsamples": 2, "n_interaction_trees": 6}
GROWN = {**SMALL, "n_layers": 3, "early_stopping": False}


@pytest.fixture(scope="module")
def plain_scores() -> np.ndarray:
    X, Y = make_data(90)
    return IMLDF(**GROWN).fit(X, Y).predict_proba(X)


def test_the_first_layer_alone_is_mldfs_and_has_no_regions() -> None:
    from multilab.methods.forests.mldf import MLDF

    X, Y = make_data(90)
    one = IMLDF(n_layers=1, **SMALL).fit(X, Y)
    assert one.regions_ == []
    other = MLDF(n_layers=1, n_trees=4, n_forests=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_only_the_last_layer_is_kept_and_a_pickle_predicts_the_same() -> None:
    X, Y = make_data(90)
    model = IMLDF(**GROWN).fit(X, Y)
    assert list(model._last) == [3] == model.n_layers_.tolist()
    assert [len(layer) for layer in model.regions_] == [3, 3]  # per fold
    stored = pickle.dumps(model, protocol=5)
    np.testing.assert_array_equal(pickle.loads(stored).predict_proba(X), model.predict_proba(X))
    one = len(pickle.dumps(IMLDF(**{**GROWN, "n_layers": 1}).fit(X, Y), protocol=5))
    assert len(stored) < 1.5 * one  # not three times


def test_regions_of_later_layers_may_be_about_features_of_regions() -> None:
    X, Y = make_data(200)
    model = IMLDF(**{**GROWN, "n_layers": 4}).fit(X, Y)
    later = np.concatenate([one.columns for layer in model.regions_[1:] for one in layer])
    width = 12 + max(len(one) for layer in model.regions_ for one in layer) + 5
    assert 12 <= later.max() < width


@pytest.mark.parametrize(
    "variant",
    [{"threshold_rule": "tight"}, {"threshold_rule": "median"}, {"confidence": "boundary"}, {"confidence": None},
     {"label_repr": "per_interaction"}, {"label_repr": None}, {"add_probabilities": True}, {"n_interactions": 3},
     {"paths": "auxiliary"}, {"label_shares": "in_sample"}],
    ids=str,
)  # fmt: skip
def test_every_variant_is_another_model_that_a_pickle_keeps(variant: dict, plain_scores: np.ndarray) -> None:
    X, Y = make_data(90)
    model = IMLDF(**GROWN, **variant).fit(X, Y)
    assert (model.predict_proba(X) != plain_scores).any()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


def test_layers_do_not_depend_on_the_measure_only_the_stop_does() -> None:
    X, Y = make_data(120)
    args = {**SMALL, "n_layers": 3, "patience": 1}
    measures = ("ranking_loss", "hamming_loss", "macro_auc")
    model = IMLDF(measure=measures, **args).fit(X, Y)
    predictions = model.predict_measures(X)
    assert set(model._last) == set(model.n_layers_)
    for index, measure in enumerate(measures):
        single = IMLDF(measure=measure, **args).fit(X, Y)
        assert single.n_layers_[0] == model.n_layers_[index]
        np.testing.assert_array_equal(single.predict_proba(X), predictions[measure][0])


def test_no_fold_knows_its_own_labels() -> None:
    X, Y = make_data(90)
    model = IMLDF(**GROWN).fit(X, Y)
    out = held_out(90, 3, np.random.RandomState(0).randint(2**31 - 1))[1]
    changed = Y.copy()
    changed[out] = 1 - Y[out]
    other = IMLDF(**GROWN).fit(X, changed)
    for layer, same in zip(model.regions_, other.regions_, strict=True):
        np.testing.assert_array_equal(layer[1].labels, same[1].labels)
        np.testing.assert_array_equal(layer[1].thresholds, same[1].thresholds)
    assert any((layer[0].labels.shape != same[0].labels.shape) or (layer[0].labels != same[0].labels).any()
               for layer, same in zip(model.regions_, other.regions_, strict=True))  # fmt: skip


@pytest.mark.parametrize("variant", [{}, {"label_repr": "per_interaction", "n_interactions": 30}], ids=str)
def test_permuted_labels_are_neither_predicted_nor_believed_in(variant: dict) -> None:
    X, Y = make_data(300, q=8)
    Y = Y[np.random.default_rng(1).permutation(300)]
    args = {"n_layers": 3, "early_stopping": False, "n_trees": 10, "n_subsamples": 3, "random_state": 0}
    model = IMLDF(measure="macro_auc", **args, **variant).fit(X[:200], Y[:200])
    assert abs(macro_auc(Y[200:], model.predict_proba(X[200:])) - 0.5) < 0.08
    np.testing.assert_allclose(model.layer_losses_, 0.5, atol=0.06)


def test_the_shares_that_a_training_row_gets_do_not_depend_on_its_labels() -> None:
    X, Y = make_data(90)
    X = X.astype(np.float32)
    model = IMLDF(confidence=None, **{**GROWN, "n_layers": 2}).fit(X, Y)
    folds = held_out(90, 3, 0)
    row = int(model.regions_[0][0].inside(np.delete(X, folds[0], axis=0))[0].any(axis=1).argmax())
    row = int(np.delete(np.arange(90), folds[0])[row])  # in a region, and not held out by the first fold
    changed = Y.copy()
    changed[row] = 1 - Y[row]
    none = np.empty((90, 0), dtype=np.float32)
    before, after = (model._next_in_training(X, [X] * 3, labels, folds, none, 0)[0] for labels in (Y, changed))
    np.testing.assert_array_equal(before[row], after[row])
    assert (before != after).any()
    model.label_shares = "in_sample"
    own, same = (
        model._next_in_training(X, [X] * 3, Y, folds, none, 0)[0],
        model._next(X, [X] * 3, model.regions_[0], none)[0],
    )
    np.testing.assert_array_equal(own, same)  # shares of all rows
    np.testing.assert_array_equal(own[folds[0]], before[folds[0]])  # which is what new rows get


def test_interactions_are_found() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 6))
    Y = np.stack([(X[:, 0] > 0.5) & (X[:, 1] <= 0.4), (X[:, 0] > 0.5) & (X[:, 1] <= 0.4)], axis=1).astype(np.uint8)
    args = {**GROWN, "n_layers": 2, "n_subsamples": 10, "n_trees": 20}
    model = IMLDF(**args, n_interactions=1, paths="auxiliary").fit(X, Y)
    for region in model.regions_[0]:
        assert region.columns.tolist() == [0, 1]
        assert region.above.tolist() == [True, False]
        np.testing.assert_allclose(region.thresholds, [0.5, 0.4], atol=0.05)
        assert region.labels.min() > 0.8


def test_labels_without_both_classes_everywhere_give_no_regions() -> None:
    X, Y = make_data(40)
    model = IMLDF(**GROWN).fit(X, np.zeros_like(Y))
    assert all(len(one) == 0 for layer in model.regions_ for one in layer)
    assert not model.predict_proba(X).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"threshold_rule": "wide"}, "threshold_rule='wide'"), ({"confidence": "l1"}, "confidence='l1'"),
     ({"label_repr": "all"}, "label_repr='all'"), ({"n_interactions": 0}, "n_interactions=0"),
     ({"depth": 0}, "depth=0"), ({"paths": "own"}, "paths='own'"), ({"label_shares": "loo"}, "label_shares='loo'")],
)  # fmt: skip
def test_wrong_arguments_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(MethodError, match=message):
        IMLDF(**arguments).fit(*make_data(20))
