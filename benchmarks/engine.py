"""What the engine dask costs next to the built-in pool, and whether it loses anything when processes die.

    python benchmarks/engine.py [--cells 16] [--disturbed 10] [--folds 10]

A scheduler and two workers with TLS are started on loopback, by the scripts that people use. Cells of a given length
mostly wait, so that what is measured is what comes around them, also on a machine with other work; pool and engine take
turns. The workers have computed a cell before; their start has a line of its own.

A disturbed run is that of the tests: 200 cells, some of which read others, fail, or pass a limit of memory; a worker
is killed, then the other one with its nanny; the connection is cut, and the scheduler killed, and each time the command
is given again.
Half of the runs share a store, in the others cells travel.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from common import CHECKOUT, Line, arguments, show

sys.path.insert(0, str(CHECKOUT / "tests"))

from helpers.dask_cluster import Cluster, certificates, digests, disturbed_run, failures, write_study
from multilab.cells.cell import Cell
from multilab.cells.engines import Engine, using
from multilab.cells.execute import run_cells
from multilab.cells.store import Store
from multilab.experiments.plan import all_cells
from multilab.experiments.study import load_study


def cells_of(seconds: float, n_cells: int) -> list[Cell]:
    """Return cells that take that long."""
    cells = [cell for cell in all_cells(load_study("engine")) if cell.method.name == "slow_0"]
    changed = [
        replace(cell, method=cell.method.with_params({"seconds": seconds, "C": 1.0 + number}))
        for number in range(n_cells)
        for cell in cells[:1]
    ]
    return changed


def ratio(seconds: float, n_cells: int, engine: Engine, folder: Path, repeats: int) -> tuple[float, float, bool]:
    """Return the shortest times of pool and engine for the same cells, and whether their arrays agree."""
    cells, best, found = cells_of(seconds, n_cells), {"pool": 1e9, "dask": 1e9}, {}
    for _ in range(repeats):
        for name in best:
            store = Store(folder / name)
            began = time.perf_counter()
            if name == "pool":
                failed = run_cells(cells, store, n_jobs=2)
            else:
                with using(engine):
                    failed = run_cells(cells, store)
            best[name] = min(best[name], time.perf_counter() - began)
            assert not failed, failed
            found[name] = digests(store.root)
            shutil.rmtree(store.root)
    return best["pool"], best["dask"], found["pool"] == found["dask"] and len(found["pool"]) == n_cells


def overhead(folder: Path, n_cells: int, repeats: int) -> list[Line]:
    """Return what cells of the engine cost next to those of the pool."""
    write_study(folder, seconds=0.0, folds=2, stacks=1, neighbours=1, bad=False)
    with Cluster(folder, certificates(folder / "tls")) as cluster:
        cluster.start_scheduler()
        began = time.perf_counter()
        for _ in range(2):
            cluster.start_worker()
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        tls = {name: str(cluster.tls / f"{name}.pem") for name in ("ca", "cert", "key")}
        engine = Engine("dask", cluster.address, tls=tls)
        with using(engine):
            run_cells(cells_of(0.0, 1), Store(folder / "first"))
            started = time.perf_counter() - began
            run_cells(cells_of(1.0, 6), Store(folder / "warm"))  # imports, data
        lines = [Line("the first cell of workers that start", f"{started:.1f} s", "", None, "")]
        for seconds, goal in ((0.0, None), (1.0, 1.1)):
            pool, dask, equal = ratio(seconds, n_cells, engine, folder, repeats)
            check = f"identical arrays of {n_cells} cells" if equal else "DIFFERENT: arrays or number of cells"
            beyond = 1e3 * (dask - pool) / n_cells
            value = f"{dask / pool:.2f}x ({pool:.1f} s to {dask:.1f} s, {beyond:+.0f} ms per cell)"
            met = None if goal is None else dask / pool <= goal
            lines.append(
                Line(f"engine to pool, cells of {seconds:g} s", value, f"<= {goal}x" if goal else "", met, check)
            )
        return lines


def disturbed(folder: Path, repeats: int, folds: int) -> list[Line]:
    """Return how many disturbed runs had all cells in the end, equal to a serial run."""
    write_study(folder, 0.2, folds, 6, 7, bad=True, limits="{seconds: 60, gigabytes: 1}")
    cluster = Cluster(folder, certificates(folder / "tls"))
    for stage in ("preprocess", "base-scores", "train"):
        cluster.run("study", stage, "--study", "engine", cells="serial", MULTILAB_ENGINE="local")
    expected, reasons = digests(folder / "serial"), failures(folder / "serial")
    lines = []
    for shared in (False, True):
        whole = 0
        for number in range(repeats):
            for event in disturbed_run(cluster, expected, f"cells-{shared}-{number}", shared):
                print(f"  {'shared' if shared else 'travelling'} {number}: {event}", file=sys.stderr, flush=True)
            whole += failures(folder / f"cells-{shared}-{number}") == reasons
        where = "on a shared store" if shared else "travelling"
        total = len(expected) + len(reasons)
        check = f"identical arrays of {len(expected)} cells" if whole == repeats else "DIFFERENT: reasons of failures"
        lines.append(
            Line(f"disturbed runs, {total} cells {where}", f"{whole} of {repeats} complete", "all", None, check)
        )
    return lines


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cells", type=int, default=16, help="cells of each length")
    parser.add_argument("--repeats", type=int, default=3, help="of the times, the best counts")
    parser.add_argument("--disturbed", type=int, default=10, help="disturbed runs with a shared store, and without")
    parser.add_argument("--folds", type=int, default=10, help="of a disturbed run, which has 20 cells per fold")
    chosen = parser.parse_args(argv)
    if chosen.repeats:
        with TemporaryDirectory(prefix="multilab-bench-") as folder:
            lines = overhead(Path(folder), chosen.cells, chosen.repeats)
            os.chdir(CHECKOUT)
        show("Engine: overhead", lines, json_path=chosen.json)
    if chosen.disturbed:
        with TemporaryDirectory(prefix="multilab-bench-") as folder:
            lines = disturbed(Path(folder), chosen.disturbed, chosen.folds)
        show("Engine: disturbed", lines, json_path=chosen.json)


if __name__ == "__main__":
    main()
