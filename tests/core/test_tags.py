"""Labels given as tags, in every form and at every door, have the values of the 0/1 matrix with a column for each."""

from __future__ import annotations

import warnings
from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from multilab.cells import MethodPipeline
from multilab.comparison import compare, evaluate
from multilab.comparison.errors import ComparisonError
from multilab.core.tags import same_columns, separator_of, split_tags, tag_columns, tag_lists
from multilab.datasets.errors import DatasetError
from multilab.datasets.imbalance import mean_ir
from multilab.decision import MetricStack, TunedThresholdClassifier, guarded_thresholds, macro_f1_thresholds
from multilab.methods import MLROS, RELM, BinaryRelevance, MLkNN, ScoreEnsemble
from multilab.methods.errors import MethodError
from multilab.metrics import (
    bootstrap,
    bootstrap_difference,
    bounds,
    confusion_counts,
    get_scorer,
    label_propensities,
    macro_auc,
    macro_f1,
    per_label,
    score_all,
)
from multilab.metrics.errors import MetricError
from multilab.mlflow_metrics import evaluation_frame
from multilab.model_selection import (
    IterativeStratifiedGroupKFold,
    IterativeStratifiedKFold,
    IterativeStratifiedShuffleSplit,
    RepeatedIterativeStratifiedKFold,
    make_splits,
    train_test_split,
)

rng = np.random.default_rng(0)
N = 40
NAMES = ["calm", "film noir", "sea"]
Y = pd.DataFrame((rng.random((N, 3)) < 0.4).astype(int), columns=NAMES)
Y.iloc[0] = 1
LISTS = [[name for name in NAMES if row[name]] for _, row in Y.iterrows()]
OTHERS = pd.DataFrame(np.where(rng.random((N, 3)) < 0.2, 1 - Y, Y), columns=NAMES)
OTHER_LISTS = [[name for name in NAMES if row[name]] for _, row in OTHERS.iterrows()]
P = pd.DataFrame(np.clip(0.6 * OTHERS + 0.4 * rng.random((N, 3)), 0, 1), columns=NAMES)
X = np.hstack([rng.normal(size=(N, 3)) + Y, rng.normal(size=(N, 1))])
GROUPS = np.arange(N) % 8


def texts(lists, separator="|"):
    return [separator.join(tags) for tags in lists]


def column_of(lists):
    return pd.DataFrame({"tags": lists})


def of_polars(lists):
    return pytest.importorskip("polars").Series(lists)


def of_arrow(lists):
    return pytest.importorskip("pyarrow").chunked_array([lists])


FORMS = {
    "lists": list,
    "tuples": lambda lists: [tuple(tags) for tags in lists],
    "sets": lambda lists: [set(tags) for tags in lists],
    "an array of lists": lambda lists: column_of(lists)["tags"].to_numpy(),
    "a series of lists": lambda lists: pd.Series(lists, index=np.arange(100, 100 + N)),
    "a series of arrays": lambda lists: pd.Series([np.array(tags, dtype=object) for tags in lists]),
    "a series with missing cells": lambda lists: pd.Series([tags or None for tags in lists]),
    "texts": texts,
    "an array of texts": lambda lists: np.array(texts(lists)),
    "a series of texts": lambda lists: pd.Series(texts(lists, "; ")),
    "texts with missing cells": lambda lists: pd.Series([text or np.nan for text in texts(lists, ", ")]),
    "nullable texts": lambda lists: pd.Series([text or None for text in texts(lists)], dtype="string"),
    "categories": lambda lists: pd.Series(texts(lists)).astype("category"),
    "lists as Python writes them": lambda lists: pd.Series(list(map(str, lists))),
    "a frame of one column": column_of,
    "polars": of_polars,
    "polars, texts": lambda lists: of_polars(texts(lists)),
    "Arrow": of_arrow,
    "Arrow, texts": lambda lists: of_arrow(texts(lists)),
}


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def nearest(**arguments):
    return MLkNN(k=3, **arguments)


def frame_of(model, given):
    return model.fit(X, given).predict_frame(X)


