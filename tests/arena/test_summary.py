"""The summary of the leaderboard: its numbers on made-up tables, and its page for any content."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.arena_tables import facts_of, synthetic_scores, without_cells
from multilab.arena import (
    ArenaError,
    arena_leaderboard,
    arena_summary,
    leaderboard_means,
    leaderboard_text,
    method_costs,
    pooled_tracks,
    rank_methods,
    track_results,
)
from multilab.arena.summary import SUBSETS
from multilab.core import write_content
from multilab.reports.arena.page import summary_page
from multilab.reports.arena.rank import PAGE, summarise_arena, summary_of_reports

METRICS = ("hamming_loss", "example_f1", "macro_f1", "macro_auc", "ranking_loss", "coverage", "coverage_1based")
COLUMNS = ["dataset", "split", "method", "metric", "value"]


@pytest.fixture(autouse=True)
def _no_tests_against_all(monkeypatch) -> None:
    """Leave out the tested method's tests, which take most of the time of a leaderboard and are not in the summary."""
    empty = pd.DataFrame(columns=["better", "equal", "worse", "datasets"], dtype=float)
    monkeypatch.setattr("multilab.arena.leaderboard.one_against_all_tests", lambda *arguments: empty)


def rating(ranks, columns, anchor, sources):
    """Return ratings with intervals that depend on the ranks, without bencheval."""
    elo = 1000 - 30 * np.nanmean(ranks, axis=(0, 1))
    return pd.DataFrame({"elo": elo, "elo_low": elo - 20, "elo_high": elo + 20}, index=list(columns))


def tables(quality, n_sets, metrics=METRICS, seed=0):
    """Return scores in which the methods have some quality, with a little noise per set."""
    rng = np.random.default_rng(seed)
    rows = []
    for at in range(n_sets):
        for metric in metrics:
            for method, value in quality.items():
                good = value + rng.uniform(0, 0.005)
                large = metric in ("example_f1", "macro_f1", "macro_auc")
                rows.append((f"set{at}", 0, method, metric, good if large else 1 - good))
    return pd.DataFrame(rows, columns=COLUMNS)


def leaderboard(scores, unfinished=None, elo=True, tune=None, methods=None, **tracks):
    track = [track_results("default", scores, unfinished)]
    track += [track_results(name, table) for name, table in tracks.items()]
    studies = [{"track": "tuned", "study": "arena-tuned", "tune": tune}] if tune else []
    return arena_leaderboard(track, facts_of(scores), methods or {}, studies, rating=rating if elo else None)


def seconds(scores, cost):
    cells = scores[["dataset", "split", "method"]].drop_duplicates()
    each = cells["method"].map(cost)
    return cells.assign(fit_seconds=each, input_seconds=np.nan, predict_seconds=0.0, alone=False)


def test_means_of_the_file_rank_as_the_file_does() -> None:
    scores = without_cells(synthetic_scores(n_methods=5, metrics=METRICS), ("set1", "m3"))
    tuned = synthetic_scores(n_sets=4, n_methods=2, n_splits=2, seed=1, metrics=METRICS)
    content = json.loads(leaderboard_text(leaderboard(scores, tuned=tuned)))
    assert content["pools"][1]["values"], "this test needs a pool with fewer splits than a track"
    for pool in content["pools"]:
        means = leaderboard_means(content, pool["name"])
        for name, board in pool["boards"].items():
            ranks = rank_methods(means, name).table["rank"].reindex(pool["columns"])
            assert np.allclose(ranks, board["rank"], atol=5e-4), (pool["name"], name)
    direct = pooled_tracks("tuned", [track_results("default", scores), track_results("tuned", tuned)]).means
    assert np.array_equal(leaderboard_means(content, "tuned").values, direct.values, equal_nan=True)
    with pytest.raises(ArenaError, match="pool of the leaderboard"):
        leaderboard_means(content, "tunde")


