"""One BLAS thread inside a cell, and the names of the BLAS libraries in use."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy.linalg  # noqa: F401
import scipy.linalg  # noqa: F401
import sklearn.utils  # noqa: F401
from threadpoolctl import ThreadpoolController

__all__ = ["blas_libraries", "one_thread"]


@contextmanager
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
    return _controller_of(len(sys.modules))


@functools.lru_cache(maxsize=1)
def _controller_of(_n_modules: int) -> ThreadpoolController:
    """Find the loaded libraries, which takes milliseconds: again only when more modules were imported."""
    return ThreadpoolController()
