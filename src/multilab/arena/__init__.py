"""The arena: many methods on many datasets, compared from tables of results.

Nothing here fits a method or reads a cell. Leaderboards are computed from tables with the columns dataset, split,
method, metric and value, of the studies of the arena or your own.

Examples
--------
>>> import pandas as pd
>>> from multilab.arena import rank_methods, track_results
>>> values = {"a": [0.8, 0.7, 0.9], "b": [0.7, 0.6, 0.5], "c": [0.6, 0.8, 0.4]}
>>> rows = [(f"set{i}", 0, method, "macro_f1", v) for method, vs in values.items() for i, v in enumerate(vs)]
>>> scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
>>> board = rank_methods(track_results("default", scores).means(), "macro_f1")
>>> board.table["rank"].round(2).to_dict()
{'a': 1.33, 'b': 2.33, 'c': 2.33}
"""

from __future__ import annotations

from multilab.core.lazy import lazy_names

# bencheval, which `elo` imports, is a package of the extra `arena`.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "boards": ("METRIC_GROUPS", "ORDERED_LIKE", "Board", "rank_methods"),
        "one_against_all": ("one_against_all_tests", "one_against_all_verdict"),
        "content": ("leaderboard_means",),
        "costs": ("method_costs", "with_base_methods"),
        "elo": ("elo_ratings",),
        "leaderboard": ("SCHEMA", "arena_leaderboard", "leaderboard_text"),
        "portfolio": ("StackPortfolio", "choose_portfolio", "normalised_scores", "unrelated_sets"),
        "sets": ("DataProfile", "nearest_sets", "select_sets"),
        "summary": ("arena_summary",),
        "tracks": ("ArenaError", "Pool", "Track", "pooled_tracks", "track_results"),
    },
)
