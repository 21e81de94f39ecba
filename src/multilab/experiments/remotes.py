"""Remote copies of the store: one file per cell, verified on arrival (see `multilab.cells.packs`).

``<remote>/<key>.cell`` is written under another name and then renamed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from multilab.cells.errors import ExperimentError
from multilab.cells.packs import pack_cell, unpack_cell
from multilab.cells.store import Store
from multilab.core.array_files import unpacked_room

__all__ = ["Remote", "open_remote"]

_END = ".cell"
_PART = ".part-"


class Remote:
    """Cells in a folder of any file system that fsspec knows.

    Parameters
    ----------
    files : AbstractFileSystem
        The file system.
    root : str
        The folder, as that file system writes it.
    name : str
        What messages call it.
    """

    def __init__(self, files: Any, root: str, name: str) -> None:
        self.files, self.root, self.name = files, root.rstrip("/"), name
        self.parts: list[str] = []

    def keys(self) -> set[str]:
        """Return the keys of the cells in the remote; note leftovers of killed transfers."""
        try:
            names = [str(path).rsplit("/", 1)[-1] for path in self.files.ls(self.root, detail=False, refresh=True)]
        except FileNotFoundError:
            return set()
        self.parts = [name for name in names if name.startswith(_PART)]
        return {name.removesuffix(_END) for name in names if re.fullmatch(rf"[0-9a-f]{{64}}{_END}", name)}

    def send(self, store: Store, key: str) -> None:
        """Copy a cell of the store to the remote.

        Raises
        ------
        ExperimentError
            If the cell in the store is damaged.
        """
        content = pack_cell(store, key)
        part = f"{self.root}/{_PART}{key}-{os.urandom(4).hex()}"
        self.files.makedirs(self.root, exist_ok=True)
        self.files.pipe_file(part, content)
        self.files.mv(part, f"{self.root}/{key}{_END}")
        for name in self.parts:
            if name.startswith(f"{_PART}{key}"):
                self.files.rm_file(f"{self.root}/{name}")

    def fetch(self, store: Store, key: str) -> None:
        """Copy a cell of the remote to the store.

        Raises
        ------
        ExperimentError
            If it is not a complete, undamaged cell of this key.
        """
        path = f"{self.root}/{key}{_END}"
        try:
            about = self.files.info(path)
            if about["type"] != "file":
                raise ExperimentError(f"it is no file, but a {about['type']}")
            if about["size"] is not None and about["size"] > unpacked_room(about["size"]):
                raise ExperimentError(f"it has {about['size']} bytes, more than half of the memory")
            content = self.files.cat_file(path)
        except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
            raise ExperimentError(f"it cannot be read ({type(error).__name__})") from None
        store.put(key, unpack_cell(key, content))


def open_remote(address: str | None = None) -> Remote:
    """Return a remote.

    Parameters
    ----------
    address : str, optional
        A folder, an address that fsspec knows (``s3://...``, ``ssh://...``), or the name of a remote of DVC, of which
        the folder ``cells`` is used; default is DVC's default remote.

    Raises
    ------
    ExperimentError
        If there is no such remote.
    """
    if address is not None and "://" not in address and (os.sep in address or Path(address).is_dir()):
        address = f"file://{Path(address).expanduser().resolve().as_posix()}"
    if address is not None and "://" in address:
        from fsspec.core import url_to_fs

        try:
            files, root = url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise ExperimentError(f"{address}: {error}") from None
        return Remote(files, root, address)
    return _dvc_remote(address)


def _dvc_remote(name: str | None) -> Remote:
    from dvc.config import Config, ConfigError, NoRemoteError, RemoteNotFoundError
    from dvc.exceptions import DvcException, NotDvcRepoError
    from dvc.fs import get_cloud_fs
    from dvc.repo import Repo

    advice = "name a folder or an address, or set a remote: dvc remote add -d NAME FOLDER"
    try:
        config = Config(Repo.find_dvc_dir())
        name = name or config["core"].get("remote")
        if not name:
            raise ExperimentError(f"no remote: {advice}")
        kind, settings, path = get_cloud_fs(config, name=name)
        files = kind(**settings)
    except (NotDvcRepoError, NoRemoteError, RemoteNotFoundError):
        raise ExperimentError(f"no remote {name or 'is set'}: {advice}") from None
    except (ConfigError, DvcException) as error:
        raise ExperimentError(f"remote {name}: {' '.join(str(error).split())}") from None
    return Remote(files.fs, f"{path}/cells", f"{name} ({path}/cells)")
