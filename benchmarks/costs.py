"""Cost curves of the methods that `multilab compare` fits: seconds and memory by rows, features and labels.

  python benchmarks/costs.py --measure     fit every method on synthetic tables; appends to benchmarks/costs.csv
  python benchmarks/costs.py               fit the curves, print how far they are off, write the table of the package

A curve is log(cost) = a + b log n + c log d + e log q with exponents >= 0, by least squares over the medians of
``costs.csv`` (synthetic tables, a fresh process per fit, processor time) and, for methods with the settings of the
portfolio, of ``reports/*/measured.csv`` (real data; several cells were fitted at the same time, so that these seconds
contain load: a factor that the fit estimates per method and the table leaves out).
How far off: each data set in turn is left out of the fit and estimated.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import lsq_linear

from common import CHECKOUT, Line, arguments, machine, show
from multilab.cells.cell import Cell, SplitRef
from multilab.cells.fitting import fit_on_rows
from multilab.cells.running import estimator_of_cell
from multilab.comparison.plan import TABLE
from multilab.comparison.portfolio import load_portfolio

MEASURED = CHECKOUT / "benchmarks" / "costs.csv"
COLUMNS = ["method", "dataset", "n", "d", "q", "seconds", "megabytes"]
LIMIT = 120.0
# Rows, features and labels vary independently; the largest designs come last, so that a curve exists early.
DESIGNS = [(300, 20, 5), (300, 200, 30), (1000, 20, 30), (1000, 300, 5), (5000, 30, 10), (600, 100, 100)]
DESIGNS += [(2000, 60, 15), (2000, 30, 120), (3000, 1000, 10), (20000, 20, 5), (8000, 100, 40)]
# Studies whose columns have the portfolio's settings; `input_seconds` are cells of their own.
STUDIES = {
    "decisions": ["br_logistic", "cc_logistic", "erf_pct", "rakel", "ecc", "mlknn"],
    "mlwse": ["br", "eps", "mlwse_l1", "adaboost_mh-boostexter"],
    "imldf": ["rf_pct", "mldf"],
}
BOUNDS = ([-np.inf, 0, 0, 0, 0], [np.inf, 3, 2, 2, 3])


def main() -> None:
    """Measure, or fit and write the table."""
    parser = arguments(__doc__)
    parser.add_argument("--measure", action="store_true", help="fit the methods on synthetic tables first")
    parser.add_argument("--methods", help="only these, comma-separated")
    options = parser.parse_args()
    if options.measure:
        measure(options.methods.split(",") if options.methods else None)
    points = pd.concat([from_reports(), pd.read_csv(MEASURED)], ignore_index=True)
    table = pd.DataFrame([fitted(name, rows) for name, rows in points.groupby("method", sort=True)])
    table.to_csv(TABLE, index=False, float_format="%.4g", lineterminator="\n")
    lines = [
        Line(
            f"{row.method}: n^{row.seconds_n:.2f} d^{row.seconds_d:.2f} q^{row.seconds_q:.2f}, {row.points} sets",
            f"half of the left-out estimates within a factor {row.factor:.1f}, nine of ten within {row.factor90:.1f}",
        )
        for row in table.itertuples()
    ]
    show("Cost curves", lines, json_path=options.json)


def measure(names: list[str] | None) -> None:
    """Fit each method on each design in a fresh process; a fit over the limit ends the larger designs of the method."""
    done = pd.read_csv(MEASURED) if MEASURED.is_file() else pd.DataFrame(columns=COLUMNS)
    over = set(done.loc[done["seconds"].isna(), "method"])
    context = multiprocessing.get_context("fork")
    members = [c for c in load_portfolio().select(None) if names is None or c.name in names]
    for (n, d, q), member in product(DESIGNS, members):
        dataset = f"synthetic-{n}-{d}-{q}"
        if member.name in over or ((done["method"] == member.name) & (done["dataset"] == dataset)).any():
            continue
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_fit, args=(member.method, n, d, q, theirs))
        process.start()
        theirs.close()
        seconds, megabytes = ours.recv() if ours.poll(LIMIT) else (np.nan, np.nan)
        process.kill()
        process.join()
        print(f"{member.name:<20}{dataset:<24}{seconds:9.3f} s{megabytes:9.1f} MB", flush=True)
        row = pd.DataFrame([[member.name, dataset, n, d, q, seconds, megabytes]], columns=COLUMNS)
        row.to_csv(MEASURED, mode="a", index=False, header=not MEASURED.is_file(), float_format="%.5g")
        if np.isnan(seconds):
            over.add(member.name)
    print(machine())


def _fit(method: Any, n: int, d: int, q: int, connection: Any) -> None:
    """Fit on n synthetic rows, score a quarter as many, and send seconds and megabytes."""
    from sklearn.datasets import make_multilabel_classification
    from sklearn.preprocessing import StandardScaler

    X, Y = make_multilabel_classification(n + n // 4, d, n_classes=q, n_labels=3, allow_unlabeled=True, random_state=0)
    noise = np.random.default_rng(0)
    X = StandardScaler().fit_transform(X + noise.random(X.shape))  # counts alone would have few distinct values
    if method.base_scores:
        X = 0.5 * noise.random((len(X), len(method.base_scores) * q)) + 0.5 * np.tile(Y, len(method.base_scores))
    cell = Cell("train", SplitRef("synthetic", f"{n}-{d}-{q}", "{}", 0, "0"), method)
    began = time.process_time()
    fit = fit_on_rows(estimator_of_cell(cell), X[:n], Y[:n], X[n:])
    seconds = time.process_time() - began
    connection.send((seconds, fit.costs()["peak_mb"]))


def from_reports() -> pd.DataFrame:
    """Return the medians over splits of the committed measurements, with the number of training rows."""
    frames = []
    for study, methods in STUDIES.items():
        folder = CHECKOUT / "reports" / study
        measured = pd.read_csv(folder / "measured.csv")
        measured = measured[measured["method"].isin(methods)].drop_duplicates(["dataset", "method", "fit_seconds"])
        facts = {card["name"]: card for card in json.loads((folder / "datasets.json").read_text())}
        share = {name: train_share(study, name) for name in facts}
        measured["seconds"] = measured["fit_seconds"] + measured["predict_seconds"]
        medians = measured.groupby(["method", "dataset"], as_index=False)["seconds"].median()
        medians["method"] = medians["method"].str.partition("-")[0]
        medians["n"] = [share[name] * facts[name]["instances"] for name in medians["dataset"]]
        medians["d"] = [facts[name]["features"] for name in medians["dataset"]]
        medians["q"] = [facts[name]["labels"] for name in medians["dataset"]]
        frames.append(medians.assign(megabytes=np.nan))
    return pd.concat(frames)[COLUMNS]


def train_share(study: str, dataset: str) -> float:
    """Return the share of training rows of a study's protocol: folds, hold-out, or one half for a published split."""
    from multilab.experiments.study import load_study

    protocol = load_study(study).protocol_of(dataset)
    if "kfold" in protocol:
        return 1 - 1 / protocol["kfold"]
    size = protocol.get("holdout", {}).get("train_size", 0.5)
    numerator, _, denominator = str(size).partition("/")
    return float(numerator) / float(denominator or 1)


