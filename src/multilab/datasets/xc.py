"""Reader of the format of the Extreme Classification repository."""

from __future__ import annotations

from collections.abc import Sequence

from multilab.core.files import PathLike
from multilab.datasets.errors import DatasetError
from multilab.datasets.file_access import Limits, decode, read_bytes
from multilab.datasets.raw_data import RawData
from multilab.datasets.svmlight import parse_sparse_rows, require_labels


def read_xc(
    path: PathLike,
    label_names: Sequence[str] | None = None,
    limits: Limits | None = None,
    encoding: str | None = None,
) -> RawData:
    """Read a file ``n d q`` followed by n lines ``label,label feature:value feature:value ...``.

    Parameters
    ----------
    path : path-like
        The file. Labels and features count from 0; a row may have no label or nothing at all (an empty line).
    label_names : sequence of str, optional
        Names of the q labels, default ``0``, ``1``, ...
    limits : Limits, optional
        Upper bounds of sizes; ``max_columns`` also bounds the labels, ``max_cells`` a dense label matrix only.
    encoding : str, optional
        See :func:`multilab.datasets.file_access.decode`.

    Returns
    -------
    RawData
        ``X`` is CSR, and ``Y`` too where it has more than 2^24 entries; features are called ``f1``, ``f2``, ...

    Raises
    ------
    DatasetError
        With its line: no or absurd sizes, fewer or more rows than announced, and what
        :func:`multilab.datasets.svmlight.parse_sparse_rows` finds.
    """
    limits = limits or Limits()
    lines = decode(read_bytes(path, limits), path, encoding).split("\n")
    sizes = lines[0].split()
    if len(sizes) != 3 or not all(s.isascii() and s.isdecimal() and len(s) < 16 for s in sizes):
        table = "; a table of named columns is read with format=csv" if set(lines[0]) & set("\t,;") else ""
        raise DatasetError(f"expected the numbers of rows, features and labels{table}", path, 1)
    n, d, q = map(int, sizes)
    if min(n, d, q) < 1:
        raise DatasetError(f"{n} rows, {d} features and {q} labels are announced", path, 1)
    if d + q > limits.max_columns:
        raise DatasetError(f"{d + q} columns are announced, the limit is {limits.max_columns}", path, 1)
    if not lines[-1]:
        lines.pop()  # the end of the last line; further empty lines are rows, as far as n goes
    while len(lines) > n + 1 and not lines[-1].strip():
        lines.pop()
    if len(lines) != n + 1:
        raise DatasetError(f"{n} rows are announced, the file has {len(lines) - 1}", path, 1)
    require_labels(n, q, path, limits)
    names = [str(k) for k in range(q)] if label_names is None else label_names
    if len(names) != q:
        raise DatasetError(f"{len(names)} label names for {q} labels", path, 1)
    rows = parse_sparse_rows(((i, line.rstrip()) for i, line in enumerate(lines[1:], 2)), path)
    return rows.to_raw((d, q), (0, 0), names)
