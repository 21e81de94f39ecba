"""Time the two paths of the ML-EKELM study on Arts: elastic nets against scikit-learn, ridges against Cholesky.

    MULTILAB_DATA=... python benchmarks/elm_path.py [--points 20] [--ridges 200] [--alpha 0.5 0.02] [--labels 4]

Elastic nets: the l1 problem at 20 values of lambda from lambda_max to lambda_max / 1000, warm-started, all labels
together, to a certified relative gap of 1e-4; the eigendecomposition counts. The peer is scikit-learn's
``ElasticNet(precompute=Gram, warm_start=True)``, label by label, on four labels from the rarest to the most frequent,
its time multiplied up to all of them. It is stopped for it as soon as it is within 1e-4 of the minimum, which it cannot
know (its own criterion, set to that gap, took more than seven times the sweeps on the label this was tried on): how
many sweeps that takes is found beforehand, in tens, and not timed, nor is the Gram matrix. Where it is not there after
2000 sweeps it is counted as if it were, and the note says how far it is.

Ridges: the scores of the test rows under 200 values of C at one gamma; the peer is a Cholesky solution for each.

Without MULTILAB_DATA, simulated data of the same shape.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, svd
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet
from threadpoolctl import threadpool_limits

from common import Line, arguments, race, show
from multilab.methods.elm._elastic_net import KernelLoss, elastic_net
from multilab.methods.kernels import kernel_matrix
from multilab.methods.solvers.certificates import Solution
from multilab.methods.solvers.penalties import RowSparsePenalty

GAP = 1e-4
LOOK, CAP = 10, 2000  # sweeps of scikit-learn
Kernels = tuple[np.ndarray, np.ndarray, np.ndarray]


def elastic_net_path(loss: KernelLoss, lams: Iterable[float], alpha: float, **options: Any) -> list[Solution]:
    """Return the solutions at every lambda, each started at the one before: give them from large to small.

    Parameters
    ----------
    **options
        Passed to :func:`elastic_net`.
    """
    solutions: list[Solution] = []
    for lam in lams:
        start = solutions[-1].W if solutions else None
        solutions.append(elastic_net(loss, lam, alpha, start=start, **options))
    return solutions


def ridge_scores(
    omega: np.ndarray,
    targets: np.ndarray,
    omega_test: np.ndarray,
    strengths: np.ndarray,
    *,
    ridge: Literal["frobenius", "rkhs"] = "rkhs",
) -> np.ndarray:
    """Return the scores of test rows under every strength of a pure ridge, from one eigendecomposition.

    Parameters
    ----------
    omega : ndarray of shape (n, n)
        Kernel matrix of the training rows, positive semidefinite.
    targets : ndarray of shape (n, p)
    omega_test : ndarray of shape (m, n)
        Kernel values of test and training rows.
    strengths : array-like of shape (k,)
        Positive. "rkhs": 1 / C of `KernelELM`; "frobenius": 2 lambda, the ML-EKELM objective at alpha = 0.
    ridge : {"rkhs", "frobenius"}

    Returns
    -------
    ndarray of shape (k, m, p)

    Notes
    -----
    In the eigenbasis a strength s is a filter 1 / (w + s), or w / (w^2 + s), of the eigenvalues w. As functions
    of w such filters are smooth and nearly dependent: 200 of them are combinations of some 30 to rounding
    (found by a singular value decomposition). So the test rows are multiplied by the weights of 30, not of 200.
    """
    strengths = np.asarray(strengths, dtype=float)[:, None]
    values, vectors = eigh(omega, driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    filters = 1.0 / (values + strengths) if ridge == "rkhs" else values / (values**2 + strengths)
    largest = filters.max(axis=1, keepdims=True)
    left, sizes, basis = svd(filters / largest, full_matrices=False)
    kept = sizes > 1e-15 * sizes[0]
    left = largest * left[:, kept] * sizes[kept]
    rotated = vectors.T @ targets
    columns = (basis[kept].T[:, :, None] * rotated[:, None, :]).reshape(len(omega), -1)  # all parts in one product
    parts = (omega_test @ (vectors @ columns)).reshape(len(omega_test), -1, targets.shape[1])
    return np.tensordot(left, parts.swapaxes(0, 1), axes=1)


def arts(n: int = 2000, m: int = 3000) -> tuple[Kernels, str]:
    """Return kernel matrix (n, n), targets (n, p) and test kernel (m, n), and where the data come from."""
    if os.environ.get("MULTILAB_DATA"):
        from multilab.datasets import load

        data = load("yahoo-arts")
        train, test = data.splits["official"]
        X, Y, X_test, source = data.X[train], data.Y[train], data.X[test], "real data"
    else:
        X, Y, X_test = simulated(n, m, 462, 26)
        source = "simulated"
    return (kernel_matrix(X), 2.0 * Y - 1.0, kernel_matrix(X_test, X)), source


def simulated(n: int, m: int, d: int, q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return short documents of unit norm, labels of some of their terms, and more documents."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(30.0 / d, size=(n + m, d)) * rng.random((n + m, d))
    counts[:, 0] += 0.01  # no empty document
    counts /= np.linalg.norm(counts, axis=1, keepdims=True)
    evidence = counts @ rng.normal(size=(d, q)) + 0.1 * rng.normal(size=(n + m, q))
    Y = (evidence > np.quantile(evidence, 0.94, axis=0)).astype(float)
    return counts[:n], Y[:n], counts[n:]


def minima(omega: np.ndarray, targets: np.ndarray, W: np.ndarray, lam: float, alpha: float) -> np.ndarray:
    """Return the objective of each label."""
    squares = 0.5 * ((targets - omega @ W) ** 2).sum(axis=0)
    return squares + lam * (alpha * np.abs(W).sum(axis=0) + (1 - alpha) * (W**2).sum(axis=0))


class Peer:
    """scikit-learn's path of one label."""

    def __init__(self, omega: np.ndarray, gram: np.ndarray, y: np.ndarray, lams: np.ndarray, alpha: float) -> None:
        self.omega, self.y, self.lams, self.alpha = omega, y, lams, alpha
        options = {"l1_ratio": alpha / (2 - alpha), "fit_intercept": False, "precompute": gram, "copy_X": False}
        self.net = ElasticNet(tol=0.0, warm_start=True, **options)

    def step(self, lam: float, sweeps: int) -> np.ndarray:
        """Go on from the last weights for a number of sweeps; return the weights."""
        self.net.set_params(alpha=lam * (2 - self.alpha) / len(self.omega), max_iter=sweeps)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.net.fit(self.omega, self.y, check_input=False).coef_

    def needed(self, best: np.ndarray) -> tuple[list[int], list[float]]:
        """Return the sweeps that each point takes until it is within GAP of ``best``, and how far it is then."""
        sweeps, excess = [0] * len(self.lams), [np.inf] * len(self.lams)
        for i, lam in enumerate(self.lams):
            while excess[i] > GAP and sweeps[i] < CAP:
                W = self.step(lam, LOOK)[:, None]
                sweeps[i] += LOOK
                excess[i] = minima(self.omega, self.y[:, None], W, lam, self.alpha)[0] / best[i] - 1
        return sweeps, excess

    def run(self, sweeps: list[int]) -> None:
        """Follow the path, what is to be timed."""
        self.net.coef_ = np.zeros(len(self.omega))
        for lam, count in zip(self.lams, sweeps, strict=True):
            self.step(lam, count)


