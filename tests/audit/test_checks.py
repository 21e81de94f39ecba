"""Each check on a table that has its fault and on one that has not."""

from __future__ import annotations

import numpy as np
import pytest

from multilab.audit import (
    AUDIT_CHECKS,
    AuditCell,
    AuditError,
    AuditTable,
    TestSize,
    audit_table,
    on_grid,
    parse_number,
    quantity_of,
)
from multilab.audit.numbers import one_slip_away
from multilab.audit.ranks import rank_ranges
from multilab.metrics import score_all


def cell(dataset, method, metric, mean, std="", **rest):
    return AuditCell(rest.pop("table", "1"), dataset, method, metric, parse_number(mean), parse_number(std), **rest)


def column(metric, method, texts, **rest):
    """Return the cells of a method on datasets d0, d1, ...; a text may be "mean±std"."""
    return [cell(f"d{i}", method, metric, *text.split("±"), **rest) for i, text in enumerate(texts)]


def findings(cells, check, **sizes):
    return audit_table(AuditTable.of(cells, sizes), [check])


def faults(cells, check, **sizes):
    return [finding for finding in findings(cells, check, **sizes) if finding.severity == "fault"]


def test_a_check_that_is_not_there_is_named():
    with pytest.raises(AuditError, match="no audit check is called 'out_of_rang'; did you mean 'out_of_range'"):
        findings(column("hamming_loss", "a", ["0.1"]), "out_of_rang")


@pytest.mark.parametrize("text", ["x", "", "1.2.3", "0,5", "--", "nan", "inf", "1e", "e5"])
def test_what_is_no_number(text):
    assert parse_number(text) is None


def test_numbers_keep_their_decimals():
    assert [parse_number(t).decimals for t in ("0.50", ".5", "7", "1.5e-3", "12.30 %")] == [2, 1, 0, 4, 2]
    assert parse_number("0.50").holds(0.5049)
    assert not parse_number("0.50").holds(0.5051)
    assert parse_number("0.36").cut_off(0.3666)


def test_slips_of_the_pen():
    slips = one_slip_away("0.12")
    assert {"0.42", "1.12", "0.21", ".012", "01.2"} <= set(slips)
    assert "0.12" not in slips


def test_names_of_metrics():
    names = {
        "HL": "hamming_loss",
        "Ranking Loss": "ranking_loss",
        "ranking_loss.mulan": "ranking_loss",
        "micro-F1": "micro_f1",
    }
    assert {name: quantity_of(name).name for name in names} == names


def test_decimals():
    texts = ["0.120", "0.130", "0.145", "0.151", "0.160"]
    assert not findings(column("hamming_loss", "a", texts), "other_number_of_decimals")
    (long,) = faults(column("hamming_loss", "a", [*texts, "0.1777"]), "other_number_of_decimals")
    assert (long.dataset, long.right) == ("d5", "3 decimals")
    assert faults(column("hamming_loss", "a", [*texts, "0.17"]), "other_number_of_decimals")
    spreadsheet = ["0.121", "0.132", "0.145", "0.151", "0.16"]
    assert [f.severity for f in findings(column("hamming_loss", "a", spreadsheet), "other_number_of_decimals")] == [
        "note"
    ]


def test_ranges_and_percentages():
    assert not findings(column("example_f1", "a", ["61.2", "70.1", "33.0"]), "out_of_range")
    (fault,) = faults(column("example_f1", "a", ["0.612", "7.01", "0.330"]), "out_of_range")
    assert "0.701" in fault.why or ".701" in fault.why
    assert faults(column("coverage", "a", ["5.1"]), "out_of_range", d0=TestSize(q=5))
    assert faults([cell("d0", "a", "example_f1", "0.5", "-0.1")], "out_of_range")


