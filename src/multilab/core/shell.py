"""Commands as a user can type them in the shell that started this program."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def command(program: str) -> str:
    """Return the command of a program in this environment: its name, or its path if the shell does not find the name.

    Without an activated environment ``multilab`` is not on the search path of the shell; ``make`` puts it there for its
    own commands only, so what ``make`` prints must not rely on it.
    """
    folder = Path(sys.executable).parent
    script = folder / program
    activated = os.environ.get("VIRTUAL_ENV") == sys.prefix
    on_path = shutil.which(program) is not None and not os.environ.get("MAKELEVEL")
    if activated or on_path:
        return program
    if not script.is_file():
        return f"{short_path(Path(sys.executable))} -m {program}"
    # the stages of DVC call `multilab` by its name
    return f"PATH={shlex.quote(short_path(folder))}:$PATH dvc" if program == "dvc" else short_path(script)


def short_path(path: Path) -> str:
    """Return a path relative to the current folder if it lies below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
