"""Digests, atomic files, paths, and the layers of the architecture."""

from __future__ import annotations

import errno
import gzip
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
import yaml

from multilab.core import (
    array_digest,
    canonical_json,
    changed_files,
    conf_dir,
    data_dir,
    experiment_dir,
    formulas_digest,
    home_dir,
    json_digest,
    read_content,
    read_json,
    read_sealed,
    record_checksums,
    versions,
    write_atomically,
    write_content,
    write_sealed,
)
from multilab.core.settings import parse_yaml


def test_canonical_json_has_one_form():
    assert canonical_json({"b": 1, "a": [1.5, None, True]}) == '{"a":[1.5,null,true],"b":1}'
    assert json_digest({"a": 1, "b": 2}) == json_digest({"b": 2, "a": 1})
    with pytest.raises(ValueError):
        canonical_json(float("nan"))


def test_array_digest_sees_values_shape_and_type_but_not_layout():
    a = np.arange(6.0).reshape(2, 3)
    assert array_digest(a) == array_digest(np.asfortranarray(a))
    others = [a.T.copy(), a.astype(np.float32), a + np.eye(2, 3), a.reshape(3, 2)]
    assert len({array_digest(x) for x in [a, *others]}) == 5


def test_a_sealed_value_is_read_as_it_was_written_or_not_at_all(tmp_path):
    path, value = tmp_path / "a.json", {"b": 0.1, "a": [1, None, float("inf")]}
    write_sealed(path, value)
    assert read_sealed(path) == value
    content = path.read_bytes()
    (tmp_path / "b.json").write_bytes(content)
    with pytest.raises(ValueError, match="not what was written"):
        read_sealed(tmp_path / "b.json")
    for k in range(len(content)):
        path.write_bytes(content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :])
        try:
            assert read_sealed(path) == value  # another space between two entries
        except ValueError:
            continue
    for damaged in (b"", content[:-1], bytes(len(content)), b"[]", b"{}", b'{"sha256": null, "content": 1}'):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r".*"):
            read_sealed(path)


def test_any_edit_of_a_file_of_formulas_moves_their_digest(tmp_path, monkeypatch):
    package = tmp_path / "multilab"
    monkeypatch.setattr(versions, "_PACKAGE", package)

    def digests():
        versions.files_digest.cache_clear()
        return formulas_digest(), formulas_digest("datasets", "cells/tables.py")

    def moved(edit):
        before = digests()
        edit()
        return tuple(a != b for a, b in zip(before, digests(), strict=True))

    for name in ("core", "decision", "metrics", "papers/one", "statistics", "datasets", "cells", "methods"):
        (package / name).mkdir(parents=True, exist_ok=True)
        (package / name / "tables.py").write_text("VALUE = 1\n")
    for name in ("core", "decision", "metrics", "papers/one", "statistics"):
        file = package / name / "tables.py"
        assert moved(lambda file=file: file.write_text("VALUE = 2\n")) == (True, True)
        assert moved(lambda file=file: file.rename(file.with_name("other.py"))) == (True, True)
    assert moved(lambda: (package / "core" / "new.py").touch()) == (True, True)
    assert moved(lambda: (package / "core" / "new.py").unlink()) == (True, True)
    for name in ("datasets", "cells"):
        assert moved(lambda name=name: (package / name / "tables.py").write_text("VALUE = 2\n")) == (False, True)
    assert moved(lambda: (package / "methods" / "tables.py").write_text("VALUE = 2\n")) == (False, False)
    assert moved(lambda: (package / "metrics" / "a.pyc").touch()) == (False, False)
    versions.files_digest.cache_clear()


def test_write_atomically_leaves_no_temporary_file_when_it_fails(tmp_path, monkeypatch):
    target = tmp_path / "a" / "file"
    write_atomically(target, "one")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(target, "two")
    assert [p.name for p in target.parent.iterdir()] == ["file"]
    assert target.read_text() == "one"


@contextmanager
def _writer(path):
    """Give a process that has begun to write a file and does not go on."""
    code = (
        "import sys, time\nfrom multilab.core.files import scratch_folder\n"
        "with scratch_folder(sys.argv[1]) as folder:\n    (folder / 'part').touch(); print(flush=True)\n"
        "    while True: time.sleep(0.05)"  # a signal just before one long sleep would wait for its end
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_a_file_has_the_permissions_of_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "file", "one")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_a_full_disk_names_the_file_that_was_being_written(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError) as caught:
        write_atomically(tmp_path / "file", "one")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "file"))
    assert not list(tmp_path.iterdir())


def test_what_a_killed_writer_left_is_removed_by_the_next_and_what_a_running_one_writes_is_not(tmp_path):
    with _writer(tmp_path / "file") as killed, _writer(tmp_path / "file") as running:
        killed.kill()
        killed.wait()
        assert len(list(tmp_path.iterdir())) == 2
        write_atomically(tmp_path / "other", "one")
        left = {path.name for path in tmp_path.iterdir()} - {"other"}
        assert len(left) == 1
        assert f"-{running.pid}-" in left.pop()


