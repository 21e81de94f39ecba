"""The page "Evaluate a model from elsewhere": its Python makes the files, its commands run on them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from helpers.html_page import Page
from helpers.page_code import run_code
from multilab.cli import main
from multilab.metrics import macro_f1

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "evaluate.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


COMMANDS = [line for block in blocks("bash") for line in block.splitlines()] if PAGE.is_file() else []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make the files of the page and run its commands."""
    root = tmp_path_factory.mktemp("evaluate")
    assert run_code(blocks("python")[0], root) == ""
    outputs = []
    for line in COMMANDS:
        words = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        outputs.append(done.stdout)
    (root / "outputs.json").write_text(json.dumps(outputs))
    return root


@pytest.fixture
def work(folder, monkeypatch):
    """Work in the folder of the run."""
    monkeypatch.chdir(folder)
    return folder


def test_the_page_shows_what_the_command_prints(work):
    printed = json.loads((work / "outputs.json").read_text())[0].splitlines()
    (shown,) = blocks("text")
    assert len(COMMANDS) == 3
    lines = shown.splitlines()
    assert [line.rstrip() for line in printed[: len(lines)]] == lines


def test_decisions_are_those_of_the_thresholds(work):
    rules = json.loads((work / "reports/net/rules.json").read_text())
    decided = pd.read_csv(work / "decisions.csv").set_index("id")
    with np.load(work / "test-logits.npz") as file:
        scores = pd.DataFrame(expit(file["logits"]), file["ids"], file["labels"])
    assert {label["name"] for label in rules["labels"]} == set(scores)
    for label in rules["labels"]:
        name = label["name"]
        assert decided[name].tolist() == (scores[name] >= label["threshold"]).astype(int).tolist()
        a, b, c = label["calibration"]
        probability = expit(a * np.log(scores[name]) - b * np.log1p(-scores[name]) + c)
        np.testing.assert_allclose(decided[f"{name}_probability"], probability, rtol=0, atol=1e-9)
    truth = pd.read_csv(work / "test.csv").set_index("id").loc[decided.index]
    value = macro_f1(truth, decided[list(truth)])
    last = json.loads((work / "outputs.json").read_text())[-1]
    assert f": {value:.4f}, limit 0.6: passed" in last
    assert value > 0.6


def test_the_page_of_the_report_has_all_parts(work):
    page = Page((work / "reports/net/index.html").read_text())
    assert {"values", "tests", "decisions", "labels", "reproduce"} <= {
        attributes.get("id") for _, attributes in page.elements
    }
    values = pd.read_csv(work / "reports/net/values.csv")
    found = values.set_index(["model", "metric"]).loc[("old", "macro_f1"), "value"]
    assert f"{found:.4f}" in (work / "reports/net/index.html").read_text()
    for name in ("values", "tests", "gains", "calibration", "labels"):
        assert len(pd.read_csv(work / f"reports/net/{name}.csv"))


