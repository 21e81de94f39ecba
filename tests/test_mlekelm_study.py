"""The study of the ML-EKELM paper: repetitions, its checks, its claims on the print, the rows that are reproduced."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from multilab.claims import Evidence, check_claims, errata, judge_paper, printed_evidence, published, summarised
from multilab.claims.checks import run_check
from multilab.experiments import running
from multilab.experiments.cells import Part, parts_of, study_cells
from multilab.experiments.errors import ExperimentError
from multilab.experiments.settings import load_study, study_from
from multilab.reports import load_study as read_study
from multilab.reports.paper import Words
from multilab.reports.rank_figures import rank_figures
from multilab.statistics import summarise

FIVE = ["hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision"]
SIX = ["mlekelm", "mlkelm", "relm", "elm", "mlrbf", "mlknn"]
PARTS = [
    Part(name, f"data of {name}", "{}", split, f"{name} {split}") for name in ("emotions", "scene") for split in (0, 1)
]


def repeated(repeats, **more):
    content = {"datasets": ["emotions", "scene"], "methods": ["elm", "mlknn"], "seed": 7, "repeats": repeats, **more}
    return study_from("test", content)


def test_a_random_method_has_another_seed_in_each_repetition_and_the_others_one_cell():
    study = repeated({"times": 3, "methods": ["elm"]})
    elm, mlknn = (study_cells(study, name, PARTS) for name in ("elm", "mlknn"))
    assert [(c.part.dataset, c.part.split) for c in elm] == [(d, s) for d in ("emotions", "scene") for s in range(6)]
    assert [c.seed for c in elm] == [7, 7, 8, 8, 9, 9] * 2
    assert len({c.key for c in elm}) == 12
    assert [c.part.split for c in mlknn] == [c.part.split for c in elm]
    assert [c.key for c in mlknn[:6]] == [mlknn[0].key, mlknn[1].key] * 3
    once = study_cells(repeated(None), "elm", PARTS)
    assert [c.key for c in once] == [elm[i].key for i in (0, 1, 6, 7)]  # the first repetition is the study without any


def test_a_column_set_may_repeat_otherwise():
    sets = {"again": {"methods": ["mlknn"], "repeats": {"times": 2, "methods": ["mlknn"]}}, "once": {"repeats": None}}
    study = repeated({"times": 3, "methods": ["elm"]}, columns=sets)
    again = study_cells(study, "mlknn-again", PARTS[:1])
    assert [c.seed for c in again] == [7, 8]
    assert again[0].key == study_cells(study, "mlknn", PARTS[:1])[0].key != again[1].key
    assert len(study_cells(study, "elm-once", PARTS[:1])) == 1


def test_repetitions_take_the_splits_anew():
    protocol = {"kfold": 2, "stratify": 0, "seed": 0}
    first, second = parts_of("scenario1", protocol)
    for again, part in ((replace(first, split=2), first), (replace(second, split=5), second)):
        for one, other in zip(running.indices(again), running.indices(part), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("repeats", "message"),
    [
        ({"times": 0, "methods": []}, "repeats is {times: 10, methods: [elm]}, not"),
        ({"times": 3}, "repeats is {times: 10, methods: [elm]}, not"),
        ({"times": 3, "methods": ["el"]}, "repeats: no method is called 'el'; did you mean 'elm'?"),
    ],
)
def test_wrong_repetitions_are_one_clear_line(repeats, message):
    with pytest.raises(ExperimentError, match=re.escape(message)):
        repeated(repeats)


def test_one_result_that_stands_for_all_repetitions_has_no_spread():
    rows = [("d", s, "a", "x", 1.0, "one") for s in range(3)] + [("d", s, "b", "x", 2.0, f"{s}") for s in range(3)]
    scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value", "key"])
    ten = pd.DataFrame([("d", s, "a", "x", 15 / 997, "one") for s in range(10)], columns=scores.columns)
    for mean in (
        summarise(ten, "x").mean.loc["d", "a"],
        summarised(ten)["mean"][0],
        Evidence(ten).means("x", ["a"]).iloc[0, 0],
    ):
        assert mean == 15 / 997  # the rounded sum of ten of them is not ten times it
    for std in (summarise(scores, "x").std.loc["d"], summarised(scores).set_index("method")["std"]):
        assert np.isnan(std["a"])
        assert std["b"] == 0.0
    assert summarise(scores.drop(columns="key"), "x").std.loc["d", "a"] == 0.0


# -- checks ----------------------------------------------------------------------------------------------------------


def runs(values, keys=None, metric="x"):
    """Evidence from {method: [values on dataset d, repetition by repetition]}."""
    rows = [
        ("d", s, m, metric, v, f"{m} {s if keys is None else keys}")
        for m, vs in values.items()
        for s, v in enumerate(vs)
    ]
    return Evidence(pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value", "key"]))


def test_same_every_time_wants_equal_values_of_different_runs():
    asked = {"methods": ["a"], "metrics": ["x"]}
    found = run_check("same_every_time", asked, runs({"a": [0.5, 0.5, 0.5]}))
    assert (found.outcome, found.numbers["a"]) == ("holds", {"datasets": 1, "runs of each": 3, "largest spread": 0.0})
    assert run_check("same_every_time", asked, runs({"a": [0.5, np.nextafter(0.5, 1)]})).outcome == "fails"
    one = run_check("same_every_time", asked, runs({"a": [0.5, 0.5]}, keys="one"))
    assert (one.outcome, one.reason) == ("inconclusive", "a on d was run once only")


def test_costs_between_compares_means_and_tells_ratios():
    evidence = runs({"a": [2.0], "cheap": [1.0], "dear": [4.0]}, metric="total_seconds")
    asked = {"metric": "total_seconds", "method": "a"}
    found = run_check("costs_between", {**asked, "more_than": ["cheap"], "less_than": ["dear"]}, evidence)
    assert (found.outcome, found.numbers["cheap"]["ratio"], found.numbers["dear"]["ratio"]) == ("holds", 2.0, 0.5)
    for wrong in ({"more_than": ["dear"], "less_than": []}, {"more_than": [], "less_than": ["cheap"]}):
        assert run_check("costs_between", {**asked, **wrong}, evidence).outcome == "fails"


def test_zero_weights_takes_the_median_over_datasets():
    kept = {
        ("a", name): {"zero_shares_": np.array(s)}
        for name, s in zip("uvw", [(0.0, 0.0), (0.2, 0.1), (0.9, 0.0)], strict=True)
    }
    evidence = Evidence(pd.DataFrame(columns=["dataset", "split", "method", "metric", "value"]), kept)
    found = run_check("zero_weights", {"methods": ["a"], "at_least": 0.2}, evidence)
    told = {"median": 0.2, "largest": 0.9, "points without weight, largest": 0.1, "datasets": 3}
    assert (found.outcome, found.numbers["a"]) == ("holds", told)
    assert run_check("zero_weights", {"methods": ["a"], "at_least": 0.21}, evidence).outcome == "fails"


def sweeps(losses, gaps=None):
    """Evidence from {dataset: Hamming losses sweep by sweep}."""
    rows = [
        ("a", d, s, v, 10.0**-s if gaps is None else gaps[d][s]) for d, vs in losses.items() for s, v in enumerate(vs)
    ]
    table = pd.DataFrame(rows, columns=["method", "dataset", "sweep", "hamming_loss", "gap"])
    return Evidence(pd.DataFrame(columns=["dataset", "split", "method", "metric", "value"]), {}, {"sweeps": table})


FALLING = [0.5, 0.4, 0.3] + [0.2] * 6  # settled at sweep 3
WAVING = [0.5, 0.3, 0.4, 0.3, 0.4] + [0.2] * 6  # settled at sweep 5
RESTLESS = [0.5, 0.3] * 6


def test_sweeps_settle_where_the_loss_stays_for_five_sweeps_and_the_gap_for_good():
    evidence = sweeps({"u": FALLING, "v": WAVING, "w": RESTLESS})
    asked = {"method": "a", "limit": 5}
    found = run_check("settles_within", asked, evidence)
    assert (found.outcome, found.numbers) == ("fails", {"u": 3, "v": 5, "w": "not within the table"})
    assert run_check("settles_within", {**asked, "datasets": ["u", "v"]}, evidence).outcome == "holds"
    assert run_check("settles_within", {**asked, "most": True}, evidence).outcome == "holds"
    assert run_check("settles_within", {**asked, "limit": 3, "most": True}, evidence).outcome == "fails"
    short = sweeps({"u": FALLING[:8]})  # one sweep is lacking to be sure
    assert run_check("settles_within", asked, short).outcome == "fails"
    gaps = [1.0, 1e-5, 1.0, 1e-3, 5e-5, 1e-6, 1e-7, 1e-8, 1e-9]
    found = run_check("settles_within", {**asked, "y": "gap"}, sweeps({"u": FALLING}, {"u": gaps}))
    assert (found.outcome, found.numbers) == ("holds", {"u": 4})
    assert run_check("settles_within", {**asked, "y": "gap", "tolerance": 1e-9}, evidence).outcome == "fails"


def test_sweeps_near_stated_numbers_and_where_they_waver():
    evidence = sweeps({"u": FALLING, "v": WAVING})
    near = {"method": "a", "at": {"u": 3, "v": 7}}
    assert run_check("settles_near", near, evidence).outcome == "holds"
    assert run_check("settles_near", {**near, "slack": 1}, evidence).outcome == "fails"
    found = run_check("wavers_only_on", {"method": "a", "datasets": ["v"]}, evidence)
    assert (found.outcome, found.numbers) == ("holds", {"u": 0.0, "v": 0.1})
    assert run_check("wavers_only_on", {"method": "a", "datasets": ["u"]}, evidence).outcome == "fails"
    assert run_check("wavers_only_on", {"method": "a", "datasets": [], "until": 1}, evidence).outcome == "holds"


# -- the study -------------------------------------------------------------------------------------------------------


def test_what_the_print_says_of_its_own_claims():
    study = load_study("mlekelm")
    nothing = Evidence(pd.DataFrame(columns=["dataset", "split", "method", "metric", "value"]))
    found = {f["id"]: f for f in check_claims(study.claims, nothing, printed_evidence(published("mlekelm")))}
    assert list(found) == ["E1", "E1b", *(f"E{i}" for i in range(2, 10))]
    assert {f["outcome"] for f in found.values()} == {"inconclusive"}
    printed = {name: f["in_print"]["outcome"] for name, f in found.items() if "in_print" in f}
    assert printed == dict.fromkeys(["E1", "E2", "E5", "E6", "E7", "E8"], "holds")
    assert [found["E1"]["in_print"][m]["mlekelm"] for m in FIVE] == [1.115, 1.077, 1.615, 1.462, 1.0]
    assert found["E2"]["in_print"]["share"] == "16 of 25"  # 64 %
    assert found["E5"]["in_print"]["relm"]["ratio"] == 1.775
    reached = [part["reached"] for name, part in found["E8"]["in_print"].items() if name != "outcome"]
    assert reached == [10, 10, 3, 5, 11, 55]


def test_coverage_is_led_three_times_only_by_a_misprint():
    cells = published("mlekelm")
    slip = next(e for e in errata("mlekelm") if e.id == "mlekelm-t6-entertainment")
    chosen = (cells[list(slip.where)] == pd.Series(slip.where)).all(axis=1)
    assert chosen.sum() == 1
    cells.loc[chosen, "mean"] = slip.right_number
    part = load_study("mlekelm").claims[8]["printed"]["parts"][2]
    asked = {k: v for k, v in part.items() if k not in ("id", "check")}
    found = run_check(part["check"], asked, printed_evidence(cells))
    assert (found.outcome, found.numbers["reached"]) == ("fails", 2)


def test_the_printed_ml_ekelm_is_held_against_what_the_authors_ran():
    ours = pd.DataFrame(
        [("yeast", "mlekelm_released", "hamming_loss", 0.1876, np.nan)],
        columns=["dataset", "method", "metric", "mean", "std"],
    )
    found = judge_paper("mlekelm", ours, "matlab")
    cell = found[(found["dataset"] == "yeast") & (found["method"] == "mlekelm") & (found["metric"] == "hamming_loss")]
    assert cell["verdict"].tolist() == ["match"]


@pytest.fixture(scope="module")
def printed_study(tmp_path_factory):
    """A study whose results are the printed cells, ML-KELM and ML-kNN exchanged."""
    folder = tmp_path_factory.mktemp("reports") / "mlekelm"
    folder.mkdir()
    cells = published("mlekelm")
    cells = cells[cells["table"].isin(list("2345678")) & ~cells["dataset"].str.startswith("(")]
    other = {"mlkelm": "mlknn", "mlknn": "mlkelm", "mlekelm": "mlekelm_released"}
    ours = cells.assign(method=cells["method"].replace(other))
    ours.assign(split=0, value=ours["mean"]).to_csv(folder / "scores.csv", index=False)
    judge_paper("mlekelm", ours, "matlab").to_csv(folder / "cells.csv", index=False)
    (folder / "study.json").write_text('{"paper": "mlekelm", "metrics": ["hamming_loss"]}')
    return read_study(folder)


def test_figure_3_has_the_ranks_of_the_print_and_ours(printed_study):
    (figure,) = rank_figures(printed_study, Words.of(printed_study))
    assert (figure.number, figure.heads) == ("3", ("ML-EKELM", "ML-KELM", "RELM", "ELM", "ML-RBF", "ML-KNN"))
    ranks = {(row.title, row.source): [cell.mean for cell in row.cells] for row in figure.rows}
    assert len(ranks) == 10
    assert ranks["Hamming loss", "print"] == ["1.12", "2.73", "3.81", "5.92", "2.50", "4.92"]
    assert ranks["Average precision", "print"] == ["1.00", "2.15", "3.46", "5.19", "3.54", "5.65"]
    assert ranks["Average precision", "ours"] == ["1.00", "5.65", "3.46", "5.19", "3.54", "2.15"]
    by = {(row.title, row.source): row for row in figure.rows}
    assert [by[t, "print"].F for t in ("Hamming loss", "Coverage")] == ["82.1", "41.1"]
    assert {(row.F_crit, row.cd, row.datasets) for row in figure.rows} == {("2.368", "2.0911", 13)}
    assert [len(pictures) for _, pictures in figure.pictures] == [2] * 5


@pytest.mark.data
def test_ml_knn_and_ml_kelm_rows_are_those_of_the_print_but_for_three_misprints(benchmark_data: Path) -> None:
    """The rows of both methods on all thirteen sets, at the settings of the study."""
    from multilab.datasets import load
    from multilab.metrics import score_all

    study, rows = load_study("mlekelm"), []
    for name in study.datasets:
        data = load(name)
        train, test = data.splits["official"]
        for method in ("mlkelm", "mlknn"):
            model = running.build(study.method(method, name)).fit(data.X[train], data.Y[train])
            found = score_all(data.Y[test], *model.predict_both(data.X[test]), conventions=study.conventions)
            rows += [(name, method, metric, found[metric], np.nan) for metric in FIVE]
    ours = pd.DataFrame(rows, columns=["dataset", "method", "metric", "mean", "std"])
    cells = judge_paper("mlekelm", ours, study.conventions)
    cells = cells[cells["method"].isin(["mlkelm", "mlknn"]) & cells["table"].isin(list("2345678"))]
    rows_of = cells[~cells["dataset"].str.startswith("(")]
    assert len(rows_of) == 130
    off = rows_of[rows_of["verdict"] != "match"]
    slips = {
        ("yahoo-entertainment", "mlkelm", "coverage"): "mlekelm-t6-entertainment",
        ("yahoo-health", "mlkelm", "average_precision"): "mlekelm-t8-health",
        ("yahoo-society", "mlknn", "hamming_loss"): "mlekelm-t4-society",
    }
    assert {tuple(cell) for cell in off[["dataset", "method", "metric"]].to_numpy()} == set(slips)
    for cell in off.to_dict("records"):
        cited = slips[cell["dataset"], cell["method"], cell["metric"]]
        assert cited in cell["erratum"].split()
        assert cell["reason"].endswith(f"see {cited}")  # ours equals what the erratum says is right
    means = cells[cells["dataset"].str.startswith("(")].set_index(["method", "metric"])
    for metric, cited in (
        ("coverage", "mlekelm-t6-entertainment-average"),
        ("average_precision", "mlekelm-t8-health-average"),
    ):
        assert means.loc[("mlkelm", metric), "reason"].endswith(f"see {cited}")