def test_the_grid_of_a_test_set():
    assert on_grid(parse_number("0.333"), 3)
    size = {"d0": TestSize(n=97, q=6)}
    right = [
        cell("d0", m, "one_error", f"{k / 97:.4f}") for m, k in zip("abcdef", (11, 20, 31, 44, 53, 60), strict=True)
    ]
    assert not findings(right, "multiples_of_one_row", **size)
    (fault,) = faults([*right, cell("d0", "g", "one_error", "0.1000")], "multiples_of_one_row", **size)
    assert (fault.method, fault.right) == ("g", "0.0928 or 0.1031")
    (fault,) = faults(right, "multiples_of_one_row", d0=TestSize(n=98, q=6))
    assert fault.right == "97 test rows"
    assert not findings(right, "multiples_of_one_row", d0=TestSize(n=9000, q=6)), "no power"
    (note,) = findings(right, "smallest_size")
    assert note.right == "k / 97"
    with_std = [cell("d0", "a", "one_error", "0.1000", "0.010")]
    assert not findings(with_std, "multiples_of_one_row", **size), "a mean over folds of different sizes"


def test_rows_without_labels_may_be_left_out():
    cells = [
        cell("d0", m, "one_error", f"{k / 90:.4f}") for m, k in zip("abcdef", (11, 20, 31, 44, 53, 61), strict=True)
    ]
    assert faults(cells, "multiples_of_one_row", d0=TestSize(n=94, q=6))
    assert not faults(cells, "multiples_of_one_row", d0=TestSize(n=94, q=6, unlabelled=4))


def test_accuracy_that_is_one_minus_hamming():
    loss = [("0.20", "0.30", "0.12", "0.05"), ("0.21", "0.33", "0.13", "0.07")]
    good = ("0.51", "0.42", "0.63", "0.80")
    cells = [c for m, texts in zip("ab", loss, strict=True) for c in column("hamming_loss", m, texts)]
    assert not findings([*cells, *column("accuracy", "a", good)], "accuracy_is_one_minus_hamming")
    mixed = [*cells, *column("accuracy", "a", good), *column("accuracy", "b", ("0.79", "0.67", "0.87", "0.39"))]
    first, second = faults(mixed, "accuracy_is_one_minus_hamming")
    assert (first.method, first.right) == ("b", "1 - Hamming loss")
    assert (second.dataset, second.printed) == ("d3", "0.39, 0.07")
    alone = [c for c in mixed if c.method == "b"]
    assert [f.severity for f in findings(alone, "accuracy_is_one_minus_hamming")] == ["fault", "note"]


def test_how_coverage_is_counted():
    size = {f"d{i}": TestSize(q=6, cardinality=1.2) for i in range(3)}
    losses = column("ranking_loss", "a", ["0.10", "0.20", "0.15"])

    def rule(texts):
        (note,) = findings([*losses, *column("coverage", "a", texts)], "coverage_rule", **size)
        return note.right

    assert rule(["0.60", "1.10", "0.90"]) == "counted from 0"
    assert rule(["1.60", "5.80", "1.90"]) == "counted from 1"
    assert "divided by q" in rule(["0.11", "0.19", "0.16"])
    crisp = [*column("ranking_loss", "a", ["0.60", "0.70", "0.50"]), *column("coverage", "a", ["0.90", "1.10", "1.00"])]
    notes = findings(
        [*crisp, *column("coverage", "b", ["1.1"] * 3), *column("coverage", "c", ["1.2"] * 3)], "coverage_rule", **size
    )
    assert not [f for f in notes if f.severity == "fault"]


def test_a_coverage_from_one_among_coverages_from_zero():
    rng = np.random.default_rng(0)
    cells, size = [], {}
    for i, loss in enumerate((0.1, 0.2, 0.15, 0.3)):
        size[f"d{i}"] = TestSize(q=10)
        for method in "abcd":
            coverage = 9 * loss + 1.0 + 0.05 * rng.random() + (method == "c")
            cells += [
                cell(f"d{i}", method, "coverage", f"{coverage:.3f}"),
                cell(f"d{i}", method, "ranking_loss", f"{loss:.3f}"),
            ]
    (fault,) = faults(cells, "coverage_counted_otherwise", **size)
    assert fault.method == "c"


