"""Time the tuning of all kernel methods of the ML-EKELM study on yahoo-arts: 20 trials on 3 inner folds each.

    MULTILAB_DATA=... python benchmarks/elm_tuning.py [--dataset yahoo-arts] [--trials 20]

Cells as a study makes them, in parallel: search inside the official training set, final fit and scores of the test
set. Nothing is shared between trials but the data: each has another kernel width.
"""

from __future__ import annotations

import os
import resource
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from common import Line, arguments, show
from multilab.cells.cell import Cell, SplitRef, split_refs
from multilab.cells.conf import load_protocol
from multilab.cells.execute import jobs, run_cells
from multilab.cells.method import load_method
from multilab.cells.settings import Tuning
from multilab.cells.store import Store

SECONDS = 300


def tuned_cells(ref: SplitRef, trials: int) -> list[Cell]:
    """Return a tuned cell per kernel method, the longest first."""
    l1 = load_method("mlekelm")
    l21 = replace(l1.with_params({"penalty": "l21"}), name="mlekelm (l21)")
    methods = [l1, l21, load_method("mlkelm"), load_method("mlekelm_rowsparse"), load_method("mlkelm_nystroem")]
    tune = Tuning(n_trials=trials)
    return [Cell("train", ref, method, tune=tune) for method in methods]


def tune(cells: list[Cell], folder: Path, n_jobs: int) -> tuple[float, list[str]]:
    """Run the cells; return the seconds they took together and what is to say of each."""
    store = Store(folder)
    before, began = _processor_seconds(), time.perf_counter()
    failed = run_cells(cells, store, n_jobs)
    taken = time.perf_counter() - began
    if failed:
        raise SystemExit("; ".join(f"{label}: {reason}" for label, reason in failed.items()))
    records = [(cell.method.name, store.record(cell.key)) for cell in cells]
    notes = [f"{name}: {r['tune_seconds']:.0f} s, {best(r['tuned'])}" for name, r in records]
    return taken, [*notes, f"processor time {_processor_seconds() - before:.0f} s"]


def _processor_seconds() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def best(settings: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in settings.items())


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--dataset", default="yahoo-arts")
    parser.add_argument("--trials", type=int, default=20)
    chosen = parser.parse_args(argv)
    if not os.environ.get("MULTILAB_DATA"):
        print(f"no MULTILAB_DATA: tuning on {chosen.dataset} is left out")
        return
    (ref,) = split_refs(chosen.dataset, load_protocol("official"))
    cells = tuned_cells(ref, chosen.trials)
    with TemporaryDirectory(prefix="multilab-bench-") as folder:
        taken, notes = tune(cells, Path(folder), jobs())
    line = Line(
        f"tuning of {len(cells)} kernel methods on {chosen.dataset}, {chosen.trials} trials x 3 folds, {jobs()} jobs",
        f"{taken:.0f} s",
        f"< {SECONDS} s",
        taken < SECONDS,
    )
    show("Tuning of kernel methods", [line], notes, chosen.json)


if __name__ == "__main__":
    main()
