"""Cells until a deadline: what is stopped, what is killed, what is kept."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time

import pytest

from multilab.cells import running
from multilab.cells.cell import Cell, split_refs
from multilab.cells.execute import run_cells_within
from multilab.cells.method import load_method
from multilab.cells.store import Store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a patched function reaches a forked worker only")


@pytest.fixture
def cells():
    refs = split_refs("scenario1", {"kfold": 2, "stratify": 1, "seed": 0})
    return [Cell("train", ref, load_method("mlknn")) for ref in refs]


def test_cells_are_stored_once(cells, tmp_path):
    store, ticks = Store(tmp_path), []
    first = run_cells_within(cells, store, 600.0, tick=lambda: ticks.append(1))
    assert (first.computed, first.failures, first.stopped) == (2, {}, False)
    assert ticks
    assert all(store.has(cell.key) for cell in cells)
    assert run_cells_within(cells, store, 600.0).computed == 0


def test_a_worker_is_killed_at_the_deadline_and_what_is_finished_is_kept(cells, tmp_path, monkeypatch):
    own = running.run_cell

    def slow(cell, store):
        return own(cell, store) if cell.key == cells[0].key else time.sleep(3600)

    monkeypatch.setattr(running, "run_cell", slow)
    store = Store(tmp_path)
    run_cells_within(cells[:1], store, 600.0)
    outcome = run_cells_within(cells, store, 1.0)
    assert outcome.stopped
    assert store.has(cells[0].key)
    assert not store.has(cells[1].key)
    assert multiprocessing.active_children() == []


def test_no_time_left_starts_nothing(cells, tmp_path):
    outcome = run_cells_within(cells, Store(tmp_path), 0.0)
    assert (outcome.computed, outcome.stopped) == (0, True)


def test_a_killed_worker_is_a_failure_of_its_cell(cells, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "run_cell", lambda cell, store: os.kill(os.getpid(), signal.SIGKILL))
    outcome = run_cells_within(cells[:1], Store(tmp_path), 600.0)
    assert "was killed (exit code -9)" in outcome.failures[cells[0].label]


def test_a_full_disk_stops_the_run(cells, tmp_path, monkeypatch):
    def full(cell, store):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(running, "run_cell", full)
    with pytest.raises(OSError, match="No space left"):
        run_cells_within(cells[:1], Store(tmp_path), 600.0)
