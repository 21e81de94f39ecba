"""The verdict on the tested method: ranks, tests and Elo, on all sets and on those that decided no rule of it."""

from __future__ import annotations

import copy
import re

import numpy as np
import pandas as pd
import pytest

from helpers.arena_tables import facts_of
from multilab.arena import (
    arena_leaderboard,
    arena_summary,
    leaderboard_means,
    one_against_all_tests,
    one_against_all_verdict,
    track_results,
)
from multilab.reports.arena.page import summary_page

METRICS = ("macro_f1", "ranking_loss")
SEEN = ("set0", "set1", "set2")
CHOSEN_ON = {"sets": [*SEEN, "elsewhere"], "reason": "A rule of the stack was chosen on these sets."}


def rating(ranks, columns, anchor, sources):
    elo = 1000 - 30 * np.nanmean(ranks, axis=(0, 1))
    return pd.DataFrame({"elo": elo, "elo_low": elo - 20, "elo_high": elo + 20}, index=list(columns))


def scores(quality, n_sets=10):
    """Return scores from the quality of each method on a set: a number or a function of the position of the set."""
    rows = []
    for at in range(n_sets):
        for method, value in quality.items():
            good = value(at) if callable(value) else value
            rows += [(f"set{at}", 0, method, "macro_f1", good), (f"set{at}", 0, method, "ranking_loss", 1 - good)]
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])


@pytest.fixture(scope="module")
def content():
    """Return a leaderboard in which the stack is first on the seen sets only."""
    default = scores({"a": 0.7, "b": 0.6, "c": 0.5})
    stacks = scores({"stack": lambda at: 0.9 if at < len(SEEN) else 0.65, "stack_plain": 0.62})
    tuned = scores({"a": 0.72, "b": 0.61}, 6)
    tracks = [track_results(*each) for each in (("default", default), ("tuned", tuned), ("ensembled", stacks))]
    methods = {"stack": {"chosen_on": CHOSEN_ON}, "stack_plain": {"chosen_on": CHOSEN_ON}}
    return arena_leaderboard(tracks, facts_of(default), methods, [], rating=rating, tested="stack@ensembled")


def test_pools_with_a_stack_are_ranked_once_more_without_the_sets_that_decided_its_rules(content):
    sets = {pool["name"]: pool["sets"] for pool in content["pools"]}
    assert list(sets) == ["default", "tuned", "ensembled", "ensembled-unseen", "all", "all-unseen"]
    assert sets["ensembled-unseen"] == [f"set{at}" for at in range(3, 10)]
    assert sets["all-unseen"] == ["set3", "set4", "set5"]
    assert {pool["tested"]["column"] for pool in content["pools"][2:]} == {"stack@ensembled"}
    assert leaderboard_means(content, "all-unseen").datasets == tuple(sets["all-unseen"])


def test_sets_that_decided_rules_of_another_method_only_are_unseen_by_the_tested_one_and_marked_for_the_other():
    default, stacks = scores({"a": 0.7, "b": 0.6}), scores({"stack": 0.8, "small": 0.65})
    tracks = [track_results("default", default), track_results("ensembled", stacks)]
    methods = {
        "stack": {"chosen_on": CHOSEN_ON},
        "small": {"chosen_on": CHOSEN_ON | {"sets": ["set2", "set3", "set4"]}},
    }
    content, unnamed = (
        arena_leaderboard(tracks, facts_of(default), methods, [], tested=name) for name in ("stack@ensembled", None)
    )
    assert content["pools"][2]["sets"] == [f"set{at}" for at in range(3, 10)]
    assert unnamed["pools"][2]["sets"] == [f"set{at}" for at in range(5, 10)]
    page = summary_page(arena_summary(content))
    assert page.count("| `stack` † |") == page.count("| `stack` |") == 1
    assert page.count("| `small` † |") == 2
    assert "| `small` |" not in page


def test_no_unseen_pool_without_sets_that_decided_or_without_others():
    default, stacks = scores({"a": 0.7, "b": 0.6}, 3), scores({"stack": 0.8}, 3)
    tracks = [track_results("default", default), track_results("ensembled", stacks)]
    for methods in ({}, {"stack": {"chosen_on": CHOSEN_ON}}):
        content = arena_leaderboard(tracks, facts_of(default), methods, [])
        assert [pool["name"] for pool in content["pools"]] == ["default", "ensembled"]
    page = summary_page(arena_summary(content))
    assert "No set is unseen: each one decided a rule." in page
    assert one_against_all_verdict(content, "ensembled-unseen") is None
    assert one_against_all_verdict(content, "default") is None  # it has no ensemble


