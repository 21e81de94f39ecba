"""Models in MLflow: logging with signature and links to run and dataset, registration, and loading."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mlflow
from mlflow.entities import LoggedModelInput, Metric
from mlflow.exceptions import MlflowException
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, DataType, Schema
from mlflow.types.schema import AnyType

from multilab.core.files import signals_unwind
from multilab.datasets.vectors import vector_columns
from multilab.models.card_text import ModelCard
from multilab.models.errors import DeploymentError
from multilab.models.mlflow_store import (
    experiment_id,
    log_dataset,
    log_values,
    open_client,
    readable_errors,
    sqlite_path,
    tracking,
    without_password,
    writer_lock,
)
from multilab.models.model_card import main_metric, model_card
from multilab.models.saved_model import SavedModel

__all__ = [
    "CHAMPION",
    "EXPERIMENT",
    "LoggedModel",
    "download",
    "log_model",
    "register",
    "save_mlflow",
    "version_of",
]

EXPERIMENT = "models"
CHAMPION, CHALLENGER = "champion", "challenger"
_CODE = Path(__file__).with_name("model_code.py")


@dataclass(frozen=True)
class LoggedModel:
    """Model in an MLflow store.

    Attributes
    ----------
    uri : str
        ``models:/m-...``.
    model_id, run_id : str
    """

    uri: str
    model_id: str
    run_id: str


def log_model(
    model: SavedModel,
    where: Mapping[str, str],
    *,
    params: Mapping[str, Any],
    source: tuple[str, str],
    tags: Mapping[str, str],
) -> LoggedModel:
    """Log a model in a run of its own: parameters, cross-validated metrics, dataset, and the model itself.

    Parameters
    ----------
    model : SavedModel
    where : mapping
        ``uri`` and ``artifacts``, see :func:`multilab.models.mlflow_store.tracking`.
    params : mapping
        Settings to show, flat.
    source : (str, str)
        Type and JSON of the dataset's source in MLflow's terms.
    tags : mapping
        Tags of the run.
    """
    about = model.metadata
    name = f"{about.method['name']} on {about.dataset['name']}"
    with (
        signals_unwind(),
        _store(where["uri"]) as client,
        writer_lock(where["uri"]),
        tempfile.TemporaryDirectory() as scratch,
    ):
        folder = model.save(Path(scratch) / "model")
        experiment = experiment_id(client, EXPERIMENT, where, "Models of `multilab fit`, one per run.")
        with mlflow.start_run(experiment_id=experiment, run_name=name) as run:
            run_id = run.info.run_id
            # MLflow limits the length of a tag
            mlflow.set_tags({**tags, "multilab.cells": " ".join(about.evaluation["cells"])[:4900]})
            info = mlflow.pyfunc.log_model(name="model", **_package(model, folder))
            inputs = [LoggedModelInput(info.model_id)]
            dataset = log_dataset(client, run_id, about.dataset["name"], about.dataset, source, inputs)
            log_values(client, run_id, params, _metrics(model, info.model_id, run_id, dataset))
            client.log_text(run_id, model_card(about).markdown(), "card.md")
    return LoggedModel(info.model_uri, info.model_id, run_id)


def save_mlflow(model: SavedModel, folder: Path) -> Path:
    """Write a model to a folder in MLflow's format, without a store, and return the folder."""
    with signals_unwind(), tempfile.TemporaryDirectory() as scratch:
        mlflow.pyfunc.save_model(path=folder, **_package(model, model.save(Path(scratch) / "model")))
    return folder


def _package(model: SavedModel, folder: Path) -> dict[str, Any]:
    """Return what MLflow stores of a model that was saved in a folder."""
    return {
        # the path of a file, not an object: MLflow would pickle the object
        "python_model": str(_CODE),
        "artifacts": {"model": str(folder)},
        "signature": signature(model),
        "input_example": model.example(),
        "pip_requirements": requirements(model.metadata.versions),
        "metadata": _described(model),
    }


def _metrics(model: SavedModel, model_id: str, run_id: str, dataset: Any) -> list[Metric]:
    """Return the means over the splits, linked to the model and the dataset, and the splits of one metric as steps."""
    now, about = int(time.time() * 1000), model.metadata
    link = {"dataset_name": dataset.name, "dataset_digest": dataset.digest, "model_id": model_id, "run_id": run_id}
    means = [(name, row["mean"], 0) for name, row in about.metrics.items()]
    main = main_metric(about)
    splits = [(f"split/{main}", value, split) for split, value in enumerate(about.metrics[main]["values"])]
    return [Metric(name, value, now, step, **link) for name, value, step in (*means, *splits) if value is not None]


