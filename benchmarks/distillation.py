"""Measure what a student keeps of its teacher: macro average precision of `distilled_stack` and of other students.

    MULTILAB_DATA=... python benchmarks/distillation.py [emotions scene ...] [--folds 3]

Not a speed, but for the last column. Iteratively stratified folds, features standardised on the training rows. Means
over the folds of macro average precision, over the labels that occur in the test rows:

*teacher*: the small fixed stack of `distilled_stack`. *forest*: the forest of `distilled_stack`, on the labels alone.
*distilled*: `distilled_stack`. *taught forest* and *taught booster* (XGBoost with vector leaves): on the targets that
the kernel regression of `distilled_stack` has, the mean of labels and out-of-fold scores of the teacher.

The share of a student is its gain over *forest* divided by that of *teacher*. The goal is 95 %, in at most 2 ms per
row. Rules of `distilled_stack` were chosen while test results on all six sets were known (`chosen_on` in
`conf/arena.yaml`); other sets are unseen.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from common import Line, arguments, show
from multilab.cells.fitting import build
from multilab.cells.method import load_method
from multilab.datasets import load
from multilab.model_selection import IterativeStratifiedKFold

SETS = ["emotions", "yeast", "chd-49", "gpositive-go", "scene", "medical"]
STUDENTS = ("distilled", "taught forest", "taught booster")
GOAL_SHARE, GOAL_MS = 0.95, 2.0


def booster() -> Any:
    """Return XGBoost with a tree for all labels; it needs the extra ``arena``."""
    from xgboost import XGBRegressor

    return XGBRegressor(
        objective="reg:logistic",  # targets are shares
        n_estimators=200,
        learning_rate=0.1,
        max_depth=6,
        multi_strategy="multi_output_tree",
        n_jobs=1,
        random_state=0,
    )


def macro_ap(Y: np.ndarray, scores: np.ndarray) -> float:
    """Return macro average precision over the labels that occur."""
    present = Y.any(axis=0)
    return float(average_precision_score(Y[:, present], scores[:, present], average="macro"))


def run_fold(X: Any, Y: np.ndarray, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
    """Return macro average precision by model, and ``ms``, the time of the distilled stack per row of the test rows."""
    scaler = (StandardScaler() if isinstance(X, np.ndarray) else MaxAbsScaler()).fit(X[train])
    rows, new = scaler.transform(X[train]), scaler.transform(X[test])
    distilled = build(load_method("distilled_stack")).set_params(random_state=0).fit(rows, Y[train])
    teacher = clone(distilled.stack).set_params(random_state=0).fit(rows, Y[train])
    forest = clone(distilled.estimator_)
    began = time.perf_counter()
    scores = {"distilled": distilled.predict_proba(new)}
    ms = 1000.0 * (time.perf_counter() - began) / len(test)
    scores["teacher"] = teacher.predict_proba(new)
    scores["forest"] = clone(forest).fit(rows, Y[train].astype(float)).predict(new)
    scores["taught forest"] = clone(forest).fit(rows, distilled.targets_).predict(new)
    scores["taught booster"] = booster().fit(rows, distilled.targets_).predict(new)
    return {name: macro_ap(Y[test], np.asarray(each)) for name, each in scores.items()} | {"ms": ms}


def run_set(name: str, n_folds: int) -> dict[str, float]:
    """Return the means over the folds."""
    data = load(name)
    X, Y = data.X, np.asarray(data.Y)
    folds = [run_fold(X, Y, *split) for split in IterativeStratifiedKFold(n_folds, random_state=0).split(X, Y)]
    return {key: float(np.mean([fold[key] for fold in folds])) for key in folds[0]}


def share(means: dict[str, float], student: str) -> float:
    """Return the share of the teacher's gain over the forest that a student has; NaN where there is no gain."""
    gain = means["teacher"] - means["forest"]
    return (means[student] - means["forest"]) / gain if gain > 0 else float("nan")


def table(results: dict[str, dict[str, float]]) -> str:
    """Return a Markdown table: sets in rows, models in columns, students with their share."""
    lines = [
        f"| set | forest | teacher | {' | '.join(STUDENTS)} | ms per row |",
        f"|---|---|---|{'---|' * len(STUDENTS)}---|",
    ]
    for name, means in results.items():
        students = [f"{means[each]:.3f} ({_percent(share(means, each))})" for each in STUDENTS]
        models = f"{means['forest']:.3f} | {means['teacher']:.3f} | {' | '.join(students)}"
        lines.append(f"| {name} | {models} | {means['ms']:.2f} |")
    return "\n".join(lines)


def _percent(value: float) -> str:
    return "no gain" if np.isnan(value) else f"{100 * value:.0f} %"


def lines(results: dict[str, dict[str, float]]) -> list[Line]:
    """Return how the distilled stack compares with its goals."""
    shares = [share(means, "distilled") for means in results.values()]
    gained = [each for each in shares if not np.isnan(each)]
    reached = [each for each in gained if each >= GOAL_SHARE]
    gains = {
        each: np.mean([means[each] - means["forest"] for means in results.values()])
        for each in ("distilled", "teacher")
    }
    pooled = gains["distilled"] / gains["teacher"] if gains["teacher"] > 0 else float("nan")
    slowest = max(means["ms"] for means in results.values())
    return [
        Line(
            "distilled_stack: sets with 95 % of the teacher's gain in macro average precision, where it has one",
            f"{len(reached)} of {len(gained)}",
            "all",
            len(reached) == len(gained),
        ),
        Line("distilled_stack: share of the mean gain over the sets", _percent(pooled), "95 %", pooled >= GOAL_SHARE),
        Line("distilled_stack: largest time per row", f"{slowest:.2f} ms", "<= 2 ms", slowest <= GOAL_MS),
    ]


def main(argv: list[str] | None = None) -> None:
    from threadpoolctl import threadpool_limits

    parser = arguments(__doc__)
    parser.add_argument("datasets", nargs="*", default=SETS)
    parser.add_argument("--folds", type=int, default=3)
    chosen = parser.parse_args(argv)
    if not os.environ.get("MULTILAB_DATA"):
        sys.exit("MULTILAB_DATA names no folder of benchmark data")
    results = {}
    with threadpool_limits(1):
        for name in chosen.datasets:
            results[name] = run_set(name, chosen.folds)
            print(f"{name} done", file=sys.stderr, flush=True)
    print(f"Macro average precision, {chosen.folds} folds\n\n{table(results)}\n")
    show("Distillation", lines(results), json_path=chosen.json)


if __name__ == "__main__":
    main()
