"""The table of metrics: title, direction, range, definition and source of every key of ``score_all``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from multilab.metrics import auc, decision_metrics, ranking_metrics


@dataclass(frozen=True)
class Metric:
    """One metric, as tables and figures need it.

    Attributes
    ----------
    name : str
        Key in ``score_all`` and in every results file.
    title : str
        As printed.
    direction : {"max", "min"}
        Which values are better.
    low, high : float
        Range of the value under the conventions ``default``; ``inf`` where it grows with the number of
        labels.
    needs : {"scores", "decisions"}
        What it is computed from, besides the truth.
    skips : {"rows", "labels", None}
        What some conventions leave out of its mean; then ``score_all`` has a key ``n_skipped_<name>``.
    definition : str
        One line.
    source : str
        Where the definition comes from.
    function : callable
        ``function(Y, scores or decisions, conventions)``.
    """

    name: str
    title: str
    direction: Literal["max", "min"]
    low: float
    high: float
    needs: Literal["scores", "decisions"]
    skips: Literal["rows", "labels"] | None
    definition: str
    source: str
    function: Callable[..., float]

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible value."""
        return self.low, self.high

    def better(self, a: float, b: float) -> bool:
        """Say whether ``a`` is strictly better than ``b``."""
        return a > b if self.direction == "max" else a < b


_SCHAPIRE = "Schapire & Singer, BoosTexter, Machine Learning 39 (2000)"
_GODBOLE = "Godbole & Sarawagi, PAKDD 2004"
_MLWSE = "MLWSE paper, Tables 4-5, as its code computes it"
_YANG = "Yang, Information Retrieval 1 (1999)"
_ZHANG = "Zhang & Zhou, IEEE TKDE 26 (2014)"

_Direction = Literal["max", "min"]
_Needs = Literal["scores", "decisions"]
_Skips = Literal["rows", "labels"] | None
_Row = tuple[str, str, _Direction, float, _Needs, _Skips, str, str]

# name, title, direction, upper bound, needs, skips, definition, source
_TABLE: tuple[_Row, ...] = (
    ("hamming_loss", "Hamming loss", "min", 1, "decisions", None,
     "share of wrongly decided cells", _SCHAPIRE),
    ("subset_accuracy", "Subset accuracy", "max", 1, "decisions", None,
     "share of rows with every label right", "Zhu, Ji, Xu & Gong, SIGIR 2005"),
    ("jaccard", "Jaccard", "max", 1, "decisions", "rows",
     "mean of intersection / union of true and predicted set", _GODBOLE),
    ("example_precision", "Example precision", "max", 1, "decisions", "rows",
     "mean over rows of hits / predicted labels", _GODBOLE),
    ("example_recall", "Example recall", "max", 1, "decisions", "rows",
     "mean over rows of hits / true labels", _GODBOLE),
    ("example_f1", "Example F1", "max", 1, "decisions", "rows",
     "mean over rows of 2 hits / (true + predicted)", _GODBOLE),
    ("macro_f1", "Macro F1", "max", 1, "decisions", "labels",
     "mean over labels of 2 tp / (2 tp + fp + fn)", _YANG),
    ("micro_f1", "Micro F1", "max", 1, "decisions", None,
     "2 tp / (2 tp + fp + fn) over all cells", _YANG),
    ("macro_auc", "Macro AUC", "max", 1, "scores", "labels",
     "mean over labels of the area under the ROC curve", _ZHANG),
    ("micro_auc", "Micro AUC", "max", 1, "scores", None,
     "area under the ROC curve of all cells", _ZHANG),
    ("average_precision", "Average precision", "max", 1, "scores", "rows",
     "mean over rows and their relevant labels of rank among relevant / rank", _SCHAPIRE),
    ("ranking_loss", "Ranking loss", "min", 1, "scores", "rows",
     "mean over rows of the share of wrongly ordered (relevant, irrelevant) pairs", _SCHAPIRE),
    ("one_error", "One-error", "min", 1, "scores", "rows",
     "share of rows whose top label is not relevant", _SCHAPIRE),
    ("coverage", "Coverage", "min", math.inf, "scores", "rows",
     "mean of the worst rank of a relevant label, minus 1", _SCHAPIRE),
    ("coverage_1based", "Coverage (1-based)", "min", math.inf, "scores", "rows",
     "mean of the worst rank of a relevant label", "scikit-learn, coverage_error"),
    ("coverage_normalised", "Coverage (normalised)", "min", 1, "scores", "rows",
     "(mean of the worst rank of a relevant label, minus 1) / number of labels", "iMLDF paper"),
    ("accuracy_1mHL", "1 - Hamming loss", "max", 1, "decisions", None,
     "share of rightly decided cells", _MLWSE),
    ("f1_of_means", "F1 of means", "max", 1, "decisions", None,
     "harmonic mean of mean example precision and mean example recall, 0/0 = 0", _MLWSE),
    ("macro_f1_example", "Example F1 (0/0 = 0)", "max", 1, "decisions", None,
     "mean example F1 with 0/0 = 0", _MLWSE),
)  # fmt: skip


def _metric(row: _Row) -> Metric:
    name, title, direction, high, needs, skips, definition, source = row
    homes = (decision_metrics, ranking_metrics, auc)
    function = next(getattr(home, name) for home in homes if hasattr(home, name))
    return Metric(name, title, direction, 0.0, high, needs, skips, definition, source, function)


METRICS: Mapping[str, Metric] = MappingProxyType({row[0]: _metric(row) for row in _TABLE})
