"""Portfolios of stacks: chosen from results on other data sets, within a cost."""

import functools

import numpy as np
import pandas as pd
import pytest
import yaml

from multilab.arena import ArenaError, choose_portfolio, normalised_scores, unrelated_sets
from multilab.arena.portfolio import _value as portfolio_value
from multilab.cli import main
from multilab.core import write_content
from multilab.experiments.study import load_study
from multilab.statistics.result_files import table_file

SETS = ("emotions", "flags", "yahoo-arts", "yahoo-health", "yeast")
choose = functools.partial(choose_portfolio, families=["yahoo-*"])
METHODS = ("br_logistic", "cc_logistic", "erf_pct", "mlknn", "rf_pct")


def tables(seed=0):
    """Return scores and seconds of five methods on five sets."""
    rng = np.random.default_rng(seed)
    rows = [
        (dataset, split, method, metric, rng.random())
        for dataset in SETS
        for split in range(2)
        for method in METHODS
        for metric in ("macro_auc", "ranking_loss")
    ]
    scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    cells = scores[["dataset", "split", "method"]].drop_duplicates()
    return scores, cells.assign(fit_seconds=rng.random(len(cells)))


def test_the_portfolio_of_a_set_does_not_depend_on_its_scores_or_on_results_of_its_family():
    scores, measured = tables()
    other, _ = tables(1)
    for dataset, family in (("emotions", ["emotions"]), ("yahoo-arts", ["yahoo-arts", "yahoo-health"])):
        before = choose(dataset, scores, measured, k=3)
        own = scores["dataset"].isin(family)
        changed = pd.concat([scores[~own], other[own]])
        relatives = measured["dataset"].isin(set(family) - {dataset})
        late = measured.assign(fit_seconds=measured["fit_seconds"].where(~relatives, 1e6))
        unfinished = measured[relatives]
        assert choose(dataset, changed, late, unfinished, k=3) == before
        assert not set(before.other_sets) & set(family)
    changed = pd.concat([scores[scores["dataset"] != "flags"], other[other["dataset"] == "flags"]])
    assert choose("emotions", changed, measured, k=3) != choose_portfolio("emotions", scores, measured, k=3)


def test_members_complement_each_other_before_they_repeat():
    # b is nearly a; c is best where a is bad
    values = {"x": (0.9, 0.89, 0.5, 0.1, 0.1), "y": (0.5, 0.5, 0.9, 0.1, 0.1), "z": (0.9, 0.89, 0.5, 0.1, 0.1)}
    rows = [(d, 0, m, "macro_auc", v) for d, vs in values.items() for m, v in zip("abcde", vs, strict=True)]
    scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
    measured = scores[["dataset", "split", "method"]].assign(fit_seconds=1.0)
    portfolio = choose("new", scores, measured, k=3)
    assert portfolio.methods == ("a", "c", "b")
    assert np.diff(portfolio.values).min() > 0


def test_costly_unfinished_and_excluded_methods_are_left_out():
    scores, measured = tables()
    chosen = choose("emotions", scores, measured, k=5)
    assert set(chosen.methods) == set(METHODS)
    first, second, third = chosen.methods[:3]
    late = measured.assign(fit_seconds=measured["fit_seconds"].where(measured["method"] != first, 31.0))
    missing = measured[(measured["method"] == second) & (measured["dataset"] == "emotions")].head(1)
    less = choose("emotions", scores, late, missing, k=5, exclude=[third], limit=60)
    assert set(less.methods) == set(chosen.methods[3:])
    elsewhere = missing.assign(dataset="yeast")  # unfinished on a larger set: worth nothing there, a member here
    unfinished = choose("emotions", scores, measured, elsewhere, k=5)
    assert second in unfinished.methods
    assert unfinished.values[-1] < chosen.values[-1]
    assert second not in choose("new", scores, measured, elsewhere, k=5).methods
    cheap = choose("emotions", scores, measured, k=5, seconds=1.2)
    assert cheap.seconds <= 1.2
    assert len(cheap.methods) < 5
    with pytest.raises(ArenaError, match="no method finished"):
        choose("emotions", scores, measured, seconds=1e-6)


