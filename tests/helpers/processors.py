"""Other kernels of OpenBLAS than those of this processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ARCHITECTURES = """
import json
import numpy, scipy.linalg, threadpoolctl
print(json.dumps(sorted({info.get("architecture", "") for info in threadpoolctl.threadpool_info()})))
"""


def run(core: str, threads: int, *command: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": str(threads), "MULTILAB_JOBS": "1"}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)


def has_avx512() -> bool:
    """Return whether the processor has the instructions that the SkylakeX kernels need."""
    processor = Path("/proc/cpuinfo")
    return processor.is_file() and " avx512f " in processor.read_text()


def skip_unless_available(core: str) -> None:
    """Skip where the processor lacks the instructions, or the libraries do not obey the variable."""
    if core == "SkylakeX" and not has_avx512():
        pytest.skip("this processor has no AVX-512 (no avx512f in /proc/cpuinfo), which the SkylakeX kernels need")
    reported = json.loads(run(core, 1, "-c", ARCHITECTURES).stdout)
    if reported != [core]:
        pytest.skip(f"OPENBLAS_CORETYPE={core} has no effect here: the libraries report {reported}")
