"""One BLAS thread inside a cell, and the names of the BLAS libraries in use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["blas_libraries", "one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Run a block with one thread per BLAS and OpenMP pool.

    ``threadpool_limits`` reaches only the libraries that are loaded when it is entered, so NumPy's and SciPy's BLAS and
    scikit-learn's OpenMP are loaded first.
    """
    from threadpoolctl import threadpool_limits

    _load_libraries()
    with threadpool_limits(1):
        yield


def blas_libraries() -> list[str]:
    """Return the BLAS libraries of this process with version and processor kernels, e.g. ``openblas 0.3.30 SkylakeX``.

    The kernels are chosen by the processor (or ``OPENBLAS_CORETYPE``) and decide the last bits of a result.
    """
    from threadpoolctl import threadpool_info

    _load_libraries()
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    fields = ("internal_api", "version", "architecture")
    return sorted({" ".join(str(pool[field]) for field in fields if pool.get(field)) for pool in pools})


def _load_libraries() -> None:
    import numpy.linalg  # noqa: F401
    import scipy.linalg  # noqa: F401
    import sklearn.utils  # noqa: F401
