"""Time the grid (alpha, beta) in 10^{-5..4} of MLWSE-L1: multilab's solver against the paper's algorithm.

    MULTILAB_DATA=... python benchmarks/mlwse_grid.py [yeast enron] [--cap 1000]

Both must bring the objective within 1e-4 (relative) of the minimum. Data: the training set of the first of
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

import os
import time
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from common import Line, arguments, show
from multilab.methods.solvers.penalties import SparseGroupPenalty, soft_threshold
from multilab.methods.solvers.solve import solve
from multilab.methods.stacking.objective import StackingLoss, cosine_affinity, label_coupling

GRID = 10.0 ** np.arange(-5, 5)
GAP = 1e-4
SHAPES = {"yeast": (1933, 14), "enron": (1361, 53)}


class Point(NamedTuple):
    """A grid point: seconds of both, whether the paper's arrived, our certified and true gap, the reference's gap."""

    alpha: float
    beta: float
    ours: float
    paper: float
    arrived: bool
    gap: float
    excess: float
    reference: float


def base_scores(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Return S, Y and where they come from."""
    if not os.environ.get("MULTILAB_DATA"):
        return (*simulated(*SHAPES.get(name, (1000, 10))), "simulated")
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    from multilab.datasets import load
    from multilab.methods.out_of_fold import out_of_fold_scores
    from multilab.methods.transformation.binary_relevance import BinaryRelevance
    from multilab.methods.transformation.classifier_chain import ClassifierChain
    from multilab.methods.transformation.label_powerset import LabelPowerset
    from multilab.model_selection.iterative_stratification import IterativeStratifiedKFold

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


def measure(S: np.ndarray, Y: np.ndarray, grid: np.ndarray, cap: int) -> tuple[float, list[Point]]:
    """Return the seconds of the set-up and every grid point, solved by both."""
    H = label_coupling(cosine_affinity(Y))
    began = time.process_time()
    loss = StackingLoss.from_scores(S, Y, H, 0.0)
    setup = time.process_time() - began
    everything = [slice(0, S.shape[1])]
    start = loss.ridge(0.1)
    points = []
    for beta in grid:
        at_beta, W = loss.with_beta(beta), start
        for alpha in grid[::-1]:
            penalty = SparseGroupPenalty(alpha, np.zeros(1), everything)
            began = time.process_time()
            ours = solve(at_beta, penalty, W if W.any() else start, tol=GAP, kkt_tol=0.0, max_iter=30_000)
            seconds = time.process_time() - began + setup / grid.size**2
            W = ours.W
            exact = solve(at_beta, penalty, W, tol=1e-7, kkt_tol=0.0, max_iter=30_000)
            minimum = min(exact.objective_path.min(), ours.objective_path[-1])
            slow, arrived = paper_seconds(S, Y, at_beta, alpha, (1 + GAP) * minimum, cap)
            excess = ours.objective_path[-1] / minimum - 1
            points.append(Point(alpha, beta, seconds, slow, arrived, ours.gap, excess, exact.gap))
    return setup, points


def solved(points: list[Point]) -> str:
    """Tell whether our objective is the minimum to GAP at every point, by the certificate and by comparison."""
    gap, excess = max(p.gap for p in points), max(p.excess for p in points)
    if not (gap <= GAP and excess <= GAP):
        return f"DIFFERENT: a point was not solved to {GAP:g} (certified {gap:.1e}, true {excess:.1e})"
    reference = max(p.reference for p in points)
    return (
        f"same minimum at {len(points)} points: gap certified {gap:.0e}, true {excess:.0e}, reference {reference:.0e}"
    )


def summary(name: str, points: list[Point]) -> Line:
    """Return the line of a data set."""
    ratio = np.array([p.paper / p.ours for p in points])
    ours, paper = (sum(getattr(p, who) for p in points) for who in ("ours", "paper"))
    low, median, high = np.quantile(ratio, [0.25, 0.5, 0.75])
    value = (
        f"{median:.1f}x (quartiles {low:.1f} and {high:.1f}, smallest {ratio.min():.1f}, "
        f">= 5 at {int((ratio >= 5).sum())} of {ratio.size} points); complete grid {paper / ours:.1f}x"
    )
    claim = f"the paper's time to multilab's per grid point, median, {name}"
    return Line(claim, value, ">= 5x", median >= 5, solved(points))


def details(S: np.ndarray, source: str, setup: float, points: list[Point], cap: int) -> list[str]:
    """Return what else is worth knowing of a data set."""
    ours, paper = ([1e3 * getattr(p, who) for p in points] for who in ("ours", "paper"))
    worst = min(points, key=lambda p: p.paper / p.ours)
    missing = sum(not p.arrived for p in points)
    return [
        f"{source}: S {S.shape[0]} x {S.shape[1]}, set-up {1e3 * setup:.1f} ms",
        f"medians {np.median(ours):.2f} and {np.median(paper):.2f} ms, sums {sum(ours):.0f} and {sum(paper):.0f} ms",
        f"the paper's algorithm was not there after {cap} iterations at {missing} points; the smallest ratio is at "
        f"alpha = {worst.alpha:g}, beta = {worst.beta:g}",
    ]


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("datasets", nargs="*", default=["yeast", "enron"])
    parser.add_argument("--cap", type=int, default=1000, help="iterations of the paper's algorithm per point")
    chosen = parser.parse_args(argv)
    for name in chosen.datasets:
        S, Y, source = base_scores(name)
        with threadpool_limits(1):
            setup, points = measure(S, Y, GRID, chosen.cap)
        show(
            f"MLWSE-L1, grid of {GRID.size} x {GRID.size}",
            [summary(name, points)],
            details(S, source, setup, points, chosen.cap),
            chosen.json,
        )


if __name__ == "__main__":
    main()
