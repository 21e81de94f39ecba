"""The same numbers on every processor: estimators under the BLAS kernels of other core types.

`benchmarks/processors.py` measures the same for all methods on real data.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from multilab.methods import ELM, MLRBF, ElasticNetKernelELM, KernelELM, MLkNN
from multilab.methods.neighbours._search import exact_neighbours
from multilab.methods.ties import merge_ties

CORES = ("Haswell", "SkylakeX", "Zen", "Sandybridge")
TOLERANCE = 1e-6
UNSTABLE = {"KernelMDDM": 5e-3}
"""Its eigenproblem has the condition of K K, up to 1e14: embeddings differ by 4e-6 here, areas under curves by 1e-4."""
PROGRAM = """
import json, sys
import numpy as np
import scipy.linalg
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits
from multilab.datasets import load
from multilab.methods import (ELM, MLRBF, ElasticNetKernelELM, KernelELM, KernelMDDM, KernelPCA, KLSCCA, LSKernelMDDM,
                              MLkNN, NystroemKernelELM, OLSKernelMDDM)
from multilab.metrics import score_all

digits = load("digit-segments")
rng = np.random.default_rng(0)
counts = rng.integers(0, 3, size=(300, 6)).astype(float)  # many equal rows and equal distances
labels = (counts[:, [0, 1, 2, 3]] + rng.integers(0, 2, size=(300, 4)) > 1.5).astype(np.uint8)
reducers = {r.__name__: r() for r in (KernelMDDM, KernelPCA, KLSCCA, LSKernelMDDM, OLSKernelMDDM)}
models = {
    "KernelELM": KernelELM(), "NystroemKernelELM": NystroemKernelELM(n_components=60, random_state=0),
    "ElasticNetKernelELM": ElasticNetKernelELM(), "ELM": ELM(n_hidden=60, random_state=0),
    "MLRBF": MLRBF(ratio=0.05, random_state=0),
    **{name: make_pipeline(r, MLkNN(tie_tol=1e-9)) for name, r in reducers.items()},
}
data = {"digits": (digits.X[:300], digits.Y[:300]), "counts": (counts, labels)}
table = {}
for threads in (1, 2):
    with threadpool_limits(threads):
        for name, (X, Y) in data.items():
            half = len(X) // 2
            for method, model in models.items():
                model.fit(X[:half], Y[:half])
                margins = hasattr(model, "decision_function")
                scores = (model.decision_function if margins else model.predict_proba)(X[half:])
                metrics = score_all(Y[half:], scores, model.predict(X[half:]))
                table[f"{name}, {method}, {threads} threads"] = metrics
core = {pool.get("architecture") for pool in threadpool_info() if pool["internal_api"] == "openblas"}
print(json.dumps({"core": sorted(map(str, core)), "table": table}))
"""


def has_avx512() -> bool:
    """Tell whether this processor runs the kernels of SkylakeX."""
    try:
        return "avx512f" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def same(one: float, other: float, cell: str) -> bool:
    """Tell whether two values of a metric are equal as far as the method of a cell allows; NaN equals only NaN."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return abs(one - other) <= UNSTABLE.get(cell.split(", ")[1], TOLERANCE)