def test_a_new_set_is_limited_by_sets_that_are_not_larger():
    scores, measured = tables()
    sizes = {"emotions": 1e5, "flags": 1e4, "yahoo-arts": 1e8, "yahoo-health": 1e8, "yeast": 1e6}
    best = choose("new", scores, measured, k=1).methods[0]
    large = measured[(measured["method"] == best) & (measured["dataset"] == "yahoo-arts")]
    late = measured.assign(fit_seconds=measured["fit_seconds"].where(~measured.index.isin(large.index), 31.0))
    for size, member in ((5e5, True), (2e8, False), (1.0, False)):  # the last one: no set is smaller, so all decide
        for changed in ({"unfinished": large.head(1)}, {"measured": late}):
            arguments = {"measured": measured, **changed}
            chosen = choose("new", scores, **arguments, k=5, sizes={**sizes, "new": size})
            assert (best in chosen.methods) == member
            assert best not in choose("new", scores, **arguments, k=5).methods  # without sizes all decide
    small = measured[(measured["method"] == best) & (measured["dataset"] == "flags")]
    assert best not in choose("new", scores, measured, small, k=5, sizes={**sizes, "new": 5e5}).methods
    kept = choose("new", scores, measured, k=5, sizes={**sizes, "new": 5e5})
    zero = choose("new", scores, measured, large, k=5, sizes={**sizes, "new": 5e5})
    assert set(zero.methods) == set(kept.methods)
    assert zero.values[-1] < kept.values[-1]  # worth nothing where it is unfinished
    relatives = choose("yahoo-new", scores, measured, large, k=5, sizes={**sizes, "yahoo-new": 2e8})
    assert best in relatives.methods  # a set of its family does not decide


