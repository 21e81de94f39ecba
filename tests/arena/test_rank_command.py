"""`multilab arena rank`: tables in the terminal, and the file, from committed tables of studies."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from helpers.arena_tables import facts_of, synthetic_scores, without_cells
from helpers.command_line import candidates
from multilab.arena import SCHEMA
from multilab.arena import committed_tables as tables
from multilab.arena.committed_tables import arena_settings
from multilab.cli import main
from multilab.core import read_json, write_content

NAMES = {"m0": "mlknn", "m1": "br_logistic", "m2": "ecc", "m3": "new_method"}


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """Return the folder of the reports of an arena of four methods on three sets, with costs and a tuned track."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    scores = synthetic_scores(3, 4, 2, metrics=("macro_f1", "ranking_loss", "hamming_loss"))
    sets = dict(zip(["set0", "set1", "set2"], ["emotions", "enron", "yeast"], strict=True))
    scores = scores.replace({"method": NAMES, "dataset": sets})
    cards = [
        {
            **{key: fact[key] for key in ("cardinality", "density", "sparse")},
            "name": sets[fact["name"]],
            "instances": fact["n"],
            "columns": fact["d"],
            "labels": fact["q"],
            "distinct_label_sets": 9,
            "nominal_features": 0,
            "split_digests": [f"{fact['name']}-0", f"{fact['name']}-1"],
        }
        for fact in facts_of(synthetic_scores(3, 1, 1))
    ]
    study = {
        "title": "Arena",
        "methods": list(NAMES.values()),
        "protocol": {"kfold": 5},
        "method_titles": {"mlknn": "ML-kNN"},
    }
    _write(tmp_path / "reports" / "arena", without_cells(scores, ("enron", "ecc", 1)), cards, study)
    stopped = pd.DataFrame(
        [("enron", 1, "ecc", "time limit of 60 s", 61.0)], columns=["dataset", "split", "method", "reason", "seconds"]
    )
    stopped.to_csv(tmp_path / "reports" / "arena" / "unfinished.csv", index=False)
    tuned = scores[(scores["method"] == "mlknn") & (scores["dataset"] == "emotions") & (scores["split"] == 0)]
    _write(tmp_path / "reports" / "arena-tuned", tuned, cards[:1], study | {"title": "Tuned"})
    return tmp_path / "reports"


def _write(folder, scores, cards, study):
    folder.mkdir(parents=True)
    scores.to_csv(folder / "scores.csv.gz", index=False)
    measured = scores[["dataset", "split", "method"]].drop_duplicates()
    measured = measured.assign(fit_seconds=2.0, input_seconds=0.0, predict_seconds=0.1, peak_mb=1.0, model_bytes=1e5)
    measured.assign(alone=False).to_csv(folder / "measured.csv", index=False)
    (folder / "datasets.json").write_text(json.dumps(cards))
    (folder / "study.json").write_text(json.dumps(study))
    environment = {"created": "2026-11-23 14:00 UTC", "machine": "Linux, 2 cores", "commit": "0" * 12}
    (folder / "environment.json").write_text(json.dumps(environment))


def test_a_table_of_some_sets_is_printed_and_nothing_is_written(reports, capsys):
    assert main(["arena", "rank", "--metric", "macro_f1,label", "--sets", "text", "--pool", "default"]) == 0
    text = capsys.readouterr().out
    assert "Macro F1, 1 set (text), 4 methods (default)" in text
    assert "Label-based, 1 set" in text
    assert text.split("ecc", 1)[1].split("\n")[0].endswith("–        100%")
    assert not list(reports.rglob("leaderboard.json.gz"))


def test_the_table_of_all_results_has_no_row_of_a_cell_that_did_not_finish(reports):
    table = tables.results_table()
    splits = table[(table["set"] == "enron") & (table["method"] == "ecc")]["split"]
    assert set(splits) == {0}
    assert set(table["method"]) == {*NAMES.values(), "mlknn@tuned"}


def test_related_sets_have_one_source(reports, monkeypatch):
    monkeypatch.setattr(tables, "arena_settings", lambda: {"domains": {}, "related": {"crawl": ["enr*", "yeast"]}})
    assert [each["source"] for each in tables.facts_of_sets(tables.STUDIES)] == ["emotions", "crawl", "crawl"]


def test_fewer_methods_are_printed_on_request(reports, capsys):
    assert main(["arena", "rank", "--metric", "macro_f1", "--pool", "default", "--top", "2"]) == 0
    text = capsys.readouterr().out
    assert "2 methods more" in text
    assert "critical difference of ranks" in text