def of_method(given):
    return MethodPipeline([("classifier", nearest())]).fit(X, given)


def resampled(given):
    return np.hstack(MLROS(ratio=0.5, random_state=0).fit_resample(X, given))


def scores_of(board):
    return board.table[["macro_f1"]].to_numpy()


DOORS = {
    "fit": lambda given: frame_of(nearest(), given),
    "score": lambda given: nearest().fit(X, Y).score(X, given),
    "score of a pipeline": lambda given: make_pipeline(StandardScaler(), nearest()).fit(X, given).score(X, given),
    "fit_batches": lambda given: RELM(n_hidden=9, random_state=0).fit_batches([(X, Y), (X, given)]).predict_frame(X),
    "a method of the laboratory": lambda given: (
        MethodPipeline([("classifier", nearest())]).fit(X, given).score(X, given)
    ),
    "a wrapped estimator": lambda given: frame_of(BinaryRelevance(LogisticRegression()), given),
    "tuned thresholds": lambda given: TunedThresholdClassifier(nearest(), cv=2).fit(X, given).thresholds_,
    "tuned scores": lambda given: TunedThresholdClassifier("precomputed").fit(P, given).thresholds_,
    "resampling": resampled,
    "thresholds": lambda given: macro_f1_thresholds(given, P),
    "guarded thresholds": lambda given: guarded_thresholds(given, P, 0.4),
    "a metric": lambda given: macro_f1(given, OTHERS),
    "a metric of scores": lambda given: macro_auc(given, P),
    "some labels of a metric": lambda given: macro_f1(given, OTHERS, labels=["sea", "calm"]),
    "decisions of a metric": lambda given: macro_f1(OTHERS, given),
    "all metrics": lambda given: list(score_all(given, P, OTHERS).values()),
    "the table of labels": lambda given: per_label(given, P),
    "the table of named labels": lambda given: per_label(given, P.to_numpy(), label_names=NAMES),
    "confusion counts": lambda given: confusion_counts(given, OTHERS),
    "intervals": lambda given: astuple(bootstrap("macro_f1", given, OTHERS, n_draws=5, random_state=0)),
    "differences": lambda given: astuple(bootstrap_difference(macro_f1, given, OTHERS, Y, n_draws=5, random_state=0)),
    "bounds": lambda given: list(bounds("hamming_loss", given, OTHERS)),
    "propensities": label_propensities,
    "a scorer": lambda given: get_scorer("ranking_loss")(nearest().fit(X, Y), X, given),
    "an evaluation in MLflow": lambda given: np.array(evaluation_frame(given, OTHERS)["labels"].tolist()),
    "imbalance": mean_ir,
    "folds": lambda given: next(IterativeStratifiedKFold(3).split(X, given))[1],
    "folds of groups": lambda given: next(IterativeStratifiedGroupKFold(2).split(X, given, GROUPS))[1],
    "repeated folds": lambda given: list(RepeatedIterativeStratifiedKFold(2, n_repeats=2).split(X, given))[3][1],
    "holdouts": lambda given: list(IterativeStratifiedShuffleSplit(2).split(X, given))[1][1],
    "train and test rows": lambda given: train_test_split(X, given)[1],
    "splits of a protocol": lambda given: make_splits(given, {"kfold": 2, "stratify": 2})[0].test,
    "a comparison": lambda given: scores_of(compare([nearest()], X, given, cv=2, metrics=["macro_f1"])),
}


@pytest.mark.parametrize("door", DOORS)
def test_tags_have_the_values_of_the_matrix(door, form):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found, expected = (DOORS[door](given) for given in (form(LISTS), Y))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    assert getattr(found, "columns", None) is None or list(found.columns) == list(expected.columns)


def test_labels_that_are_frames_of_other_libraries_keep_their_names():
    frames = [
        pytest.importorskip("pyarrow").Table.from_pandas(Y),
        pytest.importorskip("polars").from_pandas(Y),
    ]
    for given in frames:
        for door in ("fit", "score", "the table of labels", "folds", "a comparison", "thresholds"):
            np.testing.assert_array_equal(np.asarray(DOORS[door](given)), np.asarray(DOORS[door](Y)))
        assert list(frame_of(nearest(), given).columns) == NAMES


