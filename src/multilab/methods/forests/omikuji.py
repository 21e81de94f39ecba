"""Omikuji: forests of label trees with linear classifiers, for very many labels."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import omikuji
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from multilab.methods.base import MultiLabelClassifier
from multilab.methods.labels import Layout

__all__ = ["Omikuji"]


class Omikuji(MultiLabelClassifier):
    """Label trees of the library omikuji: labels are clustered into trees whose nodes have linear classifiers.

    The defaults make the balanced binary trees of Parabel; ``cluster_k=100, balanced=False, max_depth=3`` makes the
    shallow trees of Bonsai.

    Parameters
    ----------
    model_class : class, optional
        ``omikuji.Model`` when None.
    n_trees : int, default=3
    C : float, default=1.0
        Inverse strength of the penalty of the linear classifiers, which have the squared hinge loss.
    weight_threshold : float, default=0.1
        Weights below it in absolute value are dropped.
    cluster_k : int, default=2
        Children of a node.
    balanced : bool, default=True
        Whether clusters of labels have equal sizes.
    min_branch_size : int, default=100
        Sets of at most this number of labels are not clustered further.
    max_depth : int, default=20
    beam_size : int, default=10
        Nodes of each level that are followed when predicting.
    n_jobs : int, default=1
        Threads.

    Attributes
    ----------
    n_labels_, n_features_in_, classes_
        See `MultiLabelClassifier`.

    Notes
    -----
    Needs the package ``omikuji`` (extra ``xmc``).

    **Not reproducible**: omikuji takes no seed, and two fits on the same data differ. A fitted model always predicts
    the same, also after it was saved and loaded.

    Scores are between 0 and 1. The beam does not reach most labels, which have the score 0. So
    `multilab.methods.sparse_scores.top_scores` stores fewer than k labels of some rows. Labels that all training rows
    have, or none, have the score 1 or 0.

    The library reads training data from a text file, which `fit` writes to the folder of temporary files. Rows without
    any feature cannot be written and are left out. The library prints messages and progress bars. So during `fit`, and
    while a saved model is loaded, what the process writes to the file descriptors 1 and 2 is lost. Features are
    float32.

    References
    ----------
    Y. Prabhu, A. Kag, S. Harsola, R. Agrawal, M. Varma. Parabel: partitioned label trees for extreme classification
    with application to dynamic search advertising. WWW 2018. S. Khandagale, H. Xiao, R. Babbar. Bonsai: diverse and
    shallow trees for extreme multi-label classification. Machine Learning 109, 2020.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from multilab.methods import Omikuji
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, y = make_multilabel_classification(n_samples=60, n_features=40, n_classes=30, random_state=0)
    >>> model = Omikuji().fit(sp.csr_array(X), sp.csr_array(y))
    >>> model.predict_proba(X).shape
    (60, 30)
    """

    _sparse_labels: ClassVar[Layout | None] = "csr"
    _makes_dense: ClassVar[bool] = True  # it does not, but results on texts were computed with frequent words only

    def __init__(
        self,
        model_class: type | None = None,
        n_trees: int = 3,
        C: float = 1.0,
        weight_threshold: float = 0.1,
        cluster_k: int = 2,
        balanced: bool = True,
        min_branch_size: int = 100,
        max_depth: int = 20,
        beam_size: int = 10,
        n_jobs: int = 1,
    ) -> None:
        self.model_class = model_class
        self.n_trees = n_trees
        self.C = C
        self.weight_threshold = weight_threshold
        self.cluster_k = cluster_k
        self.balanced = balanced
        self.min_branch_size = min_branch_size
        self.max_depth = max_depth
        self.beam_size = beam_size
        self.n_jobs = n_jobs

    def _fit(self, X: Any, Y: Any) -> None:
        library = self._library()
        settings = library.default_hyper_param()
        settings.n_trees = self.n_trees
        settings.linear_c = self.C
        settings.linear_weight_threshold = self.weight_threshold
        settings.cluster_k = self.cluster_k
        settings.cluster_balanced = self.balanced
        settings.min_branch_size = self.min_branch_size
        settings.max_depth = self.max_depth
        X = sp.csr_array(X, copy=True)
        X.eliminate_zeros()
        some = np.diff(X.indptr) > 0
        X, Y = X[some], sp.csr_array(Y)[some]
        counts = Y.sum(axis=0)
        self._always = np.flatnonzero(counts == Y.shape[0])
        self._varying = np.flatnonzero((counts > 0) & (counts < Y.shape[0]))
        self._files: dict[str, np.ndarray] = {}
        self._model: Any = None
        if not len(self._varying):
            return
        with tempfile.TemporaryDirectory() as folder, _silence():
            path = Path(folder, "train.txt")
            _write(path, X, Y[:, self._varying])
            # kept as files alone: a model that was read predicts with another rounding than one just trained
            library.train_on_data(str(path), settings, self.n_jobs).save(str(Path(folder, "model")))
            for file in sorted(Path(folder, "model").iterdir()):
                self._files[file.name] = np.frombuffer(file.read_bytes(), dtype=np.uint8)
        self._loaded()

    def _library(self) -> Any:
        return omikuji.Model if self.model_class is None else self.model_class

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_model": None} if "_model" in vars(self) else super().__getstate__()

    def _loaded(self) -> Any:
        """Return the model of the library, from its files if this estimator was copied or read from a file."""
        if self._model is None:
            with tempfile.TemporaryDirectory() as folder, _silence():
                for name, content in self._files.items():
                    Path(folder, name).write_bytes(content.tobytes())
                self._model = self._library().load(folder)
            self._model.init_prediction_thread_pool(self.n_jobs)
        return self._model

    def _scores(self, X: Any) -> np.ndarray:
        return self._stored_scores(X, self.n_labels_).toarray()

    def _top_scores(self, X: Any, k: int) -> sp.csr_array:
        return self._stored_scores(self._validate_predict(X), k)

    def _stored_scores(self, X: Any, k: int) -> sp.csr_array:
        """Return the k best labels of each row, or as many as the beam reaches."""
        X = sp.csr_array(X)
        rows = [self._of_row(X.indices[a:b], X.data[a:b], k) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
        starts = np.cumsum([0, *(len(labels) for labels, _ in rows)])
        labels, scores = (np.concatenate(parts) for parts in zip(([], []), *rows, strict=True))
        result = sp.csr_array((scores, labels.astype(np.int64), starts), shape=(X.shape[0], self.n_labels_))
        result.sort_indices()
        return result

    def _of_row(self, features: np.ndarray, values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        always = self._always[:k]
        best: list[tuple[int, float]] = []
        if len(always) < k and len(self._varying):
            pairs = list(zip(features.tolist(), values.tolist(), strict=True))
            best = self._loaded().predict(pairs, self.beam_size, min(k - len(always), len(self._varying)))
        labels = self._varying[np.array([label for label, _ in best], dtype=np.int64)]
        scores = np.array([score for _, score in best], dtype=np.float64)
        return np.append(always, labels), np.append(np.ones(len(always)), scores)


def _write(path: Path, X: sp.csr_array, Y: sp.csr_array) -> None:
    """Write a line of sizes, then svmlight with lists of labels, as the Extreme Classification Repository has it."""
    with path.open("wb") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        dump_svmlight_file(sp.csr_matrix(X), sp.csr_matrix(Y), file, multilabel=True)


_LOCK = threading.Lock()


@contextmanager
def _silence() -> Iterator[None]:
    """Send what native code writes to standard output and error nowhere."""
    with _LOCK, open(os.devnull, "w") as nowhere:
        kept = [os.dup(1), os.dup(2)]
        try:
            for descriptor in (1, 2):
                os.dup2(nowhere.fileno(), descriptor)
            yield
        finally:
            for descriptor, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, descriptor)
                os.close(copy)
