"""Peak memory of the cells in a store, from their records.

    python benchmarks/memory.py FOLDER       (e.g. the --cells of benchmarks/pipeline.py)

A record holds how far the resident set rose above its start while the cell was fitted and applied (the kernel's VmHWM).
What a worker already holds then, libraries and a dataset, is measured now and added.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from common import CHECKOUT, Line, arguments, show
from multilab.cells.store import Store

WORKER = """
import multilab.cells.running, sklearn.svm, sklearn.neighbors
from multilab.datasets import load
data = load({dataset!r})
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS:")))
"""


def peaks(cells: Path) -> list[tuple[float, str, str]]:
    """Return (MiB, label, dataset) of the finished cells, the largest first."""
    store = Store(cells)
    records = [store.record(key) for key in store.finished()]
    return sorted(((r["peak_mb"], r["label"], r["dataset"]) for r in records if "peak_mb" in r), reverse=True)


def worker_megabytes(dataset: str) -> float:
    """Return the resident MiB of a worker that has loaded a dataset and not yet begun."""
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WORKER.format(dataset=dataset)]
    return int(subprocess.run(command, env=env, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout) / 1024


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("cells", nargs="?", type=Path, default=Store().root, help="default: the store in use")
    chosen = parser.parse_args(argv)
    ranked = peaks(chosen.cells)
    if not ranked:
        raise SystemExit(
            f"{chosen.cells} has no finished cells; make some with benchmarks/pipeline.py core --cells FOLDER"
        )
    rise, label, dataset = ranked[0]
    total = rise + worker_megabytes(dataset)
    line = Line(
        "peak memory of a cell, the worker's own included", f"{total:.0f} MiB ({label})", "< 4096 MiB", total < 4096
    )
    notes = [f"{len(ranked)} cells; the three that rise most:"]
    notes += [f"  + {megabytes:.0f} MiB {name}" for megabytes, name, _ in ranked[:3]]
    show("Memory", [line], notes, chosen.json)


if __name__ == "__main__":
    main()
