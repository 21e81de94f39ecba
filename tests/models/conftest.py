"""An own data set, its folder of cards, and a fitted model."""

from __future__ import annotations

import pytest

from helpers.models_for_use import fit_settings, model_of, own_table, write_card


@pytest.fixture(scope="session")
def own_csv(tmp_path_factory):
    """Return the CSV of a data set called "mine", whose card every test of this folder finds."""
    return write_card(tmp_path_factory.mktemp("cards"), own_table())


@pytest.fixture(scope="module", autouse=True)
def _own_cards(own_csv):
    """Show the card to the tests of a module, and to no test of another folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MULTILAB_CARDS", str(own_csv.parent))
        yield


@pytest.fixture(scope="session")
def model(own_csv):
    """Return ML-kNN with thresholds for macro F1, fitted to all rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MULTILAB_CARDS", str(own_csv.parent))
        return model_of(fit_settings(objective="macro_f1"))


@pytest.fixture(scope="session")
def model_path(model, tmp_path_factory):
    """Return the folder of the saved model."""
    return model.save(tmp_path_factory.mktemp("saved") / "model")
