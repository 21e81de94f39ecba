"""An own data set, its folder of cards, and a fitted model."""

from __future__ import annotations

import os

import pytest

from helpers.models_for_use import fit_settings, model_of, own_table, write_card


@pytest.fixture(scope="session")
def own_csv(tmp_path_factory):
    """Return the CSV of a data set called "mine", whose card every test of this session finds."""
    folder = tmp_path_factory.mktemp("cards")
    path = write_card(folder, own_table())
    before = os.environ.get("MULTILAB_CARDS")
    os.environ["MULTILAB_CARDS"] = str(folder)
    yield path
    if before is None:
        del os.environ["MULTILAB_CARDS"]
    else:
        os.environ["MULTILAB_CARDS"] = before


@pytest.fixture(scope="session")
def model(own_csv):
    """Return ML-kNN with thresholds for macro F1, fitted to all rows."""
    return model_of(fit_settings(objective="macro_f1"))


@pytest.fixture(scope="session")
def model_path(model, tmp_path_factory):
    """Return the folder of the saved model."""
    return model.save(tmp_path_factory.mktemp("saved") / "model")
