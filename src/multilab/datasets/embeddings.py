"""Columns of text as sentence embeddings by a model in a local folder. Nothing is downloaded.

An embedding reads one cell and learns nothing, so a column becomes numbers (``review[0]``, ``review[1]``, ...) before
anything else happens to a table. New rows have the text; the encoder of a model stores the folder and its digest.

A folder is read only if the user named it, by an option or an argument in this process or in ``MULTILAB_EMBEDDINGS``. A
folder that only a card or the encoder of a model names may be a stranger's.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab.core.files import PathLike
from multilab.core.messages import pip_install, unknown_name
from multilab.core.text import excerpt
from multilab.datasets.errors import DatasetError
from multilab.datasets.table_cells import cell_texts

__all__ = [
    "FOLDERS_VARIABLE",
    "Embedding",
    "check_named",
    "embedded_frame",
    "embedded_rows",
    "embeddings_of",
]

FOLDERS_VARIABLE = "MULTILAB_EMBEDDINGS"
"""Environment variable with the folders of models that cards and saved models may name, separated like ``PATH``."""

_OLDEST = 6  # major version of sentence-transformers: those before run the Python files of a folder
_KIND = "embed:"
_DIGEST = re.compile(r"(.*)#([0-9a-f]{64})", re.DOTALL)
_BATCH = 64  # texts that the model encodes at a time
_PROGRESS = 4 * _BATCH  # texts; fewer take less than two seconds


@dataclass(frozen=True)
class Embedding:
    """Model in a local folder that turns texts into vectors.

    Parameters
    ----------
    folder : str
        Folder of the model.
    digest : str
        Digest of the files in the folder; if empty, they are not checked.

    Examples
    --------
    >>> from multilab.datasets.embeddings import Embedding
    >>> Embedding.parse("embed:/models/small").folder
    '/models/small'
    """

    folder: str
    digest: str = ""

    @classmethod
    def parse(cls, kind: str) -> Embedding:
        """Return the embedding of a kind ``embed:FOLDER``, or ``embed:FOLDER#DIGEST`` as ``str`` writes it."""
        text = kind.strip().removeprefix(_KIND)
        if found := _DIGEST.fullmatch(text):
            return cls(found[1], found[2])
        return cls(os.path.abspath(os.path.expanduser(text)) if text else "")

    def __str__(self) -> str:
        return f"{_KIND}{self.folder}" + (f"#{self.digest}" if self.digest else "")

    def checked(self) -> Embedding:
        """Return the embedding with its digest.

        Raises
        ------
        DatasetError
            If there is no such folder, the user did not name it, or its files do not have the digest.
        """
        if not os.path.isdir(self.folder):
            raise DatasetError(
                f"embed:{self.folder} does not name a folder; give the folder of a model of sentence-transformers"
            )
        if not _is_named(self.folder):
            raise DatasetError(
                f"embed:{excerpt(self.folder, 200)} is named by a file, not by you. If you trust this model, name its "
                f"folder in {FOLDERS_VARIABLE}"
            )
        digest = _digest(self.folder)
        if self.digest not in ("", digest):
            raise DatasetError(
                f"the files in {self.folder} are not those that training had (sha256 {digest[:12]}, not "
                f"{self.digest[:12]}): put the model back, or fit again"
            )
        return replace(self, digest=digest)

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return a row of numbers per text, each different text embedded once.

        Raises
        ------
        DatasetError
            If the package is not installed, the folder holds no model, or its files have changed.
        """
        checked = self.checked()
        model = _model(checked.folder, checked.digest)
        position = {text: k for k, text in enumerate(dict.fromkeys(texts))}
        options = {"batch_size": _BATCH, "show_progress_bar": len(position) > _PROGRESS, "convert_to_numpy": True}
        try:
            rows = np.asarray(model.encode(list(position), **options), dtype=np.float64)
        except Exception as error:  # of any library that computes the vectors
            reason = excerpt(" ".join(str(error).split()), 200)
            raise DatasetError(f"the model in {self.folder} cannot embed the texts: {reason}") from None
        if rows.ndim != 2 or len(rows) != len(position) or not np.isfinite(rows).all():
            raise DatasetError(f"the model in {self.folder} does not give one vector of finite numbers per text")
        return rows[[position[text] for text in texts]]


def embeddings_of(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return the kinds of columns that are embeddings.

    Examples
    --------
    >>> from multilab.datasets.embeddings import embeddings_of
    >>> embeddings_of({"review": "embed:/models/small", "price": "number"})
    {'review': 'embed:/models/small'}
    """
    return {name: kind for name, kind in (columns or {}).items() if kind.strip().startswith(_KIND)}


