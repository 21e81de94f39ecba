"""The tables of the guide that hold numbers or names of metrics are those of the code."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as theirs

from multilab import metrics
from multilab.metrics.registry import ALL_METRICS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
pytestmark = pytest.mark.skipif(not GUIDE.is_dir(), reason="no documentation: an unpacked sdist")

TRUTH = np.array([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
SCORES = np.array([[0.9, 0.4, 0.4, 0.1], [0.7, 0.7, 0.2, 0.3], [0.2, 0.4, 0.1, 0.1]])
DECISIONS = (SCORES >= 0.5).astype(int)
AGREED = {"hamming_loss", "subset_accuracy", "micro_f1", "micro_auc", "macro_auc"}


def rows_of(page: str, header: str) -> list[list[str]]:
    """Return the cells of the table with this header."""
    text = (GUIDE / page).read_text().partition(f"\n| {header}")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def value(name: str, conventions: str) -> float:
    metric = ALL_METRICS[name]
    return metric.function(TRUTH, DECISIONS if metric.needs == "decisions" else SCORES, conventions)


def of_sklearn(name: str) -> float | None:
    """Return what scikit-learn itself computes, None if it has no such function."""
    average = {"example": "samples", "macro": "macro", "micro": "micro"}
    kind, _, measure = name.partition("_")
    if kind in average and measure in ("f1", "precision", "recall"):
        return getattr(theirs, f"{measure}_score")(TRUTH, DECISIONS, average=average[kind], zero_division=0)
    functions = {
        "jaccard": lambda: theirs.jaccard_score(TRUTH, DECISIONS, average="samples", zero_division=0),
        "macro_average_precision": lambda: theirs.average_precision_score(TRUTH, SCORES, average="macro"),
        "average_precision": lambda: theirs.label_ranking_average_precision_score(TRUTH, SCORES),
        "ranking_loss": lambda: theirs.label_ranking_loss(TRUTH, SCORES),
        "coverage": lambda: theirs.coverage_error(TRUTH, SCORES),
    }
    return functions[name]() if name in functions else None


@pytest.mark.filterwarnings("ignore:No positive class", "ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_the_three_rows_of_the_page_of_conventions() -> None:
    table = rows_of("conventions.md", "metric | scikit-learn")
    assert table
    for name, *cells, why in table:
        name = name.strip("`")
        assert why
        for cell, conventions in zip(cells, ("sklearn", "mulan", "meka", "default"), strict=True):
            if cell == "–":
                assert (conventions, name) in ABSENT
            else:
                assert cell == f"{value(name, conventions):.4f}", (name, conventions)
        expected = of_sklearn(name)
        assert cells[0] == ("–" if expected is None else f"{expected:.4f}")
        assert len({cell for cell in cells[:3] if cell != "–"}) > 1, f"the systems agree on {name}"
    for name in AGREED:
        np.testing.assert_equal(value(name, "mulan"), value(name, "sklearn"))
        np.testing.assert_equal(value(name, "meka"), value(name, "sklearn"))
    assert value("coverage", "default") != value("coverage", "sklearn")


ABSENT = {
    ("sklearn", "one_error"),
    *(("meka", name) for name in ("coverage", "example_precision", "example_recall")),
}


def test_the_page_of_metrics_says_what_each_is_a_mean_of() -> None:
    """The reference lists all metrics; the page need not name one that is added."""
    rows = rows_of("metrics.md", "the metric is")
    named = [{ALL_METRICS[name].mean_over for name in re.findall(r"`(\w+)`", row[2])} for row in rows]
    assert named == [{"rows"}, {"labels"}, {"cells"}]


def test_needs_are_those_of_the_page() -> None:
    for _, names, needs in rows_of("metrics.md", "question | metric"):
        assert {ALL_METRICS[name].needs for name in re.findall(r"`(\w+)`", names)} == {needs}


def test_no_warning_is_needed_for_the_three_rows() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics.score_all(TRUTH, SCORES, metrics=ALL_METRICS)
