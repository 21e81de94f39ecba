"""Packages of the extra `arena`, which the lock does not hold."""

import pytest

PACKAGES = ("lightgbm", "xgboost", "catboost", "mlrl.boosting")


def skip_without_packages_of(study: str) -> None:
    """Skip a test on a study of the arena where its packages are not installed."""
    for package in PACKAGES if study.startswith("arena") else ():
        pytest.importorskip(package, reason="the extra `arena` is not installed")
