"""A model for use gives what the cells that were evaluated would give on the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.models_for_use import fit_settings, model_of, own_table
from multilab.cells.fitting import fit_on_rows
from multilab.cells.running import estimator_of_cell
from multilab.datasets import TableEncoder, load
from multilab.models import load_model
from multilab.models.champions import settings_cells


@pytest.mark.parametrize("preprocessing", ["none", "minmax", "standard"])
@pytest.mark.parametrize("method", ["br_logistic", "mlknn", "mlrbf"])
def test_a_saved_model_scores_as_the_fit_of_a_cell(
    own_csv: Path, tmp_path: Path, method: str, preprocessing: str
) -> None:
    mapping = {**fit_settings(method)["mapping"], "preprocessing": preprocessing}
    settings = fit_settings(method, mapping=mapping)
    model_of(settings).save(tmp_path / "model")
    cell = settings_cells(settings)[0]
    every = replace(cell, split_ref=replace(cell.split_ref, split=-1))
    data = load("mine")
    encoder = TableEncoder.learn(data.X, data.kinds)
    X = encoder.encode(data.X).X
    expected = fit_on_rows(estimator_of_cell(every, encoder=encoder), X, data.Y, X)
    loaded = load_model(tmp_path / "model")
    scores, decisions = loaded.predict_encoded(X)
    np.testing.assert_allclose(scores, expected.scores, rtol=0, atol=1e-12)  # another memory layout when loaded
    np.testing.assert_array_equal(decisions, expected.decisions)
    raw = loaded.predict_frame(own_table())
    np.testing.assert_array_equal(raw.iloc[:, :3], decisions)
    np.testing.assert_allclose(raw.iloc[:, 3:], scores, rtol=0, atol=1e-12)
