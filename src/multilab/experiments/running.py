"""Run a cell: gather what it reads, fit, score, measure, store."""

from __future__ import annotations

import functools
import json
import platform
import socket
import time
import traceback
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multilab.experiments.cells import Cell, Part
from multilab.experiments.errors import ExperimentError
from multilab.experiments.measuring import Meter, model_bytes
from multilab.experiments.seeds import seed_estimator, seed_for
from multilab.experiments.settings import Method
from multilab.experiments.store import Store, is_storage_failure

if TYPE_CHECKING:  # a stage with nothing to do needs no NumPy, and a worker imports it beside the others
    import numpy as np

__all__ = ["Inputs", "build", "ensure", "gather", "indices", "learned", "predict_both", "run_cell"]


@dataclass
class Inputs:
    """What an estimator is fitted on and asked about: for a method on base scores, X is the score matrix."""

    X_train: Any
    Y_train: np.ndarray
    X_test: Any
    Y_test: np.ndarray


@functools.lru_cache(maxsize=2)
def _dataset(name: str) -> Any:
    from multilab import datasets

    return datasets.load(name)


@functools.lru_cache(maxsize=2)
def _splits(dataset: str, protocol: str) -> list[Any]:
    from multilab import datasets

    return datasets.splits(dataset, json.loads(protocol))


