"""The commands of the arena on small invented tables of all four studies: files, terminal, summary and page."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.arena_tables import facts_of, synthetic_scores
from multilab.arena.committed_tables import LICENCE, absent_entrants, arena_settings
from multilab.cells.conf import entrant_names, names
from multilab.cli import main
from multilab.core import read_json
from multilab.experiments.study import load_study

CHECKOUT = Path(__file__).resolve().parents[2]
SETS = {"set0": "flags", "set1": "yeast", "set2": "emotions", "set3": "scene"}
METHODS = {"m0": "mlknn", "m1": "br_logistic", "m2": "lightgbm", "m3": "lwmf"}
METRICS = ("macro_f1", "hamming_loss", "ranking_loss")


def rating(ranks, columns, anchor, sources):
    elo = np.round(1000 - 30 * np.nanmean(ranks, axis=(0, 1)), 1)
    return pd.DataFrame({"elo": elo, "elo_low": elo - 20, "elo_high": elo + 20}, index=list(columns))


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return the folder of the reports after `rank`, `summary` and `page`."""
    root = tmp_path_factory.mktemp("arena")
    facts = facts_of(synthetic_scores(4, 1, 1))
    cards = [
        {
            **{key: fact[key] for key in ("cardinality", "density", "sparse")},
            **{"name": SETS[fact["name"]], "instances": fact["n"], "columns": fact["d"], "labels": fact["q"]},
            **{
                "distinct_label_sets": 9,
                "nominal_features": 0,
                "split_digests": [f"{fact['name']}-{i}" for i in (0, 1)],
            },
        }
        for fact in facts
    ]
    environment = {"created": "2026-11-23 14:00 UTC", "versions": {"scikit-learn": "1.9.1", "lightgbm": "4.7.0"}}
    environment["libraries"] = {"lightgbm": ["lightgbm"]}
    tune = {"n_trials": 15, "folds": 3, "metric": "macro_f1", "sampler": "random"}
    tables = {
        "arena": (synthetic_scores(4, 4, 2, metrics=METRICS), METHODS, {}),
        "arena-tuned": (synthetic_scores(3, 2, 2, seed=1, metrics=METRICS), METHODS, {"tune": tune}),
        "arena-stacks": (synthetic_scores(4, 1, 2, seed=2, metrics=METRICS), {"m0": "stack"}, {}),
        "arena-costs": (synthetic_scores(1, 4, 1, metrics=METRICS), METHODS, {}),
        "arena-stack-costs": (synthetic_scores(1, 1, 1, metrics=METRICS), {"m0": "stack"}, {}),
    }
    for study, (scores, methods, more) in tables.items():
        folder = root / "reports" / study
        folder.mkdir(parents=True)
        scores = scores.replace({"dataset": SETS, "method": methods})
        scores.to_csv(folder / "scores.csv.gz", index=False)
        measured = scores[["dataset", "split", "method"]].drop_duplicates()
        costs = {"fit_seconds": 2.0, "input_seconds": 0.0, "predict_seconds": 0.1, "peak_mb": 1.0, "model_bytes": 1e5}
        measured.assign(**costs, alone=study.endswith("costs")).to_csv(folder / "measured.csv", index=False)
        described = {"title": study, "methods": list(scores["method"].unique()), "protocol": {"kfold": 5}, **more}
        for name, content in (("study", described), ("datasets", cards), ("environment", environment)):
            (folder / f"{name}.json").write_text(json.dumps(content))
    (root / "docs").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("MULTILAB_JOBS", "1")
        patch.setattr("multilab.reports.arena.rank._rating", lambda required=False: rating)
        for verb in ("rank", "summary", "page"):
            assert main(["arena", verb]) == 0
    return root / "reports"


@pytest.fixture(scope="module")
def content(reports):
    return read_json(reports / "arena" / "leaderboard.json.gz")


@pytest.mark.slow
def test_all_results_are_one_table(reports):
    table = pd.read_parquet(reports / "arena" / "results.parquet").set_index(["set", "split", "method", "metric"])
    rows = 0
    for study, track in (("arena", ""), ("arena-tuned", "@tuned"), ("arena-stacks", "@ensembled")):
        for row in pd.read_csv(reports / study / "scores.csv.gz").itertuples():
            cell = table.loc[(row.dataset, row.split, f"{row.method}{track}", row.metric)]
            assert cell.to_dict() == {"value": row.value, "seconds": pytest.approx(2.1), "megabytes": 1.0}
            rows += 1
    assert len(table) == rows > 0


