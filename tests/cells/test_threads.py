"""One BLAS thread in a cell, from the first call of a process on, and the record of the BLAS in use."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from multilab.cells import fit_costs
from multilab.cells.environment import environment

PROBE = """
import numpy as np

class Probe:
    def get_params(self, deep=True):
        return {}

    def set_params(self, **params):
        return self

    def fit(self, X, y):
        import scipy.linalg
        import sklearn.svm
        from threadpoolctl import threadpool_info

        self.q_ = y.shape[1]
        self.threads_ = [pool["num_threads"] for pool in threadpool_info()]
        return self

    def predict_with_scores(self, X):
        return np.zeros((X.shape[0], self.q_)), np.zeros((X.shape[0], self.q_))
"""

FIRST_CELL = """
import json, sys
from multilab.cells.cell import Cell, split_refs
from multilab.cells.running import run_cell
from multilab.cells.method import Method
from multilab.cells.store import Store

part = split_refs("scenario1", {"kfold": 3, "stratify": 1, "seed": 0})[0]
cell, store = Cell("train", part, Method("probe", "probe.Probe", save_attributes=("threads_",))), Store(sys.argv[1])
reason = run_cell(cell, store)
assert reason is None, reason
print(json.dumps([store.arrays(cell.key)["learned_threads_"].tolist(), store.record(cell.key)["blas"]]))
"""


@pytest.mark.slow
def test_the_first_cell_of_a_process_has_one_thread_in_every_pool(tmp_path):
    (tmp_path / "probe.py").write_text(PROBE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    requested = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    run = subprocess.run(
        [sys.executable, "-c", FIRST_CELL, str(tmp_path / "cells")],
        capture_output=True,
        text=True,
        env={**os.environ, **requested, "PYTHONPATH": path},
    )
    assert run.returncode == 0, run.stderr
    counts, blas = json.loads(run.stdout)
    assert len(counts) >= 2, "NumPy's and SciPy's"
    assert set(counts) == {1}
    assert blas == fit_costs.blas_libraries()


def test_the_blas_of_the_environment_names_library_version_and_processor():
    from threadpoolctl import threadpool_info

    names = fit_costs.blas_libraries()
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert names
    for pool in pools:
        assert any(pool["internal_api"] in name and str(pool.get("architecture", "")) in name for name in names)
    assert environment()["blas"] == ", ".join(names)


def test_the_page_of_a_study_shows_the_blas():
    from multilab.reports.page import flat

    assert ("blas", environment()["blas"]) in flat(environment())
