"""Packs of results: the same bytes every time, verified on arrival."""

from __future__ import annotations

import functools
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass, replace

import numpy as np
import pytest

from multilab.cells.cell import Cell, split_refs, with_reads
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import run_cells
from multilab.cells.inventory import spent_seconds
from multilab.cells.method import load_method
from multilab.cells.packs import pack_cell, read_pack, unpack_cell, write_pack
from multilab.cells.settings import Tuning
from multilab.cells.store import Store
from multilab.cli import main
from multilab.core import array_files, json_digest
from multilab.experiments.evaluate import measurements
from multilab.experiments.plan import Plan
from multilab.experiments.study import study_from
from multilab.methods import MLkNN

N_CELLS = 5


@dataclass(frozen=True)
class Item:
    """A result of which a pack asks its key and the code that can have computed it."""

    key: str
    own_modules = frozenset()

    def code(self):
        return [MLkNN]


def fill(store: Store, n_cells: int = N_CELLS, size: int = 6) -> list[str]:
    """Write some cells whose keys are the digests of their parts; return the keys."""
    keys = []
    for number in range(n_cells):
        parts = {"kind": "train", "seed": number}
        keys.append(json_digest(parts))
        arrays = {"scores": np.random.default_rng(number).random((size, 3))}
        store.write(keys[-1], arrays, {"label": f"cell {number}", "parts": parts}, "a: 1\n")
    return sorted(keys)


def content(store: Store) -> dict[str, bytes]:
    """Return every file of every cell."""
    names = (path.relative_to(store.root) for path in sorted(store.root.glob("[0-9a-f]*/*")))
    return {str(name): (store.root / name).read_bytes() for name in names}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    return Store()


def cells(capsys, *argv, code=0):
    assert main(["store", *argv]) == code
    return capsys.readouterr()


def packed(store, keys, path):
    """Write a pack and return the number of its entries."""
    write_pack(path, map(Item, keys), store)
    with zipfile.ZipFile(path) as archive:
        return len(archive.namelist())


def test_a_pack_brings_what_a_store_lacks(here, tmp_path):
    keys, failed = fill(here), json_digest({"kind": "train", "seed": 99})
    here.write_failure(failed, {"status": "failed", "reason": "too slow", "parts": {"kind": "train", "seed": 99}})
    path = tmp_path / "results" / "train.zip"
    assert packed(here, [*keys, failed, "0" * 64], path) == 6, "all but the one that is neither"
    other = Store(tmp_path / "other")
    fill(other, 2)
    assert read_pack(path, other) == 4
    assert other.finished() == keys
    assert all(np.array_equal(other.arrays(key)["scores"], here.arrays(key)["scores"]) for key in keys)
    assert other.failure(failed)["reason"] == "too slow"
    assert read_pack(path, other) == 0
    before = path.read_bytes()
    assert packed(other, [failed, *keys], path) == 6
    assert path.read_bytes() == before, "of a store that the pack filled it is another one"


def computed(folder):
    """Return a store with computed cells, one of them tuned, and one that failed; and the cells."""
    ref, method = split_refs("genes-toy", {"kfold": 2, "stratify": 1, "seed": 0})[0], load_method("mlknn")
    plain = Cell("train", ref, method)
    chosen = [
        plain,
        replace(plain, tune=Tuning(n_trials=2, folds=2)),
        Cell("train", ref, method.with_params({"k": 10**6})),
    ]
    store = Store(folder)
    assert len(run_cells(chosen, store, 1)) == 1
    return store, chosen


def test_two_computations_are_the_same_pack(tmp_path):
    for name in "ab":
        store, chosen = computed(tmp_path / name)
        write_pack(tmp_path / f"{name}.zip", chosen, store)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    other = Store(tmp_path / "c")
    assert read_pack(tmp_path / "a.zip", other) == 3
    for cell in chosen[:2]:
        ours, theirs = store.record(cell.key), other.record(cell.key)
        assert {"fit_seconds", "started", "host"} <= set(ours) - set(theirs)
        files = [record["code"]["files"] for record in (ours, theirs)]
        assert "methods/neighbours/mlknn.py" in files[1]
        assert all(files[0][name] == files[1][name] for name in files[0].keys() & files[1].keys())
    assert (other.path(chosen[1].key) / "trials.csv").read_bytes() == (
        store.path(chosen[1].key) / "trials.csv"
    ).read_bytes()
    assert run_cells(chosen[:2], other, 1) == {}


def test_nobody_knows_the_seconds_of_results_from_a_pack_and_of_stacks_that_read_them(tmp_path):
    protocol = {"kfold": 2, "stratify": 1, "seed": 0}
    study = study_from("mine", {"datasets": ["genes-toy"], "methods": ["mlwse_l1"], "protocol": protocol})
    stack = Plan(study).cells[0]
    reads = with_reads(stack.reads)
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    assert run_cells([*reads, stack], here, 1) == {}
    assert spent_seconds(here.record(stack.key)) > here.record(stack.key)["fit_seconds"]
    write_pack(tmp_path / "reads.zip", reads, here)
    read_pack(tmp_path / "reads.zip", there)
    assert run_cells([stack], there, 1) == {}
    assert np.array_equal(there.arrays(stack.key)["scores"], here.arrays(stack.key)["scores"])
    assert math.isnan(spent_seconds(there.record(stack.key)))
    assert math.isnan(spent_seconds(there.record(reads[0].key)))
    assert measurements([stack], there)["input_seconds"].isna().all()


