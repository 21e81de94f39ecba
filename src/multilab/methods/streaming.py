"""Learning from more rows than memory holds: one batch after another, with the result of a fit on all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from joblib import delayed
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.utils import check_random_state

from multilab.core.parallel import parallel
from multilab.methods._boosted_batches import fit_boosted, is_xgboost
from multilab.methods.base import MethodError
from multilab.methods.bayes._gaussian import LabelGaussians
from multilab.methods.bayes.mlnb import MLNB, _dense
from multilab.methods.elm.elm import ELM, hidden_output
from multilab.methods.elm.nystroem_kernel_elm import NystroemKernelELM, _inverse_root
from multilab.methods.elm.relm import RELM
from multilab.methods.kernels import kernel_matrix
from multilab.methods.labels import check_labels
from multilab.methods.transformation._binary import _Model, check_calibration, fit_label, seeded
from multilab.methods.transformation._inputs import make_inputs
from multilab.methods.transformation.binary_relevance import BinaryRelevance
from multilab.methods.transformation.native_multilabel import NativeMultiLabel

__all__ = ["fit_batches", "streaming_fault"]

STREAMED = (
    "BinaryRelevance on a classifier with partial_fit, ELM, RELM, NystroemKernelELM, MLNB without its search, or "
    "NativeMultiLabel on XGBoost"
)
"""Estimators that `fit_batches` can fit, for messages."""

_ROWS = 8192  # of hidden outputs or kernels that are held at a time: 64 MB for 1000 units
_LEAST_SPREAD = 1e-6  # as in LabelGaussians

Batch = tuple[Any, Any]
Estimator = TypeVar("Estimator")


def fit_batches(
    estimator: Estimator, batches: Iterable[Batch], *, n_rows: int | None = None, epochs: int = 1
) -> Estimator:
    """Fit a classifier to batches of rows, of which only one is held at a time.

    Parameters
    ----------
    estimator : multi-label classifier
        One of the classes below; it is fitted in place, and is then like any other of its class.
    batches : iterable of (X, Y)
        X of shape (n, d), dense or sparse, and labels Y of shape (n, q), all observed. Where several passes are needed,
        it must start from the beginning each time it is iterated over, as a list does and a generator does not.
    n_rows : int, optional
        Number of rows of all batches; it saves the pass that counts them for `NystroemKernelELM`.
    epochs : int, default=1
        Passes of `BinaryRelevance`; the others are solved exactly.

    Returns
    -------
    estimator

    Raises
    ------
    MethodError
        The estimator cannot learn from batches, labels are missing, or there is no row.

    Notes
    -----
    ================================  ======  ===========================================================
    Class                             Passes  Result
    ================================  ======  ===========================================================
    `RELM`                            1       exact, from the sums H'H and H'T
    `ELM`                             1       exact, from the triangular factor of H: the pseudo-inverse
                                              drops singular values below 1e-8 of the largest, which the
                                              sum H'H, of their squares, cannot tell from rounding errors
    `MLNB` without its search         1       exact, from merged means and squared deviations; it needs
                                              ``components=None`` and ``generations=0``
    `NystroemKernelELM`               3, or   exact, with the landmarks that ``fit`` draws; passes count
                                      2       the rows, collect the landmarks, and add up the sums. The
                                              landmarks need a pass of their own, because the sums take the
                                              kernel of every row with all of them (and with a ``gamma`` from
                                              their distances), and a reservoir has them only at its end
    `NativeMultiLabel` on XGBoost     4 or    that of XGBoost's external memory: quantised batches in a
                                      more    temporary folder, with quantiles of its sketch
    `BinaryRelevance`                 epochs  that of ``partial_fit`` of the base classifier on the same
                                              batches in the same order
    ================================  ======  ===========================================================

    Exact means equal to ``fit`` on all rows up to rounding errors. `BinaryRelevance` needs a base classifier with
    ``partial_fit``, such as scikit-learn's `SGDClassifier`, and no calibration. Where its batches are sorted, shuffle
    them: stochastic gradients follow the last rows they saw. Weights of labels or rows are not supported.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab.methods import RELM
    >>> from multilab.methods.streaming import fit_batches
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=600, n_features=6, n_classes=3, random_state=0)
    >>> batches = [(X[start : start + 100], Y[start : start + 100]) for start in range(0, 600, 100)]
    >>> model = fit_batches(RELM(n_hidden=20, random_state=0), batches)
    >>> whole = RELM(n_hidden=20, random_state=0).fit(X, Y)
    >>> bool(np.abs(model.decision_function(X) - whole.decision_function(X)).max() < 1e-8)
    True
    """
    if fault := streaming_fault(estimator):
        raise MethodError(fault)
    if epochs < 1:
        raise MethodError(f"epochs={epochs}: there must be at least one")
    passes = epochs if isinstance(estimator, BinaryRelevance) else 1
    if iter(batches) is batches and (passes > 1 or isinstance(estimator, NystroemKernelELM | NativeMultiLabel)):
        raise MethodError("several passes are needed: give a list of batches, not a generator")
    if isinstance(estimator, NativeMultiLabel):
        fit_boosted(estimator, lambda: _validated(estimator, batches))
        return estimator
    learner = _LEARNERS[type(estimator)](estimator)
    if isinstance(learner, _Nystroem):
        learner.choose(batches, n_rows)
    for _ in range(passes):
        for X, Y in _validated(estimator, batches):
            learner.see(X, Y)
    if not learner.n:
        raise MethodError("there is no row to learn from")
    learner.finish()
    return estimator


def streaming_fault(estimator: Any) -> str | None:
    """Return why an estimator cannot learn from batches, None if it can.

    Examples
    --------
    >>> from multilab.methods import RELM, MLkNN
    >>> from multilab.methods.streaming import streaming_fault
    >>> streaming_fault(RELM()) is None
    True
    >>> streaming_fault(MLkNN()).partition(":")[0]
    'MLkNN cannot learn from batches of rows'
    """
    name = type(estimator).__name__
    if type(estimator) is NativeMultiLabel and is_xgboost(estimator.estimator):
        return None
    if type(estimator) not in _LEARNERS:
        return f"{name} cannot learn from batches of rows: take {STREAMED}"
    if getattr(estimator, "label_weight", None) is not None:
        return f"{name} cannot weight labels in batches of rows: leave out label_weight"
    if isinstance(estimator, MLNB) and (estimator.components is not None or estimator.generations):
        return "MLNB needs all rows for its components and its search: set components=None and generations=0"
    if isinstance(estimator, BinaryRelevance):
        base = estimator._base()
        if not hasattr(base, "partial_fit"):
            return f"{type(base).__name__} has no partial_fit: take an SGDClassifier as base of BinaryRelevance"
        if estimator.calibration not in (None, "none"):
            return "BinaryRelevance needs all rows for its calibration: leave it out"
    return None


class _Learner:
    """Statistics of the batches seen so far, from which the estimator is finished."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.n = 0
        self.positive: Any = 0  # rows with each label

    def see(self, X: Any, Y: np.ndarray) -> None:
        """Learn from a batch."""
        if not self.n:
            self.start(X, Y)
        self.n += X.shape[0]
        self.positive = self.positive + Y.sum(axis=0)
        self.add(X, Y)

    def start(self, X: Any, Y: np.ndarray) -> None:
        """Fit the estimator to one row: that checks its arguments and draws what is random, as any fit does."""
        self.estimator._fit(X[:1], Y[:1], None)

    def add(self, X: Any, Y: np.ndarray) -> None:
        """Learn from a batch, which may be the first."""
        raise NotImplementedError

    def finish(self) -> None:
        """Replace what the estimator learned from one row."""
        raise NotImplementedError


