"""What a prediction is worth: every multi-label metric under the conventions of every system.

>>> from multilab.metrics import score_all
>>> score_all([[1, 0, 1]], [[0.9, 0.2, 0.7]])["ranking_loss"]
0.0
"""

from multilab.metrics.auc import label_average_precision, macro_auc, micro_auc
from multilab.metrics.conventions import PRESETS, Conventions, preset
from multilab.metrics.decision_metrics import (
    accuracy_1mHL,
    example_f1,
    example_precision,
    example_recall,
    f1_of_means,
    hamming_loss,
    jaccard,
    macro_f1,
    macro_f1_example,
    macro_precision,
    macro_recall,
    micro_f1,
    subset_accuracy,
)
from multilab.metrics.errors import MetricError
from multilab.metrics.ranking_metrics import (
    average_precision,
    coverage,
    coverage_1based,
    coverage_normalised,
    one_error,
    ranking_loss,
)
from multilab.metrics.registry import METRICS, Metric
from multilab.metrics.scoring import score_all

__all__ = [
    "METRICS",
    "PRESETS",
    "Conventions",
    "Metric",
    "MetricError",
    "accuracy_1mHL",
    "average_precision",
    "coverage",
    "coverage_1based",
    "coverage_normalised",
    "example_f1",
    "example_precision",
    "example_recall",
    "f1_of_means",
    "hamming_loss",
    "jaccard",
    "label_average_precision",
    "macro_auc",
    "macro_f1",
    "macro_f1_example",
    "macro_precision",
    "macro_recall",
    "micro_auc",
    "micro_f1",
    "one_error",
    "preset",
    "ranking_loss",
    "score_all",
    "subset_accuracy",
]
