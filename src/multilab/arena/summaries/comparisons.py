"""Comparisons that several sections of the summary need: shares of wins, tests, positions in a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from multilab.arena.boards import ALPHA, rank_methods
from multilab.arena.tracks import Means
from multilab.statistics import holm, signed_rank_p


@dataclass(frozen=True, eq=False)
class Shares:
    """Share of the metrics of a group that the method of the row wins against that of the column, per dataset."""

    columns: tuple[str, ...]
    values: np.ndarray  # (n_datasets, n_columns, n_columns)

    def compared(self, column: str, others: Sequence[str]) -> list[dict[str, Any]]:
        """Return how a column does against others: share of wins and signed-rank test, Holm-corrected over them."""
        at = self.columns.index(column)
        against = [self.values[:, at, self.columns.index(other)] for other in others]
        p = [signed_rank_p(shares.round(9) - 0.5) for shares in against]
        least = min(1.0, len(others) * 2.0 ** (1 - len(self.values)))
        return [
            {
                "against": other,
                "sets": len(shares),
                "wins": rounded_or_none(shares.mean(), 3),
                "sets_won": int((shares > 0.5).sum()),
                "sets_lost": int((shares < 0.5).sum()),
                "p_holm": float(f"{adjusted:.3g}"),
                "smallest_p": float(f"{least:.3g}"),
                "verdict": verdict(shares, adjusted),
            }
            for other, shares, adjusted in zip(others, against, holm(p), strict=True)
        ]


def shares_of(means: Means, group: str) -> Shares:
    """Return the shares of a group; a dataset on which all its metrics are undefined is left out."""
    used = rank_methods(means, group).datasets
    wins = [rank_methods(means.on([name]), group).wins.to_numpy() for name in used]
    return Shares(means.columns, np.array(wins))


def verdict(shares: np.ndarray, p: float) -> str:
    """Return what the signed-rank test detected; its direction is that of the rank sums."""
    if p > ALPHA:
        return "no difference"
    differences = shares.round(9) - 0.5
    return "better" if (rankdata(np.abs(differences)) * np.sign(differences)).sum() > 0 else "worse"


def pair_compared(shares: Shares, column: str, other: str) -> dict[str, Any]:
    """Return the comparison of two columns."""
    return shares.compared(column, [other])[0]


def corrected(shares: Shares, column: str, other: str, p: float) -> dict[str, Any]:
    """Return a comparison with a p value that is corrected for several."""
    at, to = shares.columns.index(column), shares.columns.index(other)
    return pair_compared(shares, column, other) | {
        "p_holm": float(f"{p:.3g}"),
        "verdict": verdict(shares.values[:, at, to], p),
    }


def standing(pool: Mapping[str, Any], group: str, column: str) -> dict[str, Any]:
    """Return the average rank of a column, its position in that order, and its Elo."""
    board = pool["boards"][group]
    rank = board["rank"][pool["columns"].index(column)]
    return {
        "rank": rounded_or_none(rank, 2),
        "position": 1 + sum(other < rank for other in board["rank"]),
        "sets": board["sets"],
        **elo_of(pool, board, column),
    }


def elo_of(pool: Mapping[str, Any], board: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Return the Elo of a column with its interval, nothing without ratings."""
    at = pool["columns"].index(column)
    return {key: board[key][at] for key in ("elo", "elo_low", "elo_high") if key in board}


def pool_of(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a pool of the leaderboard, nothing where it is absent."""
    return next((each for each in content["pools"] if each["name"] == name), {})


def rounded_or_none(value: float | None, decimals: int) -> float | None:
    """Return a rounded number, ``None`` for what is not finite."""
    return None if value is None or not np.isfinite(value) else round(float(value), decimals)


def significant(value: float) -> float:
    """Return a number with three significant digits."""
    return float(f"{value:.3g}")
