"""Verdicts follow their rules to the letter, errata and aliases fit the printed cells, and claims become findings."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from multilab import claims
from multilab.claims import Claim, ClaimsError, Erratum, Evidence
from multilab.claims import checks as checks_module
from multilab.claims import paper as papers
from multilab.claims.agreement import Agreement
from multilab.claims.checks import check_claims, check_errata, run_counterfactuals
from multilab.claims.evidence import Finding, published_evidence
from multilab.claims.paper import find
from multilab.claims.published import Aliases, ColumnRule, Derived, mask, printed_number
from multilab.claims.statements import read_counterfactuals, read_errata, touched
from multilab.claims.verdicts import COLUMNS, NO_RESULT, VERDICTS, judge, summarised
from multilab.experiments.ledger import with_test_sets
from multilab.experiments.plan import study_cells
from multilab.experiments.study import load_study
from multilab.metrics import find_metric
from multilab.metrics.conventions import PRESETS

FIVE = ("imldf", "lskmddm", "lwmf", "mlekelm", "mlwse")  # a paper that is begun has no errata yet
CHECKS = {name: check for paper in papers.paper_names() for name, check in find(paper).checks.items()}
NOTHING = pd.DataFrame(columns=["dataset", "method", "metric", "mean", "std"])


def run_check(name, arguments, evidence):
    return checks_module.run_check(name, arguments, evidence, CHECKS)


def cell(printed="0.50", std=np.nan, direction="max", **columns):
    named = {"table": "1", "dataset": "d", "method": "m", "metric": "jaccard", **columns}
    mean = float(printed) if printed else np.nan
    return pd.DataFrame(
        [{**named, "mean": mean, "std": std, "direction": direction, "printed_mean": printed or np.nan}]
    )


def ours(mean, std=np.nan, **columns):
    return pd.DataFrame([{"dataset": "d", "method": "m", "metric": "jaccard", "mean": mean, "std": std, **columns}])


def verdict(*arguments, **named):
    return judge(*arguments, **named)["verdict"].tolist()[0]


# ---- the data


def test_every_paper_has_cells_errata_and_an_alias_table():
    assert set(FIVE) <= set(papers.paper_names())
    for paper in FIVE:
        cells = find(paper).published
        assert not cells.duplicated(["table", "dataset", "method", "metric"]).any()
        assert set(cells["direction"].dropna()) <= {"min", "max"}
        assert find(paper).errata
        assert find(paper).aliases is not None


def test_the_lskmddm_tables_have_rows_and_columns_but_no_numbers():
    cells = find("lskmddm").published
    assert cells["mean"].isna().all()
    assert cells["printed_mean"].isna().all()
    shape = cells.groupby("table").agg(sets=("dataset", "nunique"), methods=("method", "nunique"), n=("metric", "size"))
    assert shape.to_dict("index") == {
        "2": {"sets": 2, "methods": 2, "n": 12},
        "3": {"sets": 6, "methods": 7, "n": 126},
        "4": {"sets": 5, "methods": 7, "n": 105},
        "5": {"sets": 6, "methods": 7, "n": 168},
        "6": {"sets": 5, "methods": 6, "n": 120},
        "7": {"sets": 2, "methods": 5, "n": 40},
    }


def test_printed_datasets_are_cards_but_for_derived_rows():
    from multilab.datasets import cards

    for paper in papers.paper_names():
        cells = find(paper).published
        derived = claims.published.any_of(cells, [rule.where for rule in find(paper).aliases.derived])
        assert set(cells.loc[~derived, "dataset"]) <= set(cards()), paper


@pytest.mark.parametrize("paper", ["imldf", "lskmddm", "lwmf", "mlekelm", "mlwse"])
def test_an_erratum_is_complete_and_touches_cells_or_names_a_passage(paper):
    cells = find(paper).published
    for erratum in find(paper).errata:
        assert erratum.id.startswith(f"{paper}-")
        assert erratum.printed, erratum.id
        assert erratum.right, erratum.id
        assert erratum.why.endswith("."), erratum.id
        assert erratum.source, erratum.id
        assert ("location" in erratum.where) != mask(cells, erratum.where).any(), erratum.id
        assert set(erratum.where) != {"location"} or erratum.effect == "note"


@pytest.mark.parametrize("paper", ["imldf", "lskmddm", "lwmf", "mlekelm", "mlwse"])
def test_an_alias_names_one_of_our_metrics_and_touches_cells(paper):
    cells, known = find(paper).published, find(paper).aliases
    measured = {"fit_seconds", "predict_seconds", "total_seconds", "model_bytes"}
    for column in known.columns:
        assert column.metric in measured or find_metric(column.metric)
        assert column.conventions in {None, *PRESETS}
        assert mask(cells, column.where).any(), column
    for where in (*known.spread, *known.dnf, *(rule.where for rule in known.derived)):
        assert mask(cells, where).any(), where
    assert cells.loc[claims.published.any_of(cells, known.dnf), "mean"].isna().all()


def test_a_printed_direction_is_that_of_our_quantity():
    for paper in papers.paper_names():
        cells = find(paper).published
        cells = cells[~claims.published.any_of(cells, [rule.where for rule in find(paper).aliases.derived])]
        names = find(paper).aliases.named(cells)["quantity"].str.partition(".")[0]
        for metric, direction in set(zip(names, cells["direction"].fillna(""), strict=True)):
            if find_metric(metric) and direction:
                assert find_metric(metric).direction == direction, (paper, metric)


def test_the_columns_of_mlwse_are_compared_with_what_they_hold():
    cells = find("mlwse").published
    named = cells.assign(quantity=find("mlwse").aliases.named(cells)["quantity"])
    tables = named[named["table"].isin(["4", "5", "6"])]
    own = tables[tables["method"].isin(["mlwse_l1", "mlwse_l21"])]
    assert own.groupby("metric")["quantity"].unique().map(list).to_dict() == {
        "accuracy": ["accuracy_1mHL"],
        "example_f1": ["f1_of_means"],
        "hamming_loss": ["hamming_loss"],
        "macro_f1": ["macro_f1_example"],
        "micro_f1": ["micro_f1"],
        "ranking_loss": ["ranking_loss.sklearn"],
    }
    assert find("mlwse").tables.quantities("ecc-mulan") == (
        ("example_f1", "mulan"), ("jaccard", "mulan"), ("macro_f1", "mulan"), ("ranking_loss", "mulan"),
    )  # fmt: skip
    literal = "mlwse_l1_literal-as_printed"
    assert find("mlwse").tables.quantities(literal) == (("ranking_loss", "sklearn"),)
    assert find("mlwse").tables.quantities(literal, "sklearn") == ()
    assert find("mlwse").tables.quantities("mlknn") == ()


# ---- verdicts


@pytest.mark.parametrize(
    ("printed", "value", "expected"),
    [
        ("0.50", 0.5049, "match"),
        ("0.50", 0.5051, "better"),
        ("0.500", 0.5049, "better"),
        ("0.50", 0.4951, "match"),
        ("0.50", 0.494, "worse"),
        ("593", 593.4, "match"),
        ("593", 594.0, "better"),
        ("1.705", 1.7045, "match"),  # halfway between two printed numbers
    ],
)
def test_a_match_is_equal_at_the_printed_decimals(printed, value, expected):
    assert verdict(cell(printed), ours(value)) == expected


def test_trailing_zeros_count_as_decimals():
    assert [printed_number(text).decimals for text in ("0.50", "0.5", "593", "-59.1180")] == [2, 1, 0, 4]
    cells = find("mlwse").published
    assert "0.090" not in set(cells["printed_mean"])
    assert printed_number(cells.loc[cells["table"] == "6", "printed_mean"].iloc[1]).decimals == 4


@pytest.mark.parametrize(
    ("std", "our_std", "value", "expected"),
    [
        (0.03, 0.04, 0.554, "within"),  # over 4 runs: 2 sqrt(.03^2 + .04^2) / 2 = .05, and half a unit .005
        (0.03, 0.04, 0.556, "better"),
        (0.03, np.nan, 0.534, "within"),
        (np.nan, 0.03, 0.466, "within"),
        (np.nan, 0.03, 0.464, "worse"),
        (0.0, 0.0, 0.506, "better"),
        (np.nan, np.nan, 0.506, "better"),
    ],
)
def test_within_needs_a_positive_standard_error(std, our_std, value, expected):
    assert verdict(cell("0.50", std), ours(value, our_std, runs=4)) == expected


def test_a_result_on_one_test_set_has_its_sampling_error():
    for value, expected in ((0.524, "within"), (0.526, "better")):
        judged = judge(cell("0.50"), ours(value, runs=1, sampling=0.01))
        assert judged["verdict"].tolist() == [expected]
        assert judged["uncertainty"].tolist() == [0.01]
    means = judge(cell("0.50", 0.03), ours(0.52, 0.04, runs=1), names=Aliases(runs=9))
    assert means["uncertainty"].tolist() == pytest.approx([np.hypot(0.03 / 3, 0.04)])


def test_averages_are_of_rounded_rows_and_counted_apart():
    rows = [cell(text, dataset=name) for name, text in (("a", "0.10"), ("b", "0.20"), ("mean", "0.15"))]
    printed = pd.concat(rows, ignore_index=True)
    known = pd.concat([ours(0.1049, dataset="a"), ours(0.2049, dataset="b")])
    names = Aliases(derived=(Derived({"dataset": "mean"}, "mean"),))
    judged = judge(printed, known, names=names)
    assert judged["our_mean"].tolist() == pytest.approx([0.1049, 0.2049, 0.15])
    assert judged["group"].tolist() == ["result", "result", "derived"]
    agreement = Agreement.of(judged)
    assert (agreement.cells, agreement.comparable, agreement.agree, agreement.others) == (2, 2, 2, 1)
    assert agreement.median_gap == pytest.approx((0.049 + 0.0245) / 2)
    assert agreement.near == (0.0, 0.0, 1.0)
    assert np.isnan(Agreement.of(judged.iloc[:0]).median_gap)


def test_a_finding_of_parts_holds_in_part():
    outcomes = [(Finding.of(parts, {}).outcome, Finding.of(parts, {}).share) for parts in ([1, 1], [1, 0], [0, 0])]
    assert outcomes == [("holds", (2, 2)), ("holds in part", (1, 2)), ("fails", (0, 2))]
    assert Finding.of(iter([True]), {}).share is None
    assert Finding.of([], {}).outcome == "not testable"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"origin": "theirs"}, "origin must be paper or ours, got 'theirs'"),
        ({"explanation": {"evidence": ["a"]}}, "explanation.cause is missing"),
        (
            {"explanation": {"cause": "c", "verdict": "them"}},
            "verdict must be paper, protocol, ",
        ),
        ({"explanation": {"cause": "c", "evidence": "a"}}, "evidence must be a list"),
        ({"explanation": {"cause": "c", "because": "a"}}, "unknown key 'because'; did you mean 'cause'"),
    ],
)
def test_a_claim_with_an_unclear_explanation_is_refused(block, message):
    with pytest.raises(ClaimsError, match=message):
        Claim.from_mapping({"id": "C", "sentence": "s", "check": "beats", **block})


def test_a_claim_that_cannot_be_tested_needs_no_check():
    claim = Claim.from_mapping({"id": "C", "sentence": "s", "untestable": "no settings are given; six were tried"})
    (entry,) = check_claims([claim], evidence(THREE), evidence(THREE))
    assert (entry["outcome"], entry["reason"]) == ("not testable", "no settings are given; six were tried")
    assert "in_paper" not in entry
    measured = Claim.from_mapping({"id": "C", "sentence": "s", "check": "average_rank_order", "untestable": "why",
                                   "metrics": ["hamming_loss"], "order": ["a", "b"]})  # fmt: skip
    (entry,) = check_claims([measured], evidence({"a": THREE["a"]}))
    assert (entry["outcome"], entry["reason"]) == ("not testable", "why")
    (entry,) = check_claims([measured], evidence(THREE))
    assert entry["outcome"] == "holds"  # what runs decides


def test_counterfactuals_run_and_say_what_they_explain():
    block = {"id": "x", "explains": ["C1"], "setting": "b is run as a", "shows": "a is first", "expect": "holds",
             "check": "average_rank_order", "metrics": ["hamming_loss"], "order": ["a", "b"]}  # fmt: skip
    (ran,) = run_counterfactuals(read_counterfactuals([block], "here"), evidence(THREE), evidence(THREE))
    assert (ran["outcome"], ran["expect"], ran["explains"]) == ("holds", "holds", ["C1"])
    assert ran["numbers"]
    reversed_three = {"a": THREE["b"], "b": THREE["a"]}
    both = read_counterfactuals([block, {**block, "id": "y", "on": "printed"}], "here")
    outcomes = [one["outcome"] for one in run_counterfactuals(both, evidence(THREE), evidence(reversed_three))]
    assert outcomes == ["holds", "fails"]  # each on its own numbers
    for changed, message in (
        ({"explains": "C1"}, "explains must be a list"),
        ({"expect": "maybe"}, "expect must be holds, holds in part, fails or depends on the limit"),
        ({"on": "theirs"}, "on must be ours or printed"),
        ({"setting": ""}, "setting must be text that is not empty"),
    ):
        with pytest.raises(ClaimsError, match=message):
            read_counterfactuals([{**block, **changed}], "here")
    with pytest.raises(ClaimsError, match="two counterfactuals have the id 'x'"):
        read_counterfactuals([block, block], "here")


@pytest.mark.parametrize(
    ("name", "arguments", "outcome"),
    [
        ("mean_of_rows", {"where": {"method": "m"}, "datasets": ["a", "b"], "right": "0.15"}, "holds"),
        ("mean_of_rows", {"where": {"method": "m"}, "datasets": ["a", "b"], "right": "0.16"}, "fails"),
        ("mean_of_rows", {"where": {"method": "m"}, "datasets": ["a", "b"], "right": "0.15", "wrong": "0.15"}, "fails"),
        ("mean_of_rows", {"where": {"method": "m"}, "datasets": ["a"], "right": "0.4", "changed": {"a": 0.4}}, "holds"),
        ("multiples_of", {"where": {"method": "m"}, "n": 10}, "holds"),
        ("multiples_of", {"where": {"method": "m"}, "n": 7, "fits": False}, "holds"),
        ("multiples_of", {"where": {"method": "m"}, "n": 7, "none": True}, "holds"),
        ("value_printed", {"where": {"method": "m", "dataset": "a"}, "value": "0.10"}, "holds"),
        ("value_printed", {"where": {"method": "m", "dataset": "x"}, "value": "0.10"}, "not testable"),
        ("columns_equal", {"methods": ["m", "k"], "metrics": ["jaccard"], "at_least": 1}, "holds"),
        ("columns_equal", {"methods": ["m", "k"], "metrics": ["jaccard"], "at_least": 2}, "fails"),
        ("values_between", {"methods": ["m", "k"], "metrics": ["jaccard"], "low": 0.1, "high": 0.3}, "holds"),
        ("values_between", {"methods": ["m", "k"], "metrics": ["jaccard"], "low": 0.2}, "fails"),
        ("values_between", {"methods": ["m"], "metrics": ["jaccard"], "high": 0.2}, "holds"),
        ("values_between", {"methods": ["m", "k"], "metrics": ["jaccard"], "high": 0.2}, "fails"),
        ("values_between", {"methods": ["k"], "metrics": ["jaccard"], "datasets": ["b"], "low": 0.2}, "holds"),
        ("values_between", {"methods": ["k"], "metrics": ["jaccard"], "datasets": ["c"], "low": 0.2}, "not testable"),
    ],
)
def test_checks_of_arithmetic(name, arguments, outcome):
    cells = [
        cell(text, method=method, dataset=dataset)
        for method, dataset, text in (("m", "a", "0.10"), ("m", "b", "0.20"), ("k", "a", "0.10"), ("k", "b", "0.30"))
    ]
    known = published_evidence(pd.concat(cells))
    assert run_check(name, arguments, known).outcome == outcome


def test_a_range_needs_a_bound():
    with pytest.raises(ClaimsError, match="`low`, `high` or both"):
        run_check("values_between", {"methods": ["m"], "metrics": ["jaccard"]}, published_evidence(cell()))
    found = run_check(
        "values_between", {"methods": ["m"], "metrics": ["jaccard"], "high": 0.75}, published_evidence(cell())
    )
    assert found.sentence == "All values of Jaccard of m on all datasets are from minus infinity to 0.75."


PRINTED = [
    cell(text, dataset=dataset, metric=metric)
    for metric, texts in (("accuracy", ("0.50", "0.20")), ("micro_f1", ("0.40", "")))
    for dataset, text in zip("xy", texts, strict=True)
]


def test_published_cells_are_evidence():
    known = Evidence(NOTHING, published=pd.concat(PRINTED))
    assert known.printed("m", "accuracy", ["y", "x"])["mean"].to_dict() == {"y": 0.2, "x": 0.5}
    assert known.printed("m", "accuracy", ["x"])["printed_mean"].tolist() == ["0.50"]
    for arguments in (("m", "micro_f1", ["x", "y"]), ("k", "accuracy", ["x"]), ("m", "accuracy", ["z"])):
        with pytest.raises(claims.NotYet, match=f"not printed: {arguments[1]} of {arguments[0]} on"):
            known.printed(*arguments)
    with pytest.raises(claims.NotYet, match="not part"):
        Evidence(NOTHING).printed("m", "accuracy", ["x"])


@pytest.mark.parametrize(
    ("arguments", "outcome", "nearer"),
    [
        ({"others": ["far"], "at_least": 2}, "holds", 2),
        ({"others": ["far"], "at_least": 3}, "fails", 2),
        ({"others": ["far", "tied"], "at_least": 2}, "fails", 1),
        ({"others": ["tied"], "at_least": 1}, "holds", 1),
        ({"others": {"near": "micro_f1"}, "at_least": 2}, "holds", 2),
        ({"others": ["near"], "at_least": 1}, "fails", 0),
        ({"others": ["none"], "at_least": 1}, "open", None),
        ({"others": ["far"], "datasets": ["x", "z"], "at_least": 1}, "open", None),
        ({"others": ["far"], "metrics": {"accuracy": "jaccard", "micro_f1": "micro_f1"}, "datasets": ["x"],
          "at_least": 1}, "holds", 1),
    ],
)  # fmt: skip
def test_nearer_to_the_published_cells(arguments, outcome, nearer):
    """Printed are accuracies .50 and .20, and a micro F1 of .40; accuracy is our Jaccard index."""
    values = {"near": (0.52, 0.19), "far": (0.6, 0.1), "tied": (0.47, 0.21)}
    jaccard = evidence({m: {"x": [a], "y": [b]} for m, (a, b) in values.items()}, "jaccard").scores
    f1 = evidence({m: {"x": [0.4 if m == "far" else 0.9], "y": [0.9]} for m in values}, "micro_f1").scores
    known = Evidence(pd.concat([jaccard, f1]), published=pd.concat(PRINTED))
    given = {"printed": "m", "method": "near", "metrics": {"accuracy": "jaccard"}, "datasets": ["x", "y"], **arguments}
    result = run_check("nearer_to_published", given, known)
    assert (result.outcome, result.numbers.get("nearer")) == (outcome, nearer)
    if given["others"] == {"near": "micro_f1"}:  # .9 is off by .4 of .5 and .7 of .2
        assert result.numbers["median gap of near"] == "4.50%"
        assert result.numbers["median gap of near by micro_f1"] == "215.00%"
        assert "not nearer" not in result.numbers
    if arguments["others"] == ["far", "tied"]:
        assert result.numbers["not nearer"] == "y"
    if arguments == {"others": ["far"], "at_least": 2}:
        assert result.sentence == (
            "By accuracy (our Jaccard), on x, y: our near is nearer to the published m than each of far, in at least 2 "
            "cells; a cell is one dataset and one measure."
        )


def test_nearer_than_nothing_is_refused():
    given = {"printed": "m", "method": "a", "metrics": ["accuracy"], "datasets": ["x"], "at_least": 1, "others": []}
    with pytest.raises(ClaimsError, match="`others` names at least one column"):
        run_check("nearer_to_published", given, Evidence(NOTHING, published=pd.concat(PRINTED)))


def test_an_erratum_has_a_check_or_says_why_not():
    check = {"name": "value_printed", "where": {"method": "m"}, "value": "0.5"}
    entries = [{"id": "e-1", "check": check}, {"id": "e-2", "no_check": "a figure"}]
    known = published_evidence(cell())
    findings = check_errata(read_errata(entries, "here"), known)
    assert {name: finding.outcome for name, finding in findings.items()} == {"e-1": "holds"}
    with pytest.raises(ClaimsError, match="either check or no_check"):
        check_errata(read_errata([{"id": "e-3"}], "here"), known)
    with pytest.raises(ClaimsError, match=r"check must be a mapping"):
        read_errata([{"id": "e-4", "check": "value_printed"}], "here")
    with pytest.raises(ClaimsError, match=r"e-5: check\.on must be ours or printed, got 'our'"):
        read_errata([{"id": "e-5", "check": {**check, "on": "our"}}], "here")
    (erratum,) = read_errata([{"id": "e-6", "check": {**check, "on": "ours"}}], "here")
    assert erratum.arguments == {"where": {"method": "m"}, "value": "0.5"}


@pytest.mark.parametrize(
    ("direction", "value", "expected"),
    [
        ("max", 0.6, "better"),
        ("max", 0.4, "worse"),
        ("min", 0.6, "worse"),
        ("min", 0.4, "better"),
        (np.nan, 0.6, "differs"),
    ],
)
def test_better_and_worse_need_a_direction(direction, value, expected):
    assert verdict(cell(direction=direction), ours(value)) == expected


def test_not_comparable_needs_an_erratum_that_says_so():
    forbids = Erratum("x-1", {"method": "m"}, "a", "b", "Another quantity.", "not_comparable")
    notes = Erratum("x-2", {"dataset": ["d"]}, "0.50", "0.61", "A slip.")
    row = judge(cell(), ours(0.5), [notes, forbids]).iloc[0]
    assert (row["verdict"], row["reason"], row["erratum"]) == ("not comparable", "Another quantity.", "x-1 x-2")
    assert row["our_mean"] == 0.5
    row = judge(cell(), ours(0.6099), [notes]).iloc[0]
    assert row["verdict"] == "better"
    assert "ours equals 0.61, see x-2" in row["reason"]
    assert row["erratum"] == "x-2"
    assert verdict(cell(), ours(0.5), [Erratum("x-3", {"method": "n"}, effect="not_comparable")]) == "match"
    assert verdict(cell(), ours(0.5), [Erratum("x-4", {"location": "Fig. 1"}, effect="not_comparable")]) == "match"


def test_not_run_says_why():
    table = judge(cell(), NOTHING, unavailable={"d": "nobody has it"})
    assert table[["verdict", "reason"]].iloc[0].tolist() == ["not run", "data not available: nobody has it"]
    dnf = Aliases(dnf=({"dataset": "d"},))
    assert judge(cell(None), NOTHING, (), dnf)["reason"].tolist() == ["did not finish in the paper either"]
    table = judge(cell(), NOTHING)
    assert table["verdict"].tolist() == ["not run"]
    assert table["reason"].iloc[0] == NO_RESULT
    assert verdict(cell(None), ours(0.4), (), dnf) == "not printed"
    images = [Erratum("x-1", {}, why="The table is an image.", effect="not_read")]
    assert verdict(cell(None), ours(0.4), images, dnf) == "not read"
    assert verdict(cell(), ours(0.5), images) == "match"


def test_a_column_is_compared_with_the_quantity_of_its_alias():
    names = Aliases(
        names={"method": {"m": "mlknn"}},
        columns=(ColumnRule({"method": "m"}, "coverage", "mulan", 0.5), ColumnRule({}, "coverage")),
    )
    measured = pd.concat([ours(1.0, 0.2, method="mlknn", metric="coverage.mulan"), ours(7.0, metric="coverage")])
    row = judge(cell(), measured, (), names).iloc[0]
    assert [row[key] for key in ("our_metric", "our_mean", "our_std")] == ["coverage.mulan", 0.5, 0.1]
    row = judge(cell(), ours(1.0, method="mlknn", metric="coverage"), (), names, "mulan").iloc[0]
    assert [row["our_metric"], row["our_mean"]] == ["coverage", 0.5]


def test_a_spread_of_data_is_no_uncertainty():
    assert verdict(cell("0.50", 0.3), ours(0.6)) == "within"
    assert verdict(cell("0.50", 0.3), ours(0.6), (), Aliases(spread=({"dataset": "d"},))) == "better"


def test_derived_cells_follow_from_our_results():
    rows = [cell(dataset=d, method=m) for d in "abc" for m in "xyz"]
    extra = [cell("0.30", dataset="mean", method="y"), cell("2.00", dataset="F", direction=np.nan, table="2")]
    rank = cell("1.00", dataset="rank", method="x", direction="min", table="2")
    printed = pd.concat([*rows, *extra, rank], ignore_index=True)
    values = {"a": (3, 2, 1), "b": (3, 2, 1), "c": (2, 3, 1)}
    measured = [ours(v / 10, dataset=d, method=m) for d in "abc" for m, v in zip("xyz", values[d], strict=True)]
    names = Aliases(
        derived=(
            Derived({"dataset": "mean"}, "mean"),
            Derived({"dataset": "F"}, "friedman", ("1",)),
            Derived({"dataset": "rank"}, "average_rank", ("1",)),
        )
    )
    table = judge(printed, pd.concat(measured), (), names).set_index("dataset")
    assert table.loc["mean", "our_mean"] == pytest.approx(0.7 / 3)
    assert table.loc["mean", "our_std"] == pytest.approx(np.std([0.2, 0.2, 0.3], ddof=1))
    assert table.loc["rank", "our_mean"] == pytest.approx(4 / 3)
    # chi2 = 12 3 / 12 ((4/3)^2 + (5/3)^2 + 3^2 - 12) = 14/3, F = 2 chi2 / (6 - chi2) = 7
    assert table.loc["F", "our_mean"] == pytest.approx(7.0)
    fewer = judge(printed, pd.concat(measured[1:]), (), names).set_index("dataset")
    assert fewer.loc[["F", "rank"], "our_mean"].isna().all()


def test_two_values_for_one_cell_are_refused():
    with pytest.raises(ClaimsError, match="two of our values for d, m, jaccard"):
        judge(cell(), pd.concat([ours(0.1), ours(0.2)]))


def test_published_values_compared_with_themselves_match():
    for paper in ("mlwse", "mlekelm", "lwmf", "imldf"):
        cells = find(paper).published
        named = find(paper).aliases.named(cells)
        same = cells.assign(dataset=named["dataset"], method=named["method"], metric=named["quantity"])
        same["mean"] /= named["scale"]
        judged = claims.judge_tables(
            find(paper).tables, same.dropna(subset="mean").drop_duplicates(["dataset", "method", "metric"])
        )
        assert list(judged.columns) == list(COLUMNS)
        assert set(judged["verdict"]) <= set(VERDICTS)
        counts = judged["verdict"].value_counts().to_dict()
        forbidden = sum(any(e.effect == "not_comparable" for e in t) for t in touched(cells, find(paper).errata))
        assert counts.pop("not comparable", 0) == forbidden
        assert counts.pop("not run", 0) == (6 if paper == "mlwse" else 0)
        differing = judged[~judged["verdict"].isin(["match", "not comparable", "not run"])]
        # what does not follow from the other printed cells: averages of ML-EKELM's ML-RBF
        expected = {"mlwse": 0, "mlekelm": 2, "lwmf": 0, "imldf": 0}[paper]
        assert len(differing) == expected, differing
        assert differing["erratum"].str.len().min() > 0 or not expected


def test_every_cell_that_is_not_comparable_cites_an_erratum_and_they_are_few():
    shares = {}
    for paper in FIVE:
        judged = claims.judge_tables(find(paper).tables, NOTHING)
        rows = judged[judged["verdict"] == "not comparable"]
        forbid = {e.id for e in find(paper).errata if e.effect == "not_comparable"}
        assert all(forbid & set(cited.split()) for cited in rows["erratum"])
        shares[paper] = len(rows)
    assert shares == {"mlwse": 81, "mlekelm": 84, "lwmf": 0, "imldf": 27, "lskmddm": 0}


def test_summaries_are_means_and_sample_deviations():
    scores = pd.DataFrame(
        {"dataset": "d", "split": [0, 1, 0], "method": list("mmn"), "metric": "x", "value": [1.0, 3.0, 5.0]}
    )
    table = summarised(scores).set_index("method")
    assert table.loc["m", ["mean", "std"]].tolist() == [2.0, pytest.approx(np.sqrt(2))]
    assert table.loc["n", "mean"] == 5.0
    assert np.isnan(table.loc["n", "std"])


def test_runs_on_the_same_test_rows_are_one_run_of_the_uncertainty():
    scores = pd.DataFrame(
        {"dataset": "d", "split": range(4), "method": "m", "metric": "x", "value": [1.0, 3.0, 5.0, 7.0]}
    )
    folds_twice = summarised(scores.assign(test_set=[0, 1, 0, 1])).iloc[0]
    assert folds_twice[["mean", "std", "runs"]].tolist() == [4.0, pytest.approx(np.sqrt(2)), 2]  # means 3 and 5
    for test_sets in ([0, 1, 2, 3], [0, 0, 0, 0]):
        kept = summarised(scores.assign(test_set=test_sets)).iloc[0]
        assert kept[["std", "runs"]].tolist() == [pytest.approx(scores["value"].std()), 4]


@pytest.mark.data
def test_mlwse_as_printed_has_five_test_sets_not_ten(benchmark_data):
    study = load_study("mlwse")
    splits = pd.DataFrame({"dataset": "flags", "method": "mlwse_l1_literal-as_printed", "split": range(10)})
    cells = {cell.split_ref.split: cell.split_ref.digest for cell in study_cells(study, "mlwse_l1_literal-as_printed")}
    table = with_test_sets(study, splits)
    assert table["test_set"].tolist() == [0, 1, 2, 3, 4] * 2
    assert [cells[i] for i in range(5)] == [cells[i] for i in range(5, 10)]


# ---- claims


def evidence(values, metric="hamming_loss", **more):
    """Scores from {method: {dataset: [values over splits]}}."""
    rows = [(d, s, m, metric, v) for m, sets in values.items() for d, vs in sets.items() for s, v in enumerate(vs)]
    return Evidence(pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"]), **more)


THREE = {
    "a": {"x": [0.1, 0.3], "y": [0.1, 0.1], "z": [0.4, 0.4]},
    "b": {"x": [0.3, 0.3], "y": [0.2, 0.2], "z": [0.3, 0.3]},
}


def test_means_are_of_the_splits_that_all_methods_have():
    ours = evidence({"a": {"x": [0.1, 0.3, 0.8], "y": [0.1, 0.1]}, "b": {"x": [0.2, 0.2], "y": [np.nan, 0.3]}})
    table = ours.means("hamming_loss", ["a", "b"])
    assert table.loc["x"].tolist() == pytest.approx([0.2, 0.2])
    assert table.loc["y", "a"] == pytest.approx(0.1)
    assert np.isnan(table.loc["y", "b"])  # it was run and did not finish
    assert ours.means("hamming_loss", ["a"]).loc["x", "a"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("name", "arguments", "outcome"),
    [
        ("best_average_rank", {"best": ["a"], "methods": ["a", "b"]}, "holds"),
        ("best_average_rank", {"best": ["b"], "methods": ["a", "b"]}, "fails"),
        ("best_average_rank", {"best": ["a"], "methods": ["a", "b", "c"]}, "open"),
        ("average_rank_order", {"order": ["a", "b"]}, "holds"),
        ("average_rank_order", {"order": ["b", "a"]}, "fails"),
        ("wins_minus_losses", {"methods": ["a"], "against": ["b"]}, "holds"),
        ("wins_minus_losses", {"methods": ["a"], "against": ["b"], "most": True}, "holds"),
        ("wins_minus_losses", {"methods": ["b"], "against": ["a"]}, "fails"),
        ("wins_minus_losses", {"methods": ["a"], "against": ["b"], "datasets": ["x", "z"]}, "fails"),
        ("friedman_rejects", {"methods": ["a", "b"]}, "fails"),
        ("best_share", {"method": "a", "methods": ["a", "b"], "at_least": 2}, "holds"),
        ("best_share", {"method": "a", "methods": ["a", "b"], "at_least": 3}, "fails"),
    ],
)
def test_checks_on_ranks_and_wins(name, arguments, outcome):
    result = run_check(name, {"metrics": ["hamming_loss"], **arguments}, evidence(THREE))
    assert result.outcome == outcome, result
    if outcome == "open":
        assert result.reason == "not run, or not measured by hamming_loss: c"
        assert [(one.column, one.dataset, one.splits) for one in result.missing] == [("c", d, 2) for d in "xyz"]


def test_most_is_more_than_half_of_all_cells():
    ties = {"a": {"x": [0.1], "y": [0.2], "z": [0.2]}, "b": {"x": [0.2], "y": [0.2], "z": [0.2]}}
    arguments = {"methods": ["a"], "against": ["b"], "metrics": ["hamming_loss"]}
    assert run_check("wins_minus_losses", arguments, evidence(ties)).outcome == "holds"
    assert run_check("wins_minus_losses", {**arguments, "most": True}, evidence(ties)).outcome == "fails"


def test_friedman_rejects_where_all_datasets_agree():
    values = {m: {d: [i + 0.01 * k] for k, d in enumerate("uvwxyz")} for i, m in enumerate("abcd")}
    result = run_check("friedman_rejects", {"metrics": ["hamming_loss"], "methods": list("abcd")}, evidence(values))
    assert result.outcome == "holds"
    # F(3, 15) at the level 0.05; 2.569 sqrt(4 * 5 / (6 * 6))
    assert result.numbers == {"hamming_loss": float("inf"), "F_crit": 3.287, "CD": 1.915}


def test_a_share_of_best_cells_says_how_often_the_method_is_alone_there():
    values = {"a": {"x": [0.1], "y": [0.2], "z": [0.4]}, "b": {"x": [0.3], "y": [0.2], "z": [0.3]}}
    arguments = {"metrics": ["hamming_loss"], "method": "a", "methods": ["a", "b"], "at_least": 2}
    numbers = run_check("best_share", arguments, evidence(values)).numbers
    assert numbers == {"reached": 2, "alone first": 1, "cells": 3}


def test_a_method_that_lacks_a_dataset_makes_a_claim_open():
    values = {"a": {"x": [0.1], "y": [0.1]}, "b": {"x": [0.2]}}
    result = run_check(
        "best_average_rank", {"metrics": ["hamming_loss"], "best": ["a"], "methods": ["a", "b"]}, evidence(values)
    )
    assert (result.outcome, result.reason) == ("open", "not run: b on y")


def test_beats_is_a_signed_rank_test_over_datasets():
    sets = "stuvwxyz"
    values = {"a": {d: [0.1] for d in sets}, "b": {d: [0.2 + 0.01 * i] for i, d in enumerate(sets)}}
    arguments = {"methods": ["a"], "against": ["b"], "metrics": ["hamming_loss"]}
    assert run_check("beats", arguments, evidence(values)).outcome == "holds"
    assert run_check("beats", {**arguments, "methods": ["b"], "against": ["a"]}, evidence(values)).outcome == "fails"
    assert run_check("beats", {**arguments, "datasets": ["s", "t"]}, evidence(values)).outcome == "not testable"
    alternating = {"a": {d: [0.1 if i % 2 else 0.3] for i, d in enumerate(sets)}, "b": {d: [0.2] for d in sets}}
    assert run_check("beats", arguments, evidence(alternating)).outcome == "fails"  # it is not significant


def test_checks_on_curves():
    table = pd.DataFrame(
        {"method": "m", "dataset": "d", "iteration": [1, 100, 200, 300], "gap": [1.0, 0.1, 1e-3, 1e-4]}
    )
    known = Evidence(evidence(THREE).scores, tables={"convergence": table})
    arguments = {"method": "m", "table": "convergence", "x": "iteration", "y": "gap"}
    assert run_check("monotone_in", {**arguments, "direction": "down"}, known).outcome == "holds"
    assert run_check("monotone_in", arguments, known).outcome == "fails"


def test_all_of_holds_in_part_with_one_part_and_is_open_while_one_is():
    holds = {"check": "average_rank_order", "metrics": ["hamming_loss"], "order": ["a", "b"]}
    fails = {**holds, "order": ["b", "a"]}
    open_ = {**holds, "order": ["a", "c"]}
    for parts, outcome in (
        ([holds], "holds"),
        ([holds, fails], "holds in part"),
        ([fails, fails], "fails"),
        ([holds, open_], "open"),
        ([open_, fails], "open"),
    ):
        found = run_check("all_of", {"parts": parts}, evidence(THREE))
        assert found.outcome == outcome
        assert found.sentence.count("rise strictly in the order") == len(
            {part["order"][0] + part["order"][1] for part in parts if part is not open_}
        )


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"id": "C1", "sentence": "s", "check": "best_rank"}, "there is no check 'best_rank'"),
        ({"id": "C1", "sentence": "s", "check": "all_of", "part": []}, "claim C1: all_of has parts"),
        ({"id": "C1", "check": "all_of"}, "claim C1: sentence is missing"),
        (
            {"id": "C1", "sentence": "s", "check": "beats", "methods": ["a"]},
            "claim C1: check beats: argument 'against' is missing",
        ),
        ({"id": "C1", "sentence": "s", "check": "all_of", "parts": [{"check": "beat"}]}, "claim C1: .*'beat'"),
        ({"id": "C1", "sentence": "s", "check": "beats", "in_paper": True}, "in_paper must be false or arguments"),
    ],
)
def test_a_claim_that_is_not_well_formed_is_refused(claim, message):
    with pytest.raises(ClaimsError, match=message):
        checks_module.verify([Claim.from_mapping(claim)], CHECKS)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("beets", {}, "erratum e: there is no check 'beets'"),
        ("value_printed", {"where": {}}, "erratum e: check value_printed: argument 'value' is missing"),
        ("value_printed", {"where": {}, "value": "1", "n": 3}, "erratum e: check value_printed: unknown argument 'n'"),
        ("value_printed", {"where": {}, "valu": "1"}, "unknown argument 'valu'; did you mean 'value'"),
        ("value_printed", {"where": {}, "value": 1}, "erratum e: check value_printed: value must be text, got 1"),
        ("all_of", {}, "erratum e: all_of has parts, not nothing"),
        ("all_of", {"parts": []}, "erratum e: all_of has parts, not nothing"),
        ("all_of", {"parts": [{"id": "a"}]}, "erratum e: a part of all_of is {check"),
        ("all_of", {"parts": [{"check": "all_of", "parts": [{"check": "beets"}]}]}, "erratum e: .*'beets'"),
    ],
)
def test_a_check_that_cannot_be_run_is_refused_in_one_line(name, arguments, message):
    with pytest.raises(ClaimsError, match=message) as error:
        checks_module.verify_check("erratum e", name, arguments, CHECKS)
    assert "\n" not in str(error.value)
    checks_module.verify_check("erratum e", "value_printed", {"where": {}, "value": "1"}, CHECKS)


def test_claims_of_mlwse_without_results_are_open_but_checked_in_the_paper():
    statements = find("mlwse").claims
    assert {claim.id for claim in statements if claim.origin == "paper"} >= {f"C{i}" for i in range(1, 23)}
    paper = claims.published_evidence(find("mlwse").published)
    results = {f["id"]: f for f in check_claims(statements, evidence({}), paper, CHECKS)}
    assert {f["outcome"] for f in results.values()} == {"open"}
    assert all(f["reason"] for f in results.values())
    printed = {name: f["in_paper"]["outcome"] for name, f in results.items() if "in_paper" in f}
    assert printed == {
        "C1": "holds", "C2": "holds", "C3": "holds", "C4": "holds", "C10": "depends on the limit",
        "C11": "holds in part", "C12": "holds", "C13": "holds", "C14": "holds", "C16": "holds", "C17": "fails",
        "C18": "holds in part", "C19": "holds", "C20": "holds", "C21": "holds in part",
    }  # fmt: skip
    wins = [
        results["C12"]["in_paper"][f"{m} against {c}"]
        for m in ("mlwse_l1", "mlwse_l21")
        for c in ("ebr", "ecc", "eps", "rakel", "cde")
    ]
    assert wins == ["55-23", "55-23", "60-18", "61-16", "56-16", "58-18", "57-20", "63-14", "65-11", "60-11"]
    wins = [results["C13"]["in_paper"][f"{m} against {c}"] for m in ("mlwse_l1", "mlwse_l21") for c in ("adaboost_mh",)]
    assert wins == ["75-3", "76-2"]
    assert json.loads(json.dumps(list(results.values())))


# ---- the study


@pytest.fixture
def small_study(tmp_path, monkeypatch, checkout):
    """A study of two methods on synthetic data that is compared with a paper, in a folder of its own."""
    shutil.copytree(checkout / "conf", tmp_path / "conf")
    (tmp_path / "conf" / "study" / "small.yaml").write_text(
        """
