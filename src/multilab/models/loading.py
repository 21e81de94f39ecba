"""Loading of models from a folder or an MLflow address."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from multilab.core.files import signals_unwind
from multilab.models.errors import DeploymentError
from multilab.models.metadata import METADATA_FILE
from multilab.models.saved_model import SavedModel

__all__ = ["load_model", "model_folder"]

_INSIDE = Path("artifacts") / "model"  # of an MLflow model
_SCHEMES = ("models:/", "runs:/", "mlflow-artifacts:", "file:", "http://", "https://", "s3://", "gs://")


def load_model(location: str | os.PathLike[str], tracking_uri: str | None = None) -> SavedModel:
    """Return a saved model.

    Parameters
    ----------
    location : str or path-like
        A folder, or an MLflow address: ``models:/mine@champion``, ``models:/mine/2``, ``models:/m-...``.
    tracking_uri : str, optional
        Address of the MLflow store; default: ``MLFLOW_TRACKING_URI``, else that of ``conf/tracking``.

    Raises
    ------
    DeploymentError
        If there is no such model, it cannot be read, or it holds types that are not trusted.
    """
    with signals_unwind(), tempfile.TemporaryDirectory() as scratch:
        return SavedModel.load(model_folder(location, scratch, tracking_uri))


def model_folder(location: str | os.PathLike[str], scratch: str, tracking_uri: str | None = None) -> Path:
    """Return the folder of a saved model; a model in MLflow is copied into the folder ``scratch``."""
    text = os.fspath(location)
    if text.startswith(_SCHEMES):
        from multilab.models.registry import download

        folder = download(text, scratch, tracking_uri)
    else:
        folder = Path(text)
        if not folder.is_dir():
            raise DeploymentError(
                f"{text}: no such folder; a model is a folder or an address such as models:/mine@champion"
            )
    for candidate in (folder, folder / _INSIDE):
        if (candidate / METADATA_FILE).is_file():
            return candidate
    raise DeploymentError(f"{text}: no model of `multilab fit` (no {METADATA_FILE} in it)")