# ---------------------------------------------------------------- what is tags


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([["b", "a", "b"], []], [["b", "a"], []]),
        (["a|b", "", "NaN"], [["a", "b"], [], []]),
        (["['science fiction']", "['war', 'love']"], [["science fiction"], ["war", "love"]]),
        ([["a", None], ["b"]], [["a"], ["b"]]),
        ([{1, 2}, {3}], [["1", "2"], ["3"]]),
        ([[4], [1, 27]], [["4"], ["1", "27"]]),
        ([[], []], [[], []]),
        ([" two  blanks |b"], [["two blanks", "b"]]),
    ],
)
def test_tags_of_each_row(given, expected):
    assert tag_lists(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        [[1, 0], [0, 1]],
        [[1], [1, 0]],
        [[0.2, 0.7], [1.0, 0.1]],
        [["1", "0"], ["0", "1"]],
        ["0", "1", "1"],
        [1, 0, 1],
        np.eye(2),
        pd.DataFrame({"a": [1, 0], "b": [0, 1]}),
        pd.DataFrame({"a": ["x", "y"], "b": ["u", "v"]}),
        pd.Series([1, None]),
        [True, False],
        [None, None],
        [["a"], "b"],
        [["a", ["b"]], ["c"]],
        [np.eye(2), np.eye(2)],
        [np.array(1), np.array(0)],
        "a|b",
        None,
    ],
)
def test_what_is_no_tags_is_left_as_it_is(given):
    assert tag_lists(given) is None
    assert tag_columns(given) is given


def test_two_texts_are_the_classes_of_a_binary_problem_unless_they_hold_several_tags():
    y = np.array(["bad", "good"] * 20)
    model = nearest().fit(X, y)
    assert set(model.predict(X)) <= {"bad", "good"}
    assert model.score(X, pd.Series(y, name="quality")) == model.score(X, y)
    named = nearest().fit(X, pd.Series(y, name="quality"))
    assert named.score(X, pd.Series(y)) == model.score(X, y)
    assert list(nearest().fit(X, ["bad|old", "good"] * 20).label_names_) == ["bad", "good", "old"]
    assert list(nearest().fit(X, ["bad", None] * 20).label_names_) == ["bad"]
    tagged = nearest().fit(X, Y)
    assert tagged.score(X[:2], ["calm", "sea"]) == tagged.score(X[:2], pd.DataFrame(np.eye(3, dtype=int)[[0, 2]]))


def test_texts_that_can_be_split_in_several_ways_are_refused_in_one_line():
    for given in (["a|b;c", "a"], ["film noir", "war", "love"]):
        for error, call in (
            (MethodError, lambda given=given: nearest().fit(X[: len(given)], given)),
            (MetricError, lambda given=given: macro_f1(given, given)),
            (DatasetError, lambda given=given: list(IterativeStratifiedKFold(2).split(None, given))),
            (ComparisonError, lambda given=given: compare([nearest()], X[: len(given)], given, cv=2)),
        ):
            with pytest.raises(error, match=r"\.str\.split|\.map") as refused:
                call()
            assert "\n" not in str(refused.value)


def test_numbers_are_tags_where_they_are_those_of_the_model():
    model = nearest().fit(X, [{3, 27} if calm else {3} for calm in Y["calm"]])
    assert list(model.label_names_) == ["27", "3"]
    assert tag_lists([[3], [27]]) is None
    assert model.score(X[:2], [[3], [27]]) == model.score(X[:2], [["3"], ["27"]])
    assert model.score(X[:2], [[1, 0], [0, 1]]) == model.score(X[:2], np.eye(2))


def test_known_tags_say_how_texts_are_split():
    assert tag_lists(["film noir", "sea,calm"], {"film noir", "sea", "calm"}) == [["film noir"], ["sea", "calm"]]
    assert nearest().fit(X, LISTS).score(X[:1], ["film noir"]) in (0.0, 1.0)


