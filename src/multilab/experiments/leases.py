"""Leases of cells: which worker computes a cell, on stores that several machines share.

A lease is a file ``.leases/<key>-<n>`` in the store, created in one step (``O_EXCL``) by the worker that computes the
cell, and renewed by touching it. When it was not renewed for as long as it promises, its worker counts as dead, and
another one creates the file with the next number; only one can. The number counts the workers that died with the cell.

Times are those of the file system: the age of a lease is the time of a file created now minus the time of the lease,
both set by the server of a network disk, so the clocks of the machines do not matter. A lease spares work, it does not
protect results: two workers with one cell give equal results, and the store keeps one.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from multilab.core import parse_json, read_json
from multilab.experiments.locks import owner
from multilab.experiments.store import Store

__all__ = ["Lease", "Leases"]

_DAY = 24 * 60 * 60.0


@dataclass(frozen=True)
class Lease:
    """The right to compute a cell.

    Attributes
    ----------
    path : Path
        Its file.
    owner : str
        Name of the worker's lease, never used twice.
    deaths : int
        How many workers died with this cell.
    """

    path: Path
    owner: str
    deaths: int


class Leases:
    """The leases of a store.

    Parameters
    ----------
    store : Store
    seconds : float
        How long a new lease lasts without being renewed.
    """

    def __init__(self, store: Store, seconds: float) -> None:
        self.folder, self.seconds = store.root / ".leases", seconds
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held: dict[str, Lease] = {}

    def acquire(self, key: str) -> Lease | None:
        """Return the lease of a cell, ``None`` if a living worker has it."""
        number = 0
        while True:
            lease = Lease(self.folder / f"{key}-{number}", owner(), number)
            self._held[lease.owner] = lease  # before it is created: the process may be terminated in between
            if self._create(lease):
                return lease
            del self._held[lease.owner]
            if not self._is_stale(lease.path):
                return None
            number += 1

    def renew(self) -> None:
        """Touch the leases that are held; a file that another worker removed stays removed."""
        for lease in list(self._held.values()):
            with contextlib.suppress(FileNotFoundError):
                os.utime(lease.path)  # without a time, so that the server of a network disk takes its own

    def release(self, lease: Lease) -> None:
        """Remove the file of a lease, and those of the workers that died before; nothing that another worker holds."""
        with contextlib.suppress(OSError, ValueError):
            if read_json(lease.path)["owner"] == lease.owner:
                lease.path.unlink()
        for number in range(lease.deaths):
            lease.path.with_name(f"{lease.path.name.rpartition('-')[0]}-{number}").unlink(missing_ok=True)
        self._held.pop(lease.owner, None)

    def release_all(self) -> None:
        """Release what is held: this worker ends."""
        for lease in list(self._held.values()):
            self.release(lease)

    def sweep(self, store: Store) -> None:
        """Remove the leases of finished cells, and those of workers that died days ago."""
        for path in list(self.folder.iterdir()):
            with contextlib.suppress(OSError):
                if store.has(path.name.partition("-")[0]) or self._now() - path.stat().st_mtime > _DAY:
                    path.unlink()

    def _create(self, lease: Lease) -> bool:
        content = {"owner": lease.owner, "host": socket.gethostname(), "pid": os.getpid(), "seconds": self.seconds}
        try:
            handle = os.open(lease.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(handle, "w") as stream:
            json.dump(content | {"started": time.time()}, stream)
        return True

    def _is_stale(self, path: Path) -> bool:
        """Return whether a lease was not renewed in time; one that was released since is not stale."""
        try:
            with path.open() as stream:  # opened, so that a network disk requests the time of the file from its server
                touched, text = os.fstat(stream.fileno()).st_mtime, stream.read()
        except FileNotFoundError:
            return False
        try:
            seconds = float(parse_json(text)["seconds"])
        except (ValueError, KeyError, TypeError):  # its worker is about to write it, or died before it did
            seconds = self.seconds
        return self._now() - touched > seconds

    def _now(self) -> float:
        """Return the time on the clock of the file system."""
        path = self.folder / f"clock-{owner()}"
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        try:
            return os.fstat(handle).st_mtime
        finally:
            os.close(handle)
            path.unlink()
