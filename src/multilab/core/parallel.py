"""Fits side by side, as many as `n_jobs` says."""

from typing import Any

from joblib import Parallel, effective_n_jobs

__all__ = ["parallel", "workers"]


def parallel(n_jobs: int | None, **settings: Any) -> Parallel:
    """Return joblib's ``Parallel``; with ``n_jobs=1`` it works in this thread.

    Parameters
    ----------
    n_jobs : int or None
        None means 1, or what a surrounding ``joblib.parallel_config`` says. An explicit 1 counts inside
        ``parallel_config(backend="dask")`` too, where joblib alone would use the whole cluster (joblib issue 1013).
    **settings
        Of ``Parallel``, as ``prefer="threads"``.

    Returns
    -------
    joblib.Parallel

    Examples
    --------
    >>> from joblib import delayed
    >>> from multilab.core.parallel import parallel
    >>> parallel(1)(delayed(pow)(2, power) for power in range(4))
    [1, 2, 4, 8]
    """
    return Parallel(n_jobs=1, backend="sequential") if n_jobs == 1 else Parallel(n_jobs=n_jobs, **settings)


def workers(n_jobs: int | None) -> int:
    """Return the number of fits that :func:`parallel` runs side by side."""
    return 1 if n_jobs == 1 else int(effective_n_jobs(n_jobs))
