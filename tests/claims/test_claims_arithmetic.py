"""The papers' own arithmetic, recomputed from their printed cells; errata that it can confirm are confirmed."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from multilab.claims.paper import find
from multilab.claims.published import mask
from multilab.claims.verdicts import fill_derived
from multilab.statistics import bonferroni_dunn_cd, compare_methods, nemenyi_cd
from multilab.statistics.posthoc import bonferroni_dunn_q, nemenyi_q

MLWSE = ["mlwse_l1", "mlwse_l21"]
COMPARATORS = ["ebr", "ecc", "eps", "rakel", "cde", "adaboost_mh", "mls"]
MEASURES = ["accuracy", "hamming_loss", "ranking_loss", "example_f1", "macro_f1", "micro_f1"]
EKELM = ["mlekelm", "mlkelm", "relm", "elm", "mlrbf", "mlknn"]


def table_of(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    return cells[cells["metric"] == metric].pivot(index="dataset", columns="method", values="mean")


def compared(cells: pd.DataFrame, metric: str, **options):
    direction = cells.loc[cells["metric"] == metric, "direction"].iloc[0]
    return compare_methods(table_of(cells, metric), direction, **{"tie_correction": False, **options})


def ranked(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rank (ties: best) of every method in every cell of dataset and metric."""
    gain = cells["mean"] * np.where(cells["direction"] == "max", 1, -1)
    return cells.assign(rank=gain.groupby([cells["dataset"], cells["metric"]]).rank(method="min", ascending=False))


@pytest.fixture(scope="module")
def mlwse() -> pd.DataFrame:
    cells = find("mlwse").published
    return cells[cells["table"].isin(["4", "5", "6"])]


@pytest.fixture(scope="module")
def other_version(mlwse) -> pd.DataFrame:
    """The printed cells with the English authors' values where errata.yaml has them."""
    cells = mlwse.copy()
    for erratum in find("mlwse").errata:
        if erratum.id.startswith("mlwse-versions/") and erratum.right_number is not None:
            cells.loc[mask(cells, erratum.where), "mean"] = erratum.right_number
    return cells


@pytest.fixture(scope="module")
def ekelm() -> pd.DataFrame:
    cells = find("mlekelm").published
    return cells[cells["table"].isin(list("2345678")) & ~cells["dataset"].str.startswith("(")]


@pytest.fixture(scope="module")
def lwmf() -> pd.DataFrame:
    cells = find("lwmf").published
    return cells[cells["table"].isin(list("2345")) & ~cells["dataset"].str.startswith("(")]


@pytest.fixture(scope="module")
def imldf() -> pd.DataFrame:
    cells = find("imldf").published
    return cells[cells["table"] == "3"]


@pytest.mark.parametrize("paper", ["mlwse", "mlekelm", "lwmf", "imldf"])
def test_what_an_erratum_says_is_printed_is_what_is_printed(paper):
    cells, checked = find(paper).published, 0
    for erratum in find(paper).errata:
        try:
            printed = float(erratum.printed)
        except ValueError:
            assert erratum.right_number is None or erratum.where.keys() == {"location"}, erratum.id
            continue
        rows = cells[mask(cells, erratum.where)]
        if len(rows):
            checked += 1
            assert rows["printed_mean"].tolist() == [erratum.printed], erratum.id
            assert rows["mean"].tolist() == [printed]
    assert checked >= {"mlwse": 34, "mlekelm": 6, "lwmf": 0, "imldf": 0}[paper]


# ---- MLWSE


def test_accuracy_and_hamming_loss_of_mlwse_add_up_to_one_but_where_the_errata_say(mlwse):
    sums = sum(table_of(mlwse, metric)[MLWSE].stack() for metric in ("accuracy", "hamming_loss"))
    assert len(sums) == 28
    assert (abs(sums - 1) < 1e-9).sum() == 18
    assert (abs(sums - 1) < 0.0011).sum() == 20
    listed = [e for e in find("mlwse").errata if e.id.startswith("mlwse-accuracy-sum")]
    cells = pd.DataFrame([(d, m) for d, m in sums.index[abs(sums - 1) > 0.0011]], columns=["dataset", "method"])
    cells = cells.assign(table="4", metric="hamming_loss")
    assert np.logical_or.reduce([mask(cells, e.where) for e in listed]).all()
    assert len(cells) == 8


