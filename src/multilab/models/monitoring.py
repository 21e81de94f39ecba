"""Monitoring of a saved model: tests of new rows against the training rows, and the quality expected on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from multilab.core.messages import unknown_name
from multilab.core.numbers import finite
from multilab.datasets.table_cells import cell_numbers, cell_texts
from multilab.models.errors import DeploymentError
from multilab.statistics import (
    CalibrationBins,
    DriftReport,
    HeldOutQuality,
    ValueCounts,
    calibration_drift,
    calibration_sums,
    count_values,
    expected_quality,
    feature_drift,
    judge_drift,
    prevalence_drift,
    probability_drift,
)
from multilab.statistics.quality import LARGEST_MISS

if TYPE_CHECKING:
    import pandas as pd

    from multilab.models.saved_model import SavedModel

__all__ = ["Monitoring", "monitor_rows", "quality_refusal"]

_MOST_VALUES = 10  # of a column: more numbers are cut into quarters, of more texts the most frequent ones are shown
_FEW_ROWS = 50  # with fewer new rows a note says that only large changes can be detected


def _no_quality() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns=["group", "rows", "label", "quantity", "expected", "low", "high", "held_out"])


@dataclass(frozen=True)
class Monitoring:
    """Result of monitoring.

    Attributes
    ----------
    report : DriftReport
        The tests: families "inputs", "predictions", and with labels "labels" and "calibration".
    n_rows : int
    n_predicted : int
        Rows that the model predicts; the others have missing values where its training data had none.
    notes : tuple of str
        What was not tested, and why.
    quality : DataFrame
        The table of `multilab.statistics.expected_quality` for the predicted rows, with the names of the labels (empty
        for all labels) and the columns ``rows`` and ``group`` (empty for all rows, or a value of the column of groups).
        Without rows if the calibration of the model does not allow an estimate.
    """

    report: DriftReport
    n_rows: int
    n_predicted: int
    notes: tuple[str, ...]
    quality: pd.DataFrame = field(default_factory=_no_quality)

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        rest = {"rows": self.n_rows, "predicted_rows": self.n_predicted, "notes": list(self.notes)}
        quality = [finite(row) for row in self.quality.to_dict("records")]
        return {**self.report.to_dict(), **rest, "expected_quality": quality}


def monitor_rows(
    model: SavedModel, rows: pd.DataFrame, alpha: float = 0.05, min_effect: float = 0.1, by: str | None = None
) -> Monitoring:
    """Test new rows for drift, and estimate the quality of the predictions without labels.

    The tests are of the features, the predictions, and, with labels, of the labels and the calibration.

    Parameters
    ----------
    model : SavedModel
    rows : DataFrame of shape (n, m)
        Rows with the columns of the training file. Label columns are used if there are any; NaN is a label that was not
        observed.
    alpha, min_effect : float
        See :func:`multilab.statistics.judge_drift`.
    by : str, optional
        A column of the rows: quality is also estimated for the rows with each of its values, for quarters of a column
        of many numbers, and for the most frequent of many texts.

    Returns
    -------
    Monitoring

    Raises
    ------
    DatasetError
        If columns are missing or unknown, or a cell has a value that the column cannot have.
    DeploymentError
        If there is no row, a label is not 0 or 1, or there is no column ``by``.
    StatisticsError
        If ``alpha`` or ``min_effect`` is out of range.

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
    if by is not None and by not in rows.columns:
        raise DeploymentError(unknown_name("column of the rows", by, rows.columns))
    rows = model.encoder.with_numbers(rows)
    model.encoder.check_columns(list(rows.columns))
    about = model.metadata
    new = {column.name: _new_counts(rows[column.name], column) for column in model.encoder.columns}
    reference = {summary["name"]: _reference_counts(summary, about.dataset["instances"]) for summary in about.features}
    notes = [f"{len(rows)} rows: only large changes can be detected"] if len(rows) < _FEW_ROWS else []
    tables = [feature_drift(reference, new)]
    bins = _held_out_bins(model)
    quality = _no_quality()
    labels = _labels(model, rows)
    complete = _predictable(model, rows)
    if not complete.all():
        notes.append(f"{(~complete).sum()} rows were not predicted: the model refuses their missing values")
    if complete.any():
        scores, decisions = model.predict_encoded(model.encode(rows[complete]).X)
        tables.append(_predictions(model, bins, scores, decisions))
        refusal = quality_refusal(model)
        if refusal:
            notes.append(f"quality without labels was not estimated: {refusal}")
        else:
            groups = {} if by is None else _groups(rows.loc[complete, by].reset_index(drop=True))
            quality = _quality(model, scores, decisions, groups)
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
    return Monitoring(judge_drift(tables, alpha, min_effect), len(rows), int(complete.sum()), tuple(notes), quality)


def quality_refusal(model: SavedModel) -> str:
    """Return why the quality of a model cannot be estimated without labels; empty if it can.

    It can if the model has probabilities, and if the micro and macro F1 expected from them on the held-out training
    rows were right to within `multilab.statistics.quality.LARGEST_MISS`.
    """
    if model.metadata.score_kind != "probability":
        return "the model has no probabilities; fit it with --calibration sigmoid"
    recorded = model.metadata.calibration.get("quality")
    if recorded is None:
        return "the model has no record of its expected quality, like models of earlier versions; fit it again"
    misses = HeldOutQuality.from_dict(recorded).misses
    name = max(misses, key=lambda each: abs(misses[each]))
    if not abs(misses[name]) <= LARGEST_MISS:
        return (
            f"on held-out training rows its probabilities miss {name} by {misses[name]:+.3f}, more than "
            f"{LARGEST_MISS:g}; fit it with --calibration sigmoid"
        )
    return ""


def _quality(
    model: SavedModel, scores: np.ndarray, decisions: np.ndarray, groups: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """Return the expected quality of all rows, and overall that of groups of rows."""
    import pandas as pd

    held_out = HeldOutQuality.from_dict(model.metadata.calibration["quality"])
    repeats = 1 / _held_out_weight(model)
    tables = []
    for group, rows in {"": np.arange(len(scores)), **groups}.items():
        table = expected_quality(scores[rows], decisions[rows], held_out, repeats=repeats)
        table.insert(0, "rows", len(rows))
        table.insert(0, "group", group)
        tables.append(table if group == "" else table[table["label"] < 0])
    names = dict(enumerate(model.label_names))
    return pd.concat(tables, ignore_index=True).assign(label=lambda table: table["label"].map(names).fillna(""))


def _groups(cells: pd.Series) -> dict[str, np.ndarray]:
    """Return the rows of each value of a column, of quarters of many numbers, or of the most frequent of many texts."""
    import pandas as pd

    numbers = pd.to_numeric(cells, errors="coerce")
    if numbers.notna().sum() == cells.notna().sum() and numbers.nunique() > _MOST_VALUES:
        cells = pd.qcut(numbers, 4, duplicates="drop").astype("str").where(numbers.notna())
        values = sorted(cells.dropna().unique(), key=lambda text: numbers[cells == text].min())
    else:
        cells = cells.astype("str").where(cells.notna())
        values = list(cells.value_counts().index[:_MOST_VALUES])
    return {value: np.flatnonzero(cells == value) for value in values}


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
