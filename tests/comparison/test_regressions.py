"""Regressions between two comparisons: planted ones are caught, noise is not, at computed bounds."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, nct, t

from multilab.cli import main
from multilab.comparison import ComparisonError
from multilab.comparison.regressions import find_regressions

J, RATIO, SPREAD = 10, 1 / 9, 0.02


def board(values: dict[str, Any], direction: str = "max") -> dict[str, Any]:
    """Return the content of a leaderboard.json with the values of one metric."""
    return {
        "format": 1,
        "dataset": {"name": "mine"},
        "metric": "macro_f1",
        "directions": {"macro_f1": direction},
        "test_to_train": RATIO,
        "splits": [{"split": k, "digest": f"d{k}"} for k in range(J)],
        "methods": [
            {"name": name, "values": {"macro_f1": {str(k): v for k, v in enumerate(row)}} if row is not None else {}}
            for name, row in values.items()
        ],
    }


def differences(rng: np.random.Generator, mean: float) -> np.ndarray:
    """Return differences over splits whose training sets overlap: equally correlated, of standard deviation SPREAD."""
    rho = RATIO / (1 + RATIO)
    shared = rng.normal() * math.sqrt(rho)
    return mean + SPREAD * (shared + math.sqrt(1 - rho) * rng.normal(size=J))


def share_reported(loss: float, n_methods: int, n_runs: int, worse: int = 1) -> float:
    """Return the share of runs with a report, where ``worse`` of the methods lose ``loss`` on average."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(n_runs):
        old = {f"m{k}": np.full(J, 0.7) for k in range(n_methods)}
        new = {name: row - differences(rng, loss if k < worse else 0.0) for k, (name, row) in enumerate(old.items())}
        hits += bool(find_regressions(board(new), board(old), tolerance=0.0).names)
    return hits / n_runs


@pytest.mark.parametrize("n_methods", [1, 3])
def test_noise_is_reported_no_more_often_than_the_level(n_methods):
    n_runs, alpha = 150, 0.05
    share = share_reported(0.0, n_methods, n_runs)
    assert (
        0 < share <= binom.ppf(0.999, n_runs, alpha) / n_runs
    )  # with independent tests the share is near the level, not far below


def power(loss: float, n_methods: int) -> float:
    """Return the exact probability that the first of Holm's tests rejects a mean loss."""
    rho = RATIO / (1 + RATIO)
    error = SPREAD * math.sqrt((1 - rho) * (1 / J + RATIO))
    return float(nct.sf(t.isf(0.05 / n_methods, J - 1), J - 1, loss / error))


def test_a_planted_loss_is_caught_as_often_as_computed():
    n_runs, loss = 80, 0.05
    expected = power(loss, 3)
    assert expected > 0.98
    share = share_reported(loss, 3, n_runs)
    assert share >= binom.ppf(0.001, n_runs, expected) / n_runs
    weak = power(0.015, 1)
    measured = share_reported(0.015, 1, n_runs)
    assert binom.ppf(0.001, n_runs, weak) <= measured * n_runs <= binom.ppf(0.999, n_runs, weak)


def test_the_limit_is_where_the_test_begins_to_reject():
    noise = differences(np.random.default_rng(3), 0.0)
    noise -= noise.mean()
    old = np.full(J, 0.6)
    limit = float(find_regressions(board({"a": old - noise}), board({"a": old})).table.loc["a", "limit"])
    for factor, names in ((0.999, []), (1.001, ["a"])):
        result = find_regressions(board({"a": old - noise - factor * limit}), board({"a": old}))
        assert result.names == names


def test_a_loss_is_beyond_the_limit_exactly_if_it_is_called_a_regression():
    """Several regress, so that Holm's later steps have other levels than its first."""
    rng = np.random.default_rng(5)
    old = np.full(J, 0.6)
    later = 0
    for _ in range(20):
        new = {f"m{k}": old - differences(rng, 0.012 * k) for k in range(6)}
        table = find_regressions(board(new), board(dict.fromkeys(new, old))).table
        assert ((-table["change"] > table["limit"]) == table["regressed"]).all()
        later += int((table["regressed"] & (table["p"] > 0.05 / 6)).sum())
    assert later > 0  # those that the level of the first step would have let pass