def test_inequalities_of_f1_and_jaccard():
    def one(jaccard, f1):
        return [cell("d0", "a", "jaccard", jaccard), cell("d0", "a", "example_f1", f1)]

    assert not findings(one("0.500", "0.600"), "jaccard_and_f1")
    assert faults(one("0.600", "0.500"), "jaccard_and_f1")
    assert faults(one("0.500", "0.668"), "jaccard_and_f1")
    rows = [*column("accuracy", "a", ["0.9", "0.8", "0.7"]), *column("example_f1", "a", ["0.5", "0.4", "0.3"])]
    (fault,) = faults(rows, "jaccard_and_f1")
    assert fault.right.startswith("another accuracy")


@pytest.mark.parametrize(
    ("check", "values", "size"),
    [
        ("subset_accuracy_bounds", {"subset_accuracy": "0.62", "jaccard": "0.60"}, TestSize()),
        ("subset_accuracy_bounds", {"subset_accuracy": "0.95", "hamming_loss": "0.10"}, TestSize()),
        ("subset_accuracy_bounds", {"subset_accuracy": "0.30", "hamming_loss": "0.10"}, TestSize(q=4)),
        ("subset_accuracy_bounds", {"subset_accuracy": "0.30", "zero_one_loss": "0.60"}, TestSize()),
        ("f1_precision_recall", {"micro_f1": "0.70", "micro_precision": "0.80", "micro_recall": "0.60"}, TestSize()),
        ("f1_precision_recall", {"macro_f1": "0.30", "macro_precision": "0.80", "macro_recall": "0.60"}, TestSize()),
        ("average_precision_and_one_error", {"average_precision": "0.95", "one_error": "0.30"}, TestSize(q=6)),
        ("average_precision_and_ranking_loss", {"average_precision": "0.40", "ranking_loss": "0.05"}, TestSize(q=6)),
        ("average_precision_and_ranking_loss", {"average_precision": "0.99", "ranking_loss": "0.50"}, TestSize(q=6)),
        ("micro_f1_and_hamming", {"micro_f1": "0.55", "hamming_loss": "0.18"}, TestSize(q=75, cardinality=1.2)),
    ],
)
def test_what_no_predictions_have(check, values, size):
    assert faults([cell("d0", "a", metric, text) for metric, text in values.items()], check, d0=size)


@pytest.mark.parametrize("seed", range(12))
def test_no_inequality_is_broken_by_real_predictions(seed):
    """Random truth and scores of every quality, with ties and rare labels, one test set and means over folds."""
    rng = np.random.default_rng(seed)
    q, folds = int(rng.integers(2, 9)), int(rng.integers(1, 6))
    values, cardinalities = [], []
    while len(values) < folds:
        n = int(rng.integers(30, 80))
        truth = (rng.random((n, q)) < rng.uniform(0.1, 0.6, q)).astype(int)
        truth[np.arange(n), rng.integers(0, q, n)] = 1
        scores = np.clip(truth * rng.uniform(0, 1) + rng.random((n, q)) * rng.uniform(0.2, 1.0), 0, 1)
        if seed % 3 == 0:
            scores = scores.round(1)
        values.append(dict(score_all(truth, scores, (scores > 0.5).astype(int))))
        cardinalities.append(truth.sum(axis=1).mean())
    names = [name for name in values[0] if quantity_of(name) and not name.startswith("n_skipped")]
    numbers = {name: np.array([float(value[name]) for value in values]) for name in names}
    cells = [
        cell("d0", "a", name, f"{x.mean():.4f}", f"{x.std(ddof=1):.4f}" if folds > 1 else "")
        for name, x in numbers.items()
        if np.isfinite(x).all()
    ]
    size = TestSize(q=q, cardinality=float(np.mean(cardinalities)), runs=folds)
    assert len(cells) > 12
    assert [f for f in audit_table(AuditTable.of(cells, {"d0": size})) if f.severity == "fault"] == []


