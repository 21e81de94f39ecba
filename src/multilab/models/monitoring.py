"""Monitoring of a saved model: tests of new rows against the rows that the model was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.datasets.table_cells import cell_numbers, cell_texts
from multilab.models.errors import DeploymentError
from multilab.statistics import (
    CalibrationBins,
    DriftReport,
    ValueCounts,
    calibration_drift,
    calibration_sums,
    count_values,
    feature_drift,
    judge_drift,
    prevalence_drift,
    probability_drift,
)

if TYPE_CHECKING:
    import pandas as pd

    from multilab.models.saved_model import SavedModel

__all__ = ["Monitoring", "monitor_rows"]

_FEW_ROWS = 50  # with fewer new rows a note says that only large changes can be detected


@dataclass(frozen=True)
class Monitoring:
    """Result of monitoring.

    Attributes
    ----------
    report : DriftReport
        The tests: families "inputs", "predictions", and with labels "labels" and "calibration".
    n_rows : int
    n_predicted : int
        Rows that the model predicts; others have holes that its training data did not have.
    notes : tuple of str
        What was not tested, and why.
    """

    report: DriftReport
    n_rows: int
    n_predicted: int
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        rest = {"rows": self.n_rows, "predicted_rows": self.n_predicted, "notes": list(self.notes)}
        return {**self.report.to_dict(), **rest}


def monitor_rows(model: SavedModel, rows: pd.DataFrame, alpha: float = 0.05, min_effect: float = 0.1) -> Monitoring:
    """Test new rows for drift of the features, the predictions, and, with labels, of the labels and the calibration.

    Parameters
    ----------
    model : SavedModel
    rows : DataFrame of shape (n, m)
        Columns of the training file; label columns are used where they are in it, NaN is a label that was not observed.
    alpha, min_effect : float
        See :func:`multilab.statistics.judge_drift`.

    Returns
    -------
    Monitoring

    Raises
    ------
    DatasetError
        Columns are missing or unknown, or a cell has a value that the column cannot have.
    DeploymentError
        There is no row, or a label is not 0 or 1.
    StatisticsError
        ``alpha`` or ``min_effect`` is out of range.

    Notes
    -----
    The predicted prevalence is the mean probability. It is compared with that of held-out rows of the cross-validation,
    not with the training labels: a model that predicts a label too rarely would always report drift. The held-out rows
    were predicted by models fitted to fewer rows than the model has seen; ``min_effect`` covers this small difference,
    ``alpha`` does not. Without probabilities, shares of decisions are compared.
    """
    judge_drift([], alpha, min_effect)  # refuses wrong options before any work
    if not len(rows):
        raise DeploymentError("there are no rows to monitor")
    rows = rows.rename(columns=str).reset_index(drop=True)
    rows = model.encoder.with_numbers(rows)
    model.encoder.check_columns(list(rows.columns))
    about = model.metadata
    new = {column.name: _new_counts(rows[column.name], column) for column in model.encoder.columns}
    reference = {summary["name"]: _reference_counts(summary, about.dataset["instances"]) for summary in about.features}
    notes = [f"{len(rows)} rows: only large changes can be detected"] if len(rows) < _FEW_ROWS else []
    tables = [feature_drift(reference, new)]
    bins = _held_out_bins(model)
    labels = _labels(model, rows)
    complete = _predictable(model, rows)
    if not complete.all():
        notes.append(f"{(~complete).sum()} rows have missing values, which the model refuses: not predicted")
    if complete.any():
        scores, decisions = model.predict_encoded(model.encode(rows[complete]).X)
        tables.append(_predictions(model, bins, scores, decisions))
    if not labels:
        notes.append("no label columns: prevalence and calibration of the true labels were not tested")
    else:
        tables.append(_prevalence(model, labels))
        if bins is None:
            notes.append("the model has no held-out probabilities: calibration was not tested")
        elif complete.any():
            Y = np.full((len(rows), len(about.label_names)), np.nan)
            for j, name in enumerate(about.label_names):
                Y[:, j] = labels.get(name, np.nan)
            tables.append(calibration_drift(about.label_names, bins, calibration_sums(Y[complete], scores)))
    return Monitoring(judge_drift(tables, alpha, min_effect), len(rows), int(complete.sum()), tuple(notes))


def _new_counts(cells: pd.Series, column: Any) -> ValueCounts:
    return count_values(column.summary(cells))


def _reference_counts(summary: Mapping[str, Any], n_rows: int) -> ValueCounts:
    """Return the counts of a training column; holes in proportion to the values that the summary has."""
    if summary["kind"] == "text":
        pairs = sorted((value, count) for value, count in summary["counts"].items() if count)
        values, counts = np.array([value for value, _ in pairs], dtype=str), np.array([count for _, count in pairs])
    else:
        values, counts = np.array(summary["sample"]["values"], float), np.array(summary["sample"]["counts"])
    missing, n = summary["missing"], int(counts.sum())
    n_missing = n_rows if missing == 1 else round(n * missing / (1 - missing))
    return ValueCounts(values, counts.astype(np.int64), n_missing)


def _predictable(model: SavedModel, rows: pd.DataFrame) -> np.ndarray:
    """Return the rows without holes that the model refuses."""
    accepted = np.ones(len(rows), dtype=bool)
    for column in () if model.encoder.learned else model.encoder.columns:
        if column.values is None:
            accepted &= ~np.isnan(cell_numbers(rows[column.name], column.name))
        else:
            accepted &= np.array([text is not None for text in cell_texts(rows[column.name])])
    return accepted


def _labels(model: SavedModel, rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the true labels that the rows have, NaN where one was not observed."""
    labels = {}
    for name in model.label_names:
        if name not in rows.columns:
            continue
        values = cell_numbers(rows[name], name)
        wrong = np.flatnonzero(~np.isin(values, (0.0, 1.0)) & ~np.isnan(values))
        if len(wrong):
            value, row = values[wrong[0]], wrong[0] + 1
            raise DeploymentError(
                f"label column {name[:60]!r}, row {row}: {value:g} is not 0 or 1 (empty: not observed)"
            )
        if not np.isnan(values).all():
            labels[name] = values
    return labels