def test_a_check_below_its_value_fails(work, capsys):
    run = ["evaluate", "truth.csv", "logits.npz", "--kind", "logits", "--draws", "20"]
    assert main([*run, "--fail-below", "macro_f1=0.1", "--fail-below", "hamming_loss=0.9"]) == 0
    assert main([*run, "--fail-below", "macro_f1=0.99"]) == 1
    assert main([*run, "--fail-below", "hamming_loss=0.001"]) == 1
    assert main([*run, "--fail-below", "brier_score=0.5"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "arguments",
    [
        ["truth.csv", "logits.npz"],
        ["truth.csv", "logits.npz", "--kind", "odds"],
        ["truth.csv", "logits.npz", "--kind", "logits,logits"],
        ["truth.csv", "logits.npz", "--kind", "logits", "--fail-below", "macro_f1"],
        ["truth.csv", "logits.npz", "--kind", "logits", "--fail-below", "accuracy=1"],
        ["truth.csv", "logits.npz", "--kind", "logits", "--labels", "peace"],
        ["truth.csv", "unnamed.npz", "--kind", "logits"],
        ["truth.csv", "none.csv"],
        ["truth.csv", "test-logits.npz", "--kind", "logits"],
        ["truth.csv", "old.csv", "--rules", "reports/net/rules.json"],
        ["truth.csv", "old.csv", "--rules", "truth.csv"],
    ],
)
def test_wrong_uses_are_one_line(work, arguments, capsys):
    with np.load("logits.npz") as file:
        np.savez("unnamed.npz", file["logits"])
    assert main(["evaluate", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_unnamed_matrices_are_in_the_order_of_the_truth(work, capsys):
    with np.load("logits.npz") as file:
        np.savez("unnamed.npz", file["logits"])
    run = ["--kind", "logits", "--draws", "20"]
    assert main(["evaluate", "truth.csv", "unnamed.npz", "--in-order", *run]) == 0
    first = capsys.readouterr().out.replace("unnamed", "logits")
    assert main(["evaluate", "truth.csv", "logits.npz", *run]) == 0
    *values, rows, labels = first.splitlines()
    assert "position" in rows
    assert "position" in labels
    assert capsys.readouterr().out.split() == " ".join(values).split()


@pytest.fixture
def shuffled(folder, tmp_path, monkeypatch):
    """Write labels under a column ``film`` in another order than the rows of the scores, as 0/1 and as tags."""
    truth = pd.read_csv(folder / "truth.csv").sample(frac=1, random_state=0).rename(columns={"id": "film"})
    names = ["war", "love", "crime", "space"]
    truth.to_csv(tmp_path / "labels.csv", index=False)
    tags = ["|".join(name for name in names if row[name]) for _, row in truth.iterrows()]
    pd.DataFrame({"film": truth["film"], "tags": tags}).to_csv(tmp_path / "tags.csv", index=False)
    with np.load(folder / "logits.npz") as file:
        arrays = {name: file[name] for name in ("logits", "ids", "labels")}
    np.savez(tmp_path / "logits.npz", **arrays)
    np.savez(tmp_path / "classes.npz", logits=arrays["logits"], ids=arrays["ids"], classes=arrays["labels"])
    np.savez(tmp_path / "nameless.npz", logits=arrays["logits"], ids=arrays["ids"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed_value(capsys, *arguments) -> str:
    """Return the macro F1 of the model's own decisions that an evaluation with a check prints."""
    assert main(["evaluate", *arguments, "--kind", "logits", "--draws", "20", "--fail-below", "macro_f1=0"]) == 0
    return re.findall(r"check macro_f1 .*: (\S+), limit", capsys.readouterr().out)[0]


def test_identifiers_are_never_ignored(folder, shuffled, capsys):
    expected = printed_value(capsys, str(folder / "truth.csv"), "logits.npz")
    columns, tags = ["--labels", "war,love,crime,space"], ["--tags", "tags"]
    for options in (columns, tags, [*tags, *columns]):
        truth = "tags.csv" if "--tags" in options else "labels.csv"
        refused = ["evaluate", truth, "logits.npz", "--kind", "logits", *options, "--in-order"]
        assert main(refused) == 2
        assert "--id film" in capsys.readouterr().err
        assert printed_value(capsys, truth, "logits.npz", *options, "--id", "film") == expected
    assert main(["evaluate", "labels.csv", "logits.npz", "--kind", "logits"]) == 2
    assert "--id film" in capsys.readouterr().err


def test_columns_without_names_are_never_matched_with_tags(folder, shuffled, capsys):
    expected = printed_value(capsys, str(folder / "truth.csv"), "logits.npz")
    run = ["tags.csv", "nameless.npz", "--tags", "tags", "--id", "film", "--in-order"]
    assert main(["evaluate", *run, "--kind", "logits"]) == 2
    assert printed_value(capsys, *run, "--labels", "war,love,crime,space") == expected
    assert printed_value(capsys, "tags.csv", "classes.npz", "--tags", "tags", "--id", "film") == expected


def test_decisions_as_a_sparse_matrix_are_read_again(work, capsys):
    rules = ["--rules", "reports/net/rules.json"]
    assert main(["decide", "test-logits.npz", *rules, "-o", "decisions.npz"]) == 0
    assert main(["evaluate", "test.csv", "decisions.npz", "--kind", "decisions", "--draws", "20"]) == 0
    table = pd.read_csv("decisions.csv").set_index("id")
    truth = pd.read_csv("test.csv").set_index("id")
    value = macro_f1(truth, table.loc[truth.index, list(truth)])
    assert f"{value:.4f}" in capsys.readouterr().out
    assert main(["decide", "test-logits.npz", *rules, "-o", "test-logits.npz"]) == 2
    assert main(["decide", "test-logits.npz", *rules, "-o", "decisions.html"]) == 2


def test_identifiers_may_have_a_name_in_each_file(folder, shuffled, capsys):
    expected = printed_value(capsys, str(folder / "truth.csv"), "logits.npz")
    with np.load("logits.npz") as file:
        pd.DataFrame(file["logits"], columns=file["labels"]).assign(key=file["ids"]).to_csv("scores.csv", index=False)
    assert printed_value(capsys, "labels.csv", "scores.csv", "--id", "film,key") == expected
    assert main(["evaluate", "labels.csv", "scores.csv", "--kind", "logits", "--id", "film,key,id"]) == 2
    assert main(["evaluate", "labels.csv", "scores.csv", "--kind", "logits", "--id", "film"]) == 2
    assert main(["evaluate", "labels.csv", "scores.csv", "--kind", "logits"]) == 2
    assert "--id film" in capsys.readouterr().err


def test_printed_commands_run_as_they_are(shuffled, capsys):
    with np.load("logits.npz") as file:
        pd.DataFrame(file["logits"], columns=file["labels"]).assign(key=file["ids"]).to_csv(
            "my scores.csv", index=False
        )
    options = ["--kind", "logits", "--id", "film,key", "--labels", "war,crime", "--draws", "20"]
    assert main(["evaluate", "labels.csv", "my scores.csv", *options, "--fail-below", "macro_f1=0.1", "-o", "net"]) == 0
    (following,) = re.findall("^next: multilab (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert main(shlex.split(following)) == 0
    decided = pd.read_csv("net/decisions.csv").set_index("key")
    rules = json.loads(Path("net/rules.json").read_text())
    scores = pd.read_csv("my scores.csv").set_index("key")
    for label in rules["labels"]:
        expected = expit(scores[label["name"]]) >= label["threshold"]
        assert decided[label["name"]].tolist() == expected.astype(int).tolist()
    first = Path("net/values.csv").read_text()
    program, *words = shlex.split(json.loads(Path("net/evaluation.json").read_text())["command"])
    Path("net/values.csv").unlink()
    assert main(words) == 0
    assert program == "multilab"
    assert Path("net/values.csv").read_text() == first


def test_probabilities_are_not_decided_by_rules_for_logits(work, capsys):
    with np.load("test-logits.npz") as file:
        arrays = {name: file[name] for name in ("ids", "labels")}
        np.savez("probabilities.npz", expit(file["logits"]), **arrays)
    assert main(["decide", "probabilities.npz", "--rules", "reports/net/rules.json"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_missing_file_is_refused_before_another_one_is_read(work, capsys):
    Path("broken.csv").write_text("id,war\n1,x\n")
    for files in (["broken.csv", "none.csv"], ["none.csv", "broken.csv"]):
        assert main(["evaluate", *files]) == 2
        assert "none.csv" in capsys.readouterr().err


def test_without_a_common_identifier_one_of_each_file_is_shown(work, capsys):
    assert main(["evaluate", "truth.csv", "test-logits.npz", "--kind", "logits"]) == 2
    shown = capsys.readouterr().err
    assert "film-0'" in shown
    assert "film-400'" in shown