def test_the_sums_that_fail_are_those_of_the_hamming_losses_that_differ_between_the_versions(mlwse, other_version):
    before, after = table_of(mlwse, "hamming_loss")[MLWSE], table_of(other_version, "hamming_loss")[MLWSE]
    sums = table_of(other_version, "accuracy")[MLWSE] + after
    assert (abs(sums - 1) < 0.0015).all(axis=None)
    assert (before != after).sum(axis=None) == 8


def test_there_are_28_differing_cells_and_every_differing_published_mlwse_mean_is_better(mlwse):
    listed = [e for e in find("mlwse").errata if e.id.startswith("mlwse-versions/")]
    assert len(listed) == 28
    methods = [e.where["method"] for e in listed]
    assert [methods.count(m) for m in ("mlwse_l21", "mlwse_l1", "mls")] == [25, 2, 1]
    for erratum in listed:
        row = mlwse[mask(mlwse, erratum.where)]
        assert len(row) == 1, erratum.id
        if erratum.right_number is not None:
            gain = row["mean"].iloc[0] - erratum.right_number
            assert (gain if row["direction"].iloc[0] == "max" else -gain) > 0, erratum.id


def test_the_columns_of_rakel_and_mls_are_equal_but_for_the_ranking_loss(mlwse):
    both = mlwse[mlwse["method"].isin(["rakel", "mls"])]
    pairs = both.pivot(index=["table", "dataset", "metric"], columns="method", values=["mean", "std"])
    equal = (pairs["mean"]["rakel"] == pairs["mean"]["mls"]) & (pairs["std"]["rakel"] == pairs["std"]["mls"])
    by_metric = equal.groupby("metric").sum()
    assert by_metric.to_dict() == {
        "accuracy": 12, "example_f1": 12, "hamming_loss": 11, "macro_f1": 11, "micro_f1": 11, "ranking_loss": 0,
    }  # fmt: skip


def test_the_accuracy_of_mls_on_langlog_exceeds_its_own_f1_and_no_other_does(mlwse):
    accuracy, f1 = (table_of(mlwse, metric)[COMPARATORS] for metric in ("accuracy", "example_f1"))
    impossible = (accuracy > f1 + 0.0011).stack()
    assert impossible[impossible].index.tolist() == [("langlog", "mls")]


def test_adaboost_predicts_nothing_on_birds(mlwse):
    assert round(294 / 645, 3) == table_of(mlwse, "accuracy").loc["birds", "adaboost_mh"]
    assert (table_of(mlwse, "accuracy")["adaboost_mh"] == 0).sum() >= 4


def test_langlog_is_out_of_line_in_the_mlwse_columns(mlwse):
    row = table_of(mlwse, "micro_f1").loc["langlog"]
    assert row[MLWSE].min() > 2.5 * row[COMPARATORS].max()


@pytest.mark.parametrize(
    ("metric", "F"),
    [
        ("accuracy", 37.381),
        ("hamming_loss", 12.155),
        ("ranking_loss", 37.824),
        ("example_f1", 9.449),
        ("macro_f1", 10.822),
        ("micro_f1", 8.081),
    ],
)
def test_f_f_from_the_papers_own_tables(mlwse, metric, F):
    result = compared(mlwse, metric)
    assert (result.n, result.k) == (14, 9)
    assert round(result.F, 3) == F
    assert round(result.F_crit, 3) == 2.029
    right = {e.where["metric"]: e.right for e in find("mlwse").errata if e.id.startswith("mlwse-ff/")}
    assert right.get(metric, "37.824") == f"{F:.3f}"


@pytest.mark.parametrize(("metric", "printed"), [("ranking_loss", 37.824), ("example_f1", 9.261), ("macro_f1", 10.243)])
def test_printed_f_f_that_follow_from_the_other_version(other_version, metric, printed):
    assert round(compared(other_version, metric).F, 3) == printed
    cells = find("mlwse").published
    row = cells[(cells["table"] == "7") & (cells["metric"] == metric)]
    assert row["mean"].tolist() == [printed]


def test_the_printed_f_f_of_accuracy_follows_from_neither_version(mlwse, other_version):
    assert round(compared(other_version, "accuracy").F, 2) == 40.95
    assert 35.075 not in (round(compared(cells, "accuracy").F, 3) for cells in (mlwse, other_version))