def signature(model: SavedModel) -> ModelSignature:
    """Return MLflow's signature: the raw columns by name, and the columns of the prediction with their types.

    The raw columns have the type ``any`` and are optional: MLflow would refuse whole numbers for a ``double`` and a
    data frame with a hole for a ``long``, and cut off unknown columns. The model checks columns and values itself, with
    messages that name the column; the types are in the model's metadata.
    """
    vectors = vector_columns(model.encoder.names)  # rows may have a list or its numbers
    inputs: list[Any] = [ColSpec(AnyType(), name, required=False) for name in (*model.encoder.names, *vectors)]
    decisions = [ColSpec(DataType.long, name) for name in model.label_names]
    scores = [ColSpec(DataType.double, f"{name}{model.score_suffix}") for name in model.label_names]
    return ModelSignature(Schema(inputs), Schema([*decisions, *scores]))


def requirements(versions: Mapping[str, str]) -> list[str]:
    """Return the pinned packages that a model needs."""
    return [f"{name}=={number}" for name, number in versions.items() if name != "python"]


def _described(model: SavedModel) -> dict[str, Any]:
    about = model.metadata
    types = {column.name: "number" if column.values is None else "text" for column in model.encoder.columns}
    return {
        "multilab": {
            "dataset": about.dataset["name"],
            "digest": about.dataset["digest"],
            "card_digest": about.dataset["card_digest"],
            "column_types": types,
            "labels": about.label_names,
            "thresholds": about.thresholds,
            "cells": about.evaluation["cells"],
        }
    }


def register(
    logged: LoggedModel,
    name: str,
    where: Mapping[str, str],
    tags: Mapping[str, str],
    alias: str,
    champion: int | None,
    card: ModelCard,
) -> int | None:
    """Register a logged model under a name and give it an alias, unless another version became the champion.

    Parameters
    ----------
    logged : LoggedModel
    name : str
    where : mapping
    tags : mapping
        Tags of the version.
    alias : str
        Alias of the new version.
    champion : int or None
        The version that the model was compared with, None if there was none.
    card : ModelCard
        Describes the version.

    Returns
    -------
    int or None
        The new version; None if ``champion`` is no longer the champion: nothing is registered then.
    """
    quiet = contextlib.redirect_stderr(io.StringIO())  # MLflow prints that it registers
    with _store(where["uri"]) as client, writer_lock(where["uri"]), quiet:
        current = _version_of(client, name, CHAMPION)
        if (int(current.version) if current else None) != champion:
            return None
        entry = mlflow.register_model(logged.uri, name, tags={**tags, "multilab.model_id": logged.model_id})
        client.update_model_version(name, str(entry.version), _shortened(card))
        client.set_registered_model_alias(name, alias, str(entry.version))
    return int(entry.version)


def _shortened(card: ModelCard) -> str:
    """Return the first sections of a card that fit into the 5000 characters of MLflow's description, in Markdown."""
    text = card.markdown()
    if len(text) <= 5000:
        return text
    while len(text) > 4900:
        card = replace(card, sections=card.sections[:-1])
        text = card.markdown()
    return text + "\nThe rest is in the artifact `card.md` of the source run.\n"


def version_of(name: str, alias: str, where: Mapping[str, str]) -> Any:
    """Return the version of a registered model that has an alias, None if there is none."""
    with _store(where["uri"]) as client:
        return _version_of(client, name, alias)


def _version_of(client: Any, name: str, alias: str) -> Any:
    try:
        return client.get_model_version_by_alias(name, alias)
    except MlflowException as error:
        if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):  # no such name, no such alias
            return None
        raise  # a store that does not answer has not said that there is no champion


def download(address: str, scratch: str, tracking_uri: str | None = None) -> Path:
    """Return the folder of an MLflow model, copied into ``scratch`` if it is not local.

    Raises
    ------
    DeploymentError
        If there is no such model or no such store.
    """
    uri = tracking(tracking_uri)["uri"]
    database = sqlite_path(uri)
    if database is not None and not database.is_file():
        raise DeploymentError(
            f"{address}: there is no MLflow store {without_password(uri)}; set tracking.uri= or MLFLOW_TRACKING_URI"
        )
    with _store(uri):
        try:
            return Path(mlflow.artifacts.download_artifacts(artifact_uri=address, dst_path=scratch, tracking_uri=uri))
        except (MlflowException, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise DeploymentError(f"{address}: {reason} (MLflow store {without_password(uri)})") from None


@contextlib.contextmanager
def _store(uri: str) -> Iterator[Any]:
    """Open an MLflow store, for the fluent functions too, and restore the addresses that these had before."""
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    open_client(uri)
    for name in ("mlflow", "mlflow.models.model", "mlflow.pyfunc", "mlflow.store.model_registry.abstract_store"):
        logging.getLogger(name).setLevel(logging.ERROR)
    # the setters below write these variables, and child processes would inherit them
    before = {name: os.environ.get(name) for name in ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI")}
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri(uri)
    try:
        with readable_errors(uri):
            yield mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri)
    finally:
        mlflow.set_tracking_uri(None)  # type: ignore[arg-type]
        mlflow.set_registry_uri(None)  # type: ignore[arg-type]
        os.environ |= {name: value for name, value in before.items() if value is not None}
        for name in before.keys() & os.environ.keys():
            if before[name] is None:
                del os.environ[name]
