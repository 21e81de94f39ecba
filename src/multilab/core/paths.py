"""The folders of settings, data, cells, results and reports, and the environment variables that name them."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_EXPERIMENTS = (".dvc", "tmp", "exps")


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


def home_dir() -> Path:
    """Return the folder of everything that outlasts a run: the store of cells, prepared data, the MLflow store.

    It is the current folder, except in the temporary copy in which ``dvc exp run --temp`` or ``--queue`` runs an
    experiment, ``.dvc/tmp/exps/...`` of a repository: DVC deletes that copy, so its home is the same folder of the
    repository.
    """
    here = Path.cwd().resolve()
    copy = experiment_dir()
    if copy is None:
        return here
    owner = next(folder for folder in copy.parents if folder.parts[-3:] == _EXPERIMENTS).parents[2]
    return owner / here.relative_to(copy)


def experiment_dir() -> Path | None:
    """Return the temporary repository of a DVC experiment that the current folder is in, ``None`` elsewhere."""
    here = Path.cwd().resolve()
    copy = next((folder for folder in (here, *here.parents) if (folder / ".dvc").is_dir()), None)
    return copy if copy and any(folder.parts[-3:] == _EXPERIMENTS for folder in copy.parents) else None


def data_dir() -> Path:
    """Return the local data folder: ``MULTILAB_CACHE`` or ``data``, starting from :func:`home_dir`.

    In a stage of DVC it is ``data`` of the current folder, where DVC expects what the stage writes.
    """
    if "DVC_STAGE" in os.environ:
        return Path("data").resolve()
    return (home_dir() / (os.environ.get("MULTILAB_CACHE") or "data")).resolve()


def store_dir() -> Path:
    """Return the folder of cells: ``MULTILAB_CELLS`` or ``.cells``, starting from :func:`home_dir`."""
    return (home_dir() / Path(os.environ.get("MULTILAB_CELLS") or ".cells").expanduser()).resolve()


def results_dir(study: str) -> Path:
    """Return the folder of a study's stage results (git-ignored)."""
    return Path("results") / study


def report_dir(study: str) -> Path:
    """Return the folder of a study's report (committed, except for ``quick``)."""
    return Path("reports") / study