def elastic_nets(kernels: Kernels, points: int, alpha: float, labels: int) -> tuple[Line, list[str]]:
    """Race the paths of elastic nets."""
    omega, targets, _ = kernels
    omega = np.asfortranarray(omega)
    lams = RowSparsePenalty(alpha).alpha_max(omega @ targets) * np.geomspace(1.0, 1e-3, points)

    def ours() -> list:
        return elastic_net_path(KernelLoss.from_kernel(omega, targets), lams, alpha, tol=GAP)

    exact = elastic_net_path(KernelLoss.from_kernel(omega, targets), lams, alpha, tol=1e-8, max_iter=5000)
    best = np.array([minima(omega, targets, s.W, lam, alpha) for s, lam in zip(exact, lams, strict=True)])
    gram = omega.T @ omega
    by_size = np.argsort(targets.sum(axis=0), kind="stable")
    chosen = by_size[np.linspace(0, len(by_size) - 1, min(labels, len(by_size))).round().astype(int)]
    peers = [Peer(omega, gram, targets[:, j], lams, alpha) for j in chosen]
    with threadpool_limits(1):
        needed = [peer.needed(best[:, j]) for peer, j in zip(peers, chosen, strict=True)]

    def theirs() -> None:
        for peer, (sweeps, _) in zip(peers, needed, strict=True):
            peer.run(sweeps)

    taken, outputs = race({"ours": ours, "theirs": theirs}, 1)
    solutions = outputs["ours"]
    reached = np.array([minima(omega, targets, s.W, lam, alpha).sum() for s, lam in zip(solutions, lams, strict=True)])
    excess = float(max(reached / best.sum(axis=1) - 1))
    gap, reference = (max(s.gap for s in group) for group in (solutions, exact))
    all_labels = taken["theirs"] * len(by_size) / len(chosen)
    ratio = all_labels / taken["ours"]
    line = Line(
        f"scikit-learn's time to multilab's, path of {points} elastic nets, alpha {alpha:g}",
        f"{ratio:.1f}x ({all_labels:.1f} s, from {taken['theirs']:.1f} s for {len(chosen)} of {len(by_size)} labels, "
        f"and {taken['ours']:.1f} s)",
        ">= 2x",
        ratio >= 2,
        solved(gap, excess, reference),
    )
    iterations = [s.n_iter for s in solutions]
    zeros = [float((s.W == 0).mean()) for s in solutions]
    sweeps, short = (np.array(one) for one in zip(*needed, strict=True))
    return line, [
        f"alpha {alpha:g}: iterations {min(iterations)} to {max(iterations)}, {sum(iterations)} in all; zero weights "
        f"{100 * zeros[-1]:.0f} % at the smallest lambda, {100 * zeros[points // 2]:.0f} % in the middle",
        f"alpha {alpha:g}: scikit-learn {sweeps.sum() / len(chosen):.0f} sweeps a label, at most {sweeps.max()}; "
        f"not within {GAP:.0e} after {CAP} sweeps: {(short > GAP).sum()} of {short.size}, largest {short.max():.0e}",
    ]


