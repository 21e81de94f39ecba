"""scikit-learn's tools, each tried with any estimator of the package.

A tool is a function of an unfitted estimator that asserts; its name is the column of the table in the guide.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from inspect import signature
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
)
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from helpers.multilabel_checks import make_data
from multilab.decision._held_out import HeldOutClassifier
from multilab.methods.base import MultiLabelClassifier, MultiLabelTransformer
from multilab.methods.neighbours.mlknn import MLkNN

__all__ = ["CLASSIFIER_TOOLS", "TRANSFORMER_TOOLS", "is_multilabel", "metadata", "not_applicable", "tools"]

Tool = Callable[[Any], None]
CLASSIFIER_TOOLS: dict[str, Tool] = {}
TRANSFORMER_TOOLS: dict[str, Tool] = {}
_OTHER_BASES = {
    "DenseFeatures": "its base is a classifier of this package",
    "DistilledStack": "its base learns probabilities of all labels at once",
    "PretrainedBinaryRelevance": "its base reads a checkpoint file",
    "SparseBinaryRelevance": "its base has `coef_`, which a pipeline has not",
}
METADATA = ("sample_weight", "y_mask")
FOLDS = KFold(2)
X, Y, NEW = make_data(n=40, d=6, q=3)
FRAME = pd.DataFrame(X, columns=[f"f{j}" for j in range(6)], index=range(100, 140))


def tool(title: str, *tables: dict[str, Tool]) -> Callable[[Tool], Tool]:
    """Register a function as a column of the tables."""

    def register(function: Tool) -> Tool:
        for table in tables:
            table[title] = function
        return function

    return register


def is_multilabel(estimator: Any) -> bool:
    """Return whether an estimator learns from label matrices; some classes are base classifiers of single labels."""
    return isinstance(estimator, (MultiLabelClassifier, MultiLabelTransformer))


def tools(estimator: Any) -> dict[str, Tool]:
    """Return the tools that are tried with an estimator."""
    return TRANSFORMER_TOOLS if isinstance(estimator, MultiLabelTransformer) else CLASSIFIER_TOOLS


def not_applicable(estimator: Any, title: str) -> str | None:
    """Return why a tool has nothing to do with an estimator, or None."""
    if title == "metadata routing" and not metadata(estimator):
        return "`fit` takes X and y only"
    if title == "scikit-learn inside" and not {"estimator", "estimators"} & set(estimator.get_params(deep=False)):
        return "it has no base estimator"
    if title == "scikit-learn inside" and type(estimator).__name__ in _OTHER_BASES:
        return _OTHER_BASES[type(estimator).__name__]
    if title.startswith("for one label") and type(estimator).__name__ in ("FrequentLabels", "NoLabels"):
        return "its predictions are constant"
    if title == "GridSearchCV" and not estimator.get_params(deep=False):
        return "it has no arguments"
    if title.endswith("AdaBoostClassifier") and "sample_weight" not in metadata(estimator):
        return "`fit` takes no `sample_weight`"
    return None


def metadata(estimator: Any) -> list[str]:
    """Return the names of the metadata that `fit` takes."""
    masked = getattr(estimator, "_accepts_missing_labels", False)  # some inherit a `fit` with y_mask and refuse it
    names = [name for name in METADATA if name in signature(estimator.fit).parameters]
    return [name for name in names if name != "y_mask" or masked]


def method(estimator: Any) -> str:
    """Return the name of the method that gives scores."""
    return "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"


def head(transformer: Any) -> Pipeline:
    """Return the transformer before a classifier."""
    return Pipeline([("transform", transformer), ("classify", MLkNN(k=3))])


def out(model: Any, rows: Any) -> np.ndarray:
    """Return what a fitted model makes of rows."""
    return np.asarray(model.transform(rows) if hasattr(model, "transform") else model.predict(rows))


@tool("Pipeline", CLASSIFIER_TOOLS, TRANSFORMER_TOOLS)
def pipeline(estimator: Any) -> None:
    """Scaled before and in a pipeline is the same; names of the columns pass through."""
    scaler = MinMaxScaler().set_output(transform="pandas").fit(FRAME)
    expected = out(clone(estimator).fit(scaler.transform(FRAME), Y), scaler.transform(FRAME))
    model = make_pipeline(MinMaxScaler(), estimator).set_output(transform="pandas").fit(FRAME, Y)
    np.testing.assert_array_equal(out(model, FRAME), expected)
    assert model[-1].feature_names_in_.tolist() == FRAME.columns.tolist()


@tool("GridSearchCV", CLASSIFIER_TOOLS)
def grid_search(estimator: Any) -> None:
    """A grid over a step of the pipeline and an argument of the estimator."""
    name, value = next(iter(estimator.get_params(deep=False).items()))
    grid = {"scale": [MinMaxScaler(), "passthrough"], f"classify__{name}": [value]}
    steps = Pipeline([("scale", MinMaxScaler()), ("classify", estimator)])
    search = GridSearchCV(steps, grid, scoring="f1_macro", cv=FOLDS, error_score="raise").fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(NEW).shape == (len(NEW), Y.shape[1])


@tool("GridSearchCV", TRANSFORMER_TOOLS)
def transformer_grid_search(transformer: Any) -> None:
    """A grid over an argument of the transformer, judged by a classifier after it."""
    name, value = next(iter(transformer.get_params(deep=False).items()))
    grid = {f"transform__{name}": [value], "classify__k": [1, 3]}
    search = GridSearchCV(head(transformer), grid, scoring="f1_macro", cv=FOLDS, error_score="raise").fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@tool("cross_validate", CLASSIFIER_TOOLS, TRANSFORMER_TOOLS)
def several_scores(estimator: Any) -> None:
    """Several scorers of label matrices, computed from decisions and from scores."""
    model = head(estimator) if hasattr(estimator, "transform") else estimator
    scoring = ("accuracy", "f1_micro", "jaccard_samples", "roc_auc", "average_precision")
    made = cross_validate(model, X, Y, cv=FOLDS, scoring=scoring, error_score="raise")
    for name in scoring:
        assert np.isfinite(made[f"test_{name}"]).all(), name


@tool("cross_val_predict", CLASSIFIER_TOOLS)
def out_of_fold(estimator: Any) -> None:
    """Out-of-fold decisions and scores are those of models fitted without the fold."""
    train, test = next(FOLDS.split(X))
    model = clone(estimator).fit(X[train], Y[train])
    for name in ("predict", method(estimator)):
        made = cross_val_predict(estimator, X, Y, cv=FOLDS, method=name)
        assert made.shape == Y.shape
        np.testing.assert_array_equal(made[test], getattr(model, name)(X[test]))


@tool("StackingClassifier", CLASSIFIER_TOOLS)
def stacking(estimator: Any) -> None:
    """In the first layer, and as the final estimator; it gets one score per label."""
    first = [("a", estimator), ("b", KNeighborsClassifier(3))]
    model = StackingClassifier(first, final_estimator=MLkNN(k=3), cv=FOLDS).fit(X, Y)
    assert model.transform(NEW).shape == (len(NEW), 2 * Y.shape[1])
    last = StackingClassifier([("a", MLkNN(k=3))], final_estimator=estimator, cv=FOLDS).fit(X, Y)
    assert model.predict(NEW).shape == last.predict(NEW).shape == (len(NEW), Y.shape[1])


@tool("MultiOutputClassifier, ClassifierChain", CLASSIFIER_TOOLS)
def one_label_at_a_time(estimator: Any) -> None:
    """As the base of scikit-learn's classifiers, which pass one label, of one dimension."""
    independent = MultiOutputClassifier(estimator).fit(X, Y)
    assert independent.predict(NEW).shape == (len(NEW), Y.shape[1])
    single = clone(estimator).fit(X, Y[:, 1])
    np.testing.assert_array_equal(independent.predict(NEW)[:, 1], single.predict(NEW))
    if hasattr(estimator, "predict_proba"):
        assert [p.shape for p in independent.predict_proba(NEW)] == [(len(NEW), 2)] * Y.shape[1]
    assert ClassifierChain(estimator).fit(X, Y).predict(NEW).shape == (len(NEW), Y.shape[1])