def test_f1_of_means_and_macro_f1_by_example():
    precision, recall = ["0.50", "0.60", "0.70", "0.40"], ["0.70", "0.50", "0.60", "0.80"]
    pairs = [(float(p), float(r)) for p, r in zip(precision, recall, strict=True)]
    f1 = [f"{2 * p * r / (p + r):.3f}" for p, r in pairs]
    cells = [*column("precision", "a", precision), *column("recall", "a", recall)]
    assert findings([*cells, *column("F1", "a", f1)], "f1_of_mean_precision_and_recall")
    smaller = [f"{float(x) - 0.05:.3f}" for x in f1]
    assert not findings([*cells, *column("F1", "a", smaller)], "f1_of_mean_precision_and_recall")
    example, macro = ["0.61", "0.70", "0.45", "0.52", "0.60"], ["0.41", "0.40", "0.20", "0.51", "0.25"]
    table = [c for m in "abc" for c in column("example_f1", m, example)]
    table += [c for m in "ab" for c in column("macro_f1", m, macro)]
    table += column("macro_f1", "c", ["0.60", "0.69", "0.44", "0.50", "0.59"])
    assert [f.method for f in findings(table, "macro_f1_by_example")] == ["c"]


def test_ties_and_empty_predictions():
    cells = [cell("d0", "a", "ranking_loss", "0.64"), cell("d0", "a", "macro_auc", "0.57")]
    assert findings(cells, "ties_as_errors")
    assert not findings([cell("d0", "a", "ranking_loss", "0.44")], "ties_as_errors")
    size = {f"d{i}": TestSize(q=10, cardinality=2.0) for i in range(4)}
    assert findings(column("hamming_loss", "a", ["0.199", "0.201", "0.204", "0.200"]), "predicts_no_label", **size)
    assert not findings(column("hamming_loss", "a", ["0.150", "0.201", "0.104", "0.170"]), "predicts_no_label", **size)


ROWS = ["0.1200", "0.2400", "0.3300", "0.1800", "0.2100"]  # mean .2160, sample deviation .0777, population .0695


def averages(mean, std, method="a", rows=ROWS):
    return [*column("hamming_loss", method, rows), cell("Average", method, "hamming_loss", mean, std, kind="mean")]


def test_averages_of_rows():
    assert not findings(averages("0.2160", ""), "averages_of_rows")
    other_rows = [*ROWS[:4], "0.2102"]  # mean .21604
    assert not faults(averages("0.2161", "", rows=other_rows), "averages_of_rows"), "of rows with more decimals"
    (fault,) = faults(averages("0.2159", "", rows=other_rows), "averages_of_rows")
    assert fault.right == "0.2160"
    assert faults(averages("0.2161", ""), "averages_of_rows"), "0.2161 is rounded from 0.21605 at least: five ties"
    (fault,) = faults(averages("0.2960", ""), "averages_of_rows")
    assert fault.right == "0.2160"
    assert "0.6400 for 0.2400 (d1)" in fault.why
    three = [c for m in "abc" for c in averages("0.2160", "0.0777", m)]
    assert [f.right for f in findings(three, "averages_of_rows")] == ["sample deviation over the rows (n - 1)"]
    population = [c for m in "abc" for c in averages("0.2160", "0.0695", m)]
    assert [f.right for f in findings(population, "averages_of_rows")] == ["population deviation over the rows (n)"]
    (fault,) = faults([*three, *averages("0.2160", "0.0177", "d")], "averages_of_rows")
    assert (fault.method, fault.right) == ("d", "0.2160 ± 0.0777")
    other = [c for m in "abc" for c in averages("0.9999", "", m)]
    assert [f.severity for f in findings(other, "averages_of_rows")] == ["note"]


