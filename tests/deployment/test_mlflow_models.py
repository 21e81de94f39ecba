"""Models in MLflow: links, the data frame that `mlflow.pyfunc` returns, and champion against challenger."""

from __future__ import annotations

import json

import mlflow
import pandas as pd
import pytest
from mlflow import MlflowClient

from helpers.models_for_use import LABELS, fit_settings, model_of, own_table, write_card
from multilab.deployment import DeploymentError, load_model
from multilab.deployment.champions import challenge
from multilab.deployment.registry import download, log_model
from multilab.experiments import fitting
from multilab.experiments.store import Store

SOURCE = ("local", json.dumps({"uri": "mine.csv"}))


def logged(model, where):
    return log_model(model, where, params={"k": 10}, source=SOURCE, tags={"seed": "0"})


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow")
    return {"uri": f"sqlite:///{folder / 'mlflow.db'}", "artifacts": str(folder / "artifacts")}


@pytest.fixture(scope="module")
def first(model, where):
    """Log and register the first model."""
    entry = logged(model, where)
    return entry, challenge(entry, model, "mine", where, Store())


def test_run_model_and_dataset_are_linked(model, first, where):
    entry, _ = first
    client = MlflowClient(where["uri"])
    run = client.get_run(entry.run_id)
    assert [one.model_id for one in run.outputs.model_outputs] == [entry.model_id]
    assert [one.dataset.name for one in run.inputs.dataset_inputs] == ["mine"]
    stored = client.get_logged_model(entry.model_id)
    assert stored.source_run_id == entry.run_id
    values = {metric.key: (metric.value, metric.dataset_name) for metric in stored.metrics}
    assert values["macro_f1"] == (pytest.approx(model.metadata.metrics["macro_f1"]["mean"]), "mine")
    version = client.get_model_version_by_alias("mine", "champion")
    assert version.tags["multilab.model_id"] == entry.model_id
    assert version.run_id == entry.run_id


def test_the_files_in_mlflow_hold_no_pickle(first, where, tmp_path):
    folder = download(first[0].uri, str(tmp_path), where["uri"])
    files = {path.name for path in folder.rglob("*") if path.is_file()}
    assert {"model.skops", "metadata.json", "MLmodel", "requirements.txt"} <= files
    assert not [name for name in files if name.endswith((".pkl", ".pickle", ".joblib", ".cloudpickle"))]
    pinned = (folder / "requirements.txt").read_text().split()
    assert f"scikit-learn=={load_model(folder).metadata.versions['scikit-learn']}" in pinned


def test_pyfunc_returns_a_frame_with_label_names(model, first, where, own_csv, monkeypatch):
    _, outcome = first
    assert (outcome.version, outcome.alias) == (1, "champion")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", where["uri"])
    served = mlflow.pyfunc.load_model("models:/mine@champion")
    table = pd.read_csv(own_csv).drop(columns=["id", *LABELS])
    pd.testing.assert_frame_equal(served.predict(table), model.predict_frame(table))
    integers = table.assign(age=40, income=30).head(2)
    assert list(served.predict(integers)) == list(model.predict_frame(integers))
    assert [column.name for column in served.metadata.signature.outputs] == list(model.predict_frame(table))
    assert set(served.metadata.signature.inputs.input_names()) == set(table.columns)
    with pytest.raises(mlflow.MlflowException, match="columns of the training data are missing: 'town'"):
        served.predict(table.drop(columns="town"))


def test_load_model_reads_addresses(model, first, where, own_csv):
    table = pd.read_csv(own_csv)
    expected = model.predict_frame(table)
    for address in ("models:/mine@champion", "models:/mine/1", first[0].uri):
        pd.testing.assert_frame_equal(load_model(address, where["uri"]).predict_frame(table), expected)
    with pytest.raises(DeploymentError, match=r"models:/other/1: .*other"):
        load_model("models:/other/1", where["uri"])


def test_a_challenger_that_is_not_better_leaves_the_champion(own_csv, first, where):
    settings = fit_settings()
    settings["mapping"]["k"] = 40
    other = model_of(settings)
    outcome = challenge(logged(other, where), other, "mine", where, Store())
    assert (outcome.version, outcome.alias) == (2, "challenger")
    assert "not below the level 0.05" in outcome.message
    assert "macro_f1 over 3 splits: version 1" in outcome.message
    assert MlflowClient(where["uri"]).get_model_version_by_alias("mine", "champion").version == 1


def test_a_better_model_becomes_champion_on_the_splits_of_the_new_data(
    own_csv, own_csv_again, where, tmp_path, monkeypatch
):
    settings = fit_settings()
    settings["mapping"]["s"] = 1e9  # smoothed until neighbours hardly count
    weak = model_of(settings)
    challenge(logged(weak, where), weak, "growing", where, Store(), metric="macro_auc")
    write_card(tmp_path, own_table(150, seed=5))
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))
    for cached in (fitting._dataset, fitting._splits):  # by name, for one process
        cached.cache_clear()
    strong = model_of(fit_settings("br_logistic"))
    outcome = challenge(logged(strong, where), strong, "growing", where, Store(), level=0.2)
    assert outcome.alias == "champion", outcome.message
    assert "version 1 (its settings, fitted to the changed data)" in outcome.message
    assert "macro_auc over 3 splits" in outcome.message  # the metric of the first registration
    champion = MlflowClient(where["uri"]).get_model_version_by_alias("growing", "champion")
    assert champion.version == 2
    assert f"this model {strong.metadata.metrics['macro_auc']['mean']:.4f}" in outcome.message


@pytest.fixture
def own_csv_again():
    """Let later tests read the first data set again."""
    yield
    for cached in (fitting._dataset, fitting._splits):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("models:/nothing@champion", "models:/nothing@champion: "),
        ("models:/mine@nobody", "models:/mine@nobody: "),
        ("models:/mine/77", "models:/mine/77: "),
    ],
)
def test_addresses_without_a_model(first, where, address, message):
    with pytest.raises(DeploymentError) as caught:
        load_model(address, where["uri"])
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_no_store_is_created_by_reading(tmp_path):
    with pytest.raises(DeploymentError, match="there is no MLflow store"):
        load_model("models:/mine@champion", f"sqlite:///{tmp_path / 'none.db'}")
    assert list(tmp_path.iterdir()) == []
