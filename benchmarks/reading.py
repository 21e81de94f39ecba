"""Reading ARFF files into arrays, against liac-arff, and tables, against pandas and pyarrow.

    MULTILAB_DATA=... python benchmarks/reading.py [--rows 1000000]

Files are decompressed first. liac-arff gets each of its documented return types with and without ``encode_nominal``,
and the fastest that yields the same arrays is taken: dense rows as DENSE or DENSE_GEN, sparse rows as COO, LOD or
LOD_GEN, made into an array or CSR matrix in the shortest way we know. Without data, a file like scene's is simulated.

Tables are read by a peer and by ``multilab.datasets.read``, in turn, each time in a process of its own: its CPU time,
which other work on the machine disturbs less than seconds, and its peak memory above that of the imports. The least of
twenty is taken: the first use of memory may cost a virtual machine another 100 ms. The peer of CSV files is
``pandas.read_csv``, that of Parquet files is pyarrow's ``read_table`` with ``to_pandas``; neither checks, classifies or
digests anything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from common import Line, Peers, arguments, peers, race, show
from multilab.datasets import read

COLUMNS, LABELS = 70, 5
READ = """
import hashlib, json, sys, time
import numpy as np
import pandas as pd
import pyarrow.parquet
from multilab.datasets import read
reader, path, labels = sys.argv[1], sys.argv[2], int(sys.argv[3])
def memory(field):
    return int(next(line for line in open("/proc/self/status") if line.startswith(field)).split()[1]) * 1024
open("/proc/self/clear_refs", "w").write("5")
before, start = memory("VmRSS"), time.process_time()
if reader == "multilab":
    table = read(path, labels_last=labels)
else:
    table = pd.read_csv(path) if path.endswith(".csv") else pyarrow.parquet.read_table(path).to_pandas()
seconds, peak = time.process_time() - start, memory("VmHWM") - before
numbers = (table.X if reader == "multilab" else table).iloc[:, :60].to_numpy()
digest = hashlib.sha256(np.ascontiguousarray(numbers[:1000], dtype=float)).hexdigest()
print(json.dumps([seconds, peak, digest]))
"""
SETS = {"scene": ("train", "test"), "enron": ("full",), "medical": ("full",)}


def plain_files(name: str, folder: Path) -> tuple[list[Path], Path]:
    """Write the ARFF files of a set as plain text; return them and the XML file."""
    from multilab.datasets import card
    from multilab.datasets.fetching import find_files
    from multilab.datasets.file_access import read_bytes

    paths = {one.file.role: one.path for one in find_files(card(name))}
    written = []
    for role in SETS[name]:
        path = folder / f"{name}-{role}.arff"
        path.write_bytes(read_bytes(paths[role]))
        written.append(path)
    return written, paths["labels-xml"]


def simulated_file(folder: Path, n: int = 2407, d: int = 294, q: int = 6) -> tuple[list[Path], Path]:
    """Write a dense file of scene's size, and its XML file."""
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(size=(n, d)), rng.uniform(size=(n, q)) < 0.2
    head = [f"@attribute a{j} numeric" for j in range(d)] + [f"@attribute l{j} {{0,1}}" for j in range(q)]
    rows = [",".join([*(f"{v:.6f}" for v in x), *("01"[int(v)] for v in y)]) for x, y in zip(X, Y, strict=True)]
    path, xml = folder / "simulated.arff", folder / "simulated.xml"
    path.write_text("\n".join(["@relation simulated", *head, "@data", *rows, ""]))
    labels = "".join(f'<label name="l{j}"></label>' for j in range(q))
    xml.write_text(f'<labels xmlns="http://mulan.sourceforge.net/labels">{labels}</labels>')
    return [path], xml


def our_matrix(path: Path, xml: Path) -> tuple[Any, np.ndarray]:
    """Return X and Y as multilab reads them."""
    raw = read(path, labels_xml=xml)
    return raw.X, raw.Y