def test_methods_have_licence_library_and_the_sets_that_decided_their_rules(content):
    methods = content["methods"]
    assert methods["mlknn"]["licence"] == methods["lwmf"]["licence"] == LICENCE
    assert methods["lightgbm"]["licence"] == "MIT"
    assert methods["lightgbm"]["libraries"] == {"lightgbm": "4.7.0"}
    assert methods["br_logistic"]["libraries"] == {"scikit-learn": "1.9.1"}
    assert methods["mlknn"]["libraries"] == {}  # this environment does not have the version of multilab
    chosen = next(each for each in arena_settings()["chosen_on"] if "stack" in each["methods"])
    assert methods["stack@ensembled"]["chosen_on"] == {key: chosen[key] for key in ("sets", "reason")}
    assert methods["mlknn"]["chosen_on"] is None


def test_the_licence_of_the_package_is_that_of_its_metadata():
    if (CHECKOUT / "pyproject.toml").is_file():
        assert tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["license"] == LICENCE


def test_settings_of_the_arena_name_methods_and_sets_that_there_are():
    settings = arena_settings()
    known, sets = set(names("method")), set(names("dataset"))
    for chosen in settings["chosen_on"]:
        assert set(chosen["methods"]) <= known
        assert set(chosen["sets"]) <= sets
        assert chosen["reason"].strip()
    assert settings["tested"].partition("@")[0] in known


def test_entrants_without_results_are_listed_with_the_reason(content):
    absent = {each["name"]: each["reason"] for each in content["absent"]}
    assert set(absent) == set(entrant_names("method")) - {"lightgbm", "stack"}
    assert absent["tabicl"] == absent["tabpfn"] == "not run here: weights"
    assert absent["tabm"] == "not run here: tabm, torch"
    assert absent["omikuji"] == "not run here: omikuji"
    listed = load_study("arena").methods
    assert absent["catboost"] == "in arena, which is not computed yet"
    assert {absent[name] for name in absent if name not in listed and not name.startswith(("tab", "omi"))} <= {
        "in no study of the arena",
        "in arena-stacks, which is not computed yet",
    }
    assert absent_entrants([], {})[0]["reason"] == "in no study of the arena"


def test_the_terminal_marks_stacks_on_the_sets_that_decided_their_rules(reports, monkeypatch, capsys):
    monkeypatch.chdir(reports.parent)
    assert main(["arena", "rank", "--metric", "macro_f1", "--sets", "flags,scene", "--pool", "ensembled"]) == 0
    text = capsys.readouterr().out
    assert "stack@ensembled †" in text
    assert "† optimistic: results on flags decided rules of the method" in text
    for arguments in (["--sets", "yeast,scene", "--pool", "ensembled"], ["--pool", "ensembled-unseen"]):
        assert main(["arena", "rank", "--metric", "macro_f1", *arguments]) == 0
        text = capsys.readouterr().out
        assert "stack@ensembled" in text
        assert "†" not in text
    assert main(["arena", "rank", "--metric", "macro_f1"]) == 0  # of the pools with the most sets the widest
    assert "4 sets, 5 methods (default + ensembled)" in capsys.readouterr().out


def test_the_page_marks_them_too_and_has_all_sections(reports, content):
    index = (reports / "arena" / "index.html").read_text()
    assert f"{content['methods']['stack@ensembled']['title']} (ensembled) †" in index
    assert "strength of the prior over label sets" in index
    assert "15 draws, of which draw 0 is the method’s own values" in index
    assert "not run here: weights" in index
    assert "Default and ensembled, unseen sets, 2 sets: Stack (ensembled) is first" in index
    assert re.search(r"With Elo \d+ \(\d+–\d+\) over all metrics it is above \d of 2 tuned methods", index)
    assert "measured with nothing in parallel" in index  # the study of costs
    assert json.loads((reports / "arena" / "summary.json").read_text())["stacking"]["unseen"]["sets"] == [
        "yeast",
        "scene",
    ]
    assert "On 2 unseen sets" in (reports.parent / "docs" / "arena-results.md").read_text()


def test_a_stack_has_costs_under_its_name_of_the_track(content):
    costs = content["costs"]
    assert costs["studies"] == ["arena-costs", "arena-stack-costs"]
    position = costs["columns"].index("stack@ensembled")
    assert costs["fit_seconds"][position] > 0
    assert costs["predict_ms"][position] is None  # its base methods were not measured here
