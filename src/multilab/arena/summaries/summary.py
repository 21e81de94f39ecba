"""Numbers of a leaderboard that its page states: the content of ``reports/arena/summary.json``.

Everything is computed from the leaderboard file and the table of seconds, so that it can be recomputed without a cell.
:mod:`multilab.arena.summaries.page` writes the sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from multilab.arena.boards import ALPHA
from multilab.arena.champion import ROPE
from multilab.arena.errors import ArenaError
from multilab.arena.file_means import leaderboard_means
from multilab.arena.summaries.cheap import cheap_numbers
from multilab.arena.summaries.comparisons import (
    pool_of,
    shares_of,
)
from multilab.arena.summaries.costs import cost_numbers
from multilab.arena.summaries.effort import effort_numbers
from multilab.arena.summaries.metrics import agreement_numbers, dummy_numbers
from multilab.arena.summaries.proposals import PROPOSALS, proposal_numbers
from multilab.arena.summaries.stacking import stacking_numbers
from multilab.arena.summaries.tuning import tuning_numbers
from multilab.arena.summaries.winners import first_by_elo, winner_numbers

SUMMARY_SCHEMA = 1
"""Version of the content of the file."""

_NOT_TRIED = re.compile(r"^not run: on split \d+ ")
"""Before the reason of a split that was not tried because another one did not finish."""


def arena_summary(
    content: Mapping[str, Any],
    measured: pd.DataFrame | None = None,
    comparators: Mapping[str, Sequence[str]] | None = None,
    tables: Mapping[str, Mapping[str, pd.DataFrame | None]] | None = None,
    budget: float | None = None,
) -> dict[str, Any]:
    """Return what a leaderboard shows.

    Parameters
    ----------
    content : mapping
        Of ``leaderboard.json``, see :mod:`multilab.arena.leaderboard_file`.
    measured : DataFrame, optional
        Columns dataset, split, method, fit_seconds, input_seconds, predict_seconds, alone, of the track default.
    comparators : mapping of str to sequence of str, optional
        By study of a paper the methods that the paper compares its own with.
    tables : mapping, optional
        By study of the arena its tables ``measured``, ``tuned`` and ``unfinished``, for the hours that they took.
    budget : float, optional
        Hours of one core that these studies together may take.

    Returns
    -------
    dict
        ``schema``, ``created``, ``rope``, ``alpha``, ``anchor`` (of Elo), ``sets``, ``columns``, ``groups``;
        ``winners`` (a list, one per kind of sets, and one with the mean rank on related sets as one value:
        ``kind``, ``title``, ``sets``, and by group ``first``, ``rank``, ``cd`` and ``not_separated``: the others whose
        average rank is within ``cd``); ``elo`` (by group the first by Elo with its interval, and the others whose
        interval overlaps); ``proposals`` (a list: ranks, Elo, comparisons with baselines by group and with the
        comparators of the paper); ``tuning`` (``null`` without such a track); ``stacking`` (the same; ``all`` and
        ``unseen``, the stacks on all sets and on those that decided no rule of the champion; ``champion``, a list of
        :func:`champion_verdict`; ``chosen_on``, the sets that did decide, with the reason); ``costs`` (``null``
        unless measured alone: ``study``, ``machine``, ``sets`` of Elo, ``methods`` with their costs, the fastest fit
        first, ``pareto``);
        ``cheap`` (``null`` without ``measured``; by metric a list per set); ``unfinished``; ``effort`` (``null``
        without ``tables``; hours by study, their sum and the budget); ``metrics``; ``dummies``.

    Raises
    ------
    ArenaError
        If the leaderboard has no track ``default``, or does not describe a dataset.

    Notes
    -----
    Two methods are compared by the share of metrics that each wins on a set, ties half: Wilcoxon's signed-rank test
    over the sources of the sets of the mean shares' differences from one half, Holm-corrected over the comparisons of
    one method. A method that did not finish loses the set. Ranks are compared by Nemenyi's critical difference.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import arena_leaderboard, arena_summary, track_results
    >>> rows = [(f"set{i}", 0, m, "macro_f1", v) for i in range(6) for m, v in (("a", 0.8), ("b", 0.7 + i / 50))]
    >>> scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    >>> facts = [{"name": f"set{i}", "text": i < 3, "n": 500, "q": 6} for i in range(6)]
    >>> summary = arena_summary(arena_leaderboard([track_results("default", scores)], facts, {}, []))
    >>> [(each["title"], each["groups"]["overall"]["first"]) for each in summary["winners"]][:2]
    [('all sets', 'a'), ('text', 'a')]
    """
    means = leaderboard_means(content, "default")
    pool = pool_of(content, "default")
    described = {each["name"] for each in content["sets"]}
    if absent := [name for name in means.datasets if name not in described]:
        raise ArenaError(f"the leaderboard lacks the facts of {', '.join(absent)}: evaluate the study, then rank again")
    groups = [each["name"] for each in content["groups"]]
    shares = {name: shares_of(means, name, content["sets"]) for name in groups}
    return {
        "schema": SUMMARY_SCHEMA,
        "created": content["created"],
        "rope": ROPE,
        "alpha": ALPHA,
        "anchor": pool["anchor"],
        "sets": [each["name"] for each in content["sets"] if each["name"] in means.datasets],
        "columns": list(means.columns),
        "groups": {each["name"]: each["title"] for each in content["groups"]},
        "winners": winner_numbers(means, content["sets"], groups),
        "elo": {name: first_by_elo(pool, name) for name in groups if "elo" in pool["boards"][name]},
        "proposals": [
            proposal_numbers(pool, shares, name, study, (comparators or {}).get(study, ()))
            for study, names in PROPOSALS.items()
            for name in names
            if name in means.columns
        ],
        "tuning": tuning_numbers(content, groups),
        "stacking": stacking_numbers(content, groups),
        "costs": cost_numbers(content, pool_of(content, "ensembled") or pool),
        "cheap": None if measured is None else cheap_numbers(means, measured),
        "unfinished": _unfinished(content["tracks"]["default"]),
        "effort": effort_numbers(tables or {}, budget),
        "metrics": agreement_numbers(pool, means.metrics),
        "dummies": dummy_numbers(pool, means),
    }


def _unfinished(track: Mapping[str, Any]) -> dict[str, Any]:
    """Return the methods that have an unfinished split, with the sets and the reasons."""
    rows = pd.DataFrame(track["unfinished"], columns=["set", "column", "splits", "reason"])
    cells = sum(track["splits"].values()) * len(track["columns"])
    methods = [
        {
            "name": str(name),
            "sets": rows.loc[at, "set"].tolist(),
            "cells": int(rows.loc[at, "splits"].sum()),
            "reasons": dict(sorted(Counter(_NOT_TRIED.sub("", reason) for reason in rows.loc[at, "reason"]).items())),
        }
        for name, at in rows.groupby("column", sort=False).groups.items()
    ]
    methods.sort(key=lambda each: (-len(each["sets"]), each["name"]))
    return {"cells": cells, "unfinished_cells": int(rows["splits"].sum()), "methods": methods}
