"""Comparison of estimators on data of one's own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_rel
from sklearn.datasets import make_multilabel_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, hamming_loss, make_scorer
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from multilab import compare
from multilab.comparison import ComparisonError, recommend
from multilab.datasets import DatasetError
from multilab.methods import BinaryRelevance, MLkNN
from multilab.metrics import MetricError, get_scorer, ranking_loss
from multilab.model_selection import IterativeStratifiedKFold, RepeatedIterativeStratifiedKFold
from multilab.statistics import StatisticsError, corrected_resampled_p

X, Y = make_multilabel_classification(n_samples=160, n_features=12, n_classes=4, random_state=0)
LINEAR = BinaryRelevance(LogisticRegression(), calibration="none")


def test_values_are_those_of_the_folds() -> None:
    board = compare([LINEAR], X, Y, cv=4, metrics=["ranking_loss", "macro_f1"])
    folds = list(IterativeStratifiedKFold(4, random_state=0).split(X, Y))
    expected = [-get_scorer("ranking_loss")(LINEAR.fit(X[a], Y[a]), X[b], Y[b]) for a, b in folds]
    assert board.splits("ranking_loss")["BinaryRelevance"].tolist() == expected
    assert board.table.loc["BinaryRelevance", "ranking_loss"] == pytest.approx(np.mean(expected), abs=1e-15)
    assert board.test_to_train == pytest.approx(1 / 3, abs=0.02)


def agreement(Y, decisions):
    return (decisions == Y).mean()


@pytest.mark.slow
def test_scorers_and_functions_are_columns_and_order_the_table() -> None:
    weighted = make_scorer(f1_score, average="weighted", zero_division=0)
    estimators = {"tree": DecisionTreeClassifier(max_depth=1, random_state=0), "linear": LINEAR}
    board = compare(estimators, X, Y, cv=3, metrics=[weighted, agreement, "weighted_f1", "hamming_loss"], n_jobs=2)
    assert not board.failures
    first = board.headline
    np.testing.assert_allclose(board.table[first], board.table["weighted_f1"], atol=1e-12)
    np.testing.assert_allclose(board.table["agreement"], 1 - board.table["hamming_loss"], atol=1e-12)
    assert board.table.index.tolist() == ["linear", "tree"]
    assert recommend(board).method == "linear"
    assert first in str(recommend(board))
    loss = make_scorer(hamming_loss, greater_is_better=False)
    assert compare(estimators, X, Y, cv=3, metrics=[loss]).table.index[0] == "linear"


def test_any_estimators_with_names_and_kinds_of_scores() -> None:
    pipeline = make_pipeline(StandardScaler(), MLkNN(k=5))
    board = compare([MLkNN(), pipeline, KNeighborsClassifier(), LINEAR], X, Y, cv=3)
    assert sorted(board.methods) == ["BinaryRelevance", "KNeighborsClassifier", "MLkNN 1", "MLkNN 2"]
    assert not board.failures
    assert board.table.notna().all().all()
    assert (board.table.index == board.ranks.index).all()
    assert board.ranks.sum().round(9).eq(10).all()


def test_data_frames_and_unobserved_labels() -> None:
    names = ["a", "b", "c", "d"]
    partial = pd.DataFrame(Y, columns=names).astype(float)
    partial.iloc[::7, 1] = np.nan
    board = compare({"knn": MLkNN()}, pd.DataFrame(X).add_prefix("x"), partial, cv=KFold(3), metrics=["ranking_loss"])
    fitted = MLkNN().fit(X[54:], partial.to_numpy()[54:])
    first = ranking_loss(partial.to_numpy()[:54], fitted.predict_proba(X[:54]))
    assert board.splits("ranking_loss").loc[0, "knn"] == pytest.approx(first, abs=1e-12)


def test_a_failure_is_named_and_the_others_go_on() -> None:
    board = compare({"good": MLkNN(), "bad": MLkNN(k=10**6)}, X, Y, cv=3)
    assert list(board.table.index) == ["good"]
    assert "neighbours" in board.failures["bad"]
    assert "bad failed" in repr(board)
    assert "bad failed" in board._repr_html_()


def test_probability_metrics_of_margins_are_absent() -> None:
    margins = BinaryRelevance(LinearSVC(), calibration="none")
    board = compare({"margins": margins, "knn": MLkNN()}, X, Y, cv=3, metrics=["macro_f1", "log_loss"])
    assert np.isnan(board.table.loc["margins", "log_loss"])
    assert not board.failures
    assert list(board.ranks.columns) == ["macro_f1"]


def test_a_clear_difference_is_found_and_none_between_equals() -> None:
    cv = RepeatedIterativeStratifiedKFold(n_splits=4, n_repeats=2, random_state=0)
    dummy = DummyClassifier(strategy="prior")
    board = compare({"linear": LINEAR, "again": LINEAR, "dummy": dummy}, X, Y, cv=cv, metrics=["ranking_loss"])
    tests = board.tests()
    assert tests.loc["again", "p"] == 1
    assert not tests.loc["again", "differs"]
    assert tests.loc["dummy", "differs"]
    assert set(board.best) == {"linear", "again"}


def test_the_corrected_test_against_its_formula() -> None:
    differences = np.random.default_rng(0).normal(0.01, 0.02, 10)
    plain = ttest_rel(differences, np.zeros(10))
    t = plain.statistic * np.sqrt((1 / 10) / (1 / 10 + 1 / 9))
    assert corrected_resampled_p(differences, 1 / 9) == pytest.approx(2 * student.sf(abs(t), 9), rel=1e-12)
    assert corrected_resampled_p(differences, 1 / 9) > plain.pvalue
    assert corrected_resampled_p([0.0, 0.0], 0.5) == 1
    assert corrected_resampled_p([0.1, 0.1], 0.5) == 0
    for wrong in ([0.1], [0.1, np.nan]):
        with pytest.raises(StatisticsError, match="two finite"):
            corrected_resampled_p(wrong, 0.5)


def test_latex_html_and_figure() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    board = compare({"a_b": MLkNN(), "<i>": LINEAR}, X, Y, cv=3, metrics=["ranking_loss"])
    assert r"a\_b" in board.to_latex()
    assert r"\textbf{" in board.to_latex()
    assert r"ranking\_loss" in board.to_latex()
    assert "&lt;i&gt;" in board._repr_html_()
    assert "<b>" in board._repr_html_()
    ax = board.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == list(board.table.index[::-1])
    matplotlib.pyplot.close(ax.figure)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimators": []}, "no estimator"),
        ({"estimators": [MLkNN]}, "not MLkNN"),
        ({"estimators": [MLkNN()], "metrics": []}, "at least one metric"),
        ({"estimators": [MLkNN()], "metrics": ["f1"]}, "f1"),
    ],
)
def test_wrong_uses_get_one_clear_line(arguments: dict[str, object], message: str) -> None:
    with pytest.raises((ComparisonError, MetricError), match=message):
        compare(X=X, Y=Y, **arguments)
    board = compare([MLkNN()], X, Y, cv=3, metrics=["macro_f1"])
    with pytest.raises(StatisticsError, match="was not measured"):
        board.splits("ranking_loss")


def test_tables_and_labels_by_name_are_compared_like_matrices(tmp_path) -> None:
    names = list("abcd")
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(12)])
    labels = pd.DataFrame(Y, columns=names)
    groups = [f"0{k % 9}" for k in range(len(X))]
    lists = [[name for name in names if row[name]] for _, row in labels.iterrows()]
    tagged = frame.assign(tags=lists, group=groups)
    texts = tagged.assign(tags=["|".join(tags) for tags in lists])
    columns = pd.concat([frame, labels.assign(group=groups)], axis=1)
    texts.to_csv(tmp_path / "rows.csv", index=False)

    def values(X, Y, groups="group"):
        board = compare([LINEAR], X, Y, cv=3, groups=groups, metrics=["macro_f1"])
        assert not board.failures
        return board.splits("macro_f1")["BinaryRelevance"].tolist()

    expected = values(X, Y, groups)
    assert values(frame, lists, groups) == expected
    assert values(tagged, "tags") == values(texts, "tags") == expected
    assert values(columns, names) == values(columns, "?") == expected
    assert values(tmp_path / "rows.csv", "tags") == pytest.approx(expected, abs=1e-9)
    for table in (pytest.importorskip("pyarrow").Table.from_pandas(tagged),):
        assert values(table, "tags") == expected


@pytest.mark.parametrize(("Y", "groups"), [("tag", None), (["a"], None), ("tags", "patient")])
def test_names_of_no_column_get_one_line(Y, groups) -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0] * 4, "tags": ["red|blue", "red"] * 4})
    with pytest.raises(DatasetError) as raised:
        compare([MLkNN(k=1)], frame, Y, cv=2, groups=groups)
    assert "\n" not in str(raised.value)
    with pytest.raises(DatasetError):
        compare([MLkNN(k=1)], frame[["x"]].to_numpy(), "tags", cv=2)
