"""Checks of state: arguments, seeds, repeated fits, copies, and what belongs to the caller."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from sklearn.base import clone

from multilab.testing.trials import Trial, assert_same


def check_inputs_untouched(trial: Trial) -> None:
    """Fitting and predicting change nothing that the caller has, and work on read-only arrays."""
    arrays = trial.data()
    for array in arrays:
        array.setflags(write=False)
    X, Y, X_test = arrays
    assert_same(trial.fitted_outputs(X, Y, X_test), trial.expected, atol=0)
    for array, copy, name in zip(arrays, trial.data(), ("X", "Y", "X of predict"), strict=True):
        assert np.array_equal(array, copy), f"{name} was changed"


def check_model_keeps_own_data(trial: Trial) -> None:
    """What the caller does to Y after fitting does not change the model."""
    X, Y, X_test = trial.data()
    model = trial.fit(X, Y)
    Y[:] = 1 - Y
    assert_same(trial.outputs(model, X_test), trial.expected, atol=0)


def check_params(trial: Trial) -> None:
    """Cloning keeps the arguments, fitting does not change them."""
    before = _arguments(trial.new())
    assert before == _arguments(clone(trial.new())), "a clone has other arguments"
    after = _arguments(trial.model)
    changed = sorted(name for name in before if before[name] != after.get(name))
    assert not changed, f"fit changes {', '.join(changed)}"


def _arguments(model: Any) -> dict[str, str]:
    return {name: repr(value) for name, value in model.get_params().items()}


def check_set_params(trial: Trial) -> None:
    """``set_params`` returns the estimator, takes what ``get_params`` gives, and refuses other names."""
    model = trial.new()
    assert model.set_params(**model.get_params(deep=False)) is model, "set_params does not return the estimator"
    assert _arguments(model) == _arguments(trial.new()), "set_params with the values of get_params changes them"
    try:
        model.set_params(no_such_argument=1)
    except ValueError:
        return
    raise AssertionError("set_params accepts an argument that does not exist")


def check_repeatable(trial: Trial) -> None:
    """Equal seeds give equal results, whatever was drawn from NumPy's global generator."""
    X, Y, X_test = trial.data()
    state = np.random.get_state()  # noqa: NPY002 (restored below)
    try:
        np.random.seed(12345)  # noqa: NPY002 (an estimator that reads the global generator shall be caught)
        assert_same(trial.fitted_outputs(X, Y, X_test), trial.expected, atol=0)
    finally:
        np.random.set_state(state)  # noqa: NPY002


def check_refit_forgets(trial: Trial) -> None:
    """A second fit gives what a new estimator gives, also after a fit on other data with fewer labels."""
    X, Y, X_test = trial.data()
    other_X, other_Y, _ = trial.data(seed=5, q=2)
    model = trial.fit(other_X, other_Y)
    columns = np.shape(trial.outputs(model, X_test)[1])[1]
    assert columns == 2, f"decisions have {columns} columns after a fit on two labels"
    assert_same(trial.outputs(model.fit(X, Y), X_test), trial.expected, atol=0)


def check_n_jobs(trial: Trial) -> None:
    """The number of workers does not change the result."""
    if "n_jobs" not in trial.estimator.get_params():
        return
    X, Y, X_test = trial.data()
    jobs = 1 if trial.estimator.get_params()["n_jobs"] == 2 else 2
    assert_same(trial.outputs(trial.fit(X, Y, n_jobs=jobs), X_test), trial.expected, atol=0)


def check_pickle(trial: Trial) -> None:
    """A fitted model survives pickling."""
    copy = pickle.loads(pickle.dumps(trial.model))
    assert_same(trial.outputs(copy, trial.data()[2]), trial.expected, atol=0)
