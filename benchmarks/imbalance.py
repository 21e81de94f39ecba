"""Measure what weights and over-sampling by label give on imbalanced real sets: macro F1 and macro average precision.

    MULTILAB_DATA=... python benchmarks/imbalance.py [emotions birds yeast ...] [--folds 3] [--base lr tree]

Not a speed. Iteratively stratified folds, the same for all treatments. Everything that is chosen or resampled uses the
training rows of a fold: the features are standardised there, the samplers draw there, and the thresholds are tuned
there, on inner folds. Two tables per base classifier: means over the folds, and below them the mean difference to
nothing over the sets, the number of sets on which it is positive, and the p value of the Wilcoxon signed-rank test.

*nothing*: binary relevance. *balanced*: ``label_weight="balanced"``. *ML-ROS*: 25 % copies. *MLSMOTE*: k = 5, ranking.
*threshold*: nothing, with the threshold of each label that has the best F1 on inner out-of-fold scores; macro F1 of the
others is read at 0.5, and average precision does not depend on a threshold.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from common import arguments
from multilab.datasets import irlbl, load, mean_ir, scumble
from multilab.methods import MLROS, MLSMOTE, BinaryRelevance, ResampledClassifier
from multilab.model_selection import IterativeStratifiedKFold

SETS = ["flags", "emotions", "birds", "yeast", "medical", "cal500"]
BASES: dict[str, Callable[[], Any]] = {
    "lr": lambda: LogisticRegression(max_iter=300),
    "tree": lambda: DecisionTreeClassifier(criterion="entropy", min_samples_leaf=5, random_state=0),
}
TREATMENTS: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda base: BinaryRelevance(base),
    "balanced": lambda base: BinaryRelevance(base, label_weight="balanced"),
    "ML-ROS": lambda base: ResampledClassifier(BinaryRelevance(base), MLROS(0.25), random_state=0),
    "MLSMOTE": lambda base: ResampledClassifier(BinaryRelevance(base), MLSMOTE(), random_state=0),
}


def best_thresholds(Y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the threshold of each label with the largest F1; 0.5 for a label without a positive row."""
    thresholds = np.full(Y.shape[1], 0.5)
    for label, (y, s) in enumerate(zip(Y.T, scores.T, strict=True)):
        if not y.any():
            continue
        order = np.argsort(-s, kind="stable")
        hits, count = np.cumsum(y[order]), np.arange(1, len(y) + 1)
        f1 = 2.0 * hits / (count + y.sum())
        f1[:-1][s[order][:-1] == s[order][1:]] = 0.0  # equal scores are decided together
        best = int(np.argmax(f1))
        following = s[order][best + 1] if best + 1 < len(y) else s[order][best] - 1e-9
        thresholds[label] = (s[order][best] + following) / 2.0
    return thresholds


def measures(Y: np.ndarray, scores: np.ndarray, decisions: np.ndarray) -> tuple[float, float]:
    """Return macro F1 and macro average precision over the labels that occur in the test rows."""
    present = Y.any(axis=0)
    f1 = f1_score(Y[:, present], decisions[:, present], average="macro", zero_division=0)
    return float(f1), float(average_precision_score(Y[:, present], scores[:, present], average="macro"))


def run_set(name: str, make_base: Callable[[], Any], n_folds: int) -> dict[str, np.ndarray]:
    """Return for each treatment the two measures of each fold, shape (n_folds, 2)."""
    data = load(name)
    X, Y = data.X, np.asarray(data.Y)
    results: dict[str, list[tuple[float, float]]] = {treatment: [] for treatment in [*TREATMENTS, "threshold"]}
    scaler = StandardScaler() if isinstance(X, np.ndarray) else MaxAbsScaler()
    for train, test in IterativeStratifiedKFold(n_folds, random_state=0).split(X, Y):
        for treatment, make in TREATMENTS.items():
            model = make_pipeline(scaler, make(make_base())).fit(X[train], Y[train])
            scores = model.predict_proba(X[test])
            results[treatment].append(measures(Y[test], scores, scores >= 0.5))
            if treatment == "nothing":
                inner = list(IterativeStratifiedKFold(3, random_state=1).split(X[train], Y[train]))
                seen = cross_val_predict(model, X[train], Y[train], cv=inner, method="predict_proba")
                chosen = best_thresholds(Y[train], seen)
                results["threshold"].append(measures(Y[test], scores, scores >= chosen))
    return {treatment: np.array(values) for treatment, values in results.items()}


def table(means: dict[str, dict[str, np.ndarray]], measure: int) -> str:
    """Return a Markdown table of one measure: sets in rows, treatments in columns, then the differences to nothing."""
    treatments = [t for t in next(iter(means.values())) if measure == 0 or t != "threshold"]  # ranks stay the same
    lines = ["| set | MeanIR | " + " | ".join(treatments) + " |", "|---|---|" + "---|" * len(treatments)]
    for name, by_treatment in means.items():
        values = [by_treatment[t].mean(axis=0)[measure] for t in treatments]
        cells = [f"**{v:.3f}**" if v == max(values) else f"{v:.3f}" for v in values]
        lines.append(f"| {name} | {mean_ir(load(name).Y):.1f} | " + " | ".join(cells) + " |")
    gains = np.array(
        [[(m[t] - m["nothing"]).mean(axis=0)[measure] for t in treatments] for m in means.values()]
    )  # (sets, treatments)
    summary = []
    for column, treatment in zip(gains.T, treatments, strict=True):
        if treatment == "nothing":
            summary.append("")
            continue
        p = wilcoxon(column).pvalue if np.any(column) else 1.0
        summary.append(f"{column.mean():+.3f}, {(column > 0).sum()} of {len(column)}, p {p:.2f}")
    lines.append("| mean difference, sets with a gain, Wilcoxon | | " + " | ".join(summary) + " |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    from threadpoolctl import threadpool_limits

    parser = arguments(__doc__)
    parser.add_argument("datasets", nargs="*", default=SETS)
    parser.add_argument("--base", nargs="+", choices=list(BASES), default=list(BASES))
    parser.add_argument("--folds", type=int, default=3)
    chosen = parser.parse_args(argv)
    if not os.environ.get("MULTILAB_DATA"):
        sys.exit("MULTILAB_DATA names no folder of benchmark data")
    with threadpool_limits(1):
        for base in chosen.base:
            means = {}
            for name in chosen.datasets:
                means[name] = run_set(name, BASES[base], chosen.folds)
                print(f"{base} {name} done", file=sys.stderr, flush=True)
            for measure, title in enumerate(("macro F1", "macro average precision")):
                print(f"{title}, binary relevance on {base}, {chosen.folds} folds\n\n{table(means, measure)}\n")
            if chosen.json:
                append(chosen.json, base, means)
    for name in chosen.datasets:
        Y = load(name).Y
        print(
            f"{name}: {len(Y)} rows, {Y.shape[1]} labels, largest IRLbl {irlbl(Y).max():.0f}, SCUMBLE {scumble(Y):.3f}"
        )


def append(path: Path, base: str, means: dict[str, dict[str, np.ndarray]]) -> None:
    """Append the mean of each set and treatment to a file, one JSON object per line."""
    with path.open("a") as stream:
        for name, by_treatment in means.items():
            for treatment, values in by_treatment.items():
                f1, precision = values.mean(axis=0).tolist()
                row = {"base": base, "set": name, "treatment": treatment, "macro_f1": f1, "macro_ap": precision}
                stream.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
