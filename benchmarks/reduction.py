"""Kernel reducers: exact least squares to LSQR and to the eigenproblem; 20,000 and 100,000 rows in bounded memory.

    MULTILAB_DATA=... python benchmarks/reduction.py

Yeast, 2000 rows, and Yahoo Arts, 2000 rows (simulated without MULTILAB_DATA), kernel given; then simulated rows.
"""

from __future__ import annotations

import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import lsqr
from threadpoolctl import threadpool_limits

from common import Line, arguments, race, show
from multilab import datasets
from multilab.methods.reduction.equations import KernelSpectrum
from multilab.methods.reduction.kernel_reducer import equal_rows, training_kernel
from multilab.methods.reduction.label_problem import centred_labels, group_means, label_directions
from multilab.methods.reduction.ls_kernel_mddm import LSKernelMDDM
from multilab.methods.reduction.nystroem_ls_kernel_mddm import NystroemLSKernelMDDM

ROWS = 2000
STEPS = 50
SAME = 1e-6
EPSILON = np.finfo(float).eps
LIMIT = 8 * 2**30


def made(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return simulated rows of 100 features and 20 labels of unequal frequency."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 100))
    latent = np.tanh(X[:, :50] @ np.random.default_rng(1).normal(size=(50, 20)) / 4) + 0.3 * rng.normal(size=(n, 20))
    return X, (latent > np.linspace(0.2, 1.0, 20)).astype(np.uint8)


def real(name: str) -> tuple[Any, np.ndarray, str]:
    if os.environ.get("MULTILAB_DATA"):
        data = datasets.load(name)
        return data.X[:ROWS], data.Y[:ROWS], name
    return *made(ROWS), "simulated"


def against_others(name: str, repeats: int) -> tuple[list[Line], list[str]]:
    """Race our exact solution with LSQR per column and with LAPACK on the generalised eigenproblem."""
    X, Y, name = real(name)
    reducer = LSKernelMDDM()
    K, _ = training_kernel(X, "median")
    groups = equal_rows(X)
    Q = group_means(centred_labels(Y), groups)[groups]
    B = label_directions(Q, None).B
    n, count = B.shape

    def eigenproblem() -> np.ndarray:
        M, F = K @ K, K @ Q
        M[np.diag_indices_from(M)] += 1e-14 * np.trace(M) / n
        return eigh(F @ F.T, M, subset_by_index=[n - count, n - 1])[1]

    def steps() -> np.ndarray:
        return np.stack([lsqr(K, b, atol=0, btol=0, conlim=0, iter_lim=STEPS)[0] for b in B.T], axis=1)

    runners = {"ours": lambda: reducer.coefficients(K, X, Y), "eigenproblem": eigenproblem}
    taken, outputs = race(runners, repeats)
    slow, more = race({"lsqr": steps}, 1)
    P, spectrum = outputs["ours"], KernelSpectrum(K)
    U = spectrum.U[:, spectrum.kept]
    turned = U @ np.linalg.svd(U.T @ Q, full_matrices=False)[0][:, :count]  # the embedding, without squaring K

    def apart(embedding: np.ndarray) -> float:
        signs = np.sign(np.sum(embedding * B, axis=0))
        return float(np.linalg.norm(K @ P - embedding * signs) / np.linalg.norm(B))

    exact, lapack = apart(turned), apart(K @ outputs["eigenproblem"][:, ::-1])
    ratios = {"eigenproblem": taken["eigenproblem"] / taken["ours"], "lsqr": slow["lsqr"] / taken["ours"]}
    first = np.unique(groups, return_index=True)[1]
    w = np.linalg.eigvalsh(K[np.ix_(first, first)])
    bound = max(SAME, EPSILON * (w[-1] / w[0]) ** 2)  # K K has the squared condition
    word = "same" if exact < SAME and lapack < bound else "DIFFERENT"
    lines = [
        Line(
            f"{name}, {n} rows, {count} dimensions: generalised eigenproblem (LAPACK) to exact LSkMDDM",
            f"{ratios['eigenproblem']:.1f}x ({taken['eigenproblem']:.2f} and {taken['ours']:.3f} s)",
            ">= 15x",
            ratios["eigenproblem"] >= 15,
            f"{word} training embedding: {exact:.0e} in the eigenbasis of K, {lapack:.0e} by LAPACK on K K",
        ),
        Line(
            f"{name}: {STEPS} steps of SciPy's LSQR for each column to exact LSkMDDM",
            f"{ratios['lsqr']:.0f}x ({slow['lsqr']:.1f} s)",
            ">= 10x",
            ratios["lsqr"] >= 10,
        ),
    ]
    residual = np.linalg.norm(K @ more["lsqr"] - B) / np.linalg.norm(B)
    notes = [
        f"{name}: {len(w)} distinct rows, condition of their kernel matrix {w[-1] / w[0]:.0e}; residual "
        f"{reducer.residual_:.0e} of the exact solution, {residual:.2f} after {STEPS} steps of LSQR"
    ]
    return lines, notes


def one_decomposition(rows: int) -> list[str]:
    """Return what one eigendecomposition costs, and each ridge after it."""
    X, Y = made(rows)
    K, _ = training_kernel(X, "median")
    B = label_directions(centred_labels(Y), None).B
    with threadpool_limits(1):
        began = time.perf_counter()
        spectrum = KernelSpectrum(K)
        decomposed = time.perf_counter()
        for eta in (1e-3, 1e-1, 10.0):
            spectrum.ridge(B, eta)
        each = (time.perf_counter() - decomposed) / 3
        model = LSKernelMDDM(eta=1.0)
        began_model = time.perf_counter()
        model.coefficients(K, X, Y)
        alone = time.perf_counter() - began_model
    return [
        f"{rows} rows: eigh {decomposed - began:.1f} s, then each ridge {each:.2f} s; a ridge by Cholesky {alone:.1f} s"
    ]


def _large(kind: str, rows: int, size: int) -> tuple[float, int, float]:
    """Return seconds, peak bytes and relative residual of a fit, in a separate process."""
    X, Y = made(rows)
    model: Any = LSKernelMDDM(solver="cg", tol=1e-6, max_iter=500)
    if kind == "nystroem":
        model = NystroemLSKernelMDDM(n_landmarks=size, random_state=0)
    began = time.perf_counter()
    model.fit(X, Y)
    return time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, model.residual_


def large(kind: str, rows: int, size: int = 0) -> Line:
    """Fit on many rows and tell time, memory and residual."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        seconds, peak, residual = fresh.submit(_large, kind, rows, size).result()
    method = f"Nystroem, {size} landmarks" if size else "conjugate gradients"
    value = f"{peak / 2**30:.1f} GiB, {seconds:.0f} s, residual {residual:.1e}"
    return Line(f"{rows:,} x 100, 20 labels: {method}", value, "< 8 GiB", peak < LIMIT)


def approximation(rows: int) -> list[str]:
    """Return how far Nystroem embeddings of new rows are from the exact ones."""
    X, Y = made(rows)
    X_new = made(1000, seed=2)[0]
    exact = LSKernelMDDM(eta=1.0).fit(X, Y).transform(X_new)
    value = []
    for size in (500, 1000, 2000, rows):
        near = NystroemLSKernelMDDM(n_landmarks=size, eta=1.0, random_state=0).fit(X, Y).transform(X_new)
        value.append(f"{size}: {np.linalg.norm(near - exact) / np.linalg.norm(exact):.1e}")
    return [f"{rows} rows, eta 1: relative error of Nystroem embeddings of new rows by landmarks: {', '.join(value)}"]


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=20_000, help="for conjugate gradients")
    parser.add_argument("--many", type=int, default=100_000, help="for Nystroem")
    parser.add_argument("--landmarks", type=int, default=2000)
    parser.add_argument("--compared", type=int, default=5000, help="rows of the exact solution next to Nystroem")
    chosen = parser.parse_args(argv)
    lines: list[Line] = []
    notes: list[str] = []
    for name in ("yeast", "yahoo-arts"):
        more, remarks = against_others(name, chosen.repeats)
        lines, notes = lines + more, notes + remarks
    lines += [large("cg", chosen.rows), large("nystroem", chosen.many, chosen.landmarks)]
    notes += one_decomposition(min(4000, chosen.compared)) + approximation(chosen.compared)
    show("Kernel reducers", lines, notes, chosen.json)


if __name__ == "__main__":
    main()
