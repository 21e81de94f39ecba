"""Trials of searches: Optuna's journal of each running search, or a database that `tune.storage` names.

A journal holds every trial as it is made. Searches of one cell at the same time write a journal each, so that
they do not count each other's trials; all walk through the same trials, so it does not matter which ends first. What a
killed search finished is carried into the journal of the next.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.storages import RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import TrialState

from multilab.cells.errors import ExperimentError
from multilab.cells.records import is_plain
from multilab.core import locks, parse_json
from multilab.core.locks import RUNNING, owner_of, running_journals

__all__ = [
    "Database",
    "Journal",
    "ended_trials",
    "finished_trials",
    "load_search",
    "open_database",
    "open_journal",
    "safe_url",
]


@dataclass
class Journal:
    """The journal of one running search.

    Attributes
    ----------
    path : Path
        Its file.
    final : Path
        Where a finished search leaves it.
    """

    path: Path
    final: Path

    def study(self, name: str, direction: Literal["minimize", "maximize"], n_trials: int) -> Any:
        """Return an Optuna study in this journal, with up to ``n_trials`` trials of earlier searches of that name."""
        lock: Any = threading.Lock()  # the journal has one writer
        storage = JournalStorage(JournalFileBackend(str(self.path), lock_obj=lock))
        study = optuna.create_study(study_name=name, storage=storage, direction=direction)
        earlier = [finished_trials(self.final, name)]
        taken = []
        for path in running_journals(self.final):
            handle = None if path == self.path else locks.take(path, owner_of(path))
            if handle is not None:
                taken.append((path, handle))
                earlier.append(finished_trials(path, name))
        # All searches walk through the same trials, so the longest contains the others.
        for trial in max(earlier, key=len)[:n_trials]:
            study.add_trial(trial)
        # Only now: until the trials are copied, a kill must not lose them.
        for path, handle in taken:
            path.unlink(missing_ok=True)
            locks.release(handle)
        return study

    def finish(self, name: str, n_trials: int) -> bytes:
        """Move the journal to its final path, unless one with as many trials exists; return its content."""
        content = self.path.read_bytes()
        if len(finished_trials(self.final, name)) < n_trials:
            os.replace(self.path, self.final)
        else:
            self.path.unlink()
        return content

    def discard(self) -> None:
        """Remove the journal of a search without result, so that the next starts from the beginning."""
        self.path.unlink()


@contextmanager
def open_journal(final: Path) -> Iterator[Journal]:
    """Open a new journal; one that is not finished stays for the next search."""
    final.parent.mkdir(parents=True, exist_ok=True)

    path, handle = locks.new(final.with_name(f"{final.stem}."), RUNNING, lambda path: path.touch(exist_ok=False))
    try:
        yield Journal(path, final)
    finally:
        locks.release(handle)


def ended_trials(study: Any) -> list[Any]:
    """Return the trials that ended by themselves: finished, pruned, or failed with an error."""
    return [t for t in study.trials if t.state.name in ("COMPLETE", "PRUNED") or "error" in t.user_attrs]


def finished_trials(path: Path, name: str) -> list[Any]:
    """Return the trials of a study that ended by themselves, finished or failed with an error, in their order.

    A journal may be torn (a full disk, a power cut): it is read up to its last valid line. One that holds no such study
    has no trials, and a trial is left out if its arguments name a class or a file, which the journal of a stranger's
    store may do.
    """
    try:
        backend: Any = _Lines(_valid_lines(path.read_bytes()))
        study = optuna.load_study(study_name=name, storage=JournalStorage(backend))
        return [trial for trial in ended_trials(study) if all(map(is_plain, trial.params.values()))]
    except Exception:  # missing, or valid JSON that is no journal: whatever Optuna makes of it
        return []


def _valid_lines(content: bytes) -> list[dict[str, Any]]:
    """Return the entries of a journal up to the first line that is none."""
    entries: list[dict[str, Any]] = []
    for line in content.splitlines(keepends=True):
        try:
            entry = parse_json(line) if line.endswith(b"\n") else None
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            break
        entries.append(entry)
    return entries


class _Lines:
    """Entries of a journal in memory, to be read by Optuna."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self._entries = entries

    def read_logs(self, log_number_from: int) -> list[dict[str, Any]]:
        return self._entries[log_number_from:]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self._entries += logs


@dataclass
class Database:
    """A database of trials. One search at a time may write to a study in it.

    Attributes
    ----------
    url : str
        Optuna storage URL, ``sqlite:///trials.db``.
    """

    url: str

    def study(self, name: str, direction: Any, n_trials: int) -> Any:
        """Return the study of that name, creating it if necessary; mark trials of a killed search as failed.

        ``n_trials`` is not used: unlike a journal, a database is not written again for a shorter search.
        """
        storage = _opened(self.url)
        study = optuna.create_study(study_name=name, storage=storage, direction=direction, load_if_exists=True)
        # One search at a time writes here, so the search of a running trial was killed.
        for trial in study.get_trials(states=[TrialState.RUNNING]):
            study.tell(trial.number, state=TrialState.FAIL)
        return study

    def finish(self, name: str, n_trials: int) -> bytes:
        """Return the content of the journal: there is none."""
        return b""

    def discard(self) -> None:
        """Leave the database as it is, failed trials with their errors included."""


@contextmanager
def open_database(url: str) -> Iterator[Database]:
    """Open the database that an Optuna storage URL names."""
    yield Database(url)


def _opened(url: str) -> Any:
    try:
        return RDBStorage(url)
    except Exception as error:  # of SQLAlchemy, of a database driver, or of Optuna
        reason = " ".join(str(error).split()).replace(url, safe_url(url)) or type(error).__name__
        raise ExperimentError(f"tune.storage={safe_url(url)} cannot be opened: {reason[:200]}") from None


def safe_url(url: str) -> str:
    """Return a database URL without its password."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url)


def load_search(storage: str | None, journal: Path, name: str) -> Any:
    """Return the Optuna study of a search that was run before, from its database or its journal."""
    backend = _opened(storage) if storage else JournalStorage(JournalFileBackend(str(journal)))
    return optuna.load_study(study_name=name, storage=backend)
