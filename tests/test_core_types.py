"""The gate on other kernels of OpenBLAS and with two BLAS threads: the numbers are the committed ones there too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Each depends on another part of linear algebra: Cholesky, SVD, ADMM, least squares, eigenproblems, distances.
METHODS = "mlkelm,mlkelm_nystroem,mlekelm,elm,relm,klscca,rlskmddm,mlrbf"
ARCHITECTURES = """
import json
import numpy, scipy.linalg, threadpoolctl
print(json.dumps(sorted({info.get("architecture", "") for info in threadpoolctl.threadpool_info()})))
"""

pytestmark = pytest.mark.xdist_group("gate")


def run(core: str, threads: int, *command: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": str(threads), "MULTILAB_JOBS": "1"}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)


def skip_unless_it_can_be_had(core: str) -> None:
    """Skip where the processor lacks the instructions, or the libraries do not obey the variable."""
    processor = Path("/proc/cpuinfo")
    flags = processor.read_text() if processor.is_file() else ""
    if core == "SkylakeX" and " avx512f " not in flags:
        pytest.skip("this processor has no AVX-512 (no avx512f in /proc/cpuinfo), which the SkylakeX kernels need")
    reported = json.loads(run(core, 1, "-c", ARCHITECTURES).stdout)
    if reported != [core]:
        pytest.skip(f"OPENBLAS_CORETYPE={core} has no effect here: the libraries report {reported}")


@pytest.mark.parametrize(("core", "threads"), [("Haswell", 2), ("Sandybridge", 1), ("SkylakeX", 1)])
def test_the_gate_passes_on_other_kernels(core, threads, tmp_path):
    skip_unless_it_can_be_had(core)
    done = run(core, threads, "-m", "multilab.cli", "gate", "--methods", METHODS, "--store", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gate passed: " in done.stdout
