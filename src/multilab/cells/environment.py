"""Environment in which a study was computed: commit, machine, BLAS kernels, versions."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from multilab.core.digests import sha256_digest

__all__ = ["code_version", "environment", "installed_version", "package_commit"]

_PACKAGES = ("multilab", "numpy", "scipy", "scikit-learn", "pandas", "mlflow", "hydra-core", "dvc", "optuna")

_DECIDING = ("src", "conf", "dvc.yaml", "requirements.lock")


def environment() -> dict[str, Any]:
    """Return commit, lock digest, machine, BLAS kernels and versions, for the report."""
    from multilab.cells.fit_costs import blas_libraries  # imports scikit-learn

    lock = Path("requirements.lock")
    return {
        **code_version(),
        "lock_digest": sha256_digest(lock.read_bytes()) if lock.is_file() else None,
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores",
        "blas": ", ".join(blas_libraries()),
        "versions": {name: number for name in _PACKAGES if (number := installed_version(name))},
        "created": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def code_version() -> dict[str, str | None]:
    """Return the commit and the version of Python, for the tags of a run."""
    return {"commit": _commit(), "python": platform.python_version()}


@functools.cache
def package_commit() -> str | None:
    """Return the commit of the checkout that this package is in, ``None`` if it is installed elsewhere."""
    checkout = Path(__file__).resolve().parents[3]
    try:
        return _git("-C", str(checkout), "rev-parse", "--short=12", "HEAD") if (checkout / ".git").exists() else None
    except (OSError, subprocess.SubprocessError):
        return None


def _commit() -> str | None:
    """Return the commit of the current folder, followed by ``+`` when code, settings or the lock differ from it."""
    try:
        return _git("rev-parse", "--short=12", "HEAD") + "+" * bool(_git("status", "--porcelain", *_DECIDING))
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as stream:
            return next(line.split(":", 1)[1].strip() for line in stream if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


@functools.cache
def installed_version(name: str) -> str | None:
    """Return the version of a distribution, ``None`` if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
