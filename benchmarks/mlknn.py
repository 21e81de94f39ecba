"""ML-kNN, fit + predict, against scikit-learn's bare neighbour search and scikit-multilearn-ng's MLkNN.

    python benchmarks/mlknn.py

2000 training points, 2000 queries, 100 features, 100 labels, k = 10, one thread. scikit-learn answers the same two
queries (training points among themselves without self, then the new points) by each of its algorithms and the fastest
is taken; it must name the same neighbours. scikit-multilearn-ng has one setting for speed, n_jobs, left at 1 as for the
others (dense, LIL and CSR labels take it equally long); it must decide the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common import Line, Peers, arguments, peers, race, show
from multilab.methods.neighbours._search import exact_neighbours
from multilab.methods.neighbours.mlknn import MLkNN

K = 10
Points = tuple[np.ndarray, np.ndarray, np.ndarray]


def points(n: int, d: int, q: int, seed: int = 0) -> Points:
    """Return training points, new points and labels that depend on the points."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, d)) * np.sqrt(1.0 / np.arange(1, d + 1))
    Y = (X @ rng.normal(size=(d, q)) + rng.normal(size=(2 * n, q)) > 1.5).astype(np.uint8)
    return X[:n], X[n:], Y[:n]


def bare_search(X: np.ndarray, new: np.ndarray, algorithm: str) -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's neighbours of the training points and of the new ones."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=K, algorithm=algorithm, n_jobs=1).fit(X)
    return search.kneighbors(return_distance=False), search.kneighbors(new, return_distance=False)


def same_neighbours(X: np.ndarray, new: np.ndarray, theirs: tuple[np.ndarray, np.ndarray]) -> str:
    """Compare the neighbours MLkNN uses with scikit-learn's."""
    ours = exact_neighbours(X, K)[0], exact_neighbours(X, K, new)[0]
    different = sum(int((mine != other).sum()) for mine, other in zip(ours, theirs, strict=True))
    return f"DIFFERENT: {different} neighbours" if different else f"identical {ours[0].size + ours[1].size} neighbours"


def same_decisions(ours: Any, theirs: Any) -> str:
    """Compare two label matrices."""
    theirs = theirs.toarray() if hasattr(theirs, "toarray") else np.asarray(theirs)
    different = int((np.asarray(ours) != theirs).sum()) if ours.shape == theirs.shape else ours.size
    return f"DIFFERENT: {different} decisions" if different else f"identical {ours.size} decisions"


def against_sklearn(data: Points, repeats: int) -> Line:
    """Time MLkNN and the bare search."""
    X, new, Y = data
    runners = {name: (lambda name=name: bare_search(X, new, name)) for name in ("brute", "kd_tree", "ball_tree")}
    medians, outputs = race({"multilab": lambda: MLkNN(k=K).fit(X, Y).predict(new), **runners}, repeats)
    ours = medians.pop("multilab")
    best = min(medians, key=medians.__getitem__)
    value = f"{ours / medians[best]:.2f}x ({1e3 * ours:.0f} ms to {1e3 * medians[best]:.0f} ms, {best})"
    check = same_neighbours(X, new, outputs[best])
    return Line(
        "time of MLkNN fit + predict to that of NearestNeighbors", value, "<= 1.3x", ours <= 1.3 * medians[best], check
    )


def against_multilearn(data: Points, repeats: int) -> Line:
    """Time MLkNN in the variant of scikit-multilearn, and theirs."""
    from skmultilearn.adapt import MLkNN as Theirs

    X, new, Y = data
    runners = {
        "multilab": lambda: MLkNN(k=K, exclude_self=False).fit(X, Y).predict(new),
        "theirs": lambda: Theirs(k=K, s=1.0).fit(X, Y).predict(new),
    }
    medians, outputs = race(runners, repeats)
    ratio = medians["theirs"] / medians["multilab"]
    value = f"{ratio:.0f}x ({1e3 * medians['multilab']:.0f} ms to {1e3 * medians['theirs']:.0f} ms)"
    check = same_decisions(outputs["multilab"], outputs["theirs"])
    return Line("scikit-multilearn-ng's time to multilab's", value, ">= 10x", ratio >= 10, check)


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=7, help="of the fast comparison; the slow one is run twice")
    chosen = parser.parse_args(argv)
    data = points(chosen.points, 100, 100)
    lines, notes = [against_sklearn(data, chosen.repeats)], []
    try:
        notes.append(f"scikit-multilearn-ng {peers('scikit-multilearn-ng')['scikit-multilearn-ng']}")
        lines.append(against_multilearn(data, 2))
    except Peers as error:
        notes.append(str(error))
    import sklearn

    notes.append(f"scikit-learn {sklearn.__version__}: fastest of brute, kd_tree and ball_tree, return_distance=False")
    show(f"ML-kNN, {chosen.points} x 100 x 100", lines, notes, chosen.json)


if __name__ == "__main__":
    main()
