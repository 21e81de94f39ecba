"""Every estimator the package has, found by itself, under scikit-learn's checks and our own."""

from __future__ import annotations

import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from helpers import multilabel_checks
from helpers.batches import make_rows
from helpers.estimators import CONF, NOT_ARGUMENTS, build, checks, params, quick_instances, reasons
from multilab import methods
from multilab.methods import MLNB, RELM, BinaryRelevance, NystroemKernelELM, discovery
from multilab.methods.base import MethodError, MultiLabelClassifier, MultiLabelTransformer
from multilab.methods.labels import check_labels
from multilab.testing import check_multilabel_estimator


class FirstSeen(MultiLabelTransformer):
    """Keeps the columns whose mean differs where the first label is set: the smallest transformer of its kind."""

    def _fit(self, X: Any, Y: Any) -> None:
        self.kept_ = np.flatnonzero(np.asarray(X.T @ (Y[:, 0] - Y[:, 0].mean())).ravel() != 0)

    def transform(self, X: Any) -> Any:
        return self._validate_transform(X)[:, self.kept_]


@pytest.mark.parametrize("name", [*params(), "FirstSeen"])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(name: str) -> None:
    estimator = quick_instances().get(name, FirstSeen())
    results = check_estimator(estimator, expected_failed_checks=reasons(estimator), on_fail=None, on_skip=None)
    assert len(results) > 30
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    assert failed == {}
    assert [r["check_name"] for r in results if r["expected_to_fail"] and r["status"] == "passed"] == []  # not needed


def test_few_of_scikit_learns_checks_are_excused() -> None:
    results = checks()
    excused = [result for result in results if result[2]]
    assert len(results) > 2600
    assert len(excused) <= 114  # 385 of fewer estimators before y of one dimension was accepted


@pytest.mark.parametrize("name", params(MultiLabelClassifier))
def test_multilabel_checks(name: str) -> None:
    estimator = quick_instances()[name]
    board = check_multilabel_estimator(estimator, scikit_learn=False, expected_failed_checks=reasons(estimator))
    unnecessary = board[board["passed"] & board["expected"]]
    assert list(unnecessary["check"]) == []  # an excused check that passes
    assert len(board) > 30


