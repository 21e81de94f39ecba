"""A child process that computes for its parent: warm, so imports happen once, and separate, so it can be killed.

The workers of a cluster have threads and must answer their scheduler. What computes there would hold the interpreter
lock for minutes (SciPy's LAPACK does), die with its worker's heartbeat, or fork a process with threads. So each thread
of a worker has such a child, which computes one call after another. Cells with limits get a process of their own from
it, as on a single machine.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["Child", "ChildKilled"]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ChildKilled(Exception):
    """Unexpected end of the child during a call."""


class Child:
    """A process that computes what is called with :meth:`call`; it ends with its parent."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        # A worker has a child per thread; with more BLAS threads they would compete for its cores.
        environ = {**dict.fromkeys(_THREADS, "1"), **os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "multilab.cells.child", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.PIPE,  # its end tells the child that this process is dead
            stdout=sys.__stderr__,
            env=environ,
            start_new_session=True,  # its own children are killed with it
        )
        theirs.close()
        self._connection = Connection(ours.detach())

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be called."""
        return self._process.poll() is None

    def call(self, function: Callable[..., Any], *arguments: Any, wanted: Callable[[], bool] | None = None) -> Any:
        """Return what a function of the package returns in the child.

        Waiting holds no lock of the interpreter. ``wanted`` is asked every half second whether the result is still
        wanted; if not, the child is killed.

        Raises
        ------
        ChildKilled
            If the process ended in between.
        """
        try:
            self._connection.send((function, arguments))
            while not self._connection.poll(0.5):
                if self._process.poll() is not None or not (wanted is None or wanted()):
                    raise EOFError
            result, error = pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            self.kill()
            raise ChildKilled(f"its process was killed (exit code {self._process.returncode})") from None
        if error is not None:
            raise error
        return result

    def kill(self) -> None:
        """Stop the process at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._connection.close()


def _serve(connection: Connection) -> None:
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            return
        answer: tuple[Any, Exception | None]
        try:
            answer = function(*arguments), None
        except Exception as error:
            answer = None, error
        try:
            # Pickled before it is sent: an answer that cannot be pickled must not end the child, as if it were killed.
            connection.send_bytes(pickle.dumps(answer))
        except (pickle.PicklingError, TypeError, AttributeError):
            connection.send_bytes(pickle.dumps((None, RuntimeError(repr(answer)[:500]))))


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    import multilab.cells.running  # noqa: F401  the imports that every cell needs

    threading.Thread(target=_end_with_parent, daemon=True).start()
    _serve(Connection(int(sys.argv[1])))
