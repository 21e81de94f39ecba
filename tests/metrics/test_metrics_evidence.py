"""The conventions of other systems, as measured by calling their own code on these small arrays.

Systems: Mulan 43f6389 and MEKA f9ffe23 on Weka 3.9.7, scikit-learn 1.9.1 and, where noted, 0.24.2. Every
number is typed from that record, which prints six decimals.
"""

import math

import numpy as np
import pytest

from multilab import metrics
from multilab.metrics import MetricError, preset
from multilab.metrics.label_ranks import rank_relevant
from multilab.metrics.label_sets import LabelSets

NAN = math.nan
NA = None  # the system has no such measure, or the record is blank

# Half a unit of the sixth decimal, and the rounding of it: 0.8828125 is printed as .882812 and as .882813.
PRINTED = 5e-7 + 1e-12

ONES = dict.fromkeys(
    ("jaccard_both_empty", "example_both_empty", "one_empty", "macro_both_empty", "micro_both_empty"), 1.0
)
COLUMNS = {
    "mulan": preset("mulan"),
    "meka": preset("meka"),
    "sklearn zd=0": preset("sklearn"),
    "sklearn zd=1": preset("sklearn", **ONES),
    "sklearn zd=nan": preset("sklearn", **dict.fromkeys(ONES, NAN)),
}


def bits(text):
    return np.array([[int(bit) for bit in row] for row in text.split()])


ARRAYS = {
    "B1": (bits("000"), bits("000")),
    "B2": (bits("000"), bits("100")),
    "B3": (bits("100"), bits("000")),
    "B4": (bits("1000 0000 0000 1100"), bits("1000 0000 1010 0100")),
    "B5": (bits("00 00"), bits("00 00")),
}

# array, measure, then the columns in the order of COLUMNS
TABLE_2 = [
    ("B1", "hamming_loss", 0, 0, 0, 0, NA),
    ("B1", "subset_accuracy", 1, 1, 1, 1, NA),
    ("B1", "jaccard", 1, 1, 0, 1, NA),
    ("B1", "example_f1", 1, 0, 0, 1, NAN),
    ("B1", "example_precision", 1, NA, 0, 1, NAN),
    ("B1", "example_recall", 1, NA, 0, 1, NAN),
    ("B1", "macro_f1", 1, 0, 0, 1, NAN),
    ("B1", "micro_f1", 1, 0, 0, 1, NAN),
    ("B2", "example_f1", 0, 0, 0, 0, 0),
    ("B2", "example_precision", 0, NA, 0, 0, 0),
    ("B2", "example_recall", 0, NA, 0, 1, NAN),
    ("B2", "macro_f1", 0.666667, 0, 0, 0.666667, 0),
    ("B3", "example_precision", 0, NA, 0, 1, NAN),
    ("B3", "example_recall", 0, NA, 0, 0, 0),
    ("B3", "macro_f1", 0.666667, 0, 0, 0.666667, 0),
    ("B4", "hamming_loss", 0.1875, 0.1875, 0.1875, 0.1875, NA),
    ("B4", "subset_accuracy", 0.5, 0.5, 0.5, 0.5, NA),
    ("B4", "jaccard", 0.625, 0.625, 0.375, 0.625, NA),
    ("B4", "example_f1", 0.666667, 0.416667, 0.416667, 0.666667, 0.555556),
    ("B4", "example_precision", 0.75, NA, 0.5, 0.75, 0.666667),
    ("B4", "example_recall", 0.625, NA, 0.375, 0.875, 0.75),
    ("B4", "macro_f1", 0.625, 0.375, 0.375, 0.625, 0.5),
    ("B4", "macro_precision", 0.625, 0.375, 0.375, 0.625, 0.5),
    ("B4", "macro_recall", 0.625, 0.375, 0.375, 0.875, 0.75),
    ("B4", "micro_f1", 0.571429, 0.571429, 0.571429, 0.571429, 0.571429),
    ("B5", "micro_f1", 1, 0, 0, 1, NAN),
]
CELLS_2 = [
    pytest.param(array, measure, column, value, id=f"{array}-{measure}-{column}")
    for array, measure, *values in TABLE_2
    for column, value in zip(COLUMNS, values, strict=True)
    if value is not NA
]


