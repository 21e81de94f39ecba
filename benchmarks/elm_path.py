"""Time the two paths of the ML-EKELM study on Arts: elastic nets against scikit-learn, ridges against Cholesky.

    MULTILAB_DATA=... python benchmarks/elm_path.py [--points 20] [--ridges 200] [--alpha 0.5 0.02]

Elastic nets: the l1 problem at 20 values of lambda from lambda_max to lambda_max / 1000, warm-started, all labels
together, to a certified relative gap of 1e-4; the eigendecomposition counts. The peer is scikit-learn's
``ElasticNet(precompute=Gram, warm_start=True)``, label by label, Gram matrix shared and not counted; its ``tol`` is set
so that it certifies the same gap (1e-4 of the minimum, which it is told). Also shown: with its own default tolerance of
1e-4 of |y|^2, which is a larger gap.

Ridges: the scores of the test rows under 200 values of C at one gamma; the peer is a Cholesky solution for each.

Without MULTILAB_DATA, simulated data of the same shape.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet

from common import Line, arguments, race, show
from multilab.methods.elm.elastic_net import elastic_net_path, lambda_max, ridge_scores
from multilab.methods.elm.kernel_loss import KernelLoss
from multilab.methods.elm.sparse_penalty import SparsePenalty
from multilab.methods.kernels import kernel_matrix

GAP = 1e-4
Kernels = tuple[np.ndarray, np.ndarray, np.ndarray]


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
    """Return short documents of unit norm, labels of some of their words, and more documents."""
    rng = np.random.default_rng(0)
    words = rng.poisson(30.0 / d, size=(n + m, d)) * rng.random((n + m, d))
    words[:, 0] += 0.01  # no empty document
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    evidence = words @ rng.normal(size=(d, q)) + 0.1 * rng.normal(size=(n + m, q))
    Y = (evidence > np.quantile(evidence, 0.94, axis=0)).astype(float)
    return words[:n], Y[:n], words[n:]


def minima(omega: np.ndarray, targets: np.ndarray, W: np.ndarray, lam: float, alpha: float) -> np.ndarray:
    """Return the objective of each label."""
    squares = 0.5 * ((targets - omega @ W) ** 2).sum(axis=0)
    return squares + lam * (alpha * np.abs(W).sum(axis=0) + (1 - alpha) * (W**2).sum(axis=0))


def peer_path(
    omega: np.ndarray, gram: np.ndarray, targets: np.ndarray, lams: np.ndarray, alpha: float, tols: np.ndarray
) -> list[np.ndarray]:
    """Return scikit-learn's solutions; ``tols`` (lambdas, labels) is what each fit is given."""
    found = [np.empty_like(targets) for _ in lams]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for label, y in enumerate(targets.T):
            net = ElasticNet(l1_ratio=alpha / (2 - alpha), fit_intercept=False, precompute=gram, warm_start=True)
            for i, lam in enumerate(lams):
                net.set_params(alpha=lam * (2 - alpha) / len(omega), tol=tols[i, label], max_iter=20_000)
                found[i][:, label] = net.fit(omega, y, check_input=False).coef_
    return found


def elastic_nets(kernels: Kernels, points: int, alpha: float) -> tuple[Line, list[str]]:
    """Race the paths of elastic nets."""
    omega, targets, _ = kernels
    omega = np.asfortranarray(omega)
    lams = lambda_max(omega @ targets, alpha, SparsePenalty(1.0)) * np.geomspace(1.0, 1e-3, points)

    def ours() -> list:
        return elastic_net_path(KernelLoss.from_kernel(omega, targets), lams, alpha, tol=GAP)

    exact = elastic_net_path(KernelLoss.from_kernel(omega, targets), lams, alpha, tol=1e-8, max_iter=5000)
    best = np.array([minima(omega, targets, s.W, lam, alpha) for s, lam in zip(exact, lams, strict=True)])
    squares = (targets**2).sum(axis=0)
    gram = omega.T @ omega
    own, equal = np.full_like(best, 1e-4), GAP * best / squares
    taken, outputs = race(
        {
            "ours": ours,
            "equal": lambda: peer_path(omega, gram, targets, lams, alpha, equal),
            "own": lambda: peer_path(omega, gram, targets, lams, alpha, own),
        },
        1,
    )

    def excess(solutions: list[np.ndarray]) -> float:
        values = [minima(omega, targets, W, lam, alpha).sum() for W, lam in zip(solutions, lams, strict=True)]
        return float(max(np.array(values) / best.sum(axis=1) - 1))

    true = {"ours": excess([s.W for s in outputs["ours"]]), **{k: excess(outputs[k]) for k in ("equal", "own")}}
    gap, reference = (max(s.gap for s in solutions) for solutions in (outputs["ours"], exact))
    ratio = taken["equal"] / taken["ours"]
    line = Line(
        f"scikit-learn's time to multilab's, path of {points} elastic nets, alpha {alpha:g}",
        f"{ratio:.1f}x ({taken['equal']:.1f} and {taken['ours']:.1f} s)",
        ">= 1x",
        ratio >= 1,
        f"{solved(gap, true['ours'], reference)}, scikit-learn's {true['equal']:.0e}",
    )
    iterations = [s.n_iter for s in outputs["ours"]]
    zeros = [float((s.W == 0).mean()) for s in outputs["ours"]]
    return line, [
        f"alpha {alpha:g}: iterations {min(iterations)} to {max(iterations)}, {sum(iterations)} in all; zero weights "
        f"{100 * zeros[-1]:.0f} % at the smallest lambda, {100 * zeros[points // 2]:.0f} % in the middle",
        f"alpha {alpha:g}: scikit-learn at its own tol 1e-4 {taken['own']:.1f} s, true gap {true['own']:.0e}",
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
        ">= 5x",
        ratio >= 5,
        f"{'same' if apart < 1e-8 else 'DIFFERENT'} scores to {apart:.0e}",
    )


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--points", type=int, default=20, help="values of lambda")
    parser.add_argument("--ridges", type=int, default=200, help="values of C")
    parser.add_argument("--alpha", type=float, nargs="*", default=[0.5, 0.02])
    chosen = parser.parse_args(argv)
    kernels, source = arts()
    lines = [ridges(kernels, chosen.ridges)]
    notes = [f"{source}: {kernels[0].shape[0]} training rows, {kernels[1].shape[1]} labels, gamma 1"]
    for alpha in chosen.alpha:
        line, more = elastic_nets(kernels, chosen.points, alpha)
        lines.append(line)
        notes += more
    show("Kernel machines on yahoo-arts", lines, notes, chosen.json)


if __name__ == "__main__":
    main()
