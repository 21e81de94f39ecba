"""The commands of the page about own data print what the page shows."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from multilab.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "own-data.md"


def test_commands_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)  # commands are printed by their names
    for name in ("MULTILAB_CACHE", "MULTILAB_CARDS", "MULTILAB_DATA"):
        monkeypatch.delenv(name, raising=False)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    exec(next(block for kind, block in blocks if kind == "python"), {})  # writes the file
    printed = {}
    for k, (kind, block) in enumerate(blocks):
        if kind == "bash":
            for line in block.splitlines():
                main(shlex.split(line)[1:])
        elif kind == "python":
            exec(block, {})
        printed[k] = "".join(capsys.readouterr())
    texts = {k: block for k, (kind, block) in enumerate(blocks) if kind == "text"}
    assert len(texts) == 3
    for k, text in texts.items():
        assert printed[k - 1] == text
    (scores,) = (printed[k] for k, (kind, _) in enumerate(blocks) if kind == "bash" and k + 1 not in texts)
    assert re.search("mlknn on songs-[0-9a-f]{8}, 5 splits", scores)
    assert "\nsongs, kfold5: mean" in scores