@tool("for one label: VotingClassifier, BaggingClassifier", CLASSIFIER_TOOLS)
def ensembles(estimator: Any) -> None:
    """With a one-dimensional y; scikit-learn refuses label matrices there."""
    y = np.where(Y[:, 0] == 1, "yes", "no")
    voting = "soft" if hasattr(estimator, "predict_proba") else "hard"
    for model in (
        VotingClassifier([("a", estimator), ("b", KNeighborsClassifier(3))], voting=voting),
        BaggingClassifier(estimator, n_estimators=2, random_state=0),
    ):
        assert set(model.fit(X, y).predict(NEW)) <= {"yes", "no"}


@tool("for one label: AdaBoostClassifier", CLASSIFIER_TOOLS)
def boosting(estimator: Any) -> None:
    """With a one-dimensional y and weights of the rows; scikit-learn refuses label matrices there."""
    y = np.where(Y[:, 0] == 1, "yes", "no")
    assert set(AdaBoostClassifier(estimator, n_estimators=2, random_state=0).fit(X, y).predict(NEW)) <= {"yes", "no"}


@tool("for one label: CalibratedClassifierCV, TunedThresholdClassifierCV", CLASSIFIER_TOOLS)
def calibration(estimator: Any) -> None:
    """With a one-dimensional y; scikit-learn refuses label matrices there."""
    y = Y[:, 0]
    calibrated = CalibratedClassifierCV(estimator, cv=2).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(NEW).sum(axis=1), 1, rtol=0, atol=1e-12)
    frozen = CalibratedClassifierCV(FrozenEstimator(clone(estimator).fit(X, y))).fit(X, y)
    assert frozen.predict_proba(NEW).shape == (len(NEW), 2)
    assert TunedThresholdClassifierCV(estimator, cv=2).fit(X, y).predict(NEW).shape == (len(NEW),)


