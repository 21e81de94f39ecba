"""Peak memory and time of models of a table that is larger than memory.

    python benchmarks/large_table.py [--rows 10000000] [--columns 50] [--labels 10] [--methods br_sgd,relm]

Made-up rows in float32 with a linear signal and a few missing values, in Parquet files of a million rows in a temporary
folder (`--folder` says where), which is deleted at the end. Each `multilab fit` and `predict` is a process of its own,
from start to end, on one thread. Scores of the rows that were held out must be well above chance.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from common import Line, arguments, machine, show

MEGABYTES = 4096
PER_FILE = 1_000_000
METHODS = (
    "br_sgd",
    "relm:n_hidden=100",
    "elm:n_hidden=100",
    "mlnb_bayes:components=null:generations=0",
    "mlkelm_nystroem:n_components=200:gamma=median",
)  # with the extra arena and MULTILAB_TRUSTED_TYPES=xgboost.core.Booster,xgboost.sklearn.XGBClassifier also xgboost


def write_table(folder: Path, rows: int, columns: int, labels: int) -> None:
    """Write made-up rows as files of a million rows."""
    weights = np.random.default_rng(0).normal(size=(columns, labels)).astype(np.float32)
    for number, start in enumerate(range(0, rows, PER_FILE)):
        random = np.random.default_rng([1, number])
        n = min(PER_FILE, rows - start)
        X = random.standard_normal((n, columns), dtype=np.float32)
        margins = X @ weights + random.standard_normal((n, labels), dtype=np.float32) * columns**0.5
        arrays = {f"x{j}": pa.array(X[:, j]) for j in range(columns)}
        arrays["x0"] = pa.array(X[:, 0], mask=random.random(n) < 0.01)
        arrays |= {f"label_{k}": pa.array(margins[:, k] > columns**0.5) for k in range(labels)}
        parquet.write_table(pa.table(arrays), folder / f"part-{number:03}.parquet", row_group_size=131_072)


def run(command: list[str], folder: Path) -> tuple[float, float, float]:
    """Run a command of multilab; return wall and processor seconds, and peak megabytes."""
    env = {**os.environ, "MLFLOW_TRACKING_URI": f"sqlite:///{folder / 'mlflow.db'}", "OMP_NUM_THREADS": "1"}
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "multilab", *command], cwd=folder, env=env)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"multilab {' '.join(command)} ended with status {status}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure(folder: Path, size: str, method: str, settings: list[str]) -> list[Line]:
    """Fit and score one method."""
    model = folder / f"model-{method}"
    command = ["fit", "--dataset", "table/", "--labels", "label_*", "--method", method, "-o", str(model), *settings]
    wall, seconds, peak = run(command, folder)
    auc = json.loads((model / "metadata.json").read_text())["metrics"]["macro_auc"]["mean"]
    check = f"{'same' if auc > 0.7 else 'DIFFERENT'} order of scores as of labels: macro AUC {auc:.3f}"
    shown = " ".join([method, *settings])
    lines = [_line(f"fit {shown} on {size}", wall, seconds, peak, check)]
    used = run(["predict", str(model), "table/", "-o", "predicted.parquet"], folder)
    rows = parquet.read_metadata(folder / "predicted.parquet").num_rows
    return [*lines, _line(f"predict {rows} rows by {method}", *used)]


def _line(claim: str, wall: float, seconds: float, peak: float, check: str = "") -> Line:
    value = f"{peak:.0f} MiB, {seconds:.0f} s of processor, {wall:.0f} s"
    return Line(claim, value, f"< {MEGABYTES} MiB", peak < MEGABYTES, check)


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--labels", type=int, default=10)
    parser.add_argument("--methods", default=",".join(METHODS), help="methods and their settings, NAME:K=V")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    options = parser.parse_args(argv)
    with TemporaryDirectory(prefix="multilab-large-", dir=options.folder) as scratch:
        folder = Path(scratch)
        (folder / "table").mkdir()
        write_table(folder / "table", options.rows, options.columns, options.labels)
        on_disk = sum(file.stat().st_size for file in (folder / "table").iterdir()) / 2**20
        size = f"{options.rows} x {options.columns}, {options.labels} labels"
        lines = []
        for text in options.methods.split(","):
            method, *settings = text.split(":")
            lines += measure(folder, size, method, [word for one in settings for word in ("--set", one)])
            print(*(f"  {line.claim}: {line.value}" for line in lines[-2:]), sep="\n", flush=True)
        show("large tables", lines, [machine(), f"{on_disk:.0f} MiB of Parquet files"], options.json)


if __name__ == "__main__":
    main()