def test_verdicts_need_enough_sets() -> None:
    quality = {"mlekelm": 0.8, "mlkelm": 0.7, "br_logistic": 0.75, "rf_pct": 0.85, "other": 0.6}
    entries = {}
    for n_sets in (3, 9):
        summary = arena_summary(leaderboard(tables(quality, n_sets)), comparators={"mlekelm": ["mlkelm", "absent"]})
        (entries[n_sets],) = summary["proposals"]
        page = summary_page(summary)
        assert ("With 3 sources of sets the tests can detect nothing" in page) == (n_sets == 3)
    verdicts = {row["against"]: row["verdict"] for row in entries[9]["baselines"]["overall"]}
    assert verdicts == {"br_logistic": "better", "rf_pct": "worse"}
    assert {row["verdict"] for row in entries[3]["baselines"]["overall"]} == {"no difference"}
    assert [row["against"] for row in entries[9]["comparators"]] == ["mlkelm"]
    assert entries[9]["boards"]["overall"]["position"] == 2
    row = entries[9]["baselines"]["overall"][0]
    assert row["wins"] == 1.0
    assert row["p_holm"] == row["smallest_p"] == pytest.approx(2 * 2.0**-8, rel=1e-2)
    assert "| `mlekelm` | 2 | 940 (920–960) | **100 %** | **0 %** | 1 / 0 of 1 |" in page


def test_shares_are_over_the_sets_that_both_methods_finished() -> None:
    scores = tables({"mlekelm": 0.7, "catboost": 0.8, "lightgbm": 0.6, "rf_pct": 0.8}, 10)
    gone = [("set9", "mlekelm"), *((f"set{i}", "rf_pct") for i in range(9))]
    gone += [(f"set{i}", "catboost") for i in range(5)]
    summary = arena_summary(leaderboard(without_cells(scores, *gone)))
    (entry,) = summary["proposals"]
    rows = {row["against"]: row for row in entry["baselines"]["overall"]}
    found = {name: (row["wins"], row["sets"], row["missing"], row["sets_won"]) for name, row in rows.items()}
    assert found == {"catboost": (0.0, 4, 6, 0), "lightgbm": (1.0, 9, 1, 9), "rf_pct": (None, 0, 10, 0)}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "catboost": "no difference",  # four sets can detect nothing
        "lightgbm": "better",
        "rf_pct": "no difference",
    }
    assert "| – |" in summary_page(summary)


def test_kinds_of_sets_and_their_winners() -> None:
    quality = {"a": 0.8, "b": 0.7, "c": 0.6}
    scores = tables(quality, 6)
    text = scores["dataset"].isin(["set1", "set3", "set5"])  # the text sets of the facts
    scores.loc[text, "method"] = scores.loc[text, "method"].map({"a": "b", "b": "a", "c": "c"})
    winners = {each["kind"]: each for each in arena_summary(leaderboard(scores))["winners"]}
    assert set(winners) == set(SUBSETS) - {"many_labels"}
    assert winners["text"]["groups"]["overall"]["first"] == "b"
    assert winners["not_text"]["groups"]["overall"]["first"] == "a"
    assert winners["small"]["sets"] == ["set0", "set1"]
    overall = winners["all"]["groups"]["overall"]
    assert (overall["first"], overall["equal"], overall["rank"]) == ("a", ["b"], 1.5)
    assert overall["not_separated"] == ["b"]  # the critical difference is 1.35, c is 1.5 behind
    assert overall["cd"] == pytest.approx(1.35, abs=0.01)


def test_sets_of_one_source_count_as_one() -> None:
    scores = tables({"a": 0.8, "b": 0.7}, 5)
    other = scores["dataset"].isin(["set0", "set1"])
    scores.loc[other, "method"] = scores.loc[other, "method"].map({"a": "b", "b": "a"})
    content = leaderboard(scores)
    assert [each["kind"] for each in arena_summary(content)["winners"]][:2] == ["all", "text"]
    for facts in content["sets"][2:]:
        facts["source"] = "crawl"
    summary = arena_summary(content)
    winners = {each["kind"]: each["groups"]["overall"] for each in summary["winners"]}
    assert (winners["all"]["first"], winners["all"]["rank"], winners["all"]["sets"]) == ("a", 1.4, 5)  # first on 3 of 5
    sources = winners["sources"]  # b is first in two of three sources
    assert (sources["first"], sources["rank"], sources["sets"]) == ("b", pytest.approx(4 / 3, abs=0.005), 3)
    page = summary_page(summary)
    assert "| all sets, those of one source as one | 3 |" in page


def test_verdicts_count_sets_of_one_source_once() -> None:
    scores = tables({"mlekelm": 0.8, "br_logistic": 0.7}, 9)
    content = leaderboard(scores)
    for facts in content["sets"][4:]:  # nine sets of five sources
        facts["source"] = "crawl"
    summary = arena_summary(content)
    (row,) = summary["proposals"][0]["baselines"]["overall"]
    assert (row["wins"], row["sets"], row["sets_won"], row["sources"]) == (1.0, 9, 9, 5)
    assert row["p_holm"] == row["smallest_p"] == 0.0625  # all of five differences have one sign: 2 / 2**5
    assert row["verdict"] == "no difference"
    assert "With 5 sources of sets the tests can detect nothing: the smallest possible p is 0.0625." in summary_page(
        summary
    )