def test_separators():
    assert separator_of({"a;b": 1, "c": 2}, "y") == ";"
    assert separator_of({"a": 1, "b": 1}, "y") is None
    assert split_tags("a ; b;a", ";") == ["a", "b"]


# ---------------------------------------------------------------- which labels


def test_metrics_of_tags_have_the_labels_of_both():
    truth, predicted = [["a"], ["b", "c"], []], [["a", "d"], ["b"], []]
    columns = pd.DataFrame([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]], columns=list("abcd"))
    decided = pd.DataFrame([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]], columns=list("abcd"))
    assert macro_f1(truth, predicted) == macro_f1(columns, decided) == 0.5
    pd.testing.assert_frame_equal(per_label(truth, decisions=predicted), per_label(columns, decisions=decided))
    assert list(confusion_counts(truth, predicted).index) == ["a", "b", "c", "d"]
    found = bootstrap_difference("macro_f1", truth * 5, predicted * 5, truth * 5, n_draws=5, random_state=0)
    assert found.value == -0.25


def test_label_names_are_the_label_set_of_a_table():
    with pytest.warns(UserWarning, match="2, in 1 of 3 rows"):
        table = per_label([["a"], ["b", "c"], []], decisions=[["a"], [], ["z"]], label_names=["z", "a"])
    assert table["label"].tolist() == ["z", "a"]
    assert table["count"].tolist() == [0, 1]


def test_the_order_of_the_columns_beside_tags_does_not_matter():
    assert macro_auc(LISTS, P[NAMES[::-1]]) == macro_auc(Y, P)
    np.testing.assert_array_equal(macro_f1_thresholds(LISTS, P[NAMES[::-1]]), macro_f1_thresholds(Y, P)[::-1])


def test_tags_none_of_which_is_a_label_are_refused():
    with pytest.raises(MetricError, match="none of the tags"):
        macro_auc(LISTS, P.add_prefix("p_"))
    assert macro_f1([[], []], pd.DataFrame([[0, 1], [1, 0]], columns=["a", "b"])) == 0


def test_a_matrix_without_names_is_refused_beside_tags():
    array = OTHERS.to_numpy()
    for call in (
        lambda: macro_f1(LISTS, array),
        lambda: macro_f1(array, LISTS),
        lambda: score_all(LISTS, P.to_numpy()),
        lambda: bootstrap("macro_f1", LISTS, array),
        lambda: get_scorer("macro_f1")(nearest().fit(X, array), X, LISTS),
    ):
        with pytest.raises(MetricError, match="names"):
            call()
    for call in (
        lambda: nearest().fit(X, array).score(X, LISTS),
        lambda: macro_f1_thresholds(LISTS, P.to_numpy()),
        lambda: TunedThresholdClassifier("precomputed").fit(P.to_numpy(), LISTS),
    ):
        with pytest.raises(MethodError, match="names"):
            call()
    with pytest.raises(ComparisonError, match="names"):
        evaluate(LISTS, P.to_numpy())


@pytest.mark.parametrize("door", [lambda m, y: m.score(X, y), lambda m, y: get_scorer("subset_accuracy")(m, X, y)])
def test_tags_that_a_model_does_not_know_are_counted_in_one_warning_and_left_out(door):
    model = nearest().fit(X, LISTS)
    more = [["new"], ["new"], ["new", "rare"]]
    strange = [*([*tags, *others] for tags, others in zip(LISTS, more, strict=False)), *LISTS[3:]]
    with pytest.warns(UserWarning, match="2, in 3 of 40 rows") as caught:
        found = door(model, strange)
    assert len(caught) == 1
    assert found == door(model, LISTS)


def test_batches_have_the_tags_of_the_first_one():
    with pytest.raises(MethodError, match="'new'"):
        RELM(n_hidden=5, random_state=0).fit_batches([(X, LISTS), (X, [["new"]] * N)])


