"""Evaluation of a model from elsewhere on real data: files of logits, thresholds of one half, values on the other.

A network (scikit-learn's `MLPClassifier`) is fitted to half of the rows of each set. A quarter of the rows is evaluated
as `multilab evaluate` does; the last quarter is decided by the rules learned there. The question is whether the
cross-fitted value of the first quarter is the value that the rules reach on the second one, and how often its interval
covers it. Run: ``python benchmarks/evaluate.py [--draws 20]``; it prints a Markdown table.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import logit
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from multilab.comparison.evaluating import evaluate_tables
from multilab.comparison.score_files import read_scores, read_truth
from multilab.datasets import load
from multilab.decision import DecisionRules
from multilab.metrics import macro_f1
from multilab.model_selection import IterativeStratifiedShuffleSplit

SETS = ("emotions", "scene", "yeast")


def logits_of(X, Y, train, rows, seed):
    """Return the logits of a network fitted to the training rows."""
    network = make_pipeline(StandardScaler(), MLPClassifier((100,), max_iter=60, alpha=0.01, random_state=seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 60 epochs are meant to be too few
        network.fit(X[train], Y[train])
    return logit(np.clip(network.predict_proba(X[rows]), 1e-9, 1 - 1e-9))


def one(name, seed, folder):
    """Return the values of one draw, through the files that a user would have."""
    data = load(name)
    X, Y, labels = np.asarray(data.X), np.asarray(data.Y), list(data.label_names)
    train, others = next(IterativeStratifiedShuffleSplit(1, test_size=0.5, random_state=seed).split(X, Y))
    first, second = next(
        IterativeStratifiedShuffleSplit(1, test_size=0.5, random_state=seed).split(X[others], Y[others])
    )
    logits = logits_of(X, Y, train, others, seed)
    ids = np.array([f"row-{row}" for row in others])
    truth = pd.DataFrame(Y[others], columns=labels).assign(id=ids)
    for part, rows in (("validation", first), ("test", second)):
        truth.iloc[rows].to_csv(folder / f"{part}.csv", index=False)
        np.savez(folder / f"{part}.npz", logits=logits[rows], ids=ids[rows], labels=np.array(labels))
    evaluated = evaluate_tables(
        read_truth(folder / "validation.csv"), [read_scores(folder / "validation.npz", "logits")], ["logits"]
    )
    (model,) = evaluated.models
    rules = DecisionRules.load(evaluated.rules[model].save(folder / "rules.json"))
    tuned = evaluated.values.set_index(["model", "metric"]).loc[(f"{model} + thresholds", "macro_f1")]
    decided = rules.for_labels(labels).decide(logits[second])
    reached = macro_f1(Y[others][second], decided)
    errors = evaluated.calibration.set_index(["scores", "metric"])["value"]
    return {
        "at .5": macro_f1(Y[others][second], logits[second] >= 0),
        "estimate": tuned["value"],
        "reached": reached,
        "covered": tuned["low"] <= reached <= tuned["high"],
        "gain shown": evaluated.gains["low"].iloc[0] > 0,
        "error before": errors["as predicted", "expected_calibration_error"],
        "error after": errors["beta", "expected_calibration_error"],
    }


def table(found):
    """Return the means as Markdown."""
    lines = [
        "| set | macro F1 at .5 | cross-fitted estimate | reached by the rules | interval covers it | gain shown | "
        "calibration error | after beta |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, draws in found.items():
        means = pd.DataFrame(draws).mean()
        lines.append(
            f"| {name} | {means['at .5']:.3f} | {means['estimate']:.3f} | {means['reached']:.3f} | "
            f"{means['covered']:.0%} | {means['gain shown']:.0%} | {means['error before']:.3f} | "
            f"{means['error after']:.3f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    draws = parser.parse_args().draws
    with tempfile.TemporaryDirectory() as folder:
        print(table({name: [one(name, seed, Path(folder)) for seed in range(draws)] for name in SETS}))


if __name__ == "__main__":
    main()
