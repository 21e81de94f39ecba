"""The section that compares the methods of variants with the study's control."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from multilab.reports.data import load_report
from multilab.reports.finding import finding
from multilab.reports.tables.control import control_view
from multilab.reports.tables.entry import Entry


@pytest.fixture
def folder(tmp_path):
    """Write a study of one variant: `tuned` is .1 better than `half` in every fold of set a, and worse on b."""
    rows, gains = [], {"a": [0.1, 0.1, 0.1, 0.1, 0.1001], "b": [-0.1, 0.2, -0.2, 0.1, -0.1]}
    for dataset, differences in gains.items():
        for split, gain in enumerate(differences):
            for method, value in (("half-v", 0.5), ("tuned-v", 0.5 + gain), ("base", 0.5)):
                rows.append((dataset, split, method, "macro_f1", value))
                rows.append((dataset, split, method, "hamming_loss", value))
    pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"]).to_csv(
        tmp_path / "scores.csv.gz", index=False
    )
    labels = [  # positives, predicted, hits of two labels: F1 0 and .5 against 1 and .5
        *(("a", "half-v", 0, 100, 2, 0, 0), ("a", "half-v", 1, 100, 50, 50, 25)),
        *(("a", "tuned-v", 0, 100, 2, 2, 2), ("a", "tuned-v", 1, 100, 50, 50, 25)),
    ]
    columns = ["dataset", "method", "label", "rows", "positives", "predicted", "hits"]
    pd.DataFrame(labels, columns=columns).to_csv(tmp_path / "labels.csv", index=False)
    info = {
        "methods": ["base"],
        "metrics": ["macro_f1", "hamming_loss"],
        "control": "half",
        "rope": None,
        "variants": {"v": {"methods": ["half-v", "tuned-v"]}},
        "method_titles": {"half": "Half", "tuned": "Tuned"},
    }
    (tmp_path / "study.json").write_text(json.dumps(info))
    return tmp_path


def test_gains_have_the_sign_of_the_metric_and_stars_after_holm(folder):
    view = control_view(load_report(folder))
    assert (view.control, view.comparisons) == ("Half", 2)
    ((title, cells),) = view.metrics.rows
    assert title == "Tuned"
    assert cells == (
        Entry("+0.040 (1 better, 1*; 1 worse, 0*)", gain=1),
        Entry("−0.040 (1 better, 0*; 1 worse, 1*)", gain=-1),
    )


def test_gains_by_label_frequency_are_those_of_the_pooled_counts(folder):
    table = control_view(load_report(folder)).frequency
    assert table.heads == ("≤ 2% (1 labels)", "> 25% (1 labels)")
    assert table.rows == (("Tuned", (Entry("+1.000", gain=1), Entry("+0.000"))),)


def test_a_study_without_a_control_in_its_variants_has_no_such_section(folder):
    path = folder / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"control": None}))
    assert control_view(load_report(folder)) is None


def test_a_study_whose_variants_differ_in_their_scores_has_no_such_section(folder):
    (folder / "labels.csv").unlink()
    assert control_view(load_report(folder)) is None


def test_the_finding_is_what_gains_most_and_what_nothing_improves(folder):
    assert finding(load_report(folder)) == (
        "Tuned gains most: +0.040 Macro F1 over Half, the mean of 2 comparisons.",
        "No way to decide improves Hamming loss on average.",
    )
