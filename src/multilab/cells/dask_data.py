"""Own tables for the workers of a cluster: what ``multilab datasets add`` wrote is sent to where they were started."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import WorkerPlugin

from multilab import datasets
from multilab.cells.errors import ExperimentError
from multilab.core.files import write_atomically
from multilab.datasets.fetching import find_files

if TYPE_CHECKING:
    from distributed import Client

_sent: set[tuple[str, str, str | None]] = set()


class OwnData(WorkerPlugin):
    """Files of a dataset, for every worker: those that start later get them too.

    Parameters
    ----------
    dataset : str
        Another table of this name takes the place of this one for workers that start later.
    files : dict of str to bytes
        By their names in ``data/own``; the card is the last one, so that a worker with a card has all of them.
    """

    def __init__(self, dataset: str, files: dict[str, bytes]) -> None:
        self.name = f"multilab-{dataset}"
        self.files = files

    def setup(self, worker: Any) -> None:
        """Write what is not there; a worker with another table of this name refuses its cells."""
        for name, content in self.files.items():
            path = datasets.own_dir() / name
            if path.exists():
                continue
            try:
                write_atomically(path, content)
            except OSError as error:
                where = f"{socket.gethostname()}: {path.absolute()}"
                raise ExperimentError(f"{where} cannot be written: {error.strerror}") from None


def _files(name: str) -> dict[str, bytes]:
    """Return the files of a dataset by their names next to its card, and the card."""
    card = datasets.card(name)
    paths = {}
    for local_file in find_files(card):  # one from a mirror or a cache gets its place next to the card
        ending = local_file.path.name.removeprefix(Path(local_file.file.path).name)
        paths[local_file.file.path + ending] = local_file.path
    paths |= {path.relative_to(card.location.parent).as_posix(): path for path in card.label_files.values()}
    paths[card.location.name] = card.location
    return {place: path.read_bytes() for place, path in paths.items()}


def send(client: Client, wanted: Iterable[tuple[str, str | None]]) -> None:
    """Send those of the datasets, given with their digests, that are in ``data/own`` to all workers, each once."""
    for name, digest in wanted:
        if datasets.card(name).location.parent.resolve() != datasets.own_dir().resolve():
            continue
        scheduler = client.scheduler_info(n_workers=0)["id"]  # another one has no table, even at the same address
        sent = scheduler, name, digest
        if sent not in _sent:
            client.register_plugin(OwnData(name, _files(name)))
            _sent.add(sent)
