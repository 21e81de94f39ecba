"""One-vs-rest and label trees on made-up data in the shape of EURLex-4K: precision at k, processor time and memory.

    python benchmarks/extreme.py

15,500 training and 3,800 test rows, 186,000 sparse features (about 200 a row), 4,000 labels (about 5 a row). The
frequencies of the labels fall as a power. A row has topics, and each topic gives it some of its own terms, which are
fewer than the common terms of the row. One topic in ten is not recorded as a label. So the best possible precision is
known: that of the topics themselves.

`SparseBinaryRelevance` and `Omikuji` (extra ``xmc``; left out without it) have their defaults. Each runs in a separate
process that draws the data, fits, stores the 100 best scores of each test row as a sparse matrix, and computes the
metrics on it. Seconds are processor time, so that other work on the machine counts little; the peak is that of the
process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from common import CHECKOUT, Line, arguments, show
from multilab import methods
from multilab.methods.sparse_scores import top_scores
from multilab.metrics import label_propensities, ndcg_at_k, precision_at_k

LIMIT = 8 * 1024  # MiB
SIZES = 15_500, 3_800, 186_000, 4_000  # training rows, test rows, features, labels
METHODS = ("SparseBinaryRelevance", "Omikuji")
OWN, USED, COMMON = 15, 0.25, 195  # terms of a topic, the share of them in a row, common terms of a row


def eurlex(n: int, d: int, q: int, seed: int = 0) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array]:
    """Return TF-IDF rows of length 1, their labels, and their topics: the labels and those that were not recorded."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / (np.arange(q) + 11.0)
    size = 1 + rng.poisson(4.3, size=n)
    rows = np.repeat(np.arange(n), size)
    topics = rng.choice(q, size=len(rows), p=frequency / frequency.sum())
    own = (rng.random((q, OWN)) ** 3 * d).astype(np.int32)  # frequent terms belong to several topics
    used = rng.random((len(rows), OWN)) < USED
    terms = np.append(own[topics][used], (rng.random(COMMON * n) ** 4 * d).astype(np.int32))
    owners = np.append(np.repeat(rows, used.sum(axis=1)), np.repeat(np.arange(n), COMMON))
    X = sp.csr_array((np.ones(len(terms)), (owners.astype(np.int32), terms)), shape=(n, d))
    X.data = (1 + np.log(X.data)) * np.log(n / np.bincount(X.indices, minlength=d)[X.indices])
    recorded = rng.random(len(rows)) < 0.9
    return normalize(X), _labels(rows[recorded], topics[recorded], n, q), _labels(rows, topics, n, q)


def _labels(rows: np.ndarray, labels: np.ndarray, n: int, q: int) -> sp.csr_array:
    Y = sp.csr_array((np.ones(len(rows), dtype=np.uint8), (rows, labels)), shape=(n, q))
    Y.data[:] = 1
    return Y


def run(method: str, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Return processor seconds of each step, peak MiB and the metrics of one method in this process."""
    n_train, n_test, d, q = sizes
    X, Y, topics = eurlex(n_train + n_test, d, q)
    data_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = {}
    began = time.process_time()
    seed = {"random_state": 0} if method == "SparseBinaryRelevance" else {}  # omikuji takes none
    model = getattr(methods, method)(**seed).fit(X[:n_train], Y[:n_train])
    seconds["fit"], began = time.process_time() - began, time.process_time()
    scores = top_scores(model, X[n_train:])
    seconds["predict"], began = time.process_time() - began, time.process_time()
    truth, propensities = Y[n_train:], label_propensities(Y[:n_train])
    found = {f"P@{k}": precision_at_k(truth, scores, k=k) for k in (1, 3, 5)}
    found["nDCG@5"] = ndcg_at_k(truth, scores, k=5)
    found["PSP@5"] = precision_at_k(truth, scores, k=5, propensities=propensities)
    seconds["metrics"] = time.process_time() - began
    best = {f"P@{k}": precision_at_k(truth, topics[n_train:], k=k) for k in (1, 3, 5)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak": peak, "data": data_mib, "metrics": found, "best": best}


def child(method: str, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Run a method in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--run", method, *map(str, sizes)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT / "src"), os.environ.get("PYTHONPATH", "")])}
    output = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def described(method: str, found: dict[str, Any], sizes: tuple[int, ...]) -> Line:
    """Return the line of one method: its memory, which has a limit, its seconds and its metrics."""
    n, _, d, q = (f"{size:,}" for size in sizes)
    steps = ", ".join(f"{step} {taken:.1f}" for step, taken in found["seconds"].items())
    quality = ", ".join(f"{name} {value:.3f}" for name, value in found["metrics"].items())
    memory = f"{found['peak']:.0f} MiB, of which {found['data']:.0f} are there with the data"
    claim = f"peak memory of {method} on {n} rows x {d} features x {q} labels"
    return Line(claim, f"{memory} (processor s: {steps}; {quality})", f"< {LIMIT} MiB", found["peak"] < LIMIT)


def compared(ours: dict[str, Any], theirs: dict[str, Any]) -> list[Line]:
    """Return one-vs-rest next to omikuji, as ratios of seconds and memory and differences of precision."""
    quotients: dict[str, Callable[[dict[str, Any]], float]] = {
        "processor time to fit": lambda found: found["seconds"]["fit"],
        "processor time to predict": lambda found: found["seconds"]["predict"],
        "peak memory": lambda found: found["peak"],
    }
    lines = [Line(f"one-vs-rest to omikuji, {name}", f"{of(ours) / of(theirs):.2f}x") for name, of in quotients.items()]
    gains = [f"{name} {ours['metrics'][name] - theirs['metrics'][name]:+.3f}" for name in ours["metrics"]]
    return [*lines, Line("one-vs-rest minus omikuji", ", ".join(gains))]


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--share", type=float, default=1.0, help="share of each size, to try the script; 0.25 takes minutes"
    )
    parser.add_argument("--run", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if chosen.run:
        print(json.dumps(run(chosen.run[0], tuple(map(int, chosen.run[1:])))))
        return
    sizes = tuple(round(chosen.share * size) for size in SIZES)
    has_omikuji = find_spec("omikuji") is not None
    found = {}
    for method in METHODS if has_omikuji else METHODS[:1]:
        found[method] = child(method, sizes)
        print(method, json.dumps(found[method]), flush=True)
    lines = [described(method, result, sizes) for method, result in found.items()]
    if has_omikuji:
        lines += compared(*(found[method] for method in METHODS))
    best = ", ".join(f"{name} {value:.3f}" for name, value in found[METHODS[0]]["best"].items())
    lines.append(Line("best possible: the topics of the test rows in any order", best))
    notes = [] if has_omikuji else ["omikuji left out: pip install omikuji"]
    show("One-vs-rest and label trees", lines, notes, chosen.json)


if __name__ == "__main__":
    main()
