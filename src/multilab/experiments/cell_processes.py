"""A cell in a separate process, which can be limited and killed."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any

from multilab.experiments.cells import Cell
from multilab.experiments.running import run_cell
from multilab.experiments.store import Store

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["CellProcess", "begin_worker"]


class CellProcess:
    """A process that runs one cell; it starts at once.

    Parameters
    ----------
    cell : Cell
    store : Store
    seconds, gigabytes : float, optional
        Processor time and memory after which the system stops it (POSIX only).
    """

    def __init__(self, cell: Cell, store: Store, seconds: float | None = None, gigabytes: float | None = None) -> None:
        self.cell = cell
        context = get_context("fork" if sys.platform == "linux" else "spawn")
        self._connection, theirs = context.Pipe(duplex=False)
        arguments = (cell, store, theirs, seconds, gigabytes)
        self._process: Any = context.Process(target=_work, args=arguments)  # type: ignore[attr-defined]
        self._process.start()
        theirs.close()
        self.sentinel: Any = self._process.sentinel

    @property
    def exit_code(self) -> int | None:
        """How the process ended, minus the number of the signal that killed it; None while it runs."""
        return self._process.exitcode

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the process to end; return whether it has ended."""
        self._process.join(timeout)
        return self._process.exitcode is not None

    def reason(self) -> str | None:
        """Return why the finished process has no result, None if it has one.

        Raises
        ------
        OSError
            If the store could not be written to.
        """
        self._process.join()
        try:
            result = self._connection.recv()
        except EOFError:
            return f"its process was killed (exit code {self._process.exitcode}), perhaps for want of memory"
        finally:
            self._connection.close()
        if isinstance(result, OSError):
            raise result
        return result

    def kill(self) -> None:
        """Stop the process at once."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def _work(cell: Cell, store: Store, connection: Connection, seconds: float | None, gigabytes: float | None) -> None:
    begin_worker()
    if sys.platform != "win32":
        _limit(seconds, gigabytes)
    try:
        connection.send(run_cell(cell, store))
    except OSError as error:  # a full disk
        connection.send(error)


def _limit(seconds: float | None, gigabytes: float | None) -> None:
    """Let the system stop this process when it has used more."""
    import resource

    if seconds is not None:
        full_seconds = math.ceil(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (full_seconds, full_seconds + 5))
    if gigabytes is not None:
        most = _data_bytes() + int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _data_bytes() -> int:
    """Return the size of this process's own writable memory, 0 where the system has no such figure."""
    try:
        with open("/proc/self/status") as stream:
            return next(int(line.split()[1]) * 1024 for line in stream if line.startswith("VmData:"))
    except (OSError, StopIteration):
        return 0


def begin_worker() -> None:
    """Die at once when interrupted, and with the parent: a worker of a killed parent would wait for work for ever."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