def test_deviations():
    assert not findings([cell("d0", "a", "example_f1", "0.50", "0.50")], "deviation_too_large")
    (fault,) = faults([cell("d0", "a", "example_f1", "0.02", "0.60")], "deviation_too_large")
    assert "exchanged" in fault.why
    assert faults([cell("d0", "a", "example_f1", "0.50", "0.55")], "deviation_too_large", d0=TestSize(runs=10))
    row = [cell("d0", m, "coverage", "6.10", "0.10") for m in "abc"]
    assert faults([*row, cell("d0", "d", "coverage", "0.10", "6.10")], "deviation_unlike_its_row")
    live = [
        c
        for m in "abc"
        for c in column("one_error", m, ["0.20±0.021", "0.30±0.030", "0.40±0.025", "0.25±0.020", "0.33±0.027"])
    ]
    zeros = column("one_error", "z", ["0.21±0.000", "0.31±0.000", "0.44±0.000", "0.26±0.000", "0.35±0.000"])
    assert [f.severity for f in findings([*live, *zeros], "deviation_zero")] == ["note"]
    single = column("one_error", "s", ["0.21±0.000", "0.31±0.030", "0.44±0.026", "0.26±0.021", "0.35±0.027"])
    (fault,) = faults([*live, *single], "deviation_zero")
    assert (fault.method, fault.dataset) == ("s", "d0")


def test_deviations_of_counts():
    size = {"d0": TestSize(n=20, runs=5)}
    counts = np.array([3, 5, 4, 7, 6])
    right = cell("d0", "a", "one_error", f"{(counts / 20).mean():.3f}", f"{(counts / 20).std(ddof=1):.4f}")
    assert not findings([right], "deviation_of_counts", **size)
    assert faults([cell("d0", "a", "one_error", "0.250", "0.0700")], "deviation_of_counts", **size)
    assert faults([cell("d0", "a", "one_error", "0.255", "0.0791")], "deviation_of_counts", **size)


def ranked(ranks, kind="average_rank"):
    cells = [
        *column("one_error", "a", ["0.10", "0.20", "0.30", "0.10"]),
        *column("one_error", "b", ["0.20", "0.10", "0.40", "0.10"]),
    ]
    cells += column("one_error", "c", ["0.30", "0.40", "0.50", "0.60"])
    return cells + [cell("ranks", m, "one_error", text, kind=kind) for m, text in zip("abc", ranks, strict=True)]


def test_average_ranks():
    assert not findings(ranked(["1.375", "1.625", "3.000"]), "average_ranks_of_rows")
    assert [f.right for f in findings(ranked(["1.25", "1.75", "3.00"]), "average_ranks_of_rows")] == [
        "ranks of unrounded rows"
    ]
    (fault,) = faults(ranked(["1.38", "1.63", "2.00"]), "average_ranks_of_rows")
    assert (fault.method, fault.right) == ("c", "3.00")
    (note,) = findings(ranked(["1.25", "1.50", "3.00"]), "average_ranks_of_rows")
    assert "best rank" in note.why
    assert faults(ranked(["1.31", "1.63", "3.00"]), "average_ranks_of_rows"), "no multiple of 1/8"


def test_ranks_in_brackets():
    cells = [
        cell("d0", m, "one_error", f"0.{v}", rank=parse_number(r))
        for m, v, r in (("a", 10, "1"), ("b", 20, "3"), ("c", 30, "2"))
    ]
    assert [f.method for f in faults(cells, "ranks_of_values")] == ["b", "c"]
    tied = [cell("d0", m, "one_error", "0.10", rank=parse_number(r)) for m, r in (("a", "1"), ("b", "2"))]
    assert not faults(tied, "ranks_of_values")
    assert findings(tied, "tied_ranks_differ")


def test_ranges_of_ranks():
    numbers = {name: parse_number(text) for name, text in {"a": "0.10", "b": "0.10", "c": "0.102", "d": "0.30"}.items()}
    ranges = rank_ranges({**numbers, "e": None}, "min")
    assert [(r.low, r.high) for r in ranges.values()] == [(1, 3), (1, 3), (1, 3), (4, 4), (5, 5)]