def indices(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and the test rows of a part."""
    if part.split < 0:
        import numpy as np

        every = np.arange(len(_dataset(part.dataset).Y))
        train, test = every, every[:0]
    else:
        splits = _splits(part.dataset, part.protocol)
        split = splits[part.split % len(splits)]
        train, test = split.train, split.test
    if part.inner is None:
        return train, test
    folds, order, seed, index = part.inner
    inner = inner_folds(_dataset(part.dataset).Y[train], folds, order, seed)[index]
    return train[inner[0]], train[inner[1]]


def inner_folds(Y: np.ndarray, folds: int, order: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return stratified folds of a training part: positions within it."""
    import numpy as np

    from multilab.datasets import IterativeStratifiedKFold

    splitter = IterativeStratifiedKFold(n_splits=folds, order=order, random_state=seed)
    return list(splitter.split(np.zeros((len(Y), 1)), Y))


def build(method: Method) -> Any:
    """Build the estimator of a method from its settings, nested ``_target_`` entries first.

    Arguments in scikit-learn's nested form (``estimator__C``) are set on the estimator that was built.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate

    own = {name: value for name, value in method.identity().items() if "__" not in name}
    nested = {name: value for name, value in method.params.items() if "__" in name}
    try:
        return instantiate(own, _convert_="all").set_params(**nested)
    except (InstantiationException, ValueError) as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise ExperimentError(f"conf/method/{method.name}.yaml: cannot build {method.target}: {reason}") from None


def _scaled(method: Method, X_train: Any, X_test: Any) -> tuple[Any, Any]:
    """Scale as the method asks, fitted on the training rows only."""
    if method.preprocessing == "none":
        return X_train, X_test
    from scipy.sparse import issparse
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if method.preprocessing == "minmax":  # a sparse X keeps its zeros: divided by the largest absolute value
        scaler = MaxAbsScaler() if issparse(X_train) else MinMaxScaler()
    else:
        scaler = StandardScaler(with_mean=not issparse(X_train))
    train = scaler.fit_transform(X_train)
    return train, (scaler.transform(X_test) if X_test.shape[0] else X_test)


def gather(cell: Cell, store: Store) -> Inputs:
    """Return what a cell's estimator is fitted on, making the cells it reads if they are missing."""
    train, test = indices(cell.part)
    data = _dataset(cell.part.dataset)
    Y_train, Y_test = data.Y[train], data.Y[test]
    if not cell.reads:
        X_train, X_test = _scaled(cell.method, data.X[train], data.X[test])
        return Inputs(X_train, Y_train, X_test, Y_test)
    import numpy as np

    for read in cell.reads:
        ensure(read, store)
    S_train = [store.arrays(read.key)["scores"] for read in cell.reads[0::2]]
    S_test = [store.arrays(read.key)["scores"] for read in cell.reads[1::2]]
    return Inputs(np.hstack(S_train), Y_train, np.hstack(S_test), Y_test)


def ensure(cell: Cell, store: Store) -> None:
    """Make a cell if it is not in the store; raise if it fails."""
    if not store.has(cell.key):
        outcome = run_cell(cell, store)
        if outcome is not None:
            raise ExperimentError(f"{cell.label} failed: {outcome}")


def run_cell(cell: Cell, store: Store) -> str | None:
    """Run one cell and store it; return ``None``, or the one-line reason of its failure (stored as a record)."""
    if store.has(cell.key):
        return None
    from threadpoolctl import threadpool_limits

    from multilab.ground import MultilabError

    record: dict[str, Any] = {"key": cell.key, "label": cell.label, "parts": cell.identity, **_environment(cell)}
    began = time.perf_counter()
    try:
        with threadpool_limits(1), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            arrays, measured, files = _scores(cell, store) if cell.kind == "scores" else _train(cell, store)
        said = sorted({f"{w.category.__name__}: {w.message}" for w in heard})
        record.update(measured, status="done", warnings=said[:20], cell_seconds=time.perf_counter() - began)
        store.write(cell.key, arrays, record, _config(cell), files)
        return None
    except Exception as error:
        if is_storage_failure(error):
            raise
        record.update(status="failed", traceback=traceback.format_exc())
        store.write_failure(cell.key, record)
        reason = " ".join(str(error).split())[:300]
        return reason if isinstance(error, MultilabError) else f"{type(error).__name__}: {reason}"


def _axes(cell: Cell) -> tuple[str, str, str]:
    return cell.part.dataset_digest, cell.part.digest, cell.method.target


def _train(cell: Cell, store: Store) -> tuple[dict[str, np.ndarray], dict[str, Any], dict[str, bytes]]:
    """Fit on the training rows, score the test rows."""
    import numpy as np

    inputs = gather(cell, store)
    method = cell.method
    files: dict[str, bytes] = {}
    tuned: dict[str, Any] = {}
    search = Meter()
    if cell.tune:
        from multilab.experiments.search import search_cell

        with search:
            best, files = search_cell(cell, store)
        method = method.with_params(best)
        tuned = {"tuned": best, "tune_seconds": search.seconds}
    estimator = seed_estimator(build(method), cell.seed, *_axes(cell))
    with Meter() as fit:
        estimator.fit(inputs.X_train, inputs.Y_train)
    with Meter() as predict:
        scores, decisions = predict_both(estimator, inputs.X_test, inputs.Y_train.shape[1])
    arrays = {"scores": scores, "decisions": decisions}
    if hasattr(estimator, "predict_measures"):
        for measure, found in estimator.predict_measures(inputs.X_test).items():
            arrays[f"scores.{measure}"], arrays[f"decisions.{measure}"] = found
    for name in cell.method.keep:
        value = learned(estimator, name)
        if value is not None:
            arrays[f"learned_{name}"] = np.asarray(value)
    measured = {
        "fit_seconds": fit.seconds,
        "predict_seconds": predict.seconds,
        "peak_mb": max(fit.peak_mb, predict.peak_mb),
        "memory_method": fit.method,
        "model_bytes": model_bytes(estimator),
        "input_seconds": sum(store.record(read.key)["fit_seconds"] for read in cell.reads),
        **tuned,
    }
    return arrays, measured, files


def _scores(cell: Cell, store: Store) -> tuple[dict[str, np.ndarray], dict[str, Any], dict[str, bytes]]:
    """Score every training row with a model that never saw it."""
    from multilab.methods.stacking.out_of_fold import out_of_fold_scores

    inputs = gather(cell, store)
    inner = cell.method.inner
    seed = seed_for(cell.seed, *_axes(cell)[:2], "inner folds")
    folds = inner_folds(inputs.Y_train, inner["folds"], inner["order"], seed)
    estimator = seed_estimator(build(cell.method), cell.seed, *_axes(cell))
    with Meter() as fit:
        scores = out_of_fold_scores(estimator, inputs.X_train, inputs.Y_train, folds)
    measured = {"fit_seconds": fit.seconds, "peak_mb": fit.peak_mb, "memory_method": fit.method}
    return {"scores": scores}, measured, {}


def learned(estimator: Any, name: str) -> Any:
    """Return a fitted attribute, of a pipeline's step by scikit-learn's nested name (``select__ranking_``)."""
    step, _, attribute = name.partition("__")
    if attribute and hasattr(estimator, "named_steps"):
        return getattr(estimator.named_steps[step], attribute, None)
    return getattr(estimator, name, None)


def predict_both(estimator: Any, X: Any, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (float64) and decisions (uint8) of an estimator, computed once where it offers that.

    Of a pipeline the last step is asked, about what the others made of X.
    """
    import numpy as np

    from multilab.methods.stacking.out_of_fold import score_matrix

    if hasattr(estimator, "named_steps") and hasattr(estimator[-1], "predict_both"):
        X, estimator = estimator[:-1].transform(X), estimator[-1]
    if hasattr(estimator, "predict_both"):
        scores, decisions = estimator.predict_both(X)
    else:
        scores, decisions = score_matrix(estimator, X, n_labels), estimator.predict(X)
    decisions = decisions.toarray() if hasattr(decisions, "toarray") else decisions
    return scores, np.asarray(decisions, dtype=np.uint8).reshape(scores.shape)


def _environment(cell: Cell) -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "started": time.time(),
        "alone": cell.alone,
        "dataset": cell.part.dataset,
        "split": cell.part.split,
        "method": cell.method.name,
    }


def _config(cell: Cell) -> str:
    import yaml

    content = {"cell": cell.label, "protocol": json.loads(cell.part.protocol), **cell.identity}
    return yaml.dump(content, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
