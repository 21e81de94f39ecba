"""The commands from a table to a decision, and one line for each wrong use."""

from __future__ import annotations

import os
import shutil

import pandas as pd
import pytest

from helpers.models_for_use import LABELS, fit_settings, model_of
from multilab.cli import main
from multilab.metrics import METRICS
from multilab.models import DeploymentError, SavedModel
from multilab.models.explaining import coefficient_table, labels_of_rows, permutation_table


@pytest.fixture
def folder(tmp_path, monkeypatch, own_csv):
    """Work in an empty folder with an MLflow store of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULTILAB_JOBS", "1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    return tmp_path


def test_fit_registers_and_predict_reads(folder, own_csv, capsys):
    model = ["--dataset", "mine", "--method", "mlknn", "--decision", "micro_f1"]
    command = ["fit", *model, "--cv", "2", "--tune", "2", "--tune-folds", "2"]
    assert main([*command, "--register", "mine", "--output", "model"]) == 0
    text = capsys.readouterr().out
    assert "ML-kNN, micro f1 on mine, 2 splits, mean and 95 % interval" in text
    assert "registered as mine version 1: the first one, so @champion" in text
    about = SavedModel.load("model").metadata
    assert about.tuning["best"].keys() <= {"estimator__k", "estimator__s"}
    assert about.evaluation["splits"] == 2
    assert main(["predict", "models:/mine@champion", str(own_csv), "-o", "out.csv"]) == 0
    assert "out.csv: 90 rows, 3 labels" in capsys.readouterr().out
    table = pd.read_csv("out.csv")
    assert list(table) == ["id", *LABELS, *(f"{name}_probability" for name in LABELS)]
    assert list(table["id"]) == list(pd.read_csv(own_csv)["id"])
    assert main(["predict", "model", str(own_csv)]) == 0
    assert capsys.readouterr().out == (folder / "out.csv").read_text()


@pytest.mark.slow
def test_fit_decides_by_costs_of_calibrated_scores(folder):
    model = ["--dataset", "mine", "--method", "br_logistic", "--cost", "fp=3,fn=1"]
    assert main(["fit", *model, "--cv", "2", "--output", "model"]) == 0
    about = SavedModel.load("model").metadata
    assert set(about.thresholds.values()) == {0.75}
    assert about.decision["calibration"] == "sigmoid"


def test_explain_names_the_column_that_decides(folder, model_path, own_csv, capsys):
    assert (
        main(["explain", str(model_path), str(own_csv), "--label", "tag_b", "--repeats", "3", "-o", "table.csv"]) == 0
    )
    assert "label 'tag_b': macro_auc" in capsys.readouterr().out
    assert pd.read_csv("table.csv")["name"].iloc[0] == "income"


def test_coefficients_and_permutation_importance_agree(own_csv):
    linear = model_of(fit_settings("br_logistic"))
    table = coefficient_table(linear, "tag_b")
    assert table["feature"].iloc[0] == "income"
    assert set(table["feature"]) == {"age", "town=Bath", "town=Ely", "town=York", "income", "member"} | {
        "age is missing",
        "town is missing",
    }
    rows = pd.read_csv(own_csv)
    dense = permutation_table(linear, rows, "tag_b", n_repeats=2)
    assert dense["column"].iloc[0] == "income"
    assert dense.attrs["metric"] == "macro_auc"
    for explained in (
        lambda label: coefficient_table(linear, label),
        lambda label: permutation_table(linear, rows, label),
    ):
        with pytest.raises(DeploymentError, match="no label is called 'tag_z'"):
            explained("tag_z")


def test_a_function_explains_as_the_metric_that_it_is(own_csv):
    def by_label(Y, scores):
        return METRICS["macro_auc"].function(Y, scores)

    linear, rows = model_of(fit_settings("br_logistic")), pd.read_csv(own_csv)
    expected = permutation_table(linear, rows, "tag_b", n_repeats=2)
    table = permutation_table(linear, rows, "tag_b", metric=by_label, n_repeats=2)
    pd.testing.assert_frame_equal(table, expected)
    assert table.attrs == {**expected.attrs, "metric": "by_label"}


def test_rows_without_a_label_are_left_out_of_an_explanation(model, model_path, own_csv, folder, capsys):
    table = pd.read_csv(own_csv)
    table.loc[[0, 3, 4], "tag_b"] = None
    observed = table.drop(index=[0, 3, 4])
    table.to_csv("holes.csv", index=False)
    options = {"n_repeats": 2, "metric": "macro_f1"}
    expected = permutation_table(model, observed, "tag_b", **options)
    table = permutation_table(model, model.read("holes.csv"), "tag_b", **options)
    pd.testing.assert_frame_equal(table, expected)
    assert table.attrs == expected.attrs
    assert main(["explain", str(model_path), "holes.csv", "--label", "tag_b", "--repeats", "1"]) == 0
    assert "on 87 rows (3 others have no label); loss when" in capsys.readouterr().out
    every = permutation_table(model, model.read("holes.csv"), n_repeats=1)  # a row with two of three labels counts
    Y = labels_of_rows(model.read("holes.csv"), LABELS)
    scores = model.predict_proba_frame(model.read("holes.csv")).to_numpy()
    assert every.attrs == {"metric": "macro_auc", "value": METRICS["macro_auc"].function(Y, scores), "rows": 90}
    assert (Y == -1).sum() == 3


@pytest.mark.parametrize(("cell", "shown"), [(0.5, "'0.5'"), ("perhaps", "'perhaps'"), (2, "'2'")])
def test_a_label_that_is_no_label_is_shown_as_text(model, own_csv, cell, shown):
    table = pd.read_csv(own_csv).astype({"tag_b": object})
    table.loc[2, "tag_b"] = cell
    with pytest.raises(DeploymentError, match=f"label 'tag_b', row 3: {shown} is not 0 or 1"):
        labels_of_rows(table, LABELS)


@pytest.mark.slow
def test_a_text_is_explained_by_what_to_fit_and_the_column_of_tags_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    remarks = ["waves of the blue sea by night", "drums and shouts in a loud hall"] * 30
    rows = pd.DataFrame({"remark": [f"{remark} {k}" for k, remark in enumerate(remarks)], "day": "3.11.2025"})
    rows["day"] = [f"{1 + k // 2 % 28}.{11 + k // 2 % 2}.2025" for k in range(60)]  # says nothing of the tags
    rows.assign(tags=["calm", "loud"] * 30).to_csv("songs.csv", index=False)
    rows.to_csv("new.csv", index=False)
    assert main(["datasets", "add", "songs.csv", "--tags", "tags", "--columns", "remark=text"]) == 0
    fit = ["fit", "--dataset", "songs", "--cv", "2", "--output", "model", "--method"]
    assert main([*fit, "relm"]) == 0
    assert "its scores are not probabilities; fit with --calibration sigmoid" in capsys.readouterr().out
    assert main(["explain", "model", "songs.csv", "--label", "calm", "--repeats", "1"]) == 0
    assert "for the words of remark, fit a method that is linear per label" in capsys.readouterr().out
    assert main(["explain", "model", "new.csv", "--label", "calm"]) == 2
    assert "the rows have no column 'tags'" in capsys.readouterr().err
    assert main(["card", "model"]) == 0
    card = capsys.readouterr().out
    assert "| remark | text | 6 to 8 words, mean 7." in card
    assert "| day | date | 2025-11-01 to 2025-12-28, mean 2025-11-2" in card
    assert main([*fit, "br_linear_svm"]) == 0
    assert main(["explain", "model", "songs.csv", "--label", "calm", "--repeats", "1", "-o", "words.csv"]) == 0
    assert "on scaled features" in capsys.readouterr().out
    written = pd.read_csv("words.csv")
    assert list(written["kind"].unique()) == ["permutation importance", "coefficient"]
    assert written.set_index("name")["value"]["remark=sea"] > 0 > written.set_index("name")["value"]["remark=loud"]


def test_no_label_at_all_is_refused(model, own_csv):
    table = pd.read_csv(own_csv).assign(tag_b=None)
    with pytest.raises(DeploymentError, match="no row has a label"):
        permutation_table(model, table, "tag_b")


READERS = {
    "out": pd.read_csv,
    "out.csv": pd.read_csv,
    "out.TSV": lambda path: pd.read_csv(path, sep="\t"),
    "out.json": pd.read_json,
    "out.jsonl": lambda path: pd.read_json(path, lines=True),
    "out.parquet": pd.read_parquet,
}


@pytest.mark.parametrize("name", READERS)
def test_a_table_has_the_format_that_its_name_says(model, model_path, own_csv, folder, name):
    assert main(["predict", str(model_path), str(own_csv), "-o", name]) == 0
    found, rows = READERS[name](name), pd.read_csv(own_csv)
    assert list(found.pop("id").astype(str)) == list(rows["id"].astype(str))  # of Parquet they are text
    pd.testing.assert_frame_equal(found, model.predict_frame(rows))
    assert main(["explain", str(model_path), str(own_csv), "--repeats", "1", "-o", name]) == 0
    assert list(READERS[name](name)) == ["kind", "name", "value", "std"]


def test_no_command_overwrites_what_it_reads(model_path, own_csv, folder, capsys):
    shutil.copy(own_csv, "rows.csv")
    shutil.copytree(model_path, "model")
    os.symlink("rows.csv", "symbolic.csv")
    os.link("rows.csv", "hard.csv")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for name in ("rows.csv", "./rows.csv", str(folder / "rows.csv"), "symbolic.csv", "hard.csv"):
        for argv in (
            ["predict", "model", "rows.csv", "-o", name],
            ["explain", "model", "rows.csv", "-o", name],
            ["monitor", "model", "rows.csv", "-o", name],
        ):
            assert main(argv) == 2, argv
            assert f"{name} is read by this command: name another file" in capsys.readouterr().err
    assert main(["monitor", "model", "rows.csv", "--output", "model/metadata.json"]) == 2
    os.rename("model", "model.md")
    os.rename("model.md/metadata.json", "model.md/metadata.md")
    assert main(["card", "model.md", "-o", "model.md/metadata.md"]) == 2
    assert "is read by this command" in capsys.readouterr().err
    os.rename("model.md/metadata.md", "model.md/metadata.json")
    os.rename("model.md", "model")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


WRONG = [
    (["fit", "--dataset", "mine", "--tune", "3"], "--method"),
    (["fit", "--dataset", "mine", "--set", "k=3"], "--method"),
    (["fit", "--dataset", "mine", "--budget", "1m", "--method", "mlknn"], "--method"),
    (["fit", "--dataset", "mine", "--metric", "f1"], "no metric is called 'f1'"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--tune", "many"], "'--tune': 'many' is not a valid integer"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--level", "2"], "2.0 is not in the range 0<x<1"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--register"], "'--register' requires an argument"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--set", "k"], "'k' is not of the form k=10"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--set", "kk=3"], "mlknn has no argument kk"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--decision", "f1"], "no objective is called 'f1'"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--calibration", "platt"], "no calibration is called 'platt'"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--metric", "f1"], "no metric is called 'f1'"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--cost", "fp=1,fn"], "'fp=1,fn' is not of the form fp=1,fn=5"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--cost", ""], "must be a pair"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--cost", "fp=1,fn=-5"], "must be >= 0"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--cost", "fp=1,fn=5", "--decision", "micro_f1"], "one of them"),
    (["fit", "--dataset", "mine", "--cost", "fp=1,fn=5"], "--method"),
    (["fit", "--dataset", "mines", "--method", "mlknn"], "no dataset is called 'mines'; did you mean 'mine'?"),
    (["fit", "--dataset", "mine", "--method", "knn"], "no method is called 'knn'"),
    (["predict", "nothing", "{csv}"], "nothing: no such folder"),
    (["predict", ".", "{csv}"], "no model of `multilab fit`"),
    (["predict", "models:/mine@champion", "{csv}"], "there is no MLflow store"),
    (["predict", "{model}", "none.csv"], "none.csv"),
    (["predict", "{model}", "short.csv"], "columns of the training data are missing: 'age', 'town', 'income'"),
    (["predict", "{model}", "wide.csv"], "columns that the training data did not have: 'height'"),
    (["predict", "{model}", "wrong.csv", "--strict"], "column 'income', row 1: 'much' is not a finite number"),
    (["predict", "{model}", "rows.docx"], "unknown extension '.docx'"),
    (["predict", "{model}", "./"], "./: it is a folder, not a data file; only fit and predict read"),
    (["predict", "{model}", "./nosuch/"], "./nosuch/: there is no such file or folder; check the path"),
    (["monitor", "{model}", "./nosuch/"], "./nosuch/: there is no such file or folder; check the path"),
    (["explain", "{model}", "nosuch"], "nosuch: there is no such file or folder; check the path"),
    (["fit", "--dataset", "./nosuch/", "--method", "br_sgd"], "./nosuch/: there is no such file or folder"),
    (["card", "./nosuch/"], "./nosuch/: no such folder"),
    (["explain", "{model}", "{csv}", "--label", "tag_z"], "no label is called 'tag_z'"),
    (["explain", "{model}", "new.csv", "--label", "tag_a"], "the rows have no column 'tag_a'"),
    (["explain", "{model}", "{csv}", "--metric", "f1"], "no metric is called 'f1'"),
    (["explain", "{model}", "{csv}", "--repeats", "0"], "repeats=0: give at least 1"),
    (["predict", "{model}", "{csv}", "-o", "out.xlsx"], "out.xlsx: tables are written as .csv, .tsv, .json"),
    (["predict", "{model}", "{csv}", "-o", "out.csv.gz"], "out.csv.gz: tables are written as .csv, .tsv, .json"),
    (["predict", "{model}", "{csv}", "-o", "/dev/null"], "/dev/null is a device: name a file to write"),
    (["monitor", "{model}", "{csv}", "-o", "./"], "./ is a folder: name a file to write"),
    (["explain", "{model}", "{csv}", "-o", "out.html"], "out.html: tables are written as .csv, .tsv, .json"),
    (["card", "{model}", "-o", "card.pdf"], "card.pdf: a card is written as .md or .html, not as .pdf"),
    (["fit", "--dataset", "mine", "--method", "mlknn", "--output", "rows.docx"], "--output rows.docx is a file"),
    (["serve", "{model}", "--max-mb", "0"], "max-mb 0: give a number above 0"),
    (["serve", "nothing"], "nothing: no such folder"),
    (["serve", "{model}", "--port", "70000"], "port 70000: give a number from 0 to 65535"),
]


@pytest.mark.parametrize(("argv", "message"), WRONG, ids=[" ".join(argv) for argv, _ in WRONG])
def test_wrong_uses_are_refused_in_one_line(folder, model_path, own_csv, capsys, argv, message):
    (folder / "short.csv").write_text("member\ntrue\n")
    (folder / "wide.csv").write_text("age,town,income,member,height\n30,York,3,true,9\n")
    (folder / "wrong.csv").write_text("age,town,income,member\n30,York,much,true\n")
    (folder / "new.csv").write_text("age,town,income,member\n30,York,3,true\n")
    (folder / "rows.docx").write_text("x")
    arguments = [part.format(csv=own_csv, model=model_path) for part in argv]
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert message in error[-1]
    assert "Traceback" not in "".join(error)
    assert not (folder / "mlflow.db").exists()
