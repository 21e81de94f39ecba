"""What a worker costs next to the built-in pool and to joblib, and how keys and store grow with the number of cells.

    python benchmarks/scaling.py [--cells 200] [--repeats 5]

Cells of a few milliseconds (ML-kNN on the toy genes), so that what is measured is what comes around them. All three
ways use two processes and an empty store; the digests of the arrays must agree.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from joblib import Parallel, delayed

from common import Line, arguments, race, show
from multilab.experiments.cells import Cell
from multilab.experiments.execute import run_cells
from multilab.experiments.plan import all_cells, study_split_refs
from multilab.experiments.running import run_cell
from multilab.experiments.sharing import Leases, run_shared
from multilab.experiments.store import Store
from multilab.experiments.study import Study, study_from


def cheap_study(n_columns: int) -> Study:
    """Return a study of ML-kNN on ten folds, a column per number of neighbours."""
    settings = [{"methods": ["mlknn"], "set": {"k": k + 1}} for k in range(n_columns)]
    variants = {f"k{i}": {"methods": ["mlknn"], "settings": [block]} for i, block in enumerate(settings)}
    base = {"datasets": ["genes-toy"], "methods": [], "protocol": "kfold10"}
    return study_from("scaling", {**base, "variants": variants})


def digests(store: Store) -> dict[str, str]:
    """Return the digest of the arrays of every cell."""
    return {key: (store.digests(key) or {})["arrays.npz"] for key in store.finished()}


def runners(cells: list[Cell], folder: Path) -> dict[str, Callable[[], dict[str, str]]]:
    """Return what computes the cells in an empty store, by name."""

    def pool(store: Store) -> None:
        run_cells(cells, store, n_jobs=2)

    def worker(store: Store) -> None:
        run_shared(cells, store, n_jobs=2)

    def loky(store: Store) -> None:
        Parallel(n_jobs=2)(delayed(run_cell)(cell, store) for cell in cells)

    def timed(name: str, compute: Callable[[Store], None]) -> dict[str, str]:
        shutil.rmtree(folder / name, ignore_errors=True)
        compute(store := Store(folder / name))
        return digests(store)

    ways = {"pool": pool, "worker": worker, "joblib": loky}
    return {name: lambda name=name, way=way: timed(name, way) for name, way in ways.items()}


def same(outputs: dict[str, dict[str, str]], n_cells: int) -> str:
    """Return the outcome of the check that all ways gave the same cells."""
    first, *others = outputs.values()
    equal = len(first) == n_cells and all(other == first for other in others)
    return f"identical arrays of {n_cells} cells" if equal else "DIFFERENT: arrays or number of cells"


def lease_cost(folder: Path, n_keys: int = 500) -> float:
    """Return the seconds of acquiring and releasing a lease."""
    leases = Leases(Store(folder / "leases"), 600.0)
    began = time.perf_counter()
    for number in range(n_keys):
        lease = leases.acquire(f"{number:064x}")
        assert lease is not None
        leases.release(lease)
    return (time.perf_counter() - began) / n_keys


def growth(n_columns: int, repeats: int) -> float:
    """Return how much longer the keys of a study with ten times the columns take."""
    studies = {n: cheap_study(n) for n in (n_columns, 10 * n_columns)}
    refs = study_split_refs(studies[n_columns])
    keys = {str(n): lambda study=study: [cell.key for cell in all_cells(study, refs)] for n, study in studies.items()}
    seconds, _ = race(keys, repeats)
    return seconds[str(10 * n_columns)] / seconds[str(n_columns)]


def measure(n_cells: int, repeats: int) -> list[Line]:
    """Race worker, pool and joblib, and measure leases and keys."""
    study = cheap_study(n_cells // 10)
    cells = all_cells(study)
    with TemporaryDirectory(prefix="multilab-bench-") as folder:
        seconds, outputs = race(runners(cells, Path(folder)), repeats)
        lease = lease_cost(Path(folder))
    check = same(outputs, len({cell.key for cell in cells}))
    ratios = {name: seconds[name] / seconds["pool"] for name in ("worker", "joblib")}
    beyond = (seconds["worker"] - seconds["pool"]) / len(cells)
    grown = growth(n_cells // 2, repeats)
    return [
        Line("built-in pool, per cell", f"{1e3 * seconds['pool'] / len(cells):.1f} ms"),
        Line("worker to pool", f"{ratios['worker']:.2f}x, {1e3 * beyond:+.1f} ms per cell", check=check),
        Line("joblib (loky, processes kept) to pool", f"{ratios['joblib']:.2f}x"),
        Line("a lease, acquired and released", f"{1e3 * lease:.2f} ms"),
        Line(f"keys of {50 * n_cells} to {5 * n_cells} cells", f"{grown:.1f}x", "<= 15x", grown <= 15),
    ]


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cells", type=int, default=200, help="number of cells, a multiple of 10")
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args(argv)
    show("Scaling out", measure(chosen.cells, chosen.repeats), json_path=chosen.json)


if __name__ == "__main__":
    main()