class _Binary(_Learner):
    def start(self, X: Any, Y: np.ndarray) -> None:
        base = seeded(self.estimator._base(), self.estimator.random_state, self.estimator.calibration)
        check_calibration(base, self.estimator.calibration)
        self.estimator._inputs = make_inputs(base, X[:1])
        self.models = [clone(base) for _ in range(Y.shape[1])]

    def add(self, X: Any, Y: np.ndarray) -> None:
        parallel(self.estimator.n_jobs, prefer="threads")(
            delayed(model.partial_fit)(X, np.ascontiguousarray(y), classes=np.array([0, 1]))
            for model, y in zip(self.models, Y.T, strict=True)
        )

    def finish(self) -> None:
        """Keep the models, and a constant for a label that no row has, or every one."""
        inputs = self.estimator._inputs
        self.estimator._labels = [
            _Model(model)
            if 0 < count < self.n
            else fit_label(inputs.base, inputs.training().matrix, np.array([count > 0], dtype=np.uint8), None)
            for model, count in zip(self.models, self.positive, strict=True)
        ]


class _Sums(_Learner):
    """F'F and F'T of features F and targets T in {-1, +1}."""

    gram: Any = 0.0
    cross: Any = 0.0

    def features(self, X: Any) -> np.ndarray:
        return hidden_output(X, self.estimator.weights_, self.estimator.bias_)

    def add(self, X: Any, Y: np.ndarray) -> None:
        for start in range(0, X.shape[0], _ROWS):
            rows = slice(start, start + _ROWS)
            self.add_features(self.features(X[rows]), 2.0 * Y[rows] - 1.0)

    def add_features(self, F: np.ndarray, targets: np.ndarray) -> None:
        self.gram = self.gram + F.T @ F
        self.cross = self.cross + F.T @ targets

    def finish(self) -> None:
        self.set_coefficients(self.ridge())

    def ridge(self) -> np.ndarray:
        self.gram.flat[:: len(self.gram) + 1] += 1.0 / self.estimator.C
        return cho_solve(cho_factor(self.gram), self.cross)

    def set_coefficients(self, coefficients: np.ndarray) -> None:
        self.estimator.coef_ = coefficients
        self.estimator.column_ = np.arange(coefficients.shape[1])


