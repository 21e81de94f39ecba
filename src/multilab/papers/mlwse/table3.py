"""Table 3 of the MLWSE paper: three classifiers and three ways to weigh them, on the four scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from multilab.cells.seeds import seed_estimator, seed_for
from multilab.datasets.synthetic import sample_scenario
from multilab.methods.stacking.mlwse import MLWSE
from multilab.methods.transformation.binary_relevance import BinaryRelevance

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "scores-table3"
_SHARES = (0.35, 0.70)  # training | validation | test


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return the test accuracies and the weights of one repetition: a new draw, divided 35/35/30 at random.

    The classifiers learn from the training set. Their scores (probabilities: Platt's sigmoid for the support vector
    machines) on the validation part are what the weights are fitted on; eq. (3) is the least squares solution of least
    norm, eq. (5) and (6) have the penalties of ``settings.l1`` and ``settings.l21`` and, with one label, no coupling.
    A label is assigned at a score of at least .5. ``condition`` is that of the matrix of the three scores.
    """
    made = {name: value for name, value in (unit.generator or {}).items() if name != "name"}
    sample = sample_scenario(**{**made, "seed": seed_for(unit.seed, unit.dataset, f"repetition {unit.split}", "draw")})
    X, Y = sample.X, sample.Y
    shuffled = np.random.default_rng(seed_for(unit.seed, unit.dataset, f"repetition {unit.split}", "parts"))
    first, second = (round(share * len(X)) for share in _SHARES)
    train, validation, test = np.split(shuffled.permutation(len(X)), [first, second])
    scores, rows = [], []
    for name, classifier in _classifiers().items():
        seed_estimator(classifier, unit.seed, unit.dataset, f"repetition {unit.split}", name)
        classifier.fit(X[train], Y[train])
        scores.append(classifier.predict_proba(X))
        rows.append((name, "accuracy", _accuracy(Y[test], scores[-1][test])))
    S = np.hstack(scores)
    rows.append(("baseline (eq. 3)", "condition", float(np.linalg.cond(S[validation]))))
    for name, combiner in _combiners(unit.settings).items():
        combiner.fit(S[validation], Y[validation])
        rows.append((name, "accuracy", _accuracy(Y[test], combiner.decision_function(S[test]))))
        weights = zip(_classifiers(), combiner.W_[:, 0], strict=True)
        rows += [(name, f"weight[{classifier}]", float(weight)) for classifier, weight in weights]
    return {
        column: list(values) for column, values in zip(("who", "metric", "value"), zip(*rows, strict=True), strict=True)
    }


def _classifiers() -> dict[str, BinaryRelevance]:
    """Return the three classifiers under their printed names, with scikit-learn's defaults otherwise."""
    return {
        "SVM (linear)": BinaryRelevance(SVC(kernel="linear"), calibration="sigmoid"),
        "SVM (poly)": BinaryRelevance(SVC(kernel="poly"), calibration="sigmoid"),
        "Random Forest": BinaryRelevance(RandomForestClassifier()),
    }


def _combiners(settings: dict[str, Any]) -> dict[str, MLWSE]:
    exact: dict[str, Any] = {"beta": 0.0, "tol": 1e-8}  # where two machines score almost alike, weights are loose
    return {
        "baseline (eq. 3)": MLWSE(alpha=0.0, beta=0.0),
        "l1 selection (eq. 5)": MLWSE(**exact, **settings["l1"]),
        "sparse-group selection (eq. 6)": MLWSE(penalty="l21", **exact, **settings["l21"]),
    }


def _accuracy(Y: np.ndarray, scores: np.ndarray) -> float:
    return float(np.mean((scores >= 0.5) == Y))


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return long scores of the form of ``scores.csv.gz``; the split is the repetition."""
    named = rows.drop(columns="method").rename(columns={"who": "method"})
    return named[["dataset", "split", "method", "metric", "value"]]
