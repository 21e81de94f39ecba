"""Models in MLflow: links, the data frame that `mlflow.pyfunc` returns, and champion against challenger."""

from __future__ import annotations

import copy
import json
import multiprocessing
import re
from dataclasses import replace
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from mlflow.protos.databricks_pb2 import TEMPORARILY_UNAVAILABLE

from helpers.models_for_use import LABELS, fit_settings, model_of, own_table, register_at_once, write_card
from multilab.cells import cell_metrics
from multilab.cells.store import Store
from multilab.core import MultilabError
from multilab.metrics import registry
from multilab.models import DeploymentError, SavedModel, champions, load_model
from multilab.models.champions import challenge
from multilab.models.model_card import score_text
from multilab.models.registry import download, log_model

RACES = 200
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


@pytest.mark.slow
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
    assert version.tags["macro_f1"] == score_text(model.metadata.metrics["macro_f1"])
    card = Path(client.download_artifacts(entry.run_id, "card.md")).read_text()
    assert "## Known weaknesses" in version.description
    assert version.description[:1000] == card[:1000]
    assert len(run.data.metrics) <= 30


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


def test_a_better_model_becomes_champion_on_the_splits_of_the_new_data(own_csv, where, tmp_path, monkeypatch):
    settings = fit_settings()
    settings["mapping"]["s"] = 1e9  # smoothed until neighbours hardly count
    weak = model_of(settings)
    challenge(logged(weak, where), weak, "growing", where, Store(), metric="macro_auc")
    write_card(tmp_path, own_table(150, seed=5))
    monkeypatch.setenv("MULTILAB_CARDS", str(tmp_path))
    strong = model_of(fit_settings("br_logistic"))
    outcome = challenge(logged(strong, where), strong, "growing", where, Store(), level=0.2)
    assert outcome.alias == "champion", outcome.message
    assert "version 1 (its settings, fitted to the changed data)" in outcome.message
    assert "macro_auc over 3 splits" in outcome.message  # the metric of the first registration
    champion = MlflowClient(where["uri"]).get_model_version_by_alias("growing", "champion")
    assert champion.version == 2
    assert f"this model {strong.metadata.metrics['macro_auc']['mean']:.4f}" in outcome.message


@pytest.fixture(scope="module")
def weak(own_csv, where):
    """Return a model that the strong one beats, and its entry in MLflow."""
    settings = fit_settings()
    settings["mapping"]["s"] = 1e9  # smoothed until neighbours hardly count
    model = model_of(settings)
    return model, logged(model, where)


@pytest.fixture(scope="module")
def strong(own_csv, where):
    model = model_of(fit_settings("br_logistic"))
    return model, logged(model, where)


def challenged(pair, name, where):
    model, entry = pair
    return challenge(entry, model, name, where, Store())


def champion_of(name, where):
    return MlflowClient(where["uri"]).get_model_version_by_alias(name, "champion").tags["multilab.model_id"]


@pytest.mark.slow
@pytest.mark.parametrize("before", [None, "weak"])
def test_a_champion_that_appears_during_the_comparison_is_compared_too(before, weak, strong, where, monkeypatch):
    name = f"meanwhile-{before}"
    if before:
        challenged(weak, name, where)
    register, others = champions.register, []

    def register_late(*arguments):
        monkeypatch.setattr(champions, "register", register)
        others.append(challenged(strong, name, where))
        return register(*arguments)

    monkeypatch.setattr(champions, "register", register_late)
    outcome = challenged(weak, name, where)
    assert others[0].alias == "champion"
    assert outcome.alias == "challenger", outcome.message
    assert f"version {others[0].version} stays @champion" in outcome.message
    assert champion_of(name, where) == strong[1].model_id


@pytest.mark.slow
def test_of_two_registrations_at_once_the_better_model_is_the_champion(weak, strong, where, tmp_path):
    names = [f"race-{number}" for number in range(RACES)]
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(2), context.Queue()
    processes = []
    for model, entry in (weak, strong):
        folder = model.save(tmp_path / entry.model_id)
        arguments = (folder, entry, where, names, barrier, queue)
        processes.append(context.Process(target=register_at_once, args=arguments))
        processes[-1].start()
    messages = [queue.get(timeout=600) for _ in range(2 * RACES)]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    for name in names:
        firsts = [message for raced, _, message in messages if raced == name and "the first one" in message]
        assert len(firsts) == 1
        assert champion_of(name, where) == strong[1].model_id


def test_a_store_that_fails_has_no_champion_for_nobody(weak, where, monkeypatch):
    def fail(*_):
        raise mlflow.MlflowException("the database is locked", error_code=TEMPORARILY_UNAVAILABLE)

    monkeypatch.setattr(MlflowClient, "get_model_version_by_alias", fail)
    with pytest.raises(MultilabError, match="the database is locked"):
        challenged(weak, "unread", where)
    assert not MlflowClient(where["uri"]).search_model_versions("name = 'unread'")


def test_a_champion_is_compared_by_the_formula_of_today(weak, where, monkeypatch):
    model, entry = weak
    challenge(entry, model, "formulas", where, Store(), metric="hamming_loss")
    monkeypatch.setattr(cell_metrics, "formulas_digest", lambda *parts: "of the edited file")
    loss = registry.METRICS["hamming_loss"]
    for table in (registry._STANDARD, registry._ALL):
        monkeypatch.setitem(table, "hamming_loss", replace(loss, formula=lambda *given: 10 + loss.formula(*given)))
    other = model_of(fit_settings("elm"))
    compared = []
    monkeypatch.setattr(champions, "corrected_resampled_p", lambda gains, *_: compared.append(gains) or 1.0)
    challenge(logged(other, where), other, "formulas", where, Store())
    assert np.abs(compared[0]).max() < 1 < other.metadata.metrics["hamming_loss"]["mean"]


@pytest.mark.parametrize("target", ["os.system", "sklearn.datasets._base.os.system", "hydra.utils.instantiate"])
def test_the_settings_of_a_foreign_champion_call_nothing(weak, where, target, monkeypatch, tmp_path):
    model, name = weak[0], f"foreign-{target}"
    evil = copy.deepcopy(model.metadata)
    evil.evaluation["settings"]["mapping"] = {"_target_": target, "command": f"touch {tmp_path / 'called'}"}
    foreign = SavedModel(model.estimator, model.encoder, evil)
    challenged((foreign, logged(foreign, where)), name, where)
    with pytest.raises(
        DeploymentError, match=rf"version 1\) is evaluated by {re.escape(target)}, which no method file"
    ):
        challenged(weak, name, where)
    assert not list(tmp_path.iterdir())


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
