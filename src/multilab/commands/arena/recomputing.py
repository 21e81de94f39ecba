"""Recomputation of cells of a submission, in a separate process: the only one that runs the submitted code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from multilab.arena.errors import ArenaError
from multilab.commands.arena.submission_cells import submission_cells
from multilab.commands.progress import ProgressBar
from multilab.core import read_json
from multilab.experiments.cells import Cell, with_reads
from multilab.experiments.execute import run_cells
from multilab.experiments.own_settings import named_file
from multilab.experiments.store import Store
from multilab.experiments.study import load_study

_DROPPED = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_DROPPED_STARTS = ("GITHUB_", "ACTIONS_", "GH_", "RUNNER_", "AWS_", "MLFLOW_")


def recompute_apart(study: str, settings: Path, cells: Iterable[Cell], store: Path) -> dict[str, str]:
    """Run cells of a submission in another process; return the reasons of those that failed, by label.

    The process does not inherit variables that look like credentials or that let it write into a workflow.

    Parameters
    ----------
    study : str
    settings : Path
        The YAML of the method, in a folder ``conf/method`` next to which the method file is.
    cells : iterable of Cell
    store : Path
        Folder of a new store of cells.
    """
    wanted = [[cell.split_ref.dataset, cell.split_ref.split] for cell in cells]
    plan, result = store.with_name("plan.json"), store.with_name("result.json")
    content = {"study": study, "settings": str(settings), "cells": wanted, "store": str(store), "result": str(result)}
    plan.write_text(json.dumps(content))
    done = subprocess.run([sys.executable, "-m", __name__, str(plan)], env=_environment(), check=False)
    try:
        failed = read_json(result)
        return {str(label): str(reason) for label, reason in failed.items()}
    except (OSError, ValueError, AttributeError):
        raise ArenaError(f"the recomputation ended with exit code {done.returncode} and no result") from None


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_DROPPED_STARTS) and not any(part in name.upper() for part in _DROPPED)
    }


def _recompute(plan: Path) -> None:
    content = read_json(plan)
    study = load_study(content["study"])
    name, wanted = named_file("method", content["settings"]), {tuple(pair) for pair in content["cells"]}
    cells = submission_cells(study, name, "all")
    cells = [cell for cell in cells if (cell.split_ref.dataset, cell.split_ref.split) in wanted]
    store = Store(content["store"])
    failed = run_cells(with_reads(cells), store, progress=ProgressBar("verify: cells"), limits=study.limits)
    Path(content["result"]).write_text(json.dumps(failed))


if __name__ == "__main__":
    _recompute(Path(sys.argv[1]))