def test_no_tag_and_too_many_tags_are_refused(monkeypatch):
    with pytest.raises(MethodError, match="no row has a tag"):
        nearest().fit(X, [[]] * N)
    monkeypatch.setattr("multilab.core.tags.MAX_CELLS", 100)
    with pytest.raises(MethodError, match="sparse_output"):
        nearest().fit(X, LISTS)


def test_nothing_is_changed_without_tags():
    array = Y.to_numpy()
    assert all(one is other for one, other in zip(same_columns(Y, array, None), (Y, array, None), strict=True))


# ---------------------------------------------------------------- with others' tools


def test_functions_of_users_get_plain_arrays():
    kinds = []

    def agreement(Y, decisions):
        kinds.extend([type(Y), type(decisions), Y.dtype.kind])
        return float((decisions == Y).mean())

    expected = float((Y.to_numpy() == OTHERS.to_numpy()).mean())
    assert score_all(LISTS, P, OTHER_LISTS, metrics=[agreement])["agreement"] == expected
    assert bootstrap(agreement, LISTS, OTHER_LISTS, n_draws=3, random_state=0).value == expected
    assert get_scorer(agreement)(nearest().fit(X, LISTS), X, LISTS) > 0
    assert not compare([nearest()], X, LISTS, cv=2, metrics=[agreement]).failures
    assert set(kinds[0::3]) == set(kinds[1::3]) == {np.ndarray}


def test_scikit_learns_search_and_cross_validation_take_tags():
    folds = IterativeStratifiedKFold(2)
    scores = [cross_val_score(nearest(), X, given, cv=folds, scoring=get_scorer("macro_f1")) for given in (LISTS, Y)]
    np.testing.assert_array_equal(*scores)
    search = GridSearchCV(nearest(), {"k": [2, 3]}, cv=folds, scoring=get_scorer("macro_f1")).fit(X, LISTS)
    assert search.score(X, LISTS) == get_scorer("macro_f1")(search.best_estimator_, X, Y)


def test_evaluation_of_scores_from_elsewhere_takes_tags():
    form = {"n_draws": 20, "metrics": ["macro_f1"]}
    expected = evaluate(Y, P, **form).board.table["macro_f1"]
    pd.testing.assert_series_equal(evaluate(LISTS, P, **form).board.table["macro_f1"], expected)
    backwards = pd.Series(texts(LISTS)[::-1], index=np.arange(N)[::-1])  # rows are matched by the index
    assert evaluate(backwards, P, **form).value("macro_f1") == evaluate(Y, P, **form).value("macro_f1")
    decided = evaluate(LISTS, OTHER_LISTS, kind="decisions", **form)
    assert decided.value("macro_f1") == macro_f1(Y, OTHERS)
    some = evaluate(LISTS, P[["sea", "calm"]], label_names=["sea", "calm"], **form)
    assert some.value("macro_f1") == evaluate(Y[["sea", "calm"]], P[["sea", "calm"]], **form).value("macro_f1")


@pytest.mark.parametrize("model", [MetricStack(), ScoreEnsemble()], ids=lambda model: type(model).__name__)
def test_tags_take_the_order_of_the_scores_that_a_second_level_learns_from(model):
    rng = np.random.default_rng(0)
    labels = pd.DataFrame(rng.integers(0, 2, (60, 3)), columns=["c", "a", "b"])
    scores = labels * 0.6 + rng.random((60, 3)) * 0.4
    tags = [list(labels.columns[row == 1]) for row in labels.to_numpy()]
    by_tags = clone(model).fit(scores, tags)
    assert list(by_tags.label_names_) == ["c", "a", "b"]
    assert np.array_equal(by_tags.predict(scores), clone(model).fit(scores, labels).predict(scores))
    two = pd.concat([scores.add_prefix("one "), scores.add_prefix("two ")], axis=1)
    for given, y in ((two, tags), (scores.to_numpy(), tags), (scores[["a", "b", "c"]], labels)):
        with pytest.raises(MethodError):
            clone(model).fit(given, y)
