"""The card of a model: what it must state, and that nothing from the data is markup."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from helpers.models_for_use import LABELS
from multilab import cli
from multilab.models.model_card import model_card
from multilab.models.model_limits import known_weaknesses, prediction_warnings


def section(text: str, title: str) -> str:
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_card_states_the_metadata(model):
    about, text = model.metadata, model_card(model.metadata).markdown()
    assert text.startswith(f"# {about.method['title']} on mine\n")
    assert "- training rows: 90" in text
    data = section(text, "Data")
    assert about.dataset["digest"] in data
    assert about.dataset["card_digest"] in data
    assert "| age | number | 18 to 89, mean" in data
    assert "8.9 %" in data  # holes of the file, before they were imputed
    row = about.metrics["macro_f1"]
    line = f"| Macro F1 | higher | {row['mean']:.3f} | [{row['low']:.3f}, {row['high']:.3f}] | {row['std']:.3f} |"
    assert line in section(text, "Metrics")
    labels = section(text, "Labels")
    for name, entry in zip(LABELS, about.per_label, strict=True):
        assert f"{entry['f1']:.3f} [{entry['f1_low']:.3f}, {entry['f1_high']:.3f}]" in labels
        assert f"| {name} |" in labels
    assert "tuned for Macro F1 on out-of-fold scores" in section(text, "Decision rule")
    assert "it cannot be measured itself" in section(text, "Intended use and limits")
    reproduction = section(text, "Versions and reproduction")
    assert "multilab fit --dataset mine --method mlknn" in reproduction
    assert " --decision macro_f1" in reproduction
    assert all(key in reproduction for key in about.evaluation["cells"])
    assert f"| scikit-learn | {about.versions['scikit-learn']} |" in reproduction


def test_counts_of_the_calibration_table_are_those_of_all_cells(model):
    table = section(model_card(model.metadata).markdown(), "Calibration")
    counts = [int(line.split("|")[2]) for line in table.splitlines() if re.match(r"\| [\d.]+ to", line)]
    assert sum(counts) == 90 * 3


def planted(about, **changes):
    """Return metadata whose first label has other values in its table."""
    first, *rest = about.per_label
    return replace(about, per_label=[{**first, **changes}, *rest])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"predicted": 0}, r"Never predicted on held-out rows \(\d of 3\): tag_a\b"),
        ({"auc_low": 0.49}, r"Not ranked better than by chance \(\d of 3.*: tag_a\b"),
        ({"brier_score": 0.4}, r"Probabilities no better than the prevalence alone \(\d of 3.*: tag_a\b"),
        ({"f1": 0.1}, r"Decisions no better than predicting the label for every row \(\d of 3.*: tag_a\b"),
        ({"f1_low": 0.1, "f1_high": 0.9}, r"F1 uncertain by more than 0\.2 \(\d of 3.*: tag_a\b"),
        ({"calibration_error": 0.3}, r"Calibration error of at least 0\.1 \(\d of 3.*: tag_a\b"),
    ],
)
def test_planted_weaknesses_are_named(model, changes, sentence):
    healthy = {
        "predicted": 40,
        "auc_low": 0.8,
        "brier_score": 0.05,
        "f1": 0.9,
        "f1_low": 0.85,
        "f1_high": 0.95,
        "calibration_error": 0.02,
    }
    pattern = re.compile(sentence)
    without = known_weaknesses(planted(model.metadata, **healthy))
    assert not any(pattern.search(line) for line in without)
    weak = known_weaknesses(planted(model.metadata, **{**healthy, **changes}))
    assert any(pattern.search(line) for line in weak)


def test_labels_assigned_far_too_often_come_first(model):
    healthy = replace(model.metadata, per_label=[{**r, "predicted": r["count"]} for r in model.metadata.per_label])
    often = planted(healthy, observed=100, count=16, predicted=95)
    sentence = (
        "Labels assigned to far too many of the held-out rows: tag_a (assigned to 95 %, 16 % have it). Do not use the "
        "decisions for it."
    )
    assert known_weaknesses(often)[0] == sentence
    weaknesses = section(model_card(often).markdown(), "Known weaknesses").strip()
    assert weaknesses.splitlines()[0].replace("\\", "") == f"- {sentence}"
    assert not known_weaknesses(planted(healthy, observed=100, count=16, predicted=40))[0].startswith("Labels")


def test_predictions_are_compared_with_the_training_rows(model):
    shares = [{**row, "prevalence": share} for row, share in zip(model.metadata.labels, (0.1, 0.5, 0.3), strict=True)]
    healthy = [{**row, "predicted": row["count"]} for row in model.metadata.per_label]
    about = replace(model.metadata, labels=shares, per_label=healthy)
    decisions = np.zeros((40, 3), dtype=np.uint8)
    decisions[:12, 0], decisions[:, 1] = 1, 1  # .3 of .1 is the limit; no share exceeds that of one half
    assert prediction_warnings(about, decisions.mean(axis=0), 40) == []
    decisions[12, 0] = 1
    assert prediction_warnings(about, decisions.mean(axis=0), 40) == [
        "Labels assigned to far too many of these rows, compared with the training rows: tag_a (assigned to 32 %, 10 % "
        "have it). Do not use the decisions for it."
    ]
    assert prediction_warnings(about, np.ones(3), 5) == []  # five rows say nothing
    held = replace(about, per_label=planted(about, observed=90, count=9, predicted=80).per_label)
    assert len(prediction_warnings(held, decisions.mean(axis=0), 40)) == 1
    assert "of the held-out rows: tag_a (assigned to 89 %" in prediction_warnings(held, np.ones(3), 5)[0]


def test_rare_and_absent_labels_are_named(model):
    about = model.metadata
    rare = [{**about.labels[0], "positives": 3}, {**about.labels[1], "positives": 0}, about.labels[2]]
    lines = known_weaknesses(replace(about, labels=rare))
    assert "No training row has tag_b: the model cannot know it." in lines
    assert any(
        line.startswith("Rare labels (2 of 3), with fewer than 20") and "tag_a and tag_c." in line for line in lines
    )
    small = known_weaknesses(replace(about, evaluation={**about.evaluation, "splits": 1}))
    assert any("only one split" in line for line in small)


def test_nothing_from_the_data_is_markup(model):
    about = model.metadata
    hostile = {
        **about.dataset,
        "title": "<script>alert(1)</script> | `x` [a](http://b)\n# head",
        "notes": "\x1b[31m**b**",
    }
    card = model_card(replace(about, dataset=hostile))
    text = card.markdown()
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "[a](http" not in text
    assert "\x1b" not in text
    assert "\n# head" not in text
    assert "\\*\\*b\\*\\*" in text
    page = card.html()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_page_is_self_contained(model):
    page = model_card(model.metadata).html()
    assert not re.search(r"(?:src|href)=\"(?!#)", page)
    assert page.count("<section id=") == 9
    assert "@import" not in page


def test_many_labels_and_features_are_shortened(model):
    about = model.metadata
    names = [f"l{k}" for k in range(150)]
    many = replace(
        about,
        label_names=names,
        labels=[{"name": name, "observed": 90, "positives": 20 + k, "prevalence": 0.3} for k, name in enumerate(names)],
        per_label=[{**about.per_label[0], "label": name} for name in names],
        thresholds=dict.fromkeys(names, 0.5),
        features=about.features * 10,
    )
    text = model_card(many).markdown()
    assert "The 50 most and least frequent of 150 labels" in text
    assert "| l149 | 169 |" in text
    assert "| l0 | 20 |" in text
    assert "| l75 |" not in text
    assert "The first 20 of 40 features" in text
    unused = replace(many, per_label=[{**row, "predicted": 0} for row in many.per_label])
    (never,) = (line for line in known_weaknesses(unused) if line.startswith("Never predicted"))
    assert never.startswith("Never predicted on held-out rows (150 of 150): l0, l1,")
    assert never.endswith(", l17, l18 and 131 others.")


def test_the_five_most_frequent_texts_of_a_feature_are_shown(model):
    counts = {"Ely": 3, "York": 9, "Bath": 7, "Ripon": 1, "Wells": 5, "Truro": 2, "Lincoln": 4}
    feature = {"name": "town", "kind": "text", "counts": counts, "missing": 0.0}
    data = section(model_card(replace(model.metadata, features=[feature])).markdown(), "Data")
    assert "| town | text | York (9), Bath (7), Wells (5), Lincoln (4), Ely (3) and 2 more | 0.0 % |" in data


def test_the_command_writes_markdown_or_a_page(model_path, tmp_path, capsys):
    assert cli.main(["card", str(model_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# ML-kNN")
    assert cli.main(["card", str(model_path), "-o", str(tmp_path / "card.md")]) == 0
    assert (tmp_path / "card.md").read_text() == printed
    for arguments in (["-o", str(tmp_path / "a.html")], ["--html", "-o", str(tmp_path / "b")]):
        assert cli.main(["card", str(model_path), *arguments]) == 0
    assert (tmp_path / "a.html").read_text() == (tmp_path / "b").read_text()
    assert (tmp_path / "b").read_text().startswith("<!DOCTYPE html>")
