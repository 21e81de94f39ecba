"""The rules of decision 26: limits, readings, programs, splits, history, and the power of agreement."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from multilab.claims import Aliases, Claim, ClaimsError, Evidence, agreement_by_method
from multilab.claims.checks import check_claims
from multilab.claims.evidence import Finding, words
from multilab.claims.programs import Program, read_programs
from multilab.claims.verdicts import judge, summarised


def evidence(values, splits=None, metric="hamming_loss", seconds=None):
    """Scores from {column: {dataset: [values over splits]}}, and seconds of each run by column."""
    rows = [(d, s, m, metric, v) for m, sets in values.items() for d, vs in sets.items() for s, v in enumerate(vs)]
    rows += [(d, s, m, "total_seconds", seconds[m]) for d, s, m, _, _ in list(rows) if m in (seconds or {})]
    table = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    return Evidence(table, splits=splits or {})


def close(evidence: Evidence, method: str, to: str, at_most: float | None = None) -> Finding:
    """Hold if the losses of two methods are apart by a factor of at most a limit."""
    table = evidence.means("hamming_loss", [method, to])
    ratios = (table[method] / table[to]).to_dict()
    return Finding.at_most(ratios, at_most, ratios, f"{method} is close to {to}.", of="factors")


def first(evidence: Evidence, method: str, methods: list[str]) -> Finding:
    """Hold for each dataset on which a method has the smallest loss."""
    table = evidence.means("hamming_loss", methods)
    return Finding.of(list(table.idxmin(axis=1) == method), {}, f"{words(method)} is best among {words(methods)}.")


CHECKS = {"close": close, "first": first}
TWO = {"a": {"x": [0.2, 0.4], "y": [0.1, 0.1]}, "b": {"x": [0.1, 0.1], "y": [0.2, 0.2]}}


def judged(block, ours, programs=None):
    claim = Claim.from_mapping({"id": "C", "sentence": "s", "quote": "q", **block})
    (entry,) = check_claims([claim], ours, None, CHECKS, programs and read_programs(programs, "here"))
    return entry


# ---- a number that the paper does not give


def test_without_a_limit_of_the_paper_the_limits_are_shown_for_which_the_sentence_holds():
    block = {"check": "close", "method": "a", "to": "b"}
    entry = judged(block, evidence(TWO))
    assert (entry["outcome"], entry["holds_for"]) == ("depends on the limit", "factors of 3 and more")
    for limit, outcome in ((3.1, "holds"), (2, "holds in part"), (0.1, "fails")):
        entry = judged({**block, "at_most": limit}, evidence(TWO))
        assert entry["outcome"] == outcome
        assert "holds_for" not in entry


@pytest.mark.parametrize(
    ("values", "at_most", "at_least"),
    [
        ([2.57361, 2.1], "factors of 2.574 and more", "factors of 2.1 and less"),
        ([2.0], "factors of 2 and more", "factors of 2 and less"),
        ([12.34501, 20.0], "factors of 20 and more", "factors of 12.34 and less"),
        ([-0.00123456, -2], "factors of -0.001234 and more", "factors of -2 and less"),
        ([0.0], "factors of 0 and more", "factors of 0 and less"),
    ],
)
def test_a_limit_is_rounded_so_that_the_sentence_is_true(values, at_most, at_least):
    named = {str(i): value for i, value in enumerate(values)}
    assert Finding.at_most(named, None, {}, of="factors").holds_for == at_most
    assert Finding.at_least(named, None, {}, of="factors").holds_for == at_least


def test_no_value_has_no_limit():
    assert Finding.at_most({"x": np.nan}, None, {}).outcome == "not testable"
    assert Finding.at_least({}, None, {}).outcome == "not testable"


def test_together_with_a_part_that_fails_the_limit_does_not_matter():
    parts = [{"check": "close", "method": "a", "to": "b"}, {"check": "first", "method": "c", "methods": ["a", "c"]}]
    ours = evidence({**TWO, "c": {"x": [0.9, 0.9], "y": [0.9, 0.9]}})
    assert judged({"check": "all_of", "parts": parts[:1]}, ours)["outcome"] == "depends on the limit"
    assert judged({"check": "all_of", "parts": parts}, ours)["outcome"] == "holds in part"


# ---- readings


def test_a_claim_depends_on_the_reading_only_by_readings_that_differ():
    readings = [
        {"text": "of all", "check": "first", "method": "a", "methods": ["a"]},
        {"text": "among two", "check": "first", "method": "a", "methods": ["a", "b"]},
    ]
    entry = judged({"readings": readings}, evidence(TWO))
    assert entry["outcome"] == "depends on the reading"
    assert [(one["text"], one["outcome"]) for one in entry["readings"]] == [
        ("of all", "holds"),
        ("among two", "holds in part"),
    ]
    assert judged({"readings": [readings[0]] * 2}, evidence(TWO))["outcome"] == "holds"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"readings": [{"text": "t", "check": "first"}]}, "claim C: readings are two or more"),
        ({"readings": [{"text": "t", "check": "first"}] * 2, "check": "first"}, "in place of a check"),
        ({"readings": [{"text": "t", "check": "first"}] * 2, "quote": None}, "of a quote"),
        ({"readings": [{"check": "first"}] * 2}, "claim C: reading .*: text is missing"),
        ({"readings": [{"text": "t"}] * 2}, "claim C: reading t: check is missing"),
        ({"check": "first", "history": [{"before": "b"}]}, r"history\[0\].*is missing"),
        ({"check": "first", "program": "best"}, "program must be fair or as_printed, got 'best'"),
    ],
)
def test_a_claim_that_breaks_a_rule_is_refused(block, message):
    with pytest.raises(ClaimsError, match=message):
        Claim.from_mapping({"id": "C", "sentence": "s", "quote": "q", **block})


def test_a_change_of_a_check_is_in_the_ledger():
    change = {"before": "2.5", "after": "3", "why": "w", "outcome_before": "fails", "outcome_after": "holds"}
    entry = judged({"check": "close", "method": "a", "to": "b", "at_most": 3.1, "history": [change]}, evidence(TWO))
    assert entry["history"] == [change]


# ---- programs

PROGRAMS = {
    "as_printed": Program("as printed", {"m": "b", "other": "b"}),
    "fair": Program("by inner folds", {"m": "a", "other": "b"}),
    "exact": Program("exact", {"other": "c"}, like="fair", results_known=True),
}


def test_a_claim_is_judged_on_one_program_and_shown_for_the_others():
    ours = evidence({**TWO, "c": {"x": [0.9, 0.9], "y": [0.9, 0.9]}})
    entry = judged({"check": "first", "method": "m", "methods": ["m", "other"]}, ours, PROGRAMS)
    assert (entry["outcome"], entry["program"], entry["share"]) == ("holds in part", "fair", (1, 2))
    assert entry["description"] == "a is best among a, b."
    assert {name: one["outcome"] for name, one in entry["programs"].items()} == {
        "as_printed": "holds", "fair": "holds in part", "exact": "holds",
    }  # fmt: skip


def test_a_program_with_fewer_datasets_leaves_a_claim_open():
    ours = evidence({**TWO, "c": {"x": [0.9, 0.9]}})
    entry = judged({"check": "first", "method": "m", "methods": ["m", "other"]}, ours, PROGRAMS)
    assert {name: one["outcome"] for name, one in entry["programs"].items()} == {
        "as_printed": "holds", "fair": "holds in part", "exact": "open",
    }  # fmt: skip


def test_a_claim_of_the_paper_names_columns_of_its_program_only():
    ours = evidence({**TWO, "c": {"x": [0.9, 0.9], "y": [0.9, 0.9]}})
    block = {"check": "first", "method": "m", "methods": ["m", "c"]}
    with pytest.raises(ClaimsError, match="claim C: c is not a column of the program 'fair'"):
        judged(block, ours, PROGRAMS)
    assert judged({**block, "origin": "ours"}, ours, PROGRAMS)["outcome"] == "holds"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"as_printed": None}, "programs: as_printed must be there"),
        ({"exact": Program("e", like="fiar")}, "programs.exact: like must name a program before it, got 'fiar'"),
        ({"exact": Program("e", {"n": "a"}, like="fair")}, "programs.exact: not the methods of fair: n"),
    ],
)
def test_programs_that_cannot_be_compared_are_refused(changed, message):
    with pytest.raises(ClaimsError, match=message):
        read_programs({name: one for name, one in {**PROGRAMS, **changed}.items() if one}, "here")


# ---- splits


def test_a_claim_on_fewer_splits_than_the_paper_has_is_open():
    block = {"check": "first", "method": "a", "methods": ["a", "b"]}
    ours = evidence(TWO, {"default": 10, "y": 2}, seconds={"a": 360.0, "b": 36.0})
    entry = judged(block, ours)
    assert (entry["outcome"], entry["so_far"]) == ("open", "holds in part")
    assert entry["needs"] == {"cells": 16, "core_hours": 0.88, "missing": ["a on x: 8", "b on x: 8"]}
    assert judged(block, evidence(TWO, {"default": 2}))["outcome"] == "holds in part"
    assert judged(block, evidence(TWO, {"default": 2, "hamming_loss": 3}))["outcome"] == "open"


def test_a_column_that_was_not_run_makes_a_claim_open_at_the_cost_of_its_method():
    block = {"check": "first", "method": "a", "methods": ["a", "a-tuned"]}
    entry = judged(block, evidence(TWO, {"default": 2}, seconds={"a": 3600.0}))
    assert (entry["outcome"], entry.get("so_far")) == ("open", None)
    assert entry["needs"] == {"cells": 4, "core_hours": 4.0, "missing": ["a-tuned on x: 2", "a-tuned on y: 2"]}
    unknown = judged({**block, "methods": ["a", "c"]}, evidence(TWO, seconds={"a": 1.0}))
    assert unknown["needs"]["core_hours"] is None


def test_a_table_of_fewer_splits_makes_a_claim_open():
    def rises(evidence: Evidence) -> Finding:
        return Finding.of(len(evidence.table("dimension")) > 0, {}, "It rises.")

    table = pd.DataFrame({"value": [1.0]})
    claim = Claim.from_mapping({"id": "C", "sentence": "s", "check": "rises"})
    for splits, outcome in (({"dimension": 10}, "open"), ({"default": 10}, "holds"), ({"dimension": 2}, "holds")):
        ours = Evidence(evidence(TWO).scores, tables={"dimension": table}, splits=splits, table_splits={"dimension": 2})
        assert check_claims([claim], ours, None, {"rises": rises})[0]["outcome"] == outcome


# ---- the power of agreement


def published(rows):
    frame = pd.DataFrame(rows, columns=["dataset", "method", "printed_mean"])
    return frame.assign(
        table="1", metric="jaccard", mean=frame["printed_mean"].astype(float), std=np.nan, direction="max"
    )


def test_agreement_is_by_method_next_to_the_best_column_of_another():
    printed = published([(d, m, v) for d in "xy" for m, v in (("a", "0.50"), ("b", "0.60"), ("c", "0.90"))])
    scores = pd.DataFrame(
        [(d, 0, m, "jaccard", v) for d in "xy" for m, v in (("a", 0.7), ("b", 0.5 if d == "x" else 0.6), ("c", 0.9))],
        columns=["dataset", "split", "method", "metric", "value"],
    )
    cells = judge(printed, summarised(scores))
    found = {one.method: (one.comparable, one.agree, one.other, one.other_agree) for one in agreement_by_method(cells)}
    assert found == {"a": (2, 0, "b", 1), "b": (2, 1, "a", 0), "c": (2, 2, "a", 0)}


def test_where_the_rows_are_the_papers_own_their_sampling_error_is_no_tolerance():
    printed = published([("x", "a", "0.50")])
    ours = pd.DataFrame(
        [("x", "a", "jaccard", 0.52, np.nan, 1, 0.05)],
        columns=["dataset", "method", "metric", "mean", "std", "runs", "sampling"],
    )
    verdicts = [
        judge(printed, ours, names=Aliases(same_rows=rows))["verdict"].item() for rows in ((), ({},), ({"table": "2"},))
    ]
    assert verdicts == ["within", "better", "within"]
