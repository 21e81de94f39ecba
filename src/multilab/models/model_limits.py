"""Known weaknesses of a model, from its held-out scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from multilab.core.text import listed
from multilab.metrics import OverAssigned, over_assigned
from multilab.models.metadata import ModelMetadata

__all__ = ["known_weaknesses", "over_assigned_labels", "over_assigned_text", "prediction_warnings"]

RARE = 20
"""Labels with fewer relevant rows are rare: their metrics and thresholds are hardly more than guesses."""

LEAST_ROWS = 20
"""Fewer rows than this say nothing about how often a label is assigned."""

_WIDE = 0.2  # width of the 95 % interval of F1 from which on it is a weakness
_SHOWN = 20  # labels that a sentence lists
_MISCALIBRATED = 0.1  # calibration error from which on it is a weakness


def known_weaknesses(about: ModelMetadata) -> tuple[str, ...]:
    """Return one sentence per weakness that the held-out scores show, with the labels concerned.

    Parameters
    ----------
    about : ModelMetadata
        Metadata of a saved model.

    Returns
    -------
    tuple of str
        Labels that are assigned far too often; rare labels; labels that are never predicted; labels that are predicted
        no better than by their prevalence (by AUC, by Brier score, or by F1); wide intervals; labels that are not
        calibrated; small evaluations.
    """
    return tuple(_sentences(about))


def over_assigned_labels(about: ModelMetadata) -> list[OverAssigned]:
    """Return the labels that the model assigned to far too many held-out rows, see `multilab.metrics.over_assigned`."""
    seen = [row for row in about.per_label if row["observed"]]
    rates, frequencies = ([row[key] / row["observed"] for row in seen] for key in ("predicted", "count"))
    return over_assigned([row["label"] for row in seen], rates, frequencies)


def over_assigned_text(often: Sequence[OverAssigned], rows: str = "the held-out rows") -> str:
    """Return a warning about labels that are assigned far too often, empty if there are none."""
    if not often:
        return ""
    labels = listed([*map(str, often)], _SHOWN)
    return f"Labels assigned to far too many of {rows}: {labels}. Do not use the decisions for {_them(often)}."


def prediction_warnings(about: ModelMetadata, shares: np.ndarray, n_rows: int) -> list[str]:
    """Return warnings about labels that are assigned to far too many of the new rows, or of the held-out rows.

    Parameters
    ----------
    about : ModelMetadata
    shares : ndarray of shape (q,)
        Share of the new rows that each label is assigned to.
    n_rows : int
        Number of new rows; fewer than 20 are too few to judge.
    """
    here: list[OverAssigned] = []
    if n_rows >= LEAST_ROWS:
        frequencies = [np.nan if row["prevalence"] is None else row["prevalence"] for row in about.labels]
        here = over_assigned(about.label_names, shares, frequencies)
    named = {assigned.label for assigned in here}
    held = [assigned for assigned in over_assigned_labels(about) if assigned.label not in named]
    texts = over_assigned_text(here, "these rows, compared with the training rows"), over_assigned_text(held)
    return [text for text in texts if text]


def _sentences(about: ModelMetadata) -> Iterator[str]:
    if often := over_assigned_text(over_assigned_labels(about)):
        yield often
    labels = {row["name"]: row for row in about.labels}
    rows = [{**row, "positives": labels[row["label"]]["positives"]} for row in about.per_label]
    never_seen = [row["label"] for row in rows if row["positives"] == 0]
    if never_seen:
        yield f"No training row has {listed(never_seen, _SHOWN)}: the model cannot know {_them(never_seen)}."
    for text, applies in _CHECKS:
        names = [row["label"] for row in rows if row["positives"] > 0 and applies(row)]
        if names:
            yield text.format(labels=listed(names, _SHOWN), n=len(names), of=len(rows))
    never_assigned = [name for name, threshold in about.thresholds.items() if threshold is None]
    if never_assigned:
        yield f"The decision rule never assigns {listed(never_assigned, _SHOWN)}."
    if about.score_kind != "probability":
        yield "The scores are not probabilities; they only rank the rows of a label."
    evaluation = about.evaluation
    if evaluation["splits"] < 2:
        yield "There was only one split, so there are no intervals over splits."
    if evaluation["test_rows"] < 200:
        yield f"All metrics are from {evaluation['test_rows']} held-out rows, too few to detect small differences."


def _no_better_than_prevalence(row: Mapping[str, Any]) -> bool:
    prevalence, loss = row["prevalence"], row["brier_score"]
    return loss is not None and prevalence is not None and loss >= prevalence * (1 - prevalence)


def _worse_than_always(row: Mapping[str, Any]) -> bool:
    prevalence, f1 = row["prevalence"], row["f1"]
    return bool(prevalence) and bool(row["predicted"]) and f1 is not None and f1 <= 2 * prevalence / (1 + prevalence)


def _at_least(name: str, limit: float) -> Callable[[Mapping[str, Any]], bool]:
    return lambda row: row[name] is not None and row[name] >= limit


def _wide(row: Mapping[str, Any]) -> bool:
    return None not in (row["f1_low"], row["f1_high"]) and row["f1_high"] - row["f1_low"] > _WIDE


_CHECKS: Sequence[tuple[str, Callable[[Mapping[str, Any]], bool]]] = (
    (
        f"Rare labels ({{n}} of {{of}}), with fewer than {RARE} relevant training rows: {{labels}}. Their metrics and "
        "thresholds are uncertain.",
        lambda row: row["positives"] < RARE,
    ),
    ("Never predicted on held-out rows ({n} of {of}): {labels}.", lambda row: row["predicted"] == 0),
    (
        "Not ranked better than by chance ({n} of {of}; the 95 % interval of the AUC reaches down to 0.5): {labels}.",
        lambda row: row["auc_low"] is not None and row["auc_low"] <= 0.5,
    ),
    (
        "Probabilities no better than the prevalence alone ({n} of {of}; by the Brier score): {labels}.",
        _no_better_than_prevalence,
    ),
    (
        "Decisions no better than predicting the label for every row ({n} of {of}; by F1): {labels}.",
        _worse_than_always,
    ),
    (f"F1 uncertain by more than {_WIDE} ({{n}} of {{of}}; width of the 95 % interval): {{labels}}.", _wide),
    (
        f"Calibration error of at least {_MISCALIBRATED} ({{n}} of {{of}}): {{labels}}.",
        _at_least("calibration_error", _MISCALIBRATED),
    ),
)


def _them(names: Sequence[Any]) -> str:
    return "it" if len(names) == 1 else "them"
