"""Quality without labels on six real sets: the estimate of `multilab monitor` next to "as in training".

Half of the rows of a set is for training: a learner with sigmoid calibration and guarded thresholds for macro F1,
scored on held-out rows of five folds, as `multilab fit` does. The new rows are a half of the other rows: drawn at
random; those with the lowest first principal component of the features (cut); or drawn with weights that grow with
the number of labels that a ridge regression on the training rows predicts (tilt). In both shifts the rows are chosen
by their features only. The error is the absolute difference to the F1 of the new rows by their true labels. "As in
training" takes the value of the held-out rows.

The form of the estimate and the rule of refusal were chosen on other sets (birds, flags, image, chd-49,
water-quality, cal500) before this script ran. Run: ``python benchmarks/quality.py [--draws 3]``; it writes
``benchmarks/quality.csv`` and prints Markdown tables of it (``--table``: only the tables).
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from multilab.datasets import load
from multilab.decision import TunedThresholdClassifier
from multilab.methods import BinaryRelevance
from multilab.metrics import macro_f1, micro_f1, per_label
from multilab.model_selection import IterativeStratifiedKFold
from multilab.statistics import expected_quality, held_out_quality
from multilab.statistics.quality import LARGEST_MISS

SETS = ("emotions", "gpositive-go", "yeast", "scene", "medical", "enron")
RESULTS = Path(__file__).with_suffix(".csv")
COLUMNS = ["set", "seed", "learner", "shift", "metric", "refused", "true", "training", "estimate", "covered"]
SHIFTS = ("none", "cut", "tilt")
LEAST = 5  # positives of a label in the training half; other labels are left out


def learners():
    """Return the learners, each with calibration and thresholds of held-out scores."""
    linear = make_pipeline(
        StandardScaler(), BinaryRelevance(LogisticRegression(C=0.1, max_iter=300), calibration="none")
    )
    trees = ExtraTreesClassifier(20, min_samples_leaf=3, random_state=0)
    options = {"guard": True, "calibration": "sigmoid", "cv": 3, "random_state": 0}
    return {
        "logistic": TunedThresholdClassifier(linear, **options),
        "trees": TunedThresholdClassifier(trees, **options),
    }


def chosen_rows(X, Y, train, others, rng):
    """Return the new rows of each shift."""
    half = len(others) // 2
    scaler = StandardScaler().fit(X[train])
    first = np.linalg.svd(scaler.transform(X[train]), full_matrices=False)[2][0]
    labels = Ridge(10.0).fit(scaler.transform(X[train]), Y[train].sum(axis=1)).predict(scaler.transform(X[others]))
    weights = np.exp((labels - labels.mean()) / labels.std())
    weights = np.minimum(weights, np.quantile(weights, 0.98))  # no row is nearly certain to be drawn
    return {
        "none": rng.choice(others, half, replace=False),
        "cut": others[np.argsort(scaler.transform(X[others]) @ first)[:half]],
        "tilt": rng.choice(others, half, replace=False, p=weights / weights.sum()),
    }


def fitted(learner, X, Y):
    """Return a learner fitted to all rows, and what its held-out rows tell."""
    P, D = np.zeros(Y.shape), np.zeros(Y.shape, dtype=np.uint8)
    for a, b in IterativeStratifiedKFold(5, random_state=0).split(X, Y):
        P[b], D[b] = learner.fit(X[a], Y[a]).predict_with_scores(X[b])
    return learner.fit(X, Y), held_out_quality(Y, P, D)


def one(name, seed):
    """Return a row per learner, shift and metric of one draw."""
    data = load(name)
    X = np.asarray(data.X.toarray() if issparse(data.X) else data.X, dtype=float)
    Y = np.asarray(data.Y.toarray() if issparse(data.Y) else data.Y).astype(np.uint8)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(Y))
    train, others = order[: len(Y) // 2], order[len(Y) // 2 :]
    Y = Y[:, Y[train].sum(axis=0) >= LEAST]
    parts = chosen_rows(X, Y, train, others, rng)
    rows = []
    for learner, estimator in learners().items():
        model, known = fitted(estimator, X[train], Y[train])
        refused = max(map(abs, known.misses.values())) > LARGEST_MISS
        for shift, new in parts.items():
            P, D = model.predict_with_scores(X[new])
            table = expected_quality(P, D, known)
            true = {"micro_f1": micro_f1(Y[new], D), "macro_f1": macro_f1(Y[new], D)}
            true["f1"] = per_label(Y[new], decisions=D)["f1"].to_numpy()
            for metric, value in true.items():
                found = table[table["quantity"] == metric].assign(true=value).dropna()
                errors = [(found[column] - found["true"]).abs().mean() for column in ("held_out", "expected")]
                covered = found["true"].between(found["low"], found["high"]).mean()
                rows.append((name, seed, learner, shift, metric, refused, found["true"].mean(), *errors, covered))
    return rows


def tables(found):
    """Return the mean errors by metric, set and shift, those of "as in training" first, as Markdown."""
    lines = []
    for metric, title in (("micro_f1", "Micro F1"), ("macro_f1", "Macro F1"), ("f1", "F1 of a label")):
        heads = " | ".join(f"{shift}: training | estimate | interval covers" for shift in SHIFTS)
        lines += [f"{title}", "", f"| set | refused | {heads} |", "|---|---:|" + "---:|" * (3 * len(SHIFTS))]
        rows = found[found["metric"] == metric]
        for name in (*rows["set"].unique(), "mean"):
            here = rows if name == "mean" else rows[rows["set"] == name]
            kept = here[~here["refused"]]
            cells = [f"{here.drop_duplicates(['set', 'seed', 'learner'])['refused'].mean():.0%}"]
            for shift in SHIFTS:
                part = kept[kept["shift"] == shift]
                if len(part):
                    cells += [f"{part['training'].mean():.3f}", f"{part['estimate'].mean():.3f}"]
                    cells.append(f"{part['covered'].mean():.0%}")
                else:
                    cells += ["-"] * 3
            lines.append(f"| {name} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print the tables of the committed results")
    options = parser.parse_args()
    if not options.table:
        rows = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in SETS:
                for seed in range(options.draws):
                    rows += one(name, seed)
                table = pd.DataFrame(rows, columns=COLUMNS).round(5)
                table.to_csv(RESULTS, index=False, lineterminator="\n")  # after each set: a busy machine takes an hour
                print(name, flush=True)
    print(tables(pd.read_csv(RESULTS)))


if __name__ == "__main__":
    main()
