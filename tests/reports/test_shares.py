"""The section that shows scores against the share of observed training labels."""

from __future__ import annotations

import base64
import json

import pandas as pd
import pytest

from multilab.reports.data import load_report
from multilab.reports.finding import finding
from multilab.reports.sections import build_report
from multilab.reports.tables.shares import share_curves, share_view

VALUES = {  # of sets a and b, both splits
    ("knn", 1.0): (0.8, 0.4),
    ("tree", 1.0): (0.6, 0.2),
    ("knn-o10", 0.1): (0.4, 0.2),
    ("tree-o10", 0.1): (0.3, 0.1),
    ("knn-o50", 0.5): (0.64, 0.32),
    ("tree-o50", 0.5): (0.6, 0.2),
    ("knn-a50", 0.5): (0.2, 0.1),
}


@pytest.fixture
def folder(tmp_path):
    """Write a study of two methods with two shares, one of them with hidden labels as absent ones on one split."""
    rows = [
        (dataset, split, method, metric, value + (0.05 if split and "a50" not in method else 0))
        for (method, _), values in VALUES.items()
        for dataset, value in zip("ab", values, strict=True)
        for split in ((0,) if "a50" in method else (0, 1))
        for metric in ("micro_f1", "macro_auc")
    ]
    columns = ["dataset", "split", "method", "metric", "value"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "scores.csv.gz", index=False)
    observed = {"o10": (0.1, "missing"), "o50": (0.5, "missing"), "a50": (0.5, "absent")}
    info = {
        "methods": ["knn", "tree"],
        "metrics": ["macro_auc", "micro_f1"],
        "primary_metrics": ["micro_f1"],
        "rope": None,
        "method_titles": {"knn": "Neighbours", "tree": "Tree"},
        "variants": {
            name: {
                "methods": [f"knn-{name}", *([] if name == "a50" else [f"tree-{name}"])],
                "observed": {"share": share, "hidden": hidden},
            }
            for name, (share, hidden) in observed.items()
        },
    }
    (tmp_path / "study.json").write_text(json.dumps(info))
    return tmp_path


def test_curves_are_means_over_datasets_on_the_splits_that_all_have(folder):
    curves = share_curves(load_report(folder), "micro_f1")  # the second split, without a50, does not count
    assert list(curves.columns) == [0.1, 0.5, 1.0]
    expected = {
        ("knn", "missing"): [0.3, 0.48, 0.6],
        ("knn", "absent"): [float("nan"), 0.15, 0.6],
        ("tree", "missing"): [0.2, 0.4, 0.4],
    }
    assert list(curves.index) == list(expected)
    for index, values in expected.items():
        assert curves.loc[index].to_list() == pytest.approx(values, nan_ok=True)


def test_the_headline_metric_has_a_row_per_method_and_treatment_and_a_panel_per_method(folder):
    view = share_view(load_report(folder))
    assert (view.datasets, view.splits, view.table.heads) == (2, 1, ("Learns from", "10%", "50%", "100%"))
    assert [(title, [e.text for e in entries]) for title, entries in view.table.rows][1] == (
        "Neighbours",
        ["hidden labels count as absent", "–", "0.150", "0.600"],
    )
    svg = base64.b64decode(view.figure.image.partition(",")[2]).decode()
    assert "Neighbours" in svg
    assert "Tree" in svg


def test_the_finding_is_what_is_kept_at_half_of_the_labels(folder):
    assert finding(load_report(folder)) == (
        "Observed labels alone: with 50% of the training labels the median method keeps 90% of its Micro F1.",
        "Hidden labels count as absent: with 50% of the training labels the median method keeps 25% of its Micro F1.",
    )


def test_the_page_has_the_section_and_other_studies_have_not(folder):
    page = build_report(folder).read_text()
    assert 'href="#shares"' in page
    info = json.loads((folder / "study.json").read_text())
    for variant in info["variants"].values():
        del variant["observed"]
    (folder / "study.json").write_text(json.dumps(info))
    assert share_view(load_report(folder)) is None
    assert 'href="#shares"' not in build_report(folder).read_text()
