"""Counts of decisions per label agree with the metrics of the same cells."""

from __future__ import annotations

import numpy as np
import pytest

from multilab.cells.cell_metrics import evaluate_cell
from multilab.cells.execute import run_cells
from multilab.cells.store import Store
from multilab.experiments.label_counts import decisions_by_label
from multilab.experiments.plan import all_cells
from multilab.experiments.study import study_from


def test_the_counts_of_one_split_give_its_macro_f1(tmp_path):
    study = study_from("own", {"datasets": ["genes-toy"], "methods": ["mlknn"], "protocol": "kfold3"})
    store, cells = Store(tmp_path), all_cells(study)
    assert not run_cells(cells, store, n_jobs=1)
    counts = decisions_by_label(cells[:1], store)
    f1 = 2 * counts["hits"] / (counts["predicted"] + counts["positives"])
    assert f1.mean() == pytest.approx(evaluate_cell(cells[0], store)["macro_f1"], abs=1e-12)
    together = decisions_by_label(cells, store)
    assert np.unique(together["rows"]).tolist() == [300]  # each row is tested once
    assert together["label"].tolist() == list(range(7))
