"""`multilab store push` and `pull`: copies of the store, verified on arrival."""

from __future__ import annotations

import functools
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

pytest.importorskip("fsspec")

from multilab.cells.errors import ExperimentError
from multilab.cells.packs import pack_cell, unpack_cell
from multilab.cells.store import Store
from multilab.cli import main
from multilab.core import array_files, json_digest
from multilab.experiments.remotes import open_remote

N_CELLS = 5


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


def other_store(monkeypatch, tmp_path) -> Store:
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "other"))
    return Store()


def test_push_then_pull_gives_the_same_store_and_copies_only_what_is_missing(here, tmp_path, monkeypatch, capsys):
    keys = fill(here)
    here.write_failure("f" * 64, {"status": "failed"})
    assert "5 cells, 0 there already, 5 copied" in cells(capsys, "push", f"{tmp_path}/remote").out
    (tmp_path / "remote" / f"{keys[0]}.cell").unlink()
    assert "5 cells, 4 there already, 1 copied" in cells(capsys, "push", f"{tmp_path}/remote").out
    other = other_store(monkeypatch, tmp_path)
    fill(other, 2)
    assert "5 cells, 2 there already, 3 copied" in cells(capsys, "pull", f"{tmp_path}/remote").out
    failed = f"{'f' * 64}/record.json"
    assert content(other) == {name: data for name, data in content(here).items() if name != failed}
    assert "5 cells, 5 there already, 0 copied" in cells(capsys, "pull", f"{tmp_path}/remote").out


def test_a_remote_of_dvc_and_the_cells_of_one_study(here, tmp_path, monkeypatch, capsys):
    pytest.importorskip("dvc")
    from dvc.repo import Repo

    Repo.init(no_scm=True).close()
    keys = fill(here)
    assert "no remote: name a folder" in cells(capsys, "push", code=2).err
    assert "no remote backup: name a folder" in cells(capsys, "push", "backup", code=2).err
    (tmp_path / ".dvc" / "config").write_text(
        "[core]\n    remote = backup\n    no_scm = True\n['remote \"backup\"']\n    url = ../far\n"
    )
    assert "5 copied" in cells(capsys, "push").out
    assert sorted(path.stem for path in (tmp_path / "far" / "cells").iterdir()) == keys
    other = other_store(monkeypatch, tmp_path)
    monkeypatch.setattr("multilab.cli.store._keys_of", lambda study: {keys[1], "0" * 64})
    assert "1 cells, 0 there already, 1 copied" in cells(capsys, "pull", "backup", "--study", "mine").out
    assert other.finished() == [keys[1]]


def test_the_keys_of_a_study_are_those_of_its_columns_and_of_what_they_read(tmp_path, monkeypatch):
    from multilab.cli.store import _keys_of
    from multilab.experiments.plan import all_cells
    from multilab.experiments.study import study_from

    mapping = {"datasets": ["scenario1"], "methods": ["mlknn", "mlwse_l1"], "protocol": "kfold3"}
    study = study_from("mine", mapping)
    monkeypatch.setattr("multilab.experiments.study.load_study", lambda name: study)
    keys = _keys_of("mine")
    columns = {cell.key for cell in all_cells(study)}
    assert len(columns) == 6
    assert len(keys - columns) == 3 * 3 * 2, "three splits, three members, two kinds of scores"
    assert columns < keys


def test_addresses_that_cannot_be_opened_are_one_line(here, capsys):
    fill(here, 1)
    for argv in (["push", "nothing://here"], ["pull", "-x"], ["push", "/a", "/b"], ["push", "/proc/none/here"]):
        lines = cells(capsys, *argv, code=2).err.strip().splitlines()
        assert len(lines) == 1, lines


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


def test_a_remote_with_a_folder_or_a_pipe_in_the_place_of_a_cell(here, tmp_path, monkeypatch, capsys):
    keys = fill(here, 3)
    cells(capsys, "push", f"{tmp_path}/remote")
    folder, pipe = (tmp_path / "remote" / f"{letter * 64}.cell" for letter in "ab")
    folder.mkdir()
    os.mkfifo(pipe)
    other = other_store(monkeypatch, tmp_path)
    printed = cells(capsys, "pull", f"{tmp_path}/remote", code=1)
    assert [line.split()[1] for line in printed.err.splitlines()] == [f"{'a' * 64}:", f"{'b' * 64}:"]
    assert other.finished() == keys


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
def test_a_damaged_or_malicious_cell_is_refused_by_name_and_the_others_arrive(
    damage, here, tmp_path, monkeypatch, capsys
):
    keys = fill(here, 3)
    cells(capsys, "push", f"{tmp_path}/remote")
    change, reason = DAMAGES[damage]
    path = tmp_path / "remote" / f"{keys[0]}.cell"
    path.write_bytes(change(path.read_bytes(), (tmp_path / "remote" / f"{keys[1]}.cell").read_bytes()))
    other = other_store(monkeypatch, tmp_path)
    printed = cells(capsys, "pull", f"{tmp_path}/remote", code=1)
    assert printed.err.startswith(f"refused: {keys[0]}: ")
    assert reason in printed.err
    assert "3 cells, 0 there already, 2 copied" in printed.out
    assert other.finished() == keys[1:]
    assert not (tmp_path / "escaped").exists()
    assert {path.name for path in other.root.iterdir()} == set(keys[1:])


