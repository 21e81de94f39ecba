"""Locks of files and folders in work: whether the process that made one still runs.

A writer holds an advisory lock (``flock``) on what it writes. The kernel drops it with the process, and sees through
containers that share host names and process numbers. It says nothing of other machines, so names carry the boot
identifier of the kernel: what another kernel left, or what a file system without locks holds, counts as dead after a
day only.
"""

import contextlib
import functools
import glob
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows: nothing is locked, and what a killed process left stays
    fcntl = None  # type: ignore[assignment]

__all__ = ["RUNNING", "hold", "is_there", "new", "owner", "owner_of", "release", "running_journals", "take", "was_here"]

RUNNING = ".running.log"
"""End of the name of the journal of a running search, after its owner."""

_DAY = 24 * 60 * 60.0  # seconds; an older lock is taken over even if its owner cannot be checked


@functools.cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().replace("-", "")[:12]
    except OSError:
        return socket.gethostname().replace("-", "_").replace(".", "_")


def owner() -> str:
    """Return a new, unique owner name for something that this process makes: boot, process number, random digits."""
    return f"{_boot()}-{os.getpid()}-{os.urandom(4).hex()}"


def was_here(name: str) -> bool:
    """Tell whether an owner's name was given under this kernel."""
    return name.split("-")[0] == _boot()


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)


def hold(path: Path) -> int:
    """Lock a new file or folder of this process; return the argument of `release`."""
    if fcntl is None:
        return os.open(os.devnull, os.O_RDONLY)
    handle = _open(path)
    with contextlib.suppress(OSError):  # no locks here: then nobody takes it before a day has passed
        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def new(start: Path, end: str, make: Callable[[Path], object] = os.mkdir) -> tuple[Path, int]:
    """Make a folder, or a file, and lock it; return its path and the argument of `release`.

    Between the ``start`` of its path and the ``end`` is the name of an owner.
    """
    while True:
        path = Path(f"{start}{owner()}{end}")
        make(path)
        with contextlib.suppress(FileNotFoundError):  # swept before it was locked
            handle = hold(path)
            if is_there(path, handle):
                return path, handle
            release(handle)


def is_there(path: Path, handle: int) -> bool:
    """Tell whether a path still names the locked file; it may have just been swept."""
    try:
        return fcntl is None or os.path.samestat(path.stat(), os.fstat(handle))
    except OSError:
        return False


def take(path: Path, name: str) -> int | None:
    """Lock what a dead process left under an owner's ``name``; return ``None`` unless it is certainly dead."""
    if fcntl is None:
        return None
    try:
        handle = _open(path)
    except OSError:
        return None
    old = time.time() - os.fstat(handle).st_mtime > _DAY
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        dead = old or was_here(name)
    except BlockingIOError:
        dead = False
    except OSError:
        dead = old
    if not dead:
        os.close(handle)
        return None
    return handle


def release(handle: int) -> None:
    """Drop a lock."""
    os.close(handle)


def running_journals(final: Path) -> list[Path]:
    """Return the journals of running and of killed searches that end in one final journal."""
    return sorted(final.parent.glob(f"{glob.escape(final.stem)}.*{RUNNING}"))


def owner_of(path: Path) -> str:
    """Return the owner in the name of a running journal."""
    return path.name.removesuffix(RUNNING).rpartition(".")[2]
