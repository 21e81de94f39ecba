"""Summaries stored with a model: of its training rows (for drift) and of its cross-validated scores (for the card)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from multilab.datasets import TableEncoder
from multilab.metrics import METRICS, bootstrap, per_label
from multilab.statistics import calibration_sums, corrected_resampled_interval, held_out_quality

__all__ = ["calibration_bins", "feature_summaries", "label_summaries", "metric_summaries", "per_label_rows"]

LEVEL = 0.95  # of all intervals of a card
SAMPLE_ROWS = 1000  # values per column for tests of drift: limits how much training data a model contains
_QUANTILES = 101  # one for each per cent
_DRAWS = 500  # bootstrap draws of the intervals of each label


def feature_summaries(X: Any, encoder: TableEncoder, seed: int = 0) -> list[dict[str, Any]]:
    """Return a summary per raw column of the training rows.

    Parameters
    ----------
    X : DataFrame of shape (n, m), ndarray or CSR of shape (n, d)
        Training rows; or, for an encoder that was not learned, encoded, with NaN where a value is missing.
    encoder : TableEncoder
    seed : int
        Of the samples of values.

    Returns
    -------
    list of dict
        See `ModelMetadata.features`.
    """
    if isinstance(X, pd.DataFrame):
        return _table_summaries(X, encoder, seed)
    by_column = X.tocsc() if hasattr(X, "tocsc") else X
    rng = np.random.default_rng(seed)
    summaries: list[dict[str, Any]] = []
    start = 0
    for column in encoder.columns:
        block = by_column[:, start : start + column.width]
        block = block.toarray() if hasattr(block, "toarray") else block
        start += column.width
        absent = np.isnan(block).any(axis=1)
        about = {"name": column.name, "missing": float(absent.mean())}
        if column.values is None:
            values = block[~absent, 0]
            summaries.append({**about, "kind": "number", **_numbers(values, rng)})
        else:
            counts = np.nansum(block, axis=0).astype(int).tolist()
            summaries.append({**about, "kind": "text", "counts": dict(zip(column.values, counts, strict=True))})
    return summaries


def _table_summaries(rows: pd.DataFrame, encoder: TableEncoder, seed: int) -> list[dict[str, Any]]:
    """Return the summaries of columns that an encoder has learned: of a text that of its number of words."""
    rng = np.random.default_rng(seed)
    summaries: list[dict[str, Any]] = []
    for column in encoder.columns:
        values = column.summary(rows[column.name])
        if isinstance(values, list):
            present = [value for value in values if value is not None]
            about = {"kind": "text", "counts": dict(sorted(Counter(present).items()))}
        else:
            present = values[~np.isnan(values)]
            about = {"kind": "number", **_numbers(present, rng)}
        missing = 1 - len(present) / len(values) if len(values) else 0.0
        summaries.append({"name": column.name, "missing": missing, "column": column.kind.name, **about})
    return summaries


def _numbers(values: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    if not len(values):
        sample: dict[str, list[float]] = {"values": [], "counts": []}
        return {"min": None, "max": None, "mean": None, "std": None, "quantiles": [], "sample": sample}
    drawn = values if len(values) <= SAMPLE_ROWS else rng.choice(values, SAMPLE_ROWS, replace=False)
    distinct, counts = np.unique(drawn, return_counts=True)
    return {
        "min": float(values.min()),
        "max": float(values.max()),
        "mean": float(values.mean()),
        "std": float(values.std()),
        "quantiles": np.quantile(values, np.linspace(0, 1, _QUANTILES)).tolist(),
        "sample": {"values": distinct.tolist(), "counts": counts.tolist()},
    }


def label_summaries(Y: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return observed rows, positives and prevalence of each label; Y has shape (n, q)."""
    Y = Y.toarray() if hasattr(Y, "toarray") else np.asarray(Y)
    unobserved = (Y < 0) if Y.dtype.kind == "i" else np.zeros(Y.shape, dtype=bool)
    rows = []
    for j, name in enumerate(names):
        observed = int((~unobserved[:, j]).sum())
        positives = int((Y[:, j] == 1).sum())
        share = positives / observed if observed else None
        rows.append({"name": name, "observed": observed, "positives": positives, "prevalence": share})
    return rows