@tool("FrozenEstimator", CLASSIFIER_TOOLS, TRANSFORMER_TOOLS)
def frozen(estimator: Any) -> None:
    """Another fit of a frozen estimator, and of a pipeline around it, changes nothing."""
    model = clone(estimator).fit(X, Y)
    expected = out(model, NEW)
    np.testing.assert_array_equal(out(clone(FrozenEstimator(model)).fit(X[:9], Y[:9]), NEW), expected)


@tool("clone, pickle, joblib", CLASSIFIER_TOOLS, TRANSFORMER_TOOLS)
def copies(estimator: Any) -> None:
    """A clone is unfitted and equal, a stored model gives the same."""
    model = clone(estimator).fit(X, Y)
    assert repr(clone(model)) == repr(estimator)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    for stored in (pickle.loads(pickle.dumps(model)), joblib.load(file)):
        np.testing.assert_array_equal(out(stored, NEW), out(model, NEW))


@tool("metadata routing", CLASSIFIER_TOOLS)
def routing(estimator: Any) -> None:
    """What `fit` takes reaches it through a pipeline and cross-validation, with the rows of the fold."""
    values = {"sample_weight": np.arange(1.0, len(X) + 1), "y_mask": np.random.default_rng(1).random(Y.shape) < 0.9}
    train, _ = next(FOLDS.split(X))
    for name in metadata(estimator):
        with config_context(enable_metadata_routing=True):
            routed = clone(estimator).set_fit_request(**{name: True})
            if isinstance(estimator, HeldOutClassifier) and estimator.estimator is None:  # the member requests it too
                routed.set_params(estimator=estimator._base().set_fit_request(**{name: True}))
            if name == "sample_weight":
                routed.set_score_request(sample_weight=True)
            made = cross_validate(
                make_pipeline(MinMaxScaler(), routed),
                *(X, Y),
                cv=FOLDS,
                params={name: values[name]},
                return_estimator=True,
                error_score="raise",
            )
        expected = clone(estimator).fit(MinMaxScaler().fit_transform(X[train]), Y[train], **{name: values[name][train]})
        rows = MinMaxScaler().fit(X[train]).transform(NEW)
        given, plain = expected.predict_with_scores(rows)[0], made["estimator"][0][-1].predict_with_scores(rows)[0]
        np.testing.assert_array_equal(given, plain)


@tool("scikit-learn inside", CLASSIFIER_TOOLS)
def inside(estimator: Any) -> None:
    """A scikit-learn pipeline as the base classifier; its multi-label classifiers as members of a stack."""
    linear = make_pipeline(StandardScaler(), LogisticRegression())
    if "estimators" in estimator.get_params(deep=False):
        members = [("labels", MultiOutputClassifier(linear)), ("chain", ClassifierChain(linear))]
        model = clone(estimator).set_params(estimators=members)
    else:
        of_label_matrices = isinstance(getattr(estimator, "_base", int)(), MultiLabelClassifier)
        of_label_matrices |= type(estimator).__name__ == "NativeMultiLabel"
        model = clone(estimator).set_params(estimator=MultiOutputClassifier(linear) if of_label_matrices else linear)
    assert model.fit(X, Y).predict(NEW).shape == (len(NEW), Y.shape[1])


@tool("set_output, get_feature_names_out", TRANSFORMER_TOOLS)
def set_output(transformer: Any) -> None:
    """Frames with the names of the new features and the index of the rows."""
    made = clone(transformer).set_output(transform="pandas").fit(FRAME, Y).transform(FRAME)
    plain = clone(transformer).fit(FRAME, Y)
    assert made.columns.tolist() == plain.get_feature_names_out().tolist()
    assert made.index.equals(FRAME.index)
    np.testing.assert_array_equal(made, plain.transform(FRAME))


@tool("ColumnTransformer, FeatureUnion", TRANSFORMER_TOOLS)
def columns(transformer: Any) -> None:
    """On some columns, and next to another transformer."""
    some = ColumnTransformer([("some", transformer, ["f0", "f1", "f2", "f3"])], remainder="passthrough")
    union = FeatureUnion([("made", transformer), ("scaled", MinMaxScaler())])
    for model in (some, union):
        assert model.fit(FRAME, Y).transform(FRAME).shape == (len(X), len(model.get_feature_names_out()))
