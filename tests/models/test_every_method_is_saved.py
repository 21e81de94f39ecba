"""Every method file: its fitted estimator is written without pickle, read again, and predicts the same."""

from __future__ import annotations

import numpy as np
import pytest

from multilab.cells.conf import package_names
from multilab.cells.fitting import estimator_of
from multilab.cells.method import load_method
from multilab.models.skops_files import dump_model, load_skops

FAST = ["br", "br_logistic", "ecc", "elm", "rakel", "rakel_d", "mlknn", "mddm_proj", "decide_calibrated", "mlwse_l1"]


def check(name, path):
    rng = np.random.default_rng(0)
    X = rng.random((40, 8))
    Y = (X[:, :4] + 0.3 * rng.random((40, 4)) > 0.6).astype(np.uint8)
    method = load_method(name)
    fitted = estimator_of(method.with_params(method.check_params), 0, name).fit(X, Y)
    dump_model(fitted, path)
    scores, decisions = fitted.predict_with_scores(X)
    loaded_scores, loaded_decisions = load_skops(path).predict_with_scores(X)
    np.testing.assert_allclose(loaded_scores, scores, rtol=0, atol=1e-12)  # another memory layout, another rounding
    np.testing.assert_array_equal(loaded_decisions, decisions)


@pytest.mark.parametrize("name", FAST)
def test_a_method_is_saved_without_pickle(name, tmp_path):
    check(name, tmp_path / "model.skops")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(package_names("method")) - set(FAST)))
def test_every_other_method_is_saved_without_pickle(name, tmp_path):
    check(name, tmp_path / "model.skops")
