"""Versions of the data files in ``data/own`` by DVC, where the current folder belongs to a DVC repository."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from multilab.core.shell import command
from multilab.datasets.own_cards import OwnDataset


def version_file(added: OwnDataset, reference: bool = False) -> str:
    """Let DVC version the data file of a dataset; return what was done, or why it was not.

    A file that is only linked is not versioned: its card has the checksum, so that a change is noticed.
    """
    checksum = "the card has its sha256"
    if reference:
        return f"not versioned, the file stays where it is; {checksum}"
    path = added.path
    if not _in_repository(Path.cwd()):
        return f"not versioned, no DVC repository here (`git init && dvc init` makes one); {checksum}"
    if find_spec("dvc") is None:
        return f'not versioned, DVC is not installed: pip install "multilab[lab]"; {checksum}'
    run = subprocess.run(
        [sys.executable, "-m", "dvc", "add", "--quiet", str(path)], capture_output=True, text=True, check=False
    )
    if run.returncode:
        reason = (run.stderr.strip() or "unknown reason").splitlines()[-1].removeprefix("ERROR: ")
        return f"not versioned, dvc add failed ({reason}); {checksum}"
    return f"{path}.dvc (to commit: git add {path.parent}; `{command('dvc')} push` shares the data)"


def _in_repository(folder: Path) -> bool:
    """Return whether a folder belongs to a DVC repository."""
    return any((parent / ".dvc").is_dir() for parent in (folder, *folder.parents))