title: Small
datasets: [scenario1]
methods: [mlkelm, rakel_d]
protocol: kfold3
metrics: [hamming_loss, ranking_loss]
headline: hamming_loss
paper: imldf
"""
    )
    monkeypatch.setenv("MULTILAB_CONF", str(tmp_path / "conf"))
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "reports" / "small"


def test_a_study_writes_its_ledger_and_prints_it(small_study, capsys):
    from multilab.cli import main

    stages = (
        ["train", "--method", "mlkelm"],
        ["train", "--method", "rakel_d"],
        ["evaluate"],
        ["stats"],
        ["report"],
    )
    for stage, *more in stages:
        assert main(["study", stage, "--study", "small", *more]) == 0
    scores = pd.read_csv(small_study / "scores.csv.gz")
    measured = scores.groupby("method")["metric"].agg(set)
    assert "coverage.lamda" in measured["rakel_d"]  # the paper prints RAkEL, not ML-KELM
    assert "coverage.lamda" not in measured["mlkelm"]
    cells = pd.read_csv(small_study / "cells.csv", dtype=str)
    assert list(cells.columns) == list(COLUMNS)
    assert len(cells) == len(find("imldf").published)
    results = json.loads((small_study / "claims.json").read_text())
    assert [claim["id"] for claim in results] == [claim.id for claim in find("imldf").claims]
    assert {claim["outcome"] for claim in results} == {"open"}
    page = (small_study / "index.html").read_text()
    head = page[: page.index("</header>")]
    assert 'not comparable <span class="hint">8.4 %</span>' in head
    assert '<b>12</b> open <span class="hint"><a href="#claim-C4.1">C4.1</a>' in head
    capsys.readouterr()
    assert main(["study", "claims", "--study", "small"]) == 0
    output = capsys.readouterr().out
    assert "342 published cells of the paper imldf" in output
    assert "27    7.9%  not comparable" in output
    assert "315 have no excuse yet" in output
    assert "could be compared" not in output  # no cell of the two methods has data
    line = next(line for line in output.splitlines() if line.lstrip().startswith("C4.1 "))
    assert line.split(maxsplit=3) == ["C4.1", "holds", "open", line[(sentence := line.index("iMLDF")) :]]
    assert " " * sentence + "not run, or not measured by hamming_loss: rf_pct" in output
    assert "because (unknown): Not known. " in output
    assert "{{" not in output


def test_the_ledger_of_a_study_that_was_not_run_says_what_to_do(tmp_path, monkeypatch, capsys):
    from multilab.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["study", "claims", "--study", "mlwse"]) == 0
    output = capsys.readouterr().out
    assert "multilab study run --study mlwse`" in output
    assert output.count("not checked yet") == len(find("mlwse").claims)
    assert main(["study", "claims", "--study", "quick"]) == 2
    assert "study quick has no paper" in capsys.readouterr().err


def test_the_ledger_fills_in_the_numbers_of_its_texts(capsys):
    from multilab.cli import main

    assert main(["study", "claims"]) == 0
    output = capsys.readouterr().out
    assert output.count("claims of the paper") == len(FIVE)
    assert "because (" in output
    assert "{{" not in output
    assert "(?)" not in output


@pytest.mark.data
@pytest.mark.parametrize(("paper", "tables", "differing"), [("mlwse", ["1", "2"], 2), ("mlekelm", ["1"], 0)])
def test_the_data_are_those_the_papers_describe(benchmark_data, paper, tables, differing):
    from multilab.datasets import load

    printed = find(paper).published
    left_out = [f"yahoo-{name}" for name in ("business", "computers", "education", "recreation", "science", "social")]
    printed = printed[printed["table"].isin(tables) & ~printed["dataset"].isin(left_out)]  # seconds each
    measured = pd.concat([claims.data_rows(load(name)) for name in printed["dataset"].unique()])
    verdicts = judge(printed, measured, find(paper).errata, find(paper).aliases)
    other = verdicts[verdicts["verdict"] != "match"]
    assert len(other) == differing
    assert other["erratum"].str.startswith("mlwse-truncated/").all()
    assert other["reason"].str.contains("ours equals").all()


def test_a_sentence_has_the_arguments():
    ranks = {"metrics": ["hamming_loss"], "best": ["a", "b"], "methods": ["a", "b", "c"]}
    ours = evidence({**THREE, "c": THREE["a"]})
    assert run_check("best_average_rank", ranks, ours).sentence == (
        "By Hamming loss: the best of a, b has a lower average rank than c; ranks among a, b, c, over all datasets."
    )
    wins = {"metrics": ["hamming_loss"], "methods": ["a"], "against": ["b"]}
    assert "wins more cells than it loses against" in run_check("wins_minus_losses", wins, ours).sentence
    most = run_check("wins_minus_losses", {**wins, "most": True}, ours).sentence
    assert "wins more than half of all cells against" in most


def test_a_column_that_is_named_twice_is_one_column():
    ours = evidence(THREE)
    assert ours.means("hamming_loss", ["a", "b", "a"]).equals(ours.means("hamming_loss", ["a", "b"]))
    assert ours.won_and_lost(["hamming_loss"], "a", "a") == (0, 0, 3)


def test_a_finding_describes_the_check_in_the_paper():
    claim = {
        "id": "C",
        "sentence": "s",
        "check": "average_rank_order",
        "metrics": ["hamming_loss"],
        "order": ["a", "b"],
        "in_paper": {"order": ["b", "a"]},
    }
    (result,) = check_claims([Claim.from_mapping(claim)], evidence(THREE), evidence(THREE))
    assert (result["outcome"], result["in_paper"]["outcome"]) == ("holds", "fails")
    assert result["description"].endswith("in the order a, b.")
    assert result["description_in_paper"].endswith("in the order b, a.")
