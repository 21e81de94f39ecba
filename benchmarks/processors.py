"""How far metrics move when OpenBLAS takes the kernels of another processor: every method, four small real sets.

    python benchmarks/processors.py [--methods mlkelm,olskmddm] [--study lskmddm --datasets scene,yeast]

Each core type computes the same cells in a separate process (``OPENBLAS_CORETYPE``). Printed is, per method, the
largest difference of any metric from the first core type, and in how many cells anything differs by more than 1e-6.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from typing import Any

from common import arguments

DATASETS = ("flags", "emotions", "birds", "chd-49")
CORES = ("Haswell", "SkylakeX", "Zen", "Sandybridge")
MOVED = 1e-6


def numbers(datasets: list[str], methods: list[str], splits: int, study: str | None) -> dict[str, dict[str, float]]:
    """Return the metrics of each (dataset, split, method), computed in this process."""
    import tempfile

    from multilab.cells.cell import Cell, split_refs
    from multilab.cells.cell_metrics import evaluate_cell
    from multilab.cells.conf import load_protocol
    from multilab.cells.method import load_method
    from multilab.cells.running import run_cell
    from multilab.cells.store import Store
    from multilab.experiments.study import load_study

    table = {}
    settings = load_study(study) if study else None
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        for dataset in datasets:
            protocol = settings.protocol_of(dataset) if settings else load_protocol("kfold3")
            for ref, name in itertools.product(split_refs(dataset, protocol)[:splits], methods):
                cell = Cell("train", ref, settings.method(name, dataset) if settings else load_method(name))
                reason = run_cell(cell, store)
                if reason:
                    print(f"{cell.label} failed: {reason}", file=sys.stderr)
                else:
                    table[f"{dataset}/{ref.split}/{name}"] = evaluate_cell(cell, store)
    return table


def deviation(one: dict[str, float], other: dict[str, float]) -> tuple[float, str]:
    """Return the largest difference of a metric between two results, and its name: infinite where one alone is NaN."""
    lost = [(math.inf, name) for name in one if math.isnan(one[name]) != math.isnan(other[name])]
    if lost:
        return lost[0]
    differences = [(abs(one[name] - other[name]), name) for name in one if not math.isnan(one[name])]
    return max(differences, default=(0.0, ""))


def main() -> None:
    """Run the core types one after another and print the table."""
    from multilab.cells.conf import names

    parser = arguments(__doc__)
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--methods", default="all")
    parser.add_argument("--cores", default=",".join(CORES))
    parser.add_argument("--splits", type=int, default=3, help="largest number of splits per set")
    parser.add_argument("--study", help="with the settings and the division of this study")
    parser.add_argument("--here", action="store_true", help=argparse_suppress())
    args = parser.parse_args()
    methods = names("method") if args.methods == "all" else args.methods.split(",")
    if args.here:
        print(json.dumps(numbers(args.datasets.split(","), methods, args.splits, args.study)))
        return
    tables: dict[str, Any] = {}
    for core in args.cores.split(","):
        command = [sys.executable, __file__, "--here", "--datasets", args.datasets, "--methods", ",".join(methods)]
        command += ["--splits", str(args.splits)]
        command += ["--study", args.study] if args.study else []
        done = subprocess.run(
            command, env=os.environ | {"OPENBLAS_CORETYPE": core}, stdout=subprocess.PIPE, text=True, check=True
        )
        tables[core] = json.loads(done.stdout.splitlines()[-1])
    first, *others = args.cores.split(",")
    rows: dict[str, list[Any]] = defaultdict(lambda: [0.0, "", "", 0])
    for core in others:
        for cell, values in tables[core].items():
            if cell not in tables[first]:
                continue
            size, metric = deviation(tables[first][cell], values)
            dataset, split, method = cell.split("/")
            row = rows[method]
            row[3] += size > MOVED
            if size > row[0]:
                row[:3] = size, metric, f"{dataset} {split}, {core}"
    print(f"| method | cells that move by more than {MOVED:g} | largest | metric | where |\n|:---|---:|---:|:---|:---|")
    for method, (size, metric, where, moved) in sorted(rows.items(), key=lambda row: -row[1][0]):
        print(f"| {method} | {moved} | {size:.1e} | {metric} | {where} |")


def argparse_suppress() -> str:
    """Return the mark of an option that help leaves out."""
    import argparse

    return argparse.SUPPRESS


if __name__ == "__main__":
    main()
