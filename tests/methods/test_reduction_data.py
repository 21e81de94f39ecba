"""Kernel reducers on benchmark data: the identities where rows are equal, and what stopping LSQR early does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from multilab import datasets
from multilab.methods import KLSCCA, KernelMDDM, LSKernelMDDM, MLkNN
from multilab.methods.reduction.kernel_reducer import equal_rows
from multilab.metrics import score_all

pytestmark = [pytest.mark.data, pytest.mark.usefixtures("benchmark_data")]


def parts(name, rows):
    data = datasets.load(name)
    order = np.random.default_rng(0).permutation(len(data.Y))
    train, test = order[:rows], order[rows : rows + 600]
    return data.X[train], data.Y[train], data.X[test], data.Y[test]


@pytest.mark.parametrize(("name", "equal"), [("yeast", False), ("yahoo-arts", True)])
def test_the_eigenproblem_least_squares_and_correlations_on_real_rows(name, equal):
    X, Y, X_test, _ = parts(name, 800)
    assert (len(np.unique(equal_rows(X))) < len(X)) == equal
    ours = LSKernelMDDM()
    Z, Z_test = ours.fit_transform(X, Y), ours.transform(X_test)
    theirs = KernelMDDM().fit(X, Y)
    np.testing.assert_allclose(theirs.eigenvalues_, ours.eigenvalues_, rtol=1e-10)
    assert np.linalg.norm(theirs.transform(X_test) - Z_test) < 1e-9 * np.linalg.norm(Z_test)
    np.testing.assert_allclose(pdist(KLSCCA().fit_transform(X, Y)), pdist(Z), rtol=0, atol=1e-12)
    literal = LSKernelMDDM(range_projection=False).fit(X, Y)
    apart = np.linalg.norm(literal.transform(X_test) - Z_test) / np.linalg.norm(Z_test)
    assert (apart > 0.01) == equal
    assert (literal.residual_ > 0.01) == equal


def test_five_steps_of_lsqr_beat_the_exact_solution_on_scene():
    X, Y, X_test, Y_test = parts("scene", 600)
    precisions = []
    for model in (LSKernelMDDM(solver="lsqr", max_iter=5), LSKernelMDDM()):
        scores = MLkNN().fit(model.fit_transform(X, Y), Y).predict_proba(model.transform(X_test))
        precisions.append(score_all(Y_test, scores)["average_precision"])
    assert precisions[0] > precisions[1] + 0.01