def test_a_writer_that_is_terminated_leaves_nothing(tmp_path):
    with _writer(tmp_path / "file") as writer:
        writer.terminate()
        assert writer.wait(60) == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff\xfe\xfd", b"1" * 5001, b"", b"{"])
def test_a_damaged_json_file_is_a_value_error(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError):
        read_json(tmp_path / "a.json")


def test_a_compressed_file_has_the_same_bytes_for_the_same_content_and_keeps_those_of_another_zlib(tmp_path):
    path, content = tmp_path / "a.csv.gz", b"a,b\n" * 100
    write_content(path, content)
    first = path.read_bytes()
    path.unlink()
    write_content(path, content.decode())
    assert path.read_bytes() == first
    assert len(first) < len(content)
    assert read_content(path) == gzip.decompress(first) == content
    other = gzip.compress(content, compresslevel=1, mtime=7)
    path.write_bytes(other)
    write_content(path, content)
    assert path.read_bytes() == other
    write_content(path, b"new")
    assert read_content(path) == b"new"
    write_content(tmp_path / "a.csv", content)
    assert (tmp_path / "a.csv").read_bytes() == content


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-9], lambda b: b"x" + b, lambda b: b[:-8] + b"\0" * 8, lambda b: b"a,b"]
)
def test_a_damaged_compressed_file_is_a_value_error_and_written_anew(tmp_path, damage):
    path = tmp_path / "a.json.gz"
    write_content(path, "[1, 2]")
    record_checksums(tmp_path, [path.name])
    assert read_json(path) == [1, 2]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="damaged"):
        read_json(path)
    assert changed_files(tmp_path) == [path.name]
    write_content(path, "[1, 2]")
    assert changed_files(tmp_path) == []


def test_the_checksum_of_a_compressed_file_is_that_of_its_content(tmp_path):
    for name in ("a.csv", "a.csv.gz"):
        write_content(tmp_path / name, "a,b\n")
    record_checksums(tmp_path, ["a.csv", "a.csv.gz"])
    sums = [line.split("  ") for line in (tmp_path / "SHA256SUMS").read_text().splitlines()]
    assert [name for _, name in sums] == ["a.csv", "a.csv.gz"]
    assert len({digest for digest, _ in sums}) == 1
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n", mtime=1))
    assert changed_files(tmp_path) == []
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,c\n", mtime=1))
    assert changed_files(tmp_path) == ["a.csv.gz"]


DEEP = ["[" * 100_000, "- " * 1000, "\n".join(" " * i + "a:" for i in range(1000)), "{a: " * 300 + "1" + "}" * 300]


@pytest.mark.parametrize("text", [*DEEP, "2020-99-99", "a: [1"])
def test_damaged_yaml_is_a_yaml_error(text):
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):  # libyaml's ends the process where Python's is a RecursionError
        with pytest.raises(yaml.YAMLError):
            parse_yaml(text, loader)


def test_long_flat_yaml_is_no_deep_yaml():
    assert parse_yaml("- [1, {a: 2}]\n" * 500) == [[1, {"a": 2}]] * 500
    assert parse_yaml("a: >\n" + " " * 300 + "text\n") == {"a": "text\n"}


def test_conf_dir_prefers_the_checkout_of_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("MULTILAB_CONF")
    (tmp_path / "conf" / "study").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert conf_dir() != tmp_path / "conf"  # some other project's conf is not ours
    (tmp_path / "conf" / "study" / "quick.yaml").write_text("title: x\n")
    assert conf_dir() == tmp_path / "conf"


@pytest.mark.parametrize("below", [".", "reports/quick"])
@pytest.mark.parametrize("kind", ["tmpabc", "standalone/tmpabc"])
def test_the_home_of_a_dvc_experiment_is_its_repository(tmp_path, monkeypatch, kind, below):
    """`dvc exp run --queue` runs in .dvc/tmp/exps/tmpabc, and --temp in .dvc/tmp/exps/standalone/tmpabc."""
    repository = tmp_path / "repository"
    copy = repository / ".dvc/tmp/exps" / kind
    for folder in (repository, copy):
        (folder / ".dvc").mkdir(parents=True)
        (folder / below).mkdir(parents=True, exist_ok=True)
    monkeypatch.delenv("MULTILAB_CACHE", raising=False)
    monkeypatch.chdir(repository / below)
    assert (home_dir(), experiment_dir()) == (repository / below, None)
    monkeypatch.chdir(copy / below)
    assert (home_dir(), experiment_dir()) == (repository / below, copy)
    assert data_dir() == repository / below / "data"
    monkeypatch.setenv("MULTILAB_CACHE", str(tmp_path / "elsewhere"))
    assert data_dir() == tmp_path / "elsewhere"


def test_a_package_imports_only_from_layers_below_it(checkout):
    pytest.importorskip("importlinter")
    run = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports())"],
        cwd=checkout,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


BLOCKED = """
import sys, importlib.abc

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"hydra", "omegaconf", "dvc", "optuna", "mlflow", "matplotlib", "rich", "jinja2",
                                  "baycomp", "pyarrow", "skops"}:
            raise ModuleNotFoundError(f"{name} is blocked")

sys.meta_path.insert(0, Block())
import pkgutil, importlib, multilab
for package_name in ("core", "metrics", "datasets", "model_selection", "methods", "statistics", "printed"):
    package = importlib.import_module(f"multilab.{package_name}")
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        # the first two read Parquet files, which needs pyarrow; the others need the extras `tabular-nets` and `xmc`
        if module.name not in ("multilab.datasets.parquet", "multilab.datasets.parquet_table",
                               "multilab.methods.networks.tabm", "multilab.methods.forests.omikuji"):
            importlib.import_module(module.name)
print("imported")
"""


def test_the_layers_below_experiments_import_without_the_laboratory():
    run = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True)
    assert run.stdout == "imported\n", run.stderr


LIGHT = (
    "import sys, {module}; print([m for m in ('numpy', 'scipy', 'sklearn', 'pandas', 'mlflow') if m in sys.modules])"
)


@pytest.mark.parametrize("module", ["multilab", "multilab.cli", "multilab.cli.study", "multilab.methods"])
def test_light_modules_import_nothing_heavy(module):
    run = subprocess.run([sys.executable, "-c", LIGHT.format(module=module)], capture_output=True, text=True)
    assert run.stdout == "[]\n", run.stderr
