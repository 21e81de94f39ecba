"""The gate on other kernels of OpenBLAS and with two BLAS threads: the numbers are the committed ones there too."""

from __future__ import annotations

import pytest

from helpers.processors import run, skip_unless_available

# Each depends on another part of linear algebra: Cholesky, SVD, ADMM, least squares, eigenproblems, distances.
METHODS = "mlkelm,mlkelm_nystroem,mlekelm,elm,relm,klscca,rlskmddm,mlrbf"
pytestmark = pytest.mark.xdist_group("gate")


@pytest.mark.slow
@pytest.mark.parametrize(("core", "threads"), [("Haswell", 2), ("Sandybridge", 1), ("SkylakeX", 1)])
def test_the_gate_passes_on_other_kernels(core, threads, tmp_path):
    skip_unless_available(core)
    done = run(core, threads, "-m", "multilab", "gate", "--method", METHODS, "--store", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gate passed: " in done.stdout
