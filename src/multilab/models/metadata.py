"""Metadata of a saved model: one JSON file next to it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from multilab.core import json_digest, read_json, write_atomically
from multilab.core.text import excerpt
from multilab.models.errors import DeploymentError

__all__ = ["METADATA_FILE", "ModelMetadata"]

METADATA_FILE = "metadata.json"
_SCHEMA = 1  # raised when the fields change; a model of another schema is refused


@dataclass(frozen=True)
class ModelMetadata:
    """Facts about a saved model: data, settings, cross-validated scores, and a summary of the training rows.

    All values are JSON values; NaN is None. Nothing here is needed to predict: monitoring and model cards read it.

    Attributes
    ----------
    dataset : dict
        ``name``, ``title``, ``digest`` (of matrices and names), ``card_digest`` (sha256 of the card's file),
        ``instances``, ``features``, ``columns``, ``labels``, ``cardinality``, ``density``, ``missing_values``,
        ``licence``, ``citation``, ``notes``, ``reader``.
    method : dict
        ``name``, ``title``, ``target``, ``params`` (tuned ones in it), ``preprocessing``, ``base_scores``,
        ``reference``, ``notes``.
    decision : dict
        ``objective``, ``policy``, ``calibration``; empty where the method decides by its own rule.
    tuning : dict
        Settings of the search and ``best``; empty without one.
    label_names : list of str
    score_kind : {"probability", "score"}
    thresholds : dict of str to float
        Per label; None for a label that is never assigned, 0 of a probability for one that always is; empty where the
        rule is no threshold.
    features : list of dict
        Per raw column: ``name``, ``kind`` ("number" or "text"), ``missing`` (share of rows), of a table also
        ``column`` (how the column is read: of a date the numbers are days, of a text words), and of numbers ``min``,
        ``max``, ``mean``, ``std``, ``quantiles`` (101 values) and ``sample`` (``values`` and ``counts`` of at most 1000
        rows; each column drawn independently, so that no row can be read off), of texts ``counts``.
    labels : list of dict
        Per label: ``name``, ``observed`` (rows), ``positives``, ``prevalence``.
    metrics : dict of str to dict
        Cross-validated: ``values`` per split, ``mean``, ``std``, ``low`` and ``high`` (95 % interval by the corrected
        resampled t distribution; None with fewer than two splits), ``direction``.
    per_label : list of dict
        Rows of `multilab.metrics.per_label` on the test rows of all splits together, with ``f1_low``, ``f1_high``,
        ``auc_low``, ``auc_high``: 95 % bootstrap intervals over rows.
    calibration : dict
        Of the same test rows: ``edges`` of the score bins, and per label ``count``, ``positives`` and ``mean_score`` of
        each bin; ``sums`` of probabilities: see `multilab.statistics.CalibrationBins`, else None.
    evaluation : dict
        ``protocol``, ``splits``, ``test_rows``, ``test_to_train``, ``conventions``, ``seed``, ``cells`` (keys in the
        store). For a table that was read in batches also
        ``batches``: ``rows`` of a batch, ``sample_rows`` (of encoder and scaler), ``held_out_rows``, ``training_rows``.
    versions : dict
        Versions of Python and of the packages.
    created : str
        UTC.
    commit : str or None
    """

    dataset: dict[str, Any]
    method: dict[str, Any]
    label_names: list[str]
    score_kind: str
    thresholds: dict[str, float | None]
    features: list[dict[str, Any]]
    labels: list[dict[str, Any]]
    metrics: dict[str, dict[str, Any]]
    per_label: list[dict[str, Any]]
    calibration: dict[str, Any]
    evaluation: dict[str, Any]
    versions: dict[str, str]
    created: str
    decision: dict[str, Any] = field(default_factory=dict)
    tuning: dict[str, Any] = field(default_factory=dict)
    commit: str | None = None

    def save(self, folder: Path) -> Path:
        """Write the JSON file into a folder and return its path."""
        path = Path(folder) / METADATA_FILE
        content = {"schema": _SCHEMA, **asdict(self)}
        content = json.loads(json.dumps(content, allow_nan=False))  # as it will be read: all keys are texts
        write_atomically(path, json.dumps({**content, "sha256": json_digest(content)}, indent=1) + "\n")
        return path

    @classmethod
    def load(cls, folder: Path) -> ModelMetadata:
        """Read the JSON file of a folder.

        Raises
        ------
        DeploymentError
            There is none, it is not one of this version, or it was changed since it was saved.
        """
        path = Path(folder) / METADATA_FILE
        try:
            content = read_json(path)
            digest = content.pop("sha256", None)
            damaged = digest not in (None, json_digest(content))  # models of earlier versions have none
            schema = content.pop("schema")
        except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
            raise DeploymentError(f"{path}: no readable metadata of a model") from None
        known = {entry.name: _KINDS[str(entry.type).partition("[")[0]] for entry in fields(cls)}
        if schema != _SCHEMA or not set(content) <= set(known):
            shown = excerpt(repr(schema))
            raise DeploymentError(f"{path}: written by another version of multilab (schema {shown}); fit it again")
        if damaged or any(not isinstance(value, known[name]) for name, value in content.items()):
            raise DeploymentError(f"{path}: damaged, or changed since the model was saved; fit it again")
        try:
            return cls(**content)
        except TypeError as error:
            raise DeploymentError(f"{path}: {error}") from None


_KINDS: dict[str, Any] = {"dict": dict, "list": list, "str": str, "str | None": str | None}
