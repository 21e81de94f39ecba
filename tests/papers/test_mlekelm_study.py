"""The study of the ML-EKELM paper: repetitions, tuned columns at an edge, reproduced rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from multilab.cells.cell import SplitRef, split_refs
from multilab.cells.errors import ExperimentError
from multilab.cells.method import build
from multilab.cells.rows import indices
from multilab.core import report_dir
from multilab.experiments.plan import study_cells
from multilab.experiments.study import load_study, study_from
from multilab.printed import compare_printed, find, summarised
from multilab.statistics import summarise
from multilab.statistics.result_files import read_table

FIVE = ["hamming_loss", "one_error", "coverage", "ranking_loss", "average_precision"]
PARTS = [
    SplitRef(name, f"data of {name}", "{}", split, f"{name} {split}")
    for name in ("emotions", "scene")
    for split in (0, 1)
]


def repeated(repetitions, **more):
    content = {
        "datasets": ["emotions", "scene"],
        "methods": ["elm", "mlknn"],
        "seed": 7,
        "repetitions": repetitions,
        **more,
    }
    return study_from("test", content)


def test_a_random_method_has_another_seed_in_each_repetition_and_the_others_one_cell():
    study = repeated({"n_repeats": 3, "methods": ["elm"]})
    elm, mlknn = (study_cells(study, name, PARTS) for name in ("elm", "mlknn"))
    assert [(c.split_ref.dataset, c.split_ref.split) for c in elm] == [
        (d, s) for d in ("emotions", "scene") for s in range(6)
    ]
    assert [c.seed for c in elm] == [7, 7, 8, 8, 9, 9] * 2
    assert len({c.key for c in elm}) == 12
    assert [c.split_ref.split for c in mlknn] == [c.split_ref.split for c in elm]
    assert [c.key for c in mlknn[:6]] == [mlknn[0].key, mlknn[1].key] * 3
    once = study_cells(repeated(None), "elm", PARTS)
    assert [c.key for c in once] == [elm[i].key for i in (0, 1, 6, 7)]  # the first repetition is the study without any


def test_a_variant_may_repeat_otherwise():
    twice = {"n_repeats": 2, "methods": ["mlknn"]}
    variants = {"again": {"methods": ["mlknn"], "repetitions": twice}, "once": {"repetitions": None}}
    study = repeated({"n_repeats": 3, "methods": ["elm"]}, variants=variants)
    again = study_cells(study, "mlknn-again", PARTS[:1])
    assert [c.seed for c in again] == [7, 8]
    assert again[0].key == study_cells(study, "mlknn", PARTS[:1])[0].key != again[1].key
    assert len(study_cells(study, "elm-once", PARTS[:1])) == 1


def test_repetitions_repeat_the_splits():
    protocol = {"kfold": 2, "stratify": 0, "seed": 0}
    first, second = split_refs("scenario1", protocol)
    for again, part in ((replace(first, split=2), first), (replace(second, split=5), second)):
        for one, other in zip(indices(again), indices(part), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("repeats", "message"),
    [
        ({"n_repeats": 0, "methods": []}, "repetitions.n_repeats must be an integer >= 1, got 0"),
        ({"n_repeats": 3}, "repetitions.methods is missing"),
        ({"n_repeats": 3, "methods": ["el"]}, "repetitions.methods: no method is called 'el'; did you mean 'elm'?"),
    ],
)
def test_wrong_repetitions_are_one_clear_line(repeats, message):
    with pytest.raises(ExperimentError, match=re.escape(message)):
        repeated(repeats)


def test_one_result_for_all_repetitions_has_no_spread():
    rows = [("d", s, "a", "x", 1.0, "one") for s in range(3)] + [("d", s, "b", "x", 2.0, f"{s}") for s in range(3)]
    scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value", "key"])
    ten = pd.DataFrame([("d", s, "a", "x", 15 / 997, "one") for s in range(10)], columns=scores.columns)
    for mean in (summarise(ten, "x").mean.loc["d", "a"], summarised(ten)["mean"][0]):
        assert mean == 15 / 997  # the rounded sum of ten of them is not ten times it
    for std in (summarise(scores, "x").std.loc["d"], summarised(scores).set_index("method")["std"]):
        assert np.isnan(std["a"])
        assert std["b"] == 0.0
    assert summarise(scores.drop(columns="key"), "x").std.loc["d", "a"] == 0.0


def test_optima_of_the_tuned_columns_at_an_edge_of_their_space_are_those_that_the_page_names():
    """Within a hundredth of the range, of its logarithm where the space has one."""
    study, chosen = load_study("mlekelm"), read_table(report_dir("mlekelm") / "tuned.csv", ["dataset", "method"])
    edges = set()
    for row in chosen[chosen["method"].str.endswith("-tuned")].to_dict("records"):
        space = study.method(row["method"], row["dataset"]).search[row["parameter"]]
        low, value, high = (
            np.log(x) if space.get("log") else x for x in (space["low"], float(row["value"]), space["high"])
        )
        if not 0.01 < (value - low) / (high - low) < 0.99:
            edges.add((row["dataset"], row["method"], row["parameter"]))
    units = {(name, "relm-tuned", "n_hidden") for name in ("scene", "yahoo-entertainment")}
    assert edges == {*units, ("yahoo-reference", "mlekelm_rowsparse-tuned", "lam")}


@pytest.mark.data
@pytest.mark.slow
def test_ml_knn_and_ml_kelm_rows_are_the_published_ones_but_for_three_misprints(benchmark_data: Path) -> None:
    """The rows of both methods on all thirteen sets, at the settings of the study."""
    from multilab.datasets import load
    from multilab.metrics import score_all

    study, rows = load_study("mlekelm"), []
    for name in study.datasets:
        data = load(name)
        train, test = data.splits["official"]
        for method in ("mlkelm", "mlknn"):
            model = build(study.method(method, name)).fit(data.X[train], data.Y[train])
            scores = score_all(data.Y[test], *model.predict_with_scores(data.X[test]), conventions=study.conventions)
            rows += [(name, method, metric, scores[metric], np.nan) for metric in FIVE]
    ours = pd.DataFrame(rows, columns=["dataset", "method", "metric", "mean", "std"]).assign(runs=1)
    shown = compare_printed(find("mlekelm").tables, ours, study.conventions)
    assert len(shown) == 130
    decimals = shown["text"].str.partition(".")[2].str.len()
    off = shown[shown["difference"].abs() > 0.5001 * 10.0**-decimals].set_index(["dataset", "method", "metric"])
    errata = {erratum.id: erratum.right for erratum in find("mlekelm").tables.errata}
    slips = {
        ("yahoo-entertainment", "mlkelm", "coverage"): "mlekelm-t6-entertainment",
        ("yahoo-health", "mlkelm", "average_precision"): "mlekelm-t8-health",
        ("yahoo-society", "mlknn", "hamming_loss"): "mlekelm-t4-society",
    }
    assert set(off.index) == set(slips)
    for cell, erratum in slips.items():  # ours is what the erratum says is right
        assert f"{off.loc[cell, 'ours']:.4f}" in errata[erratum]
