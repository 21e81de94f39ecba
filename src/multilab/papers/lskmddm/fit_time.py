"""What kMDDM and LSkMDDM cost on all training rows of a dataset, the kernel matrix given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilab.papers.lskmddm.reduction_time import compute

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compute", "finish"]

FILE = "fit_time"
MEASURES_TIME = True


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of the repeats, the fastest and the slowest."""
    by = ["method", "variant", "dataset", "n"]
    return rows.groupby(by, sort=False)["seconds"].agg(seconds="mean", fastest="min", slowest="max").reset_index()
