"""MLARAM's rules for ties: rounding errors, which differ between processors, decide nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from multilab.methods.neighbours.mlaram import MLARAM, _before_largest_gap

NEEDS = {"SkylakeX": "AVX512F", "Haswell": "AVX2", "Sandybridge": "AVX"}
PROGRAM = """
import hashlib, numpy as np, threadpoolctl
from multilab.datasets import load
from multilab.methods.neighbours.mlaram import MLARAM
assert "{core}" in [m.get("architecture") for m in threadpoolctl.threadpool_info()], "another kernel is in use"
digest = hashlib.sha256()
for name in ("digit-segments", "scenario1", "scenario3"):
    data = load(name)
    rows = np.arange(len(data.Y))
    train, test = rows % 3 != 0, rows % 3 == 0
    scores, decisions = MLARAM(random_state=0).fit(data.X[train], data.Y[train]).predict_with_scores(data.X[test])
    digest.update(scores.tobytes() + decisions.astype("u1").tobytes())
print(digest.hexdigest())
"""


def processor_has(feature: str) -> bool:
    from numpy._core._multiarray_umath import __cpu_features__

    return bool(__cpu_features__.get(feature))


@pytest.mark.slow
def test_all_kernels_of_openblas_give_the_same_scores_and_decisions() -> None:
    cores = [core for core, feature in NEEDS.items() if processor_has(feature)][:2]
    if len(cores) < 2:
        pytest.skip(f"this processor can run {cores} of {list(NEEDS)}: nothing to compare")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(core=core)],
            env={**os.environ, "OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for core in cores
    ]
    digests = {process.communicate(timeout=300)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.7, 0.4, 0.1], [1, 0, 0]),  # .7 - .4 < .4 - .1 in binary numbers
        ([0.8, 0.5, 0.2], [1, 0, 0]),  # the other way round
        ([0.1 + 0.2, 0.3, 0.0], [1, 1, 0]),  # equal but for rounding: assigned together
        ([0.3, 0.1 + 0.2, 0.3], [1, 1, 1]),  # no gap at all
        ([0.9, 0.5, 0.1 + 2e-9], [1, 0, 0]),  # gaps that differ are compared as they are
        ([0.9, 0.5 + 2e-9, 0.1], [1, 1, 0]),
    ],
)
def test_of_equal_gaps_the_first_decides(scores: list[float], expected: list[int]) -> None:
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        decisions = _before_largest_gap(np.array([scores])[:, order])
        np.testing.assert_array_equal(decisions, np.array([expected])[:, order])


def test_equal_shares_are_equal_scores() -> None:
    """Two of three prototypes, all equally activated, have the label: its share is 2/3 for every activation."""
    rng = np.random.default_rng(0)
    labels = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 0]])
    for _ in range(20):
        point = rng.uniform(0.2, 0.8, size=5)
        X = np.vstack([np.tile(point, (3, 1)), np.zeros(5), np.ones(5)])
        Y = np.vstack([labels, [0, 1, 1], [0, 1, 1]])
        model = MLARAM(vigilance=1.0).fit(X, Y)
        scores, decisions = model.predict_with_scores(point[None] + rng.uniform(-0.01, 0.01, size=(1, 5)))
        assert scores.tolist() == [[1.0, round(1 / 3, 12), round(1 / 3, 12)]]
        assert decisions.tolist() == [[1, 0, 0]]


def test_of_equally_activated_prototypes_the_first_takes_the_row_in() -> None:
    """Features in steps of .1 give many ties; the order in which features are added up decides none of them."""
    for seed in range(60):
        X = np.random.default_rng(seed).integers(0, 11, size=(60, 5)) / 10
        Y = np.arange(60)[:, None] % 2
        expected = MLARAM(vigilance=0.7).fit(X, Y)
        for order in ([4, 2, 0, 1, 3], [1, 0, 3, 4, 2]):
            model = MLARAM(vigilance=0.7).fit(X[:, order], Y)
            np.testing.assert_array_equal(model.counts_, expected.counts_)
            np.testing.assert_allclose(model.prototypes_[:, :5], expected.prototypes_[:, order], rtol=0, atol=1e-12)