def test_the_printed_critical_value_is_nemenyis_critical_difference():
    assert round(nemenyi_q(9), 3) == 3.102
    assert round(nemenyi_cd(9, 14), 3) == 3.211
    assert round(nemenyi_cd(9, 13), 3) == 3.332
    cells = find("mlwse").published
    assert cells.loc[cells["metric"] == "all", "mean"].tolist() == [3.211]
    filled = fill_derived(cells, find("mlwse").aliases, "mean", "std")
    assert filled.loc[filled["metric"] == "all", "mean"].round(3).tolist() == [3.211]


def test_published_average_ranks(mlwse):
    ranks = {metric: compared(mlwse, metric).ranks for metric in MEASURES}
    assert {m: round(ranks["hamming_loss"][m], 2) for m in ("mlwse_l21", "ebr", "ecc", "mlwse_l1")} == {
        "mlwse_l21": 1.68, "ebr": 3.32, "ecc": 3.82, "mlwse_l1": 3.89,
    }  # fmt: skip
    assert [round(ranks["micro_f1"][m], 2) for m in ("ecc", "mlwse_l21", "mlwse_l1")] == [2.71, 4.18, 4.25]
    averages = [round(ranks[metric]["mlwse_l21"], 2) for metric in ("ranking_loss", "example_f1", "macro_f1")]
    assert averages == [1.93, 2.93, 2.57]


def test_in_the_other_version_ebr_leads_on_hamming_loss(other_version):
    ranks = compared(other_version, "hamming_loss").ranks
    assert min(ranks, key=ranks.get) == "ebr"
    assert round(ranks["mlwse_l21"], 2) == 3.25
    assert round(ranks["ecc"], 2) == 3.64
    assert min(compared(other_version, "micro_f1").ranks.items(), key=lambda item: item[1])[0] == "ecc"


# ---- ML-EKELM


@pytest.mark.parametrize(
    ("metric", "ranks", "F", "corrected", "best"),
    [
        ("hamming_loss", [1.12, 2.73, 3.81, 5.92, 2.50, 4.92], 82.1, 88.2, 10),
        ("one_error", [1.08, 2.54, 3.54, 5.08, 3.08, 5.69], 53.0, None, 10),
        ("coverage", [1.62, 3.00, 3.92, 5.69, 4.92, 1.85], 41.1, None, 3),
        ("ranking_loss", [1.46, 2.85, 3.92, 5.77, 4.77, 2.23], 36.1, None, 5),
        ("average_precision", [1.00, 2.15, 3.46, 5.19, 3.54, 5.65], 96.7, 98.7, 11),
    ],
)
def test_ranks_and_f_f_of_the_ekelm_paper(ekelm, metric, ranks, F, corrected, best):
    result = compared(ekelm, metric)
    assert (result.n, result.k, round(result.F_crit, 3)) == (13, 6, 2.368)
    assert [round(result.ranks[m], 2) for m in EKELM] == ranks
    assert round(result.F, 1) == F
    if corrected:
        assert round(compared(ekelm, metric, tie_correction=True).F, 1) == corrected
    yahoo = ranked(ekelm[ekelm["metric"].eq(metric) & ekelm["dataset"].str.startswith("yahoo")])
    own = yahoo.loc[yahoo["method"] == "mlekelm", "rank"]
    assert len(own) == 11
    assert int((own == 1).sum()) == best
    assert own.max() <= 2


def test_the_critical_difference_of_the_ekelm_paper():
    assert round(nemenyi_q(6), 3) == 2.850
    assert abs(nemenyi_cd(6, 13) - 2.0913) < 5e-4
    assert abs(nemenyi_cd(6, 13, 0.1) - 1.8998) < 5e-4


def test_printed_averages_of_the_ekelm_paper_follow_from_the_rows_but_for_two():
    cells = find("mlekelm").published
    filled = fill_derived(cells, find("mlekelm").aliases, "mean", "std")
    rows = cells["dataset"].str.startswith("(")
    assert rows.sum() == 36
    off = (filled["mean"] - cells["mean"]).abs() > 6e-5
    assert cells.loc[off, ["table", "method"]].to_numpy().tolist() == [["4", "mlrbf"], ["6", "mlrbf"]]
    assert filled.loc[off, "mean"].round(4).tolist() == [0.0383, 4.8288]
    assert filled.loc[off, "std"].round(4).tolist() == [0.0126, 1.2970]
    right = {e.id: e.right for e in find("mlekelm").errata}
    assert [right["mlekelm-t4-average"], right["mlekelm-t6-average"]] == ["0.0383 +- 0.0126", "4.8288 +- 1.2970"]


