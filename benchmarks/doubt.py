"""Planted label errors on six real sets: how many `multilab datasets doubt` finds, and what masking does.

Two thirds of the rows of a set, at most 600, are for training; labels with fewer than 10 of these rows are left out.
Errors are planted in the training labels in two ways. "proportion": 2, 5 or 10 % of the rows of each label lose it, and
as many other rows get it. "uniform": 2, 5 or 10 % of all cells are flipped, so that a rare label is mostly given in
error. The methods are those of the command: out-of-fold probabilities of five folds by logistic regression, extremely
randomised trees and nearest neighbours. For k planted errors the first k cells of a ranking are counted, so that
precision and recall are equal:

- own (linear): one minus the probability of the given label, by logistic regression alone;
- own (mean): the same with the mean probability of the three methods;
- methods: the ranking of `label_doubts`;
- cleanlab: its issues in the mean probabilities, the others after them, both by self-confidence.

Then the doubted cells are masked, and a learner is fitted to what is left: logistic regression, or extremely
randomised trees per label. Its metrics are those on the other rows, whose labels are clean, next to the learner fitted
to the planted labels and to the clean ones. With a rate of 0 nothing is planted.

The rule of the ranking was chosen on flags, image, chd-49, cal500, gpositive-go and langlog before this script ran. It
needs cleanlab. Run: ``python benchmarks/doubt.py [--seeds 3]``; it writes ``benchmarks/doubt.csv`` and prints Markdown
tables of it (``--table``: only the tables).
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse
from sklearn.ensemble import ExtraTreesClassifier

from common import peers
from multilab.cells.fitting import estimator_of, score_out_of_fold
from multilab.cells.pipeline import training_folds
from multilab.comparison.doubt import METHODS
from multilab.comparison.portfolio import load_portfolio
from multilab.datasets import load
from multilab.methods import BinaryRelevance
from multilab.methods.word_weights import is_bag_of_words
from multilab.metrics import expected_calibration_error, macro_average_precision, macro_f1
from multilab.model_selection import IterativeStratifiedShuffleSplit
from multilab.statistics import label_doubts

SETS = ("birds", "emotions", "enron", "medical", "scene", "yeast")
RATES = (0.02, 0.05, 0.1)
PLANTINGS = ("proportion", "uniform")
RANKINGS = ("own (linear)", "own (mean)", "methods", "cleanlab")
MASKS = ("methods", "cleanlab")
LEARNERS = ("logistic", "trees")
MOST, LEAST = 600, 10  # training rows; training rows of a label
RESULTS = Path(__file__).with_suffix(".csv")
METRICS = {
    "macro AP": lambda Y, P: macro_average_precision(Y, P),
    "macro F1": lambda Y, P: macro_f1(Y, P >= 0.5),
    "calibration error": lambda Y, P: expected_calibration_error(Y, P),
}


def split(X, Y, seed):
    """Return training and test rows, and the labels that are left."""
    train, test = next(IterativeStratifiedShuffleSplit(1, test_size=1 / 3, random_state=seed).split(X, Y))
    train = np.random.default_rng(seed).permutation(train)
    train, rest = train[:MOST], train[MOST:]
    positive = Y[train].sum(axis=0)
    return train, np.concatenate([test, rest]), np.flatnonzero((positive >= LEAST) & (positive <= len(train) - LEAST))


def planted(Y, planting, rate, rng):
    """Return which cells are flipped."""
    flips = np.zeros(Y.shape, dtype=bool)
    if planting == "uniform":
        flips.flat[rng.choice(Y.size, round(rate * Y.size), replace=False)] = True
        return flips
    for label, column in enumerate(Y.T):
        yes, no = np.flatnonzero(column == 1), np.flatnonzero(column == 0)
        count = min(round(rate * len(yes)), len(no))
        for rows in (yes, no):
            flips[rng.choice(rows, count, replace=False), label] = True
    return flips


def members(X, seed):
    """Return the methods of the command for these features."""
    chosen = load_portfolio().select(METHODS, sparse=issparse(X), bag=is_bag_of_words(X))
    return {member.name: estimator_of(member.method, seed, "doubt") for member in chosen}


def learners(X, seed):
    """Return what is fitted to masked labels."""
    trees = ExtraTreesClassifier(20, min_samples_leaf=3, random_state=seed)
    return dict(
        zip(LEARNERS, (members(X, seed)["br_logistic"], BinaryRelevance(trees, calibration="none")), strict=True)
    )


def cells(table, shape):
    """Return the cells of a table as positions in the flat matrix, in its order."""
    return np.ravel_multi_index((table["row"], table["label"].astype(int)), shape)


def found(Y, scores, flips):
    """Return the share of the planted errors that each ranking has among its first cells, and the doubted cells."""
    k, mean = int(flips.sum()), np.mean(list(scores.values()), axis=0)
    own = {"own (linear)": scores["br_logistic"], "own (mean)": mean}
    orders = {name: np.argsort(np.where(Y == 1, p, 1 - p), axis=None, kind="stable") for name, p in own.items()}
    masks = {}
    for name in MASKS:
        table = label_doubts(Y, scores, ranking=name, every_cell=True)
        orders[name] = cells(table, Y.shape)
        masks[name] = np.zeros(Y.shape, dtype=bool)
        masks[name].flat[orders[name][table["doubted"].to_numpy()]] = True
    values = {f"found: {name}": flips.flat[orders[name][:k]].mean() if k else np.nan for name in RANKINGS}
    for name, mask in masks.items():
        values[f"masked: {name}"] = mask.sum()
        values[f"precision: {name}"] = flips[mask].mean() if k and mask.any() else np.nan
        values[f"recall: {name}"] = mask[flips].mean() if k else np.nan
    return values, masks


def effects(X, new, truth, labels, seed):
    """Return the metrics of the learners on clean rows, fitted to each of several label matrices."""
    values = {}
    for learner, estimator in learners(X, seed).items():
        for which, Y in labels.items():
            P = estimator.fit(X, Y).predict_proba(new)
            values |= {f"{learner}: {name}: {which}": metric(truth, P) for name, metric in METRICS.items()}
    return values


def one(X, Y, seed, rates=RATES):
    """Return a row per planting and rate of a draw."""
    X = csr_array(X) if is_bag_of_words(X) else X.toarray() if issparse(X) else np.asarray(X)
    train, test, kept = split(X, Y, seed)
    clean, truth, features = Y[train][:, kept], Y[test][:, kept], X[train]
    rows = []
    for planting, rate in [("none", 0.0), *((planting, rate) for planting in PLANTINGS for rate in rates)]:
        flips = planted(clean, planting, rate, np.random.default_rng([seed, round(100 * rate)]))
        noisy = np.where(flips, 1 - clean, clean).astype(np.int8)
        folds = training_folds(noisy, 5, 1, seed)
        scores = {name: score_out_of_fold(m, features, noisy, folds)[0] for name, m in members(X, seed).items()}
        values, masks = found(noisy, scores, flips)
        labels = {"clean": clean, "planted": noisy} if rate else {"planted": noisy}
        labels |= {name: np.where(mask, -1, noisy).astype(np.int8) for name, mask in masks.items()}
        rows.append(
            {"seed": seed, "planting": planting, "rate": rate, "flips": int(flips.sum()), "cells": flips.size}
            | values
            | effects(features, X[test], truth, labels, seed)
        )
    return rows


def tables(results):
    """Return what is found, the doubted cells, and the effects of masking, as Markdown."""
    sets = {name: results[results["set"] == name] for name in results["set"].unique()} | {"mean": results}
    by_rate = {f"{planting}, {rate:.0%}": (planting, rate) for planting in PLANTINGS for rate in RATES}

    def part(name, planting, rate=None):
        rows = sets[name][sets[name]["planting"] == planting]
        return (rows if rate is None else rows[rows["rate"] == rate]).mean(numeric_only=True)

    lines = _header("set", "planted", *RANKINGS)
    for name in sets:
        for planting in PLANTINGS:
            means = part(name, planting)
            lines.append(_row(name, planting, *(f"{means[f'found: {ranking}']:.2f}" for ranking in RANKINGS)))
    lines += ["", *_header("planted", *RANKINGS)]
    for title, which in by_rate.items():
        lines.append(_row(title, *(f"{part('mean', *which)[f'found: {ranking}']:.2f}" for ranking in RANKINGS)))
    of_masks = ("cells per planted error", "precision", "recall")
    lines += ["", *_header("planted", *(f"{mask}: {what}" for mask in MASKS for what in of_masks))]
    for title, which in by_rate.items():
        means, shown = part("mean", *which), []
        for mask in MASKS:
            shown += [f"{means[f'masked: {mask}'] / means['flips']:.1f}"]
            shown += [f"{means[f'{what}: {mask}']:.2f}" for what in of_masks[1:]]
        lines.append(_row(title, *shown))
    for metric in METRICS:
        fits = [f"{learner}: {which}" for learner in LEARNERS for which in ("clean", "planted", *MASKS)]
        lines += ["", metric, "", *_header("set", "planted", *fits)]
        for name in sets:
            for planting in ("none", *PLANTINGS):
                lines.append(_row(name, planting, *_effects(part(name, planting), metric)))
        for title, which in by_rate.items():
            lines.append(_row("mean", title, *_effects(part("mean", *which), metric)))
    return "\n".join(lines)


def _effects(means, metric):
    """Return a metric after a fit to clean and to planted labels, and what each mask changes."""
    shown = []
    for learner in LEARNERS:
        clean, given = (means[f"{learner}: {metric}: {which}"] for which in ("clean", "planted"))
        shown += ["-" if np.isnan(clean) else f"{clean:.3f}", f"{given:.3f}"]
        shown += [f"{means[f'{learner}: {metric}: {mask}'] - given:+.3f}" for mask in MASKS]
    return shown


def _header(*titles):
    return [_row(*titles), "|" + "---|" * len(titles)]


def _row(*cells):
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print the tables of the committed results")
    options = parser.parse_args()
    if not options.table:
        peers("cleanlab")
        rows = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for seed in range(options.seeds):
                for name in SETS:
                    data = load(name)
                    Y = np.asarray(data.Y.toarray() if issparse(data.Y) else data.Y).astype(np.uint8)
                    rows += [{"set": name, **row} for row in one(data.X, Y, seed)]
                    pd.DataFrame(rows).round(5).to_csv(RESULTS, index=False, lineterminator="\n")
                    print(name, seed, flush=True)
    print(tables(pd.read_csv(RESULTS)))


if __name__ == "__main__":
    main()
