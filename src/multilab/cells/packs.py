"""A cell as one file, to travel to a remote or from a worker, verified on arrival.

It is an uncompressed ZIP archive of the files of the cell. What comes from elsewhere is not trusted: a cell enters the
store only if its files are those that ``DONE`` lists, with their digests, if its key is the digest of what its record
says it was computed from, and if its arrays are plain.
"""

from __future__ import annotations

import io
import re
import zipfile

from multilab.cells.errors import ExperimentError
from multilab.cells.records import check_record
from multilab.cells.store import Store
from multilab.core import json_digest, parse_json
from multilab.core.array_files import check_npz, unpacked_room
from multilab.core.digests import sha256_digests
from multilab.core.text import excerpt

__all__ = ["pack_cell", "unpack_cell"]

_REQUIRED = frozenset({"DONE", "arrays.npz", "config.yaml", "record.json"})
_MAX_FILES = 16  # an archive with more is not a cell, and may be hostile


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
