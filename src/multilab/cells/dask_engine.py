"""Cells on the workers of a Dask scheduler: each is a task that lets a child process compute it.

The task only waits: see :mod:`multilab.cells.child`. What a cell reads are arguments of its task, so that
the scheduler orders them and computes again what a dead worker had. Answers come back with the files of the cell, or
with their digests where workers share the store of the launching process, and are verified before they are kept.

The runtime is a scheduler that somebody started. No cluster is started here: a ``LocalCluster`` loses its workers for
good when several die.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import shutil
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from multilab.cells.cell import Cell, split_refs, with_reads
from multilab.cells.child import Child, ChildKilled
from multilab.cells.engines import Engine
from multilab.cells.errors import ExperimentError
from multilab.cells.packs import pack_cell, unpack_cell
from multilab.cells.process import expected_effort, first_split, reason_not_to_try, run_cell_within
from multilab.cells.running import give_up, run_cell
from multilab.cells.settings import CellLimits, Tuning
from multilab.cells.store import Store
from multilab.core import MultilabError
from multilab.core.digests import sha256_digest
from multilab.core.messages import pip_install

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["call", "run_cells", "run_cells_within", "run_units", "search_here", "slots"]

Item = Any
"""A cell, or another unit of work with a key, an identity, a label, a cell, and the cells that it ``needs``."""
Compute = Callable[[Any, Store], "tuple[str, str | None]"]
Show = Callable[[Iterable[Any], int], Iterable[Any]]

_WINDOW = 500
"""Tasks that the scheduler knows at the same time; with them the cells that they read."""
_TRIES = 2
"""A cell, or a search, whose process is killed is tried once more: its neighbours may have taken the memory."""
_DIED = "too many workers died while they computed it"
_VISIBLE = 90.0
"""Seconds after which a file on a shared disk must be visible; network disks keep their listings for up to a minute."""
_START = 120.0
"""Seconds that children have to start and load data; on an idle machine they take three."""
_GOODBYE = 2.0
"""Seconds that a scheduler has to answer a command that ends, as one that is stopped never does."""
_LOST = 5
"""Connections that may be lost one after another without any cell being finished in between."""


# ---------------------------------------------------------------- what the launching process does


def run_cells(
    cells: Sequence[Cell], store: Store, engine: Engine, progress: Show | None, limits: CellLimits | None
) -> dict[str, str]:
    """Compute missing cells and their inputs on the workers; return the reasons of failed cells by label."""
    wanted = {cell.key: cell for cell in cells}
    ordered = _ordered(wanted.values(), store, limits)
    # Cells measured alone come last: then a worker has nothing else to do.
    groups = [[c for c in ordered if not c.alone], [c for c in ordered if c.alone]]
    done = _settled(groups, store, engine, limits, wanted)
    return {label: reason for label, reason in (progress(done, len(wanted)) if progress else done) if reason}


def run_units(
    units: Sequence[Item], store: Store, engine: Engine, progress: Show | None, work: Compute
) -> dict[str, str]:
    """Compute missing units of analyses on the workers; return the reasons of those that failed by label.

    ``work`` computes and stores a unit; it returns the label of the unit and, if the unit failed, the reason.
    """
    wanted = {unit.key: unit for unit in units}
    done = _settled([list(wanted.values())], store, engine, None, wanted, work)
    return {label: reason for label, reason in (progress(done, len(wanted)) if progress else done) if reason}


def run_cells_within(
    cells: Sequence[Cell], store: Store, engine: Engine, seconds: float, tick: Callable[[], object] | None
) -> tuple[int, dict[str, str], bool, float]:
    """Compute missing cells on the workers for at most some seconds, then kill what still runs.

    Returns
    -------
    computed, failures, stopped, seconds
        See :class:`multilab.cells.execute.Outcome`.
    """
    began, computed, stopped = time.monotonic(), 0, bool(cells)
    failures: dict[str, str] = {}
    wanted = {cell.key: cell for cell in cells}
    if wanted and seconds > 0:
        with _connected(engine) as client, _Run(client, engine, store, None) as run:
            _send_data(client, engine, cells)
            _warm_up(client, engine, cells[0])
            began = time.monotonic()
            run.tick = tick or run.tick
            for item, reason in run.settled(_ordered(wanted.values(), store, None), began + seconds):
                if item.key in wanted and reason is None:
                    computed += 1
                elif item.key in wanted:
                    failures[item.label] = str(reason)
            stopped = run.stopped
    return computed, failures, stopped, time.monotonic() - began


def call(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], engine: Engine) -> Iterator[Any]:
    """Yield the results of a function of the package for tuples of arguments, computed in children of workers.

    An exception is yielded, not raised: the others go on.
    """
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.client import ClosedClientError

    with _connected(engine) as client:
        _send_data(client, engine, [words[0] for words in arguments])
        futures = [_submitted(client, engine, _tried, function, *words) for words in arguments]
        notice = _Notice(engine)
        try:
            for future in futures:
                while not future.done():
                    notice.show(client)
                    time.sleep(0.1)
                try:
                    yield future.result()
                except MultilabError as error:
                    yield error
                except ChildKilled as error:
                    yield ExperimentError(str(error))
                except KilledWorker:
                    yield ExperimentError(_DIED)
                except (OSError, CancelledError, ClosedClientError) as error:
                    raise _unreachable(engine, error) from error
                except Exception as error:
                    raise _of_worker(engine, error) from error
        finally:
            if notice.answers:
                with contextlib.suppress(Exception):
                    client.cancel(futures, force=True)


def slots(engine: Engine) -> int:
    """Return how many cells the workers compute at the same time."""
    with _connected(engine) as client:
        return max(1, sum(client.nthreads().values()))


def _ordered(cells: Iterable[Cell], store: Store, limits: CellLimits | None) -> list[Cell]:
    """Return missing cells and those they read: what others read first, with limits first splits, then the longest."""
    ordered = [cell for cell in with_reads(cells) if not store.has(cell.key)]
    depths: dict[str, int] = {}
    for cell in ordered:
        depths[cell.key] = 1 + max((depths.get(read.key, 0) for read in cell.reads), default=0)
    late = {cell.key: bool(limits and first_split(cell)) for cell in ordered}
    return sorted(ordered, key=lambda c: (depths[c.key], late[c.key], -expected_effort(c.split_ref.dataset)))


def _settled(
    groups: Sequence[Sequence[Item]],
    store: Store,
    engine: Engine,
    limits: CellLimits | None,
    wanted: dict[str, Any],
    work: Compute | None = None,
) -> Iterator[tuple[str, str | None]]:
    """Yield label and reason of the wanted items as they are finished; nobody is asked where there are none."""
    if not any(groups):
        return
    for items in filter(None, groups):
        with _connected(engine) as client, _Run(client, engine, store, limits, work) as run:
            _send_data(client, engine, items)
            for item, reason in run.settled(items):
                if item.key in wanted:
                    yield item.label, reason


@contextlib.contextmanager
def _connected(engine: Engine) -> Iterator[Client]:
    """Open a client; print where its scheduler shows what it does."""
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError as error:
        raise ExperimentError(f"the engine dask needs {error.name}: {pip_install('distributed')}") from None
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):  # a lost scheduler ends in one line of ours
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    for path in filter(None, (*engine.tls.values(), engine.scheduler_file)):
        if not Path(path).is_file():
            raise ExperimentError(f"{path}: no such file; the engine needs it to reach its scheduler")
    if engine.is_open:
        print(f"warning: {engine.where} is open: anyone who reaches it can run code there; use tls://", file=sys.stderr)
    client = _client(engine)
    _announce(engine, client)
    try:
        _check_versions(client, engine)
        yield client
    finally:
        _close(client)


def _client(engine: Engine) -> Client:
    from distributed import Client, Security

    files = {_TLS[name]: path for name, path in engine.tls.items()}
    address = {"address": engine.address} if engine.address else {"scheduler_file": engine.scheduler_file}
    # a client that failed, or is closed, would close again when it is deleted, and print a traceback after our line
    quiet = type("Client", (Client,), {"__del__": lambda self: None})
    try:
        security = Security(**files)
        return quiet(**address, security=security, timeout=engine.patience, set_as_default=False, name="multilab")
    except Exception as error:  # of sockets, of certificates, of versions that do not know each other
        raise _unreachable(engine, error) from None


def _close(client: Client) -> None:
    with contextlib.suppress(Exception):
        client.close(timeout=_GOODBYE)


def _check_versions(client: Client, engine: Engine, workers: list[str] | None = None) -> None:
    """Refuse workers with another version of this file: they may die of what they are sent, or misread it."""

    async def ask() -> dict[str, Any]:
        answers: dict[str, Any] = await client.run(_version, workers=workers, on_error="return")
        return answers

    try:
        answers = client.sync(ask, callback_timeout=min(5.0, engine.patience))
    except Exception:  # a worker or the scheduler goes, or is stopped: the cells wait for it
        return
    here = _version()
    other = sorted(name for name, version in answers.items() if version != here and not isinstance(version, OSError))
    if other:
        raise ExperimentError(
            f"{len(other)} of {len(answers)} workers of {engine.where} have another version of multilab, the first: "
            f"{other[0]}; install the version of this machine there and start them again"
        )


def _version() -> str:
    return sha256_digest(Path(__file__).read_bytes())


_TLS = {"ca": "tls_ca_file", "cert": "tls_client_cert", "key": "tls_client_key"}
_announced: set[str] = set()


def _announce(engine: Engine, client: Client) -> None:
    if engine.where not in _announced:
        _announced.add(engine.where)
        print(f"dashboard of {engine.where}: {client.dashboard_link}", file=sys.stderr, flush=True)


def _submitted(client: Client, engine: Engine, function: Callable[..., Any], *arguments: Any, **named: Any) -> Future:
    """Return the future of a new task; a client closes when its scheduler has not answered for ``patience`` seconds."""
    try:
        return client.submit(function, *arguments, pure=False, **named)
    except Exception as error:
        if client.status in ("closing", "closed"):
            raise _unreachable(engine, error) from None
        raise


def _send_data(client: Client, engine: Engine, items: Iterable[Item]) -> None:
    """Send the user's own tables that the items read, so that workers need not have them."""
    from distributed.client import ClosedClientError

    from multilab.cells.dask_data import send

    cells = [item if isinstance(item, Cell) else item.cell for item in items]
    refs = [cell.split_ref for cell in cells if cell is not None]
    try:
        send(client, dict.fromkeys((ref.dataset, ref.dataset_digest) for ref in refs))
    except MultilabError:
        raise
    except (OSError, ClosedClientError) as error:
        raise _unreachable(engine, error) from error
    except Exception as error:  # of a worker with another version of multilab
        raise _of_worker(engine, error) from error