def attributes(path: Path) -> tuple[list[str], bool]:
    """Return the names of all columns of a file, and whether its rows are sparse."""
    import arff

    head, _, body = path.read_text().replace("@DATA", "@data").partition("@data")
    sparse = body.lstrip().startswith("{")
    kind = arff.LOD_GEN if sparse else arff.DENSE_GEN
    return [name for name, _ in arff.loads(f"{head}@data\n", return_type=kind)["attributes"]], sparse


def their_readers(path: Path) -> dict[str, Callable[[], Any]]:
    """Return liac-arff's ways to the complete matrix, features and labels together."""
    import arff

    names, sparse = attributes(path)

    def loaded(kind: int, encode: bool) -> Any:
        with path.open() as stream:
            data = arff.load(stream, encode_nominal=encode, return_type=kind)["data"]
            return list(data) if kind in (arff.DENSE_GEN, arff.LOD_GEN) else data

    def coo(encode: bool) -> sp.csr_array:
        values, rows, columns = loaded(arff.COO, encode)
        return sp.csr_array((np.array(values, dtype=float), (rows, columns)), shape=(max(rows) + 1, len(names)))

    def dictionaries(kind: int, encode: bool) -> sp.csr_array:
        rows = loaded(kind, encode)
        ends = np.cumsum([0, *(len(row) for row in rows)])
        columns = np.fromiter((j for row in rows for j in row), dtype=np.int64, count=ends[-1])
        values = np.array([v for row in rows for v in row.values()], dtype=float)
        return sp.csr_array((values, columns, ends), shape=(len(rows), len(names)))

    def dense(kind: int, encode: bool) -> np.ndarray:
        return np.array(loaded(kind, encode), dtype=float)

    kinds: dict[str, Callable[[bool], Any]] = {
        "COO": coo,
        "LOD": partial(dictionaries, arff.LOD),
        "LOD_GEN": partial(dictionaries, arff.LOD_GEN),
    }
    if not sparse:
        kinds = {"DENSE": partial(dense, arff.DENSE), "DENSE_GEN": partial(dense, arff.DENSE_GEN)}
    return {f"{kind}, encode_nominal={e}": partial(way, e) for kind, way in kinds.items() for e in (False, True)}


def same_arrays(
    ours: tuple[Any, np.ndarray], theirs: Any, names: tuple[list[str], list[str]], columns: list[str]
) -> str:
    """Compare X and Y with the columns of the peer's matrix that have the same names."""
    dense = theirs.toarray() if sp.issparse(theirs) else theirs
    position = {name: j for j, name in enumerate(columns)}
    mine = [ours[0].toarray() if sp.issparse(ours[0]) else ours[0], ours[1]]
    for label, array, wanted in zip("XY", mine, names, strict=True):
        other = dense[:, [position[name] for name in wanted]]
        if array.shape != other.shape or not np.array_equal(array, other):
            return f"DIFFERENT: {label}"
    return f"identical arrays, {len(dense)} x {len(columns)}"


def compare(path: Path, xml: Path, repeats: int) -> tuple[float, float, str, str]:
    """Return our seconds, their seconds, their fastest setting and the check, for one file."""
    ways = their_readers(path)
    once, _ = race(ways, 1)  # find the fastest setting, then measure it side by side
    best = min(once, key=once.__getitem__)
    medians, outputs = race({"ours": lambda: our_matrix(path, xml), "theirs": ways[best]}, repeats)
    raw = read(path, labels_xml=xml)
    columns = attributes(path)[0]
    check = same_arrays(outputs["ours"], outputs["theirs"], (raw.feature_names, raw.label_names), columns)
    return medians["ours"], medians["theirs"], best, check


