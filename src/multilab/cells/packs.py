"""A cell as one file, to travel from a worker, and the results of a stage as one pack, verified on arrival.

A cell is an uncompressed ZIP archive of its files. What comes from elsewhere is not trusted: a cell enters the store
only if its files are those that ``DONE`` lists, with their digests, if its key is the digest of what its record says it
was computed from, and if its arrays are plain.

A pack is an uncompressed ZIP archive of cells, without what varies between two computations on one machine: seconds,
memory, dates, the journals of searches. Two runs of a study therefore write the same bytes, which DVC versions.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.cells.errors import ExperimentError
from multilab.cells.loaded_code import files_today, reached
from multilab.cells.records import check_record
from multilab.cells.store import Store
from multilab.core import json_digest, parse_json
from multilab.core.array_files import check_npz, unpacked_room
from multilab.core.digests import sha256_digests
from multilab.core.text import excerpt

__all__ = ["pack_cell", "read_pack", "unpack_cell", "write_pack"]

_VARYING = frozenset(
    {
        *("host", "started", "cell_seconds", "fit_seconds", "input_seconds", "tune_seconds", "predict_seconds"),
        *("seconds", "peak_mb", "memory_method", "model_bytes", "traceback"),
    }
)
"""What a record says of one computation, not of its result; a study keeps it in ``measured.csv``."""
_NOT_PACKED = ("DONE", "journal.log", "record.json")
_ENTRY = re.compile(r"([0-9a-f]{64})\.(cell|failed)")
_REQUIRED = frozenset({"DONE", "arrays.npz", "config.yaml", "record.json"})
_MAX_FILES = 16  # an archive with more is not a cell, and may be hostile


def pack_cell(store: Store, key: str) -> bytes:
    """Return the files of a complete cell as one archive, the same bytes every time."""
    return _archive({name: (store.path(key) / name).read_bytes() for name in [*_digests(store, key), "DONE"]})


def write_pack(path: Path, items: Iterable[Any], store: Store) -> None:
    """Write the finished results of a stage, and what is known of failed ones, as one file.

    Parameters
    ----------
    path : Path
        File, replaced at once.
    items : iterable of Cell or Unit
        What the stage computes. Those that are neither finished nor failed are left out.
    store : Store
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part, today = path.with_name(f"{path.name}.{os.getpid()}.tmp"), files_today()
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
            for key, item in sorted({item.key: item for item in items}.items()):
                if store.has(key):
                    archive.writestr(zipfile.ZipInfo(f"{key}.cell"), _packed(item, store, today))
                elif failure := store.failure(key):
                    archive.writestr(zipfile.ZipInfo(f"{key}.failed"), _json(_lasting(failure, item, today)))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_pack(path: Path, store: Store) -> int:
    """Put the results of a pack that a store lacks into it; return their number.

    Raises
    ------
    ExperimentError
        If the file is no pack, or one of its results is not what its name says: see `unpack_cell`. It is named; those
        before it are in the store.
    """
    added = 0
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_pack(entries, path.stat().st_size)
            for entry in entries:
                key, _, kind = entry.filename.partition(".")
                if store.has(key) or (kind == "failed" and store.failure(key)):
                    continue
                _put(store, key, kind, archive.read(entry))
                added += 1
    except ExperimentError as error:
        raise ExperimentError(f"{path}: {error}; remove the file, and `dvc pull` or the study makes it again") from None
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ExperimentError(f"{path}: no pack of results ({type(error).__name__}: {excerpt(str(error))})") from None
    return added


def _check_pack(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse an archive with other entries than results, compressed ones, or entries that overlap."""
    names = [entry.filename for entry in entries]
    for entry in entries:
        if not _ENTRY.fullmatch(entry.filename) or entry.compress_type != zipfile.ZIP_STORED:
            raise ExperimentError(f"it has the entry {excerpt(repr(entry.filename))}, which is no result")
    if len(set(names)) < len(names) or sum(entry.file_size for entry in entries) > size:
        raise ExperimentError("its entries are listed twice, or overlap")


def _put(store: Store, key: str, kind: str, content: bytes) -> None:
    """Verify one result of a pack and store it."""
    try:
        if kind == "cell":
            store.put(key, unpack_cell(key, content))
            return
        record = parse_json(content)
        if not isinstance(record, dict) or json_digest(record.get("parts")) != key or record.get("status") != "failed":
            raise ExperimentError("its record is that of another result")
        check_record(record)
        store.write_failure(key, {**record, "reason": excerpt(str(record.get("reason", "")), 300)})
    except (ExperimentError, ValueError, TypeError) as error:
        raise ExperimentError(f"{key[:12]}: {error}") from None


def _packed(item: Any, store: Store, today: Mapping[str, str | None]) -> bytes:
    """Return a finished result as it is packed."""
    kept = {name: (store.path(item.key) / name).read_bytes() for name in _digests(store, item.key)}
    files = {name: content for name, content in kept.items() if name not in _NOT_PACKED}
    files["record.json"] = _json(_lasting(parse_json(kept["record.json"]), item, today))
    done = sha256_digests(dict(sorted(files.items())))
    return _archive({**files, "DONE": json.dumps(done, indent=1).encode()})


def _lasting(record: Mapping[str, Any], item: Any, today: Mapping[str, str | None]) -> dict[str, Any]:
    """Return a record without what varies between two computations.

    A process has loaded more files than those that its cell can depend on; it may not have loaded all of these.
    """
    kept = {name: value for name, value in record.items() if name not in _VARYING}
    if code := kept.get("code"):
        digests = {file: code.get("files", {}).get(file) or today.get(file) for file in sorted(reached(item))}
        kept["code"] = {**code, "commit": None, "files": {file: value for file, value in digests.items() if value}}
    return kept


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1, sort_keys=True).encode()


def _digests(store: Store, key: str) -> dict[str, str]:
    digests = store.digests(key)
    if digests is None:
        raise ExperimentError("damaged in the store; `multilab store clean --yes` removes it")
    return digests


def _archive(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name])
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
        if digests != sha256_digests({name: data for name, data in files.items() if name != "DONE"}):
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