@pytest.mark.parametrize(("direction", "names"), [("max", ["down"]), ("min", ["up"])])
def test_the_direction_of_the_metric_decides(direction, names):
    old = np.linspace(0.5, 0.6, J)
    new = {"up": old + 0.1 + 0.001 * np.arange(J), "down": old - 0.1 - 0.001 * np.arange(J), "same": old}
    result = find_regressions(board(new, direction), board(dict.fromkeys(new, old), direction))
    assert result.names == names
    assert result.table.loc["same", "p"] == 1


def test_equal_code_and_rounding_are_no_regression():
    old = np.linspace(0.5, 0.6, J)
    result = find_regressions(board({"same": old, "rounded": old - 1e-6}), board({"same": old, "rounded": old}))
    assert result.names == []
    strict = find_regressions(board({"rounded": old - 1e-6}), board({"rounded": old}), tolerance=0.0)
    assert strict.names == ["rounded"]


def test_a_method_that_fails_now_is_a_regression_and_a_new_one_is_not():
    old = np.linspace(0.5, 0.6, J)
    now = board({"a": None, "b": old, "slow": None})
    for method, status in zip(now["methods"], ("failed", "done", "left out"), strict=True):
        method["status"] = status
    result = find_regressions(now, board({"a": old, "slow": old, "gone": old}))
    assert result.names == ["a"]
    notes = {"a": "failed", "b": "new", "slow": "left out", "gone": "no longer compared"}
    assert result.table["note"].to_dict() == notes
    assert "nothing was tested" in result.summary()
    alone = find_regressions(board({"b": old}), None)
    assert alone.names == []
    assert alone.table.loc["b", "now"] == pytest.approx(old.mean())


def test_markdown_is_a_table_that_names_cannot_break():
    old = np.linspace(0.5, 0.6, J)
    name = "<img src=x>|@all"
    text = find_regressions(board({name: old - 0.2}), board({name: old})).to_markdown()
    assert "**worse**" in text
    assert "level 0.05" in text
    assert "<img" not in text
    (row,) = [line for line in text.splitlines() if "img" in line and line.startswith("|")]
    assert row.startswith("| &lt;img src=x>\\|@\u200ball | 0.5500 | 0.3500 | -0.2000 |")
    assert row.replace("\\|", "").count("|") == 8


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (lambda b: b["splits"][0].update(digest="other"), [], "different splits"),
        (lambda b: None, ["--metric", "macro_f2"], "did you mean 'macro_f1'"),
        (lambda b: None, ["--level", "1.5"], "1.5 is not in the range 0<x<1"),
        (lambda b: None, ["--tolerance", "-1"], "tolerance must be >= 0, got -1"),
        (lambda b: b.update(format=7), [], "format 7; this version of multilab reads format 1"),
        (lambda b: b.pop("splits"), [], "not a leaderboard.json"),
    ],
)
def test_wrong_uses_of_regressions_get_one_line(tmp_path, capsys, change, arguments, message):
    content = board({"a": [0.5 + k / 100 for k in range(J)]})
    baseline = copy.deepcopy(content)
    change(baseline)
    for file, text in (("now", content), ("old", baseline)):
        (tmp_path / f"{file}.json").write_text(json.dumps(text))
    command = ["regressions", str(tmp_path / "now.json"), "--baseline", str(tmp_path / "old.json"), *arguments]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_command_exits_with_1_and_writes_markdown(tmp_path, capsys):
    for file, loss in (("now", 0.1), ("old", 0.0)):
        (tmp_path / f"{file}.json").write_text(json.dumps(board({"a": [0.5 + k / 100 - loss for k in range(J)]})))
    command = ["regressions", str(tmp_path / "now.json"), "--baseline", str(tmp_path / "old.json")]
    assert main([*command, "--markdown", str(tmp_path / "table.md")]) == 1
    assert "Worse than the baseline: a." in capsys.readouterr().out
    assert "| a | 0.5450 | 0.4450 | -0.1000 |" in (tmp_path / "table.md").read_text()
    assert main(["regressions", str(tmp_path / "old.json"), "--baseline", str(tmp_path / "now.json")]) == 0
    before = (tmp_path / "old.json").read_text()
    assert main([*command, "--markdown", str(tmp_path / "old.json")]) == 2
    assert "old.json is read by this command" in capsys.readouterr().err
    assert (tmp_path / "old.json").read_text() == before
    assert main(["regressions", str(tmp_path / "nothing.json")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_a_wrong_level_is_refused_in_python():
    with pytest.raises(ComparisonError, match="alpha must be between 0 and 1"):
        find_regressions(board({"a": [0.5] * J}), None, alpha=0.0)
