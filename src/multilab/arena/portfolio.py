"""Portfolios of the stacks: for each dataset, few methods that complement each other on the other sets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from multilab.arena.committed_tables import arena_settings
from multilab.arena.tracks import ArenaError
from multilab.cells.conf import read_settings, read_settings_file
from multilab.core import report_dir
from multilab.core.shell import command
from multilab.experiments.study import Study
from multilab.metrics import METRICS
from multilab.statistics.result_files import SCORES, read_scores, read_table, read_unfinished

SCORE_METRICS = ("macro_auc", "micro_auc", "average_precision", "ranking_loss", "coverage")
"""Metrics by which a portfolio is chosen: those of scores. A stack makes its own decisions."""

_DECAY = 0.5
"""Weight of the second best member relative to the best, of the third relative to the second, and so on."""


@dataclass(frozen=True)
class StackPortfolio:
    """Members of the stack on one dataset.

    Attributes
    ----------
    dataset : str
    methods : tuple of str
        The members in the order of their choice.
    values : tuple of float
        Value of the portfolio after each choice, at most the sum of the weights of its members.
    seconds : float
        Sum of the mean seconds of a fit of each member.
    other_sets : tuple of str
        Datasets whose results decided.
    """

    dataset: str
    methods: tuple[str, ...]
    values: tuple[float, ...]
    seconds: float
    other_sets: tuple[str, ...]


def unrelated_sets(dataset: str, datasets: Collection[str], families: Sequence[str] = ()) -> list[str]:
    """Return the datasets except this one and those of its family, sorted.

    Examples
    --------
    >>> from multilab.arena import unrelated_sets
    >>> unrelated_sets("yahoo-arts", ["emotions", "yahoo-arts", "yahoo-health"], ["yahoo-*"])
    ['emotions']
    """
    patterns = [pattern for pattern in families if fnmatchcase(dataset, pattern)]
    return sorted(
        name for name in set(datasets) - {dataset} if not any(fnmatchcase(name, pattern) for pattern in patterns)
    )


def choose_portfolio(
    dataset: str,
    scores: pd.DataFrame,
    measured: pd.DataFrame,
    unfinished: pd.DataFrame | None = None,
    *,
    k: int = 8,
    seconds: float = 60.0,
    limit: float = 60.0,
    fits: float = 2.0,
    exclude: Collection[str] = (),
    families: Sequence[str] = (),
    metrics: Sequence[str] = SCORE_METRICS,
    sizes: Mapping[str, float] | None = None,
) -> StackPortfolio:
    """Choose the members of a stack on one dataset, without its scores and those of its family.

    Parameters
    ----------
    dataset : str
    scores : DataFrame
        Columns ``dataset``, ``split``, ``method``, ``metric``, ``value``.
    measured : DataFrame
        Columns ``dataset``, ``split``, ``method``, ``fit_seconds``.
    unfinished : DataFrame, optional
        Columns ``dataset``, ``split``, ``method``: cells without a result.
    k : int, default=8
        Number of members; fewer where the seconds are used up.
    seconds : float, default=60
        Bound on the sum of the mean seconds of a fit of each member, on this dataset.
    limit : float, default=60
        Seconds of a cell.
    fits : float, default=2
        Time of the out-of-fold scores relative to a fit: 3 fits on 2/3 of the rows.
    exclude : collection of str
        Methods that must not be members, such as those that read base scores themselves.
    families : sequence of str
        Patterns of datasets of one source, which are left out together.
    metrics : sequence of str
    sizes : mapping of str to float, optional
        Size of each dataset, as rows x features x labels: what a linear fit per label reads. It decides which sets
        limit the members on a dataset without measured cells.

    Returns
    -------
    StackPortfolio

    Raises
    ------
    ArenaError
        If there are no results on other datasets, or no method can be a member.

    Notes
    -----
    The mean of a method over the splits of a dataset is normalised per metric: 1 for the best method, 0 for the median
    one and everything below, so that bad methods do not stretch the scale. On each (dataset, metric), a portfolio gets
    the score of its best member, plus half of the second best score, a quarter of the third, and so on; its value is
    the mean. The best score alone (the objective of Feurer et al.) is reached with few members, after which every
    choice is equally good; a sum would choose the same kind of method k times. The value is submodular, so that the
    greedy choice reaches at least 1 - 1/e of the best value. Ties go to the cheaper method, then to the first in
    alphabetical order.

    A method can be a member if none of its cells on this dataset is unfinished, and the mean of its fits times ``fits``
    is within the limit of a cell. Seconds need no labels of the test set, and a stack with a member that does not
    finish has no result. If nothing was measured on the dataset, the same must hold on each other dataset that is not
    larger by ``sizes``, or on all others if none is smaller or there are no sizes. So a method that is too slow on
    thousands of rows can still be a member on hundreds. On another dataset on which it is unfinished, a method is worth
    0.

    References
    ----------
    M. Feurer, K. Eggensperger, S. Falkner, M. Lindauer, F. Hutter. Auto-sklearn 2.0: hands-free AutoML via
    meta-learning. JMLR 23, 2022 (section 3.1: greedy portfolios).

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.arena import choose_portfolio
    >>> values = {"emotions": (0.8, 0.7, 0.5), "flags": (0.6, 0.7, 0.5), "yeast": (0.1, 0.2, 0.9)}
    >>> rows = [(s, 0, m, "macro_auc", v) for s, vs in values.items() for m, v in zip(("a", "b", "c"), vs)]
    >>> scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    >>> measured = scores[["dataset", "split", "method"]].assign(fit_seconds=1.0)
    >>> choose_portfolio("yeast", scores, measured, k=2, metrics=["macro_auc"]).methods
    ('a', 'b')
    """
    others = unrelated_sets(dataset, scores["dataset"].unique(), families)
    if not others:
        raise ArenaError(f"no results on datasets that are unrelated to {dataset!r}, so a portfolio cannot be chosen")
    scores = scores[scores["dataset"].isin(others) & scores["metric"].isin(metrics)]
    values = normalised_scores(scores)
    limiting = _limiting_sets(dataset, others, set(measured["dataset"]), sizes or {})
    cells = measured[measured["dataset"].isin(limiting)].groupby(["dataset", "method"])["fit_seconds"].mean().unstack()
    cells = cells.reindex(index=limiting, columns=values.columns)
    costs = cells.mean()
    late = ~(cells * fits <= limit).all()  # true also where a set lacks the method
    for name, method in _pairs(unfinished):
        if name in limiting and method in late.index:
            late[method] = True
        if name in others and method in values.columns:
            values.loc[name, method] = 0.0
    values = values.fillna(0.0)
    names = [name for name in sorted(values.columns) if not late[name] and name not in exclude]
    table, mean = values[names].to_numpy(), costs[names].to_numpy()
    chosen: list[int] = []
    reached: list[float] = []
    while len(chosen) < k:
        spent = mean[chosen].sum()
        options = [j for j in range(len(names)) if j not in chosen and spent + mean[j] <= seconds]
        if not options:
            break
        gains = {j: _value(table[:, [*chosen, j]]) for j in options}
        # rounded, so that gains that differ by rounding errors are ties, which the cheaper method wins
        best = min(options, key=lambda j: (-round(gains[j], 9), mean[j], names[j]))
        chosen.append(best)
        reached.append(gains[best])
    if not chosen:
        raise ArenaError(f"no method finished on {', '.join(limiting)} within the limits: no member for {dataset!r}")
    return StackPortfolio(
        dataset, tuple(names[j] for j in chosen), tuple(reached), float(mean[chosen].sum()), tuple(others)
    )


def _limiting_sets(
    dataset: str, others: Sequence[str], measured: Collection[str], sizes: Mapping[str, float]
) -> list[str]:
    """Return the datasets whose unfinished cells and seconds exclude a method: itself where it was measured."""
    if dataset in measured:
        return [dataset]
    smaller = [name for name in others if name in sizes and sizes[name] <= sizes.get(dataset, -np.inf)]
    return smaller or list(others)


def _pairs(unfinished: pd.DataFrame | None) -> Iterator[tuple[str, str]]:
    if unfinished is not None:
        yield from unfinished[["dataset", "method"]].drop_duplicates().itertuples(index=False)


def normalised_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return mean scores in [0, 1], rows (dataset, metric), columns methods: 1 for the best, 0 up to the median.

    A row without differences, or undefined for all methods, is 0 for all.
    """
    means = scores.groupby(["dataset", "metric", "method"])["value"].mean().unstack()
    signs = [1.0 if METRICS[metric].direction == "max" else -1.0 for metric in means.index.get_level_values("metric")]
    means = means.mul(signs, axis=0)
    best, middle = means.max(axis=1), means.median(axis=1)
    span = (best - middle).where(best > middle)
    scaled = means.sub(middle, axis=0).div(span, axis=0).clip(lower=0.0)
    flat = span.isna()
    scaled[flat] = scaled[flat].fillna(0.0)
    return scaled