def fitted(name: str, points: pd.DataFrame) -> dict[str, Any]:
    """Return the curve of a method, the sizes that it was fitted on, and the factors by which left-out sets are off."""
    timed = points.dropna(subset="seconds")
    weighed = timed.dropna(subset="megabytes")
    seconds = curve(timed, "seconds")
    memory = curve(weighed, "megabytes")
    errors = []
    for dataset in timed["dataset"].unique():
        rest, left_out = timed[timed["dataset"] != dataset], timed[timed["dataset"] == dataset]
        if len(rest) > 3:
            errors += list(np.abs(design(left_out) @ curve(rest, "seconds") - logs(left_out, "seconds")))
    names = ("log", "n", "d", "q")  # without the load
    return {
        "method": name,
        **{f"seconds_{key}": value for key, value in zip(names, seconds, strict=False)},
        **{f"megabytes_{key}": value for key, value in zip(names, memory, strict=False)},
        "factor": float(np.exp(np.median(errors))),
        "factor90": float(np.exp(np.quantile(errors, 0.9))),
        "points": len(timed),
        "n_largest": int(timed["n"].max()),
        "d_largest": int(timed["d"].max()),
        "q_largest": int(timed["q"].max()),
    }


def design(points: pd.DataFrame) -> np.ndarray:
    """Return the columns 1, log n, log d, log q, and 1 for real data, whose seconds contain load."""
    loaded = ~points["dataset"].str.startswith("synthetic")
    return np.column_stack([np.ones(len(points)), *(np.log(points[name]) for name in "ndq"), loaded])


def logs(points: pd.DataFrame, column: str) -> np.ndarray:
    """Return the logarithms of seconds, at least a millisecond, or of megabytes, at least one."""
    return np.log(np.maximum(points[column], {"seconds": 1e-3, "megabytes": 1.0}[column]))


def curve(points: pd.DataFrame, column: str) -> np.ndarray:
    """Return log a, the exponents of n, d and q, and the logarithm of the load; all but the first not negative."""
    return lsq_linear(design(points), logs(points, column), BOUNDS).x


if __name__ == "__main__":
    main()