def solved(gap: float, excess: float, reference: float) -> str:
    """Tell whether our solutions are the minima to GAP, by the certificate and by comparison."""
    word = "same minima" if gap <= GAP and excess <= GAP and reference <= 1e-7 else "DIFFERENT"
    return f"{word}: gap certified {gap:.0e}, true {excess:.0e}, reference {reference:.0e}"


def ridges(kernels: Kernels, settings: int) -> Line:
    """Race the scores of many ridges."""
    omega, targets, omega_test = kernels
    strengths = 1.0 / np.geomspace(1e-2, 1e3, settings)

    def cholesky() -> np.ndarray:
        scores = np.empty((settings, len(omega_test), targets.shape[1]))
        for i, strength in enumerate(strengths):
            matrix = omega.copy()
            matrix.flat[:: len(matrix) + 1] += strength
            factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
            scores[i] = omega_test @ cho_solve(factor, targets, check_finite=False)
        return scores

    taken, outputs = race(
        {"ours": lambda: ridge_scores(omega, targets, omega_test, strengths), "cholesky": cholesky}, 1
    )
    apart = float(np.abs(outputs["ours"] - outputs["cholesky"]).max())
    ratio = taken["cholesky"] / taken["ours"]
    return Line(
        f"{settings} Cholesky solutions to one eigendecomposition, scores of {len(omega_test)} rows",
        f"{ratio:.1f}x ({taken['cholesky']:.1f} and {taken['ours']:.1f} s)",
        ">= 10x",
        ratio >= 10,
        f"{'same' if apart < 1e-8 else 'DIFFERENT'} scores to {apart:.0e}",
    )


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--points", type=int, default=20, help="values of lambda")
    parser.add_argument("--ridges", type=int, default=200, help="values of C")
    parser.add_argument("--alpha", type=float, nargs="*", default=[0.5, 0.02])
    parser.add_argument("--labels", type=int, default=4, help="labels that scikit-learn is timed on")
    chosen = parser.parse_args(argv)
    kernels, source = arts()
    lines = [ridges(kernels, chosen.ridges)]
    notes = [f"{source}: {kernels[0].shape[0]} training rows, {kernels[1].shape[1]} labels, gamma 1"]
    for alpha in chosen.alpha:
        line, more = elastic_nets(kernels, chosen.points, alpha, chosen.labels)
        lines.append(line)
        notes += more
    show("Kernel machines on yahoo-arts", lines, notes, chosen.json)


if __name__ == "__main__":
    main()
