"""Files of a card: located in the mirror or the local cache, or downloaded from their public address.

Size and sha256 of the decompressed content are verified before it is parsed, whatever its origin.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from multilab.core.digests import sha256_digest
from multilab.core.files import write_atomically
from multilab.core.paths import data_dir
from multilab.datasets.card_file import Card, CardFile
from multilab.datasets.catalogue import card
from multilab.datasets.errors import DatasetError, TooLargeError
from multilab.datasets.file_access import Limits, how_to_fetch, read_bytes

ProgressCallback = Callable[[str, int, int], None]
_PUBLIC = "https://raw.githubusercontent.com"
_ENDINGS = ("", ".xz", ".bz2", ".gz")
_OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}
_CHUNK = 1 << 16  # bytes; the limit of a card and the progress are checked after each
_RETRIED = (429, 502, 503, 504)  # answers of a server that is busy
_PAUSE = 0.5  # seconds; doubled for every attempt after the second
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"PK")
_MOST_FOR_A_MESSAGE = 1 << 28  # bytes read again only to explain a wrong checksum
_OVERHEAD = 1 << 12  # a compressed file may be this much larger than its content


@dataclass(frozen=True)
class FoundFile:
    """A verified file of a card and where it came from: ``mirror``, ``cache``, ``download`` or ``local``."""

    file: CardFile
    path: Path
    origin: str
    sha256: str


def fetch(
    name: str,
    *,
    variants: bool = False,
    copy: bool = False,
    base: str | None = None,
    timeout: float = 30.0,
    progress: ProgressCallback | None = None,
) -> list[Path]:
    """Return the verified files of a dataset, downloading missing ones.

    Files are searched in the folder ``MULTILAB_DATA`` (a mirror with the paths of the card, plain or with ``.xz``,
    ``.bz2`` or ``.gz``), then in ``<data_dir>/raw/<name>/``, then in the folder of the card, and are finally downloaded
    from the public address in the card to ``<data_dir>/raw/<name>/``. A file without a public address is first searched
    in the folder of the card.

    Parameters
    ----------
    name : str
        Dataset name.
    variants : bool, default False
        Whether to include the other editions in the card, which are not read as the dataset.
    copy : bool, default False
        Whether to copy the content of files from elsewhere to ``<data_dir>/raw/<name>/``, which DVC tracks.
    base : str, optional
        Address that replaces https://raw.githubusercontent.com, as ``MULTILAB_DOWNLOAD_BASE`` does.
    timeout : float, default 30
        Seconds without a byte after which a download is aborted.
    progress : callable, optional
        Called as ``progress(path, bytes received, bytes expected)``.

    Returns
    -------
    list of Path
        Paths in the order of the card; empty for a generated dataset.

    Raises
    ------
    DatasetError
        If a file has a wrong size or checksum (the message has both; a wrong download is not stored), an address does
        not answer, or the dataset is not available.

    Examples
    --------
    >>> from multilab.datasets import fetch
    >>> fetch("genes-toy")  # generated, so that there is no file
    []
    """
    files = find_files(card(name), variants=variants, base=base, timeout=timeout, progress=progress)
    return [_copied(name, file) for file in files] if copy else [file.path for file in files]


def find_files(
    wanted: Card,
    *,
    variants: bool = False,
    base: str | None = None,
    timeout: float = 30.0,
    progress: ProgressCallback | None = None,
) -> list[FoundFile]:
    """Return the files of a card with their origin; see :func:`fetch`."""
    if not wanted.available:
        raise DatasetError(f"{wanted.name} is not available: {wanted.reason}")
    base = (base or os.environ.get("MULTILAB_DOWNLOAD_BASE") or _PUBLIC).rstrip("/")
    files = [file for file in wanted.files if variants or not file.is_variant]
    return [_find(wanted, file, base, timeout, progress) for file in files]


def _cached(name: str, file: CardFile) -> Path:
    return data_dir() / "raw" / name / Path(file.path).name


def _copied(name: str, found: FoundFile) -> Path:
    """Return the path of a verified file below the data folder, copied there if it is elsewhere."""
    path = _cached(name, found.file)
    if found.path != path:
        content = _content(found.file, found.path)
        _verified(content, found.file, found.path)
        write_atomically(path, content)
    return path


def _find(wanted: Card, file: CardFile, base: str, timeout: float, progress: ProgressCallback | None) -> FoundFile:
    cached = _cached(wanted.name, file)
    mirror = os.environ.get("MULTILAB_DATA")
    locations = [("mirror", Path(mirror) / file.path)] if mirror else []
    locations += [("cache", cached), ("local", wanted.location.parent / file.path)]
    if not file.addressed:  # your own file: no other folder may hold another one of its name
        locations.insert(0, locations.pop())
    for origin, location in locations:
        for ending in _ENDINGS:
            candidate = location.with_name(location.name + ending)
            if candidate.is_file():
                state = candidate.stat()
                sha = _checksum(file, candidate, (state.st_ino, state.st_size, state.st_mtime_ns))
                return FoundFile(file, candidate, origin, sha)
    if not file.addressed:
        how = next(filter(None, (how_to_fetch(location) for _, location in locations)), "")
        how = how or f"searched: {', '.join(str(location) for _, location in locations)}"
        raise DatasetError(f"{wanted.name}: file {file.path} was not found; {how}")
    url = _address(file, base)
    payload = _download(wanted, file, url, timeout, progress)
    content = _unpacked(payload, file, url)
    sha = _verified(content, file, url, payload)
    write_atomically(cached, content)
    return FoundFile(file, cached, "download", sha)


@functools.lru_cache(maxsize=64)  # a user's file is verified whenever its dataset is looked up
def _checksum(file: CardFile, path: Path, _state: tuple[int, int, int]) -> str:
    """Return the sha256 of a verified file; a file in the same state is not read again."""
    return _verified(_content(file, path), file, path)


def _content(file: CardFile, path: Path) -> bytes:
    """Return the decompressed content; reading stops one byte after the expected size."""
    try:
        return read_bytes(path, Limits() if file.bytes is None else Limits(max_bytes=file.bytes))
    except TooLargeError:
        forms = _both_forms(_bytes_of(path), _content_of(path), file)
        raise DatasetError(f"expected {file.bytes} bytes, found more{forms}", path) from None


def _verified(content: bytes, file: CardFile, location: Path | str, payload: bytes | None = None) -> str:
    """Return the sha256 of the content if size and checksum are those of the card.

    The compressed file, ``payload``, is read from ``location`` if it is None, and only for the error message.
    """
    actual = sha256_digest(content)
    size_is_right = file.bytes is None or len(content) == file.bytes
    if size_is_right and file.sha256 in (None, actual):
        return actual
    if payload is None:
        payload = _bytes_of(location)
    if size_is_right:
        reason = f"expected sha256 {file.sha256}, found {actual}"
    else:
        reason = f"expected {file.bytes} bytes, found {len(content)}"
        complete = file.bytes is not None and len(content) <= file.bytes
        content = content if complete else b""  # reading stopped early: its digest means nothing
    raise DatasetError(reason + _both_forms(payload, content, file), location)


def _both_forms(payload: bytes, content: bytes, file: CardFile) -> str:
    """Return size and sha256 of a compressed file and of its content, for a message; "" if it is not compressed.

    ``content`` is empty if it is not known in full.
    """
    if not payload or payload == content or not (content or payload.startswith(_COMPRESSED)):
        return ""
    packed = sha256_digest(payload)
    inside = f"{len(content)} bytes, sha256 {sha256_digest(content)}" if content else "larger"
    hint = "a card gives those of the content"
    if file.sha256 == packed or file.bytes == len(payload):
        hint = "the card gives those of the compressed file, it must give those of the content"
    return f" (content: {inside}; compressed file: {len(payload)} bytes, sha256 {packed}; {hint})"


def _bytes_of(location: Path | str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError:
        return b""


def _content_of(path: Path) -> bytes:
    """Return the content of a compressed file, or nothing if it is too large for a message."""
    try:
        return read_bytes(path, Limits(max_bytes=_MOST_FOR_A_MESSAGE))
    except DatasetError:
        return b""


def _address(file: CardFile, base: str) -> str:
    if file.url is not None:
        return file.url
    assert file.repository is not None
    assert file.source is not None
    owner_and_name = file.repository.removeprefix("https://github.com/")
    return f"{base}/{owner_and_name}/{file.commit}/{quote(file.source)}"


def _download(wanted: Card, file: CardFile, url: str, timeout: float, progress: ProgressCallback | None) -> bytes:
    import urllib3  # here, so that the keys of prepared data are computed without it

    assert file.bytes is not None
    limit = file.archive_bytes if file.member and file.archive_bytes else file.bytes + _OVERHEAD
    # The server does not decide how long we wait, and its last answer is shown.
    retries = urllib3.Retry(
        total=4,
        connect=1,
        read=1,
        status_forcelist=_RETRIED,
        backoff_factor=_PAUSE,
        respect_retry_after_header=False,
        raise_on_status=False,
    )
    buffer = io.BytesIO()
    try:
        with _connections(url) as pool:
            answer = pool.request(
                "GET",
                url,
                headers={"User-Agent": "multilab"},
                timeout=timeout,
                retries=retries,
                preload_content=False,
            )
            if answer.status != 200:
                raise DatasetError(f"the server answered {answer.status} {answer.reason}", url)
            for chunk in answer.stream(_CHUNK, decode_content=False):
                buffer.write(chunk)
                if buffer.tell() > limit:
                    raise DatasetError(
                        f"more than the {limit} bytes that the card allows were sent; nothing is stored", url
                    )
                if progress is not None:
                    progress(file.path, buffer.tell(), file.archive_bytes or file.bytes)
    except (OSError, urllib3.exceptions.HTTPError) as error:
        why = getattr(error, "reason", None) or error
        raise DatasetError(
            f"{wanted.name}: could not be downloaded ({why}). Connect to the network, or set MULTILAB_DATA "
            f"to a folder that holds {file.path}",
            url,
        ) from None
    return buffer.getvalue()


def _connections(url: str) -> Any:
    """Return urllib3's connections to an address, through the proxy that the environment names for it, if any."""
    from urllib.request import getproxies, proxy_bypass

    import urllib3

    address = urlsplit(url)
    proxy = None if proxy_bypass(address.netloc) else getproxies().get(address.scheme)
    return urllib3.ProxyManager(proxy) if proxy else urllib3.PoolManager()


def _unpacked(payload: bytes, file: CardFile, url: str) -> bytes:
    """Return the content of a download: one member of an archive, or the decompressed file."""
    assert file.bytes is not None
    opener = _OPENERS.get(Path(file.source or file.url or "").suffix)
    if file.member is None and opener is None:
        return payload
    most = file.bytes + 1  # one byte more shows that it is too large, however much would follow
    try:
        if file.member is None:
            assert opener is not None
            with opener(io.BytesIO(payload)) as stream:
                return stream.read(most)
        with zipfile.ZipFile(io.BytesIO(payload)) as archive, archive.open(file.member) as stream:
            return stream.read(most)
    except KeyError:
        raise DatasetError(f"the archive has no member {file.member!r}", url) from None
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError) as error:
        raise DatasetError(f"the compressed file is damaged ({error})", url) from None
