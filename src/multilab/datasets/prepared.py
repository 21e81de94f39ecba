"""Prepared datasets: arrays and characteristics, stored below the data folder.

``<data_dir>/prepared/<name>/``, which a stage of DVC writes, or ``<name>-<first 16 digits of the key>/`` holds
``X.npy`` and ``Y.npy`` (``X.npz`` and ``Y.npz`` for CSR), ``named_splits.npz`` and ``meta.json``. The key depends on
everything that decides the content: reader options, checksums of the files, arguments of a generator, named splits, and
the files of this package. Keys of results hold the digest of the content, so that data that are prepared again to the
same content move none. A complete store is renamed to its final name; one whose files do not have the recorded
checksums is rebuilt.

Importing this module, and :func:`prepared_meta`, need neither NumPy nor SciPy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilab.core import read_json
from multilab.core.digests import json_digest, sha256_digest, sha256_digests
from multilab.core.paths import data_dir
from multilab.core.versions import files_digest
from multilab.datasets.card_file import Card
from multilab.datasets.catalogue import card
from multilab.datasets.errors import DatasetError
from multilab.datasets.fetching import ProgressCallback, find_files
from multilab.datasets.file_access import MAX_NAMES_BYTES, Limits, read_bytes

if TYPE_CHECKING:
    from multilab.datasets.dataset import Dataset

_SCHEMA = 1  # raised when the files of a prepared dataset change, so that older ones are made again
_ATTEMPTS = 4
_ORIGINS = ("download", "cache", "local", "mirror")


@dataclass(frozen=True)
class Prepared:
    """Stored dataset.

    Attributes
    ----------
    name, key : str
        Dataset name, and the digest of everything that decides its content.
    path : Path
        Its folder.
    meta : dict
        Content of ``meta.json``: ``digest``, ``instances``, ``features``, ``columns``, ``labels``,
        ``cardinality``, ``density``, ``distinct_label_sets``, ``rows_without_label``,
        ``labels_never_set``, ``unobserved_labels``, ``missing_values``, ``nominal_features``, ``sparse``,
        ``label_names``, ``feature_names``, ``splits`` (names), ``source`` (``mirror``, ``cache``,
        ``download``, ``local`` or ``embedded``), ``name``, ``key``, ``schema``, ``files``.
    content : dict of str to bytes
        The verified content of its other files.
    """

    name: str
    key: str
    path: Path
    meta: dict[str, Any]
    content: dict[str, bytes] = field(repr=False)

    def dataset(self) -> Dataset:
        """Return the dataset."""
        from multilab.datasets.serialisation import from_bytes

        return from_bytes(self.name, self.meta, self.content)


def prepare(name: str, *, progress: ProgressCallback | None = None, as_output: bool = False) -> Prepared:
    """Store a dataset, reading (and fetching) it only if it is not stored yet.

    Parameters
    ----------
    name : str
        Dataset name.
    progress : callable, optional
        See :func:`multilab.datasets.fetching.fetch`.
    as_output : bool, default False
        Whether to store it in ``prepared/<name>``, where DVC expects it, instead of a folder whose name has the key.

    Raises
    ------
    DatasetError
        If files are missing or differ from those of the card, the content differs from what the card expects (the
        message has both), or the data folder cannot be written.

    Examples
    --------
    >>> from multilab.datasets import prepare
    >>> prepare("genes-toy").meta["instances"]
    300
    """
    wanted = card(name)
    if not wanted.available:
        raise DatasetError(f"{name} is not available: {wanted.reason}", wanted.location)
    key = _key(wanted)
    folder = _output(wanted) if as_output else _folder(wanted, key)
    for _ in range(_ATTEMPTS):  # another process may repair the same damaged store at the same moment
        stored = _intact(wanted, key, [folder] if as_output else [_output(wanted), folder])
        if stored is not None:
            return stored
        _store(wanted, key, folder, progress)
    raise DatasetError("the stored dataset does not have the checksums with which it was just written", folder)


def load(name: str, *, progress: ProgressCallback | None = None) -> Dataset:
    """Return a dataset, from the store if it is there.

    Parameters
    ----------
    name : str
        Dataset name, see :func:`multilab.datasets.cards`.
    progress : callable, optional
        See :func:`multilab.datasets.fetching.fetch`.

    Raises
    ------
    DatasetError
        See :func:`prepare`.

    Examples
    --------
    >>> from multilab.datasets import load
    >>> data = load("genes-toy")
    >>> data.X.shape, data.Y.shape, data.label_names[:2]
    ((300, 20), (300, 7), ['division', 'ribosome'])
    """
    return prepare(name, progress=progress).dataset()


def prepared_meta(name: str) -> dict[str, Any] | None:
    """Return the content of ``meta.json`` of a dataset, or None if it is not prepared (any more).

    The function reads only text: it checks that the arrays exist and their sizes; :func:`load` also checks the
    checksums.

    Examples
    --------
    >>> from multilab.datasets import prepare, prepared_meta
    >>> meta = prepare("genes-toy").meta
    >>> prepared_meta("genes-toy")["digest"] == meta["digest"]
    True
    """
    wanted = card(name)
    if not wanted.available:
        return None
    try:
        key = _key(wanted)
    except DatasetError:  # a file without checksum in the card is gone: its store is not current
        return None
    folders = (_output(wanted), _folder(wanted, key))
    return next((meta for folder in folders if (meta := _current_meta(wanted, key, folder))), None)


def _key(wanted: Card) -> str:
    files = [file for file in wanted.files if not file.is_variant]
    own = [file for file in files if not file.addressed]  # the content decides
    sums = [[file.role, file.sha256] for file in files if file.addressed]
    if own:
        sums += [[one.file.role, one.sha256] for one in find_files(replace(wanted, files=tuple(own)))]
    label_files = {key: _names_digest(path) for key, path in wanted.label_files.items()}
    return json_digest(
        {
            "schema": _SCHEMA,
            "reader": {**wanted.reader.given(), **label_files},
            "files": sorted(sums),
            "generator": wanted.generator,
            "splits": wanted.splits,
            "files of the package": files_digest("core", "datasets"),
        }
    )


def _names_digest(path: Path) -> str:
    """Return the digest of the content of a file of label names."""
    return sha256_digest(read_bytes(path, Limits(max_bytes=MAX_NAMES_BYTES)))


def _folder(wanted: Card, key: str) -> Path:
    return data_dir() / "prepared" / f"{wanted.name}-{key[:16]}"


def _output(wanted: Card) -> Path:
    return data_dir() / "prepared" / wanted.name


def _current_meta(wanted: Card, key: str, folder: Path) -> dict[str, Any] | None:
    try:
        meta = read_json(folder / "meta.json")
        sizes = {name: (folder / name).stat().st_size for name in meta["files"]}
        valid = meta["key"] == key and all(sizes[n] == meta["files"][n]["bytes"] for n in sizes)
        valid = valid and meta.pop("seal") == json_digest(meta)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not valid:
        return None
    _check(wanted, meta)
    return meta


def _intact(wanted: Card, key: str, folders: Sequence[Path]) -> Prepared | None:
    """Return the first store whose files all have their checksums."""
    for folder in folders:
        meta = _current_meta(wanted, key, folder)
        if meta is None:
            continue
        try:
            content = {name: (folder / name).read_bytes() for name in meta["files"]}
        except OSError:
            continue
        if sha256_digests(content) == {name: file["sha256"] for name, file in meta["files"].items()}:
            return Prepared(wanted.name, key, folder, meta, content)
    return None


def _check(wanted: Card, meta: dict[str, Any]) -> None:
    """Compare the counts and the digest with those of the card."""
    for what, expected in asdict(wanted.expected).items():
        actual = meta[what]
        tolerance = 5.000001e-5 if what == "cardinality" else 0  # cards have four decimals
        if expected is not None and abs(actual - expected) > tolerance:
            raise DatasetError(f"{wanted.name}: expected {expected} {what}, found {actual}", wanted.location)
    if wanted.digest is not None and meta["digest"] != wanted.digest:
        raise DatasetError(
            f"{wanted.name}: expected the digest {wanted.digest}, found {meta['digest']}", wanted.location
        )


def _store(wanted: Card, key: str, folder: Path, progress: ProgressCallback | None) -> None:
    from multilab.datasets.dataset import build_dataset
    from multilab.datasets.serialisation import to_bytes, write_folder

    files = find_files(wanted, progress=progress)
    paths = {one.file.role: one.path for one in files}
    dataset, description = build_dataset(wanted.name, paths, wanted.reader_options, wanted.generator, wanted.splits)
    _check(wanted, description)
    # DVC compares what its stage writes, which does not depend on where a verified file came from.
    origins = {"cache"} if files and folder == _output(wanted) else {one.origin for one in files}
    content = to_bytes(dataset)
    meta = {
        **description,
        "schema": _SCHEMA,
        "name": wanted.name,
        "key": key,
        "feature_names": dataset.feature_names,
        "label_names": dataset.label_names,
        "splits": sorted(dataset.splits),
        "source": next((origin for origin in _ORIGINS if origin in origins), "embedded"),
        "files": {name: {"bytes": len(content[name]), "sha256": sha} for name, sha in sha256_digests(content).items()},
    }
    meta["seal"] = json_digest(meta)
    content["meta.json"] = json.dumps(meta, indent=1, sort_keys=True).encode()
    try:
        write_folder(folder, content, lambda: _intact(wanted, key, [folder]) is not None)
    except OSError as error:
        raise DatasetError(
            f"the data folder cannot be written ({error.strerror}); set MULTILAB_CACHE to another folder", folder
        ) from None


def dataset_facts(name: str) -> dict[str, Any]:
    """Return the properties of a dataset for a report, from its prepared data."""
    meta = prepared_meta(name) or {}
    left_out = ("label_names", "feature_names", "files")
    return {"name": name, **{key: value for key, value in meta.items() if key not in left_out}}
