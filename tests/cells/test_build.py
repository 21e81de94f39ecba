"""Estimators of methods, built without Hydra as with it."""

from __future__ import annotations

from typing import Any

import pytest
from hydra.utils import instantiate

from multilab.cells.conf import package_names
from multilab.cells.errors import ExperimentError
from multilab.cells.method import Method, build, load_method


def described(value: Any) -> Any:
    """Return an estimator as its class and arguments, all the way down."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return type(value), {name: described(one) for name, one in value.get_params(deep=False).items()}
    if isinstance(value, list | tuple):
        return type(value), [described(one) for one in value]
    return type(value), repr(value)


@pytest.mark.parametrize("name", package_names("method"))
def test_an_estimator_is_the_one_that_hydra_builds(name):
    method = load_method(name)
    own = {name: value for name, value in method.identity().items() if "__" not in name}
    nested = {name: value for name, value in method.params.items() if "__" in name}
    by_hydra = instantiate(own, _convert_="all").set_params(**nested)
    assert described(build(method)) == described(by_hydra)


def test_costs_of_settings_decide():
    costs = {"policy": "expected_cost", "cost": {"fp": 1, "fn": [5, 2]}}
    model = build(load_method("decide_calibrated").with_params(costs | {"calibration": None}))
    model.fit([[0.1, 0.9], [0.8, 0.2]], [[0, 1], [1, 0]])
    assert model.thresholds_.tolist() == [1 / 6, 1 / 3]


def test_settings_that_only_hydra_knows_are_left_to_it():
    part = {"_target_": "sklearn.linear_model.Ridge", "_partial_": True, "alpha": 2.0}
    method = Method("mine", "sklearn.preprocessing.FunctionTransformer", {"func": part})
    assert build(method).func(fit_intercept=False).get_params()["alpha"] == 2.0


@pytest.mark.parametrize(
    ("target", "params"),
    [
        ("sklearn.linear_model.NoSuchClass", {}),
        ("multilab.methods.MLkNN", {"base": {"_target_": "no.such.Class"}}),
        ("multilab.methods.MLkNN", {"neighbors": 3}),
        ("multilab.methods.MLkNN", {"estimator__C": 3}),
    ],
)
def test_a_class_or_an_argument_that_does_not_exist_names_the_file(target, params):
    with pytest.raises(ExperimentError, match=r"conf/method/mine\.yaml"):
        build(Method("mine", target, params))