def _value(members: np.ndarray) -> float:
    """Return the value of members, from their normalised scores, shape (n_rows, n_members)."""
    ordered = -np.sort(-members, axis=1)
    return float((ordered @ _DECAY ** np.arange(members.shape[1])).mean())


STACKS = ("stack", "stack_greedy", "stack_mlwse", "stack_one_decision")
"""Entrants that get the portfolio of a dataset as their base methods."""

DISTILLED = "distilled_stack"
"""The compact method that a stack teaches: a column of the same study, with members of its own."""

_HEADER = """\
# Written by `multilab arena portfolio`: the portfolio of a set is chosen from the results on other sets.
# A set keeps its portfolio when others join; remove its block to choose it again.
"""


def chosen_members(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the portfolios that a study of stacks has, by dataset; none where there is no such file."""
    if not path.is_file():
        return {}
    blocks = read_settings_file(path).get("settings") or []
    try:
        return {
            dataset: tuple(block["set"]["base_scores"])
            for block in blocks
            if "base_scores" in block["set"]
            for dataset in block["datasets"]
        }
    except (KeyError, TypeError):
        form = "{methods: [...], datasets: [...], set: {base_scores: [...]}}"
        raise ArenaError(f"{path}: `settings` is not a list of blocks {form}: repair or remove it") from None


def study_portfolios(study: Study, k: int, seconds: float) -> list[StackPortfolio]:
    """Return the portfolio of each dataset of a study, from its committed tables."""
    folder = report_dir(study.name)
    for path in (folder / SCORES, folder / "measured.csv"):
        if not path.is_file():
            raise ArenaError(
                f"{path} is not there: `{command('multilab')} study run --study {study.name}` needs results"
            )
    measured = read_table(folder / "measured.csv", ["dataset", "split", "method", "fit_seconds"])
    tables = {"scores": read_scores(folder), "measured": measured, "unfinished": read_unfinished(folder)}
    stacked = {name for name in study.all_methods if study.method(name).base_scores} | {
        name for name in study.all_methods if study.variant_of(name)
    }
    families = [pattern for patterns in arena_settings()["related"].values() for pattern in patterns]
    limit = study.limits.seconds if study.limits and study.limits.seconds else float("inf")
    return [
        choose_portfolio(dataset, **tables, k=k, seconds=seconds, limit=limit, exclude=stacked, families=families)
        for dataset in study.datasets
        if dataset in set(tables["scores"]["dataset"])
    ]


def stack_study(study: Study, members: Mapping[str, tuple[str, ...]]) -> str:
    """Return the YAML of the study of the stacks, with the splits, settings and limits of another study."""
    settings: list[dict[str, Any]] = list(read_settings("study", study.name).get("settings") or [])
    settings += [
        {"methods": list(STACKS), "datasets": [dataset], "set": {"base_scores": list(methods)}}
        for dataset, methods in members.items()
    ]
    content = {
        "like": study.name,
        "title": "Arena: stacks of portfolios",
        "description": (
            "The track *ensembled* of the arena: out-of-fold scores of a portfolio, combined. The portfolio of a set "
            "is chosen from results on other sets, without sets of the same family."
        ),
        "datasets": list(members),
        "methods": [*STACKS, DISTILLED],
        "settings_for_members": True,
        "settings": settings,
    }
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    return _HEADER + text