def test_friedman_and_critical_differences():
    rng = np.random.default_rng(1)
    cells = [
        cell(f"d{i}", m, "one_error", f"{0.1 * j + 0.2 * rng.random():.4f}")
        for i in range(10)
        for j, m in enumerate("abcd")
    ]

    def one(kind, text):
        return findings([*cells, cell("all", "test", "one_error", text, kind=kind)], f"{CHECK_OF[kind]}")

    (fault,) = one("iman_davenport", "99.000")
    assert one("iman_davenport", fault.right) == []
    (fault,) = one("friedman_chi2", "3.00")
    assert one("friedman_chi2", fault.right) == []
    assert one("nemenyi_cd", "1.483") == []
    (fault,) = one("nemenyi_cd", "2.569")
    assert "is q of Nemenyi" in fault.why
    assert one("critical_difference", "1.382") == [], "Bonferroni-Dunn"
    assert one("f_critical", "2.960") == []
    assert "critical difference" in one("f_critical", "1.483")[0].why


CHECK_OF = {
    "iman_davenport": "friedman_of_ranks",
    "friedman_chi2": "friedman_of_ranks",
    "nemenyi_cd": "critical_difference_of_sizes",
    "critical_difference": "critical_difference_of_sizes",
    "f_critical": "critical_value_of_f",
}


def test_shares_of_wins():
    cells = ranked(["1.375", "1.625", "3.000"])
    assert not findings([*cells, cell("all", "a", "all", "75.0", kind="share_best")], "share_of_wins")
    (fault,) = faults([*cells, cell("all", "a", "all", "100.0", kind="share_best")], "share_of_wins")
    assert fault.right == "50.0 to 75.0"


def test_repeated_columns_and_rows():
    rng = np.random.default_rng(2)
    values = rng.random((3, 8))
    cells = [
        c for m, row in zip("abc", values, strict=True) for c in column("example_f1", m, [f"{v:.3f}" for v in row])
    ]
    assert not findings(cells, "repeated_columns")
    copied = [*cells, *column("example_f1", "d", [f"{v:.3f}" for v in (*values[0, :7], 0.5)])]
    (fault,) = faults(copied, "repeated_columns")
    assert (fault.method, fault.why) == ("a = d", "equal in example_f1 7 of 8")
    near = [*cells, *column("example_f1", "d", [f"{v + 0.0007:.3f}" for v in values[0]])]
    assert [f.severity for f in findings(near, "repeated_columns")] == ["note"]
    row = [cell("e", m, "example_f1", f"{v:.3f}") for m, v in zip("abcd", [*values[:, 0], 0.9], strict=True)]
    again = [cell("f", m, "example_f1", f"{v:.3f}") for m, v in zip("abcd", [*values[:, 0], 0.9], strict=True)]
    (fault,) = faults([*row, *again], "repeated_rows")
    assert fault.dataset == "e = f"


def test_frequencies_of_counts():
    counts, shares = {"x": 3380, "y": 140, "z": 1133}, {"x": "0.884", "y": "0.037", "z": "0.296"}
    cells = [cell("d", m, "label_count", str(n)) for m, n in counts.items()]
    right = [cell("d", m, "label_frequency", text) for m, text in shares.items()]
    assert not findings([*cells, *right], "frequencies_of_counts", d=TestSize(n=3823))
    cut = [cell("d", m, "label_frequency", text) for m, text in {**shares, "y": "0.036"}.items()]
    assert [f.severity for f in findings([*cells, *cut], "frequencies_of_counts", d=TestSize(n=3823))] == ["note"]
    wrong = [cell("d", m, "label_frequency", text) for m, text in {**shares, "y": "0.073"}.items()]
    assert [f.method for f in faults([*cells, *wrong], "frequencies_of_counts")] == ["y"]


def test_every_check_is_explained():
    assert len(AUDIT_CHECKS) >= 25
    for name, check in AUDIT_CHECKS.items():
        assert (check.__doc__ or "").split()[0] in ("Report", "Check", "Compare", "Infer"), name
