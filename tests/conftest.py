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


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that share a fixture of their module on one worker, so that it is made once."""
    for item in items:
        info = getattr(item, "_fixtureinfo", None)
        shared = info and any(each[-1].scope == "module" for each in info.name2fixturedefs.values())
        if shared and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
