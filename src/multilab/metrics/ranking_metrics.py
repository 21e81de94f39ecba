"""Metrics of the order in which scores put the labels of a row.

Y is a 0/1 matrix and S one of finite scores (larger = more relevant), both of shape (n_rows, n_labels);
either may be sparse. Every function raises :class:`MetricError` when they are not, when their shapes differ,
or when the conventions refuse a row. A mean over no row at all is ``nan``.
"""

from __future__ import annotations

from typing import Any

from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.inputs import LabelSets, Scores
from multilab.metrics.row_ranks import FROM_RANKS, rank_rows


def _measure(name: str, Y: Any, S: Any, conventions: str | Conventions) -> float:
    chosen = resolve(conventions)
    return FROM_RANKS[name](rank_rows(LabelSets(Y), Scores(S), chosen), chosen).value


def ranking_loss(Y: Any, S: Any, conventions: str | Conventions = "default") -> float:
    """Mean over rows of the share of (relevant, irrelevant) pairs that are ordered wrongly.

    A tie is an error, half an error, or settled by the column index (``ranking_loss_ties``); a row without
    such a pair follows ``ranking_loss_degenerate``. Pairs are counted as integers through a sort.
    """
    return _measure("ranking_loss", Y, S, conventions)


def average_precision(Y: Any, S: Any, conventions: str | Conventions = "default") -> float:
    """Mean over rows of the mean, over relevant labels, of rank among the relevant / rank among all labels.

    Both ranks follow ``average_precision_ties``; with ``max`` this is scikit-learn's label ranking average
    precision. A row without relevant label follows ``average_precision_empty``, a full row
    ``skip_full_rows``.
    """
    return _measure("average_precision", Y, S, conventions)


def one_error(Y: Any, S: Any, conventions: str | Conventions = "default") -> float:
    """Share of the rows whose top-ranked label is not relevant.

    Several labels at the top: ``one_error_ties``. A row without relevant label follows ``one_error_empty``, a
    full row ``skip_full_rows``. scikit-learn has no one-error: its preset takes numpy's argmax and counts
    every row.
    """
    return _measure("one_error", Y, S, conventions)


def coverage(Y: Any, S: Any, conventions: str | Conventions = "default") -> float:
    """Mean over rows of the worst rank of a relevant label, minus 1 unless ``coverage_offset`` is 1.

    Divided by the number of labels if ``coverage_normalised``; ties by ``coverage_ties``, rows without
    relevant label by ``coverage_empty``. MEKA has no coverage: its preset is 0-based, the worst rank of a
    tie, an empty row 0.
    """
    return _measure("coverage", Y, S, conventions)


def coverage_1based(Y: Any, S: Any, conventions: str | Conventions = "default") -> float:
    """Mean over rows of the worst rank of a relevant label: best possible is the number of relevant labels.

    Whatever ``coverage_offset`` says; a row without relevant label is skipped, refused or counts 0.
    """
    return _measure("coverage_1based", Y, S, conventions)


def coverage_normalised(Y: Any, S: Any, conventions: str | Conventions = "default") -> float:
    """0-based coverage divided by the number of labels, as the iMLDF paper prints it.

    Whatever ``coverage_offset`` and ``coverage_normalised`` say.
    """
    return _measure("coverage_normalised", Y, S, conventions)
