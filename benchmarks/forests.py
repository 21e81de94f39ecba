"""Time and weigh the deep forests: prediction, storage, paths of trees, two workers, memory.

    MULTILAB_DATA=... python benchmarks/forests.py [--dataset slashdot] [--layers 20] [--trees 100] [--growth]

70 % of the rows are for training, features scaled to [0, 1]. MLDF and iMLDF grow all layers. At the published size (20
layers, 100 trees, slashdot) this takes most of an hour. With few trees the ratios of storage are the same, and the
regions, which cost the same whatever the trees, slow iMLDF's prediction down. Without MULTILAB_DATA, simulated data.

*Growth*: a forest of 100 trees on few simulated rows, ours and scikit-learn's, which must be the same; --growth times
nothing else.

*Paths*: the tightest condition per leaf, side and feature of all trees of a forest, by walking up from all leaves at
once, and by a recursive walk down, which must find the same.

*Two workers* must give identical scores. *Memory* is the kernel's peak over what the process had before the fit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor

from common import Line, arguments, race, show
from multilab.cells.fit_costs import Meter, model_bytes
from multilab.methods.forests.compact_forest import CompactForest, grow_forest, single_precision
from multilab.methods.forests.imldf import IMLDF
from multilab.methods.forests.interactions import ABOVE, BELOW, TreeStack
from multilab.methods.forests.mldf import MLDF
from multilab.papers.imldf.table4 import plain_bytes


def problem(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Return training X and Y, test X, and where they come from."""
    if os.environ.get("MULTILAB_DATA"):
        from multilab.datasets import load

        data = load(name)
        X, Y, source = single_precision(data.X), data.Y, "real data"
    else:
        rng = np.random.default_rng(0)
        X = rng.random((1000, 100)).astype(np.float32)
        Y, source = (X[:, :10] + 0.3 * rng.normal(size=(1000, 10)) > 0.8).astype(np.uint8), "simulated"
    order = np.random.default_rng(1).permutation(len(Y))
    train, test = order[: 7 * len(Y) // 10], order[7 * len(Y) // 10 :]
    low, span = X[train].min(axis=0), np.ptp(X[train], axis=0)
    X = (X - low) / np.where(span > 0, span, 1)
    return X[train], Y[train], X[test], source


def recursive_boxes(tree: Any, n_features: int) -> dict[int, np.ndarray]:
    """Return the tightest conditions of each leaf by walking down."""
    boxes: dict[int, np.ndarray] = {}
    left, right, feature, threshold = tree.children_left, tree.children_right, tree.feature, tree.threshold

    def walk(node: int, below: dict[int, float], above: dict[int, float]) -> None:
        if left[node] < 0:
            box = np.full((2, n_features), np.nan)
            box[BELOW, list(below)], box[ABOVE, list(above)] = list(below.values()), list(above.values())
            boxes[node] = box
            return
        f, t = feature[node], threshold[node]
        walk(left[node], {**below, f: min(t, below.get(f, t))}, above)
        walk(right[node], below, {**above, f: max(t, above.get(f, t))})

    walk(0, {}, {})
    return boxes


def recursive_paths(tree: Any) -> list[tuple[int, int, int]]:
    """Return (leaf, split above it, side) for all leaves by walking down."""
    steps = []
    left, right = tree.children_left, tree.children_right

    def walk(node: int, path: list[tuple[int, int]]) -> None:
        if left[node] < 0:
            steps.extend((node, split, side) for split, side in path)
            return
        walk(left[node], [*path, (node, BELOW)])
        walk(right[node], [*path, (node, ABOVE)])

    walk(0, [])
    return steps


def growth(repeats: int) -> list[Line]:
    """Race our forests with scikit-learn's on few rows; nodes of all trees must be the same."""
    lines = []
    for n, d, q in ((90, 19, 7), (260, 72, 6), (1000, 103, 14)):
        rng = np.random.default_rng(0)
        X = rng.random((n, d)).astype(np.float32)
        Y = (X[:, :q] + 0.5 * rng.random((n, q)) > 0.8).astype(np.uint8)
        for kind, peer in (("random", RandomForestRegressor), ("extra", ExtraTreesRegressor)):

            def theirs(peer: Any = peer, X: np.ndarray = X, Y: np.ndarray = Y) -> CompactForest:
                trees = [one.tree_ for one in peer(100, max_features="sqrt", random_state=0).fit(X, Y).estimators_]
                return CompactForest.of(trees, np.arange(Y.shape[1]), Y[0], X.shape[1])

            taken, forests = race({"ours": partial(grow_forest, kind, X, Y, 0), "theirs": theirs}, repeats)
            same = np.array_equal(forests["ours"][0].nodes, forests["theirs"].nodes)
            faster = taken["theirs"] / taken["ours"]
            value = f"{faster:.1f}x ({1e3 * taken['ours']:.0f} ms to {1e3 * taken['theirs']:.0f} ms)"
            check = f"identical {len(forests['theirs'].nodes)} nodes" if same else "DIFFERENT: nodes"
            lines.append(
                Line(f"scikit-learn's time to ours, {kind} trees on {n} x {d}, {q} labels", value, check=check)
            )
    return lines


def paths(X: np.ndarray, Y: np.ndarray, n_trees: int, repeats: int) -> Line:
    """Race the walk up from all leaves with the recursion; their pairs and their boxes must be the same."""
    trees = [one.tree_ for one in RandomForestClassifier(n_trees, random_state=0).fit(X, Y).estimators_]

    def at_once() -> int:
        stack = TreeStack.of(trees)
        return sum(len(who) for who, _, _ in stack.walk_up(stack.leaves))

    taken, results = race({"ours": at_once, "theirs": lambda: sum(len(recursive_paths(t)) for t in trees)}, repeats)
    stack, expected = TreeStack.of(trees[:1]), recursive_boxes(trees[0], X.shape[1])
    same = results["ours"] == results["theirs"] and all(
        np.array_equal(box, expected[leaf], equal_nan=True)
        for leaf, box in zip(stack.leaves.tolist(), stack.boxes(stack.leaves, X.shape[1]), strict=True)
    )
    faster = taken["theirs"] / taken["ours"]
    check = f"identical {results['ours']} pairs, {len(expected)} boxes" if same else "DIFFERENT: paths"
    value = f"{faster:.0f}x ({1e3 * taken['ours']:.1f} ms to {1e3 * taken['theirs']:.0f} ms)"
    return Line(f"recursion's time to ours, paths of {n_trees} trees", value, ">= 20x", faster >= 20, check)


def workers(X: np.ndarray, Y: np.ndarray, X_test: np.ndarray, n_trees: int) -> list[Line]:
    """Fit both cascades of two layers with one worker and with two."""
    lines = []
    for kind in (MLDF, IMLDF):
        taken, scores = [], []
        for jobs in (1, 2):
            model = kind(n_layers=2, n_trees=n_trees, early_stopping=False, n_jobs=jobs, random_state=0)
            began = time.perf_counter()
            scores.append(model.fit(X, Y).predict_proba(X_test))
            taken.append(time.perf_counter() - began)
        check = f"identical {scores[0].size} scores" if np.array_equal(*scores) else "DIFFERENT: scores"
        faster = taken[0] / taken[1]
        value = f"{faster:.2f}x ({taken[0]:.1f} s to {taken[1]:.1f} s)"
        lines.append(Line(f"{kind.__name__}: one worker's time to two's", value, ">= 1.6x", faster >= 1.6, check))
    return lines


def deep(X: np.ndarray, Y: np.ndarray, X_test: np.ndarray, layers: int, n_trees: int) -> list[Line]:
    """Grow both cascades to the full depth and compare what they cost afterwards."""
    args = {"n_layers": layers, "n_trees": n_trees, "early_stopping": False, "random_state": 0}
    models, peaks, runners = {}, {}, dict[str, Callable[[], Any]]()
    for kind in (MLDF, IMLDF):
        with Meter() as meter:
            model = kind(**args).fit(X, Y)
        models[kind.__name__], peaks[kind.__name__] = model, meter.peak_mb / 1024
        runners[kind.__name__] = lambda model=model: model.predict_proba(X_test)
    taken, _ = race(runners, 3)
    faster = taken["MLDF"] / taken["IMLDF"]
    lines = [
        Line(
            f"MLDF's time to predict to iMLDF's, {layers} layers",
            f"{faster:.1f}x ({taken['MLDF']:.2f} s to {taken['IMLDF']:.2f} s)",
            ">= 10x",
            faster >= 10,
        )
    ]
    compact = {name: model_bytes(model) for name, model in models.items()}
    plain = {
        name: compact[name] + sum(plain_bytes(one) - model_bytes(one) for one in model.forests_)
        for name, model in models.items()
    }
    for how, sizes in (("compact", compact), ("as scikit-learn keeps trees", plain)):
        smaller = sizes["MLDF"] / sizes["IMLDF"]
        value = f"{smaller:.1f}x ({sizes['MLDF'] / 1e6:.0f} MB to {sizes['IMLDF'] / 1e6:.0f} MB)"
        lines.append(Line(f"MLDF's storage to iMLDF's, {how}", value, ">= 10x", smaller >= 10))
    value = f"{peaks['MLDF']:.2f} GiB (iMLDF {peaks['IMLDF']:.2f} GiB)"
    lines.append(Line(f"peak memory of MLDF's fit, {layers} layers", value, "< 8 GiB", peaks["MLDF"] < 8))
    return lines


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--dataset", default="slashdot")
    parser.add_argument("--layers", type=int, default=20)
    parser.add_argument("--trees", type=int, default=100, help="trees per forest of the cascades")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth", action="store_true", help="time the growth of small forests only")
    chosen = parser.parse_args(argv)
    if chosen.growth:
        show("Growth of forests", growth(chosen.repeats), [], chosen.json)
        return
    X, Y, X_test, source = problem(chosen.dataset)
    lines = [*growth(chosen.repeats), paths(X, Y, 100, chosen.repeats), *workers(X, Y, X_test, chosen.trees)]
    lines += deep(X, Y, X_test, chosen.layers, chosen.trees)
    note = f"{chosen.dataset} ({source}): X {X.shape[0]} x {X.shape[1]}, {Y.shape[1]} labels; {chosen.trees} trees"
    show("Deep forests", lines, [note], chosen.json)


if __name__ == "__main__":
    main()
