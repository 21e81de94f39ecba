"""Metadata of a saved model: one JSON file next to it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec

from multilab.core import json_digest, read_json, write_atomically
from multilab.core.files import is_deep
from multilab.core.text import excerpt
from multilab.models.errors import DeploymentError

__all__ = ["METADATA_FILE", "ModelMetadata", "cost_text"]

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
        ``objective``, ``policy``, ``calibration``; ``cost`` of decisions by costs; empty where the method decides by
        its own rule.
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
        each bin; ``sums`` of probabilities: see `multilab.statistics.CalibrationBins`, else None; ``quality`` of
        probabilities: see `multilab.statistics.HeldOutQuality`, else None (models of earlier versions have none).
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
            If there is no such file, another version wrote it, or it was changed since it was saved.
        """
        path = Path(folder) / METADATA_FILE
        try:
            content = read_json(path)
            if is_deep(content):
                raise ValueError("nested too deeply")
            digest = content.pop("sha256", None)
            damaged = digest not in (None, json_digest(content))  # models of earlier versions have none
            schema = content.pop("schema")
        except (OSError, ValueError, AttributeError, KeyError, TypeError, RecursionError):
            raise DeploymentError(f"{path}: no readable metadata of a model") from None
        if schema != _SCHEMA or not set(content) <= {entry.name for entry in fields(cls)}:
            shown = excerpt(repr(schema))
            raise DeploymentError(f"{path}: written by another version of multilab (schema {shown}); fit it again")
        if damaged:
            raise DeploymentError(f"{path}: damaged, or changed since the model was saved; fit it again")
        try:
            msgspec.convert(content, _Content)
            for feature in content["features"]:
                msgspec.convert(feature, _Kinded)
                msgspec.convert(feature, _Texts if feature["kind"] == "text" else _Numbers)
                if feature.get("column") == "date":
                    msgspec.convert(feature, _Days)
            about = cls(**content)
            about._check_parts()
        except msgspec.ValidationError as error:
            raise DeploymentError(f"{path}: {error}; fit the model again") from None
        return about

    @property
    def command(self) -> str:
        """The command that fits the model again, from its recorded settings."""
        settings = self.evaluation.get("settings", {})
        chosen = {
            "dataset": settings.get("dataset", self.dataset["name"]),
            "method": settings.get("method", self.method["name"]),
        }
        changed = [text for text in settings.get("changed", []) if not text.startswith(("dataset=", "tune.n_trials="))]
        more = {"decision": settings.get("objective"), "calibration": settings.get("calibration")}
        if settings.get("cost"):
            more["cost"] = cost_text(settings["cost"])
        if settings.get("tune"):
            more["tune"] = settings["tune"]["n_trials"]
        options = [[f"--{name}", str(value)] for name, value in chosen.items()]
        options += [_option(text) for text in changed]
        options += [[f"--{name}", str(value)] for name, value in more.items() if value is not None]
        return shlex.join(["multilab", "fit", *(word for option in options for word in option)])

    def _check_parts(self) -> None:
        """Refuse parts that do not belong together.

        Raises
        ------
        msgspec.ValidationError
        """
        names, bins = self.label_names, self.calibration["labels"]
        n_bins, sums = max(len(self.calibration["edges"]) - 1, 1), self.calibration["sums"]
        if any([row[key] for row in rows] != names for rows, key in ((self.labels, "name"), (self.per_label, "label"))):
            raise msgspec.ValidationError("the labels of its parts differ")
        if set(bins) != set(names) or set(self.thresholds or names) != set(names):
            raise msgspec.ValidationError("the labels of its parts differ")
        if any(len(values) != n_bins for label in bins.values() for values in label.values()):
            raise msgspec.ValidationError("the counts of calibration are not those of its edges")
        if sums and {len(rows) for rows in sums.values()} != {len(names)}:
            raise msgspec.ValidationError("the sums of calibration are not those of its labels")
        if sums and len({len(row) for rows in sums.values() for row in rows}) > 1:
            raise msgspec.ValidationError("the sums of calibration are not of the same bins")
        if quality := self.calibration.get("quality"):
            counts = [quality["hits"], quality["positives"], *quality["expected"].values()]
            if {len(values) for values in counts} != {len(names)}:
                raise msgspec.ValidationError("the expected quality is not that of its labels")
        for feature in self.features:
            if feature["kind"] == "number" and len({feature[key] is None for key in ("min", "max", "mean")}) > 1:
                raise msgspec.ValidationError("a feature has a minimum, maximum or mean alone")
            if feature["kind"] == "number" and len(feature["sample"]["values"]) != len(feature["sample"]["counts"]):
                raise msgspec.ValidationError("the sample of a feature has not a count for each value")


