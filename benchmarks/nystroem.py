"""Peak memory and time of the Nystroem kernel machine on more rows than a kernel matrix can have.

    python benchmarks/nystroem.py [--rows 50000] [--landmarks 1000]

Simulated documents, as many labels as yahoo-arts. Fit and scores of 3,000 rows, on one thread. What the exact kernel
matrix alone would take is reported with it, and how far the scores are from the exact ones where these can be had: with
as many landmarks on 5,000 of the rows. With all rows as landmarks, a few hundred, they must be the same. What it loses
on real data is the analysis ``nystroem`` of the study.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from common import Line, arguments, show
from elm_path import simulated
from multilab.cells.fit_costs import Meter
from multilab.methods.elm.kernel_elm import KernelELM
from multilab.methods.elm.nystroem_kernel_elm import NystroemKernelELM

MEGABYTES, SOME, FEW = 4096, 5000, 500


def apart(X: np.ndarray, Y: np.ndarray, X_test: np.ndarray, landmarks: int) -> float:
    """Return the root mean square difference of the scores of both machines relative to that of the exact ones."""
    exact = KernelELM().fit(X, Y).decision_function(X_test)
    near = NystroemKernelELM(landmarks, random_state=0).fit(X, Y).decision_function(X_test)
    return float(np.linalg.norm(near - exact) / np.linalg.norm(exact))


def measure(rows: int, landmarks: int, d: int = 462, q: int = 26) -> tuple[Line, str]:
    """Fit and score, and compare on the first rows."""
    X, Y, X_test = simulated(rows, 3000, d, q)
    with threadpool_limits(1):
        with Meter() as meter:
            NystroemKernelELM(landmarks, random_state=0).fit(X, Y).decision_function(X_test)
        same = apart(X[:FEW], Y[:FEW], X_test, FEW)
        difference = apart(X[:SOME], Y[:SOME], X_test, landmarks)
    data = X.nbytes / 2**20
    line = Line(
        f"peak memory of ML-KELM (Nystroem, {landmarks} landmarks) on {rows} x {d}, the data included",
        f"{meter.peak_mb + data:.0f} MiB, of which {data:.0f} are data ({meter.seconds:.0f} s; the kernel matrix: "
        f"{rows**2 * 8 / 2**30:.1f} GiB)",
        f"< {MEGABYTES} MiB",
        meter.peak_mb + data < MEGABYTES,
        agree(same),
    )
    return line, f"{landmarks} landmarks on {min(rows, SOME)} rows: scores {difference:.1e} from the exact ones"


def agree(same: float) -> str:
    """Tell whether scores are the exact ones with all rows as landmarks."""
    return f"{'same' if same < 1e-8 else 'DIFFERENT'} scores to {same:.0e} with all of {FEW} rows as landmarks"


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--landmarks", type=int, default=1000)
    chosen = parser.parse_args(argv)
    line, note = measure(chosen.rows, chosen.landmarks)
    show("Nystroem", [line], [note], chosen.json)


if __name__ == "__main__":
    main()