@pytest.mark.parametrize(("array", "measure", "column", "expected"), CELLS_2)
def test_table_2_decisions(array, measure, column, expected):
    truth, predicted = ARRAYS[array]
    value = getattr(metrics, measure)(truth, predicted, COLUMNS[column])
    assert value == pytest.approx(expected, abs=PRINTED, nan_ok=True)


def test_table_2_has_every_cell():
    # 26 rows of five columns, less the 8 n/a of MEKA and the 6 blank or "not accepted" of zero_division=nan.
    assert len(CELLS_2) == 26 * 5 - 8 - 6


def test_table_2_jaccard_with_nan_is_refused_by_sklearn_and_drops_the_row_here():
    from sklearn.metrics import jaccard_score

    truth, predicted = ARRAYS["B4"]
    with pytest.raises(ValueError):
        jaccard_score(truth, predicted, average="samples", zero_division=NAN)
    assert metrics.jaccard(truth, predicted, COLUMNS["sklearn zd=nan"]) == (1 + 0 + 0.5) / 3


HALVES, FALLING = (0.5, 0.5, 0.5), (0.9, 0.5, 0.1)
FOUR, PAIRS = (0.9, 0.8, 0.7, 0.1), (0.6, 0.6, 0.2, 0.2)

# name: Y, scores of each row, Mulan's rank vector, ranking loss (Mulan, MEKA, sklearn), one-error (Mulan,
# MEKA), coverage (Mulan, coverage_error), average precision (Mulan, MEKA, sklearn)
TABLE_3 = {
    "R1": ("100", HALVES, (3, 2, 1), (1, 1, 1), (1, 0), (2, 3), (0.333333, 0.333333, 0.333333)),
    "R2": ("010", HALVES, (3, 2, 1), (0.5, 0.5, 1), (1, 1), (1, 3), (0.5, 0.333333, 0.333333)),
    "R3": ("001", HALVES, (3, 2, 1), (0, 0, 1), (0, 1), (0, 3), (1, 0.333333, 0.333333)),
    "R4": ("000", FALLING, (1, 2, 3), (0, 0, 0), (1, 1), (0, 0), (NAN, 1, 1)),
    "R5": ("111", FALLING, (1, 2, 3), (0, 0, 0), (0, 0), (2, 3), (1, 1, 1)),
    "R6": ("1010", FOUR, (1, 2, 3, 4), (0.25, 0.25, 0.25), (0, 0), (2, 3), (0.833333, 0.833333, 0.833333)),
    "R7": ("1001", PAIRS, (2, 1, 4, 3), (0.5, 0.5, 0.75), (1, 0), (2, 4), (0.583333, 0.5, 0.5)),
    "R8": ("0110", PAIRS, (2, 1, 4, 3), (0.5, 0.5, 0.75), (0, 1), (3, 4), (0.75, 0.5, 0.5)),
    "R9": (
        "0000 1010",
        FOUR,
        (1, 2, 3, 4),
        (0.125, 0.125, 0.125),
        (0.5, 0.5),
        (1, 1.5),
        (0.833333, 0.916667, 0.916667),
    ),
}
MEASURES_3 = (
    ("ranking_loss", ("mulan", "meka", "sklearn")),
    ("one_error", ("mulan", "meka")),
    ("coverage", ("mulan", "sklearn")),
    ("average_precision", ("mulan", "meka", "sklearn")),
)
CELLS_3 = [
    pytest.param(array, measure, system, value, id=f"{array}-{measure}-{system}")
    for array, row in TABLE_3.items()
    for (measure, systems), values in zip(MEASURES_3, row[3:], strict=True)
    for system, value in zip(systems, values, strict=True)
]


