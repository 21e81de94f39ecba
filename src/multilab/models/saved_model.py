"""Saved model: a folder with the fitted estimator, the encoder of raw rows, and the metadata."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab.cells import MethodPipeline
from multilab.core import read_json, write_atomically
from multilab.core.files import not_a_file, scratch_folder
from multilab.core.messages import pip_install
from multilab.core.text import excerpt
from multilab.datasets import DatasetError, EncodedRows, TableEncoder
from multilab.datasets.columns import canonical_csr
from multilab.models.errors import DeploymentError
from multilab.models.metadata import METADATA_FILE, ModelMetadata
from multilab.models.prediction import predict_rows

__all__ = ["SavedModel"]

_ENCODER_FILE, _MODEL_FILE = "encoder.json", "model.skops"
_OLD_FORM = "multilab.models.fitted.FittedMethod"  # before a method was one estimator


class SavedModel:
    """Model that predicts rows of a raw table.

    Parameters
    ----------
    estimator : MethodPipeline
        The method, fitted to encoded rows.
    encoder : TableEncoder
    metadata : ModelMetadata
    """

    def __init__(self, estimator: MethodPipeline, encoder: TableEncoder, metadata: ModelMetadata) -> None:
        self.estimator = estimator
        self.encoder = encoder
        self.metadata = metadata

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return self.metadata.label_names

    @property
    def score_suffix(self) -> str:
        """``_probability``, or ``_score`` if the scores are not probabilities."""
        return f"_{self.metadata.score_kind}"

    def read(self, path: str | os.PathLike[str]) -> pd.DataFrame:
        """Return the rows of a file as :meth:`predict_frame` takes them, see :func:`multilab.datasets.read_frames`."""
        return self.encoder.read(path)

    def encode(self, rows: pd.DataFrame, *, strict: bool = False) -> EncodedRows:
        """Return the encoded rows, see :meth:`multilab.datasets.TableEncoder.encode`."""
        return self.encoder.encode(rows, strict=strict)

    def example(self) -> pd.DataFrame:
        """Return an artificial example row, see `FeatureColumn.example`."""
        values = {column.name: column.example for column in self.encoder.columns}
        return pd.DataFrame({k: [float(f"{v:.6g}") if isinstance(v, float) else v] for k, v in values.items()})

    def predict_frame(self, rows: pd.DataFrame, *, strict: bool = False) -> pd.DataFrame:
        """Return decisions and scores.

        Parameters
        ----------
        rows : DataFrame of shape (n, m)
            Rows with the columns of the training file.
        strict : bool, default False
            Whether to refuse cells of numbers and dates that cannot be read; by default they count as missing.

        Returns
        -------
        DataFrame of shape (n, 2 q)
            The decision of each label under its name, then the probability of each label as ``<label>_probability`` (or
            its score as ``<label>_score``); the index is the index of ``rows``.

        Raises
        ------
        DatasetError
            If columns are missing or unknown, or a cell has a value that the column cannot have.
        """
        return self.frame_of(*self.predict_encoded(self.encode(rows, strict=strict).X), rows.index)

    def predict_encoded(
        self, X: Any, progress: Callable[[Iterable[int], int], Iterable[int]] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and decisions of encoded rows, see `multilab.models.prediction.predict_rows`."""
        return predict_rows(self.estimator, X, progress)

    def predict_partition(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return :meth:`predict_frame` of a part of a table, which may be empty: for ``map_partitions`` of Dask.

        The model is pickled to the workers once per task graph, and :attr:`output_meta` is what Dask asks for::

            dask.dataframe.read_parquet("big/").map_partitions(model.predict_partition, meta=model.output_meta)
        """
        return self.predict_frame(rows) if len(rows) else self.output_meta

    @property
    def output_meta(self) -> pd.DataFrame:
        """An empty result of :meth:`predict_frame`: names and types of the columns."""
        empty = np.empty((0, len(self.label_names)))
        return self.frame_of(empty, empty)

    def copied_columns(self, names: Iterable[str]) -> list[str]:
        """Return the dropped columns that `multilab predict` copies: neither tags nor old predictions."""
        left_out = {*self.output_meta, self.encoder.reading.get("tags")}
        return [name for name in names if name in self.encoder.dropped and name not in left_out]

    def predict_proba_frame(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the probabilities (or scores) alone, one column per label under the label's name."""
        scores, _ = self.predict_encoded(self.encode(rows).X)
        return pd.DataFrame(scores, columns=self.label_names, index=rows.index)

    def frame_of(self, scores: np.ndarray, decisions: np.ndarray, index: Any = None) -> pd.DataFrame:
        """Return decisions and scores of shape (n, q) as :meth:`predict_frame` does."""
        names = self.label_names
        first = pd.DataFrame(decisions.astype("int64"), columns=names, index=index)
        second = pd.DataFrame(scores, columns=[f"{name}{self.score_suffix}" for name in names], index=index)
        return pd.concat([first, second], axis=1)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the model into a folder, which is created; return its path.

        The files are written next to the folder first: where that fails, as on a full disk, the folder stays as it was.
        """
        path = Path(os.path.abspath(folder))
        with scratch_folder(path) as scratch:
            _skops_files().dump_model(self.estimator, scratch / _MODEL_FILE)
            write_atomically(scratch / _ENCODER_FILE, json.dumps(self.encoder.to_json(), indent=1) + "\n")
            self.metadata.save(scratch)
            path.mkdir(exist_ok=True)
            for file in scratch.iterdir():
                file.replace(path / file.name)
        return Path(folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> SavedModel:
        """Return the model of a folder that :meth:`save` wrote.

        Raises
        ------
        DeploymentError
            If the folder holds no model, a damaged one, or one with types that are not trusted.
        """
        path = Path(folder)
        for name in (METADATA_FILE, _ENCODER_FILE, _MODEL_FILE):
            if kind := not_a_file(path / name):
                raise DeploymentError(f"{path / name}: it is {kind}, not a file")
        metadata = ModelMetadata.load(path)
        try:
            encoder = TableEncoder.from_json(read_json(path / _ENCODER_FILE))
        except (OSError, ValueError, DatasetError):
            raise DeploymentError(f"{path / _ENCODER_FILE}: no readable encoder") from None
        files = _skops_files()
        try:
            estimator = files.load_skops(path / _MODEL_FILE)
        except DeploymentError:
            # Loading only says that a type is not trusted, which here would be the wrong advice.
            if _OLD_FORM not in files.names_in(path / _MODEL_FILE):
                raise
            version = metadata.versions.get("multilab", "")
            raise DeploymentError(
                f"{path}: a model of multilab {version}, of a form that is not read any more; fit it again: "
                f"{metadata.command}"
            ) from None
        if not isinstance(estimator, MethodPipeline):
            raise DeploymentError(f"{path / _MODEL_FILE} holds a {type(estimator).__name__}, not a MethodPipeline")
        model = cls(estimator, encoder, metadata)
        model._check(path)
        return model

    def _check(self, path: Path) -> None:
        """Refuse parts that do not belong together: by the names of the columns, and by the prediction of one row."""
        try:
            names = [summary["name"] for summary in self.metadata.features]
            self.example()
            row = np.zeros((1, self.encoder.width))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores, _ = self.predict_encoded(canonical_csr(row) if self.encoder.sparse else row)
            agree = names == self.encoder.names and scores.shape[1] == len(self.label_names)
        except Exception as error:  # whatever an estimator raises whose parts are not those that it was fitted with
            reason = f"{type(error).__name__}: {excerpt(str(error))}"
            raise DeploymentError(f"{path}: damaged, it predicts nothing ({reason}); fit it again") from None
        if not agree:
            raise DeploymentError(f"{path}: its files are not of one model; fit it again")


def _skops_files() -> Any:
    """Return the module that reads and writes skops files; only saved models need the package skops."""
    try:
        from multilab.models import skops_files
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "skops":
            raise
        raise DeploymentError(f"saved models need skops: {pip_install('skops')}") from None
    return skops_files