def test_hours_count_shared_inputs_once() -> None:
    scores = tables({"a": 0.8, "b": 0.7}, 3)
    measured = seconds(scores, {"a": 3600.0, "b": 1800.0}).assign(input_seconds=720.0)
    searches = scores[["dataset", "split", "method"]].drop_duplicates().assign(tune_seconds=360.0)
    tuned = pd.concat([searches.assign(parameter=name) for name in ("k", "gamma")])  # a row per parameter
    cells = [("set0", 0, "late", 900.0), ("set0", 1, "late", 0.0)]
    stopped = pd.DataFrame(cells, columns=["dataset", "split", "method", "seconds"])
    given = {
        "arena": {"measured": measured, "tuned": None, "unfinished": stopped},
        "arena-tuned": {"measured": measured.head(1), "tuned": tuned, "unfinished": None},
        "absent": {"measured": None, "tuned": None, "unfinished": None},
    }
    summary = arena_summary(leaderboard(scores), tables=given, budget=24)
    first, second = summary["effort"]["studies"]
    assert first == {"study": "arena", "cells": 6, "own": 4.5, "inputs": 0.6, "searches": 0.0, "unfinished": 0.25}
    assert (second["own"], second["inputs"], second["searches"]) == (1.0, 0.2, 0.6)
    assert summary["effort"]["hours"] == pytest.approx(7.15)
    page = summary_page(summary)
    assert "took 7.2 hours of one core of a budget of 24." in page
    assert arena_summary(leaderboard(scores))["effort"] is None


def test_cells_measured_alone_show_what_other_work_costs() -> None:
    scores = tables({"a": 0.8, "b": 0.7, "late": 0.9, "slow": 0.9}, 3)
    loaded = seconds(scores, {"a": 4.0, "b": 9.0, "late": 0.0, "slow": 0.0}).assign(alone=False)
    loaded = loaded[loaded["method"].isin(["a", "b"])]
    alone = seconds(scores, {"a": 2.0, "b": 3.0, "late": 38.0, "slow": 0.0}).assign(alone=True)
    alone = alone[(alone["method"] != "slow") & (alone["dataset"] != "set2")]
    cells = [("set0", 0, "late", 61.0), ("set0", 1, "late", 0.0), ("set0", 0, "slow", 61.0), ("set2", 0, "late", 61.0)]
    stopped = pd.DataFrame(cells, columns=["dataset", "split", "method", "seconds"])
    tuned = {"measured": loaded.assign(fit_seconds=1e3), "tuned": loaded.assign(tune_seconds=1.0), "unfinished": None}
    given = {
        "arena-tuned": tuned,
        "arena": {"measured": loaded, "tuned": None, "unfinished": stopped},
        "arena-costs": {"measured": alone, "tuned": None, "unfinished": stopped.iloc[2:3]},
    }
    load = arena_summary(leaderboard(scores), tables=given)["effort"]["load"]
    n = int((alone["method"].isin(["a", "b"])).sum())
    assert load == {
        "cells": n,
        "ratio": 2.5,  # the median of 2 and 3
        "stopped": 2,
        "finish_alone": [{"dataset": "set0", "method": "late", "seconds": 38.0}],
    }
    page = summary_page(arena_summary(leaderboard(scores), tables=given))
    assert f"makes a fit 2.5 times as long (median over {n} cells measured both ways)." in page
    assert "1 finish: `late` on set0." in page
    given["arena-costs"]["measured"] = alone.assign(alone=False)
    assert arena_summary(leaderboard(scores), tables=given)["effort"]["load"] is None


def test_the_cheapest_method_that_suffices() -> None:
    scores = tables({"best": 0.8, "near": 0.796, "far": 0.7, "all_zero": 0.1}, 4)
    summary = arena_summary(
        leaderboard(scores), seconds(scores, {"best": 8.0, "near": 2.0, "far": 0.1, "all_zero": 0.0})
    )
    rows = summary["cheap"]["metrics"]["macro_auc"]
    assert {(row["cheapest"], row["seconds"], row["within"]) for row in rows} == {("near", 2.0, 2)}
    page = summary_page(summary)
    assert "| Macro AUC | 4 | 4.0 times as long | on 1 | `near` |" in page
    assert "seconds on a shared machine" in page