def _warm_up(client: Client, engine: Engine, cell: Cell) -> None:
    """Let the workers start their children before the time of any cell begins.

    If the start counted, a cell of a tenth of a second would not end within ten times its estimate. It would be stopped
    together with the children that the next cells would have used.
    """
    from concurrent.futures import CancelledError

    from distributed.client import ClosedClientError

    try:
        where = {"allow_other_workers": True, "pure": False}
        futures = [client.submit(_warm, cell, workers=[worker], **where) for worker in client.nthreads()]
        for future in futures:
            future.exception(timeout=_START)  # the cells meet what is wrong
    except (OSError, TimeoutError, CancelledError, ClosedClientError):
        return  # a worker or the scheduler goes in between; the cells wait for it


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


class _Run:
    """Items in work at a scheduler.

    Parameters
    ----------
    client : Client
    engine : Engine
    store : Store
        Of the launching process.
    limits : CellLimits, optional
    work : callable, optional
        Computes an item that is no cell.

    Attributes
    ----------
    stopped : bool
        Whether the deadline came before the last item.
    tick : callable
        Called at least every half second.
    """

    def __init__(
        self, client: Client, engine: Engine, store: Store, limits: CellLimits | None, work: Compute | None = None
    ) -> None:
        self._client, self._engine, self._store, self._limits, self._work = client, engine, store, limits, work
        # Another store than usual, as the gate has it, must not be answered by what workers share.
        self._shared = engine.store if engine.store and store.root == Store().root else None
        self._token = os.urandom(4).hex()
        self._round = 0
        self._notice = _Notice(engine)
        self._futures: dict[str, tuple[Future, list[Future]]] = {}
        self._items: dict[str, Item] = {}  # by name of their task
        self._done: queue.SimpleQueue[tuple[str, Future]] = queue.SimpleQueue()
        self.stopped = False
        self.tick: Callable[[], object] = lambda: None

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self._notice.answers:
            with contextlib.suppress(Exception):
                self._client.cancel([future for future, _ in self._futures.values()], force=True)
                self._client.sync(self._forget, callback_timeout=_GOODBYE)
        _close(self._client)

    async def _forget(self) -> None:
        await self._client.run(_forget, self._token, on_error="ignore")

    def settled(self, items: Sequence[Item], deadline: float | None = None) -> Iterator[tuple[Item, str | None]]:
        """Yield the items as they finish, with the reasons of failures."""
        waiting = {item.key: item for item in items}
        by_key: dict[str, Item] = dict(waiting)
        running: dict[str, Item] = {}
        lost = 0
        while waiting or running:
            while waiting and len(running) < _WINDOW:
                key, item = next(iter(waiting.items()))
                running[key] = waiting.pop(key)
                failed = self._known_failure(item)
                if failed is not None:
                    del running[key]
                    yield item, failed
                    continue
                self._submit(item)
            if deadline is not None and time.monotonic() >= deadline:
                self.stopped = bool(running or waiting)
                return
            finished = self._wait(0.5 if deadline is None else min(0.5, deadline - time.monotonic()))
            self.tick()
            self._notice.show(self._client)
            for key, answer in finished:
                if key not in running:
                    continue
                self._futures.pop(key, None)
                item = running.pop(key)
                if answer is None:  # cancelled: the connection was lost
                    waiting[key] = item
                    continue
                lost = 0
                reason = self._receive(item, answer)
                if reason is not None:
                    self._engine.failed[key] = reason
                yield item, reason
            if waiting and any(answer is None for _, answer in finished):
                lost += 1
                waiting = {**running, **waiting}
                # In the planned order again: what others read comes first.
                waiting, running = {key: item for key, item in by_key.items() if key in waiting}, {}
                self._reconnect(lost)
                _send_data(self._client, self._engine, waiting.values())  # a scheduler may have been started again

    def _known_failure(self, item: Item) -> str | None:
        """Return why an item is not tried: it failed in this command already, or exceeded these limits before."""
        if (reason := self._engine.failed.get(item.key)) is not None or self._limits is None:
            return reason
        return reason_not_to_try(item, self._store, self._limits) if isinstance(item, Cell) else None

    def _submit(self, item: Item) -> None:
        first = first_split(item) if self._limits and isinstance(item, Cell) else None
        reads = (*_reads(item), *([first] if first is not None and first.key in self._futures else []))
        needs = [need for read in reads if (need := self._need(read)) is not None]
        task = Task(item, item.key, self._limits, self._shared, self._token, self._work)
        # Unique to this run: Dask may hang if tasks of the same name have different arguments (decision 28).
        name = f"{item.method.name if isinstance(item, Cell) else item.analysis}-{item.key}-{self._token}{self._round}"
        future = _submitted(self._client, self._engine, compute, task, *needs, key=name)
        self._futures[item.key] = future, needs
        self._items[name] = item
        future.add_done_callback(lambda future, key=item.key: self._done.put((key, future)))

    def _need(self, item: Cell) -> Future | None:
        """Return the future of what an item reads, in work or in the store; ``None`` if the item is to compute it."""
        if item.key in self._futures:
            return self._futures[item.key][0]
        record = self._store.failure(item.key)
        if record is None and not self._store.has(item.key):
            return None
        answer = _answer(item, self._store, self._shared, record)
        name = f"stored-{item.key}-{self._token}{self._round}"
        self._items[name] = item
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return _submitted(self._client, self._engine, _same, answer, key=name)

    def _wait(self, seconds: float) -> list[tuple[str, Any]]:
        """Return the keys of the tasks that ended, each with its answer, its error, or ``None`` if it was cancelled."""
        ended: list[tuple[str, Future]] = []
        with contextlib.suppress(queue.Empty):
            ended.append(self._done.get(timeout=max(seconds, 0.001)))
            while len(ended) < 50:
                ended.append(self._done.get_nowait())
        current = {key: future for key, future in ended if key in self._futures and self._futures[key][0] is future}
        results: list[tuple[str, Any]] = []
        for key, future in current.items():
            if future.status == "error":
                results.append((key, future.exception()))
            elif future.status != "finished":
                results.append((key, None))
        good = {key: future for key, future in current.items() if future.status == "finished"}
        if good:
            try:
                results += zip(good, self._client.gather(list(good.values())), strict=True)
            except Exception:  # the connection was lost in between, or a worker that had one of them
                results += [(key, None) for key in good]
        return results

    def _receive(self, item: Item, answer: Any) -> str | None:
        """Keep an answer; return why the item has no result."""
        if isinstance(answer, BaseException):
            return self._failure(item, answer)
        if answer.reason is not None:
            if self._shared is None and answer.record:
                self._store.write_failure(item.key, answer.record)
            return str(answer.reason)
        if answer.content is not None:
            self._store.put(item.key, unpack_cell(item.key, answer.content))
            return None
        end = time.monotonic() + _VISIBLE
        while self._store.digests(item.key) != answer.digests:
            if time.monotonic() > end:
                raise ExperimentError(
                    f"{self._store.path(item.key)}: a worker has stored {item.label} in {self._shared}, and it is not "
                    "here; `store` of the engine must be this folder, as workers see it"
                )
            time.sleep(0.2)
        return None

    def _failure(self, item: Item, error: BaseException) -> str:
        """Return why an item has no result whose task ended with an error; raise what is no fault of the item."""
        from distributed import KilledWorker

        if not isinstance(error, KilledWorker):
            raise _of_worker(self._engine, error) from None
        reason = _DIED
        died = self._items.get(str(error.task))
        if died is not None and died.key != item.key:  # it died with what it reads
            reason = f"{died.label} failed: {reason}"
        return _given_up(item, self._store, reason)

    def _reconnect(self, lost: int) -> None:
        """Connect again; what the scheduler had in work is sent again under other names.

        A new client does it: one that reconnects by itself stops for good, with an unexpected ValueError, if the
        connection is lost during the TLS handshake.
        """
        self._futures.clear()
        self._round += 1
        if lost > _LOST:
            raise _unreachable(self._engine, ConnectionError(f"the connection was lost {lost} times"))
        end = time.monotonic() + self._engine.patience
        while self._client.status != "running":
            _close(self._client)
            try:
                self._client = _client(self._engine)
            except ExperimentError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
            self.tick()


