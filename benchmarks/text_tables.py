"""One call on text with many labels: `AutoMultiLabel` and `multilab fit --budget` with little time.

    python benchmarks/text_tables.py                            `AutoMultiLabel` with 60 s, in 80 minutes
    python benchmarks/text_tables.py --doors fit --limits 10 30 the command line, on the made-up tables
    python benchmarks/text_tables.py --limits 0                 the first method alone, whatever time it takes
    python benchmarks/text_tables.py --table                    the means of what is in benchmarks/text_tables.csv

Three tables are made up in the shape of public ones: streaming titles, restaurants and series with 6,600, 7,500 and
9,500 rows, some 23,000 words, a year, a rating or other numbers beside the text, and 40 to 43 tags. Five are
sets of the benchmark (MULTILAB_DATA), bags of words of 352 to 3,782 rows.

The peer is TF-IDF with one ``LinearSVC`` per label and one threshold per label, tuned for the metric on out-of-fold
scores of the training rows, all by hand with scikit-learn. It reads the text only:
``TfidfVectorizer(min_df=2, sublinear_tf=True)``, and ``TfidfTransformer(sublinear_tf=True)`` on counts. The values of
3s-bbc1000 are TF-IDF weights already, which the peer takes as they are. With 1 to 10 s it has its own decisions.
Everything is scored on 25 % of the rows, which nothing has seen. The goal is a mean that is at most .01 below the peer.
A limit of wall time measures the load of the machine, too; 0 stands for no limit and six fits, those of one method.

Every run is appended to the file as a line; what is in it is not run again.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC

from common import CHECKOUT, arguments, machine
from multilab import datasets

RESULTS = CHECKOUT / "benchmarks" / "text_tables.csv"
GOAL = 0.01
SHORT = 10
"""Limit of which the peer has no tuned thresholds."""
METRICS = ("macro_f1", "micro_f1")
DOORS = ("auto", "fit")
SETS = ("medical", "enron", "slashdot", "langlog", "3s-bbc1000")
CASE = ("table", "seed", "door", "limit", "metric")
"""Columns that name a run."""
WEIGHTED = ("3s-bbc1000",)
"""Sets whose values are TF-IDF weights and no counts."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a made-up table.

    Attributes
    ----------
    rows, words, tags : int
    length : tuple of int
        Fewest and most words of a text.
    most : float
        Share of the rows that have the most frequent tag.
    signal : float
        Mean number of a tag's own words in a text that has it.
    """

    rows: int
    words: int
    tags: int
    length: tuple[int, int]
    most: float
    signal: float


SHAPES = {
    "streaming": Shape(6600, 33000, 40, (15, 35), 0.3, 1.25),
    "restaurants": Shape(7500, 29000, 43, (20, 45), 0.4, 1.55),
    "series": Shape(9500, 25000, 43, (20, 50), 0.35, 1.9),
}


def made_table(name: str, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Return a column of text with two or three of numbers, and the tags of the rows, separated by ``|``.

    Words follow Zipf's law. A tag has forty words of its own among the rarer ones; a text that has it holds some of
    them, and one in eight of its words belongs to a tag that it does not have. The frequencies of tags fall from
    `Shape.most` to below 1 %. The year and the rating tell a little about some of the tags.
    """
    shape, rng = SHAPES[name], np.random.default_rng(seed)
    n, q = shape.rows, shape.tags
    frequencies = np.geomspace(shape.most, 0.006, q)
    Y = rng.random((n, q)) < frequencies
    Y[np.arange(n), rng.choice(q, n, p=frequencies / frequencies.sum())] = True  # a row has a tag at least
    zipf = 1 / (np.arange(shape.words) + 2.7)
    own = rng.choice(np.arange(150, 8000), (q, 40), replace=False)
    texts = []
    for row in Y:
        drawn = rng.choice(shape.words, rng.integers(*shape.length), p=zipf / zipf.sum()).tolist()
        for tag in np.flatnonzero(row):
            drawn += rng.choice(own[tag], rng.poisson(shape.signal)).tolist()
        drawn += own[rng.integers(q, size=len(drawn) // 8), rng.integers(40)].tolist()
        texts.append(" ".join(f"w{k}" for k in rng.permutation(drawn)))
    years = 2015 - rng.gamma(1.5, 8, n) + 4 * (Y[:, 1] - 1.0 * Y[:, 4] + Y[:, 9])
    ratings = np.clip(rng.normal(6.5, 1, n) + 0.5 * Y[:, 0] - 0.5 * Y[:, 6] + 0.7 * Y[:, 12], 1, 10)
    frame = pd.DataFrame({"text": texts, "year": years.round(), "rating": ratings.round(1)})
    if name == "series":
        frame["votes"] = np.exp(rng.normal(7, 2, n) + 0.5 * Y[:, 2]).round()
    frame.loc[rng.random(n) < 0.03, "rating"] = np.nan
    tags = pd.Series(["|".join(f"tag{k}" for k in np.flatnonzero(row)) for row in Y], name="tags")
    return frame, tags


def parts(name: str, seed: int) -> tuple[Any, Any, np.ndarray, np.ndarray, list[str]]:
    """Return training rows, test rows, labels of both, and the names of the labels."""
    X: Any
    if name in SHAPES:
        X, tags = made_table(name, seed)
        labels = tags.str.get_dummies("|").astype(np.uint8)
        Y, names = labels.to_numpy(), list(labels.columns)
    else:
        data = datasets.load(name)
        X, Y, names = data.X, np.asarray(data.Y), [str(label) for label in data.label_names]
    order = np.random.default_rng(seed + 1000).permutation(len(Y))
    train, test = np.split(order, [3 * len(Y) // 4])
    if isinstance(X, pd.DataFrame):
        return *(X.iloc[rows].reset_index(drop=True) for rows in (train, test)), Y[train], Y[test], names
    return X[train], X[test], Y[train], Y[test], names


def peers(name: str, train: Any, test: Any, Y: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the metrics of the linear SVM with its own decisions and with tuned ones, and processor seconds."""
    began = time.process_time()
    if name in SHAPES:
        words = TfidfVectorizer(min_df=2, sublinear_tf=True)
        X, X_test = words.fit_transform(train["text"]), words.transform(test["text"])
    elif name in WEIGHTED:
        X, X_test = csr_array(train), csr_array(test)
    else:
        weights = TfidfTransformer(sublinear_tf=True)
        X, X_test = weights.fit_transform(train), weights.transform(test)
    scores, held = margins(X, Y, X_test), np.empty(Y.shape)
    for others, rows in KFold(5).split(X):
        held[rows] = margins(X[others], Y[others], X[rows])
    values: dict[str, float] = {}
    for metric in METRICS:
        tuned = scores >= thresholds(held, Y, metric)
        values |= {f"{metric}_plain": f1(truth, scores >= 0, metric), f"{metric}_tuned": f1(truth, tuned, metric)}
    return values | {"peer_cpu": time.process_time() - began}


def margins(X: Any, Y: np.ndarray, X_test: Any) -> np.ndarray:
    """Return the scores of a linear SVM per label; those of a label that no row has, or all rows, are equal."""
    scores = np.full((X_test.shape[0], Y.shape[1]), -1.0)
    for k, labels in enumerate(Y.T):
        if 0 < labels.sum() < len(labels):
            scores[:, k] = LinearSVC(random_state=0).fit(X, labels).decision_function(X_test)
    return scores


def thresholds(held: np.ndarray, Y: np.ndarray, metric: str) -> np.ndarray:
    """Return the threshold of each label with the largest F1 on out-of-fold scores, averaged as the metric says.

    Micro F1 is a ratio of sums over the labels, 2 hits / (predicted + true): the thresholds that maximise
    2 hits - F (predicted + true) label by label give a larger one, until F is the largest there is (Dinkelbach).
    """
    curves = [curve(scores, labels) for scores, labels in zip(held.T, Y.T, strict=True)]
    if metric == "macro_f1":
        best = [np.argmax(hits / (predicted + max(hits[-1], 1))) for _, hits, predicted in curves]
    else:
        value, last, best = 0.0, -1.0, []
        while value > last:
            best, last = [np.argmax(2 * hits - value * predicted) for _, hits, predicted in curves], value
            of_best = [(hits[k], predicted[k] + hits[-1]) for (_, hits, predicted), k in zip(curves, best, strict=True)]
            hit, total = np.sum(of_best, axis=0)
            value = 2 * hit / total
    return np.array([cuts[k] for (cuts, _, _), k in zip(curves, best, strict=True)])


def curve(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cuts between scores, from none predicted to all, with the number of hits and of predicted rows."""
    order = np.argsort(-scores)
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # equal scores stay together
    hits = np.cumsum(labels[order], dtype=float)[ends]
    return np.append(np.inf, scores[order][ends]), np.append(0, hits), np.append(0, ends + 1.0)


def f1(truth: np.ndarray, decisions: Any, metric: str) -> float:
    """Return macro F1 or micro F1; a label without a true or a predicted row counts 0."""
    return float(f1_score(truth, np.asarray(decisions, dtype=np.uint8), average=metric[:5], zero_division=0.0))


def of_auto(train: Any, test: Any, Y: np.ndarray, names: list[str], metric: str, limit: int) -> tuple[Any, str]:
    """Return the decisions of `AutoMultiLabel`, and what it chose."""
    from multilab import AutoMultiLabel

    until = {"time_limit": limit} if limit else {"time_limit": None, "budget_fits": 6}
    model = AutoMultiLabel(metric=metric, **until).fit(train, pd.DataFrame(Y, columns=names))
    return model.predict(test), model.best_


def of_fit(train: Any, test: Any, Y: np.ndarray, names: list[str], metric: str, limit: int) -> tuple[Any, str]:
    """Return the decisions of the model of ``multilab fit --budget`` on a made-up table, and its method."""
    from multilab.models import load_model

    tags = ["|".join(np.array(names)[row == 1]) for row in Y]
    with tempfile.TemporaryDirectory(prefix="multilab-bench-") as folder:
        train.assign(tags=tags).to_csv(Path(folder) / "train.csv", index=False)
        (Path(folder) / "conf").symlink_to(CHECKOUT / "conf")
        environment = {**os.environ, "MULTILAB_CELLS": f"{folder}/cells", "MULTILAB_DATA": f"{folder}/data"}
        words = ["--dataset", "train.csv", "--tags", "tags", "--columns", "text=text", "--budget", f"{limit}s"]
        command = [sys.executable, "-m", "multilab", "fit", *words, "--metric", metric, "-o", "model"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError((done.stdout + done.stderr)[-1500:])
        model = load_model(Path(folder) / "model")
        decision = model.metadata.decision.get("objective", "")
        best = f"{model.metadata.method['name']} {decision}".strip()
        return model.predict_frame(test).reindex(columns=names, fill_value=0).to_numpy(), best


def results() -> pd.DataFrame:
    """Return what is in the file."""
    return pd.read_csv(RESULTS, keep_default_na=False) if RESULTS.is_file() else pd.DataFrame(columns=list(CASE))


def main() -> None:
    """Run what is missing, and print the table."""
    parser = arguments(__doc__)
    parser.add_argument("--limits", nargs="+", type=int, default=[60], metavar="S", help="seconds, 0: none")
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5), metavar="N")
    parser.add_argument("--tables", nargs="+", default=[*SHAPES, *SETS], help="made-up ones, or names of data sets")
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=METRICS)
    parser.add_argument("--doors", nargs="+", choices=DOORS, default=DOORS[:1], help="AutoMultiLabel; multilab fit")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the results")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    globals()["RESULTS"] = options.results.resolve()
    warnings.simplefilter("ignore")
    doors = {"auto": options.tables, "fit": [name for name in options.tables if name in SHAPES]}
    cases = [
        (name, seed, door, limit, metric)
        for seed in options.seeds
        for door in options.doors
        for name in doors[door]
        for limit in options.limits
        for metric in options.metrics
    ]
    there = set(results()[list(CASE)].itertuples(index=False, name=None))
    for case in [] if options.table else cases:
        if case not in there:
            run(*case)
    print(summary(results()).to_string(float_format=lambda value: f"{value:.4f}", index=False))
    print(machine())


def run(name: str, seed: int, door: str, limit: int, metric: str) -> None:
    """Append one run to the file."""
    train, test, Y, truth, names = parts(name, seed)
    peer = peers(name, train, test, Y, truth)
    began, used, load = time.monotonic(), processor_seconds(), os.getloadavg()[0]
    value, best, error = 0.0, "", ""
    try:
        decisions, best = (of_auto if door == "auto" else of_fit)(train, test, Y, names, metric, limit)
        value = f1(truth, decisions, metric)
    except Exception as raised:  # no model: the F1 of no decisions
        error = str(raised)
    row = {
        **dict(zip(CASE, (name, seed, door, limit, metric), strict=True)),
        "value": value,
        "plain": peer[f"{metric}_plain"],
        "tuned": peer[f"{metric}_tuned"],
        "best": best,
        "seconds": time.monotonic() - began,
        "cpu": processor_seconds() - used,
        "peer_cpu": peer["peer_cpu"],
        "load": (load + os.getloadavg()[0]) / 2,
        "error": error,
    }
    row = {column: round(cell, 4) if isinstance(cell, float) else cell for column, cell in row.items()}
    print(row, flush=True)
    pd.DataFrame([row]).to_csv(RESULTS, mode="a", header=not RESULTS.is_file(), index=False, lineterminator="\n")


def processor_seconds() -> float:
    """Return the processor seconds of this process and of those that it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means by table and over the tables, the difference to the peer, and whether the goal is met."""
    rows = rows.assign(
        peer=rows["plain"].where(rows["limit"].between(1, SHORT), rows["tuned"]), none=rows["error"] != ""
    )
    rows = pd.concat([rows, rows.assign(table="made-up").loc[rows["table"].isin(SHAPES)], rows.assign(table="all")])
    rows["gain"] = rows["value"] - rows["peer"]
    keys = ["door", "limit", "metric", "table"]
    means = rows.groupby(keys, sort=False).agg(
        runs=("seed", "size"),
        ours=("value", "mean"),
        peer=("peer", "mean"),
        gain=("gain", "mean"),
        worst=("gain", "min"),
        no_model=("none", "sum"),
        cpu=("cpu", "mean"),
        peer_cpu=("peer_cpu", "mean"),
        seconds=("seconds", "max"),
        load=("load", "mean"),
    )
    return means.assign(met=means["gain"] >= -GOAL).reset_index()


if __name__ == "__main__":
    main()