def test_costs_are_shown_where_they_were_measured_alone() -> None:
    scores = tables({"fast": 0.6, "slow": 0.8, "bad": 0.5}, 3)
    measured = seconds(scores, {"fast": 1.0, "slow": 20.0, "bad": 4.0}).assign(peak_mb=2.0, model_bytes=3e6)
    measured = measured[(measured["method"] != "slow") | (measured["dataset"] != "set0")]  # slow did not finish there
    rows = dict.fromkeys(("set0", "set1", "set2"), (500, 100))
    for alone in (True, False):
        costs = method_costs(measured.assign(alone=alone), rows)
        costs.attrs["studies"] = ["arena-costs"]
        studies = [{"track": "costs", "study": "arena-costs", "machine": "a machine"}]
        track = [track_results("default", scores)]
        content = arena_leaderboard(track, facts_of(scores), {}, studies, costs=costs, rating=rating)
        table = {"measured": measured.assign(alone=alone), "tuned": None, "unfinished": None}
        summary = arena_summary(content, tables={"arena-costs": table})
        page = summary_page(summary)
        if not alone:
            assert summary["costs"] is None
            assert "Costs have not been measured on an idle machine." in page
            continue
        each = [(row["name"], row["fit_seconds"], row["cells"]) for row in summary["costs"]["methods"]]
        assert each == [("fast", 2.0, 3), ("bad", 8.0, 3), ("slow", 40.0, 2)]
        assert summary["costs"]["pareto"]["fit_seconds"] == ["fast", "slow"]
        assert "1 second" not in page  # nothing is fitted as fast
        assert "| 1 minute | `slow` | 970 | 40.0 |" in page
        assert "| 1 hour | `slow` | 970 | 40.0 |" in page
        assert "on one core (a machine)" in page
        assert "they are of 3 small sets (set0, set1, set2), and" in page


def test_dummies_metrics_and_unfinished() -> None:
    scores = tables({"a": 0.8, "b": 0.7, "all_zero": 0.1}, 5)
    scores.loc[(scores["metric"] == "ranking_loss") & (scores["method"] == "all_zero"), "value"] = 0.0
    gone = pd.DataFrame(
        [("set1", 0, "b", "more than 60 s of processor time")],
        columns=["dataset", "split", "method", "reason"],
    )
    summary = arena_summary(leaderboard(without_cells(scores, ("set1", "b")), gone))
    dummies = {row["metric"]: row for row in summary["dummies"]}
    assert (dummies["ranking_loss"]["behind"], dummies["ranking_loss"]["not_worse"]) == (2, 5)
    assert (dummies["macro_f1"]["behind"], dummies["macro_f1"]["not_worse"]) == (0, 0)
    assert dummies["coverage"]["close"] is None
    (method,) = summary["unfinished"]["methods"]
    assert method == {"name": "b", "sets": ["set1"], "cells": 1, "reasons": {"more than 60 s of processor time": 1}}
    assert (summary["unfinished"]["cells"], summary["unfinished"]["unfinished_cells"]) == (15, 1)
    metrics = {row["name"]: row for row in summary["metrics"]["rows"]}
    assert metrics["macro_f1"]["least_like"] == "ranking_loss"
    assert metrics["coverage_1based"]["ordered_like"] == "coverage"
    assert summary["metrics"]["pairs"] == 15  # of six metrics without coverage_1based
    assert summary["metrics"]["smallest"] < summary["metrics"]["median"]


def test_a_set_without_facts_is_refused() -> None:
    content = leaderboard(tables({"a": 0.8, "b": 0.7}, 2))
    with pytest.raises(ArenaError, match="lacks the facts of set1"):
        arena_summary(content | {"sets": content["sets"][:1]})


