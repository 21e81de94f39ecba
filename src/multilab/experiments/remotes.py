"""Remote copies of the store: one file per cell, verified on arrival.

``<remote>/<key>.cell`` is an uncompressed ZIP archive of the files of one cell, written under another name and then
renamed. What is in a remote is not trusted: a cell enters the store only if its files are those that ``DONE`` lists,
with their digests, if its key is the digest of what its record says it was computed from, and if its arrays are plain.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from pathlib import Path
from typing import Any

from multilab.core import json_digest, parse_json
from multilab.core.array_files import check_npz, unpacked_room
from multilab.core.digests import sha256_digest
from multilab.core.text import excerpt
from multilab.experiments.errors import ExperimentError
from multilab.experiments.records import check_record
from multilab.experiments.store import Store

__all__ = ["Remote", "open_remote", "pack_cell", "unpack_cell"]

_END = ".cell"
_PART = ".part-"
_REQUIRED = frozenset({"DONE", "arrays.npz", "config.yaml", "record.json"})
_MAX_FILES = 16  # an archive with more is not a cell, and may be hostile


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


def pack_cell(store: Store, key: str) -> bytes:
    """Return the files of a complete cell as one archive, the same bytes every time."""
    digests = store.digests(key)
    if digests is None:
        raise ExperimentError("damaged in the store; `multilab store clean --yes` removes it")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted([*digests, "DONE"]):
            archive.writestr(zipfile.ZipInfo(name), (store.path(key) / name).read_bytes())
    return buffer.getvalue()


def unpack_cell(key: str, content: bytes) -> dict[str, bytes]:
    """Return the files of a cell from its archive, verified.

    Raises
    ------
    ExperimentError
        With the reason why this is not the cell of that key.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_entries(archive.infolist())
            files = {name: archive.read(name) for name in archive.namelist()}
        digests, record = parse_json(files["DONE"]), parse_json(files["record.json"])
        actual = {name: sha256_digest(data) for name, data in files.items() if name != "DONE"}
        if digests != actual:
            raise ExperimentError("its files are not those that DONE lists")
        if record["key"] != key or json_digest(record["parts"]) != key:
            raise ExperimentError("its record is that of another cell")
        check_record(record)
        _check_arrays(files["arrays.npz"], of_analysis=record["parts"]["kind"] == "analysis")
    except ExperimentError:
        raise
    except Exception as error:  # whatever the readers raise for bytes from anywhere
        reason = f"{type(error).__name__}: {excerpt(str(error))}"
        raise ExperimentError(f"not a complete cell ({reason})") from None
    return files


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    """Refuse an archive with other entries than a cell's: other names, compressed, twice."""
    names = [entry.filename for entry in entries]
    if not set(names) >= _REQUIRED or len(set(names)) < len(names) or len(names) > _MAX_FILES:
        raise ExperimentError("its archive does not have the files of a cell")
    for entry in entries:
        if (
            not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", entry.filename)
            or entry.compress_type != zipfile.ZIP_STORED
        ):
            raise ExperimentError(f"its archive has the entry {entry.filename[:80]!r}")


def _check_arrays(content: bytes, of_analysis: bool) -> None:
    """Refuse arrays that are too large for their file, or, but for an analysis, no scores of rows and labels."""
    arrays = check_npz(content, unpacked_room(len(content)))
    if of_analysis:
        return
    shape, kind = arrays["scores"]
    if len(shape) != 2 or kind.kind not in "fiub":
        raise ExperimentError("its scores are not those of rows and labels")
    for name, (other, of_numbers) in arrays.items():
        if name.partition(".")[0] in ("scores", "decisions") and (other != shape or of_numbers.kind not in "fiub"):
            raise ExperimentError(f"its array {excerpt(name)!r} is not of the shape of its scores")
