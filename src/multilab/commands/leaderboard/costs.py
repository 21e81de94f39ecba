"""What a method will cost: seconds and memory from rows, features and labels, by measured curves.

The table next to this file is fitted by ``benchmarks/costs.py``.
"""

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

__all__ = ["TABLE", "Cost", "cost_of"]

TABLE = Path(__file__).with_name("costs.csv")


@dataclass(frozen=True)
class Cost:
    """Estimated cost of one fit with its prediction.

    Attributes
    ----------
    seconds : float
        On one thread.
    megabytes : float
        Rise of memory.
    factor : float
        By which half of the estimates of left-out data sets were off; larger for sizes beyond those measured.
    """

    seconds: float
    megabytes: float
    factor: float


def cost_of(method: str, n: float, d: float, q: float) -> Cost | None:
    """Return the estimated cost of a fit on n rows, d features and q labels, None for a method without a curve."""
    row = _curves().get(method)
    if row is None:
        return None
    sizes = {"n": n, "d": d, "q": q}

    def at(column: str) -> float:
        return math.exp(
            row[f"{column}_log"] + sum(row[f"{column}_{k}"] * math.log(max(v, 1)) for k, v in sizes.items())
        )

    return Cost(at("seconds"), at("megabytes"), row["factor"])


@cache
def _curves() -> dict[str, dict[str, float]]:
    return pd.read_csv(TABLE, index_col="method").to_dict("index")
