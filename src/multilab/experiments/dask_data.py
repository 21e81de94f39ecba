"""Own tables for the workers of a cluster: what ``multilab datasets add`` wrote is sent to where they were started."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from distributed import WorkerPlugin

from multilab import datasets
from multilab.core.digests import sha256_digest
from multilab.core.files import write_atomically

if TYPE_CHECKING:
    from distributed import Client

_sent: set[tuple[str, str]] = set()


class OwnData(WorkerPlugin):
    """Files of a dataset, for every worker: those that start later get them too.

    Parameters
    ----------
    dataset : str
    files : dict of str to bytes
        By their names in ``data/own``; the card is the last one, so that a worker with a card has all of them.
    """

    idempotent = True

    def __init__(self, dataset: str, files: dict[str, bytes]) -> None:
        self.name = f"multilab-{dataset}-{sha256_digest(b''.join(files.values()))}"
        self.files = files

    def setup(self, worker: Any) -> None:
        """Write what is not there; a worker with another table of this name refuses its cells."""
        for name, content in self.files.items():
            path = datasets.own_dir() / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, content)


def send(client: Client, where: str, names: Iterable[str]) -> None:
    """Send those of the datasets that are in ``data/own`` to all workers of a scheduler, each once in a process."""
    for name in names:
        card, sent = datasets.card(name), (where, name)
        folder = card.location.parent
        if sent in _sent or folder.resolve() != datasets.own_dir().resolve():
            continue
        paths = [*datasets.fetch(name), *card.label_files.values(), card.location]
        files = {os.path.relpath(path, folder): path.read_bytes() for path in paths}
        client.register_plugin(OwnData(name, files))
        _sent.add(sent)
