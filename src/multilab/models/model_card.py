"""Model card: the origin of a model, its quality, and its known weaknesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from multilab.cells.inventory import protocol_text, setting_text
from multilab.metrics import METRICS
from multilab.models.card_text import CardCode, CardSection, CardTable, ModelCard, rounded
from multilab.models.metadata import ModelMetadata, cost_text
from multilab.models.model_limits import known_weaknesses

__all__ = ["main_metric", "model_card", "score_text"]

_SHOWN_FEATURES = 20  # a card is read by people; the metadata has all features
_SHOWN_LABELS = 100  # the most and the least frequent ones; the metadata has all labels


def model_card(about: ModelMetadata) -> ModelCard:
    """Return the card of a model from its metadata.

    Parameters
    ----------
    about : ModelMetadata
        Metadata of a saved model.
    """
    data, q = about.dataset, len(about.label_names)
    facts = {
        "training rows": str(data["instances"]),
        "features": str(data["features"]),
        "labels": str(q),
        "labels per row": rounded(data["cardinality"], 2),
    }
    main = main_metric(about)
    if main in about.metrics:
        facts[_title(main)] = score_text(about.metrics[main])
    sections = (
        CardSection("Intended use and limits", tuple(_use(about))),
        CardSection("Known weaknesses", tuple(_weaknesses(about))),
        CardSection("Data", tuple(_data(about))),
        CardSection("Settings", (_pairs(_settings(about)),)),
        CardSection("Decision rule", tuple(_decisions(about))),
        CardSection("Metrics", tuple(_metrics(about))),
        CardSection("Labels", tuple(_labels(about))),
        CardSection("Calibration", tuple(_calibration(about))),
        CardSection("Versions and reproduction", tuple(_reproduction(about))),
    )
    rows = f"{data['instances']}" if "batches" in about.evaluation else "all"
    summary = f"Assigns {q} labels to the rows of a table. Fitted {about.created} to {rows} rows of {data['title']}."
    return ModelCard(f"{about.method['title']} on {data['name']}", summary, facts, sections)


def score_text(row: Mapping[str, Any]) -> str:
    """Return a cross-validated metric with its interval: ``0.595 [0.564, 0.626]``."""
    return f"{rounded(row['mean'])}{_brackets(row['low'], row['high'])}"


def main_metric(about: ModelMetadata) -> str:
    """Return the metric that the decisions of a model were made for, else macro F1."""
    return str(about.decision.get("objective") or "macro_f1")


def _use(about: ModelMetadata) -> Iterator[Any]:
    data, evaluation = about.dataset, about.evaluation
    kind = "a probability" if about.score_kind == "probability" else "a score, which is not a probability,"
    yield (
        f"For each row of a table with the columns of the training file, the model returns {kind} and a decision "
        f"(0 or 1) for each of {len(about.label_names)} labels."
    )
    yield (
        f"It is meant for rows from the source of its training data ({data['title']}). Nothing was measured on rows "
        "from another source or time, by groups of rows, or on values that were chosen to mislead it. A label means "
        "what it means in the training data; an error in their labels is learned as well."
    )
    if batches := evaluation.get("batches"):
        yield (
            f"All metrics below were measured with this model on {batches['held_out_rows']} rows, drawn at random, "
            f"that it never saw. It learned from the other rows in batches of {batches['rows']}. What turns the "
            "columns into numbers (medians, categories, words, scaling) was learned from "
            f"{batches['sample_rows']} of them, drawn at random."
        )
    else:
        yield (
            f"All metrics below were measured on held-out rows by models fitted to the other rows "
            f"({protocol_text(evaluation['protocol'])}; {evaluation['splits']} "
            f"split{'s' if evaluation['splits'] != 1 else ''}). The model of this card was fitted to all rows with the "
            "same settings; it cannot be measured itself, because no rows are left."
        )
    texts = [feature["name"] for feature in about.features if feature["kind"] == "text"]
    if texts:
        yield f"{len(texts)} columns hold text categories; a category that training did not have is ignored."
    licence = (data["licence"] or "not stated").rstrip(".")
    yield f"Licence of the data: {licence}. Numbers cannot tell whether a use is allowed and fair."


def _weaknesses(about: ModelMetadata) -> Iterator[Any]:
    weaknesses = known_weaknesses(about)
    yield weaknesses or "The held-out scores show none of the weaknesses that were checked."
    yield (
        "Checked: labels that are assigned far too often, rare, never predicted, or predicted no better than by "
        "their prevalence; wide intervals; errors of calibration; small evaluations. Each label is judged by itself, "
        "without correction for their number."
    )


def _data(about: ModelMetadata) -> Iterator[Any]:
    data = about.dataset
    names = {
        "name": "name",
        "title": "title",
        "instances": "rows",
        "features": "feature columns",
        "columns": "columns of the encoded matrix",
        "labels": "labels",
        "cardinality": "label cardinality (labels per row)",
        "density": "label density",
        "missing_values": "missing feature values after reading",
        "digest": "digest of matrices and names (sha256)",
        "card_digest": "digest of the dataset's card (sha256)",
        "licence": "licence",
        "citation": "citation",
        "notes": "notes",
    }
    yield _pairs({title: data[name] for name, title in names.items() if data.get(name) not in (None, "")})
    reader = {name: _reader_text(value) for name, value in data.get("reader", {}).items()}
    if reader:
        yield "Read with " + ", ".join(f"{name}: {text}" for name, text in reader.items()) + "."
    shown = about.features[:_SHOWN_FEATURES]
    rows = [(f["name"], f.get("column", f["kind"]), _range(f), f"{100 * f['missing']:.1f} %") for f in shown]
    yield CardTable(("feature", "type", "values", "missing"), tuple(rows))
    if len(about.features) > len(shown):
        yield f"The first {len(shown)} of {len(about.features)} features; the model's metadata has all of them."


def _reader_text(value: Any) -> str:
    return (
        ", ".join(f"{key} = {text}" for key, text in value.items())
        if isinstance(value, Mapping)
        else setting_text(value)
    )


def _range(feature: Mapping[str, Any]) -> str:
    if feature["kind"] == "text":
        counts = sorted(feature["counts"].items(), key=lambda pair: -pair[1])
        more = f" and {len(counts) - 5} more" if len(counts) > 5 else ""
        return ", ".join(f"{name} ({count})" for name, count in counts[:5]) + more
    if feature["min"] is None:
        return "none"
    if feature.get("column") == "date":
        low, mean, high = (str(np.datetime64(int(feature[statistic]), "D")) for statistic in ("min", "mean", "max"))
        return f"{low} to {high}, mean {mean}"
    if feature.get("column") == "text":
        return f"{feature['min']:.0f} to {feature['max']:.0f} words, mean {feature['mean']:.1f}"
    return f"{feature['min']:.4g} to {feature['max']:.4g}, mean {feature['mean']:.4g}"


def _settings(about: ModelMetadata) -> dict[str, Any]:
    method = about.method
    pairs = {"method": method["name"], "class": method["target"], "preprocessing": method["preprocessing"]}
    if method["base_scores"]:
        pairs["base methods"] = ", ".join(method["base_scores"])
    pairs |= {name: setting_text(value) for name, value in method["params"].items()}
    if about.tuning:
        best = about.tuning.get("best", {})
        pairs["tuned"] = ", ".join(f"{name} = {setting_text(value)}" for name, value in best.items()) or "nothing"
        pairs["search"] = ", ".join(f"{name}: {setting_text(v)}" for name, v in about.tuning.items() if name != "best")
    pairs["seed"] = about.evaluation["seed"]
    if method["reference"]:
        pairs["reference"] = method["reference"]
    return pairs


def _decisions(about: ModelMetadata) -> Iterator[Any]:
    decision = about.decision
    if decision:
        tuned, cost = decision.get("objective"), decision.get("cost")
        yield (
            f"Decisions are tuned for {_title(tuned)} on out-of-fold scores of the training rows (policy: "
            f"{decision['policy']})."
            if tuned
            else f"Decisions have the least expected cost: {cost_text(cost)}."
            if cost
            else "Decisions follow the method's own rule on calibrated scores."
        )
        if decision.get("calibration"):
            yield f"Scores are calibrated on the same out-of-fold scores: {decision['calibration']}."
    limits = {name: limit for name, limit in about.thresholds.items() if limit is not None}
    if not about.thresholds:
        yield "The decisions do not follow from thresholds of the scores; the method's documentation has its rule."
    elif len(set(about.thresholds.values())) == 1 and limits:
        yield f"A label is assigned where its {about.score_kind} is at least {next(iter(limits.values())):.4g}."
    else:
        yield f"A label is assigned where its {about.score_kind} is at least its threshold, see the table of labels."


def _metrics(about: ModelMetadata) -> Iterator[Any]:
    rows = [
        (
            _title(name),
            {"max": "higher", "min": "lower"}[row["direction"]],
            rounded(row["mean"]),
            _span(row),
            rounded(row["std"]),
        )
        for name, row in about.metrics.items()
    ]
    yield CardTable(("metric", "better", "mean", "95 % interval", "deviation of the splits"), tuple(rows))
    yield (
        f"Means over {about.evaluation['splits']} splits with conventions {about.evaluation['conventions']}. The "
        "intervals are those of the corrected resampled t distribution (Nadeau and Bengio 2003), which allows for the "
        "overlap of the training sets."
    )


def _labels(about: ModelMetadata) -> Iterator[Any]:
    counts = {row["name"]: row for row in about.labels}
    order = sorted(about.per_label, key=lambda row: -counts[row["label"]]["positives"])
    shown = order if len(order) <= _SHOWN_LABELS else order[: _SHOWN_LABELS // 2] + order[-_SHOWN_LABELS // 2 :]
    rows = []
    for row in shown:
        name = row["label"]
        threshold = rounded(about.thresholds.get(name)) if about.thresholds else "–"
        f1 = f"{rounded(row['f1'])}{_brackets(row['f1_low'], row['f1_high'])}"
        auc = f"{rounded(row['auc'])}{_brackets(row['auc_low'], row['auc_high'])}"
        shares = (rounded(row[key]) for key in ("precision", "recall"))
        error = rounded(row["calibration_error"])
        positives, prevalence = counts[name]["positives"], rounded(counts[name]["prevalence"])
        rows.append((name, str(positives), prevalence, threshold, str(row["predicted"]), *shares, f1, auc, error))
    head = (
        "label",
        "rows",
        "prevalence",
        "threshold",
        "predicted",
        "precision",
        "recall",
        "F1",
        "AUC",
        "calibration error",
    )
    yield CardTable(head, tuple(rows))
    if len(shown) < len(order):
        yield f"The {_SHOWN_LABELS // 2} most and least frequent of {len(order)} labels; the metadata has all of them."
    yield (
        f"Rows and prevalence are of the training data, all other columns of the {about.evaluation['test_rows']} test "
        "rows of all splits together; in brackets 95 % bootstrap intervals over rows."
    )


def _calibration(about: ModelMetadata) -> Iterator[Any]:
    if about.score_kind != "probability":
        yield "The scores are not probabilities, so calibration does not apply."
        return
    errors = [row["calibration_error"] for row in about.per_label if row["calibration_error"] is not None]
    if errors:
        yield (
            f"Expected calibration error, mean over {len(errors)} labels: {sum(errors) / len(errors):.3f}; the largest "
            f"is {max(errors):.3f}. It is the mean distance of predicted probability and observed share in ten bins."
        )
    edges, bins = about.calibration["edges"], about.calibration["labels"].values()
    rows = []
    for k in range(len(edges) - 1):
        count = sum(label["count"][k] for label in bins)
        if count:
            total = sum((label["mean_score"][k] or 0) * label["count"][k] for label in bins)
            share = sum(label["positives"][k] for label in bins) / count
            span = f"{edges[k]:.3g} to {edges[k + 1]:.3g}"
            rows.append((span, str(count), rounded(total / count), rounded(share)))
    yield CardTable(("probability", "cells", "mean probability", "observed share"), tuple(rows))
    yield "All labels together: errors of opposite sign in different labels cancel here, not in the mean above."


def _reproduction(about: ModelMetadata) -> Iterator[Any]:
    commit = f" at commit {about.commit}" if about.commit else ""
    yield f"The same command with the same versions{commit} and data of the same digest gives the same model:"
    yield CardCode(about.command)
    yield _pairs(about.versions)
    if cells := about.evaluation["cells"]:
        yield f"Cells of the cross-validation in the store: {len(cells)}."
        yield CardCode("\n".join(cells))


def _pairs(values: Mapping[str, Any]) -> CardTable:
    return CardTable(("", "value"), tuple((name, _plain(value)) for name, value in values.items()))


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _title(metric: str) -> str:
    return METRICS[metric].title if metric in METRICS else metric


def _span(row: Mapping[str, Any]) -> str:
    return _brackets(row["low"], row["high"]).strip() or "–"


def _brackets(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
