"""The store of cells: folders named by key, complete or absent, verified when they are read.

``$MULTILAB_CELLS/<key>/`` holds ``config.yaml`` (the settings, to be read by a person), ``arrays.npz`` (the results),
``record.json`` (all parts of the key in clear, seconds, memory, environment) and ``DONE`` (sha256 of the others,
written last). Any folder will do, so several checkouts and machines can share one.
"""

from __future__ import annotations

import errno
import functools
import io
import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilab.cells.errors import ExperimentError
from multilab.core import locks, read_json, store_dir
from multilab.core.digests import sha256_digests
from multilab.core.locks import owner_of, running_journals

if TYPE_CHECKING:  # `multilab --help` and completion start without NumPy
    import numpy as np

__all__ = ["Store", "is_storage_failure"]

_TEMPORARY = ".part-"
_JOURNALS = ".journals"


class Store:
    """Cells on disk.

    Parameters
    ----------
    root : path, optional
        The folder; default :func:`multilab.core.store_dir`.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = Path(root).expanduser().resolve() if root else store_dir()

    def path(self, key: str) -> Path:
        """Return the folder of a cell."""
        return self.root / key

    def has(self, key: str) -> bool:
        """Return whether the cell is stored and complete: ``DONE`` is valid, digests and key agree."""
        return self.digests(key) is not None

    def digests(self, key: str) -> dict[str, str] | None:
        """Return the sha256 of the cell's files, or ``None`` if it is missing, unfinished, damaged or another cell."""
        folder = self.path(key)
        try:
            with os.scandir(folder) as files:
                stats = {file.name: file.stat() for file in files}
            # The clock of the kernel ticks every few milliseconds: what changed just now may change again unseen.
            settled = all(time.time_ns() - stat.st_ctime_ns > 50_000_000 for stat in stats.values())
            # The change time is part of the cache key: programs can set back the modification time, but not this one.
            states = ((n, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for n, s in stats.items())
            return (_verified if settled else _verified.__wrapped__)(folder, frozenset(states))
        except OSError:
            return None

    def arrays_digest(self, key: str) -> str:
        """Return the sha256 of the arrays of a finished cell, as its ``DONE`` says; empty if it is not finished."""
        try:
            return str(read_json(self.path(key) / "DONE")["arrays.npz"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def finished(self) -> list[str]:
        """Return the sorted keys of the finished cells."""
        return sorted(p.parent.name for p in self.root.glob("*/DONE") if not p.parent.name.startswith("."))

    def arrays(self, key: str) -> dict[str, np.ndarray]:
        """Return the arrays of a cell."""
        import numpy as np

        if not self.has(key):
            raise ExperimentError(f"{self.path(key)}: the cell is missing or damaged; run its train stage again")
        # A store may hold cells from elsewhere, and unpickling would run their code.
        with np.load(self.path(key) / "arrays.npz", allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}

    def record(self, key: str) -> dict[str, Any]:
        """Return the record of a cell, finished or failed."""
        try:
            return read_json(self.path(key) / "record.json")
        except (OSError, ValueError):
            raise ExperimentError(f"{self.path(key)}: no such cell in the store {self.root}") from None

    def find(self, start: str) -> str:
        """Return the one key that begins with ``start``."""
        hits = [p.name for p in self.root.glob(f"{start}*") if p.is_dir() and not p.name.startswith(".")]
        if not hits:
            raise ExperimentError(f"no cell of {self.root} begins with {start!r}; `multilab store list` lists them")
        if len(hits) > 1:
            raise ExperimentError(f"{len(hits)} cells of {self.root} begin with {start!r}; give more digits")
        return hits[0]

    def write(
        self,
        key: str,
        arrays: Mapping[str, np.ndarray],
        record: Mapping[str, Any],
        config: str,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        """Store a finished cell in one step; leave a complete cell that is already stored unchanged."""
        import numpy as np

        buffer = io.BytesIO()
        plain: dict[str, Any] = {name: np.asarray(array) for name, array in sorted(arrays.items())}
        np.savez_compressed(buffer, **plain)
        self._finish(key, {"arrays.npz": buffer.getvalue(), "config.yaml": config.encode(), **(files or {})}, record)

    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        """Store all files of a finished cell, ``DONE`` among them; the caller has verified them."""
        self._write_folder(key, files)

    def replace(self, key: str, files: Mapping[str, bytes]) -> None:
        """Store all files of a finished cell in place of those that are stored."""
        # `put` leaves a complete cell as it is, so the stored one is removed first.
        shutil.rmtree(self.path(key), ignore_errors=True)
        self.put(key, files)

    def _finish(self, key: str, files: Mapping[str, bytes], record: Mapping[str, Any]) -> None:
        """Write the folder of a finished cell."""
        contents = {**files, "record.json": json.dumps({**record, "key": key}, indent=1, sort_keys=True).encode()}
        contents["DONE"] = json.dumps(sha256_digests(contents), indent=1, sort_keys=True).encode()
        self._write_folder(key, contents)

    def _write_folder(self, key: str, contents: Mapping[str, bytes]) -> None:
        """Write the files of a cell to a temporary folder, then rename it."""
        # Locked until it has its name, so that `sweep` in another process does not take it for dead.
        folder, handle = locks.new(self.root / _TEMPORARY, f"-{key}", os.makedirs)
        try:
            for name, content in contents.items():
                # Not flushed to disk one by one: a file that a power cut leaves torn is not what DONE says.
                (folder / name).write_bytes(content)
            self._put(folder, key)
        except BaseException as error:  # a full disk: nothing half-written is left
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                error.filename = error.filename or str(self.root)
            raise
        finally:
            locks.release(handle)

    def _put(self, folder: Path, key: str) -> None:
        # Another writer may put a folder there again between the removal and the next attempt.
        for _ in range(8):
            try:
                os.replace(folder, self.path(key))
                return
            except OSError:  # the folder exists: another writer's complete cell, or the rest of a failure or a kill
                if self.has(key):
                    shutil.rmtree(folder)
                    return
                if self.path(key).is_file():
                    self.path(key).unlink()
                shutil.rmtree(self.path(key), ignore_errors=True)
        raise ExperimentError(f"{self.path(key)}: cannot be replaced; is the folder writable?")

    def write_failure(self, key: str, record: Mapping[str, Any]) -> None:
        """Store why a cell failed: a record without ``DONE``, so never a hit."""
        if not self.has(key):
            content = json.dumps({**record, "key": key}, indent=1, sort_keys=True)
            self._write_folder(key, {"record.json": content.encode()})

    def failure(self, key: str) -> dict[str, Any] | None:
        """Return the record of a failed cell, ``None`` for a cell that did not fail."""
        try:
            record = read_json(self.path(key) / "record.json")
            failed = record["status"] == "failed" and not (self.path(key) / "DONE").exists()
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return record if failed else None

    def journal(self, name: str) -> Path:
        """Return the path of the journal of a search: of a tuned cell until it is stored, or of `multilab tune`."""
        return self.root / _JOURNALS / f"{name}.log"

    def drop_journals(self, key: str) -> None:
        """Remove leftovers of searches of a finished cell; its own journal is kept with it."""
        final = self.journal(key)
        final.unlink(missing_ok=True)
        for path in running_journals(final):
            _remove_dead(path, owner_of(path))

    def sweep(self) -> int:
        """Remove half-written folders of killed writers; return their number.

        Only what is surely dead goes: see :mod:`multilab.core.locks`.
        """
        folders = self.root.glob(f"{_TEMPORARY}*")
        return sum(_remove_dead(folder, folder.name.removeprefix(_TEMPORARY)) for folder in folders)


@functools.lru_cache(maxsize=100_000)
def _verified(folder: Path, states: frozenset[tuple[Any, ...]]) -> dict[str, str] | None:
    """Return the digests in ``DONE`` if they are those of the files; unchanged files are read once."""
    try:
        done: dict[str, str] = json.loads((folder / "DONE").read_bytes())
        if not {"arrays.npz", "record.json"} <= done.keys() <= {name for name, *_ in states}:
            return None
        contents = {name: (folder / name).read_bytes() for name in done}
        named = json.loads(contents["record.json"])["key"]  # of a folder that was copied or renamed it is another
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):  # an OSError may be none the next time
        return None
    return done if sha256_digests(contents) == done and named == folder.name else None


def is_storage_failure(error: BaseException) -> bool:
    """Return whether the disk is full or read-only: not a failure of the cell, and every cell would fail."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def _remove_dead(path: Path, owner: str) -> bool:
    handle = locks.take(path, owner)
    if handle is None:
        return False
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    locks.release(handle)
    return True
