"""`multilab fit` on a table that is larger than memory: batches of rows from Parquet files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from multilab.cells import MethodPipeline
from multilab.cells.fitting import estimator_of
from multilab.cells.method import Method, build
from multilab.cells.progress import ProgressBar
from multilab.core import MultilabError
from multilab.core.shell import command
from multilab.core.text import excerpt, listed
from multilab.datasets.options import reading_of
from multilab.datasets.parquet_table import BATCH_ROWS, ParquetTable, counted_rows
from multilab.datasets.reading_plan import named_labels
from multilab.datasets.table_encoder import TableEncoder
from multilab.datasets.tables import choose_kinds
from multilab.methods.base import BatchClassifier
from multilab.methods.discovery import all_estimators
from multilab.metrics import score_all
from multilab.models.errors import DeploymentError
from multilab.models.final_fit import CrossValidated, described_model, method_facts
from multilab.models.prediction import predict_rows
from multilab.models.saved_model import SavedModel
from multilab.models.skops_files import model_bytes

__all__ = ["HELD_OUT_ROWS", "SAMPLE_ROWS", "check_streamed", "large_table", "large_table_model"]

HELD_OUT_ROWS = 20_000
"""Rows, drawn at random, on which the model is scored; at most a fifth of all. It never learns from them."""

SAMPLE_ROWS = 100_000
"""Other rows, drawn at random, that teach the encoder and the scaler: medians, categories, words, ranges."""

_TRIED = 500  # rows

_READER = ("label_columns", "label_prefix", "labels_first", "labels_last", "drop", "columns")


def large_table(path: str, reader: Mapping[str, Any]) -> ParquetTable:
    """Return the table of Parquet files that the options of the reader describe.

    Raises
    ------
    DeploymentError
        If an option is not available for large tables.
    """
    if unknown := [name for name in reader if name not in _READER]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in unknown)
        raise DeploymentError(f"{path} is read in batches of rows, without support for {options}")
    reading = reading_of(reader, path)
    return ParquetTable(path, named_labels(reading, path), reading.dropped, reading.text_columns)


def check_streamed(method: Method) -> None:
    """Refuse a method that cannot learn from batches of rows.

    Raises
    ------
    DeploymentError
        If it cannot.
    """
    if method.base_scores:
        raise DeploymentError(f"{method.name} stacks scores of all rows and cannot learn from batches")
    estimator = build(method)
    if isinstance(estimator, BatchClassifier):
        fault = estimator._batches_fault()
    else:
        others = [kind.__name__ for kind in all_estimators() if issubclass(kind, BatchClassifier)]
        fault = f"{type(estimator).__name__} cannot learn from batches of rows, as {listed(others, len(others))} can"
    if fault:
        raise DeploymentError(
            f"{method.name}: {fault}; a file that fits into memory is read as a whole after `{command('multilab')} "
            "datasets add`, by its name"
        )


@dataclass(frozen=True)
class _Drawn:
    """The first pass: the rows to score, the sample that teaches the encoder, and the rows with each label."""

    held: np.ndarray
    held_rows: pa.Table
    sample_rows: pa.Table
    positives: np.ndarray

    @classmethod
    def of(cls, table: ParquetTable, seed: int) -> _Drawn:
        n = table.n_rows
        n_held = min(HELD_OUT_ROWS, n // 5)
        n_sample = min(SAMPLE_ROWS, n - n_held)
        if not n_held:
            raise DeploymentError(f"{table.path}: {n} rows are too few to hold out some of them")
        drawn = np.random.default_rng(seed).choice(n, n_held + n_sample, replace=False)
        # sorted, so that the rows of a batch are a slice of each
        held, sample = np.sort(drawn[:n_held]), np.sort(drawn[n_held:])
        parts: tuple[list[pa.Table], list[pa.Table]] = [], []
        positives = np.zeros(len(table.label_names), dtype=np.int64)
        for start, rows in _shown(table, "reading a sample"):
            positives += table.labels_of(rows).sum(axis=0, dtype=np.int64)
            for part, positions in zip(parts, (held, sample), strict=True):
                first, last = np.searchsorted(positions, (start, start + rows.num_rows))
                part.append(rows.take(pa.array(positions[first:last] - start)))
        return cls(held, pa.concat_tables(parts[0]), pa.concat_tables(parts[1]), positives)


class _TrainingBatches:
    """Features and labels of the rows that are not held out, batch by batch."""

    def __init__(self, table: ParquetTable, held: np.ndarray, rows_of: Callable[..., tuple[Any, np.ndarray]]) -> None:
        self.table = table
        self.kept = np.ones(table.n_rows, dtype=bool)
        self.kept[held] = False
        self.rows_of = rows_of

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray]]:
        for start, rows in _shown(self.table, "learning"):
            mask = self.kept[start : start + rows.num_rows]
            if mask.any():
                with counted_rows(self.table.path, start, rows):
                    batch = self.rows_of(rows, mask)
                yield batch


def _shown(table: ParquetTable, title: str) -> Iterator[tuple[int, pa.Table]]:
    return ProgressBar(title)(table.batches(), table.n_rows, lambda batch: batch[1].num_rows)


def large_table_model(table: ParquetTable, method: Method, settings: Mapping[str, Any]) -> SavedModel:
    """Fit a method to batches of a table, and score it on rows that were held out.

    Parameters
    ----------
    table : ParquetTable
        With labels.
    method : Method
        One whose estimator can learn from batches of rows.
    settings : mapping
        ``seed``, ``conventions``, and ``reader`` with the options of the table; kept in the metadata.

    Notes
    -----
    A first pass draws the rows to hold out and a sample of the others; a table of fewer rows is a sample as a whole.
    The encoder (medians, categories, words, dates) and the scaler are learned from the sample; the method then learns
    from all rows that were not held out. Rows beyond the range of the sample are scaled beyond [0, 1], as new rows are.
    """
    seed, reader = int(settings["seed"]), dict(settings["reader"])
    drawn, digest = _Drawn.of(table, seed), table.digest()
    n_held, n_train = len(drawn.held), table.n_rows - len(drawn.held)
    sample = table.frame(drawn.sample_rows)
    kinds = choose_kinds(sample, (), reader.get("columns", {}), table.path)
    encoder = TableEncoder.learn(sample, kinds, table.label_names, reader.get("drop", ()))
    # a batch may hold only those texts of a column that are numbers: 1.10 is another release than 1.1
    table.text_columns |= set(encoder.text_columns)
    fitted = estimator_of(method, seed, digest, "all rows", encoder=encoder)
    _try(method.name, fitted, encoder.encode(sample[:_TRIED]).X, table.labels_of(drawn.sample_rows.slice(0, _TRIED)))

    def rows_of(rows: pa.Table, kept: np.ndarray) -> tuple[Any, np.ndarray]:
        return encoder.encode(table.frame(rows)[kept]).X, table.labels_of(rows)[kept]

    batches = _TrainingBatches(table, drawn.held, rows_of)
    fitted.fit_batches(batches, lambda: encoder.encode(sample).X, n_rows=n_train)
    chosen = fitted.named_steps.get("columns")
    width = encoder.width if chosen is None else len(chosen.columns)
    held_X, held_Y = encoder.encode(table.frame(drawn.held_rows)).X, table.labels_of(drawn.held_rows)
    scores, decisions = predict_rows(fitted, held_X, ProgressBar("scoring"))
    metrics = score_all(held_Y, scores, decisions, conventions=settings["conventions"])
    validated = CrossValidated([], [metrics], n_held / n_train, held_Y, scores, decisions)
    positives = drawn.positives - held_Y.sum(axis=0, dtype=np.int64)
    sizes = {"rows": BATCH_ROWS, "sample_rows": len(sample), "held_out_rows": n_held, "training_rows": n_train}
    name, cardinality = table.path.stem, float(positives.sum() / n_train)
    model = described_model(
        fitted,
        encoder,
        sample,
        table.labels_of(drawn.sample_rows),
        table.label_names,
        validated,
        dataset={
            "name": name,
            "title": f"{table.path.name}: {table.n_rows} rows, {len(table.label_names)} labels",
            "digest": digest,
            "card_digest": None,
            "instances": n_train,
            "features": len(table.names),
            "columns": width,
            "labels": len(table.label_names),
            "cardinality": cardinality,
            "density": cardinality / len(table.label_names),
            "missing_values": None,
            "licence": None,
            "citation": None,
            "notes": f"Learned in batches of rows. Encoder, scaler and the summaries of features are those of a random "
            f"sample of {len(sample)} training rows.",
            "reader": reader,
        },
        method=method_facts(method),
        evaluation={
            "protocol": {"holdout": {"rows": n_held}},
            "conventions": settings["conventions"],
            "seed": seed,
            "cells": [],
            "settings": dict(settings),
            "batches": sizes,
        },
        decision={},
        tuning={},
    )
    labels = [
        {"name": label, "observed": n_train, "positives": int(count), "prevalence": float(count / n_train)}
        for label, count in zip(table.label_names, positives, strict=True)
    ]
    return SavedModel(fitted, encoder, replace(model.metadata, labels=labels))


def _try(method: str, model: MethodPipeline, X: Any, Y: np.ndarray) -> None:
    """Refuse wrong arguments, and a model that cannot be saved, before hours are spent on it."""
    try:
        model_bytes(clone(model).fit_batches([(X, Y)], lambda: X))
    except (TypeError, ValueError) as error:  # scikit-learn's, such as class_weight="balanced"
        if isinstance(error, MultilabError):
            raise
        raise DeploymentError(f"{method} cannot learn from batches of rows: {excerpt(str(error))}") from None


def source_of(path: Path) -> tuple[str, str]:
    """Return where a table comes from, in MLflow's terms."""
    return "local", json.dumps({"uri": os.path.abspath(path)})


def options_of(reader: Mapping[str, Any]) -> Sequence[str]:
    """Return the options of a reader as settings ``name=value`` of the command line."""
    texts = []
    for name, value in reader.items():
        if isinstance(value, Mapping):
            value = ",".join(f"{key}={kind}" for key, kind in value.items())
        elif not isinstance(value, str | int):
            value = ",".join(value)
        texts.append(f"{'labels' if name == 'label_columns' else name}={value}")
    return texts