def test_a_compressed_archive_is_refused(here):
    (key,) = fill(here, 1)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in here.path(key).iterdir():
            archive.writestr(path.name, path.read_bytes())
    with pytest.raises(ExperimentError, match="its archive has the entry"):
        unpack_cell(key, buffer.getvalue())


def test_a_damaged_cell_of_the_store_is_not_sent_and_is_replaced_by_a_pull(here, tmp_path, capsys):
    keys = fill(here, 2)
    before = content(here)
    cells(capsys, "push", f"{tmp_path}/remote")
    (here.path(keys[0]) / "arrays.npz").write_bytes(b"damaged")
    with pytest.raises(ExperimentError, match="damaged in the store"):
        pack_cell(here, keys[0])
    printed = cells(capsys, "push", f"{tmp_path}/second", code=1)
    assert f"refused: {keys[0]}: damaged in the store" in printed.err
    assert [path.stem for path in (tmp_path / "second").iterdir()] == [keys[1]]
    assert "2 cells, 1 there already, 1 copied" in cells(capsys, "pull", f"{tmp_path}/remote").out
    assert content(here) == before


SLOW_COPY = """
import sys, time
from fsspec.implementations.local import LocalFileSystem

write = LocalFileSystem.pipe_file

def slowly(self, path, value, **options):
    write(self, path, value[: len(value) // 2])
    time.sleep(0.02)
    write(self, path, value)

LocalFileSystem.pipe_file = slowly
from multilab.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_killed_push_leaves_whole_cells_only_and_continues(here, tmp_path, monkeypatch, capsys):
    keys = fill(here, 60)
    remote = tmp_path / "remote"
    command = [sys.executable, "-c", SLOW_COPY, "store", "push", str(remote)]
    partial = 0
    for target in (10, 30):
        process = subprocess.Popen(command, env=os.environ | {"MULTILAB_CELLS": str(here.root)})
        while len(list(remote.glob("*.cell"))) < target and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        sent = list(remote.glob("*.cell"))
        assert target <= len(sent) < 60
        for path in sent:
            unpack_cell(path.stem, path.read_bytes())
        partial += len(list(remote.glob(".part-*")))
    assert partial, "no kill hit a copy"
    cells(capsys, "push", str(remote))
    assert sorted(path.stem for path in remote.glob("*.cell")) == keys
    assert not list(remote.glob(".part-*"))
    other = other_store(monkeypatch, tmp_path)
    cells(capsys, "pull", str(remote))
    assert content(other) == content(here)


SLOW_WRITES = """
import pathlib, sys, time

write = pathlib.Path.write_bytes
pathlib.Path.write_bytes = lambda path, data: (time.sleep(0.01), write(path, data))[1]
from multilab.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_killed_pull_leaves_whole_cells_only_and_continues(here, tmp_path, monkeypatch, capsys):
    fill(here, 60)
    cells(capsys, "push", f"{tmp_path}/remote")
    other = other_store(monkeypatch, tmp_path)
    process = subprocess.Popen([sys.executable, "-c", SLOW_WRITES, "store", "pull", f"{tmp_path}/remote"])
    while len(other.finished()) < 20 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    arrived = other.finished()
    assert 20 <= len(arrived) < 60
    assert all(other.has(key) for key in arrived)
    assert list(other.root.glob(".part-*")), "the kill hit no copy"
    assert f"{len(arrived)} there already" in cells(capsys, "pull", f"{tmp_path}/remote").out
    assert content(other) == content(here)
    assert not list(other.root.glob(".part-*"))


def test_any_file_system_of_fsspec(here, tmp_path):
    (key,) = fill(here, 1)
    remote, other = open_remote("memory://lab/cells"), Store(tmp_path / "other")
    assert remote.keys() == set()
    remote.send(here, key)
    assert remote.keys() == {key}
    remote.fetch(other, key)
    assert content(other) == content(here)
    remote.files.rm("/lab", recursive=True)


def test_a_folder_may_have_any_name(here, tmp_path):
    (key,) = fill(here, 1)
    open_remote(f"{tmp_path}/a b%20c").send(here, key)
    assert [path.stem for path in (tmp_path / "a b%20c").iterdir()] == [key]
