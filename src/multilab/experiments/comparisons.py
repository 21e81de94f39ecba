"""Comparisons of the methods of a study: tests, means and ranks, over the datasets they share."""

from typing import Any

from multilab.experiments.study import Study
from multilab.metrics.registry import defined
from multilab.statistics import Leaderboard, rank_rows, rounded_means
from multilab.statistics import average_ranks as ranks_of


def compared_groups(study: Study) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the groups of methods that are compared, with their datasets; the study's own methods come first."""
    variants = [(tuple(variant.columns), variant.datasets) for variant in study.variants.values()]
    return [(study.methods, study.datasets), *variants]


def comparisons(
    study: Study, scores: Any, datasets: tuple[str, ...], columns: tuple[str, ...], control: str | None
) -> dict[str, Any]:
    """Return the comparison of some columns over some datasets, by metric of the study."""
    board = leaderboard(study, scores, datasets, columns)
    return {
        metric: board.compare(metric, control, rope=study.rope, seed=study.seed).to_dict() for metric in board.metrics
    }


def leaderboard(
    study: Study, scores: Any, datasets: tuple[str, ...] = (), columns: tuple[str, ...] = ()
) -> Leaderboard:
    """Return the leaderboard of some columns on some datasets, by default of the study's own."""
    directions = {metric: defined(metric).direction for metric in study.metrics}
    return Leaderboard(scores, directions, datasets or study.datasets, columns or study.methods, alpha=study.alpha)


def headline_metrics(study: Study, scores: Any) -> dict[str, dict[str, float]]:
    """Return the mean of each metric of the study per method, for `dvc metrics diff`."""
    means: dict[str, dict[str, float]] = {metric: {} for metric in study.metrics}
    for methods, datasets in compared_groups(study):
        for metric in study.metrics:
            means[metric] |= rounded_means(scores, metric, datasets, methods)
    return means


def study_ranks(study: Study, scores: Any) -> dict[str, dict[str, float]]:
    """Return the average rank over the datasets per method and metric of the study.

    Only the study's own methods are ranked, all on the same datasets. The columns of a variant are other methods on
    other datasets: a list of both kinds, sorted by rank, would put the better of two above the second best of fifty.
    """
    ranks: dict[str, dict[str, float]] = {method: {} for method in study.methods}
    board = leaderboard(study, scores)
    for metric in board.metrics if len(study.methods) > 1 else ():
        for method, rank in ranks_of(board.summary(metric).mean, board.directions[metric]).items():
            ranks[str(method)][metric] = float(rank)
    return ranks


def dataset_ranks(study: Study, scores: Any) -> tuple[dict[tuple[str, str], float], str]:
    """Return the ranks by the headline metric per method and dataset, and among how many methods.

    Only methods of the study with a value on all its datasets are ranked, so that every rank is among the same methods
    and means of ranks compare.
    """
    means = leaderboard(study, scores).summary(study.headline).mean.dropna(axis="columns")
    if means.shape[1] < 2:
        return {}, ""
    ranks = rank_rows(means, defined(study.headline).direction)
    among = f"among {means.shape[1]} methods by {study.headline}"
    return {(str(method), str(dataset)): float(rank) for (dataset, method), rank in ranks.stack().items()}, among
