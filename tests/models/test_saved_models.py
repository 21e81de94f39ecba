"""A saved model predicts what the fitted one does, holds no pickle, and refuses foreign types."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io

from helpers.models_for_use import LABELS, fit_settings, model_of
from multilab.cells.method import load_method
from multilab.core import files
from multilab.datasets import DatasetError
from multilab.methods import MLkNN
from multilab.models import DeploymentError, ModelMetadata, SavedModel, load_model, prediction
from multilab.models.final_fit import decided
from multilab.models.model_card import model_card


def test_a_loaded_model_predicts_the_same(model, model_path, own_csv):
    loaded = load_model(model_path)
    table = pd.read_csv(own_csv)
    first, second = model.predict_frame(table), loaded.predict_frame(table)
    pd.testing.assert_frame_equal(first, second)
    assert list(first) == [*LABELS, *(f"{name}_probability" for name in LABELS)]
    assert list(loaded.predict_proba_frame(table)) == LABELS


def test_rows_are_predicted_in_batches(model, own_csv, monkeypatch):
    X, seen = model.encode(model.read(own_csv)).X, []

    def progress(starts, total):
        seen.append((list(starts), total))
        return starts

    whole = model.predict_encoded(X)
    monkeypatch.setattr(prediction, "BATCH", 7)
    parts = model.predict_encoded(X, progress)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    starts = list(range(0, len(X), 7))
    assert seen == [(starts, len(starts))]


def test_decisions_are_those_of_the_thresholds(model, own_csv):
    predicted = model.predict_frame(pd.read_csv(own_csv))
    for label, threshold in model.metadata.thresholds.items():
        assert (predicted[label] == (predicted[f"{label}_probability"] >= threshold)).all()


def test_the_files_hold_no_pickle(model_path):
    assert sorted(path.name for path in model_path.iterdir()) == ["encoder.json", "metadata.json", "model.skops"]
    with zipfile.ZipFile(model_path / "model.skops") as archive:
        assert {name.rpartition(".")[2] for name in archive.namelist()} <= {"json", "npy", "npz"}


def test_a_foreign_type_is_refused(model, tmp_path, monkeypatch):
    folder = model.save(tmp_path)
    skops.io.dump({"model": argparse.Namespace(a=1)}, folder / "model.skops")
    with pytest.raises(DeploymentError, match=r"types that are not trusted: argparse\.Namespace"):
        load_model(folder)
    monkeypatch.setenv("MULTILAB_TRUSTED_TYPES", "argparse.Namespace")
    with pytest.raises(DeploymentError, match="holds a dict"):
        load_model(folder)


def test_a_model_of_the_old_form_is_answered_with_the_command_that_fits_it_again(model, tmp_path, monkeypatch):
    module = types.ModuleType("multilab.models.fitted")
    old = type("FittedMethod", (), {"__module__": module.__name__})
    module.FittedMethod = old
    monkeypatch.setitem(sys.modules, module.__name__, module)
    folder = model.save(tmp_path)
    skops.io.dump(old(), folder / "model.skops")
    with pytest.raises(DeploymentError, match="multilab fit --dataset mine --method mlknn --decision macro_f1"):
        load_model(folder)


def test_metadata_round_trip_and_content(model, model_path):
    about = ModelMetadata.load(model_path)
    assert about == model.metadata
    assert [row["name"] for row in about.features] == ["age", "town", "income", "member"]
    assert about.dataset["instances"] == 90
    assert sum(about.features[1]["counts"].values()) == 85
    assert [round(90 * row["missing"]) for row in about.features] == [8, 5, 0, 0]  # as in the file, not imputed
    assert [row["label"] for row in about.per_label] == LABELS
    assert len(about.metrics["macro_f1"]["values"]) == about.evaluation["splits"] == len(about.evaluation["cells"]) == 3
    assert about.metrics["macro_f1"]["low"] < about.metrics["macro_f1"]["mean"] < about.metrics["macro_f1"]["high"]
    bins = about.calibration["labels"]["tag_a"]
    assert sum(bins["count"]) == 90
    assert sum(bins["positives"]) == about.labels[0]["positives"]
    assert about.versions["scikit-learn"]


def test_a_method_on_base_scores_is_saved_with_its_members(own_csv, tmp_path):
    model = model_of(fit_settings("decide_top_k"))
    loaded = SavedModel.load(model.save(tmp_path))
    assert len(loaded.estimator.named_steps["members"].members_) == 1
    table = pd.read_csv(own_csv)
    pd.testing.assert_frame_equal(model.predict_frame(table), loaded.predict_frame(table))


def test_a_pipeline_with_tuned_decisions(own_csv, tmp_path):
    model = model_of(fit_settings("mddm_proj", objective="hamming_loss"))
    loaded = SavedModel.load(model.save(tmp_path))
    limits = [np.inf if limit is None else limit for limit in loaded.metadata.thresholds.values()]
    np.testing.assert_array_equal(limits, loaded.estimator.thresholds_)


def test_decisions_by_costs_are_saved_and_described(own_csv, tmp_path):
    cost = {"fp": 1.0, "fn": 4.0, "tn": 0.5}
    model = model_of(fit_settings("mlknn", calibration="isotonic", cost=cost))
    loaded = SavedModel.load(model.save(tmp_path))
    assert set(loaded.metadata.thresholds.values()) == {0.5 / 4.5}
    assert loaded.metadata.decision["cost"] == cost
    assert "--calibration isotonic --cost fp=1.0,fn=4.0,tn=0.5" in model_card(loaded.metadata).markdown()
    shown = loaded.predict_frame(pd.read_csv(own_csv))
    probabilities = shown[[f"{name}_probability" for name in LABELS]].to_numpy()
    np.testing.assert_array_equal(shown[LABELS].to_numpy(), probabilities >= 0.5 / 4.5)


def test_decisions_keep_the_search_space():
    method = decided(load_method("br"), "macro_f1")
    assert set(method.search) == {"estimator__estimator__C", "estimator__estimator__gamma"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mlknn", "f1", None), "decision: no objective is called 'f1'"),
        (("mlknn", None, "platt"), "calibration: no calibration is called 'platt'"),
        (("decide_macro_f1", "macro_f1", None), "tunes its decisions itself"),
    ],
)
def test_decisions_that_do_not_exist(arguments, message):
    name, objective, calibration = arguments
    with pytest.raises(DeploymentError, match=message):
        decided(load_method(name), objective, calibration)


def test_folders_without_a_model(model, tmp_path):
    with pytest.raises(DeploymentError, match="no such folder"):
        load_model(tmp_path / "nothing")
    with pytest.raises(DeploymentError, match="no model of `multilab fit`"):
        load_model(tmp_path)
    folder = model.save(tmp_path / "model")
    (folder / "model.skops").write_bytes(b"PK nothing")
    with pytest.raises(DeploymentError, match="not a skops file"):
        load_model(folder)
    (folder / "metadata.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(DeploymentError, match="written by another version"):
        load_model(folder)


@pytest.mark.parametrize("fails", ["model.skops", "encoder.json", "metadata.json"])
@pytest.mark.parametrize("exists", [False, True])
def test_a_full_disk_leaves_nothing(model, tmp_path, monkeypatch, fails, exists):
    folder = tmp_path / "model"
    if exists:
        model.save(folder)
    before = {path.name: path.read_bytes() for path in folder.glob("*")}
    full = OSError(errno.ENOSPC, "No space left on device")

    def write_half(self, content):
        with self.open("wb") as stream:
            stream.write(content[:10])
        if self.name == fails:
            raise full
        return len(content)

    def replace(source, target):
        if Path(target).name == fails:
            raise full
        return os_replace(source, target)

    os_replace = os.replace
    monkeypatch.setattr(Path, "write_bytes", write_half)
    monkeypatch.setattr(files.os, "replace", replace)
    with pytest.raises(OSError, match="No space left"):
        model.save(folder)
    assert {path.name: path.read_bytes() for path in folder.glob("*")} == before
    assert [path.name for path in tmp_path.iterdir()] == (["model"] if exists else [])


def test_a_model_is_saved_into_the_current_folder_and_over_another(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (".", ".", "new/folder"):
        assert SavedModel.load(model.save(folder)).metadata == model.metadata
    assert sorted(path.name for path in tmp_path.iterdir()) == ["encoder.json", "metadata.json", "model.skops", "new"]


def test_a_number_that_overflows_in_a_method_is_an_error_of_the_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    model = MLkNN(k=3).fit(X, (X[:, :2] > 0).astype(np.uint8))
    with np.errstate(all="ignore"), pytest.raises(DatasetError):
        prediction.predict_rows(model, np.array([[1e308, 0.0, 0.0]]))
