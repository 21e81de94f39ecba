"""The rank tests against printed constants, scipy, brute force, and the tables of the LWMF paper."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from multilab.core import MultilabError, canonical_json
from multilab.statistics import (
    Comparison,
    StatisticsError,
    average_ranks,
    bayesian_signed_rank,
    bonferroni_dunn_cd,
    cliques,
    compare_methods,
    corrected_resampled_interval,
    corrected_unpaired_interval,
    friedman,
    holm,
    holm_levels,
    iman_davenport,
    nemenyi_cd,
    rank_rows,
    signed_rank_p,
    summarise,
    wilcoxon_holm,
)
from multilab.statistics.posthoc import bonferroni_dunn_q, nemenyi_q

# Tables 2-5 of the LWMF paper as printed: six datasets, columns as in METHODS.
METHODS = ["mddm_spc", "mddm_proj", "rf_ml", "mlnb", "lwmf"]
PRINTED = {
    "average_precision": (
        "max",
        """.5072 .4943 .4944 .4991 .5118  .5389 .5425 .5365 .5478 .5539  .4717 .4703 .4365 .4790 .4859
           .6126 .6106 .6169 .6234 .6247  .6941 .6914 .6513 .7047 .7058  .7213 .7210 .7473 .7355 .7473""",
    ),
    "ranking_loss": (
        "min",
        """.1521 .1555 .1527 .1542 .1482  .0914 .0924 .0939 .0922 .0897  .1838 .1859 .1955 .1879 .1834
           .0888 .0889 .0856 .0889 .0867  .0686 .0682 .0696 .0682 .0660  .1990 .2041 .1815 .1871 .1808""",
    ),
    "hamming_loss": (
        "min",
        """.0607 .0612 .0615 .0612 .0604  .0426 .0422 .0425 .0405 .0403  .0620 .0616 .0633 .0611 .0606
           .0322 .0311 .0306 .0296 .0303  .0272 .0268 .0303 .0248 .0252  .2209 .2246 .2089 .2080 .2042""",
    ),
    "coverage": (
        "min",
        """5.4740 5.5553 5.4917 5.5040 5.3647  3.8987 3.9203 3.9920 3.9183 3.8513
           4.9403 4.9470 5.1367 4.9953 4.9230  3.4390 3.4460 3.3660 3.4313 3.3723
           3.5803 3.5670 3.6227 3.6007 3.4850  6.8137 6.8181 6.4913 6.6928 6.5131""",
    ),
}


def printed(metric):
    direction, text = PRINTED[metric]
    values = np.array(text.split(), dtype=float).reshape(6, 5)
    sets = ["arts", "education", "recreation", "reference", "social", "yeast"]
    return pd.DataFrame(values, index=sets, columns=METHODS), direction


def random_table(n, k, seed=0, decimals=None):
    values = np.random.default_rng(seed).random((n, k)) + 0.1 * np.arange(k)
    if decimals is not None:
        values = values.round(decimals)
    return pd.DataFrame(values, index=[f"d{i}" for i in range(n)], columns=[f"m{j}" for j in range(k)])


def test_nemenyi_critical_differences_of_the_papers():
    assert round(nemenyi_cd(9, 14), 3) == 3.211
    assert round(nemenyi_cd(9, 13), 3) == 3.332
    # the ML-EKELM paper's 2.0913 and 1.8998 come from the quantiles rounded to three decimals
    for alpha, printed_cd, cd in [(0.05, 2.0913, 2.0911), (0.10, 1.8998, 1.8995)]:
        assert round(round(nemenyi_q(6, alpha), 3) * math.sqrt(42 / 78), 4) == printed_cd
        assert round(nemenyi_cd(6, 13, alpha), 4) == cd


def test_quantiles_of_the_papers():
    assert round(nemenyi_q(9), 3) == 3.102
    assert round(nemenyi_q(6), 3) == 2.850
    assert round(bonferroni_dunn_q(5, 0.10), 4) == 2.2414  # the LWMF paper prints it as the critical difference
    assert round(bonferroni_dunn_cd(5, 6, 0.10), 3) == 2.046
    assert round(bonferroni_dunn_cd(5, 6, 0.05), 3) == 2.280


@pytest.mark.parametrize(
    ("k", "n", "alpha", "critical"),
    [(9, 14, 0.05, 2.029), (9, 13, 0.05, 2.036), (6, 13, 0.05, 2.368), (5, 6, 0.10, 2.249)],
)
def test_f_critical_values_of_the_papers(k, n, alpha, critical):
    assert round(iman_davenport(1.0, n, k, alpha).F_crit, 3) == critical


@pytest.mark.parametrize(
    ("metric", "chi2", "p", "F", "F_uncorrected"),
    [
        ("average_precision", 16.57, 0.0023, 11.15, 10.86),
        ("ranking_loss", 11.93, 0.018, 4.94, 4.78),
        ("hamming_loss", 16.10, 0.0029, 10.19, 9.94),
        ("coverage", 10.00, 0.040, 3.57, 3.57),
    ],
)
def test_lwmf_tables_give_the_recomputed_statistics(metric, chi2, p, F, F_uncorrected):
    table, direction = printed(metric)
    result = compare_methods(table, direction, alpha=0.10, control="lwmf", metric=metric)
    assert round(result.chi2, 2) == chi2
    assert round(result.chi2_p, 3 if p > 0.01 else 4) == p
    assert round(result.F, 2) == F
    assert round(compare_methods(table, direction, tie_correction=False).F, 2) == F_uncorrected
    assert result.rejected
    assert result.F_crit < result.F


def test_lwmf_control_differences():
    """11 of 16 pairs lie beyond 2.046, not 10: coverage against MLNB is 2.167."""
    expected = {
        "average_precision": ("mddm_spc", "mddm_proj", "rf_ml"),
        "ranking_loss": ("mddm_proj", "rf_ml", "mlnb"),
        "hamming_loss": ("mddm_spc", "mddm_proj", "rf_ml"),
        "coverage": ("mddm_proj", "mlnb"),
    }
    gaps = {"average_precision": [2.25, 3.25, 2.83, 1.25], "coverage": [1.50, 2.67, 2.00, 2.17]}
    for metric, beyond in expected.items():
        table, direction = printed(metric)
        result = compare_methods(table, direction, alpha=0.10, control="lwmf")
        assert result.beyond_control == beyond
        if metric in gaps:
            assert [round(result.ranks[m] - result.ranks["lwmf"], 2) for m in METHODS[:4]] == gaps[metric]
    assert sum(map(len, expected.values())) == 11


def test_ranks_know_the_direction_and_tie_averaging_and_put_unfinished_last():
    table = pd.DataFrame([[1.0, 2.0, 2.0, np.nan], [3.0, 2.0, np.nan, np.nan]], columns=list("abcd"))
    assert rank_rows(table, "min").to_numpy().tolist() == [[1, 2.5, 2.5, 4], [2, 1, 3.5, 3.5]]
    assert rank_rows(table, "max").to_numpy().tolist() == [[3, 1.5, 1.5, 4], [1, 2, 3.5, 3.5]]
    assert average_ranks(table, "min").tolist() == [1.5, 1.75, 3.0, 3.75]


@pytest.mark.parametrize("decimals", [None, 1])
def test_friedman_equals_scipy(decimals):
    for seed in range(20):
        table = random_table(7, 5, seed, decimals)
        expected = stats.friedmanchisquare(*table.to_numpy().T)
        result = compare_methods(table, "min")
        assert result.chi2 == pytest.approx(expected.statistic, rel=1e-12, abs=1e-12)
        assert result.chi2_p == pytest.approx(expected.pvalue, rel=1e-10)


def test_friedman_equals_the_textbook_form():
    ranks = rank_rows(random_table(6, 4, 3), "min").to_numpy()
    n, k = ranks.shape
    textbook = 12 * n / (k * (k + 1)) * (sum(r**2 for r in ranks.mean(axis=0)) - k * (k + 1) ** 2 / 4)
    assert friedman(ranks, tie_correction=False) == pytest.approx(textbook, rel=1e-12)
    assert friedman(ranks) == friedman(ranks, tie_correction=False)  # nothing is tied


def test_iman_davenport_is_the_f_of_a_two_way_analysis_of_ranks():
    """F_F is the F statistic of an analysis of variance of the ranks with datasets as blocks."""
    ranks = rank_rows(random_table(8, 5, 1, 1), "min").to_numpy()
    n, k = ranks.shape
    effect = n * ((ranks.mean(axis=0) - ranks.mean()) ** 2).sum()
    rest = ((ranks - ranks.mean()) ** 2).sum() - effect
    expected = (effect / (k - 1)) / (rest / ((k - 1) * (n - 1)))
    assert pytest.approx(expected, rel=1e-12) == iman_davenport(friedman(ranks), n, k).F


def test_nemenyi_agrees_with_a_simulated_range():
    """The share of simulated ranges of k normals beyond q sqrt 2 is alpha, up to four standard errors."""
    rng = np.random.default_rng(0)
    samples = 200_000
    for k, alpha in [(3, 0.05), (9, 0.10)]:
        spread = np.ptp(rng.standard_normal((samples, k)), axis=1)
        share = (spread >= nemenyi_q(k, alpha) * math.sqrt(2)).mean()
        assert abs(share - alpha) <= 4 * math.sqrt(alpha * (1 - alpha) / samples)


def test_nemenyi_p_values_and_decisions_agree():
    result = compare_methods(random_table(12, 6, 4), "min")
    assert len(result.nemenyi) == 15
    for pair in result.nemenyi:
        assert pair.difference == pytest.approx(result.ranks[pair.b] - result.ranks[pair.a])
        assert pair.difference >= 0
        assert pair.differs == (pair.difference >= result.cd_nemenyi) == (pair.p <= result.alpha)
    assert any(pair.differs for pair in result.nemenyi)


def test_groups_are_all_maximal_groups_without_a_difference():
    rng = np.random.default_rng(5)
    for _ in range(200):
        k = int(rng.integers(2, 8))
        ranks = {f"m{j}": float(r) for j, r in enumerate(rng.integers(2, 20, k) / 2)}
        cd = float(rng.uniform(0.3, 5))
        alike = [
            frozenset(group)
            for size in range(2, k + 1)
            for group in itertools.combinations(ranks, size)
            if max(map(ranks.get, group)) - min(map(ranks.get, group)) < cd
        ]
        maximal = {group for group in alike if not any(group < other for other in alike)}
        result = cliques(ranks, cd)
        assert {frozenset(group) for group in result} == maximal
        assert len(result) == len(maximal)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert len(holm([])) == 0


def test_a_p_value_is_below_its_level_exactly_if_holm_rejects():
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(300):
        p = rng.beta(0.3, 3, rng.integers(1, 12))
        below = p <= holm_levels(p, 0.05)
        assert (below == (holm(p) <= 0.05)).all()
        rejected += below.sum()
    assert rejected > 100
    assert holm_levels([0.2, 0.001, 0.01], 0.06).tolist() == pytest.approx([0.06, 0.02, 0.03])  # steps of the order
    assert holm_levels([0.04, 0.03, 0.9], 0.06).tolist() == pytest.approx([0.02] * 3)  # stops at the first


def test_the_unpaired_interval_is_welch_with_corrected_variances():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 0.02, 3), rng.normal(0.6, 0.05, 5)
    welch = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.9)
    plain = corrected_unpaired_interval(a, 1e-12, b, 1e-12, 0.9)  # no test rows: no correction
    assert plain == pytest.approx((b.mean() - a.mean(), welch.low, welch.high))
    # twice the variance of a mean is the same as splits that vary sqrt(2) times as much
    wider = corrected_unpaired_interval(a, 1 / 3, b, 1 / 5, 0.9)
    assert wider[2] - wider[0] == pytest.approx(math.sqrt(2) * (plain[2] - plain[0]))
    half = [
        i[2] - i[0] for i in (corrected_resampled_interval(b, 0.25), corrected_unpaired_interval([1, 1], 1, b, 0.25))
    ]
    assert half[0] == pytest.approx(half[1])  # nothing varies in the first
    assert corrected_unpaired_interval([1, 1], 1.0, [2, 2], 1.0) == (1, 1, 1)


def test_signed_rank_p_equals_scipy_without_ties():
    rng = np.random.default_rng(6)
    for n in (3, 6, 13, 30):
        d = rng.normal(0.3, 1, n)
        assert signed_rank_p(d) == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, rel=1e-9)


def test_signed_rank_p_equals_enumeration_with_ties_and_zeros():
    rng = np.random.default_rng(7)
    for _ in range(10):
        d = rng.integers(-3, 4, 8).astype(float)
        ranks = stats.rankdata(np.abs(d))
        signs = np.array(list(itertools.product([-1, 1], repeat=8)))
        sums = signs @ np.where(d == 0, 0, ranks)
        share = (np.abs(sums) >= abs(np.sign(d) @ ranks) - 1e-9).mean()
        assert signed_rank_p(d) == pytest.approx(share, rel=1e-12)
    assert signed_rank_p(np.zeros(5)) == 1.0


def test_wilcoxon_table_counts_directions_and_control():
    table = pd.DataFrame({"a": [0.1, 0.2, 0.3, 0.4], "b": [0.2, 0.2, 0.5, 0.1], "c": [1.0, 1.0, np.nan, 1.0]})
    pairs = {(p.a, p.b): p for p in wilcoxon_holm(table, "min")}
    assert list(pairs) == [("a", "b"), ("a", "c"), ("b", "c")]
    first = pairs["a", "b"]
    assert (first.n, first.wins, first.ties, first.losses) == (4, 2, 1, 1)
    assert first.median == pytest.approx(0.05)
    assert pairs["a", "c"].n == 3
    assert [(p.a, p.b) for p in wilcoxon_holm(table, "min", control="b")] == [("b", "a"), ("b", "c")]
    mirrored = {(p.a, p.b): p for p in wilcoxon_holm(table, "max")}["a", "b"]
    assert (mirrored.wins, mirrored.losses, mirrored.p) == (1, 2, first.p)


def test_wilcoxon_separates_when_it_should():
    table = random_table(10, 3, 8)
    table["m2"] = table["m0"] + 1
    result = {(p.a, p.b): p for p in compare_methods(table, "min").wilcoxon}
    assert result["m0", "m2"].differs
    assert result["m0", "m2"].p == pytest.approx(2 / 2**10)
    assert result["m0", "m2"].p_holm >= result["m0", "m2"].p


def test_bayesian_test_is_baycomp_seeded_and_symmetric():
    baycomp = pytest.importorskip("baycomp")
    table = random_table(9, 3, 9) / 10
    first = bayesian_signed_rank(table, "max", rope=0.01, seed=3)
    assert first == bayesian_signed_rank(table, "max", rope=0.01, seed=3)
    assert first != bayesian_signed_rank(table, "max", rope=0.01, seed=4)
    for pair in first:
        assert pair.p_a + pair.p_rope + pair.p_b == pytest.approx(1)
        x, y = table[pair.a].to_numpy(), table[pair.b].to_numpy()
        left, rope, right = baycomp.SignedRankTest.probs(x, y, 0.01, nsamples=10_000, random_state=1)
        bound = 5 * math.sqrt(2 * 0.25 / 10_000)  # five standard errors of a difference of two shares
        assert np.abs(np.array([pair.p_a - left, pair.p_rope - rope, pair.p_b - right])).max() <= bound
    swapped = {
        (p.b, p.a): (p.p_b, p.p_rope, p.p_a)
        for p in bayesian_signed_rank(table[["m2", "m1", "m0"]], "max", 0.01, seed=3)
    }
    assert swapped == {(p.a, p.b): (p.p_a, p.p_rope, p.p_b) for p in first}
    losing = bayesian_signed_rank(table, "min", rope=0.01, seed=3)
    assert [p.p_a > p.p_b for p in losing] == [p.p_a < p.p_b for p in first]


def test_bayesian_test_of_equal_and_unequal_methods():
    pytest.importorskip("baycomp")
    table = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.1, 0.2, 0.3], "c": [0.9, 0.8, 0.9]})
    without = {(p.a, p.b): p for p in bayesian_signed_rank(table, "min", rope=0)}
    assert (without["a", "b"].p_a, without["a", "b"].p_rope, without["a", "b"].p_b) == (0.5, 0.0, 0.5)
    assert without["a", "c"].p_a > 0.95
    assert {p.p_rope for p in bayesian_signed_rank(table[["a", "b"]], "min", rope=0.01)} == {1.0}
    with pytest.raises(StatisticsError, match="rope"):
        bayesian_signed_rank(table, "min", rope=-1)


@pytest.mark.parametrize("control", [None, "m1"])
def test_comparison_survives_json(control):
    pytest.importorskip("baycomp")
    result = compare_methods(random_table(5, 4, 10), "max", control=control, metric="macro_f1", rope=0.01)
    text = canonical_json(result.to_dict())
    assert text == canonical_json(
        compare_methods(random_table(5, 4, 10), "max", control=control, metric="macro_f1", rope=0.01).to_dict()
    )
    assert Comparison.from_dict(json.loads(text)) == result


def test_column_order_changes_nothing_but_the_order():
    table = random_table(7, 5, 11)
    one, two = compare_methods(table, "min"), compare_methods(table[table.columns[::-1]], "min")
    assert one.ranks == two.ranks
    assert (one.chi2, one.F, one.groups, one.nemenyi) == (two.chi2, two.F, two.groups, two.nemenyi)


def test_small_tables_give_notes_instead_of_errors():
    alone = compare_methods(random_table(5, 1), "min")
    assert (alone.ranks, alone.F, alone.cd_nemenyi, alone.groups) == ({"m0": 1.0}, None, None, ())
    assert "nothing to compare" in alone.notes[0]
    single = compare_methods(random_table(1, 4), "min")
    assert single.F is None
    assert single.cd_nemenyi > 3
    assert any("too few" in note for note in single.notes)
    nothing = compare_methods(pd.DataFrame(columns=["a", "b"], dtype=float), "min")
    assert (nothing.n, nothing.k, nothing.ranks) == (0, 2, {})
    for result in (alone, single, nothing):
        assert Comparison.from_dict(json.loads(canonical_json(result.to_dict()))) == result


def test_datasets_that_agree_give_an_infinite_f_and_the_probability_of_equal_rankings():
    table = pd.DataFrame(np.arange(12).reshape(3, 4), columns=list("abcd"))
    result = compare_methods(table, "min")
    assert math.isinf(result.F)
    assert result.p == pytest.approx(1 / 24**2)
    assert result.rejected
    few = compare_methods(table.iloc[:2, :2], "min")
    assert (few.F, few.p, few.rejected) == (math.inf, pytest.approx(0.5), False)
    assert any("infinite" in note for note in result.notes)
    assert result.to_dict()["F"] == "inf"
    assert Comparison.from_dict(result.to_dict()) == result


def test_all_ties_give_no_difference():
    result = compare_methods(pd.DataFrame(np.ones((4, 3)), columns=list("abc")), "max")
    assert (result.chi2, result.F, result.rejected) == (0.0, 0.0, False)
    assert result.groups == (("a", "b", "c"),)
    assert {pair.p for pair in result.wilcoxon} == {1.0}


def test_unfinished_cells_are_named():
    table = random_table(4, 3, 12)
    table.loc["d2", "m1"] = np.nan
    result = compare_methods(table, "min")
    assert result.dataset_ranks["d2"]["m1"] == 3
    assert "m1 on d2" in result.notes[0]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda t: {"table": t, "direction": "up"}, "direction"),
        (lambda t: {"table": t, "direction": "min", "alpha": 1.5}, "alpha"),
        (lambda t: {"table": t, "direction": "min", "control": "zz"}, "zz"),
        (lambda t: {"table": t.set_axis(["a", "a", "b"], axis=1), "direction": "min"}, "more than once"),
        (lambda t: {"table": t.astype(str) + "x", "direction": "min"}, "not a number"),
        (lambda t: {"table": t / 0, "direction": "min"}, "infinite"),
    ],
)
def test_errors_name_what_is_wrong(change, word):
    with pytest.raises(StatisticsError, match=word) as caught:
        compare_methods(**change(random_table(3, 3)))
    assert isinstance(caught.value, MultilabError)
    assert isinstance(caught.value, ValueError)


def long_scores():
    rows = [
        (d, s, m, "hamming_loss", 0.1 * i + 0.01 * s + 0.001 * j)
        for i, d in enumerate(["flags", "birds"])
        for s in range(3)
        for j, m in enumerate(["br", "cc"])
    ]
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])


def test_summaries_are_means_and_sample_deviations():
    result = summarise(long_scores(), "hamming_loss")
    assert list(result.mean.index) == ["flags", "birds"]
    assert result.mean.loc["birds", "cc"] == pytest.approx(0.111)
    assert result.std.loc["birds", "cc"] == pytest.approx(0.01)
    assert result.splits.to_numpy().tolist() == [[3, 3], [3, 3]]
    assert result.unfinished == ()
    summary = summarise(long_scores(), "hamming_loss", datasets=["birds", "yeast"], methods=["cc"])
    assert summary.mean.shape == (2, 1)
    assert math.isnan(summary.mean.loc["yeast", "cc"])


def test_a_mean_over_fewer_splits_is_no_mean():
    scores = long_scores()
    result = summarise(scores.drop(index=0), "hamming_loss")
    assert result.unfinished == (("flags", "br"),)
    assert math.isnan(result.mean.loc["flags", "br"])
    assert result.mean.loc["flags", "cc"] == pytest.approx(0.011)
    undefined = scores.copy()
    undefined.loc[(undefined["dataset"] == "flags") & (undefined["split"] == 0), "value"] = np.nan
    everywhere = summarise(undefined, "hamming_loss")
    assert everywhere.unfinished == ()
    assert everywhere.splits.loc["flags"].tolist() == [2, 2]


def test_the_order_of_rows_does_not_make_or_break_a_tie():
    values = [0.1, 0.2, 0.3, 0.7, 1e-9]
    rows = [("d", s, m, "x", v) for m, order in (("a", values), ("b", values[::-1])) for s, v in enumerate(order)]
    scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    one_by_one, reverse = (list(itertools.accumulate(each))[-1] for each in (values, values[::-1]))
    assert one_by_one != reverse  # from Python 3.12 on `sum` rounds once
    for frame in (scores, scores[::-1]):
        mean = summarise(frame, "x").mean
        assert mean.loc["d", "a"] == mean.loc["d", "b"]


def test_summaries_refuse_two_values_and_missing_columns():
    scores = long_scores()
    with pytest.raises(StatisticsError, match="two values of hamming_loss for dataset flags, split 0"):
        summarise(pd.concat([scores, scores.iloc[:1]]), "hamming_loss")
    with pytest.raises(StatisticsError, match="'split'"):
        summarise(scores.drop(columns="split"), "hamming_loss")
    assert summarise(scores, "coverage").mean.empty