class _Notice:
    """Asks the scheduler every five seconds for its workers; checks new ones, and says once that there is none.

    Attributes
    ----------
    answers : bool
        False if a connected scheduler did not answer, as one that is stopped does not.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._next, self._since, self._said = 0.0, time.monotonic(), False
        self._seen: set[str] | None = None
        self.answers = True

    def show(self, client: Client) -> None:
        now = time.monotonic()
        if now < self._next or client.scheduler is None:
            return
        self._next = now + 5
        try:
            workers = client.sync(client.scheduler.ncores, callback_timeout=self._engine.patience)
        except TimeoutError as error:
            if client.status != "running":  # it connects again, or ends in a line of its own
                return
            self.answers = False
            raise _unreachable(self._engine, error) from None
        except Exception:  # the connection was lost in between
            return
        new = [name for name in workers if self._seen is not None and name not in self._seen]
        self._seen = set(workers)
        if new:
            _check_versions(client, self._engine, new)
        if workers:
            self._since, self._said = now, False
        elif not self._said and now - self._since >= min(5.0, self._engine.patience):
            self._said = True
            print(f"{self._engine.where} has no worker; waiting for one", file=sys.stderr, flush=True)


def _reads(item: Item) -> tuple[Cell, ...]:
    """Return the cells that an item reads."""
    reads: tuple[Cell, ...] = item.reads if isinstance(item, Cell) else item.needs
    return reads


# ---------------------------------------------------------------- what travels


@dataclass(frozen=True)
class Task:
    """Work sent to a worker.

    Attributes
    ----------
    item : Item
    key : str
        Its key on the launching machine; the worker must find the same.
    limits : CellLimits or None
    store : str or None
        The shared store, ``None`` where results travel.
    token : str
        Of the run: results of another run are not read.
    work : callable or None
        Computes an item that is no cell.
    """

    item: Item
    key: str
    limits: CellLimits | None
    store: str | None
    token: str
    work: Compute | None


@dataclass(frozen=True)
class Answer:
    """Outcome of an item.

    Attributes
    ----------
    item : Item
    reason : str or None
        Why it has no result.
    content : bytes or None
        Its files, see :func:`multilab.cells.packs.pack_cell`.
    digests : dict or None
        Of its files.
    record : dict or None
        Of its failure.
    """

    item: Item
    reason: str | None = None
    content: bytes | None = None
    digests: dict[str, str] | None = None
    record: dict[str, Any] | None = None

    def __sizeof__(self) -> int:
        # Dask asks for the size of results, and would not count the bytes of the cell.
        return 1000 + len(self.content or b"")


def _same(answer: Answer) -> Answer:
    """Return what the launching process had in its store; a task, so that the scheduler can make it again."""
    return answer


def _answer(item: Item, store: Store, shared: str | None, record: dict[str, Any] | None) -> Answer:
    if record:
        return Answer(item, reason=str(record.get("reason") or "failed"), record=record)
    digests = store.digests(item.key)
    return Answer(item, digests=digests, content=None if shared else pack_cell(store, item.key))


def _given_up(item: Item, store: Store, reason: str) -> str:
    if isinstance(item, Cell):
        return give_up(item, store, reason)
    record = {"label": item.label, "parts": item.identity, "status": "failed", "reason": reason, "traceback": reason}
    store.write_failure(item.key, record)
    return reason


# ---------------------------------------------------------------- what a worker does

_children: list[Child] = []
# They guard the list of children, the one cell that is measured alone, and the files that a worker keeps.
_lock, _alone, _keeping = threading.Lock(), threading.Lock(), threading.Lock()


@contextlib.contextmanager
def _naming_host() -> Iterator[None]:
    """Say which worker has a full disk; an OSError that travels is taken for one of the connection."""
    try:
        yield
    except OSError as error:
        raise ExperimentError(f"{socket.gethostname()}: {error}") from None


@_naming_host()
def compute(task: Task, *needs: Answer) -> Answer:
    """Compute an item in a child of this worker."""
    from distributed import get_worker

    worker = get_worker()
    store = Store(task.store) if task.store else Store(_folder(task.token, worker))
    if not store.root.exists():  # the first task of its run
        _sweep(worker)
    item, reads = task.item, {read.key for read in _reads(task.item)}
    for need in needs:
        if task.store is None:
            _keep(need, store)
        if need.reason is not None and need.item.key in reads:
            return _failed(item, store, f"{need.item.label} failed: {need.reason}")
    try:
        reason = _tried(_compute_here, item, task.key, str(store.root), task.limits, task.work)
    except ChildKilled as killed:
        return _failed(item, store, str(killed))
    if reason is None:
        return _answer(item, store, task.store, None)
    return Answer(item, reason=reason, record=store.failure(item.key))


def _failed(item: Item, store: Store, reason: str) -> Answer:
    _given_up(item, store, reason)
    return Answer(item, reason=reason, record=store.failure(item.key))


def _keep(need: Answer, store: Store) -> None:
    """Put what an item reads into the store of this worker.

    A failure that is there is not written again: another cell, which may be looking for it, would miss it meanwhile.
    """
    with _keeping:
        if need.content is not None and not store.has(need.item.key):
            store.put(need.item.key, unpack_cell(need.item.key, need.content))
        elif need.record and store.failure(need.item.key) != need.record:
            store.write_failure(need.item.key, need.record)


@_naming_host()
def _tried(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a child, and once more in another one if the child is killed."""
    for left in reversed(range(_TRIES)):
        try:
            return _in_child(function, *arguments)
        except ChildKilled as killed:
            _check_wanted()
            if not left:
                raise ChildKilled(f"{killed} twice, perhaps out of memory") from None


