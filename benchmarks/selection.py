"""Selectors of features: LWMF's neighbour search, ReliefF, and curves over the number of features.

    python benchmarks/selection.py

One thread. The search for the nearest hits and misses of every label of yahoo-social (2000 x 1047, labels with two rows
of each class) against scikit-learn's brute force per label and class, which must find the same distances, and of
exactly tied rows the first: ties are detected by exact distances. ReliefF on one label of yeast (1500 x 103) against
skrebate, which must give the same weights. ML-kNN on the first 1/20, 2/20, ... of the features of yahoo-social as LWMF
ranks them, 2000 training and 3000 test rows, against refitting it each time, which must give the same scores.
Without ``MULTILAB_DATA`` the data are simulated in the same shapes.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from common import Line, Peers, arguments, peers, race, show
from multilab.methods.neighbours.feature_path import mlknn_path
from multilab.methods.neighbours.mlknn import MLkNN
from multilab.methods.selection._distances import nearest_of_classes, scaled
from multilab.methods.selection.lwmf import LWMF
from multilab.methods.selection.ppt_relieff import PPTReliefF

Data = tuple[np.ndarray, np.ndarray, np.ndarray]
ROUNDING = 1e-7  # of scikit-learn's distances from inner products


def data(name: str, train: int, test: int, d: int, q: int) -> Data:
    """Return training rows, their labels and test rows of a data set, or simulated ones of the same shape."""
    if os.environ.get("MULTILAB_DATA"):
        from multilab import datasets, model_selection

        data = datasets.load(name)
        split = model_selection.splits(name, {"split": "official"})[0]
        return data.X[split.train][:train], data.Y[split.train][:train], data.X[split.test][:test]
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(train + test, d)) * (rng.random((train + test, d)) < 0.04)
    latent = X @ rng.normal(size=(d, q)) + rng.normal(size=(train + test, q))
    share = np.linspace(0.5, 0.005, q)
    Y = latent > np.quantile(latent, 1 - share, axis=0).diagonal()
    return X[:train], Y[:train].astype(np.uint8), X[train:]


def per_label(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the distances to the nearest other row of each class of each label by scikit-learn, shape (2, n, q)."""
    from sklearn.neighbors import NearestNeighbors

    distances = np.empty((2, *Y.shape))
    for label in range(Y.shape[1]):
        for kind in (0, 1):
            members = Y[:, label] == kind
            search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(X[members])
            distances[kind, members, label] = search.kneighbors()[0][:, 0]  # without oneself
            distances[kind, ~members, label] = search.kneighbors(X[~members])[0][:, 0]
    return distances


def same_hits(X: np.ndarray, Y: np.ndarray, ours: Any, distances: np.ndarray) -> str:
    """Compare distances with the peer's, and our rows with the first of the exactly nearest ones."""
    indices, away = ours
    wrong = int((np.abs(away - distances) > ROUNDING * (1 + distances)).sum())
    exact = cdist(X, X)
    np.fill_diagonal(exact, np.inf)
    for label in range(Y.shape[1]):
        for kind in (0, 1):
            members = np.flatnonzero(Y[:, label] == kind)
            wrong += int((members[exact[:, members].argmin(axis=1)] != indices[kind, :, label]).sum())
    return f"DIFFERENT: {wrong} distances or rows" if wrong else f"identical {away.size} rows and distances"


def hits(social: Data, repeats: int) -> Line:
    """Time the search for the nearest of each class of each label."""
    X, Y, _ = social
    usable = np.minimum(Y.sum(axis=0), len(Y) - Y.sum(axis=0)) >= 2
    X, Y = scaled(X), Y[:, usable]
    runners = {"ours": lambda: nearest_of_classes(X, Y), "theirs": lambda: per_label(X, Y)}
    medians, outputs = race(runners, repeats)
    ratio = medians["theirs"] / medians["ours"]
    value = f"{ratio:.0f}x ({medians['ours']:.2f} s to {medians['theirs']:.1f} s)"
    check = same_hits(X, Y, outputs["ours"], outputs["theirs"])
    claim = f"scikit-learn's time for nearest hits and misses of {Y.shape[1]} labels to LWMF's"
    return Line(claim, value, ">= 20x", ratio >= 20, check)


def relief(yeast: Data, repeats: int) -> Line:
    """Time ReliefF on one label."""
    from skrebate import ReliefF

    X, Y, _ = yeast
    runners = {
        "ours": lambda: PPTReliefF(k=10).fit(X, Y[:, :1]).scores_,
        "theirs": lambda: ReliefF(n_neighbors=10, n_jobs=1).fit(X.copy(), Y[:, 0].astype(int)).feature_importances_,
    }
    medians, outputs = race(runners, repeats)
    ratio = medians["theirs"] / medians["ours"]
    worst = float(np.abs(outputs["ours"] - outputs["theirs"]).max())
    check = f"identical {X.shape[1]} weights to {worst:.0e}" if worst < 1e-10 else f"DIFFERENT: weights by {worst:.1e}"
    value = f"{ratio:.0f}x ({medians['ours']:.2f} s to {medians['theirs']:.1f} s)"
    return Line("skrebate's time for ReliefF on one label to ours", value, ">= 30x", ratio >= 30, check)


def curve(social: Data, points: int, repeats: int) -> Line:
    """Time ML-kNN over a growing set of features."""
    X, Y, new = social
    order = np.argsort(LWMF().fit(X, Y).ranking_)
    counts = [round(X.shape[1] * i / points) for i in range(1, points + 1)]

    def refitted() -> list[np.ndarray]:
        subsets = (np.sort(order[:count]) for count in counts)
        return [MLkNN(10).fit(X[:, chosen], Y).predict_proba(new[:, chosen]) for chosen in subsets]

    runners = {"ours": lambda: list(mlknn_path(X, Y, new, order, counts, 10, 1.0)), "refitted": refitted}
    medians, outputs = race(runners, repeats)
    ratio = medians["refitted"] / medians["ours"]
    different = sum(int((a != b).sum()) for a, b in zip(outputs["ours"], outputs["refitted"], strict=True))
    total = sum(one.size for one in outputs["refitted"])
    check = f"DIFFERENT: {different} scores" if different else f"identical {total} scores"
    value = f"{ratio:.1f}x ({medians['ours']:.2f} s to {medians['refitted']:.1f} s)"
    return Line(f"ML-kNN refitted for {points} numbers of features to a curve", value, ">= 10x", ratio >= 10, check)


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=2000, help="training rows; half as many again are tested")
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args(argv)
    n = chosen.rows
    social = data("yahoo-social", n, 3 * n // 2, 1047, 39)
    lines, notes = [hits(social, chosen.repeats), curve(social, 20, chosen.repeats)], []
    try:
        notes.append(f"skrebate {peers('skrebate')['skrebate']}")
        lines.append(relief(data("yeast", 3 * n // 4, 0, 103, 14), min(chosen.repeats, 2)))
    except Peers as error:
        notes.append(str(error))
    import sklearn

    notes.append(f"scikit-learn {sklearn.__version__}: NearestNeighbors(algorithm='brute') per label and class")
    show(f"selection of features, {n} training rows", lines, notes, chosen.json)


if __name__ == "__main__":
    main()
