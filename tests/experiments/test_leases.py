"""Leases: one worker per cell, by the clock of the store; a dead worker's cells are taken over once."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from multilab.experiments.sharing import Leases
from multilab.experiments.store import Store

KEY = "a" * 64


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells")


@pytest.fixture
def leases(store):
    return Leases(store, 60.0)


def age(lease, seconds):
    """Let a lease be untouched for some seconds."""
    then = lease.path.stat().st_mtime - seconds
    os.utime(lease.path, (then, then))


def names(leases):
    return sorted(path.name.replace(KEY, "key") for path in leases.folder.iterdir())


def test_a_cell_has_one_lease_until_it_is_released(leases):
    lease = leases.acquire(KEY)
    assert lease.deaths == 0
    assert leases.acquire(KEY) is None
    assert leases.acquire("b" * 64) is not None
    leases.release(lease)
    assert leases.acquire(KEY) is not None
    assert not [name for name in names(leases) if name.startswith("clock")]


def test_a_lease_that_was_not_renewed_is_taken_over_by_one_worker(store, leases):
    age(leases.acquire(KEY), 61)
    workers = [Leases(store, 60.0) for _ in range(32)]
    with ThreadPoolExecutor(8) as pool:
        taken = [lease for lease in pool.map(lambda worker: worker.acquire(KEY), workers) if lease]
    assert [lease.deaths for lease in taken] == [1]
    age(taken[0], 61)
    last = leases.acquire(KEY)
    assert last.deaths == 2
    assert names(leases) == ["key-0", "key-1", "key-2"]
    leases.release(last)
    assert names(leases) == []


def test_a_renewed_lease_is_kept(leases):
    lease = leases.acquire(KEY)
    age(lease, 1000)
    leases.renew()
    assert leases.acquire(KEY) is None


def test_the_clock_of_the_machine_does_not_matter(leases, monkeypatch):
    lease = leases.acquire(KEY)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert leases.acquire(KEY) is None
    monkeypatch.setattr(time, "time", lambda: 0.0)
    age(lease, 61)
    assert leases.acquire(KEY) is not None


def test_a_lease_lasts_as_long_as_its_worker_promised(store):
    patient, hasty = Leases(store, 3600.0), Leases(store, 1.0)
    age(patient.acquire(KEY), 100)
    assert hasty.acquire(KEY) is None
    age(hasty.acquire("b" * 64), 100)
    assert patient.acquire("b" * 64) is not None


def test_a_worker_killed_before_it_wrote_its_lease_is_taken_over(leases):
    lease = leases.acquire(KEY)
    lease.path.write_text("")
    assert leases.acquire(KEY) is None
    age(lease, 61)
    assert leases.acquire(KEY).deaths == 1


def test_a_worker_that_was_only_slow_leaves_the_lease_of_another_alone(leases):
    slow = leases.acquire(KEY)
    slow.path.unlink()  # taken over, finished and released
    leases.renew()
    assert not slow.path.exists()
    other = leases.acquire(KEY)
    assert other.path == slow.path
    leases.release(slow)
    assert leases.acquire(KEY) is None
    leases.release(other)


def test_leases_of_finished_cells_and_old_ones_are_swept(leases, store):
    import numpy as np

    kept = leases.acquire("c" * 64)
    leases.acquire(KEY)
    store.write(KEY, {"scores": np.ones((2, 3))}, {"status": "done"}, "a: 1\n")
    age(leases.acquire("b" * 64), 2 * 24 * 3600)
    leases.sweep(store)
    assert list(leases.folder.iterdir()) == [kept.path]
