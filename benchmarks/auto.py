"""`AutoMultiLabel`, and the recommendation of `multilab compare`, against what people use.

    python benchmarks/auto.py text            made-up text, five seeds: against TF-IDF with a linear SVM per label
    python benchmarks/auto.py medical enron   bags of words of real sets (MULTILAB_DATA): against the same linear SVM
    python benchmarks/auto.py mixed           numbers, a category and a remark: against each method of the portfolio
    python benchmarks/auto.py noise           a label of noise: against the linear methods with their own decisions
    python benchmarks/auto.py compare         made-up text: what `compare` recommends within two minutes
    python benchmarks/auto.py compare mixed --again     both anew, in half an hour; without --again a run continues
    python benchmarks/auto.py --table         only the table of what is in benchmarks/auto.jsonl

Peers of text are ``TfidfVectorizer`` with ``OneVsRestClassifier(LinearSVC())``, and the same with thresholds tuned for
the metric on out-of-fold scores, without a guard. Everything is scored on test rows that nothing has seen, 40 % of the
rows. The goal is at least the better of the two peers, less .005, as a mean of the seeds 0 to 4, which make the text
and split the rows. Results are appended to the file; what is in it is not run again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from common import CHECKOUT, arguments, machine
from multilab import AutoMultiLabel, datasets
from multilab.cells import estimator_of
from multilab.comparison.portfolio import load_portfolio
from multilab.datasets import FrameEncoder
from multilab.datasets.table_encoder import texts_of
from multilab.decision import TunedThresholdClassifier
from multilab.methods import BinaryRelevance
from multilab.metrics import hamming_loss, macro_f1, micro_f1
from multilab.model_selection import train_test_split
from multilab.models import load_model

METRICS: dict[str, Callable[..., float]] = {"macro_f1": macro_f1, "micro_f1": micro_f1, "hamming_loss": hamming_loss}
RESULTS = CHECKOUT / "benchmarks" / "auto.jsonl"
LIMIT, BUDGET = 60.0, "2m"
GOAL = 0.005


def main() -> None:
    """Run the parts that are named, and print the table."""
    parser = arguments(__doc__)
    parser.add_argument("parts", nargs="*", default=["text"], help="text, mixed, noise, compare, or names of sets")
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0 on")
    parser.add_argument("--again", action="store_true", help="leave out what the file has of these parts, and run all")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.again:
        kept = [json.dumps(one) + "\n" for one in results() if one["part"] not in options.parts]
        RESULTS.write_text("".join(kept))
    for name in [] if options.table else options.parts:
        run = {"mixed": of_tables, "compare": of_compare, "noise": of_noise}.get(name, of_text)
        for seed in range(options.seeds):
            run(name, seed)
    print(summary(pd.DataFrame(results())).to_string(float_format=lambda value: f"{value:.4f}"))
    print(machine())


def made_text(seed: int, n: int = 1800, q: int = 10, words: int = 3000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return texts, and the labels that some of their words come from.

    Labels have frequencies from 30 % to 2 %. Every label has twenty words of its own; a text with it holds one to four
    of them. All other words follow Zipf's law, and the words of labels are among them, too.
    """
    rng = np.random.default_rng(seed)
    frequencies = np.geomspace(0.3, 0.02, q)
    Y = (rng.random((n, q)) < frequencies).astype(int)
    zipf = 1 / np.arange(1, words + 1)
    own = rng.permutation(np.arange(100, words))[: 20 * q].reshape(q, 20)
    texts = []
    for row in Y:
        drawn = rng.choice(words, rng.integers(10, 40), p=zipf / zipf.sum()).tolist()
        for label in np.flatnonzero(row):
            drawn += rng.choice(own[label], rng.integers(1, 5)).tolist()
        texts.append(" ".join(f"word{k}" for k in rng.permutation(drawn)))
    return pd.DataFrame({"text": texts}), pd.DataFrame(Y, columns=[f"label{k}" for k in range(q)])


