"""Comparisons that several sections of the summary need: shares of wins, tests, positions in a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from multilab.arena.boards import ALPHA, rank_methods
from multilab.arena.selection import sources_of
from multilab.arena.summaries import markdown as md
from multilab.arena.tracks import Means
from multilab.statistics import holm, signed_rank_p


@dataclass(frozen=True, eq=False)
class Shares:
    """Share of the metrics of a group that the method of the row wins against that of the column, per dataset."""

    columns: tuple[str, ...]
    sources: tuple[str, ...]
    values: np.ndarray  # (n_datasets, n_columns, n_columns)

    def between(self, column: str, other: str) -> pd.Series:
        """Return the shares that a column wins against another one, a value per dataset, indexed by its source."""
        shares = self.values[:, self.columns.index(column), self.columns.index(other)]
        return pd.Series(shares, index=pd.Index(self.sources, name="source"))


def tested_pairs(pairs: Sequence[tuple[Shares, str, str]]) -> list[dict[str, Any]]:
    """Return how the first column of each pair does against the second: share of wins and signed-rank test.

    Both have one value per source, the mean share on its datasets, for the results on related datasets are not
    independent. The p values are Holm-corrected over the pairs. ``smallest_p`` is what they can be at least: a
    difference cannot be detected where it is above the level.
    """
    shares = [each.between(column, other) for each, column, other in pairs]
    tested = [each.groupby("source", sort=False).mean().to_numpy().round(9) - 0.5 for each in shares]
    p = holm([signed_rank_p(each) for each in tested])
    return [
        {
            "against": other,
            "sets": len(values),
            "sources": len(differences),
            "wins": rounded_or_none(values.groupby("source").mean().mean(), 6),
            "sets_won": int((values > 0.5).sum()),
            "sets_lost": int((values < 0.5).sum()),
            "p_holm": significant(adjusted),
            "smallest_p": significant(min(1.0, len(pairs) * 2.0 ** (1 - len(differences)))),
            "verdict": verdict(differences, adjusted),
        }
        for (_, _, other), values, differences, adjusted in zip(pairs, shares, tested, p, strict=True)
    ]


def undetectable(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return that comparisons of one family cannot detect a difference with so few sets; nothing where they can."""
    if not rows or rows[0]["smallest_p"] <= ALPHA:
        return ""
    return f"nor can it be with {sets_of_sources(rows[0])} (the smallest p is {rows[0]['smallest_p']:.3g})"


def sets_of_sources(row: Mapping[str, Any]) -> str:
    """Return on how many sets a pair was compared, and of how many sources these are if some are related."""
    text = md.count(row["sets"], "set")
    return text if row["sources"] == row["sets"] else f"{text} of {md.count(row['sources'], 'source')}"


def shares_of(means: Means, group: str, facts: Sequence[Mapping[str, Any]]) -> Shares:
    """Return the shares of a group; a dataset on which all its metrics are undefined is left out."""
    used, sources = rank_methods(means, group).datasets, sources_of(facts)
    wins = [rank_methods(means.on([name]), group).wins.to_numpy() for name in used]
    return Shares(means.columns, tuple(sources[name] for name in used), np.array(wins))


def verdict(differences: np.ndarray, p: float) -> str:
    """Return what the signed-rank test detected; its direction is that of the rank sums."""
    if p > ALPHA:
        return "no difference"
    return "better" if (rankdata(np.abs(differences)) * np.sign(differences)).sum() > 0 else "worse"


def standing(pool: Mapping[str, Any], group: str, column: str) -> dict[str, Any]:
    """Return the average rank of a column, its position in that order, and its Elo."""
    board = pool["boards"][group]
    rank = board["rank"][pool["columns"].index(column)]
    return {
        "rank": rounded_or_none(rank, 6),
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
    """Return a number with six significant digits, so that a table that has fewer rounds what was measured."""
    return float(f"{value:.6g}")