def test_tuning_and_stacking() -> None:
    quality = {"a": 0.8, "b": 0.7, "c": 0.6}
    tuned, stacks = tables({"a": 0.78, "b": 0.76}, 9, seed=1), tables({"stack": 0.9}, 9, seed=2)
    search = {"metric": "macro_auc", "n_trials": 15, "folds": 3}
    content = leaderboard(tables(quality, 9), tune=search, tuned=tuned, ensembled=stacks)
    summary = arena_summary(content)
    verdicts = {each["name"]: each["groups"]["overall"]["verdict"] for each in summary["tuning"]["methods"]}
    assert verdicts == {"a": "worse", "b": "better"}
    gains = {each["name"]: each["gain"]["median"] for each in summary["tuning"]["methods"]}
    assert gains["b"] == pytest.approx(0.06, abs=0.005)
    (stack,) = summary["stacking"]["all"]["stacks"]
    assert summary["stacking"]["unseen"] is None  # no set decided a rule
    assert len(stack["first_metrics"]) == stack["metrics"] == len(METRICS)
    assert stack["best_single"]["overall"]["against"] == "a"
    assert stack["best_single"]["overall"]["verdict"] == "better"
    assert stack["above_tuned"] == {"tuned": 2, "above": 2, "apart": 2, "sets": 9}
    page = summary_page(summary)
    assert "Tuning improves 1 of 2 methods" in page
    assert "tuned with 15 draws for Macro AUC" in page
    assert f"(`a`) | {len(METRICS)} of {len(METRICS)} | 2 of 2 |" in page


def test_with_few_sets_the_sections_on_tuning_and_stacking_have_no_verdicts() -> None:
    """Of m comparisons on n sets no p value is below m / 2^(n - 1)."""
    quality = dict(zip("abcde", (0.8, 0.7, 0.6, 0.5, 0.4), strict=True))
    tuned, stacks = tables(dict.fromkeys(quality, 0.9), 6, seed=1), tables({"stack": 0.95}, 6, seed=2)
    summary = arena_summary(leaderboard(tables(quality, 6), tuned=tuned, ensembled=stacks))
    rows = [each["groups"]["overall"] for each in summary["tuning"]["methods"]]
    assert {row["wins"] for row in rows} == {1.0}
    assert {(row["smallest_p"], row["p_holm"]) for row in rows} == {(0.15625, 0.15625)}
    (stack,) = summary["stacking"]["all"]["stacks"]
    assert {row["smallest_p"] for row in stack["best_single"].values()} == {0.125}
    page = summary_page(summary)
    assert "With 6 sources of sets the tests can detect nothing: the smallest possible p is 0.156." in page
    assert "With 6 sources of sets the tests can detect nothing: the smallest possible p is 0.125." in page


@pytest.mark.parametrize("elo", [True, False], ids=["elo", "without elo"])
@pytest.mark.parametrize("n_sets", [1, 2, 6])
def test_the_page_holds_for_any_content(n_sets: int, elo: bool) -> None:
    names = ["mlwse_l1", "lwmf", "rf_pct", "all_zero"]
    scores = synthetic_scores(n_sets, 4, 2, seed=n_sets, metrics=METRICS)
    scores["method"] = scores["method"].map({f"m{at}": name for at, name in enumerate(names)})
    scores.loc[(scores["dataset"] == "set0") & (scores["metric"] == "macro_auc"), "value"] = np.nan
    scores = without_cells(scores, (f"set{n_sets - 1}", "lwmf"))
    tracks = {} if n_sets == 2 else {"tuned": scores[scores["method"] != "lwmf"]}
    content = leaderboard(scores, elo=elo, tune={"metric": "macro_auc"}, **tracks)
    costs = seconds(scores, dict.fromkeys(names, 0.0)) if elo else None
    summary = arena_summary(content, costs, {"mlwse": ["rf_pct"]})
    json.dumps(summary, allow_nan=False)
    page = summary_page(summary)
    assert not re.search(r"\bnan\b|\bNone\b|\binf\b|  \(|\(\)|[{}]| ,", page)
    assert "has no results yet" in page
    assert ("Elo 1000" in page) == elo
    for table in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        assert len({line.count(" | ") for line in table.splitlines()}) == 1, table
    assert page == summary_page(json.loads(json.dumps(summary)))


def test_the_command_writes_the_file_and_the_page(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArenaError, match="arena rank` writes it"):
        summarise_arena()
    scores = tables({"a": 0.8, "b": 0.7}, 3)
    folder = tmp_path / "reports" / "arena"
    folder.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    write_content(folder / "leaderboard.json.gz", leaderboard_text(leaderboard(scores)))
    seconds(scores, {"a": 2.0, "b": 1.0}).to_csv(folder / "measured.csv", index=False)
    summarise_arena()
    assert "summary.json" in capsys.readouterr().out
    assert json.loads((folder / "summary.json").read_text())["sets"] == ["set0", "set1", "set2"]
    assert (tmp_path / PAGE).read_text() == summary_page(summary_of_reports())