def _in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a warm child; one that is measured alone, in a fresh one and with no other of its kind."""
    alone = bool(arguments) and isinstance(arguments[0], Cell) and arguments[0].alone
    with _alone if alone else contextlib.nullcontext():
        with _lock:
            child = Child() if alone or not _children else _children.pop()
        try:
            return child.call(function, *arguments, wanted=_wanted())
        finally:
            if alone:
                child.kill()
            elif child.is_alive:
                with _lock:
                    _children.append(child)


def _warm(cell: Cell) -> None:
    """Start the children that this worker lacks, and let them import and load what a cell needs."""
    from distributed import get_worker

    with _lock:
        fresh = [Child() for _ in range(get_worker().state.nthreads - len(_children))]
    for child in fresh:
        child.call(_check_same, cell, cell.key, wanted=_wanted())
    with _lock:
        _children.extend(fresh)


def _wanted() -> Callable[[], bool]:
    """Return what tells whether the task of this thread is still wanted: its client may be gone."""
    from distributed import get_worker
    from distributed.worker import thread_state

    worker, key = get_worker(), thread_state.key

    def wanted() -> bool:
        state = worker.state.tasks.get(key)
        return state is not None and state.state in ("executing", "long-running")

    return wanted


def _check_wanted() -> None:
    if not _wanted()():
        raise RuntimeError("not wanted any more")


def _folder(token: str, worker: Any) -> Path:
    """Return the folder of a run on this worker; it goes with the run, or with the worker."""
    return Path(worker.local_directory) / f"cells-{token}"


def _sweep(worker: Any) -> None:
    """Remove the folders of runs of which this worker has no task: a command that is killed cannot."""
    task_names = " ".join(map(str, list(worker.state.tasks)))
    for folder in Path(worker.local_directory).glob("cells-*"):
        if folder.name.removeprefix("cells-") not in task_names:
            shutil.rmtree(folder, ignore_errors=True)


def _forget(token: str, dask_worker: Any) -> None:
    shutil.rmtree(_folder(token, dask_worker), ignore_errors=True)


# ---------------------------------------------------------------- what the child of a worker does


def _compute_here(item: Item, key: str, root: str, limits: CellLimits | None, work: Compute | None) -> str | None:
    """Compute an item; return why it has no result."""
    _check_same(item, key)
    store = Store(root)
    if work is not None:
        return work(item, store)[1]
    return run_cell_within(item, store, limits) if limits else run_cell(item, store)


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
    ref = item.split_ref if isinstance(item, Cell) else item.cell.split_ref if item.cell else None
    if ref is not None:
        refs = split_refs(ref.dataset, _protocol(ref))
        other_rows = ref.split >= 0 and ref.inner is None and refs[ref.split % len(refs)].digest != ref.digest
        if other_rows or refs[0].dataset_digest != ref.dataset_digest:
            raise ExperimentError(
                f"{socket.gethostname()} has other data of {ref.dataset}; if this is a table of yours, delete its card "
                "and its file in data/own where the worker was started, and start the worker again"
            )


def _protocol(ref: Any) -> dict[str, Any]:
    from multilab.core import parse_json

    return dict(parse_json(ref.protocol))


def search_here(cell: Cell, key: str, plan: Tuning, name: str, journal: bytes) -> tuple[str, bytes]:
    """Search for the best arguments of a cell; return the trials and Optuna's journal, which continues ``journal``."""
    from multilab.cells.running import inner_rows

    _check_same(cell, key)
    with TemporaryDirectory(prefix="multilab-search-") as folder:
        store = Store(folder)
        path = store.journal(name)
        path.parent.mkdir(parents=True)
        if journal:
            path.write_bytes(journal)
        result = plan.search(cell, inner_rows(cell, plan, store), path, None, name)
        return result.trials, result.journal