def test_a_tested_method_that_is_first_on_seen_sets_only_is_not_first_on_the_unseen(content):
    seen, unseen = (one_against_all_verdict(content, name) for name in ("ensembled", "ensembled-unseen"))
    assert [each["rank"] for each in seen["metrics"]] == [1.7, 1.7]  # first on 3 of 10 sets, else second
    assert [each["any"]["behind"] for each in seen["metrics"]] == [0.4, 0.4]
    assert [each["any"]["against"] for each in unseen["metrics"]] == ["a", "a"]
    assert [each["any"]["behind"] for each in unseen["metrics"]] == [1.0, 1.0]
    assert (unseen["first"], unseen["decided"], len(unseen["sets"])) == (0, 0, 7)
    assert all(each["any"]["worse"] > 0.99 for each in unseen["metrics"])
    assert unseen["metrics"][0]["any"]["better"] < seen["metrics"][0]["any"]["better"]


def test_the_probabilities_are_those_of_the_test_against_the_best_other_column(content):
    means = leaderboard_means(content, "ensembled")
    for row in one_against_all_verdict(content, "ensembled")["metrics"]:
        expected = one_against_all_tests(means, "stack@ensembled", row["name"], {}).loc[row["any"]["against"]]
        for name in ("better", "equal", "worse"):
            assert row["any"][name] == pytest.approx(expected[name], abs=6e-4)


def test_elo_is_compared_with_every_tuned_column(content):
    elo = one_against_all_verdict(content, "all")["elo"]
    assert {each["column"]: (each["above"], each["apart"]) for each in elo["tuned"]} == {
        "a@tuned": (False, False),
        "b@tuned": (True, True),
    }
    assert one_against_all_verdict(content, "ensembled")["elo"]["tuned"] == []


def test_the_best_other_column_may_be_a_stack_and_then_both_are_compared():
    default = scores({"a": 0.7, "b": 0.6})
    stacks = scores({"stack": 0.9, "stack_plain": 0.899})
    tracks = [track_results("default", default), track_results("ensembled", stacks)]
    content = arena_leaderboard(tracks, facts_of(default), {}, [], tested="stack@ensembled")
    verdict = one_against_all_verdict(content, "ensembled")
    assert (verdict["first"], verdict["decided"], verdict["decided_single"]) == (2, 0, 2)  # .001 is within the rope
    assert verdict["metrics"][0]["any"]["against"] == "stack_plain@ensembled"
    assert verdict["metrics"][0]["single"]["against"] == "a"
    page = summary_page(arena_summary(content))
    assert re.search(r"\| 2 of 2 \| 0 of 2 \| 2 of 2 \|$", page, re.MULTILINE)


def test_the_summary_gives_every_statement_twice(content):
    summary = arena_summary(content)
    (chosen,) = (each for each in summary["stacking"]["chosen_on"] if "stack" in each["methods"])
    assert chosen["reason"] == CHOSEN_ON["reason"]
    page = summary_page(summary)
    for scope in ("5 methods | 10", "5 methods | 7 unseen", "7 methods, tuned ones included | 6"):
        assert f"| {scope} | 0 of 2 |" in page
    assert "On 7 unseen sets" in page
    assert page.count("| `stack` † |") == page.count("| `stack` |") == 1  # on all sets, on the unseen ones


def with_errors(table, metric, values, offset=0):
    """Return scores with one metric more, from an error of each method."""
    rows = table[table["metric"] == "macro_f1"]
    return pd.concat([table, rows.assign(metric=metric, value=offset + rows["method"].map(values))])


def test_the_tested_method_that_nobody_named_is_the_best_by_all_metrics():
    default, stacks = scores({"a": 0.7, "b": 0.6}), scores({"even": 0.8, "odd": 0.75})
    tracks = [
        track_results("default", with_errors(default, "hamming_loss", {"a": 0.4, "b": 0.4})),
        track_results("ensembled", with_errors(stacks, "hamming_loss", {"even": 0.3, "odd": 0.1})),
    ]
    pools = arena_leaderboard(tracks, facts_of(default), {}, [])["pools"]
    assert pools[1]["tested"]["column"] == "even@ensembled"  # odd is better by Hamming loss only
    (alone,) = arena_leaderboard(tracks[:1], facts_of(default), {}, [])["pools"]
    assert alone["tested"]["column"] == "a"


def test_a_test_decides_from_95_per_cent_on(content):
    changed = copy.deepcopy(content)
    pool = next(each for each in changed["pools"] if each["name"] == "ensembled")
    for better, decided in ((0.949, 0), (0.95, 2)):
        for test in pool["tested"]["tests"].values():
            test["better"] = [better] * len(pool["columns"])
        assert one_against_all_verdict(changed, "ensembled")["decided"] == decided


def test_metrics_that_repeat_another_are_counted_apart():
    default, stacks = scores({"a": 0.7, "b": 0.6}), scores({"stack": 0.65})
    errors = {"a": 0.2, "b": 0.3, "stack": 0.1}
    tables = [
        with_errors(with_errors(table, "coverage", errors), "coverage_1based", errors, 1) for table in (default, stacks)
    ]
    tracks = [track_results(name, table) for name, table in zip(("default", "ensembled"), tables, strict=True)]
    page = summary_page(arena_summary(arena_leaderboard(tracks, facts_of(default), {}, [])))
    assert "is first in 2 of 4 metrics (1 of the 3 that order methods differently)" in page