# What is read of a model's metadata; other entries are only shown. A whole number may be as large as a float is exact.

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Day = Annotated[float, msgspec.Meta(ge=-(2**53), le=2**53)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _Dataset(TypedDict):
    name: str
    title: str
    digest: str | None
    instances: _Count
    features: _Count
    cardinality: float | None
    licence: str | None
    reader: NotRequired[dict[str, Any]]


class _Method(TypedDict):
    name: str
    title: str
    target: str
    params: dict[str, Any]
    preprocessing: str
    base_scores: list[str]
    reference: str | None


class _Kinded(TypedDict):
    kind: Literal["number", "text"]


class _Sample(TypedDict):
    values: list[float]
    counts: list[_Count]


class _Numbers(TypedDict):
    name: str
    missing: _Share
    column: NotRequired[str]
    min: float | None
    max: float | None
    mean: float | None
    sample: _Sample


class _Days(TypedDict):
    min: _Day | None
    max: _Day | None
    mean: _Day | None


class _Texts(TypedDict):
    name: str
    missing: _Share
    column: NotRequired[str]
    counts: dict[str, _Count]


class _Label(TypedDict):
    name: str
    observed: _Count
    positives: _Count
    prevalence: _Share | None


class _Metric(TypedDict):
    values: list[float | None]
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    direction: Literal["max", "min"]


class _LabelMetrics(TypedDict):
    label: str
    observed: _Count
    count: _Count
    prevalence: _Share | None
    predicted: _Count
    precision: float | None
    recall: float | None
    f1: float | None
    f1_low: float | None
    f1_high: float | None
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    brier_score: float | None
    calibration_error: float | None


class _Bins(TypedDict):
    count: list[_Count]
    positives: list[_Count]
    mean_score: list[float | None]


class _Sums(TypedDict):
    count: list[list[float]]
    positives: list[list[float]]
    scores: list[list[float]]
    squares: list[list[float]]
    score_squares: list[list[float]]


class _Counts(TypedDict):
    predicted: list[float]
    hits: list[float]
    positives: list[float]
    hit_variance: list[float]
    variance: list[float]


class _Overdispersion(TypedDict):
    micro_f1: float
    macro_f1: float


class _Quality(TypedDict):
    expected: _Counts
    hits: list[float]
    positives: list[float]
    overdispersion: _Overdispersion


class _Calibration(TypedDict):
    edges: list[float]
    labels: dict[str, _Bins]
    sums: _Sums | None
    quality: NotRequired[_Quality | None]


class _Batches(TypedDict):
    rows: _Count
    sample_rows: _Count
    held_out_rows: _Count


class _Tuned(TypedDict):
    n_trials: _Count


class _Settings(TypedDict):
    dataset: NotRequired[str]
    method: NotRequired[str]
    changed: NotRequired[list[str]]
    objective: NotRequired[str | None]
    calibration: NotRequired[str | None]
    cost: NotRequired[dict[str, float]]
    tune: NotRequired[_Tuned | None]


class _Evaluation(TypedDict):
    splits: _Count
    test_rows: _Count
    protocol: dict[str, Any]
    conventions: str
    seed: int
    cells: list[str]
    settings: NotRequired[_Settings]
    batches: NotRequired[_Batches]


class _Decision(TypedDict):
    objective: NotRequired[str | None]
    policy: NotRequired[str | None]
    calibration: NotRequired[str | None]
    cost: NotRequired[dict[str, float]]


class _Tuning(TypedDict):
    best: NotRequired[dict[str, Any]]


class _Content(TypedDict):
    dataset: _Dataset
    method: _Method
    label_names: list[str]
    score_kind: Literal["probability", "score"]
    thresholds: dict[str, float | None]
    features: list[dict[str, Any]]
    labels: list[_Label]
    metrics: dict[str, _Metric]
    per_label: list[_LabelMetrics]
    calibration: _Calibration
    evaluation: _Evaluation
    versions: dict[str, str]
    created: str
    decision: NotRequired[_Decision]
    tuning: NotRequired[_Tuning]
    commit: NotRequired[str | None]


def cost_text(cost: Mapping[str, float]) -> str:
    """Return costs as `multilab fit --cost` takes them: ``fp=1,fn=5``."""
    return ",".join(f"{outcome}={value!r}" for outcome, value in cost.items())


def _option(setting: str) -> list[str]:
    """Return a setting of the run, ``method.k=3``, as an option of `multilab fit`."""
    name, _, value = setting.partition("=")
    if name.startswith("method."):
        return ["--set", f"{name.removeprefix('method.')}={value}"]
    return ["--cv" if name == "protocol.kfold" else f"--{name.replace('.', '-')}", value]