@pytest.mark.parametrize(("array", "measure", "system", "expected"), CELLS_3)
def test_table_3_ranking(array, measure, system, expected):
    truth, scores = bits(TABLE_3[array][0]), TABLE_3[array][1]
    value = getattr(metrics, measure)(truth, np.tile(scores, (len(truth), 1)), system)
    assert value == pytest.approx(expected, abs=PRINTED, nan_ok=True)


@pytest.mark.parametrize("array", TABLE_3)
def test_table_3_rank_vector_of_mulan(array):
    scores = np.array([TABLE_3[array][1]])
    everything = LabelSets(np.ones_like(scores)).entries(0, 1)
    ranks = rank_relevant(scores, everything, by_index=True)
    # The entries come by ascending score and, within a tie, by ascending label.
    order = np.lexsort((np.arange(scores.size), scores[0]))
    assert (ranks.twice_rank("higher_index")[np.argsort(order)] // 2).tolist() == list(TABLE_3[array][2])


A1_TRUTH = bits("1011 0010 1011 0010")
A1_SCORES = np.array([[0.9, 0.1, 0.8, 0.5], [0.3, 0.2, 0.7, 0.5], [0.2, 0.3, 0.6, 0.5], [0.1, 0.4, 0.9, 0.5]])
TABLE_4_ARRAYS = {"A1": (A1_TRUTH, A1_SCORES), "A2": (A1_TRUTH[:, [0, 3]], A1_SCORES[:, [0, 3]])}
OLD_SKLEARN = preset("sklearn", auc_one_class="error", label_average_precision_empty="nan")

# array, measure, Mulan, MEKA, scikit-learn 1.9.1, scikit-learn 0.24.2
TABLE_4 = [
    ("A1", "macro_auc", NAN, NAN, NAN, ValueError),
    ("A1", "micro_auc", 0.882813, NA, 0.882812, 0.882812),
    ("A1", "macro_average_precision", 0.888889, NAN, 0.583333, NAN),
    ("A2", "macro_auc", 0.625, 0.625, 0.625, 0.625),
    ("A2", "micro_auc", 0.6875, NA, 0.6875, 0.6875),
    ("A2", "macro_average_precision", 0.833333, 0.666667, 0.666667, 0.666667),
]


@pytest.mark.parametrize("row", TABLE_4, ids=lambda row: f"{row[0]}-{row[1]}")
@pytest.mark.parametrize(
    ("column", "conventions"),
    [(0, "mulan"), (1, "meka"), (2, "sklearn"), (3, OLD_SKLEARN)],
    ids=["mulan", "meka", "sklearn-1.9.1", "sklearn-0.24.2"],
)
def test_table_4_auc(row, column, conventions):
    array, measure, *values = row
    expected, function = values[column], getattr(metrics, measure)
    if expected is ValueError:
        with pytest.raises(ValueError, match="one class only: label 1"):
            function(*TABLE_4_ARRAYS[array], conventions)
        return
    value = function(*TABLE_4_ARRAYS[array], conventions)
    if expected is not NA:
        assert value == pytest.approx(expected, abs=PRINTED, nan_ok=True)
    else:  # MEKA gives curve data only; ours is the area under it
        assert value == metrics.micro_auc(*TABLE_4_ARRAYS[array], "sklearn")


def test_table_4_labels_of_a1_behind_mulans_mean():
    for label, expected in ((0, 0.833333), (2, 1.0), (3, 0.833333)):
        one = metrics.macro_average_precision(A1_TRUTH[:, [label]], A1_SCORES[:, [label]], "mulan")
        assert one == pytest.approx(expected, abs=PRINTED)


# The rules of the MLDF code and of the MATLAB files were read, not run: rows without label, full rows, ties.
RULES_TRUTH = bits("0000 1111 1001 0110")
RULES_SCORES = np.array([[0.9, 0.8, 0.7, 0.1], [0.9, 0.8, 0.7, 0.1], PAIRS, PAIRS])


def test_lamda_rules():
    # Coverage: of tied labels the higher index ranks better: worst ranks 0 (empty), 4, 3, 4; (mean - 1) / 4.
    assert metrics.coverage(RULES_TRUTH, RULES_SCORES, "lamda") == (11 / 4 - 1) / 4
    # Average precision: 0 (empty), 1, (1/2 + 2/3) / 2, (1/1 + 2/4) / 2.
    assert metrics.average_precision(RULES_TRUTH, RULES_SCORES, "lamda") == pytest.approx(
        (0 + 1 + 7 / 12 + 3 / 4) / 4, abs=1e-15
    )
    # Ranking loss: a tie is an error, empty and full rows count 0.
    assert metrics.ranking_loss(RULES_TRUTH, RULES_SCORES, "lamda") == (0 + 0 + 0.75 + 0.75) / 4
    # One-error: first maximum; the empty row is an error.
    assert metrics.one_error(RULES_TRUTH, RULES_SCORES, "lamda") == (1 + 0 + 0 + 1) / 4
    # Decision by >, macro AUC over labels with both classes, macro F1 0/0 = 0.
    at_threshold = metrics.score_all([[1, 0]], [[0.5, 0.5]], conventions="lamda")
    assert (at_threshold["hamming_loss"], at_threshold["macro_f1"]) == (0.5, 0)
    assert metrics.macro_auc(A1_TRUTH, A1_SCORES, "lamda") == 0.625
    assert math.isnan(metrics.micro_f1(*ARRAYS["B5"], "lamda"))


def test_matlab_rules():
    result = metrics.score_all(RULES_TRUTH, RULES_SCORES, conventions="matlab")
    assert result["coverage"] == 11 / 4 - 1  # empty and full rows kept
    assert result["average_precision"] == pytest.approx((7 / 12 + 3 / 4) / 2, abs=1e-15)
    assert result["ranking_loss"] == 0.75
    assert result["one_error"] == 0  # a relevant label is among the tied maxima of both rows
    skipped = {name: result[f"n_skipped_{name}"] for name in ("average_precision", "one_error", "coverage")}
    assert skipped == {"average_precision": 2, "one_error": 2, "coverage": 0}


def test_uniform_rules():
    result = metrics.score_all(RULES_TRUTH, RULES_SCORES, conventions="uniform")
    assert result["ranking_loss"] == (0 + 0 + 0.5 + 0.5) / 4  # a tie is half an error
    assert result["one_error"] == (1 + 0 + 0 + 1) / 4  # first maximum
    assert result["coverage"] == (0 + 3 + 3 + 3) / 4  # worst rank of the tie
    assert result["average_precision"] == (1 + 0.5 + 0.5) / 3  # empty row dropped
    assert result["n_skipped_average_precision"] == 1
    nothing = metrics.score_all(*ARRAYS["B5"], decisions=ARRAYS["B5"][1], conventions="uniform")
    assert (nothing["jaccard"], nothing["example_f1"], nothing["macro_f1"]) == (1, 1, 0)


def test_default_rules():
    result = metrics.score_all(RULES_TRUTH, RULES_SCORES)
    assert result["ranking_loss"] == 0.75
    assert result["coverage"] == (3 + 3 + 3) / 3
    assert result["average_precision"] == (1 + 0.5 + 0.5) / 3
    assert result["one_error"] == 0
    skipped = [result[f"n_skipped_{name}"] for name in ("ranking_loss", "coverage", "one_error")]
    assert skipped == [2, 1, 1]
    assert metrics.macro_auc(A1_TRUTH, A1_SCORES) == 0.625
    assert metrics.score_all(A1_TRUTH, A1_SCORES)["n_skipped_macro_auc"] == 2


def test_refusing_conventions_name_the_row():
    refuse = preset("default", coverage_empty="error")
    with pytest.raises(MetricError, match="coverage is undefined without a relevant label: row 0"):
        metrics.coverage(RULES_TRUTH, RULES_SCORES, refuse)
