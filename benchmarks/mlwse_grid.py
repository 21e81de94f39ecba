"""Time the grid (alpha, beta) in 10^{-5..4} of MLWSE-L1: multilab's solver against the paper's algorithm.

    MULTILAB_DATA=... OMP_NUM_THREADS=1 python benchmarks/mlwse_grid.py [yeast enron] [--cap 1000]

Both must bring the objective within 1e-4 (relative) of the minimum. Data: the training part of the first of
five stratified folds; base scores S: 5-fold out-of-fold, binary relevance and classifier chain on logistic
regression, label powerset on an SVC. Without MULTILAB_DATA, simulated scores of the same shapes.

What is timed (processor time), in multilab's disfavour: it has to *certify* the gap, checks included, and
carries 1/100 of the cost of G, B and the eigendecompositions; the paper's algorithm (accelerated proximal
gradient without restart, whose every gradient is S^T (S V - Y) + beta V H) is stopped by an oracle that knows
the minimum, at no cost, and its starting point (S^T S + eta I)^{-1} S^T Y is free. Where it has not arrived
after --cap iterations, the ratio is a lower bound. The minimum is the best value of a run to a certified gap
of 1e-7 (or 30000 iterations).
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from multilab.methods.stacking.affinity import cosine_affinity, label_coupling
from multilab.methods.stacking.objective import StackingLoss
from multilab.methods.stacking.penalty import SparseGroupPenalty, soft_threshold
from multilab.methods.stacking.solve import solve

GRID = 10.0 ** np.arange(-5, 5)
GAP = 1e-4
SHAPES = {"yeast": (1933, 14), "enron": (1361, 53)}


def base_scores(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Return S, Y and where they come from."""
    if not os.environ.get("MULTILAB_DATA"):
        return (*simulated(*SHAPES.get(name, (1000, 10))), "simulated")
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    from multilab.datasets import load
    from multilab.datasets.folds import IterativeStratifiedKFold
    from multilab.methods.stacking.out_of_fold import out_of_fold_scores
    from multilab.methods.transformation.binary_relevance import BinaryRelevance
    from multilab.methods.transformation.classifier_chain import ClassifierChain
    from multilab.methods.transformation.label_powerset import LabelPowerset

    data = load(name)
    train, _ = next(IterativeStratifiedKFold(5).split(data.X, data.Y))
    X, Y = data.X[train], data.Y[train]
    folds = list(IterativeStratifiedKFold(5).split(X, Y))
    logistic = LogisticRegression(solver="liblinear")
    members = [BinaryRelevance(logistic), ClassifierChain(logistic), LabelPowerset(SVC())]
    S = np.hstack([out_of_fold_scores(member, X, Y, folds) for member in members])
    return S, Y.astype(float), "real data"


def simulated(n: int, q: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of three classifiers that know the same noisy evidence, and labels."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(n, q)) @ rng.normal(size=(q, q)) / np.sqrt(q) - 1.0
    Y = (latent + rng.normal(size=(n, q)) > 0).astype(float)
    S = np.hstack([1 / (1 + np.exp(-latent - 0.1 * rng.normal(size=(n, q)))) for _ in range(3)])
    return S, Y


def paper_seconds(
    S: np.ndarray, Y: np.ndarray, loss: StackingLoss, alpha: float, target: float, cap: int
) -> tuple[float, bool]:
    """Return the seconds of the paper's Algorithm 1 until F <= target, and whether it got there."""
    L = loss.lipschitz
    W = before = loss.ridge(0.1)
    b_before = b = 1.0
    spent = 0.0
    for _ in range(cap + 1):
        if loss.value(W, loss.apply(W)) + alpha * np.abs(W).sum() <= target:
            return spent, True
        began = time.process_time()
        V = W + (b_before - 1.0) / b * (W - before)
        gradient = S.T @ (S @ V - Y) + loss.beta * (V @ loss.coupling)
        before, W = W, soft_threshold(V - gradient / L, alpha / L)
        b_before, b = b, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * b * b))
        spent += time.process_time() - began
    return spent, False


def run(name: str, cap: int) -> None:
    """Time one data set and print the result."""
    S, Y, source = base_scores(name)
    H = label_coupling(cosine_affinity(Y))
    began = time.process_time()
    loss = StackingLoss.from_scores(S, Y, H, 0.0)
    setup = time.process_time() - began
    everything = [slice(0, S.shape[1])]
    start = loss.ridge(0.1)
    rows = []
    for beta in GRID:
        at_beta, W = loss.with_beta(beta), start
        for alpha in GRID[::-1]:
            penalty = SparseGroupPenalty(alpha, np.zeros(1), everything)
            began = time.process_time()
            ours = solve(at_beta, penalty, W if W.any() else start, tol=GAP, kkt_tol=0.0, max_iter=30_000)
            seconds = time.process_time() - began + setup / GRID.size**2
            W = ours.W
            exact = solve(at_beta, penalty, W, tol=1e-7, kkt_tol=0.0, max_iter=30_000)
            minimum = min(exact.objective_path.min(), ours.objective_path[-1])
            slow, arrived = paper_seconds(S, Y, at_beta, alpha, (1 + GAP) * minimum, cap)
            excess = ours.objective_path[-1] / minimum - 1
            rows.append((alpha, beta, seconds, slow, arrived, ours.gap, excess, exact.gap, ours.n_iter))
    report(name, source, S.shape, setup, rows, cap)


def report(name: str, source: str, shape: tuple[int, ...], setup: float, rows: list[tuple], cap: int) -> None:
    """Print medians, ratios and the checks."""
    table = np.array([row[2:] for row in rows], dtype=float)
    ours, paper, arrived, gap, excess, reference = table[:, :6].T
    ratio = paper / ours
    print(f"{name} ({source}): S {shape[0]} x {shape[1]}, {len(rows)} grid points, set-up {1e3 * setup:.1f} ms")
    print(f"  multilab  median {1e3 * np.median(ours):9.2f} ms   whole grid {ours.sum():8.2f} s")
    print(f"  paper     median {1e3 * np.median(paper):9.2f} ms   whole grid {paper.sum():8.2f} s", end="")
    print(f"   ({int((arrived == 0).sum())} points not there after {cap} iterations)")
    print(
        f"  ratio per point: median {np.median(ratio):.1f}, quartiles {np.quantile(ratio, 0.25):.1f} and ",
        end="",
    )
    print(f"{np.quantile(ratio, 0.75):.1f}; of the grid {paper.sum() / ours.sum():.1f}; >= 5 at ", end="")
    print(f"{int((ratio >= 5).sum())} of {len(rows)} points")
    worst = int(np.argmin(ratio))
    print(f"  smallest ratio {ratio[worst]:.1f} at alpha = {rows[worst][0]:g}, beta = {rows[worst][1]:g}")
    print(f"  largest certified gap {gap.max():.1e}, largest true gap {excess.max():.1e}, ", end="")
    print(f"minima certified to {np.median(reference):.0e} (median) and {reference.max():.0e} (worst)")
    if not (gap <= GAP).all() or not (excess <= GAP).all():
        raise SystemExit(f"{name}: a grid point was not solved to {GAP}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=["yeast", "enron"])
    parser.add_argument("--cap", type=int, default=1000, help="iterations of the paper's algorithm per point")
    chosen = parser.parse_args()
    for name in chosen.datasets:
        run(name, chosen.cap)


if __name__ == "__main__":
    main()
