"""Searches killed, torn, and side by side: always the result of one that was left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from helpers.searches import run_search
from multilab.cells.cell import Cell, split_refs
from multilab.cells.errors import ExperimentError
from multilab.cells.method import load_method
from multilab.cells.settings import Tuning
from multilab.cells.store import Store
from multilab.experiments import search
from multilab.experiments.trials import open_journal

PLAN = Tuning(n_trials=13, folds=2, metric="hamming_loss")  # from the eleventh trial on TPE learns from the others


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells")


@pytest.fixture
def cell():
    return Cell("train", split_refs("scenario1", {"kfold": 3, "stratify": 1, "seed": 0})[0], load_method("mlknn"))


@pytest.fixture
def fits(monkeypatch):
    """Stops a search before a fit, and counts fits: two per trial."""
    value, state = search._value, {"count": 0, "stop": None}

    def counting(*arguments):
        if state["count"] == state["stop"]:
            raise KeyboardInterrupt
        state["count"] += 1
        return value(*arguments)

    monkeypatch.setattr(search, "_value", counting)

    def run(cell, plan, store, journal, stop=None):
        state.update(count=0, stop=stop)
        if stop is None:
            return run_search(cell, plan, store, journal)
        with pytest.raises(KeyboardInterrupt):
            run_search(cell, plan, store, journal)
        return None

    run.state = state
    return run


def cut(content: bytes, share: float) -> bytes:
    return content[: int(len(content) * share)]


TORN = {
    "in the middle of its last line": lambda c: c[: -len(c.splitlines()[-1]) // 2],
    "after half": lambda c: cut(c, 0.5),
    "after a quarter": lambda c: cut(c, 0.25),
    "with zeros at its end": lambda c: c[:-40] + b"\0" * 40,
    "with a line of garbage at its end": lambda c: c + b"\xff{garbage\n",
    "with garbage in its middle": lambda c: cut(c, 0.6) + b"no json\n" + c[int(len(c) * 0.6) :],
    "with valid JSON that is no journal": lambda c: c + b'{"op_code": 99}\n[1]\n',
    "without a byte": lambda c: b"",
}
LOST = ("with valid JSON that is no journal", "without a byte")


@pytest.mark.slow
@pytest.mark.parametrize("how", TORN)
def test_a_torn_journal_is_read_up_to_its_last_valid_line(store, cell, fits, tmp_path, how):
    uninterrupted = fits(cell, PLAN, store, tmp_path / "uninterrupted.log")
    fits(cell, PLAN, store, tmp_path / "torn.log", stop=23)  # in the middle of the twelfth trial
    (journal,) = tmp_path.glob("torn*.log")
    journal.write_bytes(TORN[how](journal.read_bytes()))
    assert fits(cell, PLAN, store, tmp_path / "torn.log") == uninterrupted
    saved = 26 - fits.state["count"]
    assert saved == 0 if how in LOST else saved >= 4
    assert fits(cell, PLAN, store, tmp_path / "torn.log") == uninterrupted
    assert fits.state["count"] == 0


def test_a_search_killed_repeatedly_equals_an_uninterrupted_one(store, cell, fits, tmp_path):
    uninterrupted = fits(cell, PLAN, store, tmp_path / "uninterrupted.log")
    for stop in (0, 1, 5, 8, 3):
        fits(cell, PLAN, store, tmp_path / "killed.log", stop=stop)
    assert fits(cell, PLAN, store, tmp_path / "killed.log") == uninterrupted
    assert fits.state["count"] == 26 - 2 * (0 + 0 + 2 + 4 + 1)
    assert sorted(path.name for path in tmp_path.glob("*.log*")) == ["killed.log", "uninterrupted.log"]


def test_more_trials_go_on_from_fewer_and_fewer_are_the_first_of_more(store, cell, fits, tmp_path):
    fewer = replace(PLAN, n_trials=4)
    few, many = fits(cell, fewer, store, tmp_path / "few.log"), fits(cell, PLAN, store, tmp_path / "many.log")
    assert fits(cell, PLAN, store, tmp_path / "few.log") == many
    assert fits.state["count"] == 26 - 8
    assert fits(cell, fewer, store, tmp_path / "few.log") == few
    assert fits(cell, PLAN, store, tmp_path / "few.log") == many
    assert fits.state["count"] == 0, "asking for fewer forgets none"
    assert search.search_name(cell, fewer) == search.search_name(cell, PLAN)


def test_the_journal_of_a_running_search_is_left_alone(store, cell, fits, tmp_path):
    fits(cell, PLAN, store, tmp_path / "a.log", stop=10)
    (killed,) = tmp_path.glob("a.*.log")
    with open_journal(tmp_path / "a.log") as running:
        running.path.write_bytes(killed.read_bytes())
        killed.unlink()
        before = running.path.read_bytes()
        result = fits(cell, PLAN, store, tmp_path / "a.log")
        assert fits.state["count"] == 26
        assert running.path.read_bytes() == before
    assert result == fits(cell, PLAN, store, tmp_path / "b.log")


def test_a_journal_of_another_machine_is_left_alone(store, cell, fits, tmp_path):
    fits(cell, PLAN, store, tmp_path / "a.log", stop=10)
    (killed,) = tmp_path.glob("a.*.log")
    elsewhere = killed.with_name(killed.name.replace(killed.name.split(".")[1].split("-")[0], "another"))
    killed.rename(elsewhere)
    fits(cell, PLAN, store, tmp_path / "a.log")
    assert fits.state["count"] == 26
    assert elsewhere.exists()


def test_a_trial_that_met_a_full_disk_is_made_again(store, cell, fits, tmp_path, monkeypatch):
    uninterrupted = fits(cell, PLAN, store, tmp_path / "uninterrupted.log")
    counting = search._value

    def full(*arguments):
        if fits.state["count"] == 9:
            raise OSError("No space left on device")
        return counting(*arguments)

    monkeypatch.setattr(search, "_value", full)
    with pytest.raises(OSError, match="No space"):
        fits(cell, PLAN, store, tmp_path / "full.log")
    monkeypatch.setattr(search, "_value", counting)
    assert fits(cell, PLAN, store, tmp_path / "full.log") == uninterrupted
    assert fits.state["count"] == 26 - 8


def test_a_search_without_a_result_starts_again(store, cell, fits, tmp_path, monkeypatch):
    counting = search._value

    def fail(*_):
        raise ValueError("a library was broken")

    monkeypatch.setattr(search, "_value", fail)
    with pytest.raises(ExperimentError, match="every trial of the search failed"):
        fits(cell, PLAN, store, tmp_path / "a.log")
    monkeypatch.setattr(search, "_value", counting)
    fits(cell, PLAN, store, tmp_path / "a.log")
    assert fits.state["count"] == 26


RACER = """
import json, sys
from multilab.experiments import search
from multilab.cells.cell import Cell, split_refs
from multilab.cells.running import run_cell
from multilab.cells.method import load_method
from multilab.cells.store import Store
from multilab.cells.settings import Tuning