class _Factor(_Sums):
    """R of the QR factors of [H T]: its singular values are those of H, which F'F would square."""

    def start(self, X: Any, Y: np.ndarray) -> None:
        super().start(X, Y)
        self.factor = np.empty((0, self.estimator.n_hidden + Y.shape[1]))

    def add_features(self, F: np.ndarray, targets: np.ndarray) -> None:
        self.factor = np.asarray(np.linalg.qr(np.vstack([self.factor, np.hstack([F, targets])]), mode="r"))

    def finish(self) -> None:
        units = self.estimator.n_hidden
        top = self.factor[:units]  # below, the columns of H are 0
        self.set_coefficients(self.estimator._output_weights(top[:, :units], top[:, units:], None))


class _Nystroem(_Sums):
    def choose(self, batches: Iterable[Batch], n_rows: int | None) -> None:
        """Collect the landmarks that `NystroemKernelELM` draws from all rows."""
        estimator = self.estimator
        if estimator.n_components < 1:
            raise MethodError(f"n_components={estimator.n_components}: there must be at least one landmark")
        n = sum(X.shape[0] for X, _ in batches) if n_rows is None else n_rows
        size = min(n, estimator.n_components)
        self.landmarks = np.sort(check_random_state(estimator.random_state).choice(n, size=size, replace=False))
        parts, start = [], 0
        for X, _ in _validated(estimator, batches):
            stop = start + X.shape[0]
            first, last = np.searchsorted(self.landmarks, (start, stop))
            parts.append(X[self.landmarks[first:last] - start])
            start = stop
        if start != n:
            raise MethodError(f"n_rows={n}, but the batches have {start} rows")
        self.rows = _stacked(parts)

    def features(self, X: Any) -> np.ndarray:
        return kernel_matrix(X, self.rows, gamma=self.estimator.gamma_) @ self.whitening

    def start(self, X: Any, Y: np.ndarray) -> None:
        self.estimator._fit(self.rows, np.zeros((len(self.landmarks), Y.shape[1]), dtype=np.uint8), None)
        self.estimator.landmarks_ = self.landmarks
        self.whitening = _inverse_root(kernel_matrix(self.rows, gamma=self.estimator.gamma_))

    def finish(self) -> None:
        self.set_coefficients(self.whitening @ self.ridge())


