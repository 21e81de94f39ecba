"""A table of one's own is a data frame until a model is fitted: nothing of test rows is in the training matrix."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.keys import raise_version
from multilab.cells.cell import Cell, split_refs
from multilab.cells.dask_engine import _check_same
from multilab.cells.errors import ExperimentError
from multilab.cells.execute import run_cells
from multilab.cells.fitting import dense_columns, estimator_of
from multilab.cells.inventory import Inventory
from multilab.cells.method import load_method, makes_dense
from multilab.cells.rows import _encoded, encoded_rows, indices, ref_with_grams
from multilab.cells.running import ensure, gather, inner_rows, scaled_rows
from multilab.cells.settings import Tuning
from multilab.cells.store import Store
from multilab.cli.main import main
from multilab.core import versions
from multilab.datasets import TableEncoder, add_dataset, feature_columns, load
from multilab.datasets.table_encoder import encoder_with_rows
from multilab.decision import guard
from multilab.models import load_model
from multilab.models.final_fit import decided, fit_on_all_rows
from multilab.models.serving import ModelServer

HOLDOUT = {"holdout": {"train_size": 0.75}, "stratify": 1, "seed": 0, "repeats": 1}
WORDS = {"sport": "goal match team score", "food": "salt oven bread recipe"}


def table(n=80, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        tags = [tag for tag in WORDS if rng.random() < 0.5]
        words = [*rng.choice(["the", "more", "today", "very"], 4)]
        words += [word for tag in tags for word in rng.choice(WORDS[tag].split(), 3)]
        price = f"{rng.integers(1, 99)},{rng.integers(10, 99)} €" if rng.random() < 0.9 else ""
        day = f"{rng.integers(1, 28)}.{rng.integers(1, 13)}.2024"
        remark = " ".join(rng.permutation(words))
        rows.append([remark, price, day, rng.choice(["DE", "FR", "AT"]), rng.normal(), "|".join(tags)])
    return pd.DataFrame(rows, columns=["remark", "price", "day", "country", "x", "tags"])


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MULTILAB_CACHE", raising=False)
    monkeypatch.setenv("MULTILAB_CELLS", str(tmp_path / "cells"))
    _encoded.cache_clear()
    return Store()


def added(rows, name):
    rows.to_csv(f"{name}.csv", index=False)
    add_dataset(f"{name}.csv", tags="tags")
    return name


def encoded_files(store):
    return sorted(path for path in (store.root / ".encoded").rglob("*") if path.is_file())


def cell_of(name, method="br_logistic", **options):
    return Cell("train", split_refs(name, HOLDOUT)[0], load_method(method), **options)


def test_the_card_has_the_kinds_and_the_set_is_its_table(store):
    data = load(added(table(), "reviews"))
    kinds = list(map(str, data.kinds.values()))
    assert kinds == ["text", "number:comma in €", "date:day", "category", "number"]
    assert data.X.shape == (80, 5)
    frame = data.X
    assert frame["remark"].tolist() == table()["remark"].tolist()
    np.testing.assert_array_equal(frame["x"], pd.read_csv("reviews.csv")["x"])
    assert frame["price"].isna().tolist() == (table()["price"] == "").tolist()


def test_an_encoder_that_saw_test_rows_would_fail_here(store):
    cell = cell_of(added(table(), "reviews"))
    train, test = indices(cell.split_ref)
    changed = table()
    changed.loc[test, "remark"] = "words that occur in test rows only"
    changed.loc[test, "price"] = "9.999,99 €"
    changed.loc[test, "country"] = "XX"
    other = cell_of(added(changed, "changed"))
    assert [each.tolist() for each in indices(other.split_ref)] == [train.tolist(), test.tolist()]
    mine, theirs = gather(cell, store), gather(other, store)
    assert (mine.X_train != theirs.X_train).nnz == 0
    assert mine.X_test.shape != theirs.X_test.shape or (mine.X_test != theirs.X_test).nnz
    of_all_rows = TableEncoder.learn(load("changed").X, load("changed").kinds)
    assert of_all_rows != encoded_rows(other.split_ref, store)[0]


def test_inner_folds_share_the_encoder_of_the_outer_training_rows(store):
    cell = cell_of(added(table(), "reviews"))
    encoder, _ = encoded_rows(cell.split_ref, store)
    folds = inner_rows(cell, Tuning(n_trials=2, folds=3), store)
    assert [fold.X_train.shape[1] for fold in folds] == [encoder.width] * 3
    assert len(encoded_files(store)) == 1


def test_a_split_with_n_grams_has_cells_of_its_own_and_a_model_with_them(store):
    cell = cell_of(added(table(), "reviews"))
    with_grams = replace(cell, split_ref=ref_with_grams(cell.split_ref))
    assert ref_with_grams(with_grams.split_ref) == with_grams.split_ref
    assert with_grams.key != cell.key
    words, both = gather(cell, store), gather(with_grams, store)
    encoder, _ = encoded_rows(with_grams.split_ref, store)
    columns = encoder.word_columns(["remark"])
    assert (both.X_train[:, columns] != words.X_train).nnz == 0
    assert both.X_train.shape[1] == encoder.width > 2 * len(columns)
    model = fit_on_all_rows(with_grams, store).model
    assert model.classifier.n_features_in_ == encoder_with_rows("reviews", chars=True)[0].width


def test_the_encoded_rows_are_kept(store, monkeypatch):
    ref = cell_of(added(table(), "reviews")).split_ref
    encoder, X = encoded_rows(ref, store)
    _encoded.cache_clear()
    monkeypatch.setattr(TableEncoder, "learn", None)
    again, same = encoded_rows(ref, store)
    assert again == encoder
    assert (same != X).nnz == 0


def test_a_damaged_file_of_encoded_rows_is_made_again(store):
    cell = cell_of(added(table(), "reviews"))
    encoder, X = encoded_rows(cell.split_ref, store)
    (path,) = encoded_files(store)
    whole = path.read_bytes()
    encoded_rows(replace(cell.split_ref, split=-1, digest="all rows"), store)
    (other,) = {*encoded_files(store)} - {path}
    at = np.random.default_rng(0).integers(0, len(whole), 40).tolist()
    flipped = [whole[:k] + bytes([whole[k] ^ 64]) + whole[k + 1 :] for k in [*range(0, 400, 20), *at]]
    damages = [b"", b"nothing", whole[: len(whole) // 2], whole[:-1], bytes(len(whole)), other.read_bytes(), *flipped]
    for damaged in damages:
        path.write_bytes(damaged)
        _encoded.cache_clear()
        again, same = encoded_rows(cell.split_ref, store)
        assert again == encoder
        assert (same != X).nnz == 0
        assert path.read_bytes() == whole


def cut(n_train, n=80):
    """Add a table whose first rows are for training; the rows are the same wherever it is cut."""
    rows = table(n)
    rows[:n_train].to_csv("train.csv", index=False)
    rows[n_train:].to_csv("test.csv", index=False)
    add_dataset("train.csv", tags="tags", test="test.csv", name="cut", force=True)
    return Cell("train", split_refs("cut", {"split": "official"})[0], load_method("br_logistic"))


def test_the_same_rows_cut_elsewhere_have_an_encoder_of_their_own(store):
    first, second = cut(70), cut(20)
    assert second.split_ref.dataset_digest == cut(70).split_ref.dataset_digest
    assert second.key != first.key
    second = cut(20)
    ensure(second, store)
    fresh = Store(store.root.parent / "fresh")
    ensure(second, fresh)
    np.testing.assert_array_equal(store.arrays(second.key)["scores"], fresh.arrays(second.key)["scores"])
    expected = TableEncoder.learn(load("cut").X[:20], load("cut").kinds, load("cut").label_names)
    assert encoded_rows(second.split_ref, store)[0] == expected


def test_a_cell_is_not_computed_from_rows_that_replaced_its_own(store):
    cell = cut(60)
    cut(20)
    with pytest.raises(ExperimentError, match="has changed"):
        gather(cell, store)
    with pytest.raises(ExperimentError, match="has other data"):  # of a worker with such a table
        _check_same(cell, cell.key)


@pytest.mark.parametrize(("thing", "moved"), [(TableEncoder, True), (guard, False)])
def test_the_versions_of_the_encoder_are_in_the_keys_of_tables_only(store, monkeypatch, thing, moved):
    def keys():
        return {name: cell_of(name).key for name in ("reviews", "genes-toy")}

    added(table(), "reviews")
    cell, before = cell_of("reviews"), keys()
    ensure(cell, store)
    raise_version(monkeypatch, thing)
    after = keys()
    assert (before["reviews"] != after["reviews"]) == moved
    assert before["genes-toy"] == after["genes-toy"]
    with pytest.raises(ExperimentError) if moved else nullcontext():  # of a worker with another version
        _check_same(cell_of("reviews"), before["reviews"])
    inventory = Inventory(store)
    assert (inventory.outdated(inventory.read(cell.key)) is not None) == moved
    monkeypatch.undo()
    versions._versions.cache_clear()


def test_encoded_tables_of_other_code_are_named_once_and_removed(store, capsys, monkeypatch):
    cell = cell_of(added(table(), "reviews"))
    run_cells([cell], store, 1)
    assert "ignored" not in capsys.readouterr().err
    kept = encoded_files(store)
    old = store.root / ".encoded" / f"{'0' * 64}.npz"
    old.write_bytes(b"of a time without rows in the name")
    (store.root / ".encoded" / "of other code").mkdir()
    (store.root / ".metrics" / "default-other").mkdir(parents=True)
    run_cells([cell_of("reviews", "mlknn")], store, 1)
    assert capsys.readouterr().err.count("`multilab store clean --outdated --yes`") == 1
    assert main(["store", "clean"]) == 0
    assert main(["store", "clean", "--outdated"]) == 0
    assert old.exists()
    assert main(["store", "clean", "--outdated", "--yes"]) == 0
    assert encoded_files(store) == kept
    assert [path.name for path in (store.root / ".encoded").iterdir()] == [kept[0].parent.name]
    assert not list((store.root / ".metrics").iterdir())
    assert store.has(cell.key)


@pytest.mark.parametrize("preprocessing", ["standard", "minmax"])
def test_numbers_beside_words_are_centred_and_scaled_and_words_are_left(store, preprocessing):
    rows = table().assign(
        year=2000.0 + np.arange(80) % 20, votes=np.exp(np.arange(80) / 6.0), rare=np.arange(80) // 70 * 8
    )
    ref = cell_of(added(rows, "reviews")).split_ref
    encoder, X = encoded_rows(ref, store)
    method = replace(load_method("br_logistic"), preprocessing=preprocessing)
    scaled = estimator_of(method, encoder=encoder).named_steps["scale"].fit_transform(X)
    assert (scaled[:, encoder.unscaled] != X[:, encoder.unscaled]).nnz == 0
    column = {name: k for k, name in enumerate(encoder.feature_names)}
    year, votes, rare, country = (
        scaled[:, column[name]].toarray().ravel() for name in ("year", "votes", "rare", "country=DE")
    )
    assert set(country) == {0.0, 1.0}
    if preprocessing == "standard":
        assert year.mean() == pytest.approx(0, abs=1e-12)
        assert year.std() == pytest.approx(1 / 3)
        assert (votes.max(), np.abs(votes).max()) == (1, 1)
    else:
        assert (year.min(), year.max()) == (0, 1)
        assert (votes.min(), votes.max()) == pytest.approx((0, 1))
    assert np.flatnonzero(rare).tolist() == list(range(70, 80))  # zeros stay, so the column stays sparse


def test_the_key_covers_the_encoder_of_tables_only(store):
    cell = cell_of(added(table(), "reviews"))
    assert cell.identity["encoder"]
    assert replace(cell, split_ref=ref_with_grams(cell.split_ref)).key != cell.key
    assert "encoder" not in cell_of("genes-toy").identity


def test_text_is_learned_from(store):
    cell = cell_of(added(table(200), "many"))
    ensure(cell, store)
    Y = load("many").Y[indices(cell.split_ref)[1]]
    assert (store.arrays(cell.key)["decisions"] == Y).mean() > 0.95


def test_python_the_command_line_and_http_give_equal_answers(store, capsys):
    added(table(120), "films")
    assert main(["fit", "--dataset", "films", "--method", "br_logistic", "-o", "model"]) == 0
    new = table(6, seed=1).drop(columns="tags")
    new.loc[0, ["price", "day", "country"]] = ["much", "31.2.2024", "XX"]
    new.to_csv("new.csv", index=False)
    assert main(["predict", "model", "new.csv", "-o", "out.csv"]) == 0
    assert "cells that cannot be read count as missing: 'price' (1), 'day' (1)" in capsys.readouterr().err
    from_file = pd.read_csv("out.csv")
    model = load_model("model")
    pd.testing.assert_frame_equal(model.predict_frame(new), from_file, check_exact=False, rtol=1e-12)
    records = json.loads(new.to_json(orient="records"))
    body = json.dumps({"dataframe_records": records}).encode()
    answer = json.loads(ModelServer(model)._predicted(body, "application/json"))["predictions"]
    pd.testing.assert_frame_equal(pd.DataFrame(answer), from_file, check_exact=False, rtol=1e-12)
    assert main(["predict", "model", "new.csv", "--strict"]) == 2
    assert "column 'price', row 1: 'much' is not a number:comma in €" in capsys.readouterr().err
    with pytest.raises(Exception, match="column 'price', row 1") as refused:
        ModelServer(model, strict=True)._predicted(body, "application/json")
    assert refused.value.status == 400


@pytest.mark.slow
def test_a_forest_gets_the_most_frequent_words_and_its_model_too(store, monkeypatch):
    """5,000 rows of 50,000 words take 2 GB in a method that makes its features dense."""
    monkeypatch.setattr(feature_columns, "DENSE_TERMS", 4)
    forest, linear = cell_of(added(table(120), "films"), "erf_pct"), cell_of("films")
    encoder, X = encoded_rows(forest.split_ref, store)
    columns = dense_columns(forest.method, encoder)
    assert dense_columns(linear.method, encoder) is None
    words = [encoder.feature_names[k] for k in columns if k in set(encoder.unscaled)]
    assert words == [f"remark={word}" for word in encoder.columns[0].values[:4]]
    assert scaled_rows(forest, store).X_train.shape[1] == len(columns)
    assert len(columns) < scaled_rows(linear, store).X_train.shape[1] == X.shape[1]
    assert main(["fit", "--dataset", "films", "--method", "erf_pct", "--cv", "2", "-o", "model"]) == 0
    model, new = load_model("model"), table(6, seed=1).drop(columns="tags")
    full, _ = encoded_rows(replace(forest.split_ref, split=-1, digest="all rows"), store)
    kept = dense_columns(forest.method, full)
    assert model.estimator.named_steps["columns"].columns.tolist() == kept.tolist()
    expected = model.estimator.classifier.predict(model.encode(new).X[:, kept])
    np.testing.assert_array_equal(model.predict_frame(new)[["food", "sport"]], expected)
    assert main(["explain", "model", "films.csv", "--label", "food"]) == 0


def test_methods_that_make_their_features_dense():
    dense = {
        name for name in ("erf_pct", "mldf", "br_hist_gradient_boosting", "mlnb") if makes_dense(load_method(name))
    }
    assert dense == {"erf_pct", "mldf", "br_hist_gradient_boosting", "mlnb"}
    assert not any(makes_dense(load_method(name)) for name in ("br_logistic", "mlknn", "relm", "ecc"))
    assert makes_dense(decided(load_method("rf_pct"), "macro_f1"))
