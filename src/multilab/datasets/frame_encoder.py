"""Encoder of data frames as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from multilab.datasets.embeddings import embedded_frame
from multilab.datasets.frames import as_pandas, tidy
from multilab.datasets.table_encoder import TableEncoder
from multilab.datasets.tables import choose_kinds
from multilab.datasets.vectors import with_numbers

__all__ = ["FrameEncoder"]

_NAME = "X"  # of the frame, in messages


class FrameEncoder(TransformerMixin, BaseEstimator):
    """Encoder of data frames with numbers, dates, categories and free text.

    In a pipeline, the encoder learns only from the training rows of each fold. Models of user datasets use the same
    encoder. `FeatureColumn` describes what each kind of column becomes.

    Parameters
    ----------
    columns : mapping of str to str, optional
        Kinds of columns that are not to be recognised: ``{"price": "number:comma", "zip": "category"}``, see
        `multilab.datasets.kinds.Kind`. ``embed:FOLDER`` computes sentence embeddings of texts with a model of
        sentence-transformers in a local folder.
    strict : bool, default False
        Whether `transform` refuses cells of numbers and dates that cannot be read; by default they count as missing.

    Attributes
    ----------
    encoder_ : TableEncoder
        The encoder that was learned.
    feature_names_in_ : ndarray of str
        Names of the columns of the frame.
    n_features_in_ : int
        Number of these columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from multilab.datasets import FrameEncoder
    >>> from multilab.methods import BinaryRelevance
    >>> remarks = ["a quiet song", "a loud song", "so quiet", "too loud"] * 5
    >>> songs = pd.DataFrame({"remark": remarks, "price": ["1,50 €", "12 €"] * 10})
    >>> Y = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> encoder = FrameEncoder({"remark": "text"}).fit(songs)
    >>> encoder.get_feature_names_out().tolist()
    ['remark=loud', 'remark=quiet', 'remark=song', 'remark=so', 'remark=too', 'price']
    >>> model = make_pipeline(encoder, BinaryRelevance(LogisticRegression())).fit(songs, Y)
    >>> model.predict(pd.DataFrame({"price": [None], "remark": ["loud, loud, loud"]})).tolist()
    [[0, 1]]
    """

    def __init__(self, columns: Mapping[str, str] | None = None, *, strict: bool = False) -> None:
        self.columns = columns
        self.strict = strict

    def fit(self, X: pd.DataFrame, y: Any = None) -> FrameEncoder:
        """Learn the encoding of each column; labels are not used.

        Parameters
        ----------
        X : DataFrame of shape (n, m)
            Columns of numbers, truth values, text, categories, dates, or lists of numbers such as embeddings.
        y : ignored

        Raises
        ------
        DatasetError
            If X is not a data frame, or a column has another type or can be read in several ways.
        """
        X, given, embeddings = embedded_frame(as_pandas(X, _NAME), self.columns, _NAME)
        kinds = choose_kinds(tidy(X, _NAME), (), given, _NAME)
        encoder = TableEncoder.learn(with_numbers(_named(X), _NAME), kinds)
        self.encoder_ = replace(encoder, embeddings=embeddings)
        self.feature_names_in_ = np.array(self.encoder_.names, dtype=object)
        self.n_features_in_ = len(self.encoder_.names)
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        """Return rows as a matrix: dense, or CSR if there is a column of free text.

        Raises
        ------
        DatasetError
            If columns are missing or unknown or, with ``strict``, a cell cannot be read.
        """
        check_is_fitted(self)
        return self.encoder_.encode(_named(as_pandas(X, _NAME)), strict=self.strict).X

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of the matrix."""
        check_is_fitted(self)
        return np.array(self.encoder_.feature_names, dtype=object)


def _named(X: pd.DataFrame) -> pd.DataFrame:
    return X.rename(columns=lambda name: str(name).strip())
