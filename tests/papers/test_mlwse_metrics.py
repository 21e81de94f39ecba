"""The metrics that only the MLWSE paper prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from multilab.cells.errors import ExperimentError
from multilab.cells.running import ensure
from multilab.cells.store import Store
from multilab.experiments.evaluate import evaluate, extra_quantities
from multilab.experiments.gate import fingerprints
from multilab.experiments.plan import study_cells
from multilab.experiments.study import Study, check_study
from multilab.metrics import (
    ALL_METRICS,
    METRICS,
    PRESETS,
    bounds,
    example_precision,
    example_recall,
    find_metric,
    get_scorer_names,
    hamming_loss,
    preset,
    score_all,
)
from multilab.metrics.registry import defined, paper_metrics
from multilab.papers.mlwse.metrics import accuracy_1mHL, f1_of_means, macro_f1_example

NAMES = ["accuracy_1mHL", "f1_of_means", "macro_f1_example"]


def test_columns_of_tables_4_and_5() -> None:
    # rows: hit of one true; both empty (0/0 = 0); predicted only; true only; two of three
    truth = [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0], [1, 1, 1]]
    predicted = [[1, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0]]
    for conventions in PRESETS:
        result = score_all(truth, None, predicted, conventions=conventions, metrics=NAMES)
        precision, recall = (1 + 0 + 0 + 0 + 1) / 5, (1 + 0 + 0 + 0 + 2 / 3) / 5
        assert result["accuracy_1mHL"] == 1 - 3 / 15
        assert result["f1_of_means"] == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-15)
        assert result["macro_f1_example"] == pytest.approx((1 + 2 * 2 / 5) / 5, abs=1e-15)
    assert f1_of_means([[0, 1]], [[1, 0]]) == 0


def test_with_unobserved_labels() -> None:
    rng = np.random.default_rng(0)
    truth, decisions, seen = (rng.random((3, 40, 5)) < np.array([0.4, 0.4, 0.8])[:, None, None]).astype(int)
    Y = np.where(seen == 1, truth, np.nan)
    zero = preset("default", example_both_empty=0)
    p, r = example_precision(Y, decisions, zero), example_recall(Y, decisions, zero)
    assert f1_of_means(Y, decisions) == pytest.approx(2 * p * r / (p + r), abs=1e-15)
    assert accuracy_1mHL(Y, decisions) == 1 - hamming_loss(Y, decisions)
    low, high = bounds("accuracy_1mHL", Y, decisions)
    assert low <= accuracy_1mHL(truth, decisions) <= high
    low, high = bounds("macro_f1_example", Y, decisions)
    assert low <= macro_f1_example(truth, decisions) <= high


def test_they_are_known_by_name_and_in_no_other_study() -> None:
    assert list(paper_metrics()) == NAMES
    assert [find_metric(name) for name in NAMES] == [defined(name) for name in NAMES]
    assert not {*NAMES} & ({*METRICS} | {*ALL_METRICS} | {*get_scorer_names()})
    assert not {*NAMES} & set(score_all([[1, 0]], [[0.5, 0.4]]))


def test_a_study_computes_those_that_it_lists(tmp_path: Path) -> None:
    listed = ("hamming_loss", "accuracy_1mHL", "f1_of_means")
    study = Study("toy", ("scenario1",), ("mlknn",), {"kfold": 2, "stratify": 1, "seed": 0}, metrics=listed)
    check_study(study)
    with pytest.raises(ExperimentError, match="f1_of_man"):
        check_study(replace(study, metrics=("f1_of_man",)))
    cells, store = study_cells(study, "mlknn"), Store(tmp_path)
    for cell in cells:
        ensure(cell, store)
    table = evaluate(study, cells, store)
    values = table[table["split"] == 0].set_index("metric")["value"]
    assert values["accuracy_1mHL"] == 1 - values["hamming_loss"]
    assert "f1_of_means" in values
    assert "macro_f1_example" not in values
    numbers = fingerprints(cells, store, extra=extra_quantities(study))
    assert numbers["scenario1/0/mlknn"]["f1_of_means"] == values["f1_of_means"]
    assert set(evaluate(replace(study, metrics=listed[:1]), cells, store)["metric"]) == set(values.index) - {
        *listed[1:]
    }
