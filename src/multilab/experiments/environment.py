"""Where and with what a study was computed."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from multilab.experiments.threads import blas_libraries

__all__ = ["environment"]

_PACKAGES = ("multilab", "numpy", "scipy", "scikit-learn", "pandas", "mlflow", "hydra-core", "dvc", "optuna")

_DECIDING = ("src", "conf", "dvc.yaml", "requirements.lock")


def environment() -> dict[str, Any]:
    """Return commit, lock digest, machine, BLAS kernels and versions, for the report and the tags of a run."""
    lock = Path("requirements.lock")
    return {
        "commit": _commit(),
        "lock_digest": hashlib.sha256(lock.read_bytes()).hexdigest() if lock.is_file() else None,
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "blas": ", ".join(blas_libraries()),
        "versions": {name: number for name in _PACKAGES if (number := _version(name))},
        "created": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def _commit() -> str | None:
    """Return the commit of the current folder, followed by ``+`` when code, settings or the lock differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(git("status", "--porcelain", *_DECIDING))
    except (OSError, subprocess.SubprocessError):
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as stream:
            return next(line.split(":", 1)[1].strip() for line in stream if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
