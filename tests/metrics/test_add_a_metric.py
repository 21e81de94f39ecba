"""A metric is one decorated function in one file; everything else follows from it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from multilab.metrics import PRESETS, Conventions, MetricError, metric, preset, registry
from multilab.metrics.conventions import allowed_values

DECISION_METRIC = '''

@metric(title="Silent rows", direction="min", needs="decisions", group="example", mean_over="rows", source="this test")
def silent_rows(counts: DecisionCounts, conventions: Conventions) -> np.ndarray:
    """Return the share of rows without a predicted label.

    Examples
    --------
    >>> from multilab.metrics import silent_rows
    >>> silent_rows([[1, 0], [0, 1]], [[0, 0], [1, 1]])
    0.5
    """
    return counts.by_row.predicted == 0
'''
RANKING_METRIC = '''

@metric(title="Is-error", direction="min", needs="scores", source="this test", conventions=("ranking_loss_ties",))
def is_error(ranking: Ranking, conventions: Conventions) -> float:
    """Return the share of rows with a wrongly ordered pair of labels.

    Examples
    --------
    >>> from multilab.metrics import is_error
    >>> is_error([[1, 0], [0, 1]], [[0.9, 0.1], [0.5, 0.5]])
    0.5
    """
    return float((ranking.rows.twice_wrong > 0).mean())
'''
PROGRAM = """
import sys
from pathlib import Path
import numpy as np, pandas as pd
from multilab import metrics
from multilab.metrics import METRICS, silent_rows, is_error, score_all
from multilab.reports import build_report
from multilab.cli import completion

assert Path(metrics.__file__).is_relative_to(sys.argv[1]), metrics.__file__
rng = np.random.default_rng(0)
Y, scores = rng.integers(0, 2, (20, 4)), rng.random((20, 4))
result = score_all(Y, scores)
assert result["silent_rows"] == silent_rows(Y, scores >= 0.5) == metrics.silent_rows(Y, scores >= 0.5)
assert result["is_error"] == is_error(Y, scores) == metrics.is_error(Y, scores)
rows = np.repeat(np.arange(20), 2)[:30]
weights = np.bincount(rows, minlength=20)
weighted = silent_rows(Y, scores >= 0.5, sample_weight=weights)
assert np.isclose(weighted, silent_rows(Y[rows], scores[rows] >= 0.5))
try:  # its formula does not use the weights
    is_error(Y, scores, sample_weight=weights)
except metrics.MetricError as error:
    assert "is_error takes no sample_weight" in str(error)
else:
    raise AssertionError("unweighted value")
assert {"silent_rows", "is_error"} <= set(METRICS) & set(metrics.__all__) & set(dir(metrics))
assert {"silent_rows", "is_error"} <= set(completion.metrics())
folder = Path(sys.argv[2])
rows = [(d, s, m, name, result[name] + 0.01 * i) for d in "ab" for s in range(2) for i, m in enumerate(("x", "y"))
        for name in ("silent_rows", "is_error")]
scores = pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])
scores.to_csv(folder / "scores.csv.gz", index=False)
page = build_report(folder).read_text()
assert METRICS["silent_rows"].definition in page  # the headline
assert METRICS["silent_rows"].title in page and METRICS["is_error"].title in page
assert METRICS["is_error"].definition == "share of rows with a wrongly ordered pair of labels"
"""
ARENA = """
from helpers.arena_tables import facts_of, synthetic_scores
from multilab.arena import METRIC_GROUPS, arena_leaderboard, track_results

NEW = {"silent_rows", "is_error"}
scores = synthetic_scores(3, 3, 2)
committed = scores[~scores["metric"].isin(NEW)]  # written before there were these metrics
for table, names in ((scores, NEW), (committed, set())):
    content = arena_leaderboard([track_results("default", table)], facts_of(table), {}, [])
    assert {each["name"] for each in content["metrics"]} & NEW == names
    assert set(content["pools"][0]["boards"]) & NEW == names
    groups = {each["name"]: each["metrics"] for each in content["groups"]}
    assert ("silent_rows" in groups["example"], "silent_rows" in groups["overall"]) == (bool(names), bool(names))
    assert not any("is_error" in members for members in groups.values())
