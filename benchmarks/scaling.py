"""What the built-in pool costs next to joblib, and how keys grow with the number of cells.

    python benchmarks/scaling.py [--cells 200] [--repeats 5]

Cells of a few milliseconds (ML-kNN on the toy genes), so that what is measured is what comes around them. Both ways
use two processes and an empty store; the digests of the arrays must agree.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from joblib import Parallel, delayed

from common import Line, arguments, race, show
from multilab.cells.cell import Cell
from multilab.cells.execute import run_cells
from multilab.cells.running import run_cell
from multilab.cells.store import Store
from multilab.experiments.plan import all_cells, study_split_refs
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

    def loky(store: Store) -> None:
        Parallel(n_jobs=2)(delayed(run_cell)(cell, store) for cell in cells)

    def timed(name: str, compute: Callable[[Store], None]) -> dict[str, str]:
        shutil.rmtree(folder / name, ignore_errors=True)
        compute(store := Store(folder / name))
        return digests(store)

    ways = {"pool": pool, "joblib": loky}
    return {name: lambda name=name, way=way: timed(name, way) for name, way in ways.items()}


def same(outputs: dict[str, dict[str, str]], n_cells: int) -> str:
    """Return the outcome of the check that all ways gave the same cells."""
    first, *others = outputs.values()
    equal = len(first) == n_cells and all(other == first for other in others)
    return f"identical arrays of {n_cells} cells" if equal else "DIFFERENT: arrays or number of cells"


def growth(n_columns: int, repeats: int) -> float:
    """Return how much longer the keys of a study with ten times the columns take."""
    studies = {n: cheap_study(n) for n in (n_columns, 10 * n_columns)}
    refs = study_split_refs(studies[n_columns])
    keys = {str(n): lambda study=study: [cell.key for cell in all_cells(study, refs)] for n, study in studies.items()}
    seconds, _ = race(keys, repeats)
    return seconds[str(10 * n_columns)] / seconds[str(n_columns)]


def measure(n_cells: int, repeats: int) -> list[Line]:
    """Race pool and joblib, and measure keys."""
    study = cheap_study(n_cells // 10)
    cells = all_cells(study)
    with TemporaryDirectory(prefix="multilab-bench-") as folder:
        seconds, outputs = race(runners(cells, Path(folder)), repeats)
    check = same(outputs, len({cell.key for cell in cells}))
    grown = growth(n_cells // 2, repeats)
    return [
        Line("built-in pool, per cell", f"{1e3 * seconds['pool'] / len(cells):.1f} ms", check=check),
        Line("joblib (loky, processes kept) to pool", f"{seconds['joblib'] / seconds['pool']:.2f}x"),
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