class _Moments:
    """Counts, means and sums of squared deviations of groups of rows, merged batch by batch (Chan et al. 1983)."""

    def __init__(self) -> None:
        self.count: Any = 0.0
        self.mean: Any = 0.0
        self.squares: Any = 0.0

    def add(self, count: Any, mean: np.ndarray, squares: np.ndarray) -> None:
        total = np.maximum(self.count + count, 1.0)
        gap = mean - self.mean
        self.squares = self.squares + squares + gap**2 * (self.count * count / total)
        self.mean = self.mean + gap * (count / total)
        self.count = self.count + count


class _Bayes(_Learner):
    def start(self, X: Any, Y: np.ndarray) -> None:
        self.estimator._fit(X[:1], Y[:1])
        self.every, self.classes = _Moments(), _Moments()
        self.low, self.high = np.inf, -np.inf

    def add(self, X: Any, Y: np.ndarray) -> None:
        X = _dense(X)
        n, centre = len(X), X.mean(axis=0)
        Z = X - centre
        square, members = Z**2, Y.T.astype(np.float64)
        sizes = np.stack([n - Y.sum(axis=0), Y.sum(axis=0)]).astype(np.float64)[:, :, None]
        # class 0 is the difference to the totals, which are those of centred columns
        sums = np.stack([Z.sum(axis=0) - members @ Z, members @ Z])
        squares = np.stack([square.sum(axis=0) - members @ square, members @ square])
        means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
        self.classes.add(sizes, means + centre, np.where(sizes > 0, squares - sizes * means**2, 0.0))
        self.every.add(float(n), centre, square.sum(axis=0))
        self.low, self.high = np.minimum(self.low, X.min(axis=0)), np.maximum(self.high, X.max(axis=0))

    def finish(self) -> None:
        """Set the estimates, as `LabelGaussians.fit` does."""
        n, sizes, s = self.n, self.classes.count, self.estimator.s
        least = _LEAST_SPREAD * (self.high - self.low)
        overall = self.every.squares / max(n - 1, 1)
        means = np.where(sizes > 0, self.classes.mean, self.every.mean)
        variances = np.broadcast_to(overall, means.shape).copy()
        np.divide(self.classes.squares, sizes - 1, out=variances, where=sizes > 1)
        spreads = np.sqrt(np.maximum(variances, np.where(least > 0, least, 1.0) ** 2))
        prior = (s + sizes[:, :, 0]) / (2.0 * s + n)
        self.estimator._model = LabelGaussians(np.log(prior[1] / prior[0]), means, spreads)
        self.estimator.support_ = np.ones(means.shape[2], dtype=bool)


_LEARNERS: dict[type, type[Any]] = {
    BinaryRelevance: _Binary,
    ELM: _Factor,
    RELM: _Sums,
    NystroemKernelELM: _Nystroem,
    MLNB: _Bayes,
}


def _validated(estimator: Any, batches: Iterable[Batch]) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield rows and labels as `fit` of the estimator would see them."""
    stream = iter(batches)
    for X, y in islice(stream, 1):
        X, Y = estimator._validate_fit(X, y)
        if estimator.classes_.ndim == 1:
            raise MethodError("y must be a label matrix of shape (n, q), not one-dimensional")
        yield X, _observed(Y, estimator)
    for X, y in stream:
        X, Y = estimator._validate_features(X, reset=False), check_labels(y, missing=True)
        if Y.shape != (X.shape[0], estimator.n_labels_):
            raise MethodError(f"a batch has labels of shape {Y.shape}, expected ({X.shape[0]}, {estimator.n_labels_})")
        yield X, _observed(Y, estimator)


def _observed(Y: Any, estimator: Any) -> np.ndarray:
    Y = Y.toarray() if hasattr(Y, "toarray") else Y
    if Y.dtype == np.int8:
        raise MethodError(f"{type(estimator).__name__} cannot learn from missing labels in batches of rows")
    return Y


def _stacked(parts: list[Any]) -> Any:
    if any(hasattr(part, "tocsr") for part in parts):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.vstack(parts)
