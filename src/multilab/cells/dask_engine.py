"""Cells as tasks of a Dask scheduler that somebody started: it orders them, and gives those of a dead worker to others.

A task only waits; a process of its worker computes (:class:`_Child`), so that it can be killed, have limits, and hold
the interpreter lock for as long as it likes. What a cell reads are the arguments of its task. The files of a cell come
back, or their digests where workers share the store of the launching process, and are verified before they are kept.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import active_children, current_process
from multiprocessing.util import Finalize
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from multilab.cells.cell import Cell, split_refs
from multilab.cells.engines import Engine
from multilab.cells.errors import ExperimentError
from multilab.cells.method import LIBRARIES
from multilab.cells.packs import pack_cell, unpack_cell
from multilab.cells.process import first_split, reason_not_to_try, worker_pool
from multilab.cells.running import give_up
from multilab.cells.settings import CellLimits
from multilab.cells.store import Store
from multilab.core import MultilabError, parse_json
from multilab.core.messages import pip_install
from multilab.core.versions import major_minor

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["finished", "slots"]

Item = Any
"""A cell, or another unit of work with a key, an identity, a label, a cell, and the cells that it ``needs``."""
Work = Callable[[Any, Store], "str | None"]
"""Computes and stores an item; returns why it has no result."""
Answer = dict[str, Any]
"""Of a task: the reason of a failed item, with its record if there is one; a pack or the digests of its files else."""

_RETRIES = 1
"""A cell whose process is killed is tried once more: its neighbours may have taken the memory."""
_VISIBLE = 90.0
"""Seconds after which a file on a shared disk must be visible; network disks keep their listings for up to a minute."""
_TLS = {"ca": "tls_ca_file", "cert": "tls_client_cert", "key": "tls_client_key"}


# ---------------------------------------------------------------- what the launching process does


def finished(
    items: Sequence[Item],
    store: Store,
    engine: Engine,
    work: Work,
    limits: CellLimits | None = None,
    seconds: float = math.inf,
    tick: Callable[[], object] | None = None,
) -> Iterator[tuple[str, str | None]]:
    """Compute missing items and the missing cells that they read on the workers; yield their labels and reasons.

    Parameters
    ----------
    items : sequence of Cell or Unit
        The first ones begin first; those measured alone come after all others.
    store : Store
    engine : Engine
    work : callable
        Computes them, and the cells that they read.
    limits : CellLimits, optional
        Of ``work``: with them the splits of a data set wait for the first one.
    seconds : float
        What still runs then is killed and not yielded.
    tick : callable, optional
        Called after every item, and every half second.
    """
    from multilab.cells.dask_data import send

    refs = [cell.split_ref for item in items if (cell := _cell(item)) is not None]
    with _connected(engine) as client:
        end = time.monotonic() + seconds
        send(client, dict.fromkeys((ref.dataset, ref.dataset_digest) for ref in refs))
        for alone in (False, True):
            tasks = _Tasks(client, engine, store, work, limits)
            wanted = {item.key: item for item in items if getattr(item, "alone", False) == alone}
            for number, item in enumerate(wanted.values()):
                tasks.future(item, -number)
            yield from tasks.finished(wanted, end, tick or (lambda: None))


def slots(engine: Engine) -> int:
    """Return how many cells the workers compute at the same time."""
    with _connected(engine) as client:
        return max(1, sum(client.nthreads().values()))


@contextlib.contextmanager
def _connected(engine: Engine) -> Iterator[Client]:
    """Open a client; an error of the connection, now or later, is one line of ours."""
    try:
        from distributed import Client, Security
        from distributed.comm import CommClosedError
    except ModuleNotFoundError as error:
        raise ExperimentError(f"the engine dask needs {error.name}: {pip_install('distributed')}") from None
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):  # they would print tracebacks of a lost connection
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    if engine.is_open:
        _say(f"warning: {engine.where} is open: anyone who reaches it can run code there; use tls://")
    where = {"address": engine.address} if engine.address else {"scheduler_file": engine.scheduler_file}
    # a client that failed, or is closed, would close again when it is deleted, and print a traceback after our line
    quiet = type("Client", (Client,), {"__del__": lambda self: None})
    try:
        security = Security(**{_TLS[name]: path for name, path in engine.tls.items()})
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Mismatched versions")  # we refuse some of them, in one line
            client = quiet(**where, security=security, timeout=engine.patience, set_as_default=False, name="multilab")
    except Exception as error:  # of sockets, of certificates, of versions that do not know each other
        raise _unreachable(engine, error) from None
    try:
        _say(f"dashboard of {engine.where}: {client.dashboard_link}")
        _check_versions(client, engine)
        yield client
    except MultilabError:
        raise
    except Exception as error:
        lost = CommClosedError, ConnectionError, TimeoutError, futures.CancelledError
        if isinstance(error, lost) or client.status != "running":
            raise _unreachable(engine, error) from None
        raise
    finally:
        with contextlib.suppress(Exception):
            client.close(timeout=2)  # a scheduler that is stopped never answers


@functools.cache
def _say(line: str) -> None:
    """Print a line once, however often a command connects."""
    print(line, file=sys.stderr, flush=True)


def _check_versions(client: Client, engine: Engine) -> None:
    """Refuse workers of other versions than this machine: they may misread what they are sent."""
    versions: Any = client.get_versions(packages=["multilab", *LIBRARIES])
    here = _counting(versions["client"])
    for worker, found in versions["workers"].items():
        there = _counting(found)
        if different := [f"{name} {there[name]} (here {here[name]})" for name in here if there[name] != here[name]]:
            raise ExperimentError(
                f"the worker {worker} of {engine.where} has {', '.join(different)}; install the versions of this "
                "machine there and start it again"
            )
    if not versions["workers"]:
        _say(f"{engine.where} has no worker; waiting for one")


def _counting(versions: Any) -> dict[str, str]:
    """Return what counts of versions: as in keys the first two numbers, of this package all of them."""
    found = {name: str(versions["packages"].get(name)) for name in ("multilab", "python", *LIBRARIES)}
    return {name: number if name == "multilab" else major_minor(number) for name, number in found.items()}


def _unreachable(engine: Engine, error: BaseException) -> ExperimentError:
    while error.__cause__ or (error.__context__ and not error.__suppress_context__):
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return ExperimentError(
        f"{engine.where}: no answer of a scheduler ({reason}); finished cells are kept, the same command continues"
    )


def _of_worker(engine: Engine, error: BaseException) -> ExperimentError:
    name = "" if isinstance(error, MultilabError) else f"{type(error).__name__}: "
    return ExperimentError(f"a worker of {engine.where}: {name}{' '.join(str(error).split())[:500]}")


class _Tasks:
    """Tasks of items and of what they read.

    Parameters
    ----------
    client : Client
    engine : Engine
    store : Store
        Of the launching process.
    work : callable
    limits : CellLimits, optional
    """

    def __init__(self, client: Client, engine: Engine, store: Store, work: Work, limits: CellLimits | None) -> None:
        self._client, self._engine, self._store, self._work, self._limits = client, engine, store, work, limits
        # Another store than usual, as the gate has it, must not be answered by what workers share.
        self._shared = engine.store if engine.store and store.root == Store().root else None
        # Dask may hang if two commands have tasks of the same name with different arguments (decision 28).
        self._token = os.urandom(4).hex()
        self._futures: dict[str, Future] = {}
        self._running: dict[str, Item] = {}  # by the name of the task
        self._settled: list[tuple[Item, str | None]] = []  # without a task

    def future(self, item: Item, priority: int) -> Future:
        """Return the future of an item, of what it reads before it, or of what the launching process has of it."""
        if item.key not in self._futures:
            answer = self._known(item)
            name = f"{item.label.partition(' ')[0]}-{item.key}-{self._token}"
            if answer is not None:
                # No scattered data: they would be lost with their worker.
                future = self._client.submit(_same, answer, key=f"stored-{item.key}-{self._token}", priority=priority)
            else:
                needs = {need.key: self.future(need, priority) for need in self._needs(item)}
                words = item, item.key, self._work, self._shared, needs
                future = self._client.submit(_compute, *words, key=name, priority=priority, retries=_RETRIES)
                self._running[name] = item
            self._futures[item.key] = future
        return self._futures[item.key]

    def finished(
        self, wanted: Container[str], end: float, tick: Callable[[], object]
    ) -> Iterator[tuple[str, str | None]]:
        """Yield labels and reasons of the items that are wanted as they finish, until the end of the time."""
        from distributed import as_completed

        yield from ((item.label, reason) for item, reason in self._settled if item.key in wanted)
        # The scheduler keeps what other tasks need; all else it may forget.
        self._futures = {item.key: self._futures[item.key] for item in self._running.values()}
        done = as_completed(list(self._futures.values()), loop=self._client.loop)
        heard = ticked = time.monotonic()
        while not done.is_empty() and (now := time.monotonic()) < end:
            batch = done.next_batch(block=False)
            if not batch and now - heard > self._engine.patience:  # is it still there?
                scheduler: Any = self._client.scheduler
                self._client.sync(scheduler.ncores, callback_timeout=self._engine.patience)
                heard = now
            for future in batch:
                item = self._running[future.key]
                reason = self._received(item, future)
                if reason is not None:
                    self._engine.failed[item.key] = reason
                if item.key in wanted:
                    yield item.label, reason
            if batch or now - ticked > 0.5:
                tick()
                ticked = now
            if batch:
                heard = now
            else:
                time.sleep(0.02)

    def _known(self, item: Item) -> Answer | None:
        """Return the answer of an item that is stored, or that is not tried: it failed in this command, or exceeded
        these limits before.
        """
        reason = None
        if not self._store.has(item.key):
            reason = self._engine.failed.get(item.key)
            if reason is None and self._limits and isinstance(item, Cell):
                reason = reason_not_to_try(item, self._store, self._limits)
            if reason is None:
                return None
        self._settled.append((item, reason))
        return _answer(item, self._store, reason, self._shared)

    def _needs(self, item: Item) -> list[Item]:
        """Return the cells that an item reads, and with limits the first split, whose excess it does not repeat."""
        first = first_split(item) if self._limits and isinstance(item, Cell) else None
        return [*_reads(item), *([first] if first is not None and first.key in self._futures else [])]

    def _received(self, item: Item, future: Future) -> str | None:
        """Keep an answer; return why the item has no result."""
        from distributed import KilledWorker

        answer: Answer
        if future.status == "cancelled":
            raise ConnectionError("the connection was lost")
        if future.status == "error":
            error = future.exception()
            if not isinstance(error, KilledWorker | BrokenProcessPool):
                raise _of_worker(self._engine, error) from None
            failed = [read for read in _reads(item) if getattr(self._futures.get(read.key), "status", "") == "error"]
            what = "workers died" if isinstance(error, KilledWorker) else "its process was killed twice"
            answer = {"reason": f"{failed[0].label} failed: {what}" if failed else f"{what}, perhaps out of memory"}
        else:
            answer = future.result()
            del self._futures[item.key]
        reason: str | None = answer["reason"]
        if reason is not None:
            if "record" not in answer and isinstance(item, Cell):
                give_up(item, self._store, reason)
            elif answer.get("record") and not self._shared:
                self._store.write_failure(item.key, answer["record"])
        elif self._shared:
            self._wait_for(item, answer["digests"])
        else:
            self._store.put(item.key, unpack_cell(item.key, answer["pack"]))
        return reason

    def _wait_for(self, item: Item, digests: dict[str, str]) -> None:
        """Wait until what a worker has written to the shared store is here."""
        end = time.monotonic() + _VISIBLE
        while self._store.digests(item.key) != digests:
            if time.monotonic() > end:
                raise ExperimentError(
                    f"{self._store.path(item.key)}: a worker has stored {item.label} in {self._shared}, and it is not "
                    "here; `store` of the engine must be this folder, as workers see it"
                )
            time.sleep(0.2)


# ---------------------------------------------------------------- what both do


def _cell(item: Item) -> Cell | None:
    return item if isinstance(item, Cell) else item.cell


def _reads(item: Item) -> tuple[Cell, ...]:
    reads: tuple[Cell, ...] = item.reads if isinstance(item, Cell) else item.needs
    return reads


def _answer(item: Item, store: Store, reason: str | None, shared: str | None) -> Answer:
    if reason is not None:
        return {"reason": reason, "record": store.failure(item.key)}
    files = {"digests": store.digests(item.key)} if shared else {"pack": pack_cell(store, item.key)}
    return {"reason": None, **files}


def _same(answer: Answer) -> Answer:
    return answer


# ---------------------------------------------------------------- what a worker does

_children: list[_Child] = []
_alone = threading.Lock()


class _Child:
    """A warm process of a worker that computes one call after another; it ends with the worker."""

    def __init__(self) -> None:
        _allow_children()
        self._pool = worker_pool(1, fork=False)
        self._pid = self._pool.submit(_ready)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns there; kill the process if nobody wants the result of this task any more."""
        from distributed import get_worker
        from distributed.worker import thread_state

        worker, name = get_worker(), thread_state.key
        future = self._pool.submit(function, *arguments)
        while not futures.wait([future], timeout=0.5).done:
            task = worker.state.tasks.get(name)
            if task is None or task.state != "executing" or worker.status.name in ("closing", "closed"):
                self.kill()
        return future.result()

    def kill(self) -> None:
        """Stop the process at once."""
        with contextlib.suppress(ProcessLookupError, BrokenProcessPool):
            os.kill(self._pid.result(), signal.SIGKILL)
        self._pool.shutdown(wait=False)


