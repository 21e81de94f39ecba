"""Many labels and many rows: split, fit, predict and metrics with a sparse Y, each in a separate process.

    python benchmarks/many_labels.py

Two sets made from a seed, both with a sparse Y from beginning to end: documents like those of Eurlex (15,000 rows,
5,000 sparse features, 4,000 labels, 5 of them a row) and points (100,000 rows, 100 features, 100 labels). Each run is a
separate process that draws the data, splits off 20 % by iterative stratification, fits, predicts the decisions and
the five best labels, and computes metrics; its peak memory is that of the process. The base learner of binary relevance
is linear: ``SGDClassifier(max_iter=5, tol=None)``. ML-kNN has exact and approximate neighbours.

scikit-learn's OneVsRestClassifier is timed with the same base learner on the same sparse labels, fit + predict on the
first ``--labels`` labels of the documents, one after the other on one thread; it must decide the same.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize

from common import CHECKOUT, PEERS, Line, arguments, race, show
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.methods.sparse_scores import top_scores
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.metrics import precision_at_k, score_all
from multilab.model_selection import make_splits

LIMIT = 8 * 1024  # MiB
SIZES = {"documents": (15_000, 5_000, 4_000), "points": (100_000, 100, 100)}
BASE = SGDClassifier(max_iter=5, tol=None, random_state=0)
K = 5


def documents(n: int, d: int, q: int, seed: int = 0) -> tuple[sp.csr_array, sp.csr_array]:
    """Return rows of terms: those of their labels, whose frequencies fall as a power, and common ones."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, q + 1) ** 0.8
    size = 1 + rng.poisson(4, size=n)
    rows = np.repeat(np.arange(n), size)
    labels = rng.choice(q, size=len(rows), p=frequency / frequency.sum())
    used = rng.random((len(rows), 20)) < 0.6
    terms = np.append(rng.integers(d, size=(q, 20))[labels][used], rng.zipf(1.3, size=30 * n) % d)
    owners = np.append(np.repeat(rows, used.sum(axis=1)), np.repeat(np.arange(n), 30))
    cells = owners.astype(np.int32), terms.astype(np.int32)  # scikit-learn's linear models take no other indices
    X = sp.csr_array((np.ones(len(terms)), cells), shape=(n, d))
    X.data = np.log1p(X.data)
    Y = sp.csr_array((np.ones(len(rows), dtype=np.uint8), (rows, labels)), shape=(n, q))
    Y.data[:] = 1
    return normalize(X), Y


