"""Exact thresholds per label and exact expected F1: time next to scikit-learn's curves, and the same values.

    python benchmarks/decisions.py

One thread, simulated scores of 20,000 rows and 20 labels. `macro_f1_thresholds` against the curve that
`sklearn.metrics.precision_recall_curve` gives for each label, whose largest F1 must be the same; `global_threshold` for
micro F1 against the same curve of all entries. `expected_f1_decisions` on 2,000 rows and 12 labels against all nested
label sets, scored by the distribution of the number of true labels, which must give the same decisions.
"""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
from sklearn.metrics import precision_recall_curve

from common import Line, arguments, race, show
from multilab.decision import expected_f1_decisions, global_threshold, macro_f1_thresholds
from multilab.metrics import macro_f1, micro_f1


def data(rows: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of different frequencies and probabilities that know something of them."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(rows, labels)) + np.linspace(-2.5, 0, labels)
    Y = (latent + 0.7 * rng.normal(size=latent.shape) > 0).astype(np.uint8)
    return Y, 1 / (1 + np.exp(-2 * latent))


def best_f1(y: np.ndarray, scores: np.ndarray) -> float:
    """Return the largest F1 over all thresholds by scikit-learn's curve."""
    precision, recall, _ = precision_recall_curve(y, scores)
    total = precision + recall
    return float((2 * precision * recall / np.where(total > 0, total, 1)).max())


def all_nested(P: np.ndarray) -> np.ndarray:
    """Return the decisions of largest expected F1 from the distribution of the number of true labels, set by set."""
    decisions = np.zeros(P.shape, dtype=np.int64)
    for row, p in enumerate(P):
        order, best = np.argsort(-p, kind="stable"), float(np.prod(1 - p))  # the empty set: 0/0 counts as 1
        for size in range(1, len(p) + 1):
            value = 0.0
            for label in order[:size]:  # E[2 y / (size + number of true labels)]
                others = np.array([1.0])
                for other in np.delete(np.arange(len(p)), label):
                    others = np.convolve(others, [1 - p[other], p[other]])
                value += 2 * p[label] * float((others / (size + 1 + np.arange(len(others)))).sum())
            if value > best + 1e-12:
                best = value
                decisions[row] = np.isin(np.arange(len(p)), order[:size])
    return decisions


def same_f1(ours: float, theirs: float) -> str:
    """Compare the F1 that two ways of choosing thresholds reach on the same scores."""
    return f"identical F1 {ours:.6f}" if abs(ours - theirs) < 1e-9 else f"DIFFERENT: F1 {ours:.9f} and {theirs:.9f}"


def per_label(Y: np.ndarray, P: np.ndarray, repeats: int) -> Line:
    """Time one threshold per label for macro F1."""
    runners = {
        "ours": lambda: macro_f1_thresholds(Y, P),
        "theirs": lambda: float(np.mean([best_f1(Y[:, label], P[:, label]) for label in range(Y.shape[1])])),
    }
    medians, outputs = race(runners, repeats)
    check = same_f1(macro_f1(Y, (outputs["ours"] <= P).astype(int)), outputs["theirs"])
    return _line("scikit-learn's precision_recall_curve label by label to thresholds for macro F1", medians, 2, check)


def one_cut(Y: np.ndarray, P: np.ndarray, repeats: int) -> Line:
    """Time one threshold of all labels for micro F1."""
    runners = {
        "ours": lambda: global_threshold(Y, P, "micro_f1"),
        "theirs": lambda: best_f1(Y.ravel(), P.ravel()),
    }
    medians, outputs = race(runners, repeats)
    check = same_f1(micro_f1(Y, (outputs["ours"] <= P).astype(int)), outputs["theirs"])
    return _line("scikit-learn's curve of all entries to one threshold for micro F1", medians, 2, check)


def expected(P: np.ndarray, repeats: int) -> Line:
    """Time the label sets of largest expected example F1."""
    runners = {"ours": lambda: expected_f1_decisions(P), "theirs": lambda: all_nested(P)}
    medians, outputs = race(runners, repeats)
    wrong = int((outputs["ours"] != outputs["theirs"]).any(axis=1).sum())
    check = f"DIFFERENT: {wrong} of {len(P)} rows" if wrong else f"identical decisions of {len(P)} rows"
    return _line("a convolution per label and nested set to decisions of largest expected F1", medians, 10, check)


def _line(claim: str, medians: dict[str, float], goal: float, check: str) -> Line:
    ratio = medians["theirs"] / medians["ours"]
    value = f"{ratio:.1f}x ({medians['ours']:.3f} s to {medians['theirs']:.2f} s)"
    return Line(claim, value, f">= {goal}x", ratio >= goal, check)


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark."""
    given = arguments(__doc__).parse_args(argv)
    Y, P = data(20_000, 20)
    lines = [per_label(Y, P, 3), one_cut(Y, P, 3), expected(data(2_000, 12)[1], 1)]
    notes = [f"scikit-learn {version('scikit-learn')}: precision_recall_curve"]
    show("decisions, 20,000 rows x 20 labels; 2,000 x 12 for expected F1", lines, notes, given.json)


if __name__ == "__main__":
    main()
