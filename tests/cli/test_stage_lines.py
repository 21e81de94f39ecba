"""What the stages print: one line each when they have finished, progress only where it takes long, usable commands."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import pytest

from multilab.cells import progress
from multilab.cells.errors import ExperimentError
from multilab.cells.progress import ProgressBar, StageLine


def cells(*keys: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(key=key) for key in keys]


@pytest.mark.parametrize(
    ("keys", "computed", "failed", "expected"),
    [
        (["a", "b", "c"], 0, 0, "3 cells, 3 reused"),
        (["a", "b", "b"], 1, 0, "2 cells, 1 reused"),
        (["a"], 1, 1, "1 cell, 0 reused, 1 failed"),
        ([], 0, 0, "0 cells, 0 reused"),
    ],
)
def test_a_stage_ends_with_one_line(keys, computed, failed, expected, capsys):
    StageLine("train mlknn").print_cells(cells(*keys), computed, failed)
    printed = capsys.readouterr().out
    assert re.fullmatch(rf"train mlknn +{expected}, \d+\.\d s\n", printed)


def test_short_progress_prints_nothing_and_counts(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    progress = ProgressBar("fitting")
    assert list(progress(iter("abc"), 3)) == ["a", "b", "c"]
    assert progress.total == 3
    assert capsys.readouterr().err == ""


def test_long_progress_prints_a_line_every_ten_seconds(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    clock = iter(range(0, 1000, 4))  # four seconds from one look at the clock to the next
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    assert list(ProgressBar("fitting")(iter(range(10)), 10)) == list(range(10))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert all(re.fullmatch(r"fitting: \d+ of 10", line) for line in lines)


def test_the_gate_counts_the_warnings_of_its_cells(tmp_path, monkeypatch, capsys):
    from types import SimpleNamespace

    from multilab.cells.store import Store
    from multilab.experiments import gate

    def compute(*_, **__):
        messages = {"a": ["ConvergenceWarning: stopped early", "UserWarning: other"], "b": []}
        for letter, warnings in messages.items():
            categories = [warning.partition(":")[0] for warning in warnings]
            Store(tmp_path).write(letter * 64, {}, {"warnings": warnings, "warning_categories": categories}, "")
        return {}

    cells = [SimpleNamespace(key=letter * 64) for letter in "ab"]
    monkeypatch.setattr(gate, "run_cells", compute)
    gate._run(SimpleNamespace(limits=None), cells, str(tmp_path), "quick")
    line = "warnings in 1 of 2 cells (ConvergenceWarning 1, UserWarning 1); --store FOLDER keeps their records\n"
    assert capsys.readouterr().out == line
    with pytest.raises(ExperimentError, match="2 of the 2 cells"):  # it would compare what is stored
        gate._run(SimpleNamespace(limits=None), cells, str(tmp_path), "quick")
