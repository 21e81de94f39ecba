"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before NumPy is imported anywhere: one BLAS thread, and no phoning home.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("DVC_NO_ANALYTICS", "true")

pytest_plugins = ["helpers.code_copy"]

CHECKOUT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """Return the mirror of the benchmark data."""
    named = os.environ.get("MULTILAB_DATA")
    if not named or not Path(named).is_dir():
        pytest.skip("MULTILAB_DATA names no folder of benchmark data")
    return Path(named)


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the prepared data and the cells of the tests apart from those of the checkout."""
    os.environ["MULTILAB_CACHE"] = str(tmp_path_factory.mktemp("data"))
    os.environ["MULTILAB_CELLS"] = str(tmp_path_factory.mktemp("cells"))
    os.environ["MULTILAB_CONF"] = str(CHECKOUT / "conf")


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Return the root of the checkout."""
    return CHECKOUT
