"""How much thresholds that rest on few positives should be trusted: the constant of `guarded_thresholds`.

    MULTILAB_DATA=... python benchmarks/guard.py [emotions birds ...]

Binary relevance on logistic regression, ML-kNN and extremely randomised trees; three outer folds, out-of-fold scores
of five inner ones. Thresholds tuned for three objectives are guarded with several values of ``shrinkage``. Printed are
mean changes against thresholds without guard, over sets, learners and folds; *few* is the mean F1 of the labels with at
most 20 positives in training. The choice is read from the rows of macro F1. Takes half an hour on all sets.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from multilab import datasets
from multilab.decision import TunedThresholdClassifier, guarded_thresholds
from multilab.methods import BinaryRelevance, MLkNN
from multilab.methods.out_of_fold import fit_seeded, out_of_fold_scores, score_matrix
from multilab.metrics import hamming_loss, macro_f1, micro_f1
from multilab.model_selection import IterativeStratifiedKFold

SETS = (
    *("3s-bbc1000", "birds", "cal500", "chd-49", "emotions", "enron", "flags", "gpositive-go", "langlog", "medical"),
    *("virus-go", "water-quality", "yeast"),
)
LEARNERS = {
    "logistic": make_pipeline(
        MaxAbsScaler(), BinaryRelevance(LogisticRegression(solver="liblinear"), calibration="none")
    ),
    "mlknn": MLkNN(),
    "trees": ExtraTreesClassifier(40, min_samples_leaf=2, random_state=0),
}
SHRINKAGE = (0, 1, 2, 5, 10, 20, 50, 1e9)


def main() -> None:
    """Print a table per objective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, help="data sets (default: thirteen)")
    warnings.filterwarnings("ignore")
    rows = []
    for name in parser.parse_args().sets:
        data = datasets.load(name)
        X, Y = data.X, data.Y.toarray() if sp.issparse(data.Y) else data.Y
        for learner, estimator in LEARNERS.items():
            for fold, (train, test) in enumerate(IterativeStratifiedKFold(3, random_state=0).split(X, Y)):
                inner = list(IterativeStratifiedKFold(5, random_state=1).split(X[train], Y[train]))
                held = out_of_fold_scores(estimator, X[train], Y[train], inner, seed=0)
                scores = score_matrix(fit_seeded(estimator, X[train], Y[train], 0), X[test], Y.shape[1])
                for objective in ("macro_f1", "micro_f1", "hamming_loss"):
                    where = {"set": name, "learner": learner, "fold": fold, "objective": objective}
                    rule = TunedThresholdClassifier("precomputed", objective).fit(held, Y[train])
                    for shrinkage in (None, *SHRINKAGE):
                        limits = rule.thresholds_
                        if shrinkage is not None:
                            limits = guarded_thresholds(Y[train], held, limits, shrinkage=shrinkage)
                        rows.append(where | {"shrinkage": shrinkage} | values(Y[train], Y[test], scores >= limits))
        print(name, file=sys.stderr)
    table = pd.DataFrame(rows).fillna({"shrinkage": -1})
    for objective, part in table.groupby("objective", sort=False):
        means = part.groupby("shrinkage")[["macro F1", "micro F1", "Hamming loss", "few"]].mean()
        print(f"{objective}: change against no guard\n{(means - means.loc[-1]).drop(-1).round(4).to_string()}\n")


def values(known: np.ndarray, truth: np.ndarray, decisions: np.ndarray) -> dict[str, float]:
    """Return metrics of decisions, and the mean F1 of labels with few positives among the known rows."""
    few = (known.sum(axis=0) > 0) & (known.sum(axis=0) <= 20)
    rare = macro_f1(truth[:, few], decisions[:, few]) if few.any() else np.nan
    found = {"macro F1": macro_f1(truth, decisions), "micro F1": micro_f1(truth, decisions)}
    return found | {"Hamming loss": hamming_loss(truth, decisions), "few": rare}


if __name__ == "__main__":
    main()