def against_liac(name: str, folder: Path, repeats: int) -> Line:
    """Return the line of a data set."""
    paths, xml = simulated_file(folder) if name == "simulated" else plain_files(name, folder)
    results = [compare(path, xml, repeats) for path in paths]
    ours, theirs = sum(one[0] for one in results), sum(one[1] for one in results)
    value = f"{theirs / ours:.1f}x ({1e3 * ours:.0f} ms to {1e3 * theirs:.0f} ms, {results[0][2]})"
    checks = [one[3] for one in results]
    check = next((text for text in checks if text.startswith("DIFFERENT")), " and ".join(checks))
    claim = f"liac-arff's time to multilab's on {name}"
    if name in ("scene", "simulated"):
        return Line(claim, value, ">= 3x", theirs >= 3 * ours, check)
    return Line(claim, value, check=check)


def table_file(folder: Path, rows: int, columns: int = COLUMNS, text: bool = False, parquet: bool = False) -> Path:
    """Write a file of numbers and labels; with text, two of the columns hold categories."""
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(rows, columns - LABELS)) * 10).add_prefix("x")
    if text:
        table["x63"] = rng.choice([f"town {k}" for k in range(40)], rows)
        table["x64"] = rng.choice(["red", "blue", "dark green"], rows)
    labels = pd.DataFrame(rng.integers(0, 2, (rows, LABELS))).add_prefix("l")
    table = pd.concat([table, labels], axis=1)
    path = folder / ("table.parquet" if parquet else "table.csv")
    if parquet:
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False, float_format="%.6g")
    return path


def against_peer(path: Path, what: str, repeats: int, at_most: float, memory: float | None = None) -> list[Line]:
    """Return the lines of a table: CPU time to that of the peer; with a goal, peak memory to the size of the file."""
    found: dict[str, list[list[Any]]] = {"peer": [], "multilab": []}
    for _ in range(repeats):
        for reader, results in found.items():
            command = [sys.executable, "-W", "ignore", "-c", READ, reader, str(path), str(LABELS)]
            results.append(json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout))
    (theirs, _, one), (ours, peak, other) = (list(map(min, zip(*found[name], strict=True))) for name in found)
    ratio, size = ours / theirs, peak / path.stat().st_size
    peer = "pandas.read_csv" if path.suffix == ".csv" else "pyarrow"
    check = "identical numbers" if one == other else "DIFFERENT numbers"
    value = f"{ratio:.2f}x ({1e3 * ours:.0f} ms to {1e3 * theirs:.0f} ms)"
    claim = f"CPU time of multilab to that of {peer}, {what}"
    lines = [Line(claim, value, f"<= {at_most}x", ratio <= at_most, check=check)]
    if memory is not None:
        value = f"{size:.2f}x ({peak / 2**20:.0f} MiB)"
        lines.append(Line(f"peak memory to the size of the file, {what}", value, f"<= {memory:g}x", size <= memory))
    return lines


def tables(folder: Path, rows: int, repeats: int) -> list[Line]:
    """Return the lines of all tables."""
    shape = f"{rows} x {COLUMNS}"
    numbers, texts = f"a CSV file of {shape} numbers", f"a CSV file of {shape}, two columns of them text"
    lines = against_peer(table_file(folder, rows), numbers, repeats, 1.3, 3)
    lines += against_peer(table_file(folder, rows, text=True), texts, repeats, 1.5, 3)
    lines += against_peer(table_file(folder, rows, parquet=True), f"a Parquet file of {shape} numbers", repeats, 1)
    wide = table_file(folder, 60, 100_000)
    return lines + against_peer(wide, "a CSV file of 60 x 100000 numbers", min(repeats, 2), 1)


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="of the tables")
    parser.add_argument("--repeats", type=int, default=20)
    chosen = parser.parse_args(argv)
    try:
        notes = [f"liac-arff {peers('liac-arff')['liac-arff']}"]
    except Peers as error:
        raise SystemExit(str(error)) from None
    with TemporaryDirectory() as folder:
        names = list(SETS) if os.environ.get("MULTILAB_DATA") else ["simulated"]
        lines = [against_liac(name, Path(folder), chosen.repeats) for name in names]
        if sys.platform.startswith("linux"):  # whose peak memory can be asked for
            lines += tables(Path(folder), chosen.rows, chosen.repeats)
    show("Reading files", lines, notes, chosen.json)


if __name__ == "__main__":
    main()
