"""Measurement of a fit with one BLAS thread: seconds, peak memory and stored size."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import pickle
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["FLOOR_MB", "RECALL", "Meter", "blas_libraries", "model_bytes", "neighbour_recall", "one_thread"]

RECALL = "neighbour_recall"
"""Name of the recall of approximate neighbours, which is measured of the cells that use them only."""
FLOOR_MB = 4.0
"""Least memory of a fit that is told apart: what is loaded or kept on first use makes up to 1 MiB of difference."""
_STATUS = "/proc/self/status"


class Meter:
    """Measure a block: wall seconds, and the increase of memory since its start.

    The peak is the kernel's own (``VmHWM`` after writing 5 to ``/proc/self/clear_refs``); where ``/proc`` is absent, a
    thread samples the resident size every 5 ms. ``ru_maxrss`` is not used (a child inherits its parent's peak), nor
    ``tracemalloc`` (blind to libsvm). What earlier work has freed is returned to the system first: the block would
    use it without a rise.

    Attributes
    ----------
    seconds : float
    peak_mb : float
        Rise of the resident set in MiB, at least :data:`FLOOR_MB`: smaller rises cannot be told apart.
    method : {"VmHWM", "sampler"}
    """

    seconds = 0.0
    peak_mb = FLOOR_MB
    method = "VmHWM"

    def __enter__(self) -> Meter:
        self._sampler: _Sampler | None = None
        _fill_buffers()
        _return_freed()
        try:
            with open("/proc/self/clear_refs", "w") as stream:
                stream.write("5")
            self._before = _status("VmRSS")
        except OSError:
            self.method = "sampler"
            self._sampler = _Sampler()
            self._before = self._sampler.start()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
        peak = self._sampler.stop() if self._sampler else _status("VmHWM")
        self.peak_mb = max(FLOOR_MB, (peak - self._before) / 1024)


@functools.cache
def _fill_buffers() -> None:
    """Let the BLAS libraries touch the buffers that they keep, which would else count as memory of the first fit."""
    import numpy as np
    from scipy.linalg import cho_factor

    square = np.eye(768) + 1e-3
    cho_factor(square @ square)


def _return_freed() -> None:
    """Return memory that the allocator keeps to the system, where the C library can (glibc)."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _status(field: str) -> float:
    with open(_STATUS) as stream:
        for line in stream:
            if line.startswith(field + ":"):
                return float(line.split()[1])
    raise OSError(f"{_STATUS} has no {field}")


class _Sampler:
    """Resident kilobytes every 5 ms, through psutil (a dependency of DVC)."""

    def start(self) -> float:
        import psutil

        self._process = psutil.Process()
        self._stop = threading.Event()
        before = self._peak = self._read()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return before

    def stop(self) -> float:
        self._stop.set()
        self._thread.join()
        return max(self._peak, self._read())

    def _run(self) -> None:
        while not self._stop.wait(0.005):
            self._peak = max(self._peak, self._read())

    def _read(self) -> float:
        return self._process.memory_info().rss / 1024


class _Counter(io.RawIOBase):
    """A stream that counts bytes and keeps nothing."""

    count = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.count += size
        return size


def model_bytes(estimator: Any) -> int:
    """Return the size in bytes of a fitted estimator when pickled (protocol 5)."""
    counter = _Counter()
    pickle.dump(estimator, counter, protocol=5)
    return counter.count


def neighbour_recall(estimator: Any) -> float | None:
    """Return the recall that a fitted estimator, or a step of a pipeline, measured of its approximate neighbours.

    Returns
    -------
    float or None
        The least of the steps; ``None`` where all neighbours are exact, or there are none.
    """
    steps = getattr(estimator, "named_steps", {"": estimator}).values()
    approximate = [step for step in steps if getattr(step, "neighbours", "exact") != "exact"]
    recalls = (getattr(step, "neighbour_recall_", None) for step in approximate)
    return min((float(recall) for recall in recalls if recall is not None), default=None)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Run a block with one thread per BLAS and OpenMP pool.

    A limit reaches only the libraries that are loaded when it is set, so NumPy's and SciPy's BLAS and scikit-learn's
    OpenMP are loaded first.
    """
    with _controller().limit(limits=1):
        yield


def blas_libraries() -> list[str]:
    """Return the BLAS libraries of this process with version and processor kernels, e.g. ``openblas 0.3.30 SkylakeX``.

    The kernels are chosen by the processor (or ``OPENBLAS_CORETYPE``) and decide the last bits of a result.
    """
    pools = [pool for pool in _controller().info() if pool["user_api"] == "blas"]
    fields = ("internal_api", "version", "architecture")
    return sorted({" ".join(str(pool[field]) for field in fields if pool.get(field)) for pool in pools})


def _controller() -> ThreadpoolController:
    import sklearn.utils  # noqa: F401

    return _controller_of(len(sys.modules))


@functools.lru_cache(maxsize=1)
def _controller_of(_n_modules: int) -> ThreadpoolController:
    """Find the loaded libraries, which takes milliseconds: again only when more modules were imported."""
    return ThreadpoolController()