@pytest.mark.parametrize(
    ("slip", "average", "cell"),
    [
        ("mlekelm-t6-entertainment", "mlekelm-t6-entertainment-average", "6"),
        ("mlekelm-t8-health", "mlekelm-t8-health-average", "8"),
    ],
)
def test_the_averages_contain_the_two_slips(ekelm, slip, average, cell):
    errata = {e.id: e for e in find("mlekelm").errata}
    rows = ekelm[(ekelm["table"] == cell) & (ekelm["method"] == "mlkelm")].copy()
    assert f"{rows['mean'].mean():.4f}" == errata[average].printed
    rows.loc[mask(rows, errata[slip].where), "mean"] = errata[slip].right_number
    assert f"{rows['mean'].mean():.4f}" == errata[average].right


def test_ekelm_times_in_the_text_divide_by_the_wrong_time():
    cells = find("mlekelm").published
    mean = cells[cells["dataset"] == "(mean over all sets)"].set_index("method")["mean"]
    ratio = {m: mean[m] / mean["mlekelm"] for m in ("mlrbf", "mlknn")}
    assert [round(100 * (ratio[m] - 1), 1) for m in ratio] == [24.9, 196.9]
    assert [round(100 * (1 - 1 / ratio[m]), 1) for m in ratio] == [19.9, 66.3]


def test_social_ties_elm_and_mlknn(ekelm):
    row = table_of(ekelm, "average_precision").loc["yahoo-social"]
    assert row["elm"] == row["mlknn"] == row.min()


# ---- LWMF


def test_counts_of_the_lwmf_paper(lwmf):
    cells = ranked(lwmf)
    first = cells[cells["rank"] == 1]
    shared = first.groupby(["dataset", "metric"])["method"].transform("size")
    assert first[shared == 1]["method"].value_counts().to_dict() == {"lwmf": 18, "rf_ml": 3, "mlnb": 2}
    assert sorted(first[shared > 1]["method"]) == ["lwmf", "rf_ml"]
    table = {m: rows.set_index(["dataset", "metric"]) for m, rows in lwmf.groupby("method")}
    sign = np.where(table["lwmf"]["direction"] == "max", 1, -1)
    wins = {m: int(((table["lwmf"]["mean"] - table[m]["mean"]) * sign > 0).sum()) for m in table if m != "lwmf"}
    assert wins == {"mddm_spc": 24, "mddm_proj": 24, "mlnb": 22, "rf_ml": 20}
    yeast = table_of(lwmf, "coverage").loc["yeast"]
    assert yeast["rf_ml"] == 6.4913
    assert yeast["lwmf"] == 6.5131


@pytest.mark.parametrize(
    ("metric", "chi2", "p", "F", "plain"),
    [
        ("average_precision", 16.57, 0.0023, 11.15, 10.86),
        ("ranking_loss", 11.93, 0.018, 4.94, 4.78),
        ("hamming_loss", 16.10, 0.0029, 10.19, 9.94),
        ("coverage", 10.00, 0.040, 3.57, 3.57),
    ],
)
def test_friedman_of_the_lwmf_paper(lwmf, metric, chi2, p, F, plain):
    result = compared(lwmf, metric, tie_correction=True, alpha=0.1)
    assert round(result.chi2, 2) == chi2
    assert math.isclose(result.chi2_p, p, abs_tol=5e-4)
    assert round(result.F, 2) == F
    assert round(compared(lwmf, metric).F, 2) == plain
    assert round(result.F_crit, 3) == 2.249
    assert result.rejected


def test_the_critical_difference_of_the_lwmf_paper_and_its_eleven_pairs(lwmf):
    assert round(bonferroni_dunn_q(5, 0.1), 4) == 2.2414
    assert round(bonferroni_dunn_cd(5, 6, 0.1), 3) == 2.046
    beyond, gaps = 0, []
    for metric in ("average_precision", "ranking_loss", "hamming_loss", "coverage"):
        result = compared(lwmf, metric, alpha=0.1, control="lwmf")
        assert min(result.ranks, key=result.ranks.get) == "lwmf"
        beyond += len(result.beyond_control)
        gaps += [result.ranks[m] - result.ranks["lwmf"] for m in result.ranks]
    assert beyond == 11
    assert sum(gap >= 2.24 for gap in gaps) == 10


