"""A table larger than memory: read in batches, fitted, scored on rows that were held out, saved as any model."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import SGDClassifier

from multilab.cells import Scaling
from multilab.cells.method import Method, load_method
from multilab.cli import main
from multilab.datasets import DatasetError, TableEncoder
from multilab.datasets.options import reading_of
from multilab.datasets.parquet_table import ParquetTable, is_large
from multilab.methods.errors import MethodError
from multilab.methods.transformation._binary import seeded
from multilab.models import DeploymentError, SavedModel
from multilab.models.fit_large import large_table, large_table_model

LABELS = ["tag_a", "tag_b"]


class Foreign(SGDClassifier):
    """A class that is not among the trusted ones."""


def rows(n=1200, seed=0):
    random = np.random.default_rng(seed)
    x, town = random.normal(size=n), random.choice(["Bath", "Ely", "York"], size=n)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "x": np.where(random.random(n) < 0.1, np.nan, x).astype(np.float32),
            "town": town,
            "zip": random.choice([1, 23], size=n),
            "code": random.choice(["0", "1"], size=n),
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(random.integers(0, 500, n), unit="D"),
            "note": [f"{word} remark number {k} about the town" for k, word in enumerate(town)],
            # a category whose texts are all numbers in the later batches
            "release": np.where(np.arange(n) < 700, "beta", random.choice(["1.10", "2.0"], size=n)),
            "tag_a": x > 0,
            "tag_b": (town == "Ely").astype(np.int8),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    (tmp_path / "big").mkdir()
    table = rows()
    for k, part in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[part].to_parquet(tmp_path / "big" / f"part-{k}.parquet", row_group_size=150, index=False)
    return tmp_path


READER = {"label_columns": ["tag_*"], "drop": ["id"], "columns": {"zip": "category", "code": "category"}}
SETTINGS = {"seed": 0, "conventions": "default", "reader": READER}


def test_the_table_is_what_a_reader_of_one_file_makes_of_it(folder):
    rows().to_parquet("one.parquet", index=False)
    from multilab.datasets.file_access import Limits
    from multilab.datasets.parquet import read_parquet

    reader = {**READER, "columns": {**READER["columns"], "release": "category"}}
    whole = read_parquet("one.parquet", reading_of(reader), Limits(), {"zip", "code", "release"}).frame
    table = large_table("big", reader)
    assert table.n_rows == 1200
    assert [start for start, _ in table.batches(rows=100)][:3] == [0, 100, 150]  # batches end where row groups do
    parts = [part for _, part in table.batches(rows=100)]
    features = pd.concat([table.frame(part).astype(object) for part in parts], ignore_index=True)
    pd.testing.assert_frame_equal(features, whole[table.names].astype(object))
    np.testing.assert_array_equal(np.concatenate([table.labels_of(part) for part in parts]), whole[LABELS])


@pytest.mark.parametrize("name", ["relm", "br_sgd"])
def test_a_table_within_the_sample_gives_the_model_of_memory(folder, name, monkeypatch):
    """Encoder, scaler and method are those of the training rows, and the scores those of the other rows."""
    monkeypatch.setattr("multilab.models.fit_large.HELD_OUT_ROWS", 200)
    method = load_method(name)
    model = large_table_model(large_table("big", READER), method, SETTINGS)
    held = np.sort(np.random.default_rng(0).choice(1200, 1200, replace=False)[:200])
    train = np.setdiff1d(np.arange(1200), held)

    rows().to_parquet("one.parquet", index=False)
    whole = large_table("one.parquet", READER)
    (_, everything), *_ = whole.batches()
    frame, Y = whole.frame(everything), whole.labels_of(everything)
    encoder = TableEncoder.learn(frame.iloc[train], model.encoder.kinds, LABELS, ["id"])
    assert encoder.kinds["release"].name == "category"
    assert json.dumps(model.encoder.to_json()) == json.dumps(encoder.to_json())

    X = encoder.encode(frame).X
    X = Scaling(method.preprocessing, encoder.unscaled).fit(X[train]).transform(X)
    estimator = model.estimator.classifier
    if name == "relm":
        memory = type(estimator)(**estimator.get_params()).fit(X[train], Y[train])
        np.testing.assert_allclose(estimator.decision_function(X), memory.decision_function(X), rtol=1e-8, atol=1e-8)
    else:
        base = estimator.estimator
        assert isinstance(base, SGDClassifier)
        single = seeded(base, estimator.random_state, None)  # its draws decide the order of the rows
        stops = [0, 150, 300, 400, 550, 700, 800, 950, 1100, 1200]
        for start, stop in itertools.pairwise(stops):
            part = train[(train >= start) & (train < stop)]
            single.partial_fit(X[part], Y[part, 1], classes=[0, 1])
        np.testing.assert_allclose(estimator.predict_proba(X)[:, 1], single.predict_proba(X)[:, 1], rtol=1e-12)
    about = model.metadata
    accuracy = 1 - (estimator.predict(X[held]) != Y[held]).mean()
    assert about.metrics["hamming_loss"]["values"] == [pytest.approx(1 - accuracy)]
    assert about.evaluation["batches"] == {
        "rows": 65536,
        "sample_rows": 1000,
        "held_out_rows": 200,
        "training_rows": 1000,
    }
    assert [label["positives"] for label in about.labels] == Y[train].sum(axis=0).tolist()


def test_fit_and_predict_by_the_command_line(folder, capsys):
    command = ["fit", "--dataset", "./big", "--labels", "tag_*", "--drop", "id", "--columns", "zip=category"]
    assert main([*command, "--method", "relm", "--set", "n_hidden=60", "-o", "model"]) == 0
    output = capsys.readouterr()
    assert "./big: 1,200 rows x 9 columns, so it is read in batches of rows" in output.out
    assert "RELM on big, 240 rows held out" in output.out
    assert "fitted on 960 rows, 2 labels" in output.out
    rows(50, seed=1).drop(columns=LABELS).to_parquet("new.parquet")
    assert main(["predict", "model", "new.parquet", "-o", "out.csv"]) == 0
    capsys.readouterr()
    predicted = pd.read_csv("out.csv")
    assert (predicted["tag_b"] == rows(50, seed=1)["tag_b"]).mean() > 0.9
    model = SavedModel.load("model")
    assert model.metadata.method["params"]["n_hidden"] == 60
    assert main(["card", "model"]) == 0
    card = capsys.readouterr().out
    assert "measured with this model on 240 rows" in card
    assert "multilab fit --dataset ./big --method relm --set n_hidden=60 --labels 'tag_*' --drop id" in card


def test_a_model_that_cannot_be_saved_is_refused_before_the_long_pass(folder, monkeypatch):
    """A class that is not trusted, and an argument that is wrong."""
    table, passes = large_table("big", READER), []
    batches = table.batches
    monkeypatch.setattr(table, "batches", lambda: passes.append(1) or batches())
    foreign = Method("foreign", "multilab.methods.BinaryRelevance", {"estimator": {"_target_": f"{__name__}.Foreign"}})
    with pytest.raises(DeploymentError, match=r"types that are not trusted: .*Foreign"):
        large_table_model(table, foreign, SETTINGS)
    with pytest.raises(MethodError, match="C=-1: it must be positive"):
        large_table_model(table, load_method("relm").with_params({"C": -1}), SETTINGS)
    base = {"_target_": "sklearn.linear_model.SGDClassifier", "class_weight": "balanced"}
    weighted = load_method("br_sgd").with_params({"estimator": base})
    with pytest.raises(
        DeploymentError, match="br_sgd cannot learn from batches of rows: class_weight 'balanced' is not"
    ):
        large_table_model(table, weighted, SETTINGS)
    assert len(passes) == 3  # those that read the sample


def test_a_file_is_large_by_its_cells(folder, monkeypatch):
    rows().to_parquet("one.parquet", index=False)
    assert not is_large("one.parquet")
    monkeypatch.setattr("multilab.datasets.parquet_table.LARGE_CELLS", 1200 * 9)
    assert is_large("one.parquet")
    assert is_large("big")
    (folder / "other").mkdir()
    assert not is_large("other")
    (folder / "other" / "._0.parquet").write_bytes(b"of a system, not a table")
    assert not is_large("other")
    (folder / "one.parquet").rename(folder / "other" / "one.parquet")
    assert ParquetTable("other").n_rows == 1200


def test_a_file_that_changes_meanwhile_is_refused(folder, monkeypatch):
    """A row that was held out could otherwise be learned from."""
    table = large_table("big", READER)
    digest = table.digest

    def changed():
        rows(400, seed=9).to_parquet("big/part-1.parquet", index=False)
        return digest()

    monkeypatch.setattr(table, "digest", changed)
    with pytest.raises(DatasetError, match=r"part-1.parquet: the file changed while it was read"):
        large_table_model(table, load_method("relm"), SETTINGS)


def test_labels_that_were_not_observed_are_refused_without_an_option_that_is_refused_too(folder):
    rows().assign(tag_a=lambda table: table["tag_a"].astype(float).where(table["id"] != 7)).to_parquet("one.parquet")
    with pytest.raises(DatasetError, match=r"label 'tag_a' is missing") as caught:
        large_table_model(large_table("one.parquet", READER), load_method("relm"), SETTINGS)
    assert "missing_labels" not in str(caught.value)


def test_an_infinite_value_is_named_with_its_row_also_where_rows_before_it_are_held_out(folder, monkeypatch):
    monkeypatch.setattr("multilab.models.fit_large.HELD_OUT_ROWS", 100)
    monkeypatch.setattr("multilab.models.fit_large.SAMPLE_ROWS", 200)
    drawn = set(np.random.default_rng(0).choice(1200, 300, replace=False).tolist())
    row = next(row for row in range(700, 1200) if row not in drawn)
    rows().assign(x=lambda table: table["x"].where(table["id"] != row, np.inf)).to_parquet("one.parquet", index=False)
    with pytest.raises(DatasetError, match=rf"'x' has an infinite value in row {row + 1} \(in rows 1 to 1200"):
        large_table_model(large_table("one.parquet", READER), load_method("relm"), SETTINGS)


WRONG = {
    "no method": (["--labels", "tag_*"], "--method"),
    "a method of all rows": (["--labels", "tag_*", "--method", "mlknn"], "MLkNN cannot learn from batches of rows"),
    "stacking": (["--labels", "tag_*", "--method", "mlwse_l1"], "stacks scores of all rows"),
    "tuning": (["--labels", "tag_*", "--method", "relm", "--tune", "3"], "--tune"),
    "folds": (["--labels", "tag_*", "--method", "relm", "--cv", "3"], "--cv"),
    "registry": (["--labels", "tag_*", "--method", "relm", "--register", "mine"], "--register"),
    "a reader's option": (["--labels", "tag_*", "--method", "relm", "--groups", "town"], "--groups"),
    "no label": (["--labels", "tog_*", "--method", "relm"], "no column matches 'tog_*'"),
    "an output below a file": (["--labels", "tag_*", "--method", "relm", "-o", "file/model"], "cannot be written: "),
    "labels that are text": (["--labels", "town", "--method", "relm"], "'town'"),
    "labels beyond 0 and 1": (["--labels", "zip", "--method", "relm"], "'zip' is 23"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses_end_with_one_line(folder, capsys, name):
    options, message = WRONG[name]
    (folder / "file").touch()
    assert main(["fit", "--dataset", "./big", *options]) == 2
    assert message in capsys.readouterr().err


def test_files_of_a_folder_must_have_the_same_columns(folder):
    rows().drop(columns="x").to_parquet("big/part-9.parquet", index=False)
    text = r"part-9.parquet: column 2 is town \(.*string\), in part-0.parquet it is x \(float\): all files must"
    with pytest.raises(DatasetError, match=text):
        ParquetTable("big")
    rows().assign(more=1).to_parquet("big/part-9.parquet", index=False)
    with pytest.raises(DatasetError, match=r"column 11 is more \(int64\), in part-0.parquet it is missing"):
        ParquetTable("big")
    (folder / "big" / "part-9.parquet").write_bytes(b"PAR1 no such thing")
    with pytest.raises(DatasetError, match=r"part-9.parquet: not a readable Parquet file"):
        ParquetTable("big")
