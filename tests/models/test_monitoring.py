"""Monitoring of a saved model: what is compared, exit codes, wrong uses in one line each."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.models_for_use import LABELS, fit_settings, model_of, own_table
from multilab import cli
from multilab.models import DeploymentError, SavedModel
from multilab.models.monitoring import monitor_rows, quality_refusal
from multilab.statistics import DriftReport, HeldOutQuality, expected_quality, held_out_quality


def families(report: DriftReport) -> dict[str, int]:
    return report.table["family"].value_counts().to_dict()


def test_the_training_rows_have_no_drift_of_inputs_and_labels(model, own_csv):
    result = monitor_rows(model, pd.read_csv(own_csv))
    assert result.n_rows == result.n_predicted == 90
    # four features, two of them with holes; three labels
    assert families(result.report) == {"inputs": 6, "predictions": 3, "labels": 3, "calibration": 3}
    table = result.report.table
    same = table[table["family"].isin(["inputs", "labels"])]
    assert (same["effect"] == 0).all()
    assert same["p"].tolist() == pytest.approx([1.0] * 9)
    missing = table[(table["item"] == "age") & (table["quantity"] == "missing")].iloc[0]
    assert missing["reference"] == missing["new"] == pytest.approx(8 / 90)


def test_predictions_are_compared_with_held_out_probabilities(model):
    rows = own_table(60, seed=5)
    table = monitor_rows(model, rows).report.table
    table = table[table["family"] == "predictions"]
    sums = model.metadata.calibration["sums"]
    assert table["reference"].tolist() == pytest.approx((np.array(sums["scores"]).sum(axis=1) / 90).tolist())
    assert table["new"].tolist() == pytest.approx(model.predict_proba_frame(rows).mean().tolist())
    assert table["note"].iloc[0] == f"training prevalence {model.metadata.labels[0]['prevalence']:.3g}"


def test_calibration_errors_are_those_of_the_held_out_rows(model, own_csv):
    table = monitor_rows(model, pd.read_csv(own_csv)).report.table
    row = table[(table["family"] == "calibration") & (table["item"] == "tag_c")].iloc[0]
    sums = model.metadata.calibration["sums"]
    count, positives, scores = (np.array(sums[name][2]) for name in ("count", "positives", "scores"))
    if row["test"].endswith("1 bin"):
        assert row["reference"] == pytest.approx(abs(positives.sum() - scores.sum()) / count.sum())
    assert count.sum() == 90
    assert positives.sum() == model.metadata.labels[2]["positives"]


@pytest.mark.parametrize(
    ("family", "item", "quantity"),
    [
        ("inputs", "income", "values"),
        ("inputs", "town", "values"),
        ("inputs", "age", "missing"),
        ("inputs", "income", "missing"),
        ("labels", "tag_c", "prevalence"),
        ("calibration", "tag_a", "calibration"),
    ],
)
def test_planted_drift_is_named(model, family, item, quantity):
    table = own_table(80, seed=7)
    if item == "income" and quantity == "missing":  # cells that cannot be read are missing
        table["income"] = table["income"].astype(object).where(table.index % 2 == 0, "much")
    elif item == "income":
        table["income"] += 12
    elif item == "town":
        table["town"] = np.where(np.arange(80) % 2, "Hull", "Ely")
    elif item == "age":
        table.loc[::2, "age"] = np.nan
    elif family == "labels":
        table["tag_c"] = (np.arange(80) % 10 > 0).astype(int)
    else:
        table["tag_a"] = 1 - table["tag_a"]
    drifted = monitor_rows(model, table).report.drifted
    assert (family, item, quantity) in set(drifted[["family", "item", "quantity"]].itertuples(index=False, name=None))
    if item == "town":
        assert "not in the reference: 'Hull'" in drifted.set_index("item").loc["town", "note"]


def test_without_labels_the_rest_is_tested(model):
    result = monitor_rows(model, own_table(60, seed=5).drop(columns=LABELS))
    assert families(result.report) == {"inputs": 6, "predictions": 3}
    assert result.notes == ("no label columns: prevalence and calibration of the true labels were not tested",)


def test_some_labels_and_unobserved_ones(model):
    table = own_table(60, seed=5).drop(columns="tag_b")
    table["tag_a"] = table["tag_a"].astype(float)
    table.loc[:19, "tag_a"] = np.nan
    report = monitor_rows(model, table).report.table.set_index(["family", "item"])
    assert [item for family, item in report.index if family == "labels"] == ["tag_a", "tag_c"]
    assert report.loc[("labels", "tag_a"), "new"] == table["tag_a"][20:].mean()
    assert np.isnan(report.loc[("calibration", "tag_b"), "p"])


def test_rows_that_the_model_refuses_are_counted(own_csv):
    loaded = model_of(fit_settings())
    strict = SavedModel(loaded.estimator, replace(loaded.encoder, learned=False), loaded.metadata)
    table = own_table(60, seed=5)
    table.loc[:9, "income"] = np.nan
    complete = int(table.notna().all(axis=1).sum())
    result = monitor_rows(strict, table)
    assert (result.n_rows, result.n_predicted) == (60, complete)
    assert complete < 50
    assert any(note.startswith(f"{60 - complete} rows") for note in result.notes)
    assert monitor_rows(loaded, table).n_predicted == 60
    table["income"] = np.nan
    assert monitor_rows(strict, table).n_predicted == 0


def test_repeated_splits_do_not_multiply_the_rows(model, own_csv):
    about = model.metadata
    twice = [{**row, "predicted": 2 * row["predicted"], "observed": 2 * row["observed"]} for row in about.per_label]
    sums = {name: (2 * np.array(values)).tolist() for name, values in about.calibration["sums"].items()}
    repeated = replace(
        about,
        per_label=twice,
        calibration={**about.calibration, "sums": sums},
        evaluation={**about.evaluation, "test_rows": 180},
    )
    rows = own_table(60, seed=5)
    results = [
        monitor_rows(SavedModel(model.estimator, model.encoder, which), rows).report.table
        for which in (about, repeated)
    ]
    pd.testing.assert_frame_equal(*results)


def test_scores_that_are_no_probabilities_have_no_calibration(model):
    about = replace(model.metadata, score_kind="score", calibration={**model.metadata.calibration, "sums": None})
    result = monitor_rows(SavedModel(model.estimator, model.encoder, about), own_table(60, seed=5))
    assert "calibration" not in families(result.report)
    rows = result.report.table[result.report.table["family"] == "predictions"]
    assert rows["reference"].tolist() == [row["predicted"] / 90 for row in model.metadata.per_label]
    assert rows["new"].tolist() == model.predict_frame(own_table(60, seed=5))[LABELS].mean().tolist()
    assert "the model has no held-out probabilities: calibration was not tested" in result.notes


def test_exit_codes_table_and_json(model_path, tmp_path, capsys):
    calm, changed = tmp_path / "calm.csv", tmp_path / "changed.csv"
    own_table(60, seed=5).to_csv(calm, index=False)
    own_table(60, seed=5).assign(income=own_table(60)["income"] + 12).to_csv(changed, index=False)
    assert cli.main(["monitor", str(model_path), str(calm)]) == 0
    text = capsys.readouterr().out
    assert "calm.csv: 60 rows, compared with 90 training rows" in text
    assert "no drift: 15 tests; without drift the probability of any report is at most 0.05" in text
    target = tmp_path / "drift.json"
    assert cli.main(["monitor", str(model_path), str(changed), "--output", str(target)]) == 1
    assert "income  values" in " ".join(capsys.readouterr().out.split()).replace(" values", "  values")
    content = json.loads(target.read_text())
    assert content["drift"] is True
    assert content["dataset"] == "mine"
    assert next(test["item"] for test in content["tests"] if test["drift"]) == "income"
    # the minimal effect is an option: nothing is as large as 1
    assert cli.main(["monitor", str(model_path), str(changed), "--min-effect", "1", "--all"]) == 0
    assert "all tests" in capsys.readouterr().out


def wrong_uses(tmp_path):
    good = own_table(60, seed=5)
    tables = {
        "empty.csv": good.head(0),
        "lacking.csv": good.drop(columns="age"),
        "extra.csv": good.assign(weight=1),
        "label.csv": good.assign(tag_a=2),
        "good.csv": good,
    }
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
    path = {name: str(tmp_path / name) for name in tables}
    return [
        (["monitor", "MODEL", str(tmp_path / "absent.csv")], "absent.csv"),
        (["monitor", str(tmp_path / "nothing"), path["good.csv"]], "no such folder"),
        (["monitor", str(tmp_path), path["good.csv"]], "no model of `multilab fit`"),
        (["monitor", "MODEL", path["empty.csv"]], "row"),
        (["monitor", "MODEL", path["lacking.csv"]], "columns of the training data are missing: 'age'"),
        (["monitor", "MODEL", path["extra.csv"]], "columns that the training data did not have: 'weight'"),
        (["monitor", "MODEL", path["label.csv"]], "label column 'tag_a', row 1: 2 is not 0 or 1"),
        (["monitor", "MODEL", path["good.csv"], "--level", "0"], "'--level': 0.0 is not in the range 0<x<1"),
        (
            ["monitor", "MODEL", path["good.csv"], "--min-effect", "3"],
            "'--min-effect': 3.0 is not in the range",
        ),
        (["card", str(tmp_path / "nothing")], "no such folder"),
        (["card", "MODEL", "-o", "/proc/nowhere/card.md"], "card.md"),
    ]


def test_wrong_uses_give_one_line_and_exit_code_2(model_path, tmp_path, capsys):
    for argv, message in wrong_uses(tmp_path):
        code = cli.main([str(model_path) if argument == "MODEL" else argument for argument in argv])
        output = capsys.readouterr()
        assert code == 2, argv
        assert message in output.err or argv[-1].startswith("/proc"), (argv, output.err)
        assert output.err.strip().count("\n") == 0, output.err
        assert "Traceback" not in output.err


def test_no_rows_are_refused(model):
    with pytest.raises(DeploymentError, match="there are no rows to monitor"):
        monitor_rows(model, own_table(60).head(0))


def test_quality_is_that_of_the_probabilities_and_decisions(model, own_csv):
    rows = own_table(60, seed=5).drop(columns=LABELS)
    quality = monitor_rows(calibrated(model), rows, by="town").quality
    scores, decisions = model.predict_proba_frame(rows), model.predict_frame(rows)[LABELS]
    known = HeldOutQuality.from_dict(calibrated(model).metadata.calibration["quality"])
    expected = expected_quality(scores, decisions, known)
    overall = quality[quality["group"] == ""]
    np.testing.assert_allclose(overall[["expected", "low", "high"]], expected[["expected", "low", "high"]])
    assert overall["label"].tolist() == ["", "", *LABELS, *LABELS, *LABELS]
    for town, count in rows["town"].value_counts().items():
        part = quality[quality["group"] == town].set_index("quantity")
        here = (rows["town"] == town).to_numpy()
        again = expected_quality(scores[here], decisions[here], known).set_index("quantity")
        assert part["rows"].tolist() == [count, count]
        assert part["expected"].to_dict() == pytest.approx(again.loc[["micro_f1", "macro_f1"], "expected"].to_dict())


def test_numbers_are_cut_into_quarters_and_identifiers_are_columns_too(model):
    rows = own_table(60, seed=5)
    for column in ("income", "id"):
        quality = monitor_rows(calibrated(model), rows, by=column).quality
        sizes = quality[(quality["group"] != "") & (quality["quantity"] == "micro_f1")]["rows"]
        assert len(sizes) == 4
        assert sizes.sum() == 60
    with pytest.raises(DeploymentError):
        monitor_rows(model, rows, by="none")


def calibrated(model: SavedModel) -> SavedModel:
    """Return the model with a record of held-out rows in which the probabilities are right."""
    rows = own_table(60, seed=8)
    scores, decisions = model.predict_proba_frame(rows).to_numpy(), model.predict_frame(rows)[LABELS].to_numpy()
    known = held_out_quality(np.random.default_rng(0).random(scores.shape) < scores, scores, decisions)
    right = replace(known, hits=known.expected.hits, positives=known.expected.positives)
    calibration = {**model.metadata.calibration, "quality": right.to_dict()}
    return SavedModel(model.estimator, model.encoder, replace(model.metadata, calibration=calibration))


def test_quality_is_refused_where_the_calibration_does_not_allow_it(model):
    rows = own_table(60, seed=5)
    right = calibrated(model).metadata.calibration
    assert quality_refusal(calibrated(model)) == ""
    half = {**right["quality"], "hits": (np.array(right["quality"]["hits"]) / 2).tolist()}
    changes = {
        "other scores": {"score_kind": "score", "calibration": {**right, "sums": None, "quality": None}},
        "an earlier version": {"calibration": {name: right[name] for name in ("edges", "labels", "sums")}},
        "a large miss": {"calibration": {**right, "quality": half}},
    }
    for name, change in changes.items():
        other = SavedModel(model.estimator, model.encoder, replace(model.metadata, **change))
        result = monitor_rows(other, rows)
        assert result.quality.empty, name
        assert "\n" not in quality_refusal(other) != "", name
        assert any(quality_refusal(other) in note for note in result.notes), name
        assert result.to_dict()["expected_quality"] == []


def test_the_fit_records_what_its_held_out_rows_let_expect(model):
    recorded = HeldOutQuality.from_dict(model.metadata.calibration["quality"])
    about = pd.DataFrame(model.metadata.per_label)
    assert recorded.expected.predicted.tolist() == about["predicted"].tolist()
    assert recorded.positives.tolist() == about["count"].tolist()
    np.testing.assert_allclose(recorded.true["recall"], about["recall"], rtol=0, atol=1e-12)
    sums = model.metadata.calibration["sums"]
    np.testing.assert_allclose(recorded.expected.positives, np.sum(sums["scores"], axis=1), rtol=0, atol=1e-9)


def test_the_command_prints_and_writes_quality_by_a_column(model, tmp_path, capsys):
    path = calibrated(model).save(tmp_path / "model")
    own_table(60, seed=5).drop(columns=LABELS).to_csv(tmp_path / "new.csv", index=False)
    target = tmp_path / "drift.json"
    assert cli.main(["monitor", str(path), str(tmp_path / "new.csv"), "--by", "town", "--output", str(target)]) == 0
    printed = capsys.readouterr().out
    content = json.loads(target.read_text())["expected_quality"]
    groups = {row["group"] for row in content}
    assert groups == {"", "Bath", "Ely", "York"}
    (micro,) = (row for row in content if (row["group"], row["quantity"]) == ("", "micro_f1"))
    assert f"{micro['expected']:.3f} ({micro['low']:.3f} to {micro['high']:.3f})" in printed
    assert cli.main(["monitor", str(path), str(tmp_path / "new.csv"), "--by", "city"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
