"""TabM; all but the tests without its packages need the extra ``tabular-nets``."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import yaml

from helpers.expected_failures import CHECK_PARAMS, expected_failures
from helpers.multilabel_checks import make_data
from multilab import methods
from multilab.methods.base import MethodError
from multilab.metrics import score_all
from multilab.testing import check_multilabel_estimator

ENTRANTS = Path(__file__).resolve().parents[2] / "conf" / "entrant"
MODULE = "multilab.methods.networks.tabm"


@pytest.fixture
def quick() -> Any:
    """Return a function that makes a small TabM."""
    for package in ("torch", "tabm"):
        pytest.importorskip(package)

    def make(**arguments: Any) -> Any:
        return methods.TabM(**{**CHECK_PARAMS["TabM"], "max_epochs": 15, "random_state": 0, **arguments})

    return make


def test_without_its_packages_the_class_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tabm", None)  # as if it were not installed
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(AttributeError, match=r"pip install .*(tabm|torch)"):
        _ = methods.TabM
    with pytest.raises(ImportError, match=r"pip install .*(tabm|torch)"):
        from multilab.methods import TabM  # noqa: F401
    assert "TabM" not in {cls.__name__ for cls in methods.all_estimators()}
    assert "TabM" in dir(methods)


def test_a_missing_package_of_no_extra_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "multilab.methods.networks.dbpnn", raising=False)
    monkeypatch.setitem(sys.modules, "sklearn.neural_network", None)
    with pytest.raises(ModuleNotFoundError, match="sklearn"):
        from multilab.methods import DBPNN  # noqa: F401


@pytest.mark.parametrize("name", ["tabm", "tabicl", "tabpfn"])
def test_the_settings_name_every_package_whose_version_decides_the_result(name: str) -> None:
    content = yaml.safe_load((ENTRANTS / f"{name}.yaml").read_text(encoding="utf-8"))
    text = str({k: v for k, v in content.items() if k not in ("_target_", "title", "notes", "reference")})
    assert f"'{name}." in text
    assert "'torch." in text
    for fact in ("title", "family", "licence", "reference", "notes"):
        assert content[fact], fact
    assert set(content["requires"].split()) == ({"tabm", "torch"} if name == "tabm" else {name})
    assert ("not run here: weights" in content["notes"].lower()) == (name != "tabm")


def test_the_extra_is_in_no_lock(checkout: Path) -> None:
    lines = [line for path in checkout.glob("*.lock") for line in path.read_text(encoding="utf-8").splitlines()]
    if not lines:
        pytest.skip("no lock: an unpacked sdist")
    assert not [line for line in lines if line.startswith(("torch==", "tabm==", "tabicl==", "tabpfn=="))]


def test_it_ranks_better_than_label_frequencies(quick: Any) -> None:
    X, Y, X_test = make_data()
    model = quick(max_epochs=60).fit(X, Y)
    metric = "macro_average_precision"
    frequencies = np.tile(Y.mean(axis=0), (len(Y), 1))
    scores = [score_all(Y, s, metrics=[metric])[metric] for s in (frequencies, model.predict_proba(X))]
    assert scores[1] > scores[0] + 0.2
    assert model.predict_proba(X_test).shape == (len(X_test), Y.shape[1])


def test_a_seed_gives_the_same_scores_whatever_the_state_of_torch(quick: Any) -> None:
    torch = importlib.import_module("torch")
    X, Y, X_test = make_data()
    threads = torch.get_num_threads()
    first = quick().fit(X, Y).predict_proba(X_test)
    try:
        torch.set_num_threads(2)
        torch.manual_seed(5)
        state = torch.get_rng_state()
        second = quick().fit(X, Y).predict_proba(X_test)
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - quick(random_state=1).fit(X, Y).predict_proba(X_test)).max() > 1e-3


def test_a_row_has_the_same_score_alone_scaled_and_after_pickling(quick: Any) -> None:
    X, Y, X_test = make_data()
    model = quick().fit(X, Y)
    expected = model.predict_proba(X_test)
    np.testing.assert_allclose(np.vstack([model.predict_proba(row[None]) for row in X_test]), expected, atol=1e-12)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X_test), expected)
    np.testing.assert_array_equal(quick().fit(sp.csr_array(X), Y).predict_proba(sp.csr_array(X_test)), expected)
    moved = quick().fit(1024.0 * X, Y).predict_proba(1024.0 * X_test)
    np.testing.assert_allclose(moved, expected, atol=1e-6)


def test_training_stops_and_the_best_epoch_is_used(quick: Any) -> None:
    X, Y, X_test = make_data()
    model = quick(max_epochs=200, patience=3, learning_rate=0.02).fit(X, Y)
    losses = model.validation_loss_
    assert model.n_epochs_ == np.argmin(losses) + 1
    assert len(losses) == model.n_epochs_ + 3 < 200
    same = quick(max_epochs=model.n_epochs_, patience=200, learning_rate=0.02).fit(X, Y)
    np.testing.assert_array_equal(same.predict_proba(X_test), model.predict_proba(X_test))


def test_without_validation_rows_all_epochs_are_trained(quick: Any) -> None:
    X, Y, X_test = make_data()
    model = quick(max_epochs=4, validation_fraction=0.0).fit(X, Y)
    assert model.n_epochs_ == 4
    assert model.validation_loss_.size == 0
    assert quick(max_epochs=2).fit(X[:2], Y[:2]).validation_loss_.size == 0
    assert np.isfinite(model.predict_proba(X_test)).all()


def test_constant_labels_and_unobserved_labels(quick: Any) -> None:
    X, Y, X_test = make_data()
    Y[:, 0], Y[:, 1] = 1, 0
    scores = quick().fit(X, Y).predict_proba(X_test)
    assert (scores[:, 0] == 1).all()
    assert (scores[:, 1] == 0).all()
    assert quick().fit(X, Y[:, :2]).n_epochs_ == 0
    mask = np.ones(Y.shape, dtype=bool)
    mask[::3, 2] = False
    hidden = quick().fit(X, np.where(mask, Y, 1 - Y), y_mask=mask).predict_proba(X_test)
    np.testing.assert_array_equal(hidden, quick().fit(X, np.where(mask, Y, np.nan)).predict_proba(X_test))
    assert np.abs(hidden - scores).max() > 1e-6


@pytest.mark.parametrize(
    ("argument", "value"),
    [("k", 0), ("n_blocks", 0), ("max_epochs", 0), ("patience", 0), ("dropout", 1.0), ("validation_fraction", -0.1)],
)
def test_wrong_arguments_are_refused_by_name(quick: Any, argument: str, value: float) -> None:
    X, Y, _ = make_data()
    with pytest.raises(MethodError, match=f"^{argument}="):
        quick(**{argument: value}).fit(X, Y)


def test_the_entrant_has_the_versions_in_its_key(quick: Any) -> None:
    pytest.importorskip("hydra")
    method = importlib.import_module("multilab.cells.method").load_method("tabm")
    importlib.import_module("multilab.cells.arguments").check_method(method, tuned=True)
    assert set(method.outside.distributions) == {"tabm", "torch"}
    assert method.outside.files == {}


@pytest.mark.slow
def test_all_checks_of_estimators(quick: Any) -> None:
    model = methods.TabM(**CHECK_PARAMS["TabM"])
    board = check_multilabel_estimator(model, expected_failed_checks=expected_failures(model))
    assert len(board) > 80