def check_named(columns: Mapping[str, str] | None) -> None:
    """Refuse kinds of columns, from a card, with a folder that the user did not name or that has changed."""
    for kind in embeddings_of(columns).values():
        Embedding.parse(kind).checked()


_named = set[str]()


def _is_named(folder: str) -> bool:
    listed = filter(None, os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep))
    return os.path.realpath(folder) in {*_named, *map(os.path.realpath, map(os.path.expanduser, listed))}


def _with_digests(embeddings: Mapping[str, str]) -> dict[str, str]:
    """Return kinds with the digests of the folders; the user names these by giving the kinds."""
    _named.update(os.path.realpath(Embedding.parse(kind).folder) for kind in embeddings.values())
    return {name: str(Embedding.parse(kind).checked()) for name, kind in embeddings.items()}


def embedded_rows(rows: pd.DataFrame, embeddings: Mapping[str, str]) -> pd.DataFrame:
    """Return a data frame with columns ``x[0]``, ``x[1]``, ... in the place of a column of text ``x``.

    A missing text is the empty one. A column that is not there is left alone.
    """
    parts = list[pd.DataFrame]()
    for position, name in enumerate(rows.columns):
        if (label := str(name).strip()) in embeddings:
            texts = [text or "" for text in cell_texts(rows.iloc[:, position])]
            numbers = Embedding.parse(embeddings[label]).vectors(texts)
            parts.append(pd.DataFrame(numbers, columns=_names(label, numbers), index=rows.index))
        else:
            parts.append(rows.iloc[:, [position]])
    return pd.concat(parts, axis=1) if set(embeddings) & {str(name).strip() for name in rows.columns} else rows


def embedded_frame(
    rows: Any, columns: Mapping[str, str] | None, name: PathLike
) -> tuple[Any, dict[str, str], dict[str, str]]:
    """Return `embedded_rows` of columns of kind embed, the kinds of the other columns, and the embeddings.

    Raises
    ------
    DatasetError
        If a column does not exist, or see `Embedding.vectors`.
    """
    kinds, embeddings = dict(columns or {}), _with_digests(embeddings_of(columns))
    if not embeddings or not isinstance(rows, pd.DataFrame):
        return rows, kinds, {}
    known = [str(column).strip() for column in rows.columns]
    for column in embeddings:
        if column not in known:
            raise DatasetError(f"columns: {unknown_name('feature column', excerpt(column), known)}", name)
        del kinds[column]
    return embedded_rows(rows, embeddings), kinds, embeddings


def _names(column: str, numbers: np.ndarray) -> list[str]:
    return [f"{column}[{k}]" for k in range(numbers.shape[1])]


def _digest(folder: str) -> str:
    """Return the sha256 of the names and the contents of the files of a folder, hidden ones left out."""
    root = Path(folder)
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    seen = {name: files[name] for name in sorted(files) if not any(part.startswith(".") for part in name.split("/"))}
    states = [(name, path.stat()) for name, path in seen.items()]
    # The kernel's clock ticks every few milliseconds: a file changed just now may be changed again at the same time.
    settled = time.time_ns() - max((state.st_ctime_ns for _, state in states), default=0) > 50_000_000
    read = _digest_once if settled else _digest_once.__wrapped__
    return read(root, tuple((name, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for name, s in states))


@functools.lru_cache(maxsize=4)
def _digest_once(root: Path, states: tuple[tuple[str, int, int, int, int], ...]) -> str:
    sha = hashlib.sha256()
    for name, *_ in states:
        with (root / name).open("rb") as stream:
            sha.update(f"{name}\n{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return sha.hexdigest()


@functools.lru_cache(maxsize=1)
def _model(folder: str, digest: str) -> Any:
    """Return the model of a folder, loaded once while its files stay as they are."""
    try:
        import sentence_transformers
    except ModuleNotFoundError:
        raise DatasetError(
            f"columns of kind embed need sentence-transformers: {pip_install('sentence-transformers')}"
        ) from None
    version = str(getattr(sentence_transformers, "__version__", ""))
    major = version.partition(".")[0]
    if not (major.isdecimal() and int(major) >= _OLDEST):
        raise DatasetError(
            f"columns of kind embed need sentence-transformers {_OLDEST} or later, {version or 'another one'} is "
            "installed: earlier versions run Python files of a model's folder"
        )
    try:
        return sentence_transformers.SentenceTransformer(folder, local_files_only=True)
    except Exception as error:  # of any library that reads the files
        reason = excerpt(" ".join(str(error).split()), 200)
        raise DatasetError(f"{folder} holds no model that sentence-transformers can load: {reason}") from None
