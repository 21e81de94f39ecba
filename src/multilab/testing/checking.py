"""`check_multilabel_estimator`: all checks of an estimator, as a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pandas as pd
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

from multilab.core.messages import printable, unknown_name
from multilab.core.text import docstring
from multilab.testing import input_checks, label_checks, output_checks, state_checks
from multilab.testing.errors import EstimatorCheckError
from multilab.testing.trials import Trial

__all__ = ["check_multilabel_estimator", "multilabel_checks"]

_ON_FAIL = ("raise", "return")
_COLUMNS = ["suite", "check", "passed", "expected", "reason"]


def multilabel_checks() -> dict[str, str]:
    """Return what each multi-label check demands, by its name.

    Examples
    --------
    >>> from multilab.testing import multilabel_checks
    >>> multilabel_checks()["check_single_label"]
    'Y may have one column; scores and decisions keep two dimensions.'
    """
    return {name: docstring(check).partition("\n")[0] for name, check in _checks().items()}


def _checks() -> dict[str, Callable[[Trial], None]]:
    modules = (output_checks, label_checks, input_checks, state_checks)
    return {
        name: check
        for module in modules
        for name, check in vars(module).items()
        if name.startswith("check_") and callable(check)
    }


def check_multilabel_estimator(
    estimator: Any,
    *,
    expected_failed_checks: Mapping[str, str] | None = None,
    scikit_learn: bool = True,
    checks: Collection[str] | None = None,
    on_fail: str = "raise",
) -> pd.DataFrame:
    """Run scikit-learn's checks and the multi-label checks on an estimator.

    Parameters
    ----------
    estimator : estimator
        Any classifier with ``fit`` and ``predict`` on label matrices, not fitted: yours, ours or another library's.
        Give it arguments that make a fit fast.
    expected_failed_checks : dict of str to str, optional
        Why some checks cannot pass, by the name of the check. They are run, and do not count as failures.
    scikit_learn : bool, default=True
        Also run `sklearn.utils.estimator_checks.check_estimator`.
    checks : collection of str, optional
        Only these of `multilabel_checks`, by name; all by default.
    on_fail : {"raise", "return"}, default="raise"
        Raise an error that lists the failures, or return the table only.

    Returns
    -------
    DataFrame
        One row per check. ``suite`` is "scikit-learn" or "multi-label"; ``passed``; ``expected``: it was expected to
        fail; ``reason``: why it failed, or of an expected failure the reason given. Checks that scikit-learn skips are
        left out.

    Raises
    ------
    EstimatorCheckError
        If a check fails that was not expected to, or a name is no check.

    Examples
    --------
    >>> from multilab.methods import MLkNN
    >>> from multilab.testing import check_multilabel_estimator
    >>> board = check_multilabel_estimator(MLkNN(k=3), scikit_learn=False)
    >>> bool(board["passed"].all())
    True
    """
    __tracebackhide__ = True  # pytest shows the list of failures, not this function
    if isinstance(estimator, type):
        raise EstimatorCheckError(f"pass an object, {estimator.__name__}(), not the class {estimator.__name__}")
    if on_fail not in _ON_FAIL:
        raise EstimatorCheckError(unknown_name("on_fail", on_fail, _ON_FAIL))
    known = _checks()
    for name in checks or ():
        if name not in known:
            raise EstimatorCheckError(unknown_name("multi-label check", name, known))
    reasons = dict(expected_failed_checks or {})
    results = _scikit_learn(estimator, reasons) if scikit_learn else []
    trial = Trial(estimator)
    for name, check in known.items():
        if checks is None or name in checks:
            results.append(("multi-label", name, _failure(check, trial)))
    board = pd.DataFrame(
        [(s, name, not why, name in reasons, why and reasons.get(name, why)) for s, name, why in results],
        columns=_COLUMNS,
    )
    failed = board[~board["passed"] & ~board["expected"]]
    if on_fail == "raise" and len(failed):
        lines = [f"{check}: {reason}" for check, reason in zip(failed["check"], failed["reason"], strict=True)]
        head = f"{type(estimator).__name__} fails {len(failed)} of {len(board)} checks"
        raise EstimatorCheckError("\n  ".join([f"{head}:", *lines]))
    return board


def _scikit_learn(estimator: Any, reasons: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return suite, name and reason of failure (empty: passed) of scikit-learn's checks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        try:
            results = check_estimator(estimator, expected_failed_checks=dict(reasons), on_fail=None, on_skip=None)
        except Exception as error:  # its tags, from which the checks are chosen, cannot be read
            return [("scikit-learn", "check_estimator", _reason(error))]
    return [
        ("scikit-learn", result["check_name"], _reason(result["exception"]) if result["exception"] else "")
        for result in results
        if result["status"] != "skipped"
    ]


def _failure(check: Callable[[Trial], None], trial: Trial) -> str:
    """Return why an estimator fails a check, empty if it passes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(trial)
    except Exception as error:  # an estimator of anybody may raise anything
        return _reason(error)
    return ""


def _reason(error: BaseException) -> str:
    """Return an error as one line; an AssertionError without its type."""
    text = " ".join(printable(str(error)).split()) or type(error).__name__
    return text if isinstance(error, AssertionError) else f"{type(error).__name__}: {text}"