@functools.cache
def computed(core: str) -> dict:
    """Return the metrics computed with the kernels of a core type."""
    environment = os.environ | {"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="core types of x86-64 processors")
@pytest.mark.xdist_group("processors")
@pytest.mark.parametrize("core", CORES[1:])
@pytest.mark.slow
def test_every_core_type_gives_the_same_metrics(core: str) -> None:
    if core == "SkylakeX" and not has_avx512():
        pytest.skip("this processor has no AVX-512, which the kernels of SkylakeX need")
    expected, other = computed(CORES[0]), computed(core)
    if expected["core"] == other["core"] and core != "Zen":  # OpenBLAS gives Zen the kernels of Haswell
        pytest.skip(f"this BLAS does not obey OPENBLAS_CORETYPE: it runs {expected['core']} kernels either way")
    moved = [
        f"{cell}: {metric} {value:.7f}, {there:.7f} on {core}"
        for cell, metrics in expected["table"].items()
        for metric, value in metrics.items()
        if not same(value, there := other["table"][cell][metric], cell)
    ]
    assert not moved
    single = {cell: metrics for cell, metrics in other["table"].items() if cell.endswith("1 threads")}
    for cell, metrics in single.items():
        two = other["table"][cell.replace("1 threads", "2 threads")]
        assert all(same(value, two[metric], cell) for metric, value in metrics.items()), cell


def test_scores_that_differ_by_rounding_are_equal_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 8)) * 10.0 ** rng.integers(-140, 3, size=(400, 1))
    values[:, 4] = values[:, 0]  # equal in exact arithmetic
    values[:, 5] = 0.0
    noisy = values * (1.0 + 1e-13 * rng.normal(size=values.shape))
    noisy[:, 5] = 1e-13 * np.abs(values).max(axis=1) * rng.choice([-1.0, 1.0], size=400)
    merged = merge_ties(noisy)
    np.testing.assert_array_equal(merged[:, 4], merged[:, 0])
    np.testing.assert_array_equal(merged[:, 5], 0.0)
    scale = np.abs(values).max(axis=1, keepdims=True)
    assert np.max(np.abs(merged - noisy) / scale) < 2e-9
    order = [0, 1, 2, 3, 6, 7]  # nothing else is merged: the gaps are larger than the tolerance with these seeds
    np.testing.assert_array_equal(np.argsort(merged[:, order], axis=1), np.argsort(values[:, order], axis=1))


def test_rounding_does_not_decide_what_the_kernel_cannot_tell() -> None:
    """On raw digits the Gaussian kernel is the identity: labels of equal weight have equal scores."""
    from multilab.datasets import load

    data = load("digit-segments")
    X, Y = data.X[:400], data.Y[:400]
    for model in (KernelELM(), ElasticNetKernelELM()):
        scores = model.fit(X[:200], Y[:200]).decision_function(X[200:])
        turned = type(model)().fit(X[:200][::-1], Y[:200][::-1]).decision_function(X[200:])
        np.testing.assert_array_equal(
            np.sign(scores[:, :, None] - scores[:, None, :]), np.sign(turned[:, :, None] - turned[:, None, :])
        )


def test_singular_values_that_are_rounding_errors_count_as_zero() -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, size=(60, 3)).astype(float)  # eight distinct rows: the hidden layer has rank 8 at most
    Y = (X[:, :2] > 0).astype(np.uint8)
    scores = ELM(n_hidden=40, random_state=0).fit(X, Y).decision_function(X)
    turned = ELM(n_hidden=40, random_state=0).fit(X[::-1], Y[::-1]).decision_function(X)
    np.testing.assert_allclose(scores, turned, rtol=0, atol=2e-9)
    np.testing.assert_allclose(scores, 2.0 * Y - 1.0, rtol=0, atol=1e-6)


def test_starting_centres_do_not_tie() -> None:
    """A row as near to one starting centre as to another goes the same way in every unit of the features."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, size=(200, 5)).astype(float)
    Y = np.ones((200, 1), dtype=np.uint8)
    Y[:20] = 0
    plain = MLRBF(ratio=0.05, random_state=3).fit(X, Y).centres_
    for unit in (0.1, 0.7, 3.0):
        scaled = MLRBF(ratio=0.05, random_state=3).fit(X * unit, Y).centres_
        np.testing.assert_allclose(scaled / unit, plain, rtol=0, atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_neighbours_with_tied_distances_are_those_of_rounded_distances(sparse: bool) -> None:
    rng = np.random.default_rng(3)
    points = rng.integers(0, 3, size=(80, 4)).astype(float)
    noisy = points + 1e-13 * rng.normal(size=points.shape)
    X = sp.csr_array(noisy) if sparse else noisy
    indices, _ = exact_neighbours(X, 7, tie_tol=1e-9)
    np.testing.assert_array_equal(indices, exact_neighbours(points, 7)[0])
    assert (exact_neighbours(X, 7)[0] != indices).any()


def test_tie_tol_is_checked() -> None:
    with pytest.raises(ValueError, match=r"tie_tol=1\.0: it lies in"):
        MLkNN(k=2, tie_tol=1.0).fit(np.eye(4), np.eye(4, dtype=int))