assert "silent_rows" in METRIC_GROUPS["example"]
"""


@pytest.fixture(scope="module")
def copy_with_two_metrics(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Path:
    """A copy of package, settings and tests of the metrics, to which one function in each of two files was added."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("src/multilab", "tests/helpers", "tests/metrics"):
        shutil.copytree(checkout / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("tests/conftest.py", "pyproject.toml"):
        shutil.copy(checkout / file, root / file)
    (root / "tests/metrics/test_add_a_metric.py").unlink()
    shutil.copytree(checkout / "conf", root / "conf")
    for name, text in (("decision_metrics", DECISION_METRIC), ("ranking_metrics", RANKING_METRIC)):
        file = root / f"src/multilab/metrics/{name}.py"
        file.write_text(file.read_text() + text)
    return root


def run(root: Path, *command: str) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root / 'tests'}"}
    done = subprocess.run(
        [sys.executable, *command], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_new_metric_is_in_scores_exports_registry_completion_and_reports(
    copy_with_two_metrics: Path, tmp_path: Path
) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    run(copy_with_two_metrics, "-c", PROGRAM, str(copy_with_two_metrics), str(tmp_path))


@pytest.mark.slow
def test_the_arena_ranks_by_a_new_metric_where_it_was_computed(copy_with_two_metrics: Path) -> None:
    """A metric of a group counts in it, one without a group has a board of its own, tables without it stay ranked."""
    run(copy_with_two_metrics, "-c", ARENA)


@pytest.mark.slow
def test_a_new_metric_passes_the_tests_of_the_metrics(copy_with_two_metrics: Path) -> None:
    slow = (
        "memory or milliseconds or light or brute_force or form or unit or table or mirror"  # hold no list of metrics
    )
    unweighted = "weight and (is_error or all_metrics_at_once)"  # its formula returns no value of each row
    chosen = f"not ({slow}) and not ({unweighted})"
    run(copy_with_two_metrics, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/metrics", "-k", chosen)
    modules = ["multilab.metrics.decision_metrics", "multilab.metrics.ranking_metrics"]
    program = (
        f"import doctest, importlib\nfor m in {modules}: assert not doctest.testmod(importlib.import_module(m)).failed"
    )
    run(copy_with_two_metrics, "-c", program)


def cases(needs: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Truth with scores or decisions: empty and full rows and columns on either side, ties."""
    rng = np.random.default_rng(3)
    truth, scores = rng.integers(0, 2, (40, 5)), rng.integers(0, 3, (40, 5)) / 2
    truth[:, 3], truth[:, 4] = 0, 1
    truth[0], truth[1], scores[0], scores[2] = 0, 1, 0, 0
    scores[:, :2] = np.where(truth[:, 2:3] == 1, scores[:, :2], 0)
    nothing = np.zeros((2, 3), dtype=int)
    pairs = [(truth, scores), (truth[:, 3:], scores[:, [3, 2]] * [1, 0]), (nothing, nothing), (nothing, nothing + 1)]
    pairs += [(nothing + 1, nothing), (nothing + 1, nothing + 1)]
    return [(Y, S > 0.4 if needs == "decisions" else S) for Y, S in pairs]


def outcome(name: str, truth: np.ndarray, given: np.ndarray, conventions: Conventions) -> float | str:
    try:
        return registry.ALL_METRICS[name].function(truth, given, conventions)
    except MetricError as error:
        return str(error)


@pytest.mark.parametrize("name", registry.ALL_METRICS)
def test_the_conventions_of_a_metric_are_those_that_change_its_value(name: str) -> None:
    effective = set()
    for truth, given in cases(registry.ALL_METRICS[name].needs):
        for base in PRESETS.values():
            before = outcome(name, truth, given, base)
            for field in (one.name for one in fields(Conventions) if one.name not in effective):
                others = [value for value in allowed_values()[field] if value != getattr(base, field)]
                changed = [outcome(name, truth, given, _changed(base, field, value)) for value in others]
                if any(repr(after) != repr(before) for after in changed):
                    effective.add(field)
    assert effective == set(registry.ALL_METRICS[name].conventions)


def _changed(base: Conventions, name: str, value: object) -> Conventions:
    return Conventions(**{**{field.name: getattr(base, field.name) for field in fields(base)}, name: value})


def define(**changes: object) -> None:
    settings = {"title": "Mine", "direction": "max", "needs": "scores", "source": "me", **changes}

    @metric(**settings)
    def mine(ranking, conventions):
        """Return the constant one."""
        return 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"direction": "up"}, "direction must be one of"),
        ({"needs": "ranks"}, "needs must be one of"),
        ({"skips": "cells"}, "skips must be one of"),
        ({"group": "examples"}, "group must be one of"),
        ({"mean_over": "row"}, "mean_over must be one of"),
        ({"ordered_like": "mine"}, "ordered_like must be one of"),
        ({"conventions": ("ties",)}, "conventions must be one of"),
    ],
)
def test_a_wrong_definition_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(MetricError, match=f"metric 'mine': {message}"):
        define(**changes)
    assert "mine" not in registry.ALL_METRICS


def test_a_name_is_defined_once_and_has_a_definition() -> None:
    with pytest.raises(MetricError, match="'hamming_loss' is defined already, in multilab"):

        @metric(title="Mine", direction="min", needs="decisions", source="me")
        def hamming_loss(counts, conventions):
            """Return nothing new."""

    with pytest.raises(MetricError, match="must begin with 'Return the'"):

        @metric(title="Mine", direction="min", needs="decisions", source="me")
        def undocumented(counts, conventions):
            return 1.0

    assert preset("default") == PRESETS["default"]