def made_table(seed: int, n: int = 1200) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return numbers with holes, a category and a short remark, and labels that depend on all of them."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 6))
    places = np.array(["north", "south", "east", "west"])[rng.integers(0, 4, n)]
    moods = rng.integers(0, 3, n)
    remarks = [
        " ".join([*rng.choice(["the", "one", "that", "was", "there", "with"], 6), ["quiet", "loud", "odd"][mood]])
        for mood in moods
    ]
    logits = np.column_stack(
        [
            2 * numbers[:, 0] * numbers[:, 1],
            numbers[:, 2] + 2 * (places == "north") - 1.5,
            2.5 * (moods == 1) + numbers[:, 3] - 2,
            np.sin(2 * numbers[:, 4]) * 2 - 1 + (moods == 0),
            numbers[:, 5] - 2.5,
        ]
    )
    Y = (rng.random(logits.shape) < 1 / (1 + np.exp(-2 * logits))).astype(int)
    frame = pd.DataFrame(numbers, columns=[f"n{k}" for k in range(6)]).assign(place=places, remark=remarks)
    frame.loc[rng.random(n) < 0.1, "n3"] = np.nan
    return frame, pd.DataFrame(Y, columns=[f"label{k}" for k in range(5)])


def made_noise(seed: int, n: int = 1000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return numbers, two labels that they tell, and one of 1.5 % that nothing tells."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    Y = np.column_stack([X[:, 0] + X[:, 1] > 1.9, X[:, 2] - X[:, 3] > 2.1, rng.random(n) < 0.015]).astype(int)
    return pd.DataFrame(X.round(3), columns=list("abcd")), pd.DataFrame(Y, columns=["hot", "wet", "random"])


def parts(name: str, seed: int) -> list[Any]:
    """Return training rows, test rows, training labels and test labels."""
    made = {"text": made_text, "compare": made_text, "mixed": made_table, "noise": made_noise}
    if name in made:
        frame, labels = made[name](seed)
    else:
        stored = datasets.load(name)
        frame, labels = stored.X, pd.DataFrame(stored.Y, columns=stored.label_names)
    return train_test_split(frame, labels, test_size=0.4, random_state=seed)


def results() -> list[dict[str, Any]]:
    """Return what is in the file."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []


def known(part: str, seed: int, metric: str) -> bool:
    """Return whether a result is in the file."""
    return any((one["part"], one["seed"], one["metric"]) == (part, seed, metric) for one in results())


def keep(**row: Any) -> None:
    """Print a result and append it to the file."""
    line = json.dumps({name: round(one, 6) if isinstance(one, float) else one for name, one in row.items()})
    print(line, flush=True)
    with RESULTS.open("a") as stream:
        stream.write(line + "\n")


def peers_of(
    name: str, train: Any, test: Any, labels: pd.DataFrame, metric: str
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the decisions of the linear SVM and of the same with tuned thresholds, and its seconds."""
    plain: Any = OneVsRestClassifier(LinearSVC(random_state=0))
    if isinstance(train, pd.DataFrame):
        plain = make_pipeline(TfidfVectorizer(), plain)
        train, test = train["text"].to_numpy(), test["text"].to_numpy()
    tuned = TunedThresholdClassifier(plain, objective=metric, random_state=0).fit(train, labels)
    began = time.process_time()
    plain.fit(train, labels)
    return plain.predict(test), tuned.predict(test), time.process_time() - began


def member_seconds(train: Any, labels: pd.DataFrame) -> float:
    """Return processor seconds of a fit of the linear member, with the encoding of texts."""
    began = time.process_time()
    X = FrameEncoder().fit_transform(train) if isinstance(train, pd.DataFrame) else train
    BinaryRelevance(LinearSVC(random_state=0)).fit(X, labels)
    return time.process_time() - began


def of_text(name: str, seed: int) -> None:
    """Compare with the linear SVM, on made-up text or the bags of words of a set."""
    train, test, labels, truth = parts(name, seed)
    for metric, value in METRICS.items():
        if known(name, seed, metric):
            continue
        plain, tuned, seconds = peers_of(name, train, test, labels, metric)
        began = time.monotonic()
        model = AutoMultiLabel(metric=metric, time_limit=LIMIT).fit(train, labels)
        taken = time.monotonic() - began
        keep(
            part=name,
            seed=seed,
            metric=metric,
            ours=value(truth, model.predict(test)),
            plain=value(truth, plain),
            tuned=value(truth, tuned),
            best=model.best_,
            seconds=taken,
            cpu_ratio=member_seconds(train, labels) / seconds,
        )


def of_tables(name: str, seed: int) -> None:
    """Compare with the method of the portfolio that is best on the test rows, alone, with thresholds or without."""
    train, test, labels, truth = parts(name, seed)
    words = FrameEncoder().fit(train)
    texts = texts_of(words.encoder_.kinds)
    with_grams = FrameEncoder(dict.fromkeys(texts, "text:chars")).fit(train)
    for metric, value in METRICS.items():
        if known(name, seed, metric):
            continue
        began = time.monotonic()
        model = AutoMultiLabel(metric=metric, time_limit=LIMIT).fit(train, labels)
        taken = time.monotonic() - began
        single = {}
        for entry in load_portfolio().select(None, text=bool(texts)):
            if model.leaderboard_["state"].get(entry.name) != "done" or entry.name == "label_frequencies":
                continue
            encoder = with_grams if entry.chars else words
            X, X_test = encoder.transform(train), encoder.transform(test)
            before, rest = estimator_of(entry.method, 0, "benchmark", encoder=encoder.encoder_).label_free()
            for _, step in before:
                X, X_test = step.fit(X).transform(X), step.transform(X_test)
            tuned = TunedThresholdClassifier(rest, objective=metric, guard=True).fit(X, labels)
            single[entry.name] = value(truth, tuned.estimator_.predict(X_test))
            single[f"{entry.name} + thresholds"] = value(truth, tuned.predict(X_test))
        keep(
            part=name,
            seed=seed,
            metric=metric,
            ours=value(truth, model.predict(test)),
            best=model.best_,
            seconds=taken,
            singles={title: round(one, 4) for title, one in single.items()},
        )


def of_noise(name: str, seed: int) -> None:
    """Compare the micro F1 of a model that is chosen by macro F1 with that of linear methods as they are."""
    train, test, labels, truth = parts(name, seed)
    if known(name, seed, "macro_f1"):
        return
    began = time.monotonic()
    model = AutoMultiLabel(metric="macro_f1", time_limit=LIMIT).fit(train, labels)
    taken = time.monotonic() - began
    plain = OneVsRestClassifier(LinearSVC(random_state=0)).fit(train, labels).predict(test)
    ours = micro_f1(truth, model.predict(test))
    keep(
        part=name,
        seed=seed,
        metric="macro_f1",
        ours=ours,
        plain=micro_f1(truth, plain),
        best=model.best_,
        seconds=taken,
    )


def of_compare(name: str, seed: int) -> None:
    """Fit what `multilab compare` recommends: `multilab fit` without a method."""
    train, test, labels, truth = parts(name, seed)
    with tempfile.TemporaryDirectory() as folder:
        table = pd.concat([train, labels.add_prefix("is_")], axis=1)
        table.to_csv(Path(folder) / "train.csv", index=False)
        environment = {**os.environ, "MULTILAB_CELLS": f"{folder}/cells"}
        for metric, value in METRICS.items():
            if known(name, seed, metric):
                continue
            plain, tuned, _ = peers_of(name, train, test, labels, metric)
            words = [
                "--dataset",
                "train.csv",
                "--label-prefix",
                "is_",
                "--budget",
                BUDGET,
                "--metric",
                metric,
                "-o",
                "model",
            ]
            command = [sys.executable, "-m", "multilab", "fit", *words]
            began = time.monotonic()
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stdout + done.stderr)
            model = load_model(Path(folder) / "model")
            keep(
                part=name,
                seed=seed,
                metric=metric,
                ours=value(truth, model.predict_frame(test)[list(model.label_names)].to_numpy()),
                plain=value(truth, plain),
                tuned=value(truth, tuned),
                best=next(line for line in done.stdout.splitlines() if line.startswith("Use ")).split(",")[0],
                seconds=time.monotonic() - began,
            )


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means over the seeds, the better peer of the means, and whether the goal is met."""
    lines = []
    for (part, metric), group in rows.groupby(["part", "metric"], sort=False):
        sign = -1 if metric == "hamming_loss" else 1
        if group.get("singles") is not None and group["singles"].notna().all():
            peers = pd.DataFrame(group["singles"].tolist()).dropna(axis=1).mean()  # done with every seed
        else:
            peers = group[[one for one in ("plain", "tuned") if one in group]].mean().dropna()
        peer = max(peers.index, key=lambda one: sign * peers[one])
        allowed = 0.02 if part == "noise" else GOAL if part != "mixed" else 0.0
        gain = sign * (group["ours"].mean() - peers[peer])
        lines.append(
            {
                "part": part,
                "metric": metric,
                "seeds": len(group),
                "ours": group["ours"].mean(),
                "best peer": peer,
                "peer": peers[peer],
                "gain": gain,
                "met": bool(gain >= -allowed),
                "seconds": group["seconds"].mean(),
                "cpu ratio": group["cpu_ratio"].median() if "cpu_ratio" in group else np.nan,
            }
        )
    return pd.DataFrame(lines)


if __name__ == "__main__":
    main()
