"""All metrics of a large prediction at once: sparse truth and decisions, 100,000 x 1,000.

    python benchmarks/metrics.py

The scores are dense (0.8 GB in double precision) and made before the clock starts. A part of the rows is scored again
with dense arguments; all values must be equal to 1e-12.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from common import Line, arguments, show
from multilab.experiments.measuring import Meter
from multilab.metrics import score_all

Prediction = tuple[sp.csr_array, np.ndarray, sp.csr_array]


def prediction(n: int, q: int, seed: int = 0) -> Prediction:
    """Return truth with about five labels a row, scores that know something of it, and decisions."""
    rng = np.random.default_rng(seed)
    rows, columns = np.repeat(np.arange(n), 5), (q * rng.uniform(size=5 * n) ** 2).astype(np.int64)
    Y = sp.csr_array((np.ones(5 * n, dtype=np.uint8), (rows, columns)), shape=(n, q))
    Y.data[:] = 1  # the same label drawn twice
    scores = rng.uniform(size=(n, q))
    entries = Y.tocoo()
    scores[entries.coords] += 0.5
    return Y, scores, sp.csr_array(scores >= 0.999)


def dense_agrees(data: Prediction, rows: int) -> str:
    """Compare the values of the first rows, from sparse and from dense arguments."""
    Y, scores, decisions = data[0][:rows], data[1][:rows], data[2][:rows]
    sparse, dense = score_all(Y, scores, decisions), score_all(Y.toarray(), scores, decisions.toarray())
    return same_values(sparse, dense, f"{rows} rows")


def same_values(one: dict[str, float], other: dict[str, float], what: str) -> str:
    """Compare two results of score_all."""
    wrong = [name for name in one if not np.isclose(one[name], other[name], rtol=1e-12, atol=1e-15, equal_nan=True)]
    return f"DIFFERENT on {what}: {', '.join(wrong)}" if wrong else f"sparse = dense in {len(one)} values on {what}"


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=1000)
    chosen = parser.parse_args(argv)
    data = prediction(chosen.rows, chosen.labels)
    meter: Any = Meter()
    with threadpool_limits(1), meter:
        score_all(*data)
    check = dense_agrees(data, min(chosen.rows, 2000))
    value = f"{meter.seconds:.1f} s, {meter.peak_mb:.0f} MiB besides the arguments"
    line = Line(f"score_all on {chosen.rows} x {chosen.labels}", value, "< 30 s", meter.seconds < 30, check)
    show("Metrics", [line], json_path=chosen.json)


if __name__ == "__main__":
    main()