def points(n: int, d: int, q: int, seed: int = 0) -> tuple[np.ndarray, sp.csr_array]:
    """Return rows around centres, and labels that depend linearly on them; about 5 of 100 a row."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(2, n // 500), d))
    X = centres[rng.integers(len(centres), size=n)] + 0.7 * rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, q)) / np.sqrt(d)
    return X, sp.csr_array((scores > 2.0).astype(np.uint8))


def model(method: str) -> Any:
    """Return binary relevance, or ML-kNN with the search that is named after it."""
    if method == "br":
        return BinaryRelevance(BASE)
    return MLkNN(k=10, neighbours=method.removeprefix("mlknn-"))


def run(data: str, method: str, sizes: tuple[int, int, int]) -> dict[str, Any]:
    """Return seconds of each step, peak MiB, and two metrics of one run in this process."""
    seconds: dict[str, float] = {}
    began = time.perf_counter()

    def done(step: str) -> None:
        nonlocal began
        seconds[step] = time.perf_counter() - began
        began = time.perf_counter()

    X, Y = {"documents": documents, "points": points}[data](*sizes)
    data_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    done("data")
    (split,) = make_splits(Y, {"holdout": {"train_size": 0.8}, "stratify": 1})
    done("split")
    fitted = model(method).fit(X[split.train], Y[split.train])
    done("fit")
    decisions = fitted.predict_sparse(X[split.test])
    scores = top_scores(fitted, X[split.test], K)
    done("predict")
    values = score_all(Y[split.test], None, decisions=decisions)
    precision = precision_at_k(Y[split.test], scores, k=K)
    done("metrics")
    return {
        "seconds": seconds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "data": data_mib,
        "micro_f1": values["micro_f1"],
        "precision_at_5": float(precision),
        "recall": getattr(fitted, "neighbour_recall_", None),
    }


def child(data: str, method: str, sizes: tuple[int, int, int]) -> Line:
    """Run in a separate process and return its line."""
    command = [sys.executable, str(Path(__file__).resolve()), "--run", data, method, *map(str, sizes)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT / "src"), *map(str, peer_folders())])}
    output = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    result = json.loads(output.splitlines()[-1])
    steps = ", ".join(f"{step} {taken:.0f}" for step, taken in result["seconds"].items())
    n, d, q = (f"{size:,}" for size in sizes)
    quality = f"micro F1 {result['micro_f1']:.3f}, P@5 {result['precision_at_5']:.3f}"
    if result["recall"] is not None:
        quality += f", recall of neighbours {result['recall']:.3f}"
    memory = f"{result['peak']:.0f} MiB, of which {result['data']:.0f} are there with the data"
    return Line(
        f"peak memory of {method} on {n} {data} x {d} features x {q} labels, the data included",
        f"{memory} (seconds: {steps}; {quality})",
        f"< {LIMIT} MiB",
        result["peak"] < LIMIT,
    )


def peer_folders() -> list[Path]:
    """Return where Faiss may be: the environment of the peers."""
    return sorted(Path(os.environ.get("MULTILAB_PEERS", PEERS)).glob("lib/python*/site-packages"))


def against_one_vs_rest(sizes: tuple[int, int, int], n_labels: int, repeats: int) -> Line:
    """Time fit + predict of binary relevance and of scikit-learn's OneVsRestClassifier on the same sparse labels."""
    X, Y = documents(*sizes)
    Y = sp.csr_array(Y[:, :n_labels])
    wide, half = Y.astype(np.int64), X.shape[0] // 2
    runners = {
        "multilab": lambda: BinaryRelevance(BASE).fit(X[:half], Y[:half]).predict_sparse(X[half:]),
        # of a uint8 Y with more than 256 labels scikit-learn 1.9.1 mixes up the labels
        "sklearn": lambda: OneVsRestClassifier(BASE).fit(X[:half], wide[:half]).predict(X[half:]),
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Label not .* is present in all training examples")
        medians, outputs = race(runners, repeats)
    different = int((outputs["multilab"] != sp.csr_array(outputs["sklearn"])).nnz)
    size = outputs["multilab"].shape[0] * n_labels
    return Line(
        f"OneVsRestClassifier's time to multilab's, {n_labels} labels of the documents",
        f"{medians['sklearn'] / medians['multilab']:.2f}x ({medians['multilab']:.1f} s to {medians['sklearn']:.1f} s)",
        ">= 0.9x",
        medians["sklearn"] >= 0.9 * medians["multilab"],
        f"DIFFERENT: {different} decisions" if different else f"identical {size} decisions",
    )


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--labels", type=int, default=400, help="labels that OneVsRestClassifier is timed on")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows, to try the script")
    parser.add_argument("--run", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    if chosen.run:
        print(json.dumps(run(*chosen.run[:2], tuple(map(int, chosen.run[2:])))))
        return
    sizes = {name: (n // 100, d // 10, q // 10) if chosen.small else (n, d, q) for name, (n, d, q) in SIZES.items()}
    runs = [("documents", "br"), ("documents", "mlknn-exact"), ("points", "br"), ("points", "mlknn-exact")]
    has_faiss = find_spec("faiss") is not None or any((folder / "faiss").is_dir() for folder in peer_folders())
    if has_faiss:
        runs += [("points", "mlknn-hnsw"), ("points", "mlknn-ivf")]
    lines = [child(data, method, sizes[data]) for data, method in runs]
    lines.append(against_one_vs_rest(sizes["documents"], min(chosen.labels, sizes["documents"][2]), chosen.repeats))
    notes = [] if has_faiss else ["approximate neighbours left out: faiss-cpu is not installed"]
    show("Many labels and rows", lines, notes, chosen.json)


if __name__ == "__main__":
    main()
