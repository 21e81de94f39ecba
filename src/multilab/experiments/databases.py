"""Trials of a search in a database (an Optuna storage URL), and reading a search that was run before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from multilab.experiments.errors import ExperimentError

__all__ = ["Database", "load_search", "open_database", "safe_url"]


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
        """Return the study of that name, made first if it is not there; trials that a killed search left are failed.

        ``n_trials`` is not used: unlike a journal, a database is not written again for a shorter search.
        """
        storage = _opened(self.url)
        study = optuna.create_study(study_name=name, storage=storage, direction=direction, load_if_exists=True)
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
    kept = _opened(storage) if storage else JournalStorage(JournalFileBackend(str(journal)))
    return optuna.load_study(study_name=name, storage=kept)