def metric_summaries(scores: Sequence[Mapping[str, float]], test_to_train: float) -> dict[str, dict[str, Any]]:
    """Return mean, spread and interval of each metric over the splits.

    Parameters
    ----------
    scores : sequence of mapping
        Metrics of each split.
    test_to_train : float
        Number of test rows divided by the number of training rows.

    Returns
    -------
    dict
        See `ModelMetadata.metrics`. The interval is that of the corrected resampled t test (Nadeau and Bengio 2003).
    """
    table = {}
    for name in scores[0]:
        if name not in METRICS:
            continue
        values = np.array([row[name] for row in scores], dtype=float)
        finite = bool(np.isfinite(values).all())
        mean = float(values.mean()) if finite else None
        std = low = high = None
        if finite and len(values) > 1:
            std = float(values.std(ddof=1))
            _, low, high = corrected_resampled_interval(values, test_to_train, LEVEL, METRICS[name].range)
        table[name] = {
            "values": [_json_number(value) for value in values],
            "mean": mean,
            "std": std,
            "low": low,
            "high": high,
            "direction": METRICS[name].direction,
        }
    return table


def per_label_rows(
    Y: np.ndarray, scores: np.ndarray, decisions: np.ndarray, names: Sequence[str], conventions: str
) -> list[dict[str, Any]]:
    """Return the per-label table of held-out rows with bootstrap intervals of F1 and AUC.

    Parameters
    ----------
    Y, scores, decisions : ndarray of shape (n, q)
    names : sequence of str
    conventions : str
    """
    table = per_label(Y, scores, decisions, conventions=conventions, label_names=list(names))
    rows = []
    for j, row in enumerate(table.to_dict("records")):
        intervals: dict[str, float | None] = {}
        for short, metric, predicted in (("f1", "macro_f1", decisions), ("auc", "macro_auc", scores)):
            low, high = _interval(metric, Y[:, [j]], predicted[:, [j]], conventions)
            intervals |= {f"{short}_low": low, f"{short}_high": high}
        rows.append({key: _json_number(value) for key, value in row.items()} | intervals)
    return rows


def _interval(metric: str, Y: np.ndarray, given: np.ndarray, conventions: str) -> tuple[float | None, float | None]:
    if len(np.unique(Y[Y >= 0])) < 2:
        return None, None
    interval = bootstrap(metric, Y, given, conventions, level=LEVEL, n_draws=_DRAWS, random_state=0)
    return _json_number(interval.low), _json_number(interval.high)


def calibration_bins(
    Y: np.ndarray, scores: np.ndarray, decisions: np.ndarray, names: Sequence[str], probabilities: bool
) -> dict[str, Any]:
    """Return rows, positives and mean score of each bin of scores, per label, and what quality was expected.

    Parameters
    ----------
    Y, scores, decisions : ndarray of shape (n, q)
    names : sequence of str
    probabilities : bool
        Ten bins of [0, 1]; otherwise ten bins between the deciles of all scores.
    """
    edges = np.linspace(0, 1, 11) if probabilities else np.unique(np.quantile(scores, np.linspace(0, 1, 11)))
    inner = edges[1:-1]
    labels = {}
    for j, name in enumerate(names):
        seen = Y[:, j] >= 0
        index = np.searchsorted(inner, scores[seen, j], side="right")
        count = np.bincount(index, minlength=len(inner) + 1)
        total = np.bincount(index, weights=scores[seen, j], minlength=len(inner) + 1)
        positives = np.bincount(index, weights=Y[seen, j], minlength=len(inner) + 1)
        mean = [_json_number(s / c) if c else None for s, c in zip(total, count, strict=True)]
        labels[name] = {"count": count.tolist(), "positives": positives.astype(int).tolist(), "mean_score": mean}
    sums = calibration_sums(Y, scores).to_dict() if probabilities else None
    quality = held_out_quality(Y, scores, decisions).to_dict() if probabilities else None
    return {"edges": edges.tolist(), "labels": labels, "sums": sums, "quality": quality}


def _json_number(value: Any) -> Any:
    """Return a value for JSON: plain numbers, None for NaN and infinities."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return None if value is pd.NA else value