def repacked(key_content: bytes, change) -> bytes:
    """Return an archive whose files were changed."""
    with zipfile.ZipFile(io.BytesIO(key_content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def set_digests(files: dict[str, bytes]) -> None:
    import hashlib

    names = [name for name in files if name != "DONE"]
    files["DONE"] = json.dumps({name: hashlib.sha256(files[name]).hexdigest() for name in names}).encode()


def with_other_array(files):
    buffer = io.BytesIO()
    np.savez(buffer, scores=np.zeros(3))
    files["arrays.npz"] = buffer.getvalue()


def with_pickled_array(files):
    buffer = io.BytesIO()
    np.savez(buffer, scores=np.array([{"a": 1}, None], dtype=object))
    files["arrays.npz"] = buffer.getvalue()
    set_digests(files)


def with_foreign_parts(files):
    record = json.loads(files["record.json"])
    files["record.json"] = json.dumps(record | {"parts": record["parts"] | {"seed": 99}}).encode()
    set_digests(files)


def with_path(files):
    files["../escaped"] = b"x"
    set_digests(files)


def without_record(files):
    del files["record.json"]
    set_digests(files)


def with_record(**changes):
    """Return a change of the record, whose parts and key stay as they are."""

    def change(files):
        files["record.json"] = json.dumps(json.loads(files["record.json"]) | changes).encode()
        set_digests(files)

    return lambda data, other: repacked(data, change)


def with_arrays(**arrays):
    """Return a replacement of the arrays, compressed."""

    def change(files):
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **{name: make() for name, make in arrays.items()})
        files["arrays.npz"] = buffer.getvalue()
        set_digests(files)

    return lambda data, other: repacked(data, change)


def with_shape(shape):
    """Return arrays whose header has another shape than their bytes."""

    def change(files):
        header, buffer = io.BytesIO(), io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("scores.npy", header.getvalue() + b"\0" * 80)
        files["arrays.npz"] = buffer.getvalue()
        set_digests(files)

    return lambda data, other: repacked(data, change)


FOREIGN = {
    "a bomb": with_arrays(scores=lambda: np.zeros((1, 2**20))),
    "a shape without bytes": with_shape((10**9, 10**3)),
    "a shape without cells": with_shape((10**15, 0)),
    "no scores": with_arrays(decisions=lambda: np.zeros((6, 3))),
    "scores of one dimension": with_arrays(scores=lambda: np.zeros(6)),
    "scores that are texts": with_arrays(scores=lambda: np.full((6, 3), "a")),
    "decisions of another shape": with_arrays(scores=lambda: np.zeros((6, 3)), decisions=lambda: np.zeros((5, 3))),
    "a list in the place of a name": with_record(dataset=[1]),
    "a path in the place of a name": with_record(dataset="../../x"),
    "a name that is too long for a file": with_record(dataset="x" * 300),
    "settings without end": with_record(settings={"a": functools.reduce(lambda value, _: [value], range(900), 1)}),
    "a path in the place of a method": with_record(method="/tmp/evil.yaml"),
    "an endless time": with_record(started=1e300),
    "a time that is none": with_record(started=float("nan")),
    "a text in the place of a time": with_record(fit_seconds="long"),
    "settings that are a text": with_record(settings="os.system"),
    "warnings that are a number": with_record(warnings=3),
    "a label that is a list": with_record(label=[]),
    "a class that a search chose": with_record(tuned={"estimator": {"_target_": "os.system", "command": "x"}}),
    "files that a search chose": with_record(tuned={"base_scores": ["/tmp/evil.yaml"]}),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_cell_that_is_not_one_of_ours_is_refused_and_ends_no_listing(what, here, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(array_files, "_ROOM", 2**16)
    keys = fill(here, 2)
    path = tmp_path / f"{keys[0]}.cell"
    path.write_bytes(FOREIGN[what](pack_cell(here, keys[0]), b""))
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with pytest.raises(ExperimentError, match=r"^[^\n]+$"):
        unpack_cell(keys[0], path.read_bytes())
    for name, data in files.items():  # as an earlier version would have stored it
        (here.path(keys[0]) / name).write_bytes(data)
    lines = cells(capsys, "list").out.splitlines()
    assert sum(line.startswith((keys[0][:12], keys[1][:12])) for line in lines) == 2
    cells(capsys, "clean")


DAMAGES = {
    "another array": (lambda data, other: repacked(data, with_other_array), "not those that DONE lists"),
    "an array of objects": (lambda data, other: repacked(data, with_pickled_array), "holds Python objects"),
    "parts of another cell": (lambda data, other: repacked(data, with_foreign_parts), "another cell"),
    "a file elsewhere": (lambda data, other: repacked(data, with_path), "entry '../escaped'"),
    "no record": (lambda data, other: repacked(data, without_record), "files of a cell"),
    "another cell": (lambda data, other: other, "another cell"),
    "the first half": (lambda data, other: data[: len(data) // 2], "not a complete cell"),
    "one byte": (lambda data, other: data[:60] + bytes([data[60] ^ 1]) + data[61:], "cell"),
    "nothing": (lambda data, other: b"", "not a complete cell"),
    "no arrays": (
        lambda data, other: repacked(data, lambda f: (f.update({"arrays.npz": b"x"}), set_digests(f))),
        "cell",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_malicious_cell_is_refused_by_name(damage, here, tmp_path):
    keys = fill(here, 3)
    change, reason = DAMAGES[damage]
    with zipfile.ZipFile(tmp_path / "pack.zip", "w") as archive:
        archive.writestr(f"{keys[0]}.cell", pack_cell(here, keys[0]))
        archive.writestr(f"{keys[1]}.cell", change(pack_cell(here, keys[1]), pack_cell(here, keys[2])))
    other = Store(tmp_path / "other")
    with pytest.raises(ExperimentError, match=rf"^[^\n]*{keys[1][:12]}[^\n]*{reason}[^\n]*$"):
        read_pack(tmp_path / "pack.zip", other)
    assert other.finished() == keys[:1]
    assert not (tmp_path / "escaped").exists()
    assert {path.name for path in other.root.iterdir()} == set(keys[:1])


def overlapping(archive):
    """Let two entries be the same bytes."""
    for name in ("a", "b"):
        archive.writestr(f"{name * 64}.cell", b"x" * 10_000)
    archive.filelist[1].header_offset = archive.filelist[0].header_offset


PACKS = {
    "nothing": None,
    "a name that is no key": lambda archive: archive.writestr("../escaped", b"x"),
    "a compressed entry": lambda archive: archive.writestr(f"{'a' * 64}.cell", b"0" * 99, zipfile.ZIP_DEFLATED),
    "a failure of another result": lambda archive: archive.writestr(
        f"{'a' * 64}.failed", json.dumps({"status": "failed", "parts": {"seed": 1}})
    ),
    "a failure that is a list": lambda archive: archive.writestr(f"{'a' * 64}.failed", b"[1]"),
    "a failure that is none": lambda archive: archive.writestr(
        f"{json_digest({'seed': 1})}.failed", json.dumps({"status": "done", "parts": {"seed": 1}})
    ),
    "entries that overlap": overlapping,
}


@pytest.mark.parametrize("what", PACKS)
def test_a_file_that_is_no_pack_is_refused(what, here, tmp_path):
    path = tmp_path / "pack.zip"
    path.write_bytes(b"")
    if PACKS[what]:
        with zipfile.ZipFile(path, "w") as archive:
            PACKS[what](archive)
    with pytest.raises(ExperimentError, match=r"^[^\n]+$"):
        read_pack(path, here)
    assert here.finished() == []
    assert not (tmp_path.parent / "escaped").exists()


def test_a_compressed_archive_is_refused(here):
    (key,) = fill(here, 1)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in here.path(key).iterdir():
            archive.writestr(path.name, path.read_bytes())
    with pytest.raises(ExperimentError, match="its archive has the entry"):
        unpack_cell(key, buffer.getvalue())


def test_a_damaged_cell_of_the_store_is_not_packed_and_is_replaced_by_a_pack(here, tmp_path):
    keys = fill(here, 2)
    packed(here, keys, tmp_path / "both.zip")
    (here.path(keys[0]) / "arrays.npz").write_bytes(b"damaged")
    with pytest.raises(ExperimentError, match="damaged in the store"):
        pack_cell(here, keys[0])
    assert packed(here, keys, tmp_path / "one.zip") == 1
    assert read_pack(tmp_path / "both.zip", here) == 1
    assert here.finished() == keys
    assert here.arrays(keys[0])["scores"].shape == (6, 3)


SLOW_WRITES = """
import pathlib, sys, time

write = pathlib.Path.write_bytes
pathlib.Path.write_bytes = lambda path, data: (time.sleep(0.01), write(path, data))[1]
from multilab.cells.packs import read_pack
from multilab.cells.store import Store
read_pack(pathlib.Path(sys.argv[1]), Store(sys.argv[2]))
"""


def test_a_killed_unpacking_leaves_whole_cells_only_and_continues(here, tmp_path):
    keys = fill(here, 60)
    packed(here, keys, tmp_path / "pack.zip")
    other = Store(tmp_path / "other")
    command = [sys.executable, "-c", SLOW_WRITES, str(tmp_path / "pack.zip"), str(other.root)]
    process = subprocess.Popen(command, env=os.environ)
    while len(other.finished()) < 20 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    arrived = other.finished()
    assert 20 <= len(arrived) < 60
    assert all(other.has(key) for key in arrived)
    assert list(other.root.glob(".part-*")), "the kill hit no copy"
    assert read_pack(tmp_path / "pack.zip", other) == 60 - len(arrived)
    assert other.finished() == keys
