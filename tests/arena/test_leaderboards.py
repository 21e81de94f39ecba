"""Leaderboards: ranks and tests against autorank, Elo against a fit of the test, and the rules for missing cells."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2, f, rankdata

from helpers.arena_tables import facts_of, synthetic_scores, without_cells
from multilab.arena import (
    METRIC_GROUPS,
    ORDERED_LIKE,
    ArenaError,
    arena_leaderboard,
    arena_summary,
    leaderboard_means,
    leaderboard_text,
    method_costs,
    one_against_all_tests,
    pooled_tracks,
    rank_methods,
    select_sets,
    track_results,
    with_base_methods,
)
from multilab.arena.leaderboard import SCHEMA
from multilab.arena.summary import _Shares, _tested, _verdict
from multilab.core.paths import _PACKAGE
from multilab.metrics import METRICS
from multilab.statistics import StatisticsError, bayesian_signed_rank, pareto_front
from multilab.statistics.signed_rank import posterior_draws


@pytest.fixture(scope="module")
def means():
    scores = synthetic_scores(12, 5, 3, seed=4, metrics=("macro_f1", "ranking_loss"))
    return track_results("default", scores).means()


# autorank 1.3.0, autorank(table, order="descending", force_mode="nonparametric"): mean ranks, p value and critical
# difference; with approach="bayesian", rope=0.01, rope_mode="absolute", nsamples=20000, random_state=0: p_smaller and
# p_equal of m0 with m4. The table is `means.means("macro_f1")` below.
AUTORANK = {
    "meanrank": {
        "m0": 3.9166666666666665,
        "m1": 2.8333333333333335,
        "m2": 1.0,
        "m3": 2.4166666666666665,
        "m4": 58 / 12,
    },
    "pvalue": 2.5222793334792635e-08,
    "cd": 1.7607556243045581,
    "m0 better than m4": (0.9874, 0.0126),
}


def test_ranks_friedman_and_nemenyi_are_those_of_autorank(means):
    board = rank_methods(means, "macro_f1")
    assert board.table["rank"].to_dict() == pytest.approx(AUTORANK["meanrank"], abs=1e-12)
    assert chi2.sf(board.tests.chi2, 4) == pytest.approx(AUTORANK["pvalue"], rel=1e-9)
    assert board.cd == pytest.approx(AUTORANK["cd"], rel=1e-4)  # autorank interpolates the quantile
    tests = one_against_all_tests(means, "m0", "macro_f1", {})
    assert tests.loc["m4", ["better", "equal"]].tolist() == pytest.approx(AUTORANK["m0 better than m4"], abs=0.01)


def test_autorank_says_the_same_today(means):
    autorank = pytest.importorskip("autorank").autorank
    table = means.means("macro_f1")
    options = {"verbose": False, "order": "descending", "force_mode": "nonparametric"}
    frequentist = autorank(table, **options)
    assert frequentist.rankdf["meanrank"].to_dict() == pytest.approx(AUTORANK["meanrank"])
    assert frequentist.pvalue == pytest.approx(AUTORANK["pvalue"])
    assert frequentist.cd == pytest.approx(AUTORANK["cd"])
    bayes = autorank(
        table, approach="bayesian", rope=0.01, rope_mode="absolute", nsamples=2000, random_state=0, **options
    ).posterior_matrix
    ours = one_against_all_tests(means, "m0", "macro_f1", {})
    for other in ours.index:
        theirs = bayes.loc["m0", other]
        better, equal, worse = theirs if isinstance(theirs, tuple) else bayes.loc[other, "m0"][::-1]
        expected = (better, equal, worse)
        assert ours.loc[other, ["better", "equal", "worse"]].tolist() == pytest.approx(expected, abs=0.03)


def test_draws_of_the_bayesian_test_are_baycomps():
    baycomp = pytest.importorskip("baycomp")
    rng = np.random.default_rng(0)
    for n, rope in ((1, 0.01), (4, 0.0), (14, 0.01)):
        gain = np.round(rng.normal(0.005, 0.02, n), 3)
        theirs = baycomp.SignedRankTest.sample(gain, np.zeros(n), rope, nsamples=300, random_state=3)
        np.testing.assert_allclose(posterior_draws(gain, rope, 300, 3), theirs, atol=1e-14)


def test_the_tests_see_both_directions():
    rows = [(f"s{i}", 0, m, "ranking_loss", v + i / 100) for i in range(9) for m, v in (("good", 0.1), ("bad", 0.3))]
    means = track_results("default", _table(rows)).means()
    assert one_against_all_tests(means, "good", "ranking_loss", {}).loc["bad", "better"] > 0.99
    assert rank_methods(means, "ranking_loss").table.index[0] == "good"
    rows = [(*row[:3], "macro_f1", row[4]) for row in rows]
    assert (
        one_against_all_tests(track_results("default", _table(rows)).means(), "good", "macro_f1", {}).loc[
            "bad", "worse"
        ]
        > 0.99
    )


def test_coverage_is_compared_on_the_scale_of_the_labels():
    rows = [(f"s{i}", 0, m, "coverage", v + i / 10) for i in range(9) for m, v in (("a", 5.0), ("b", 5.5))]
    means = track_results("default", _table(rows)).means()
    labels = {f"s{i}": 100 for i in range(9)}
    assert one_against_all_tests(means, "a", "coverage", labels).loc["b", "equal"] > 0.99
    assert one_against_all_tests(means, "a", "coverage", dict.fromkeys(labels, 10)).loc["b", "better"] > 0.99


def _bradley_terry(errors):
    """Most likely ratings of columns, every pair of a row one battle, ties half a win each; the median is 1000."""
    k, sets = errors.shape[2], np.moveaxis(errors, 1, 0)
    shares = [(np.sign(rows[:, None, :] - rows[:, :, None]).mean(axis=0) + 1) / 2 for rows in sets]
    wins = sum([*shares, np.full((k, k), 0.5)])  # one more dataset, on which all tie

    def loss(t):
        return (wins * np.logaddexp(0, t[None, :] - t[:, None])).sum() - np.diag(wins).sum() * np.log(2)

    t = minimize(loss, np.zeros(errors.shape[-1]), method="BFGS", options={"gtol": 1e-8}).x
    return 1000 + 400 * (t - np.median(t)) / np.log(10)


def test_the_tested_method_is_tested_on_one_value_per_source():
    rows = [(f"set{i}", 0, m, "macro_f1", v) for i in range(9) for m, v in (("a", 0.8), ("b", 0.7 + i / 200))]
    means = track_results("default", _table(rows)).means()
    labels, sources = {}, {f"set{i}": "one" if i < 3 else f"set{i}" for i in range(9)}
    ours = one_against_all_tests(means, "a", "macro_f1", labels, sources)
    averaged = [(0.7, 0.705, 0.71), *((0.7 + i / 200,) for i in range(3, 9))]
    rows = [(f"s{i}", 0, m, "macro_f1", v) for i, b in enumerate(averaged) for m, v in (("a", 0.8), ("b", np.mean(b)))]
    expected = one_against_all_tests(track_results("default", _table(rows)).means(), "a", "macro_f1", labels)
    assert ours["sources"].tolist() == [7]
    pd.testing.assert_frame_equal(ours, expected)
    assert one_against_all_tests(means, "a", "macro_f1", labels)["sources"].tolist() == [9]


def test_elo_is_the_maximum_of_the_likelihood(means):
    pytest.importorskip("bencheval")
    from multilab.arena import elo_ratings

    errors = np.random.default_rng(1).integers(0, 9, (2, 12, 5)) + np.arange(5)  # with ties
    rated = elo_ratings(errors, means.methods, rounds=20)
    np.testing.assert_allclose(rated["elo"], _bradley_terry(errors), atol=0.2)
    assert (rated["elo_low"] <= rated["elo"]).all()
    assert (rated["elo"] <= rated["elo_high"]).all()
    assert (rated["elo_high"] - rated["elo_low"] > 20).all()
    assert rated.equals(elo_ratings(rankdata(errors, axis=2), means.methods, rounds=20))  # only the order counts
    anchored = elo_ratings(errors, means.methods, anchor="m3", rounds=20)
    assert anchored.loc["m3", "elo"] == 1000
    np.testing.assert_allclose(anchored["elo_high"] - anchored["elo"], rated["elo_high"] - rated["elo"], atol=0.21)


def test_the_bootstrap_fits_what_bencheval_fits():
    pytest.importorskip("bencheval")
    from bencheval.elo_utils import EloHelper

    from multilab.arena.elo import bradley_terry

    errors = np.random.default_rng(2).integers(0, 9, (1, 12, 5)) + np.arange(5) / 2
    _, task, method = np.indices(errors.shape).reshape(3, -1)
    battles = pd.DataFrame({"method": method, "task": task, "metric_error": errors.ravel()})
    theirs = EloHelper().compute_mle_elo_from_ranks(battles).sort_index() - 1000
    wins = (5 - rankdata(errors[0], axis=1)).sum(axis=0)
    ours = bradley_terry(np.stack([wins, wins[::-1]]), np.array([12, 12])) * 400 / np.log(10)
    np.testing.assert_allclose(ours[0], theirs, atol=1e-3)
    np.testing.assert_allclose(ours[1], ours[0][::-1], atol=1e-9)


def test_a_method_that_loses_every_battle_does_not_widen_the_intervals_of_others():
    pytest.importorskip("bencheval")
    from multilab.arena import elo_ratings

    errors = np.random.default_rng(1).integers(0, 9, (1, 12, 5)).astype(float)
    names = list("abcde")
    alone = elo_ratings(errors, names, rounds=20)
    with_losers = elo_ratings(
        np.concatenate([errors, np.full((1, 12, 2), 99.0)], axis=2), [*names, "x", "y"], rounds=20
    )
    widths = (alone["elo_high"] - alone["elo_low"], (with_losers["elo_high"] - with_losers["elo_low"])[names])
    assert (widths[1] < 1.7 * widths[0]).all()
    assert with_losers.loc[["x", "y"], "elo"].max() < alone["elo"].min() - 200
    assert with_losers["elo_low"].min() > 0


def test_the_bootstrap_draws_datasets_of_one_source_together():
    pytest.importorskip("bencheval")
    from multilab.arena import elo_ratings

    errors = np.random.default_rng(1).normal(size=(1, 8, 4)) + np.arange(4) / 2
    repeated = np.repeat(errors, 5, axis=1)  # forty datasets, of which five each say the same
    names, sources = list("abcd"), [f"source{at // 5}" for at in range(40)]
    together = elo_ratings(repeated, names, sources=sources, rounds=200)
    apart = elo_ratings(repeated, names, rounds=200)
    widths = [(each["elo_high"] - each["elo_low"]).to_numpy() for each in (together, apart)]
    assert (widths[0] > 1.6 * widths[1]).all()  # the root of 5, less what one tied dataset takes from it
    assert together["elo"].equals(apart["elo"])
    own = elo_ratings(errors, names, sources=[f"set{at}" for at in range(8)])
    assert own.equals(elo_ratings(errors, names))
    assert elo_ratings(errors, names, sources=["one"] * 8).equals(own)  # one source: its datasets are drawn


def test_elo_of_one_dataset_has_no_interval():
    pytest.importorskip("bencheval")
    from multilab.arena import elo_ratings

    rated = elo_ratings(np.array([[[0.1, 0.2]], [[0.3, 0.2]]]), ["a", "b"])
    assert rated["elo"].tolist() == [1000, 1000]
    assert rated["elo_low"].isna().all()


def test_rates_are_those_of_bencheval():
    evaluator = pytest.importorskip("bencheval.evaluator")
    scores = synthetic_scores(4, 5, 2, metrics=("macro_f1", "macro_auc", "micro_auc", "micro_f1"))
    means = track_results("default", scores).means()
    board = rank_methods(means, "label")
    unit, task, method = np.indices(means.values.shape).reshape(3, -1)
    long = pd.DataFrame({"method": method, "task": task, "unit": unit, "metric_error": 1 - means.values.ravel()})
    engine = evaluator.BenchmarkEvaluator(columns_to_agg_extra=None, seed_column="unit")
    per_task = engine.compute_results_per_task(long, include_seed_col=True)
    wins = engine.compute_winrate_matrix(per_task).sort_index().sort_index(axis=1).fillna(0).to_numpy(copy=True)
    np.fill_diagonal(wins, 0)
    np.testing.assert_allclose(board.wins, wins, atol=1e-12)
    rates = engine.compute_winrate(per_task).sort_index().to_numpy()
    table = board.table.loc[list(means.methods)]
    np.testing.assert_allclose(table["win_rate"], rates, atol=1e-12)
    saved = per_task.groupby(["method", "task"])["improvability"].mean().groupby("method").mean()
    np.testing.assert_allclose(table["improvability"], saved, atol=1e-12)


def test_an_unfinished_method_is_last_on_the_set_and_ties_with_others():
    scores = without_cells(synthetic_scores(3, 5, 3), ("set1", "m3"), ("set1", "m0", 2))
    stopped = pd.DataFrame(
        [("set1", n, "m3", "60 s") for n in range(3)], columns=["dataset", "split", "method", "reason"]
    )
    track = track_results("default", scores, stopped)
    assert track.reasons() == {("set1", "m3"): "60 s", ("set1", "m0"): "missing"}
    assert track.unfinished_splits().tolist() == [[0] * 5, [1, 0, 0, 3, 0], [0] * 5]
    for name in ("macro_f1", "hamming_loss", "overall", "ranking"):
        ranks = rank_methods(track.means(), name).dataset_ranks.loc["set1"]
        assert ranks["m0"] == ranks["m3"] == 4.5
    board = rank_methods(track.means(), "hamming_loss")
    assert board.table.loc["m3", "unfinished"] == pytest.approx(1 / 3)
    assert np.isfinite(board.table.to_numpy()).all()
    tests = one_against_all_tests(track.means(), "m1", "hamming_loss", {})
    assert tests["sources"].tolist() == [3, 3, 3, 3]


def test_a_method_that_finished_nothing_is_last():
    stopped = pd.DataFrame([("set0", 0, "slow", "memory")], columns=["dataset", "split", "method", "reason"])
    board = rank_methods(track_results("default", synthetic_scores(4, 3, 1), stopped).means(), "macro_f1")
    assert board.table.index[-1] == "slow"
    assert board.table.loc["slow", "rank"] == 4


def test_a_set_leaves_a_metric_that_is_undefined_on_it():
    scores = synthetic_scores(3, 4, 2)
    scores.loc[(scores["dataset"] == "set2") & (scores["metric"] == "macro_auc") & (scores["split"] == 1), "value"] = (
        np.nan
    )
    means = track_results("default", scores).means()
    board = rank_methods(means, "macro_auc")
    assert board.left_out == ("set2",)
    assert board.datasets == ("set0", "set1")
    without = rank_methods(means, "label").dataset_ranks.loc["set2"]
    kept = [means.means(name).loc["set2"] for name in ("macro_f1", "micro_f1", "micro_auc")]
    expected = rankdata(np.mean([rankdata(-row) for row in kept], axis=0).round(9))
    assert without.tolist() == expected.tolist()
    with pytest.raises(ArenaError, match="undefined on all"):
        rank_methods(means.on(["set2"]), "macro_auc")


def test_groups_hold_every_metric_once_and_repeated_ones_are_not_counted():
    grouped = [name for name, metric in METRICS.items() if metric.group]
    assert sorted(METRIC_GROUPS["overall"]) == sorted(grouped)
    parts = [name for group, members in METRIC_GROUPS.items() if group != "overall" for name in members]
    assert sorted(parts) == sorted(grouped)
    assert {"hamming_loss": "example", "macro_auc": "label", "one_error": "ranking"}.items() <= {
        name: METRICS[name].group for name in grouped
    }.items()
    board = rank_methods(track_results("default", synthetic_scores(2, 3, 1)).means(), "overall")
    assert set(board.metrics) == set(grouped) - set(ORDERED_LIKE)
    assert set(ORDERED_LIKE) == {"coverage_1based", "coverage_normalised"}


def test_metrics_called_ordered_alike_are():
    from multilab.metrics import score_all

    rng = np.random.default_rng(0)
    Y = rng.random((40, 6)) < 0.3
    values = [score_all(Y, rng.random((40, 6)), rng.random((40, 6)) < 0.4) for _ in range(12)]
    for name, source in ORDERED_LIKE.items():
        sign = 1 if METRICS[name].direction == METRICS[source].direction else -1
        ranks = [rankdata([sign * v[name] for v in values]), rankdata([v[source] for v in values])]
        assert ranks[0].tolist() == ranks[1].tolist()


def test_pools_have_common_sets_and_splits():
    default = track_results("default", synthetic_scores(4, 3, 3))
    tuned = track_results("tuned", synthetic_scores(2, 2, 2, seed=1))
    pool = pooled_tracks("tuned", [default, tuned])
    assert pool.means.datasets == ("set0", "set1")
    assert pool.means.methods == ("m0", "m1", "m2", "m0@tuned", "m1@tuned")
    assert pool.splits == {"default": {"set0": (0, 1), "set1": (0, 1)}, "tuned": {"set0": (0, 1), "set1": (0, 1)}}
    digests = {
        "default": {"set0": ["x", "y", "z"], "set1": ["a", "b", "c"]},
        "tuned": {"set0": ["z", "x"], "set1": ["k", "l"]},
    }
    pool = pooled_tracks("tuned", [default, tuned], digests)
    assert pool.splits["default"] == {"set0": (0, 2), "set1": (0, 1, 2)}
    assert pool.splits["tuned"] == {"set0": (0, 1), "set1": (0, 1)}
    assert pool.other_splits == ("set1",)
    expected = default.board.values_of["set0"][default.board.metrics.index("macro_f1")][[0, 2]].mean(axis=0)
    np.testing.assert_allclose(pool.means.means("macro_f1").loc["set0", ["m0", "m1", "m2"]], expected, atol=1e-6)


def _tracks():
    scores = without_cells(synthetic_scores(4, 4, 2), ("set1", "m3"))
    scores.loc[(scores["dataset"] == "set3") & (scores["metric"] == "macro_auc"), "value"] = np.nan
    tracks = [
        track_results("default", scores),
        track_results("tuned", synthetic_scores(2, 2, 1, seed=1)),
        track_results("ensembled", synthetic_scores(4, 1, 2, seed=2, prefix="stack")),
    ]
    return tracks, facts_of(scores)


def _rate(ranks, columns, anchor, sources):
    """Return ratings instead of Elo: minus the mean rank."""
    mean = -np.nanmean(ranks, axis=(0, 1))
    return pd.DataFrame({"elo": mean, "elo_low": mean - 1, "elo_high": mean + 1}, index=list(columns))


@pytest.fixture(scope="module")
def content():
    tracks, facts = _tracks()
    costs = pd.DataFrame(
        {"fit_seconds": [1.0, 2, 3, 4], "predict_ms": 1.0, "model_mb": 2.0, "peak_mb": 3.0},
        index=tracks[0].board.methods,
    )
    costs[["cells", "alone"]] = [5, True]
    costs.attrs["studies"] = ["arena-costs"]
    return arena_leaderboard(tracks, facts, {"m0": {"title": "M"}}, [], costs=costs, rating=_rate, anchor="m1")


@pytest.mark.slow
def test_the_file_is_the_same_on_a_rerun(content):
    tracks, facts = _tracks()
    again = arena_leaderboard(tracks, facts, {"m0": {"title": "M"}}, [], rating=_rate, anchor="m1")
    for one in (content, again):
        for pool in one["pools"]:
            pool.pop("pareto", None)
    text = leaderboard_text(again | {"costs": content["costs"]})
    assert text == leaderboard_text(content)
    assert json.loads(text)["schema"] == SCHEMA


def test_every_key_of_the_file_is_described(content):
    described = (_PACKAGE / "arena" / "leaderboard.py").read_text(encoding="utf-8").partition("from __future__")[0]
    pool = content["pools"][-1]
    keys = {
        *content,
        *content["tracks"]["default"],
        *pool,
        *pool["boards"]["overall"],
        *pool["tested"],
        *content["costs"],
    }
    keys |= {*content["metrics"][0], *content["groups"][0], *content["sets"][0], *pool["tested"]["tests"]["macro_f1"]}
    assert {key for key in keys if f"``{key}``" not in described} == set()


def test_a_reader_of_the_file_ranks_alike(content):
    """Rank as the description of the file says, from the rounded values in it."""
    direction = {each["name"]: each["direction"] for each in content["metrics"]}
    groups = {each["name"]: each["metrics"] for each in content["groups"]}
    for pool in content["pools"]:
        for name in ("overall", "ranking", "macro_auc", "coverage"):
            ranks = []
            for dataset in pool["sets"]:
                rows = []
                for metric in groups.get(name, [name]):
                    if any(dataset in content["tracks"][t]["undefined"].get(metric, ()) for t in pool["tracks"]):
                        continue
                    row = []
                    for track in pool["tracks"]:
                        own = pool["values"].get(track, {}).get(metric, {})
                        position = content["tracks"][track]["sets"].index(dataset)
                        row += own.get(dataset) or content["tracks"][track]["values"][metric][position]
                    sign = -1 if direction[metric] == "max" else 1
                    rows.append(rankdata([np.inf if v is None else sign * v for v in row]))
                if rows:
                    ranks.append(rankdata(np.mean(rows, axis=0).round(9)) if name in groups else rows[0])
            board = pool["boards"][name]
            assert board["sets"] == len(ranks)
            assert board["rank"] == pytest.approx(np.mean(ranks, axis=0), abs=6e-4)


def test_the_tested_method_is_the_best_ensemble_and_pools_without_one_have_none(content):
    pools = {pool["name"]: pool for pool in content["pools"]}
    assert list(pools) == ["default", "tuned", "ensembled", "all"]
    assert pools["default"]["tested"] is None
    assert pools["tuned"]["tested"] is None
    assert pools["all"]["tested"]["column"] == "stack0@ensembled"
    tests = pools["ensembled"]["tested"]["tests"]
    assert set(tests) == set(METRICS)
    position = pools["ensembled"]["columns"].index("stack0@ensembled")
    assert tests["macro_f1"]["better"][position] is None
    assert pools["tuned"]["sets"] == ["set0", "set1"]
    assert pools["tuned"]["values"]["default"]["macro_f1"].keys() == {
        "set0",
        "set1",
    }


def test_a_stack_costs_its_base_methods_of_the_same_set_and_split():
    rows = [(d, s, m, 10 * at + s, 1e6 * (at + 1)) for d in "xy" for s in (0, 1) for at, m in enumerate("abs")]
    rows.remove(("y", 1, "b", 11, 2e6))  # did not finish
    measured = pd.DataFrame(rows, columns=["dataset", "split", "method", "predict_seconds", "model_bytes"])
    stacked = with_base_methods(measured, {("x", "s"): ["a", "b"], ("y", "s"): ["b"]}).set_index("method").loc["s"]
    np.testing.assert_array_equal(stacked["predict_seconds"], [20 + 0 + 10, 21 + 1 + 11, 20 + 10, np.nan])
    np.testing.assert_array_equal(stacked["model_bytes"], [6e6, 6e6, 5e6, np.nan])


def test_sets_are_selected_by_name_domain_and_size():
    facts = facts_of(synthetic_scores(4, 2, 1, metrics=("macro_f1",)))
    assert select_sets(facts, "text") == ["set1", "set3"]
    assert select_sets(facts, "set0,text,n<1000") == ["set0", "set1"]
    assert select_sets(facts, "q>=8,density<0.3") == ["set2", "set3"]
    for wrong, message in (("txet", "text"), ("rows<5", "fact"), ("n<5", "no dataset")):
        with pytest.raises(ArenaError, match=message):
            select_sets(facts, wrong)


def test_costs_are_medians_per_row_and_the_front_is_not_dominated():
    rows = [("x", "a", s, 0.5, 0.2, 9.0, 2e6, True) for s in (1.0, 2.0, 9.0)] + [
        ("x", "b", 1.0, np.nan, 0.1, 9.0, 1e6, False)
    ]
    names = ["dataset", "method", "fit_seconds", "input_seconds", "predict_seconds", "peak_mb", "model_bytes", "alone"]
    costs = method_costs(pd.DataFrame(rows, columns=names), {"x": (500, 100)})
    assert costs.loc["a", ["fit_seconds", "predict_ms", "model_mb", "cells"]].tolist() == [5.0, 2.0, 2.0, 3]
    assert costs["alone"].tolist() == [True, False]
    quality = {"a": 3.0, "b": 3.0, "c": 4.0, "d": 1.0, "e": float("nan")}
    assert pareto_front(quality, {"a": 2.0, "b": 1.0, "c": 5.0, "d": 1.0, "e": 0.1, "f": 0.0}) == ("b", "c")
    with pytest.raises(ArenaError, match="rows of x"):
        method_costs(pd.DataFrame(rows, columns=names), {})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda s: s.iloc[:0], "no row"),
        (lambda s: pd.concat([s, s.iloc[:1]]), "two values of"),
        (lambda s: s.assign(metric="nothing"), "no row"),
    ],
)
def test_tables_that_cannot_be_ranked_are_refused(wrong, message):
    with pytest.raises(ArenaError, match=message):
        track_results("default", wrong(synthetic_scores(2, 2, 1, metrics=("macro_f1",))))


def test_unknown_names_are_refused(means):
    for call, error, message in (
        (lambda: rank_methods(means, "makro_f1"), ArenaError, "macro_f1"),
        (lambda: rank_methods(means, "one_error"), ArenaError, "not computed"),
        (lambda: means.on(["nowhere"]), StatisticsError, "nowhere"),
        (lambda: track_results("default", synthetic_scores(1, 2, 1), methods=["x"]), ArenaError, "'x'"),
    ):
        with pytest.raises(error, match=message):
            call()


def _table(rows):
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])


def test_sources_reach_the_ratings_and_the_tests_without_the_sets_that_are_left_out():
    scores = synthetic_scores(6, 4, 2, metrics=("macro_f1", "macro_auc"))
    undefined = (scores["dataset"] == "set1") & (scores["metric"] == "macro_auc")
    scores.loc[undefined, "value"] = np.nan
    own = {"set3": "one", "set4": "one"}
    facts = [each | {"source": own.get(each["name"], each["name"])} for each in facts_of(scores)]
    seen = {}

    def rating(ranks, columns, anchor, sources):
        seen.setdefault(len(sources), list(sources))
        return pd.DataFrame({"elo": 1000.0, "elo_low": 990.0, "elo_high": 1010.0}, index=list(columns))

    content = arena_leaderboard([track_results("default", scores)], facts, {}, [], rating=rating)
    assert seen == {
        6: ["set0", "set1", "set2", "one", "one", "set5"],
        5: ["set0", "set2", "one", "one", "set5"],
    }
    tests = content["pools"][0]["tested"]["tests"]["macro_f1"]
    column = content["pools"][0]["tested"]["column"]
    means = track_results("default", scores).means()
    together = one_against_all_tests(means, column, "macro_f1", {}, own)
    other = next(name for name in means.methods if name != column)
    assert together["sources"].tolist() == [5, 5, 5]  # sets without a source are their own
    assert tests["better"][means.methods.index(other)] == pytest.approx(together.loc[other, "better"], abs=1e-6)
    assert tests["surely_better"] == (together["better"] >= 0.95).sum()
    assert tests["surely_not_worse"] == (together["better"] + together["equal"] >= 0.95).sum()


def test_an_unfinished_method_has_the_largest_finished_error_of_the_set():
    rows = [(f"s{i}", 0, m, "hamming_loss", v) for i in range(6) for m, v in (("a", 0.1), ("b", 0.12), ("c", 0.4))]
    rows += [(f"s{i}", 0, "late", "hamming_loss", 0.01) for i in range(5)]
    means = track_results("default", _table(rows)).means()
    saved = rank_methods(means, "hamming_loss").table["improvability"]
    assert saved["late"] == pytest.approx(0.3 / 0.4 / 6)  # on s5 it has the .4 of c, the best one .1
    test = one_against_all_tests(means, "a", "hamming_loss", {}).loc["late"]
    gains = pd.DataFrame({"a": [0.1] * 6, "late": [0.01] * 5 + [0.4]})
    (pair,) = bayesian_signed_rank(gains, "min", rope=0.01, control="a", samples=20_000)
    assert test[["better", "equal", "worse"]].tolist() == pytest.approx([pair.p_a, pair.p_rope, pair.p_b])


def test_the_interval_of_elo_is_that_of_95_per_cent_of_the_centred_rounds():
    pytest.importorskip("bencheval")
    from multilab.arena import elo_ratings
    from multilab.arena.elo import bradley_terry

    errors = np.random.default_rng(3).normal(size=(1, 9, 4)) + np.arange(4) / 2
    errors = np.insert(errors, 2, np.nan, axis=1)  # undefined on the third of ten datasets
    sources = [*"aabcdefghh"]
    rated = elo_ratings(errors, list("wxyz"), "x", sources, rounds=300)
    kept = np.delete(errors[0], 2, axis=0)
    wins, groups = 4 - rankdata(kept, axis=1), [[0, 1], [2], [3], [4], [5], [6], [7, 8]]
    rng, rounds = np.random.default_rng(0), []
    for _ in range(300):
        drawn = [at for group in rng.choice(7, 7) for at in groups[group]]
        fit = bradley_terry(wins[drawn].sum(axis=0)[None] + 1.5, np.array([len(drawn) + 1]))[0] * 400 / np.log(10)
        rounds.append(fit - np.median(fit))
    low, high = np.quantile(rounds, [0.025, 0.975], axis=0)
    centre = rated["elo"] - (rated["elo"] - rated["elo"].median()) + (1000 - rated["elo"].median())
    shift = rated["elo"].median()
    assert centre.notna().all()
    np.testing.assert_allclose(rated["elo_low"], np.minimum(low + shift, rated["elo"]), atol=0.01)
    np.testing.assert_allclose(rated["elo_high"], np.maximum(high + shift, rated["elo"]), atol=0.01)


def test_the_p_value_of_a_board_is_that_of_its_numbers_of_sets_and_methods(means):
    board = rank_methods(means, "macro_f1")
    n, k = 12, 5
    statistic = (n - 1) * board.tests.chi2 / (n * (k - 1) - board.tests.chi2)
    assert board.tests.p == pytest.approx(f.sf(statistic, k - 1, (k - 1) * (n - 1)))


def test_the_file_has_the_wins_of_the_row_against_the_column(means):
    scores = synthetic_scores(7, 3, 2, seed=1)
    content = arena_leaderboard([track_results("default", scores)], facts_of(scores), {}, [])
    board = rank_methods(track_results("default", scores).means(), "label")
    shares = np.array(content["pools"][0]["boards"]["label"]["wins"])
    assert not np.array_equal(shares, shares.T)
    np.testing.assert_allclose(shares, 100 * board.wins.to_numpy(), atol=0.51)


def test_a_metric_that_is_undefined_on_a_split_is_left_out_by_pools_that_average_this_split():
    scores = synthetic_scores(2, 3, 3, metrics=("macro_auc", "macro_f1"))
    gone = (scores["dataset"] == "set0") & (scores["split"] == 2) & (scores["metric"] == "macro_auc")
    scores.loc[gone, "value"] = np.nan
    tuned = scores[(scores["split"] < 2) & (scores["method"] == "m0")]
    tracks = [track_results("default", scores), track_results("tuned", tuned)]
    content = arena_leaderboard(tracks, facts_of(scores), {}, [])
    for name, sets in (("default", ["set1"]), ("tuned", ["set0", "set1"])):
        pool = next(each for each in content["pools"] if each["name"] == name)
        assert list(leaderboard_means(content, name).means("macro_auc").index) == sets
        assert pool["boards"]["macro_auc"]["sets"] == len(sets)


@pytest.mark.parametrize("metrics", [("coverage_1based",), ("coverage_1based", "coverage_normalised")])
def test_a_suite_without_a_metric_that_counts_is_refused(metrics):
    scores = synthetic_scores(2, 3, 1, metrics=metrics)
    with pytest.raises(ArenaError, match="no metric that a leaderboard counts"):
        arena_leaderboard([track_results("default", scores)], facts_of(scores), {}, [])


def test_a_group_without_a_defined_metric_is_not_in_the_file():
    scores = synthetic_scores(2, 3, 1, metrics=("macro_auc", "hamming_loss"))
    scores.loc[scores["metric"] == "macro_auc", "value"] = np.nan
    content = arena_leaderboard([track_results("default", scores)], facts_of(scores), {}, [])
    assert [each["name"] for each in content["groups"]] == ["overall", "example"]
    arena_summary(content)


def test_what_is_not_in_the_means_is_refused_by_name(means):
    track = track_results("default", synthetic_scores(2, 3, 2))
    with pytest.raises(ArenaError, match="m9"):
        rank_methods(means, "macro_f1", anchor="m9")
    with pytest.raises(StatisticsError, match="micro_f1 was"):
        one_against_all_tests(means, "m0", "micro_f1", {})
    with pytest.raises(ArenaError, match="coverage is divided by the number of labels, which is unknown of set0"):
        one_against_all_tests(track.means(), "m0", "coverage", {"set1": 6})
    with pytest.raises(StatisticsError, match="set0 has no split 7"):
        track.means({"set0": [0, 7]})


def test_equal_means_tie_and_unequal_ones_do_not_however_small_the_metric():
    rows = [("s", 0, "a", "coverage_normalised", 1e-7), ("s", 0, "b", "coverage_normalised", 3e-7)]
    rows += [("s", 0, "c", "coverage_normalised", 1e-7 + 1e-17)]
    board = rank_methods(track_results("default", _table(rows)).means(), "coverage_normalised")
    assert board.table["rank"].to_dict() == {"a": 1.5, "c": 1.5, "b": 3.0}


def test_a_set_on_which_nothing_finished_the_averaged_splits_counts_for_no_metric():
    scores = without_cells(synthetic_scores(2, 2, 2), ("set0", "m0", 1), ("set0", "m1", 1))
    stopped = pd.DataFrame([("set0", 1, "m0", "60 s")], columns=["dataset", "split", "method", "reason"])
    track = track_results("default", scores, stopped)
    assert list(track.means({"set0": [0]}).means("macro_f1").index) == ["set0", "set1"]
    assert list(track.means({"set0": [1]}).means("macro_f1").index) == ["set1"]


def test_pairs_are_compared_by_the_mean_share_of_each_source_and_the_direction_is_that_of_the_ranks():
    shares = np.full((12, 2, 2), np.nan)
    shares[:, 0, 1] = [1.0] * 4 + [0.49] * 7 + [1.0]  # four sets of one source
    pair = _Shares(("a", "b"), (*["one"] * 4, *(f"own{at}" for at in range(8))), shares)
    (row,) = _tested([(pair, "a", "b")])
    assert (row["sets"], row["sources"], row["sets_won"], row["sets_lost"]) == (12, 9, 5, 7)
    assert row["wins"] == pytest.approx((1.0 + 7 * 0.49 + 1.0) / 9, abs=1e-6)
    differences = np.array([0.5, *[-0.02] * 11])
    assert differences.mean() > 0
    assert _verdict(differences, 0.01) == "worse"
    assert _verdict(-differences, 0.01) == "better"
    assert _verdict(differences, 0.06) == "no difference"


def test_means_on_some_sets_have_their_order_and_a_set_with_an_undefined_metric_is_finished():
    scores = synthetic_scores(3, 3, 1, metrics=("macro_auc", "macro_f1"))
    scores.loc[(scores["dataset"] == "set1") & (scores["metric"] == "macro_auc"), "value"] = np.nan
    track = track_results("default", scores)
    turned = track.means().on(["set2", "set0"])
    assert list(turned.means("macro_f1").index) == ["set2", "set0"]
    np.testing.assert_array_equal(turned.values, track.means().values[:, [2, 0]])
    read = leaderboard_means(arena_leaderboard([track], facts_of(scores), {}, []))
    np.testing.assert_array_equal(read.values, track.means().values)
    np.testing.assert_array_equal(read.undefined, track.means().undefined)
    assert not read.incomplete.any()
