"""Comparison of methods over datasets (ranks, Friedman, post-hoc and Bayesian tests), tests of drift, doubtful labels.

The package works only on tables and arrays. Results are one table of dataset, split, method, metric and value, the
:class:`Leaderboard`, from which studies, `multilab compare` and the arena are computed. Everything that a report prints
or draws comes from the :class:`Comparison` that the leaderboard returns, so that tests and diagrams cannot contradict
each other.
"""

from __future__ import annotations

from multilab.core.lazy import lazy_names

# pandas and scipy.stats take a second to import, so only those who compare pay for them.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "calibration": ("CalibrationBins", "calibration_drift", "calibration_sums", "probability_drift"),
        "comparison": ("Comparison", "compare_methods"),
        "drift": ("DriftReport", "feature_drift", "judge_drift", "prevalence_drift"),
        "errors": ("StatisticsError",),
        "doubts": ("label_doubts",),
        "leaderboard": ("Leaderboard",),
        "omnibus": ("friedman", "iman_davenport"),
        "pairs": ("PairedComparison", "compare_on_splits", "compare_pair"),
        "posthoc": ("RankPair", "bonferroni_dunn_cd", "cliques", "nemenyi_cd"),
        "quality": ("ExpectedCounts", "HeldOutQuality", "expected_quality", "held_out_quality"),
        "ranks": ("average_ranks", "pareto_front", "rank_rows"),
        "resampled_t": ("corrected_resampled_interval", "corrected_resampled_p", "corrected_unpaired_interval"),
        "signed_rank": (
            "BayesPair",
            "SignedRankPair",
            "bayesian_signed_rank",
            "holm",
            "holm_levels",
            "signed_rank_p",
            "wilcoxon_holm",
        ),
        "summary": ("Summary", "rounded_means", "summarise"),
        "two_samples": ("category_p", "fisher_p", "ks_distances", "ks_p_values", "share_distance"),
        "value_counts": ("ValueCounts", "count_values", "pooled_counts"),
    },
)
