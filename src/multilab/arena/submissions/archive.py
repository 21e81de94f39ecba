"""Archives of submissions: one method file, one YAML, the numbers of its cells, and a manifest that binds them.

An archive comes from strangers. It is read into memory under limits; nothing is written under a name from it and
nothing is executed here.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pandas as pd

from multilab.arena.errors import ArenaError
from multilab.core import parse_json
from multilab.core.files import not_a_file

__all__ = ["Manifest", "Submission", "read_submission", "submission_archive"]

SCHEMA = 1
LEVELS = ("L1", "L2")
_CELLS, _SCORES, _MANIFEST = "cells.csv", "scores.csv", "manifest.json"
_COLUMNS = {_CELLS: ["dataset", "split", "key", "digest"], _SCORES: ["dataset", "split", "method", "metric", "value"]}
_LIMITS = {".py": 2**18, ".yaml": 2**16, ".json": 2**18, ".csv": 2**24}  # bytes, by ending
_MAX_ARCHIVE = 2**24
_MAX_FILES = 16
_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")


@dataclass(frozen=True)
class Manifest:
    """Metadata of a submission.

    Attributes
    ----------
    name, study : str
        The method, and the study whose cells it has.
    splits : {"first", "all"}
        Whether the cells are of the first split of each data set or of all splits.
    level : {"L1", "L2"}
        How exactly another machine has to get the numbers: to rounding (closed forms), or to a small tolerance (trees).
    licence, authors : str
    dependencies, distributions : dict of str to str
        Declared versions, and versions of all distributions that the method reaches.
    search_space : dict
        The search space of the method's YAML.
    versions : dict of str to str
        Python, multilab and the libraries in every key.
    machine, commit : str
    files : dict of str to str
        sha256 of each file.
    schema : int
    """

    name: str
    study: str
    splits: str
    level: str
    licence: str
    authors: str
    dependencies: dict[str, str]
    distributions: dict[str, str]
    search_space: dict[str, Any]
    versions: dict[str, str]
    machine: str
    commit: str
    files: dict[str, str] = field(default_factory=dict)
    schema: int = SCHEMA


@dataclass(frozen=True)
class Submission:
    """Content of an archive.

    Attributes
    ----------
    manifest : Manifest
    code, settings : str
        Method file (empty without one) and YAML.
    cells : DataFrame
        Rows (dataset, split, key, digest).
    scores : DataFrame
        Rows (dataset, split, method, metric, value).
    digest : str
        sha256 of the manifest, which holds the sha256 of everything else.
    """

    manifest: Manifest
    code: str
    settings: str
    cells: pd.DataFrame
    scores: pd.DataFrame
    digest: str


def submission_archive(
    manifest: Manifest, code: str, settings: str, cells: pd.DataFrame, scores: pd.DataFrame
) -> bytes:
    """Return the archive of a submission: equal content gives equal bytes."""
    tables = {_CELLS: cells[_COLUMNS[_CELLS]], _SCORES: scores[_COLUMNS[_SCORES]]}
    files = {name: table.to_csv(index=False, lineterminator="\n").encode() for name, table in tables.items()}
    files |= {f"{manifest.name}.py": code.encode()} if code else {}
    files[f"{manifest.name}.yaml"] = settings.encode()
    described = asdict(manifest) | {"files": {name: _sha256(content) for name, content in sorted(files.items())}}
    files[_MANIFEST] = (json.dumps(described, indent=1, sort_keys=True) + "\n").encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def read_submission(path: str | Path) -> Submission:
    """Return a submission from its archive, or from a folder with the same files; refuse anything else.

    Parameters
    ----------
    path : path
        ``submissions/<name>.zip`` or the folder ``submissions/<name>``.

    Raises
    ------
    ArenaError
        In one line: no archive; an entry that no submission has (another folder, a link), or too large; a file that the
        manifest does not name with its sha256; a manifest or table that is not valid.
    """
    path = Path(path)
    files = _folder_files(path) if path.is_dir() else _archive_files(path)
    if _MANIFEST not in files:
        raise ArenaError(f"{path}: {_MANIFEST} is missing")
    manifest = _manifest(path, files[_MANIFEST])
    expected = {*_COLUMNS, f"{manifest.name}.yaml"}
    if set(manifest.files) - {f"{manifest.name}.py"} != expected:
        raise ArenaError(
            f"{path}: {_MANIFEST} names other files than {', '.join(sorted(expected))} and {manifest.name}.py"
        )
    for name in sorted({*files, *manifest.files} - {_MANIFEST}):
        if name not in files:
            raise ArenaError(f"{path}: {name} is missing")
        if manifest.files.get(name) != _sha256(files[name]):
            raise ArenaError(f"{path}: {name} is not the file that the manifest names (another sha256)")
    try:
        code, settings = (files.get(f"{manifest.name}.{end}", b"").decode() for end in ("py", "yaml"))
    except UnicodeDecodeError:
        raise ArenaError(f"{path}: the method file or its YAML is not UTF-8") from None
    cells, scores = (_table(path, name, files[name]) for name in (_CELLS, _SCORES))
    return Submission(manifest, code, settings, cells, scores, _sha256(files[_MANIFEST]))


def _archive_files(path: Path) -> dict[str, bytes]:
    """Return the files of an archive, read under limits."""
    if kind := not_a_file(path):
        raise ArenaError(f"{path}: it is {kind}, not an archive")
    try:
        if path.stat().st_size > _MAX_ARCHIVE:
            raise ArenaError(f"{path}: larger than {_MAX_ARCHIVE >> 20} MiB")
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            _check_count(path, len(entries))
            for entry in entries:
                _check_entry(path, entry.filename, entry.file_size)
                plain = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                is_link = (entry.external_attr >> 16) & 0o170000 == 0o120000
                if not plain or is_link or entry.flag_bits & 1 or names.count(entry.filename) > 1:
                    raise ArenaError(f"{path}: the entry {entry.filename!r} is no plain file, or there twice")
            return {name: _read(path, name, archive) for name in names}
    except FileNotFoundError:
        raise ArenaError(f"{path}: there is no such file") from None
    except ArenaError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise ArenaError(f"{path}: not a readable archive ({type(error).__name__})") from None


def _read(path: Path, name: str, archive: zipfile.ZipFile) -> bytes:
    """Return an entry; the size in its header is not trusted."""
    limit = _LIMITS[Path(name).suffix]
    with archive.open(name) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise ArenaError(f"{path}: {name!r} unpacks to more than {limit >> 10} KiB")
    return content


def _folder_files(path: Path) -> dict[str, bytes]:
    """Return the files of a folder; the stamp of an earlier verification is left out."""
    files = {}
    entries = [entry for entry in sorted(path.iterdir()) if entry.name != "verified.json"]
    _check_count(path, len(entries))
    for entry in entries:
        if entry.is_symlink() or not entry.is_file():
            raise ArenaError(f"{path}: {entry.name[:80]!r} is no plain file")
        _check_entry(path, entry.name, entry.stat().st_size)
        files[entry.name] = entry.read_bytes()
    return files


def _check_count(path: Path, count: int) -> None:
    if count > _MAX_FILES:
        raise ArenaError(f"{path}: {count} files; at most {_MAX_FILES} are read")


def _check_entry(path: Path, name: str, size: int) -> None:
    """Refuse a name that no submission has, and a size above the limit of its kind."""
    fixed = name in (_MANIFEST, *_COLUMNS)
    if not fixed and not re.fullmatch(_NAME.pattern + r"\.(py|yaml)", name):
        raise ArenaError(f"{path}: the entry {name[:80]!r} is none of a submission (NAME.py, NAME.yaml, two tables)")
    limit = _LIMITS[Path(name).suffix]
    if size > limit:
        raise ArenaError(f"{path}: {name!r} unpacks to more than {limit >> 10} KiB")


def _manifest(path: Path, content: bytes) -> Manifest:
    """Return a manifest with the types and the names that it must have."""
    try:
        values = parse_json(content)
    except ValueError:
        raise ArenaError(f"{path}: {_MANIFEST} is not JSON") from None
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        schema = values.get("schema") if isinstance(values, dict) else None
        raise ArenaError(f"{path}: {_MANIFEST} has schema {str(schema)[:20]}, this version reads {SCHEMA}")
    if wrong := sorted({f.name for f in fields(Manifest)} ^ set(values)):
        raise ArenaError(f"{path}: {_MANIFEST}: {wrong[0][:40]!r} is missing or unknown")
    for item in fields(Manifest):
        value = values[item.name]
        kind = {"str": str, "int": int}.get(str(item.type), dict)
        texts = list(value.values()) if isinstance(value, dict) and item.name != "search_space" else []
        if not isinstance(value, kind) or not all(isinstance(text, str) for text in texts):
            raise ArenaError(f"{path}: {_MANIFEST}: {item.name} must be a {item.type}")
    manifest = Manifest(**values)
    for key, pattern in (("name", _NAME.pattern), ("study", r"[A-Za-z0-9][\w-]{0,59}"), ("splits", "first|all")):
        if not re.fullmatch(pattern, getattr(manifest, key)):
            raise ArenaError(f"{path}: {_MANIFEST}: {key} is {getattr(manifest, key)[:40]!r}")
    if manifest.level not in LEVELS:
        raise ArenaError(f"{path}: {_MANIFEST}: level must be {' or '.join(LEVELS)}, got {manifest.level[:40]!r}")
    return manifest


def _table(path: Path, name: str, content: bytes) -> pd.DataFrame:
    """Return a table of an archive with the types of its columns."""
    try:
        table = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False, encoding="utf-8")
        if list(table.columns) != _COLUMNS[name] or not isinstance(table.index, pd.RangeIndex):  # a longer row shifts
            raise ValueError(f"its columns are not {', '.join(_COLUMNS[name])}")
        if "value" in table:
            table["value"] = table["value"].replace("", "nan").map(float)
        return table.astype({"split": "int64"})
    except (ValueError, TypeError, OverflowError) as error:
        raise ArenaError(f"{path}: {name} is not valid: {' '.join(str(error).split())[:120]}") from None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