@pytest.mark.parametrize("check", multilabel_checks.CLASSIFIER_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", params(MultiLabelClassifier))
def test_classifier_of_this_package(name: str, check: Any) -> None:
    check(quick_instances()[name])


@pytest.mark.parametrize("check", multilabel_checks.TRANSFORMER_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize(
    "transformer",
    [*(e for e in quick_instances().values() if isinstance(e, MultiLabelTransformer)), FirstSeen()],
    ids=repr,
)
def test_transformer_check(transformer: Any, check: Any, request: pytest.FixtureRequest) -> None:
    reason = reasons(transformer).get(check.__name__)
    if reason:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    check(transformer)


@pytest.mark.parametrize("name", quick_instances())
def test_labels_are_passed_by_the_name_y(name: str) -> None:
    X, Y, _ = multilabel_checks.make_data()
    estimator = quick_instances()[name]
    if isinstance(estimator, (MultiLabelClassifier, MultiLabelTransformer)):  # not a base learner of single labels
        assert clone(estimator).fit(X=X, y=Y).n_features_in_ == X.shape[1]
    for method in ("fit", "fit_transform", "fit_predict", "score", "fit_watched"):
        if hasattr(estimator, method):
            assert "Y" not in signature(getattr(estimator, method)).parameters, method


def test_every_method_file_names_an_estimator_and_its_arguments() -> None:
    known = {f"{c.__module__}.{c.__qualname__}": c for c in methods.all_estimators()}
    known["sklearn.pipeline.Pipeline"] = Pipeline  # of a transformer and a classifier
    for path in CONF.glob("*.yaml"):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        cls = known[content["_target_"]]
        estimator = build({k: v for k, v in content.items() if k == "_target_" or k not in NOT_ARGUMENTS})
        params = estimator.get_params()
        assert {*content.get("search", {}), *(content.get("check_params") or {})} <= set(params), path.name
        for fact in ("title", "reference", "notes"):
            assert content.get(fact), f"{path.name} has no {fact}"
        assert isinstance(estimator, cls)


def test_a_dropped_file_is_a_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(discovery.__file__).parent
    copy = tmp_path / "multilab" / "methods"
    for path in package.rglob("*.py"):
        target = copy / path.relative_to(package)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    (copy / "neighbours" / "majority.py").write_text(
        '"""Throw-away."""\nfrom multilab.methods.base import MultiLabelClassifier\n\n\n'
        "class Majority(MultiLabelClassifier):\n    pass\n",
        encoding="utf-8",
    )
    code = (
        "import sys, multilab\n"
        "import multilab.methods.discovery as d\n"
        f"import multilab.methods as m; m.__path__ = [{str(copy)!r}]\n"
        f"d._ROOT = __import__('pathlib').Path({str(copy)!r})\n"
        "assert 'Majority' in dir(m) and m.Majority.__module__ == 'multilab.methods.neighbours.majority'\n"
        "assert m.Majority in m.all_estimators()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_wrong_batches_of_rows_are_refused() -> None:
    X, Y = make_rows()
    with pytest.raises(MethodError, match="no row to learn from"):
        RELM().fit_batches([])
    with pytest.raises(MethodError, match="no row to learn from"):
        NystroemKernelELM().fit_batches([])
    with pytest.raises(MethodError, match="a batch has labels of shape"):
        RELM().fit_batches([(X, Y), (X, Y[:, :2])])
    with pytest.raises(ValueError, match="8 features, but RELM is expecting 9"):
        RELM().fit_batches([(X, Y), (X[:, :8], Y)])
    with pytest.raises(MethodError, match="missing labels"):
        RELM().fit_batches([(X, np.where(Y == 1, np.nan, 0.0))])
    with pytest.raises(MethodError, match="leave out label_weight"):
        RELM(label_weight="balanced").fit_batches([(X, Y)])
    with pytest.raises(MethodError, match="it must be positive"):
        RELM(C=-1.0).fit_batches([(X, Y)])


def test_a_batch_may_hold_one_of_two_classes() -> None:
    X, Y = make_rows()
    y = np.where(Y[:, 0] == 1, "yes", "no")
    model, expected = RELM(random_state=0), RELM(random_state=0).fit(X, y)
    for value in ("yes", "no"):
        model.partial_fit(X[y == value], y[y == value], classes=["no", "yes"])
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    with pytest.raises(MethodError, match="expected two of"):
        model.partial_fit(X[:2], ["yes", "perhaps"])


def test_tags_of_this_package() -> None:
    assert get_tags(MLNB()).makes_dense
    assert not get_tags(MLNB()).learns_from_batches
    assert get_tags(MLNB(components=None, generations=0)).learns_from_batches
    assert get_tags(RELM()).learns_from_batches
    assert not get_tags(RELM()).makes_dense
    assert get_tags(BinaryRelevance(SGDClassifier())).learns_from_batches
    assert not get_tags(BinaryRelevance()).learns_from_batches


def test_importing_the_package_is_cheap() -> None:
    code = "import sys, multilab.methods as m; dir(m); assert not {'numpy', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_names_are_found_or_refused() -> None:
    assert methods.MLkNN.__module__ == "multilab.methods.neighbours.mlknn"
    assert {"MLkNN", "BinaryRelevance", "KernelELM"} <= {c.__name__ for c in methods.all_estimators()}
    assert MultiLabelClassifier not in methods.all_estimators()
    with pytest.raises(AttributeError, match="NoSuchMethod"):
        _ = methods.NoSuchMethod


def test_labels_are_copied_and_explained() -> None:
    given = np.array([[0, 1], [1, 1]], dtype=np.uint8)
    labels = check_labels(given)
    labels[0, 0] = 1
    assert given[0, 0] == 0
    with pytest.raises(MethodError, match="multiclass"):
        check_labels(np.array([[0], [1], [2]]))
    with pytest.raises(MethodError, match="at least one label column"):
        check_labels(np.zeros((3, 0)))


@pytest.mark.parametrize("name", ["br", "mlknn", "mlkelm"])
def test_scikit_learn_tools_see_all_labels(name: str) -> None:
    X, Y, _ = multilabel_checks.make_data()
    model = quick_instances()[name].fit(X, Y)
    scores, decisions = model.predict_with_scores(X)
    assert get_scorer("roc_auc")(model, X, Y) == pytest.approx(roc_auc_score(Y, scores), abs=1e-12)
    assert model.score(X, Y) == pytest.approx((decisions == Y).all(axis=1).mean(), abs=1e-12)
    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    assert cross_val_predict(model, X, Y, cv=3, method=method).shape == Y.shape
