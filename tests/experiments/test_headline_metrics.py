"""The headline means of a study: what `dvc metrics diff` compares."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from multilab.commands.comparisons import headline_metrics
from multilab.experiments.conf import names
from multilab.experiments.study import load_study
from multilab.statistics import rounded_means

REPORTS = Path(__file__).resolve().parents[2] / "reports"
STUDIES = [name for name in names("study") if (REPORTS / name / "scores.csv").is_file() and name != "quick"]


def table(values):
    rows = [
        (dataset, split, method, "hamming_loss", value)
        for (dataset, method), splits in values.items()
        for split, value in enumerate(splits)
    ]
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])


def test_means_over_splits_then_datasets():
    scores = table({("d", "a"): [0.1, 0.2, 0.3], ("e", "a"): [0.5, 0.5], ("d", "b"): [0.3] * 3, ("e", "b"): [0.0, 0.1]})
    assert rounded_means(scores, "hamming_loss", ["d", "e"], ["a", "b"]) == {"a": 0.35, "b": 0.175}


def test_a_rounding_error_does_not_change_the_digits():
    exact, lower = table({("d", "a"): [0.12345]}), table({("d", "a"): [0.12345 - 1e-13]})
    assert round(0.12345, 4) != round(0.12345 - 1e-13, 4)
    arguments = "hamming_loss", ["d"], ["a"]
    assert rounded_means(exact, *arguments) == rounded_means(lower, *arguments)


def test_an_unfinished_method_has_no_mean_and_an_undefined_dataset_no_part():
    nan = float("nan")
    scores = table({("d", "a"): [0.1], ("d", "b"): [nan], ("e", "a"): [nan], ("e", "b"): [nan]})
    assert rounded_means(scores, "hamming_loss", ["d", "e"], ["a", "b"]) == {"a": 0.1}
    assert rounded_means(scores, "hamming_loss", ["e"], ["a", "b"]) == {}


@pytest.mark.parametrize("name", STUDIES)
def test_the_committed_means_are_those_of_the_committed_scores(name):
    scores = pd.read_csv(REPORTS / name / "scores.csv")
    assert json.loads((REPORTS / name / "metrics.json").read_text()) == headline_metrics(load_study(name), scores)
