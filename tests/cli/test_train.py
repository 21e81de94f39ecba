"""`multilab train` does nothing twice: counts of what it parses, reads and evaluates."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from multilab.cells import cell_metrics, store
from multilab.cli import main
from multilab.datasets import card_file

RUN = ["train", "dataset=genes-toy", "method=mlknn", "publish=false"]


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """Count parsed cards, hashed contents of the store and evaluated cells, as in a new process."""
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    counted: Counter[str] = Counter()
    parse_card, digest = card_file._content, hashlib.sha256
    evaluate, read_bytes = cell_metrics.evaluate_cell, Path.read_bytes
    contents: dict[bytes, str] = {}

    def read(path: Path) -> bytes:
        content = read_bytes(path)
        if tmp_path / "cells" in path.parents:
            contents[content] = f"hashed {path.parent.name[:8]}/{path.name}"
        return content

    def hashed(content: bytes = b""):
        if content in contents:
            counted[contents[content]] += 1
        return digest(content)

    def card(text: str, path: Path):
        counted[f"card {path.name}"] += 1
        return parse_card(text, path)

    def metrics(cell, *more):
        counted[f"evaluated {cell.label}"] += 1
        return evaluate(cell, *more)

    monkeypatch.setattr(card_file, "_content", card)
    monkeypatch.setattr(Path, "read_bytes", read)
    monkeypatch.setattr(hashlib, "sha256", hashed)
    monkeypatch.setattr(cell_metrics, "evaluate_cell", metrics)

    def counts_of(argv: list[str]) -> dict[str, int]:
        card_file._parsed.cache_clear()
        store._verified.cache_clear()
        counted.clear()
        assert main(argv) == 0
        return dict(counted)

    return counts_of


def test_a_card_is_parsed_once_and_a_cell_evaluated_once(counts):
    first = counts(RUN)
    assert first.pop("card genes-toy.yaml") == 1
    evaluated = {name: count for name, count in first.items() if name.startswith("evaluated")}
    assert evaluated == {f"evaluated mlknn on genes-toy, split {split}": 1 for split in range(5)}


def test_a_stored_run_reads_each_file_once_and_evaluates_nothing(counts):
    counts(RUN)
    time.sleep(0.1)  # a file that was written just now is not trusted to stay as it is
    second = counts(RUN)
    assert second.pop("card genes-toy.yaml") == 1
    assert len(second) == 15, "three files of five cells"
    assert set(second.values()) == {1}


@pytest.mark.slow
def test_a_stored_run_imports_no_tracking_search_or_plots(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    assert main(RUN) == 0
    code = f"import sys; from multilab.cli import main; main({RUN}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "hamming_loss" in done.stdout
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"mlflow", "optuna", "matplotlib", "dask"}
