"""Where settings and data are found."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def conf_dir() -> Path:
    """Return the folder of settings that Hydra composes from.

    The folder named by ``MULTILAB_CONF``, else ``conf`` of the current folder when that is a multilab checkout (so
    that a copy made by ``dvc exp run --temp`` reads its own settings), else that of the checkout the package was
    installed from, else the copy inside the wheel.
    """
    named = os.environ.get("MULTILAB_CONF")
    if named:
        return Path(named).resolve()
    for candidate in (Path.cwd() / "conf", _PACKAGE.parents[1] / "conf"):
        if (candidate / "study" / "quick.yaml").is_file():
            return candidate
    return _PACKAGE / "conf"


def data_dir() -> Path:
    """Return the local data folder: ``MULTILAB_CACHE`` or ``data`` in the current folder."""
    return Path(os.environ.get("MULTILAB_CACHE") or "data").resolve()


def results_dir(study: str) -> Path:
    """Return the folder of a study's stage results (git-ignored)."""
    return Path("results") / study


def report_dir(study: str) -> Path:
    """Return the folder of a study's report (committed, but for ``quick``)."""
    return Path("reports") / study
