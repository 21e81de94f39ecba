"""The premise of the LWMF paper: what the margin of a label, its weight, correlates with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score

from multilab.cells import running
from multilab.cells.method import build
from multilab.methods.neighbours.mlknn import MLkNN

if TYPE_CHECKING:
    import pandas as pd

    from multilab.cells.store import Store
    from multilab.experiments.analyses import Unit

FILE = "margins"


def compute(unit: Unit, store: Store) -> dict[str, list[Any]]:
    """Return, per label that the test rows have and lack, its margin, its share of training rows, and its area.

    The margin is w_l of eq. (4) on the training rows. The area under the curve (``auc``) is that of the scores of
    ML-kNN on all features: how well the label is separated, whatever features are selected.
    """
    assert unit.cell is not None
    inputs = running.scaled_rows(unit.cell, store)
    selector = build(unit.cell.method).named_steps["select"].fit(inputs.X_train, inputs.Y_train)
    classifier = MLkNN(k=10, s=1.0).fit(inputs.X_train, inputs.Y_train)
    scores, _ = classifier.predict_with_scores(inputs.X_test)
    rows: dict[str, list[Any]] = {"label": [], "margin": [], "frequency": [], "auc": []}
    for label, truth in enumerate(inputs.Y_test.T):
        if 0 < truth.sum() < len(truth) and selector.margins_[label] != 0:
            rows["label"].append(label)
            rows["margin"].append(float(selector.margins_[label]))
            rows["frequency"].append(float(np.mean(inputs.Y_train[:, label])))
            rows["auc"].append(float(roc_auc_score(truth, scores[:, label])))
    return rows


def finish(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in order; one split only."""
    return rows[["method", "dataset", "label", "margin", "frequency", "auc"]]