tune = Tuning(n_trials=12, folds=2, metric="hamming_loss")
ref = split_refs("scenario1", {"kfold": 3, "stratify": 1, "seed": 0})[0]
cell = Cell("train", ref, load_method("mlknn"), tune=tune)
run_cell(cell, Store(sys.argv[1]))  # what is imported with the first cell
print("ready", flush=True)
for root in sys.stdin:
    store = Store(root.strip())
    reason = run_cell(cell, store)
    files = {} if reason else {name: store.digests(cell.key)[name] for name in ("arrays.npz", "trials.csv")}
    print(json.dumps([reason, store.record(cell.key).get("tuned"), files]), flush=True)
"""


@pytest.mark.slow
def test_two_processes_on_one_tuned_cell_make_the_result_of_one(tmp_path):
    rounds = 4
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path / f"alone-{number}")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    try:
        assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 2
        results = []
        for number in range(rounds):
            for racer in racers:
                racer.stdin.write(f"{tmp_path / f'race-{number}'}\n")
                racer.stdin.flush()
            results += [json.loads(racer.stdout.readline()) for racer in racers]
    finally:
        for racer in racers:
            racer.communicate()
    (alone,) = {path.read_text() for path in tmp_path.glob("alone-*/*/trials.csv")}
    assert alone.count("\n") == 13
    assert [reason for reason, _, _ in results] == [None] * (2 * rounds)
    assert len({json.dumps(result) for result in results}) == 1
    for number in range(rounds):
        root = tmp_path / f"race-{number}"
        assert [path.read_text() for path in root.glob("*/trials.csv")] == [alone]
        assert list((root / ".journals").iterdir()) == []
        assert list(root.glob(".part-*")) == []
