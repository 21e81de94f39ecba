"""The commands of the page "Submit a method to the arena", in order, in a folder of a user's own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "arena-submission.md"
HEAD = "# SPDX-FileCopyrightText: 2026 Your Name\n# SPDX-License-Identifier: BSD-3-Clause\n"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGE.is_file(), reason="no documentation: an unpacked sdist"),
]


def test_the_commands_of_the_page_work(tmp_path, checkout):
    pytest.importorskip("hydra")
    text = PAGE.read_text("utf-8")
    assert all(line in text for line in HEAD.splitlines())
    ((path, settings),) = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(settings)
    lines = "".join(re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)).splitlines()
    assert [line.split()[2] for line in lines if " arena " in line] == ["submit", "verify", "scores", "metrics"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MULTILAB_")}
    environment |= {"PYTHONPATH": str(checkout / "src"), "MULTILAB_CELLS": str(tmp_path / "cells")}
    printed = {}
    for line in lines:
        command = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        printed[line] = done.stdout
        if "new method" in line:
            code = tmp_path / "ridge_labels.py"
            code.write_text(HEAD + code.read_text())
    verified = next(text for line, text in printed.items() if "arena verify" in line)
    assert "verified: 2 of 2 cells recomputed (seed 1), compared at L1 (1e-06)" in verified
    assert re.search(r"ridge_labels would be number \d of 3 by all metrics", verified)
    stamp = json.loads((tmp_path / "submissions" / "ridge_labels.verified.json").read_text())
    assert stamp["result"] == "verified"
    assert "decisions: top_k" in printed[lines[-1]]
