"""One call on tables of text with many tags: `AutoMultiLabel` and `multilab fit --budget` with little time.

    python benchmarks/text_tables.py                          all runs: two doors, limits, metrics, tables, seeds
    python benchmarks/text_tables.py --limits 10 30 --seeds 1 some of them
    python benchmarks/text_tables.py --table                  only the table of what is in the file

The tables are made up in the shape of three public ones: streaming titles, restaurants and series with 6,600, 7,500 and
9,500 rows, some 23,000 words, a year, a rating or other numbers beside the text, and 40 to 43 tags. The peer is
``TfidfVectorizer(min_df=2, sublinear_tf=True)`` of the text with one ``LinearSVC`` per tag, and the same with
thresholds tuned for the metric on out-of-fold scores. Everything is scored on 25 % of the rows, which nothing has seen.
With 10 s the peer has its own decisions, with more the tuned ones; the goal is a mean that is at most .01 below it.

Every run is appended to the file as a line; what is in it is not run again.
"""

from __future__ import annotations

import json
import os
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
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from common import CHECKOUT, arguments, machine
from multilab.decision import macro_f1_thresholds, micro_f1_thresholds
from multilab.metrics import macro_f1, micro_f1

RESULTS = CHECKOUT / "benchmarks" / "text_tables.jsonl"
GOAL = 0.01
LIMITS = (10, 30, 60, 180)
SHORT = 10
"""Limit of which the peer has no tuned thresholds."""
METRICS = {"macro_f1": (macro_f1, macro_f1_thresholds), "micro_f1": (micro_f1, micro_f1_thresholds)}
DOORS = ("auto", "fit")


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


def parts(name: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray, list[str]]:
    """Return training rows with tags, test rows, labels of both, and the names of the labels."""
    frame, tags = made_table(name, seed)
    order = np.random.default_rng(seed + 1000).permutation(len(frame))
    train, test = np.split(order, [3 * len(frame) // 4])
    labels = tags.str.get_dummies("|").astype(np.uint8)
    rows = frame.assign(tags=tags).iloc[train].reset_index(drop=True)
    Y = labels.to_numpy()
    return rows, frame.iloc[test].reset_index(drop=True), Y[train], Y[test], list(labels.columns)


def peers(train: pd.DataFrame, test: pd.DataFrame, Y: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the metrics of the linear SVM with its own decisions and with tuned ones, and processor seconds."""
    began = time.process_time()
    words = TfidfVectorizer(min_df=2, sublinear_tf=True)
    X = words.fit_transform(train["text"])
    svm = OneVsRestClassifier(LinearSVC(random_state=0)).fit(X, Y)
    scores = svm.decision_function(words.transform(test["text"]))
    values = {"plain_seconds": time.process_time() - began}
    held = cross_val_predict(OneVsRestClassifier(LinearSVC(random_state=0)), X, Y, cv=5, method="decision_function")
    for metric, (value, thresholds) in METRICS.items():
        values[f"{metric}_plain"] = value(truth, (scores >= 0).astype(np.uint8))
        values[f"{metric}_tuned"] = value(truth, (scores >= thresholds(Y, held)).astype(np.uint8))
    return values | {"tuned_seconds": time.process_time() - began}


def of_auto(train: pd.DataFrame, test: pd.DataFrame, names: list[str], metric: str, limit: int) -> tuple[Any, str]:
    """Return the decisions of `AutoMultiLabel`, and what it chose."""
    from multilab import AutoMultiLabel

    model = AutoMultiLabel(time_limit=limit, metric=metric).fit(train, "tags")
    return model.predict_frame(test).reindex(columns=names, fill_value=0).to_numpy(), model.best_


def of_fit(train: pd.DataFrame, test: pd.DataFrame, names: list[str], metric: str, limit: int) -> tuple[Any, str]:
    """Return the decisions of the model of ``multilab fit --budget``, and its method."""
    from multilab.models import load_model

    with tempfile.TemporaryDirectory(prefix="multilab-bench-") as folder:
        train.to_csv(Path(folder) / "train.csv", index=False)
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


def results() -> list[dict[str, Any]]:
    """Return what is in the file."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []


def keep(row: dict[str, Any]) -> None:
    """Print a result and append it to the file."""
    line = json.dumps({name: round(one, 5) if isinstance(one, float) else one for name, one in row.items()})
    print(line, flush=True)
    with RESULTS.open("a") as stream:
        stream.write(line + "\n")


def main() -> None:
    """Run what is missing, and print the table."""
    parser = arguments(__doc__)
    parser.add_argument("--limits", nargs="+", type=int, default=LIMITS, metavar="S", help="seconds")
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0 on")
    parser.add_argument("--tables", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=list(METRICS))
    parser.add_argument("--doors", nargs="+", choices=DOORS, default=DOORS, help="AutoMultiLabel; multilab fit")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the results")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    globals()["RESULTS"] = options.results.resolve()
    warnings.simplefilter("ignore")
    for seed in range(0 if options.table else options.seeds):
        for name in options.tables:
            run(name, seed, options)
    rows = pd.DataFrame(results())
    print(summary(rows).to_string(float_format=lambda value: f"{value:.4f}", index=False))
    print(machine())


def run(name: str, seed: int, options: Any) -> None:
    """Run what is missing of one table."""
    there = {
        (one["door"], one["limit"], one["metric"]) for one in results() if (one["table"], one["seed"]) == (name, seed)
    }
    wanted = [(d, limit, m) for limit in options.limits for d in options.doors for m in options.metrics]
    missing = [one for one in wanted if one not in there]
    if not missing:
        return
    train, test, Y, truth, names = parts(name, seed)
    peer = peers(train, test, Y, truth)
    for door, limit, metric in missing:
        began = time.monotonic()
        value, best, error = 0.0, "", ""
        try:
            decisions, best = (of_auto if door == "auto" else of_fit)(train, test, names, metric, limit)
            value = METRICS[metric][0](truth, decisions)
        except Exception as raised:  # no model: macro F1 and micro F1 of nothing
            error = str(raised)
        row = {
            "table": name,
            "seed": seed,
            "door": door,
            "limit": limit,
            "metric": metric,
            "value": value,
            "best": best,
        }
        of_peer = {one: peer[f"{metric}_{one}"] for one in ("plain", "tuned")}
        keep(
            row | of_peer | {"seconds": time.monotonic() - began, "error": error, "peer_seconds": peer["tuned_seconds"]}
        )


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over tables and seeds, the mean difference to the peer, and whether the goal is met."""
    lines = []
    for (door, limit, metric), group in rows.groupby(["door", "limit", "metric"]):
        peer = group["plain" if limit <= SHORT else "tuned"]
        gain = (group["value"] - peer).mean()
        lines.append(
            {
                "door": door,
                "limit": limit,
                "metric": metric,
                "runs": len(group),
                "ours": group["value"].mean(),
                "peer": peer.mean(),
                "gain": gain,
                "worst gain": (group["value"] - peer).min(),
                "no model": int((group["best"] == "").sum()),
                "met": bool(gain >= -GOAL),
                "seconds": group["seconds"].mean(),
            }
        )
    return pd.DataFrame(lines)


if __name__ == "__main__":
    main()
