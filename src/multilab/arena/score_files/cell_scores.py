"""Files of the scores and decisions of all cells of a data set: any metric and many policies without a fit.

A file is an ``.npz`` that NumPy alone can read. Its array ``index`` is JSON in UTF-8: study, data set with the digest
of its data, protocol, digests of the splits, and the cells with split, method, key and largest rounding.
``<key>.scores`` are the scores of the test rows in float32, in the order of the split; ``<key>.decisions`` the
decisions, eight to a byte (``np.packbits``). A cell that predicts for single metrics has ``<key>.scores.<metric>`` and
``<key>.decisions.<metric>`` in addition. True labels are not in the file: they are those of the data set.
"""

from __future__ import annotations

import functools
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab import datasets
from multilab.arena.errors import ArenaError
from multilab.arena.score_files.policies import check_policy, decisions_by
from multilab.arena.score_files.rounding import rounded_in_order
from multilab.core import parse_json, write_atomically
from multilab.metrics import METRICS, score_all
from multilab.metrics.registry import defined
from multilab.model_selection import splits

__all__ = ["ScoreFile", "read_cell_scores", "rounded_arrays", "write_cell_scores"]

FORMAT = 1
_COLUMNS = ["dataset", "split", "method", "metric", "value"]


class ScoreFile:
    """Scores and decisions of the cells of a data set; made by :func:`read_cell_scores`.

    Parameters
    ----------
    index : mapping
        Content of the array ``index``.
    arrays : mapping of str to ndarray
        The others; read when they are first used.

    Attributes
    ----------
    dataset, study : str
    protocol : dict
        How the data set is split.
    cells : DataFrame
        A row per cell: split, method, key and ``shift``, the largest difference between a score in the cell (float64)
        and the one in the file (float32).
    """

    def __init__(self, index: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self.dataset, self.study = index["dataset"], index["study"]
        self.protocol: dict[str, Any] = dict(index["protocol"])
        self.cells = pd.DataFrame(index["cells"], columns=["split", "method", "key", "shift"])
        self._data, self._splits, self._arrays = index["data"], index["splits"], arrays

    def scores(self, method: str, split: int, metric: str = "") -> np.ndarray:
        """Return the scores of the test rows, shape (n, q), float32; with ``metric`` those made for this metric."""
        return self._arrays[self._name(method, split, "scores", metric)]

    def decisions(self, method: str, split: int, metric: str = "") -> np.ndarray:
        """Return the decisions of the test rows, shape (n, q), uint8; with ``metric`` those made for this metric."""
        shape = self.scores(method, split, metric).shape
        packed = self._arrays[self._name(method, split, "decisions", metric)]
        return np.unpackbits(packed, count=shape[0] * shape[1]).reshape(shape)

    def arrays_of(self, key: str) -> dict[str, np.ndarray]:
        """Return the arrays of a cell as they are in the file, by name."""
        return {name: self._arrays[name] for name in self._arrays if name.startswith(f"{key}.")}

    def labels(self, split: int) -> tuple[np.ndarray, float]:
        """Return the true labels of the test rows, and the mean number of labels of the training rows.

        Raises
        ------
        ArenaError
            If the data set or its splits are not those that the scores are of.
        """
        Y, folds = self._truth
        fold = folds[split % len(folds)]
        known = Y[fold.train]
        return Y[fold.test], float(np.clip(np.nan_to_num(known.astype(float)), 0, 1).sum(axis=1).mean())

    def metrics(
        self,
        metrics: Iterable[str] | None = None,
        policy: str = "stored",
        conventions: str = "default",
        progress: Callable[[Iterable[Any], int], Iterable[Any]] | None = None,
    ) -> pd.DataFrame:
        """Return metrics of all cells, computed from the scores.

        Parameters
        ----------
        metrics : iterable of str, optional
            Names of metrics; default all of ``METRICS``.
        policy : str
            How labels are decided: ``stored`` (by the method), a threshold such as ``0.4``, ``cardinality``,
            ``top_k`` or ``top_3``; see :func:`multilab.arena.score_files.policies.decisions_by`.
        conventions : str
            Preset of the metrics.
        progress : callable, optional
            Wraps the iteration over the cells; its second argument is their number.

        Returns
        -------
        DataFrame
            Rows (dataset, split, method, metric, value). A value is NaN where the policy does not apply, and of metrics
            of probabilities where scores are outside [0, 1].

        Raises
        ------
        ArenaError
            If the policy does not exist or the data set is another one.
        MetricError
            If a metric does not exist.
        """
        policy = check_policy(policy)
        wanted = [defined(name).name for name in (METRICS if metrics is None else metrics)]
        cells = list(self.cells[["split", "method"]].itertuples(index=False, name=None))
        rows = []
        for split, method in progress(cells, len(cells)) if progress else cells:
            values = self._values(method, split, wanted, policy, conventions)
            rows += [(self.dataset, split, method, metric, values[metric]) for metric in wanted]
        return pd.DataFrame(rows, columns=_COLUMNS)

    def _values(self, method: str, split: int, wanted: list[str], policy: str, conventions: str) -> dict[str, float]:
        """Return the metrics of one cell; of a metric with its own prediction from that."""
        Y, cardinality = self.labels(split)
        own = [metric for metric in wanted if self._name(method, split, "scores", metric) in self._arrays]
        values: dict[str, float] = {}
        for metric, names in [("", [m for m in wanted if m not in own]), *((m, [m]) for m in own)]:
            scores = self.scores(method, split, metric).astype(float)
            decisions: np.ndarray | None = self.decisions(method, split, metric)
            if policy != "stored":
                decisions = decisions_by(policy, scores, cardinality)
            if scores.min() < 0 or scores.max() > 1:
                names = [name for name in names if defined(name).needs != "probabilities"]
            if decisions is not None and names:
                values |= score_all(Y, scores, decisions, conventions=conventions, metrics=names)
        return {metric: values.get(metric, np.nan) for metric in wanted}

    def _name(self, method: str, split: int, what: str, metric: str = "") -> str:
        key = self._keys.get((split, method))
        if key is None:
            raise ArenaError(f"{self.dataset}: the score file has no cell of {method!r} on split {split}")
        return f"{key}.{what}.{metric}" if metric else f"{key}.{what}"

    @functools.cached_property
    def _keys(self) -> dict[tuple[int, str], str]:
        return {(split, method): key for split, method, key, _ in self.cells.itertuples(index=False, name=None)}

    @functools.cached_property
    def _truth(self) -> tuple[np.ndarray, list[Any]]:
        folds = splits(self.dataset, self.protocol)
        data = (datasets.prepared_meta(self.dataset) or {}).get("digest")
        if data != self._data or [fold.digest for fold in folds] != self._splits:
            raise ArenaError(f"{self.dataset}: the scores are of other data or other splits than those of this machine")
        return datasets.load(self.dataset).Y, folds


def read_cell_scores(path: str | Path) -> ScoreFile:
    """Return the scores and decisions of the cells of a data set from a file of ``multilab arena scores``.

    Parameters
    ----------
    path : path
        ``reports/arena/cell-scores/<dataset>.npz``.

    Raises
    ------
    ArenaError
        If the file is missing or is no such file.

    Examples
    --------
    >>> from multilab.arena import read_cell_scores
    >>> cells = read_cell_scores("reports/arena/cell-scores/yeast.npz")  # doctest: +SKIP
    >>> cells.metrics(["macro_f1"], policy="cardinality").groupby("method")["value"].mean()  # doctest: +SKIP
    """
    path = Path(path)
    try:
        arrays = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
        index = parse_json(arrays["index"].tobytes())
        if index["format"] != FORMAT:
            raise ArenaError(f"{path}: format {index['format']}, this version reads {FORMAT}; write it again")
        return ScoreFile(index, arrays)
    except FileNotFoundError:
        raise ArenaError(
            f"{path} is not here: `dvc pull {path}.dvc` fetches it, `multilab arena scores` packs it from the cells"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        if isinstance(error, ArenaError):
            raise
        raise ArenaError(f"{path}: no file of scores ({type(error).__name__})") from None


def rounded_arrays(arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], float]:
    """Return the scores and decisions of a cell as a file holds them, and the largest change of a score.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Arrays of a cell; others than scores and decisions are left out.
    """
    rounded, shift = {}, 0.0
    for name, array in arrays.items():
        kind = name.partition(".")[0]
        if kind == "scores":
            rounded[name] = rounded_in_order(array)
            shift = max(shift, float(np.abs(array - rounded[name].astype(float)).max(initial=0.0)))
        elif kind == "decisions":
            rounded[name] = np.packbits(array.astype(bool))
    return rounded, shift


def write_cell_scores(path: str | Path, index: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the file of a data set: equal content gives equal bytes.

    Parameters
    ----------
    path : path
    index : mapping
        ``study``, ``dataset``, ``data`` (digest), ``protocol``, ``splits`` (digests) and ``cells``: a list of
        (split, method, key, shift).
    arrays : mapping of str to ndarray
        The arrays of the cells: names of :func:`rounded_arrays` after ``<key>.``.
    """
    text = json.dumps({"format": FORMAT, **index}, sort_keys=True).encode()
    named = {"index": np.frombuffer(text, np.uint8), **{name: arrays[name] for name in sorted(arrays)}}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in named.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy")  # with the date 1980, so that equal content is equal bytes
            archive.writestr(entry, content.getvalue(), zipfile.ZIP_DEFLATED, 6)
    write_atomically(path, buffer.getvalue())
