"""Saved model: a folder with the fitted method, the encoder of raw rows, and the metadata."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from multilab.core import write_atomically
from multilab.datasets import EncodedRows, TableEncoder
from multilab.deployment.errors import DeploymentError
from multilab.deployment.metadata import ModelMetadata
from multilab.deployment.skops_files import dump_model, load_skops

if TYPE_CHECKING:
    from multilab.deployment.fitted import FittedMethod

__all__ = ["SavedModel"]

_ENCODER_FILE, _MODEL_FILE = "encoder.json", "model.skops"


class SavedModel:
    """Model that predicts rows of a raw table.

    Parameters
    ----------
    fitted : FittedMethod
    encoder : TableEncoder
    metadata : ModelMetadata
    """

    def __init__(self, fitted: FittedMethod, encoder: TableEncoder, metadata: ModelMetadata) -> None:
        self.fitted = fitted
        self.encoder = encoder
        self.metadata = metadata

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return self.metadata.label_names

    @property
    def score_suffix(self) -> str:
        """``_probability``, or ``_score`` where the scores are no probabilities."""
        return f"_{self.metadata.score_kind}"

    def read(self, path: str | os.PathLike[str]) -> pd.DataFrame:
        """Return the rows of a file as :meth:`predict_frame` takes them, see :func:`multilab.datasets.read_frames`."""
        return self.encoder.read(path)

    def encode(self, rows: pd.DataFrame) -> EncodedRows:
        """Return the encoded rows, see :meth:`multilab.datasets.TableEncoder.encode`."""
        return self.encoder.encode(rows)

    def predict_frame(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return decisions and scores.

        Parameters
        ----------
        rows : DataFrame of shape (n, m)
            Rows with the columns of the training file.

        Returns
        -------
        DataFrame of shape (n, 2 q)
            Per label its decision under its name, then per label its probability as ``<label>_probability`` (or its
            score as ``<label>_score``); the index is that of ``rows``.

        Raises
        ------
        DatasetError
            Columns are missing or unknown, or a cell has a value that the column cannot have.
        """
        return self.frame_of(*self.fitted.predict_with_scores(self.encode(rows).X), rows.index)

    def predict_proba_frame(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the probabilities (or scores) alone, one column per label under the label's name."""
        scores, _ = self.fitted.predict_with_scores(self.encode(rows).X)
        return pd.DataFrame(scores, columns=self.label_names, index=rows.index)

    def frame_of(self, scores: np.ndarray, decisions: np.ndarray, index: Any = None) -> pd.DataFrame:
        """Return decisions and scores of shape (n, q) as :meth:`predict_frame` does."""
        names = self.label_names
        first = pd.DataFrame(decisions.astype("int64"), columns=names, index=index)
        second = pd.DataFrame(scores, columns=[f"{name}{self.score_suffix}" for name in names], index=index)
        return pd.concat([first, second], axis=1)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the model into a folder, which is created; return its path."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        dump_model(self.fitted, path / _MODEL_FILE)
        write_atomically(path / _ENCODER_FILE, json.dumps(self.encoder.to_json(), indent=1) + "\n")
        self.metadata.save(path)
        return path

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> SavedModel:
        """Return the model of a folder that :meth:`save` wrote.

        Raises
        ------
        DeploymentError
            The folder holds no model, a damaged one, or one with types that are not trusted.
        """
        path = Path(folder)
        metadata = ModelMetadata.load(path)
        try:
            encoder = TableEncoder.from_json(json.loads((path / _ENCODER_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            raise DeploymentError(f"{path / _ENCODER_FILE}: no readable encoder") from None
        fitted = load_skops(path / _MODEL_FILE)
        if type(fitted).__name__ != "FittedMethod":
            raise DeploymentError(f"{path / _MODEL_FILE} holds a {type(fitted).__name__}, not a fitted method")
        return cls(fitted, encoder, metadata)