def test_the_file_holds_what_the_tables_do_and_is_the_same_on_a_rerun(reports, capsys):
    pytest.importorskip("bencheval")
    assert main(["arena", "rank"]) == 0
    path = reports / "arena" / "leaderboard.json.gz"
    first = path.read_bytes()
    content = read_json(path)
    assert content["schema"] == SCHEMA
    assert content["created"] == "2026-11-23 14:00 UTC"
    assert [each["domain"] for each in content["sets"]] == ["audio", "text", "biology"]
    assert [each["source"] for each in content["sets"]] == ["emotions", "enron", "yeast"]
    assert content["sets"][0]["title"].startswith("Emotions")
    assert content["methods"]["mlknn"]["title"] == "ML-kNN"
    assert content["methods"]["mlknn"]["family"] == "neighbours"
    assert content["methods"]["mlknn@tuned"]["track"] == "tuned"
    assert content["methods"]["new_method"]["family"] is None
    unfinished = {"set": "enron", "column": "ecc", "splits": 1, "reason": "time limit of 60 s"}
    assert content["tracks"]["default"]["unfinished"] == [unfinished]
    assert [pool["name"] for pool in content["pools"]] == ["default", "tuned"]
    assert content["pools"][0]["anchor"] == "br_logistic"
    assert content["pools"][0]["boards"]["overall"]["elo"][1] == 1000
    assert set(content["pools"][1]["values"]) == {"default"}  # the tuned track has one split, which is averaged
    assert content["costs"] | {"cells": None} == content["costs"] | {
        "studies": ["arena"],
        "alone": False,
        "cells": None,
    }
    assert content["costs"]["fit_seconds"][0] > 0
    capsys.readouterr()
    assert main(["arena", "rank"]) == 0
    assert path.read_bytes() == first
    assert "default 3 sets x 4 methods, tuned 1 sets x 1 methods; 3 metrics" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "macro_f2"], "macro_f1"),
        (["--sets", "nowhere"], "nowhere"),
        (["--pool", "all"], "pool"),
        (["--metric", "macro_f1", "--top", "x"], "'--top': 'x' is not a valid integer"),
        (["--default", "nothing"], "reports/nothing/scores.csv.gz is not there"),
        (["--colour", "red"], "No such option '--colour'"),
        (["--anchor", "nobody"], "no column for --anchor is called 'nobody'"),
        (["--metric", "macro_f1", "--tested", "nobody"], "nobody"),
        (["--costs", "arena-tuned"], "add --output FOLDER"),
        (["--costs", "none"], "reports/none/scores.csv.gz is not there"),
        (["--tuned", "arena-tunde", "--metric", "macro_f1"], "reports/arena-tunde/scores.csv.gz is not there"),
        (["--metric", "macro_f1", "--output", "mine"], "with --metric nothing is written"),
        (["--sets", ","], "names no dataset"),
    ],
)
def test_what_cannot_be_ranked_is_refused_in_one_line(reports, capsys, arguments, message):
    assert main(["arena", "rank", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_sets_of_one_source_reach_the_ratings_of_a_printed_table(reports, monkeypatch, capsys):
    seen = []

    def rating(ranks, columns, anchor, sources):
        seen.append(sources)
        return pd.DataFrame({"elo": 1000.0, "elo_low": 990.0, "elo_high": 1010.0}, index=list(columns))

    settings = arena_settings() | {"related": {"music": ["emo*", "yea*"]}}
    monkeypatch.setattr("multilab.arena.committed_tables.arena_settings", lambda: settings)
    monkeypatch.setattr("multilab.reports.arena.rank._rating", lambda required=False: rating)
    assert main(["arena", "rank", "--metric", "macro_f1"]) == 0
    assert seen == [["music", "enron", "music"]]


@pytest.mark.parametrize("name", ["study", "datasets"])
def test_descriptions_that_are_not_json_are_refused_in_one_line(reports, capsys, name):
    (reports / "arena" / f"{name}.json").write_text("{")
    assert main(["arena", "rank"]) == 2
    error = capsys.readouterr().err
    assert f"{name}.json is not JSON" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}', ""])
def test_a_leaderboard_that_is_none_has_no_summary(reports, capsys, text):
    write_content(reports / "arena" / "leaderboard.json.gz", text)
    assert main(["arena", "summary"]) == 2
    error = capsys.readouterr().err
    assert "leaderboard.json.gz" in error
    assert "`multilab arena rank` writes it again" in error
    assert error.count("\n") == 1


def test_help_and_completion(capsys):
    assert main(["arena", "rank", "--help"]) == 0
    assert "multilab arena rank --metric macro_f1 --sets text" in capsys.readouterr().out
    assert candidates("multilab arena rank --metric over") == ["overall"]
    assert candidates("multilab arena rank --sets tex") == ["text"]
    assert "--pool" in candidates("multilab arena rank --")
