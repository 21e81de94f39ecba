"""A small copy of the laboratory in a folder of its own, driven through its command line as a user would."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from copy import copy
from pathlib import Path

from multilab.core import read_content, write_content

CHECKOUT = Path(__file__).resolve().parents[2]

STUDY = """
title: {title}
description: A test.
datasets: [{datasets}]
methods: [{methods}]
protocol: {{kfold: 2, stratify: 1, seed: 0}}
metrics: [ranking_loss, hamming_loss, macro_auc]
headline: hamming_loss
"""


class Laboratory:
    """A checkout copy with two tiny studies, ``quick`` and ``mlwse-core``, that share cells.

    Parameters
    ----------
    root : Path
        A new folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("src", "conf"):
            shutil.copytree(CHECKOUT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", ".gitignore", ".dvcignore"):
            shutil.copy(CHECKOUT / name, root / name)
        logistic = "{_target_: sklearn.linear_model.LogisticRegression, C: 1.0}"
        for name in ("br", "cc", "lp"):  # a cheap base learner instead of the support vector machine
            path = root / "conf" / "method" / f"{name}.yaml"
            kept = re.sub(r"(?m)^estimator:.*\n(?: .*\n)*", f"estimator: {logistic}\n", path.read_text())
            path.write_text(re.sub(r"(?m)^calibration:.*$", "calibration: null", kept))
        self.study("quick", "scenario1, scenario2", "mlknn, br, mlwse_l1")
        self.study("mlwse-core", "scenario1, scenario3", "mlknn, mlkelm, mlwse_l1")
        shim = root / ".bin" / "multilab"
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m multilab "$@"\n')
        shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("MULTILAB")},
            "PATH": f"{shim.parent}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(root / "src"),
            "MULTILAB_JOBS": "1",
            "GIT_CONFIG_GLOBAL": str(root / ".gitconfig"),
        }
        (root / ".gitconfig").write_text("[user]\n name = test\n email = test@example.org\n")
        self.run("git", "init", "-q")
        self.run("dvc", "init", "-q", "-f")
        shutil.copy(CHECKOUT / ".dvcignore", root / ".dvcignore")  # which `dvc init` wrote anew
        self.run("multilab", "study", "new", "quick")

    def study(self, name: str, datasets: str, methods: str) -> None:
        """Write the YAML of a study."""
        text = STUDY.format(title=name, datasets=datasets, methods=methods)
        (self.root / "conf" / "study" / f"{name}.yaml").write_text(text)

    def run(self, *argv: str, code: int = 0, **env: str) -> str:
        """Run a command in the folder and return what it printed; the exit code must be ``code``."""
        done = subprocess.run(
            argv, cwd=self.root, env={**self.env, **env}, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        output = done.stdout + done.stderr
        assert done.returncode == code, f"{' '.join(argv)} exited {done.returncode}:\n{output}"
        return output

    def repro(self, *argv: str) -> list[str]:
        """Run ``dvc repro`` and return the names of the stages it executed."""
        printed = self.run("dvc", "repro", *argv)
        return [stage.rpartition(":")[2] for stage in re.findall(r"Running stage '([^']+)'", printed)]

    def clone(self, root: Path) -> Laboratory:
        """Return a git clone with a store of its own."""
        self.run("git", "clone", "-q", ".", str(root))
        other = copy(self)
        other.root, other.env = root, {**self.env, "PYTHONPATH": str(root / "src")}
        return other

    def lock_is_damaged(self) -> bool:
        """Return whether DVC refuses ``dvc.lock``."""
        status = subprocess.run(["dvc", "status"], cwd=self.root, env=self.env, capture_output=True, text=True)
        return re.search(r"dvc\.lock' (is invalid|validation failed)", status.stdout + status.stderr) is not None

    def cells(self) -> dict[str, float]:
        """Return the finished cells and when each was written."""
        return {p.parent.name: p.stat().st_mtime_ns for p in (self.root / ".cells").glob("[0-9a-f]*/DONE")}

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands exactly once in a file."""
        file = self.root / path
        text = read_content(file).decode()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
        write_content(file, text.replace(old, new))