def test_scores_are_normalised_between_the_median_and_the_best():
    rows = [
        ("s", split, m, "ranking_loss", v)
        for split in (0, 1)
        for m, v in zip("abcd", (0.1, 0.2, 0.4, 0.9), strict=True)
    ]
    rows += [("s", 0, m, "macro_auc", 0.5) for m in "abcd"]
    scores = normalised_scores(pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"]))
    assert scores.loc[("s", "ranking_loss")].tolist() == pytest.approx([1.0, 0.5, 0.0, 0.0])
    assert scores.loc[("s", "macro_auc")].tolist() == [0.0] * 4


def test_sets_of_a_family_are_left_out_together():
    families = ["yahoo-*", "virus-*"]
    assert unrelated_sets("virus-go", ["virus-go", "virus-pseaac", "gpositive-go"], families) == ["gpositive-go"]
    assert unrelated_sets("emotions", ["virus-go", "emotions"], families) == ["virus-go"]
    scores, measured = tables()
    with pytest.raises(ArenaError, match="unrelated to 'yahoo-arts'"):
        choose("yahoo-arts", scores[scores["dataset"].str.startswith("yahoo")], measured)


def test_the_command_writes_a_study_that_loads(tmp_path, monkeypatch, capsys):
    scores, measured = tables()
    scores = scores.replace({"yahoo-arts": "chd-49", "yahoo-health": "birds"})
    measured = measured.replace({"yahoo-arts": "chd-49", "yahoo-health": "birds"})
    folder = tmp_path / "arena"
    folder.mkdir()
    scores.to_csv(folder / "scores.csv.gz", index=False)
    measured.to_csv(folder / "measured.csv", index=False)
    monkeypatch.setattr("multilab.arena.portfolio.report_dir", lambda name: tmp_path / name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf" / "study").mkdir(parents=True)
    out = tmp_path / "conf" / "study" / "stacks.yaml"
    assert main(["arena", "portfolio", "--k", "2", "--output", str(out)]) == 0
    assert "emotions: " in capsys.readouterr().out
    study = load_study("stacks")
    listed = load_study("arena").datasets
    assert study.datasets == tuple(name for name in listed if name in set(scores["dataset"]))
    assert {"flags", "chd-49", "emotions", "birds"} <= set(study.datasets)
    assert study.limits == load_study("arena").limits
    assert study.settings_for_members
    for dataset in study.datasets:
        expected = choose(dataset, scores, measured, k=2).methods
        assert study.method("stack", dataset).base_scores == expected
    assert yaml.safe_load(out.read_text())["like"] == "arena"

    # other results: a set keeps its portfolio unless its block is removed
    before, others = out.read_text(), tables(1)[0]
    others.replace({"yahoo-arts": "chd-49", "yahoo-health": "birds"}).to_csv(folder / "scores.csv.gz", index=False)
    assert main(["arena", "portfolio", "--k", "3", "--output", str(out)]) == 0
    assert out.read_text() == before
    assert "emotions: kept, " in capsys.readouterr().out
    removed = yaml.safe_load(before)
    removed["settings"] = [block for block in removed["settings"] if block.get("datasets") != ["emotions"]]
    out.write_text(yaml.safe_dump(removed))
    assert main(["arena", "portfolio", "--k", "3", "--output", str(out)]) == 0
    again = load_study("stacks")
    assert set(again.datasets) == set(study.datasets)
    assert len(again.method("stack", "emotions").base_scores) == 3
    assert again.method("stack", "flags").base_scores == study.method("stack", "flags").base_scores
    assert main(["arena", "portfolio", "--k", "0", "--output", str(out)]) == 2


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Return the folder of an arena with results on five sets, in which the command reads and writes."""
    folder = tmp_path / "arena"
    folder.mkdir()
    for name, table in zip(("scores", "measured"), tables(), strict=True):
        table.to_csv(folder / table_file(name), index=False)
    monkeypatch.setattr("multilab.arena.portfolio.report_dir", lambda name: tmp_path / name)
    monkeypatch.setattr(load_study("arena").__class__, "datasets", SETS, raising=False)
    return folder


def members_of(path):
    """Return the base methods by data set that the command wrote."""
    return {
        block["datasets"][0]: block["set"]["base_scores"]
        for block in yaml.safe_load(path.read_text())["settings"]
        if "base_scores" in block["set"]
    }


def test_the_command_leaves_out_related_sets_stacks_and_late_methods(results, tmp_path, capsys):
    out = tmp_path / "stacks.yaml"
    assert main(["arena", "portfolio", "--k", "2", "--output", str(out)]) == 0
    before = members_of(out)
    scores, measured = pd.read_csv(results / "scores.csv.gz"), pd.read_csv(results / "measured.csv")
    changed = scores.copy()
    health = changed["dataset"] == "yahoo-health"
    changed.loc[health, "value"] = 1 - changed.loc[health, "value"]
    changed.to_csv(results / "scores.csv.gz", index=False)
    out.unlink()
    assert main(["arena", "portfolio", "--k", "2", "--output", str(out)]) == 0
    assert members_of(out)["yahoo-arts"] == before["yahoo-arts"]  # related by conf/arena.yaml

    best = before["emotions"][0]
    late = (measured["dataset"] == "emotions") & (measured["method"] == best)
    measured["fit_seconds"] = measured["fit_seconds"].where(~late, 31.0)
    stacks = [table[table["method"] == best].assign(method="mlwse_l1") for table in (scores, measured)]
    for name, parts in (("scores", (scores, stacks[0])), ("measured", (measured, stacks[1].assign(fit_seconds=0.1)))):
        pd.concat(parts).to_csv(results / table_file(name), index=False)
    out.unlink()
    assert main(["arena", "portfolio", "--k", "5", "--budget", "10m", "--output", str(out)]) == 0
    assert best not in members_of(out)["emotions"]  # two fits of 31 s do not fit into the 60 s of a cell
    assert best in members_of(out)["flags"]
    assert not any("mlwse_l1" in each for each in members_of(out).values())


@pytest.mark.parametrize(
    "text", ["[1, 2]", "settings: 3", "{", "settings: [{set: {base_scores: [a]}}]", "settings: [{datasets: [flags]}]"]
)
def test_a_file_of_portfolios_that_is_none_is_refused_in_one_line(results, tmp_path, capsys, text):
    out = tmp_path / "stacks.yaml"
    out.write_text(text)
    assert main(["arena", "portfolio", "--output", str(out)]) == 2
    error = capsys.readouterr().err
    assert "stacks.yaml" in error
    assert error.count("\n") == 1
    assert out.read_text() == text


@pytest.mark.parametrize("name", ["scores", "measured", "unfinished"])
def test_tables_without_their_columns_are_refused_in_one_line(results, tmp_path, capsys, name):
    write_content(results / table_file(name), "dataset,split\nflags,0\n")
    assert main(["arena", "portfolio", "--output", str(tmp_path / "stacks.yaml")]) == 2
    error = capsys.readouterr().err
    assert table_file(name) in error
    assert "lacks the column" in error
    assert error.count("\n") == 1


def test_the_second_best_member_counts_half_and_the_third_a_quarter():
    assert portfolio_value(np.array([[0.2, 1.0, 0.6], [0.0, 0.4, 0.8]])) == pytest.approx(
        np.mean([1.0 + 0.3 + 0.05, 0.8 + 0.2])
    )
