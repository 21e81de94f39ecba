"""Comparison of methods over datasets: ranks, Friedman, post-hoc and Bayesian tests.

The room knows a results table only (datasets x methods of mean metric values). Everything a report prints or
draws comes from the one :class:`Comparison` that :func:`compare` returns, so that tests and diagrams cannot
contradict each other.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "BayesPair": "signedrank",
    "Comparison": "comparison",
    "RankPair": "posthoc",
    "SignedRankPair": "signedrank",
    "StatisticsError": "errors",
    "Summary": "summary",
    "average_ranks": "ranks",
    "bayesian_signed_rank": "signedrank",
    "bonferroni_dunn_cd": "posthoc",
    "cliques": "posthoc",
    "compare": "comparison",
    "friedman": "omnibus",
    "holm": "signedrank",
    "iman_davenport": "omnibus",
    "nemenyi_cd": "posthoc",
    "rank_rows": "ranks",
    "rounded_means": "summary",
    "signed_rank_p": "signedrank",
    "summarise": "summary",
    "wilcoxon_holm": "signedrank",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:  # pandas and scipy.stats take a second to import, so only those who compare pay for them
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
