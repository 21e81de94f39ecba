"""Binary relevance over a pretrained network whose checkpoint is a file of this machine."""

import hashlib
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from multilab.methods.base import MethodError, PartialClassifier

__all__ = ["PretrainedBinaryRelevance"]


class PretrainedBinaryRelevance(PartialClassifier):
    """Binary relevance over a network for tables that was pretrained elsewhere, e.g. TabICL or TabPFN.

    Such a network is not trained: its input is the training rows together with the rows to predict. ``fit`` therefore
    stores the rows, and the network runs once per label when predicting.

    Parameters
    ----------
    estimator : scikit-learn classifier
        A classifier with ``predict_proba`` and an argument ``model_path``, e.g. ``tabicl.TabICLClassifier()`` or
        ``tabpfn.TabPFNClassifier()``.
    model_path : str or Path
        The checkpoint file. It must exist: nothing is ever downloaded.
    sha256 : str, optional
        SHA-256 of the file, in hexadecimal. Another file is refused.

    Attributes
    ----------
    checkpoint_sha256_ : str
        SHA-256 of the file in ``fit``. Predictions refuse another file.
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Raises
    ------
    MethodError
        In ``fit`` and in predictions: if ``model_path`` is not a file, or not the expected one.

    Notes
    -----
    Both libraries download a checkpoint only where the path they get does not exist. This class gives them the absolute
    path of a file that it has just read, and sets ``allow_auto_download=False`` where there is such an argument. A
    fitted estimator holds the training rows and no weights; on another machine, set ``model_path`` to the same file
    there.

    The estimator is cloned for each label and released after it, so that one network is in memory at a time. A label
    with one class in training has that class as its score. A sparse X is made dense.

    **Missing labels**: the network sees the rows that observe the label.

    References
    ----------
    J. Qu, D. Holzmüller, G. Varoquaux, M. Le Morvan. TabICL: A tabular foundation model for in-context learning on
    large data. ICML 2025. N. Hollmann et al. Accurate predictions on small data with a tabular foundation model.
    Nature 637, 2025.

    Examples
    --------
    >>> from multilab.methods import PretrainedBinaryRelevance
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=6, n_classes=3, random_state=0)
    >>> PretrainedBinaryRelevance(LogisticRegression()).fit(X, y)
    Traceback (most recent call last):
        ...
    multilab.methods.errors.MethodError: LogisticRegression has no argument model_path: give a classifier ...
    """

    _makes_dense: ClassVar[bool] = True

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        model_path: str | Path | None = None,
        sha256: str | None = None,
    ) -> None:
        self.estimator = estimator
        self.model_path = model_path
        self.sha256 = sha256

    def _fit(self, X: Any, Y: Any) -> None:
        self._base = self._without_download()
        self.checkpoint_sha256_ = self._checkpoint(self.sha256)[1]
        self._rows, self._labels = _dense(X), Y

    def _without_download(self) -> BaseEstimator:
        """Return a clone of the estimator that may not download."""
        name = type(self).__name__
        if self.estimator is None:
            raise MethodError(f"{name}: give estimator, e.g. tabicl.TabICLClassifier() or tabpfn.TabPFNClassifier()")
        base = clone(self.estimator)
        if "model_path" not in base.get_params():
            raise MethodError(
                f"{type(base).__name__} has no argument model_path: give a classifier that reads a checkpoint file, "
                "e.g. tabicl.TabICLClassifier()"
            )
        return base.set_params(**({"allow_auto_download": False} if "allow_auto_download" in base.get_params() else {}))

    def _checkpoint(self, expected: str | None) -> tuple[str, str]:
        """Return absolute path and SHA-256 of the checkpoint file."""
        network = type(self._base).__name__
        if self.model_path is None:
            raise MethodError(
                f"model_path is not set: give the path of a checkpoint file of {network} on this machine; nothing is "
                "ever downloaded"
            )
        path = Path(self.model_path).expanduser().resolve()
        if not path.is_file():
            raise MethodError(
                f"model_path={str(self.model_path)!r} is not a file: give the path of a checkpoint file of {network} "
                "on this machine; nothing is ever downloaded"
            )
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if expected is not None and digest != expected.lower():
            raise MethodError(f"{path} has SHA-256 {digest}, and {expected} is expected: give that checkpoint file")
        return str(path), digest

    def _scores(self, X: Any) -> np.ndarray:
        path, _ = self._checkpoint(self.checkpoint_sha256_)
        positive = (self._labels == 1).any(axis=0)
        varied = positive & (self._labels == 0).any(axis=0)
        scores = np.tile(positive.astype(np.float64), (X.shape[0], 1))
        X = _dense(X)
        for label in np.flatnonzero(varied) if len(X) else ():
            rows = np.flatnonzero(self._labels[:, label] >= 0)
            network = clone(self._base).set_params(model_path=path)
            network.fit(self._rows[rows], self._labels[rows, label].astype(np.int64))
            scores[:, label] = network.predict_proba(X)[:, 1]
        return scores


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X
