"""MLDF: reuse and growth step by step, several measures, what is kept."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from helpers.toy import make_data
from multilab.methods.base import MethodError
from multilab.methods.forests._deep_forest import MEASURES, Growth, Layer, Settings, grow_layer, held_out, losses
from multilab.methods.forests.compact_forest import CompactForest
from multilab.methods.forests.mldf import MLDF, _Step
from multilab.metrics import macro_auc

SMALL = {"n_trees": 4, "n_forests": 2, "random_state": 0}


def test_out_of_fold_scores_are_of_forests_that_did_not_see_the_row() -> None:
    X, Y = make_data(60)
    X32, folds = X.astype(np.float32), held_out(60, 3, 0)
    assert sorted(np.concatenate(folds).tolist()) == list(range(60))
    settings = Settings(2, {"n_estimators": 5}, 0, 1)
    layer, scores, importances = grow_layer([X32] * 3, Y, folds, settings, 0)
    changed = Y.copy()
    changed[folds[1]] = 1 - Y[folds[1]]  # what fold 1 is, no forest of its own knows
    _, other, _ = grow_layer([X32] * 3, changed, folds, settings, 0)
    np.testing.assert_array_equal(scores[:, folds[1]], other[:, folds[1]])
    assert (scores[:, folds[0]] != other[:, folds[0]]).any()
    np.testing.assert_array_equal(scores[1, folds[2]], layer.forests[2][1].predict(X32[folds[2]]))
    np.testing.assert_allclose(importances.sum(axis=2), 1.0)
    mean = np.mean([[one.predict(X32) for one in row] for row in layer.forests], axis=0)
    np.testing.assert_allclose(layer.predict([X32] * 3, None), mean)


def test_rows_that_are_surer_than_those_made_worse_change_and_the_others_keep() -> None:
    Y = np.array([[1, 0], [1, 0], [1, 0], [0, 1]])
    old = np.array([[[0.8, 0.3], [0.6, 0.4], [0.9, 0.1], [0.2, 0.7]]])
    new = np.array([[[0.4, 0.6], [0.9, 0.2], [0.55, 0.5], [0.1, 0.9]]])  # the first row is worse now
    step = _Step.of(Layer(()), "ranking_loss", new, old, Y)
    sure = 1 - (1 - new[0].max(axis=1)) * new[0].min(axis=1)  # two labels: not (only the lower one is relevant)
    assert np.exp(step.least) == pytest.approx(sure[0])
    expected = new.copy()
    expected[0, sure < sure[0] - 1e-9] = old[0, sure < sure[0] - 1e-9]
    assert (expected != new).any()
    np.testing.assert_array_equal(step.after(new, old), expected)
    # nothing worse: everything new
    np.testing.assert_array_equal(_Step.of(Layer(()), "ranking_loss", old, new, Y).after(old, new), old)


def test_labels_that_are_reused_are_fixed_in_training() -> None:
    rng = np.random.default_rng(0)
    Y = (rng.uniform(size=(50, 3)) < 0.5).astype(np.uint8)
    old = np.abs(Y - 0.2)[None] * np.ones(3)
    new = old.copy()
    new[0, :, 1] = 1 - new[0, :, 1] * 0.98  # surely wrong
    new[0, :, 2] = 0.5 + 0.01 * (Y[:, 2] - 0.5)  # right, but hardly
    step = _Step.of(Layer(()), "hamming_loss", new, old, Y)
    assert step.labels.tolist() == [2]
    after = step.after(new[:, :1], old[:, :1])  # one row decides as all do
    np.testing.assert_array_equal(after[0, 0], [new[0, 0, 0], new[0, 0, 1], old[0, 0, 2]])


def test_growth_ends_after_patience_and_keeps_the_best_layer() -> None:
    Y = np.array([[1, 0], [0, 1]])

    def grown(values: list[float], patience: int | None) -> tuple[int, int]:
        growth = Growth("hamming_loss", patience)
        for value in values:
            scores = np.abs(Y - np.tile([[value > 0.2], [value > 0.6]], 2))
            growth.add(scores.astype(float), Y)
        return growth.best, len(growth.losses)

    assert grown([0.9, 0.5, 0.9, 0.5, 0.9, 0.1], 3) == (2, 5)
    assert grown([0.9, 0.5, 0.9, 0.5, 0.1, 0.1], 3) == (5, 6)
    assert grown([0.1, 0.5, 0.9], None) == (3, 3)
    undefined = Growth("macro_auc", 2)
    undefined.add(np.full((2, 2), 0.5), np.zeros((2, 2)))
    assert undefined.best == 1


def test_several_measures_share_the_first_layer_and_equal_the_single_ones() -> None:
    X, Y = make_data(90)
    model = MLDF(measure=MEASURES, n_layers=3, patience=2, **SMALL).fit(X, Y)
    predictions = model.predict_measures(X[:20])
    assert list(predictions) == list(MEASURES)
    np.testing.assert_array_equal(predictions["hamming_loss"][0], model.predict_proba(X[:20]))
    for index, measure in enumerate(MEASURES):
        single = MLDF(measure=measure, n_layers=3, patience=2, **SMALL).fit(X, Y)
        np.testing.assert_array_equal(single.predict_proba(X[:20]), predictions[measure][0])
        np.testing.assert_array_equal(predictions[measure][1], predictions[measure][0] >= 0.5)
        assert single.n_layers_[0] == model.n_layers_[index] == 1 + len(single._steps[measure])
        kept = model.layer_losses_[index]
        assert kept[model.n_layers_[index] - 1] <= np.nanmin(kept) + 1e-4


def test_layer_losses_are_those_of_the_reused_representation() -> None:
    X, Y = make_data(90)
    model = MLDF(n_layers=2, early_stopping=False, **SMALL).fit(X, Y)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    settings = Settings(2, {"n_estimators": 4, "max_depth": None}, seed, 1)
    X32, folds = X.astype(np.float32), held_out(90, 3, seed)
    _, first, _ = grow_layer([X32] * 3, Y, folds, settings, 0)
    Z = np.hstack([X32, first[0], first[1]]).astype(np.float32)
    _, second, _ = grow_layer([Z] * 3, Y, folds, settings, 1)
    second = _Step.of(Layer(()), "ranking_loss", second, first, Y).after(second, first)
    expected = [np.nanmean(losses("ranking_loss", one.mean(axis=0), Y)) for one in (first, second)]
    np.testing.assert_allclose(model.layer_losses_, [expected])


def test_layers_are_maps_of_files_and_a_pickle_holds_their_content() -> None:
    X, Y = make_data(60)
    model = MLDF(n_layers=2, early_stopping=False, **SMALL).fit(X, Y)
    forests = [one for row in model._first.forests for one in row]
    assert all(isinstance(one, CompactForest) and isinstance(one.leaves, np.memmap) for one in forests)
    copy = pickle.loads(pickle.dumps(model, protocol=5))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


def test_permuted_labels_are_not_predicted() -> None:
    X, Y = make_data(300, q=8)
    Y = Y[np.random.default_rng(1).permutation(300)]
    model = MLDF(n_layers=3, early_stopping=False, n_trees=10, random_state=0).fit(X[:200], Y[:200])
    assert abs(macro_auc(Y[200:], model.predict_proba(X[200:])) - 0.5) < 0.08


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"measure": "f1"}, "measure='f1'"), ({"measure": ()}, "measure"), ({"n_layers": 0}, "n_layers=0"),
     ({"n_folds": 1}, "n_folds=1")],
)  # fmt: skip
def test_wrong_arguments_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(MethodError, match=message):
        MLDF(**arguments).fit(*make_data(20))


@pytest.mark.parametrize("new", [False, True])
def test_layers_of_mldf_have_folds_of_their_own_on_request(monkeypatch, new):
    from multilab.methods.forests import mldf

    seen, grow = [], mldf.grow_layer
    monkeypatch.setattr(
        mldf, "grow_layer", lambda inputs, Y, folds, *rest: (seen.append(folds), grow(inputs, Y, folds, *rest))[1]
    )
    X, y = np.random.default_rng(0).normal(size=(30, 5)), np.random.default_rng(1).integers(0, 2, (30, 3))
    options = {"n_layers": 3, "n_forests": 2, "n_trees": 2, "early_stopping": False, "random_state": 0}
    MLDF(new_folds=new, **options).fit(X, y)
    assert len(seen) == 3
    for folds in seen:
        assert np.array_equal(np.sort(np.concatenate(folds)), np.arange(30))
    alike = [all(map(np.array_equal, seen[0], folds)) for folds in seen]
    assert alike == [True, not new, not new]
    if new:
        assert not all(map(np.array_equal, seen[1], seen[2]))