def test_printed_averages_and_average_ranks_of_the_lwmf_paper():
    cells = find("lwmf").published
    filled = fill_derived(cells, find("lwmf").aliases, "mean", "std")
    rows = cells["dataset"].isin(["(mean over the 6 sets)", "average_rank_over_6"])
    assert rows.sum() == 40
    step = np.where(cells["table"] == "6", 0.005, 5e-5)
    assert ((filled["mean"] - cells["mean"]).abs() <= step * (1 + 1e-6))[rows].all()


# ---- iMLDF


def test_counts_of_the_imldf_paper(imldf):
    cells = ranked(imldf)
    own = cells[cells["method"] == "imldf"].set_index(["dataset", "metric"])["rank"]
    firsts = cells[cells["rank"] == 1].groupby(["dataset", "metric"]).size()
    assert len(own) == 42
    assert [(own == 1).sum(), ((own == 1) & (firsts == 1)).sum(), (own == 2).sum(), (own > 2).sum()] == [35, 29, 4, 3]
    assert own[own > 2].to_dict() == {
        ("chd-49", "one_error"): 3, ("slashdot", "one_error"): 3, ("chd-49", "macro_auc"): 4,
    }  # fmt: skip
    table = imldf.pivot(index=["dataset", "metric", "direction"], columns="method", values="mean")
    gain = (table["imldf"] - table["mldf"]) * np.where(table.index.get_level_values("direction") == "max", 1, -1)
    assert [(gain > 0).sum(), (gain == 0).sum(), (gain < 0).sum()] == [32, 6, 4]


def test_average_ranks_of_the_imldf_paper(imldf):
    metrics = ("hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision", "macro_auc")
    results = [compared(imldf, metric, control="imldf") for metric in metrics]
    assert [round(f.ranks["imldf"], 2) for f in results] == [1.50, 1.79, 1.14, 1.07, 1.14, 1.43]
    assert [round(f.ranks["mldf"], 2) for f in results] == [2.36, 1.93, 2.43, 2.36, 2.21, 1.86]
    assert all(min(f.ranks, key=f.ranks.get) == "imldf" for f in results)
    assert all(not {"mldf", "rf_pct"} & set(f.beyond_control) for f in results)
    assert round(results[0].cd_bonferroni_dunn, 3) == 3.046
    assert round(results[0].cd_nemenyi, 3) == 3.404


def test_mlknn_never_varies_in_the_imldf_paper(imldf):
    rows = imldf[imldf["method"] == "mlknn"]
    assert len(rows) == 42
    assert (rows["std"] == 0).all()
    losses = table_of(imldf, "hamming_loss")["mlknn"]
    assert losses[["virus-pseaac", "cal500", "chd-49", "emotions", "image", "slashdot", "reuters-k500"]].tolist() == [
        0.186, 0.146, 0.430, 0.307, 0.247, 0.054, 0.014,
    ]  # fmt: skip


def test_ratios_of_the_imldf_paper():
    cells = find("imldf").published
    table = cells[cells["table"] == "4"].pivot(index="dataset", columns=["metric", "method"], values="mean")
    order = ["emotions", "slashdot", "reuters-k500"]

    def ratio(metric, a, b):
        return (table[metric][a] / table[metric][b])[order]

    assert ratio("test_time_s", "mldf", "imldf").round().tolist() == [21, 76, 73]
    assert ratio("storage_mb", "mldf", "imldf").round(1).tolist() == [16.2, 14.3, 10.5]
    assert ratio("storage_mb", "imldf", "rf_pct").round(2).tolist() == [2.35, 1.89, 1.74]
    assert ratio("train_time_s", "mldf", "imldf").round(2).tolist() == [0.67, 1.50, 2.09]
    assert ratio("test_time_s", "imldf", "rf_pct").round(1).tolist() == [5.0, 2.3, 1.8]


def test_the_frequencies_of_table_2_are_cut_off_counts():
    cells = find("mlwse").published
    table = cells[cells["table"] == "2"].pivot(index="method", columns="metric", values="mean")
    shares = table["label_count"] / 3823
    assert (np.floor(1000 * shares) / 1000 == table["label_frequency"]).all()
    rounded = shares.round(3)
    assert rounded[rounded != table["label_frequency"]].to_dict() == {
        e.where["method"]: e.right_number for e in find("mlwse").errata if e.id.startswith("mlwse-truncated/")
    }
