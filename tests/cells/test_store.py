"""The store of cells: complete or absent."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from multilab.cells.errors import ExperimentError
from multilab.cells.inventory import Inventory, result_rows
from multilab.cells.store import Store
from multilab.core import locks

KEY, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cells")


def write(store, key=KEY, value=1.0):
    store.write(key, {"scores": np.full((2, 3), value)}, {"label": "a cell", "status": "done"}, "a: 1\n")


def test_a_written_cell_is_read_back(store):
    write(store)
    assert store.has(KEY)
    assert store.finished() == [KEY]
    np.testing.assert_array_equal(store.arrays(KEY)["scores"], np.ones((2, 3)))
    assert store.record(KEY)["label"] == "a cell"
    assert sorted(p.name for p in store.path(KEY).iterdir()) == ["DONE", "arrays.npz", "config.yaml", "record.json"]


def test_arrays_have_the_same_bytes_every_time(store, tmp_path):
    write(store)
    again = Store(tmp_path / "other")
    write(again)
    assert store.digests(KEY)["arrays.npz"] == again.digests(KEY)["arrays.npz"]


@pytest.mark.parametrize("name", ["arrays.npz", "record.json", "config.yaml", "DONE"])
def test_a_damaged_cell_is_no_hit_and_is_rewritten(store, name):
    write(store)
    path = store.path(KEY) / name
    path.write_bytes(path.read_bytes()[:-3] + b"xyz")
    assert not store.has(KEY)
    with pytest.raises(ExperimentError, match="missing or damaged"):
        store.arrays(KEY)
    write(store, value=2.0)
    assert store.has(KEY)
    assert store.arrays(KEY)["scores"][0, 0] == 2.0


@pytest.mark.parametrize("name", ["record.json", "DONE"])
def test_brackets_without_end_are_damage_like_any_other(store, name):
    write(store)
    (store.path(KEY) / name).write_bytes(b"[" * 100_000)
    assert not store.has(KEY)
    assert store.failure(KEY) is None
    assert Inventory(store).read(KEY).status == ("broken" if name == "record.json" else "done")


@pytest.mark.parametrize("name", ["arrays.npz", "record.json", "DONE"])
def test_a_cell_without_one_of_its_files_is_no_hit(store, name):
    write(store)
    (store.path(KEY) / name).unlink()
    assert not store.has(KEY)


def test_a_complete_cell_is_not_changed_by_a_second_writer(store):
    write(store)
    before = (store.path(KEY) / "DONE").stat().st_mtime_ns
    write(store, value=7.0)
    assert store.arrays(KEY)["scores"][0, 0] == 1.0
    assert (store.path(KEY) / "DONE").stat().st_mtime_ns == before
    assert [p.name for p in store.root.iterdir()] == [KEY]


def test_a_failure_is_a_record_but_never_a_hit(store):
    store.write_failure(KEY, {"status": "failed", "traceback": "boom"})
    assert not store.has(KEY)
    assert store.record(KEY)["traceback"] == "boom"
    assert store.finished() == []
    write(store)
    assert store.has(KEY)


def test_a_failure_does_not_harm_a_complete_cell(store):
    write(store)
    store.write_failure(KEY, {"status": "failed"})
    assert store.has(KEY)
    assert store.record(KEY)["status"] == "done"


WRITER = """
import sys
from multilab.cells import store
made = store.Store(sys.argv[1])
put = made._put
def wait(folder, key):
    print(folder.name, flush=True)
    sys.stdin.readline()
    put(folder, key)