@functools.cache
def _allow_children() -> None:
    """Let this worker have processes: Dask makes it a daemon, which may not (issue 2142 of distributed).

    An ending worker would wait for them before it tells them to end.
    """
    current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
    Finalize(None, _kill_children, exitpriority=1)


def _kill_children() -> None:
    for process in active_children():
        process.kill()


def _ready() -> int:
    import multilab.cells.running  # noqa: F401  the imports that every cell needs

    return os.getpid()


def dask_setup(worker: Any) -> None:
    """Start the processes of a worker with it (``dask worker --preload multilab.cells.dask_engine``).

    Otherwise they start, which takes seconds, in the time of the first cells.
    """
    _children.extend(_Child() for _ in range(worker.state.nthreads))


def _in_child(alone: bool, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in an idle process; what is measured alone, in a fresh one and with no other of its kind."""
    with _alone if alone else contextlib.nullcontext():
        try:
            child = _Child() if alone else _children.pop()
        except IndexError:
            child = _Child()
        try:
            return child.call(function, *arguments)
        except BrokenProcessPool:
            child = _Child()  # at once, not in the time of the next cell
            raise
        finally:
            if alone:
                child.kill()
            else:
                _children.append(child)


def _compute(item: Item, key: str, work: Work, shared: str | None, needs: dict[str, Answer]) -> Answer:
    """Compute an item in a process of this worker."""
    from distributed import get_worker

    for read in _reads(item):
        if (reason := needs[read.key]["reason"]) is not None:
            return {"reason": f"{read.label} failed: {reason}"}
    try:
        with TemporaryDirectory(prefix="cell-", dir=get_worker().local_directory) as folder:
            store = Store(shared or folder)
            for name, need in needs.items() if shared is None else ():
                if "pack" in need:
                    store.put(name, unpack_cell(name, need["pack"]))
                elif need.get("record"):  # of the first split
                    store.write_failure(name, need["record"])
            reason = _in_child(getattr(item, "alone", False), _compute_here, item, key, str(store.root), work)
            return _answer(item, store, reason, shared)
    except OSError as error:  # a full disk
        raise ExperimentError(f"{socket.gethostname()}: {error}") from None


# ---------------------------------------------------------------- what the process of a worker does


def _compute_here(item: Item, key: str, root: str, work: Work) -> str | None:
    _check_same(item, key)
    return work(item, Store(root))


def _check_same(item: Item, key: str) -> None:
    """Refuse to compute under a key what another machine's code, libraries or data give."""
    # A copy has no cached key: the key is computed from the code and the settings of this machine.
    rebuilt: Item = replace(item)
    if rebuilt.key != key:
        changed = [name for name in rebuilt.identity if rebuilt.identity[name] != item.identity.get(name)]
        raise ExperimentError(
            f"{socket.gethostname()} has another {' and another '.join(changed) or 'identity'} of {item.label}: its "
            "multilab, its settings (the folder conf where it was started) and its libraries must be those of here"
        )
    if (cell := _cell(item)) is not None:
        ref = cell.split_ref
        refs = split_refs(ref.dataset, dict(parse_json(ref.protocol)))
        other_rows = ref.split >= 0 and ref.inner is None and refs[ref.split % len(refs)].digest != ref.digest
        if other_rows or refs[0].dataset_digest != ref.dataset_digest:
            raise ExperimentError(
                f"{socket.gethostname()} has other data of {ref.dataset}; if this is a table of yours, delete its card "
                "and its file in data/own where the worker was started, and start the worker again"
            )
