"""All metrics of a large prediction at once, 100,000 x 1,000 with sparse truth; single ones against scikit-learn.

    python benchmarks/metrics.py

The scores are dense (0.8 GB in double precision) and made before the clock starts. A part of the rows is scored again
with dense arguments; all values must be equal to 1e-12. scikit-learn's functions get dense truth, once with many rows
and once with many labels; where it has no function for several labels, a loop takes the mean over labels, as its users
do. The values must be equal to 1e-12. The same functions with weights of the rows are compared with themselves without
weights, and with scikit-learn's with weights. A bootstrap is compared with 100 calls of the function on the rows of
each draw.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from common import Line, arguments, race, show
from multilab import metrics as ours
from multilab.cells.fit_costs import Meter
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


def sklearn_functions() -> dict[str, Callable[..., float]]:
    """Return scikit-learn's functions by our names."""
    from sklearn import metrics as theirs

    def over_labels(function: Callable[..., float], **fixed: Any) -> Callable[..., float]:
        return lambda Y, P, **w: float(np.mean([function(y, p, **fixed, **w) for y, p in zip(Y.T, P.T, strict=True)]))

    return {
        "macro_average_precision": partial(theirs.average_precision_score, average="macro"),
        "micro_average_precision": partial(theirs.average_precision_score, average="micro"),
        "macro_auc": partial(theirs.roc_auc_score, average="macro"),
        "log_loss": over_labels(theirs.log_loss, labels=[0, 1]),
        "brier_score": over_labels(theirs.brier_score_loss),
        "ndcg_at_k": partial(theirs.ndcg_score, k=5),
        "ranking_loss": theirs.label_ranking_loss,
        "average_precision": theirs.label_ranking_average_precision_score,
    }


def against_sklearn(n: int, q: int, repeats: int) -> list[Line]:
    """Time single metrics and scikit-learn's functions on dense truth and probabilities, without and with weights."""
    Y, scores, _ = prediction(n, q)
    truth, P = Y.toarray(), scores / scores.max()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, n)
    lines = []
    for name, theirs in sklearn_functions().items():
        function = ours.registry.ALL_METRICS[name].function
        runners = {
            "multilab": partial(function, truth, P, "sklearn"),
            "sklearn": partial(theirs, truth, P),
            "multilab weighted": partial(function, truth, P, "sklearn", sample_weight=weights),
            "sklearn weighted": partial(theirs, truth, P, sample_weight=weights),
        }
        seconds, values = race(runners, repeats)
        for what in ("", " weighted"):
            ratio = seconds["sklearn" + what] / seconds["multilab" + what]
            same = np.isclose(values["multilab" + what], values["sklearn" + what], rtol=1e-12, atol=0)
            check = "equal values" if same else f"DIFFERENT: {values}"
            text = f"{ratio:.1f} x as fast ({1000 * seconds['multilab' + what]:.0f} ms)"
            lines.append(Line(f"{name}{what} on {n} x {q} against scikit-learn", text, ">= 1 x", ratio >= 1, check))
        slower = seconds["multilab weighted"] / seconds["multilab"]
        claim = f"{name} on {n} x {q} with weights, against without"
        lines.append(Line(claim, f"{slower:.1f} x the time", "<= 2 x", slower <= 2))
    return lines


def bootstraps(n: int, q: int, repeats: int) -> list[Line]:
    """Time 100 draws and 100 calls on resampled rows."""
    Y, scores, _ = prediction(n, q)
    truth, P = Y.toarray(), scores / scores.max()
    lines = []
    for name in ("macro_f1", "ranking_loss", "log_loss", "macro_auc"):
        metric = ours.registry.ALL_METRICS[name]
        given = scores >= 0.9 if metric.needs == "decisions" else P

        def loop(metric: Any = metric, given: np.ndarray = given) -> tuple[float, float]:
            rng = np.random.default_rng(0)
            draws = [rng.integers(0, n, n) for _ in range(100)]
            values = [metric.function(truth[rows], given[rows]) for rows in draws]
            low, high = np.quantile(values, [0.025, 0.975])
            return low, high

        def draws(name: str = name, given: np.ndarray = given) -> tuple[float, float]:
            interval = ours.bootstrap(name, truth, given, n_draws=100, random_state=0)
            return interval.low, interval.high

        seconds, values = race({"multilab": draws, "loop": loop}, repeats)
        ratio = seconds["loop"] / seconds["multilab"]
        same = np.allclose(values["multilab"], values["loop"], rtol=1e-12, atol=0)
        check = "equal intervals" if same else f"DIFFERENT: {values}"
        text = f"{ratio:.1f} x as fast ({1000 * seconds['multilab']:.0f} ms)"
        lines.append(Line(f"bootstrap of {name}, {n} x {q}, 100 draws, against a loop", text, check=check))
    return lines


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args(argv)
    data = prediction(chosen.rows, chosen.labels)
    meter: Any = Meter()
    with threadpool_limits(1), meter:
        score_all(*data)
    check = dense_agrees(data, min(chosen.rows, 2000))
    value = f"{meter.seconds:.1f} s, {meter.peak_mb:.0f} MiB besides the arguments"
    line = Line(f"score_all on {chosen.rows} x {chosen.labels}", value, "< 30 s", meter.seconds < 30, check)
    lines = [line]
    with threadpool_limits(1):
        for n, q in ((20_000, 20), (2_000, 500)):
            lines += against_sklearn(n, q, chosen.repeats)
        lines += bootstraps(2_000, 50, chosen.repeats)
    show("Metrics", lines, json_path=chosen.json)


if __name__ == "__main__":
    main()
