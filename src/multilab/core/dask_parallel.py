"""Fits of labels, members and folds on the workers of a Dask cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

__all__ = ["dask_parallel"]


def dask_parallel(client: Any, **settings: Any) -> AbstractContextManager[Any]:
    """Let estimators in this block spread their fits over a Dask cluster: those whose ``n_jobs`` is not 1.

    It is ``joblib.parallel_config(backend="dask")``, except for ``n_jobs=1``, which joblib's own backend spreads too
    (joblib issue 1013). It pays for fits of many seconds each, and costs where they take milliseconds.

    Parameters
    ----------
    client : distributed.Client
    **settings
        Of joblib's backend, as ``scatter=[X]`` to send data once.

    Returns
    -------
    context manager

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> with dask_parallel(Client("tls://10.0.0.1:8786")):  # doctest: +SKIP
    ...     BinaryRelevance(HistGradientBoostingClassifier()).fit(X, Y)
    """
    from joblib import parallel_config

    return parallel_config(backend=_backend()(client=client, **settings))


def _backend() -> Any:
    from joblib._dask import DaskDistributedBackend
    from joblib.parallel import FallbackToBackend, SequentialBackend

    class Backend(DaskDistributedBackend):
        def effective_n_jobs(self, n_jobs: int) -> int:
            return 1 if n_jobs == 1 else int(super().effective_n_jobs(n_jobs))

        def configure(self, n_jobs: int = 1, parallel: Any = None, **settings: Any) -> int:
            if n_jobs == 1:
                raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
            return int(super().configure(n_jobs=n_jobs, parallel=parallel, **settings))

        def get_nested_backend(self) -> tuple[Any, int]:
            return Backend(client=self.client), -1

        def __reduce__(self) -> Any:
            return _on_worker, ()

    return Backend


def _on_worker() -> Any:
    """Return the backend on a worker, which has its client there."""
    return _backend()()