def _held_out_weight(model: SavedModel) -> float:
    """Return 1, or less where repeated splits hold each row out several times, which are not independent rows."""
    about = model.metadata
    return min(1.0, about.dataset["instances"] / max(1, about.evaluation["test_rows"]))


def _held_out_bins(model: SavedModel) -> CalibrationBins | None:
    sums = model.metadata.calibration.get("sums")
    if sums is None:
        return None
    weight = _held_out_weight(model)
    return CalibrationBins.from_dict({name: weight * np.array(values) for name, values in sums.items()})


def _predictions(
    model: SavedModel, bins: CalibrationBins | None, scores: np.ndarray, decisions: np.ndarray
) -> pd.DataFrame:
    """Test the predicted prevalence against that of held-out rows; the notes have the training prevalence."""
    if bins is not None:
        table = probability_drift(model.label_names, bins, scores)
    else:
        weight, rows = _held_out_weight(model), model.metadata.per_label
        predicted, observed = ([round(weight * row[name]) for row in rows] for name in ("predicted", "observed"))
        hits = decisions.sum(axis=0).tolist()
        table = prevalence_drift("predictions", model.label_names, predicted, observed, hits, len(decisions))
    shares = {row["name"]: row["prevalence"] for row in model.metadata.labels}
    table["note"] = [f"training prevalence {shares[name] or 0:.3g}" for name in table["item"]]
    return table


def _prevalence(model: SavedModel, labels: Mapping[str, np.ndarray]) -> pd.DataFrame:
    rows = [row for row in model.metadata.labels if row["name"] in labels]
    values = [labels[row["name"]] for row in rows]
    return prevalence_drift(
        "labels",
        [row["name"] for row in rows],
        [row["positives"] for row in rows],
        [row["observed"] for row in rows],
        [int(np.nansum(column)) for column in values],
        [int((~np.isnan(column)).sum()) for column in values],
    )