made._put = wait
made.write(sys.argv[2], {"scores": [1.0]}, {"status": "done"}, "a: 1")
"""


@pytest.fixture
def writer(store):
    """A process that is half-way through writing the cell OTHER, and the folder it writes."""
    argv = [sys.executable, "-c", WRITER, str(store.root), OTHER]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        folder = store.root / process.stdout.readline().strip()
        yield process, folder
        process.kill()


def test_sweep_leaves_a_living_writer_alone_whatever_its_number(store, writer):
    """In another container the writer has a process number that is free here, or that of this process."""
    process, folder = writer
    boot, pid, *rest = folder.name.split("-")[1:]
    assert pid == str(process.pid)
    for number in ("1", "999999999", str(os.getpid())):
        renamed = folder.with_name("-".join((".part", boot, number, *rest)))
        folder.rename(renamed)
        assert store.sweep() == 0
        renamed.rename(folder)
    process.communicate("go on\n")
    assert process.returncode == 0
    assert store.has(OTHER)


def test_sweep_removes_what_a_killed_writer_left(store, writer):
    process, folder = writer
    write(store)
    process.kill()
    process.wait()
    assert store.sweep() == 1
    assert not folder.exists()
    assert store.has(KEY)


def test_a_folder_swept_before_it_is_locked_is_made_again(store, monkeypatch):
    opened, swept = locks._open, []

    def sweep_first(path):
        if not swept:
            swept.append(path)
            path.rmdir()
        return opened(path)

    monkeypatch.setattr(locks, "_open", sweep_first)
    write(store)
    assert store.has(KEY)
    assert swept


def test_sweep_leaves_what_another_machine_writes_for_a_day(store):
    folder = store.root / f".part-another-1-{OTHER}"
    folder.mkdir(parents=True)
    assert store.sweep() == 0
    yesterday = time.time() - 25 * 60 * 60
    os.utime(folder, (yesterday, yesterday))
    assert store.sweep() == 1


def test_sweep_leaves_everything_for_a_day_where_files_cannot_be_locked(store, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    write(store)
    folder = store.root / f".part-{locks.owner()}-{OTHER}"
    folder.mkdir()
    assert store.sweep() == 0
    assert store.has(KEY)


def test_a_full_disk_leaves_nothing_half_written(store, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space") as caught:
            write(store)
    assert caught.value.filename == str(store.root)  # the error itself names no file
    assert list(store.root.iterdir()) == []


def test_keys_may_be_shortened_when_they_stay_unique(store):
    write(store)
    write(store, OTHER)
    assert store.find("aaa") == KEY
    with pytest.raises(ExperimentError, match="no cell"):
        store.find("c")


def test_the_folder_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "elsewhere"))
    assert Store().root == tmp_path / "elsewhere"


def test_done_names_the_digest_of_every_file(store):
    write(store)
    done = json.loads((store.path(KEY) / "DONE").read_text())
    assert sorted(done) == ["arrays.npz", "config.yaml", "record.json"]


def test_a_file_at_the_path_of_a_cell_is_replaced(store):
    store.root.mkdir()
    store.path(KEY).write_text("no folder")
    assert not store.has(KEY)
    write(store)
    assert store.has(KEY)


def test_a_folder_copied_to_another_key_is_no_hit(store):
    write(store)
    shutil.copytree(store.path(KEY), store.path(OTHER))
    assert store.has(KEY)
    assert not store.has(OTHER)
    with pytest.raises(ExperimentError, match="missing or damaged"):
        store.arrays(OTHER)
    write(store, OTHER, value=2.0)
    assert store.arrays(OTHER)["scores"][0, 0] == 2.0


@pytest.mark.parametrize(
    "value",
    ["[&a [1, 1], *a, *a]", "{" + ", ".join(f"a{k}: 1" for k in range(12_000)) + "}"],
    ids=["aliases", "long"],
)
def test_a_protocol_that_stands_for_more_than_its_text_is_none(store, value):
    for key, config in ((KEY, f"protocol:\n  kfold: 3\n  order: {value}\n"), (OTHER, "protocol:\n  kfold: 3\n")):
        store.write(key, {"scores": np.zeros((2, 3))}, {}, config)
    assert Inventory(store).read(KEY).protocol is None
    assert Inventory(store).read(OTHER).protocol == {"kfold": 3}


def test_results_without_a_split_or_a_time_are_out_of_date(store):
    parts = {"kind": "train", "seed": 1}
    for key in (KEY, OTHER):
        record = {"parts": parts, "dataset": "genes-toy", "started": None}
        store.write(key, {"scores": np.zeros((2, 3))}, record, "protocol:\n  kfold: 3\n")
    inventory = Inventory(store)
    with pytest.raises(ExperimentError, match="out of date"):
        result_rows(inventory, inventory.cells())
