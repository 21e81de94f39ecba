"""Run the Python of a page in a process of its own that does not import everything anew."""

from __future__ import annotations

import os
import sys
import traceback
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

__all__ = ["run_code"]

IMPORTED = ["pandas", "matplotlib.pyplot", "mlflow", "sklearn.ensemble", "sklearn.linear_model", "multilab.methods"]
"""What most pages import; it takes three seconds, which a forked process does not spend again."""


def run_code(code: str, folder: Path) -> str:
    """Run code in a folder and return the traceback, empty if there is none."""
    context = get_context("forkserver")  # not fork: a test process has threads
    context.set_forkserver_preload(IMPORTED)
    errors = folder / "errors.txt"
    process = context.Process(target=_run, args=(code, folder, errors))
    process.start()
    process.join()
    return errors.read_text() if errors.exists() else "" if process.exitcode == 0 else f"exit code {process.exitcode}"


def _run(code: str, folder: Path, errors: Path) -> None:
    os.chdir(folder)
    sys.argv, sys.modules["__main__"] = ["-c"], ModuleType("__main__")
    try:
        exec(compile(code, "page", "exec"), vars(sys.modules["__main__"]))
    except BaseException:
        errors.write_text(traceback.format_exc())
        raise
