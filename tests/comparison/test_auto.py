"""`AutoMultiLabel`: tables as people have them, a limit of time, the same answers everywhere."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score, make_scorer
from sklearn.utils.estimator_checks import estimator_checks_generator

from multilab import AutoMultiLabel
from multilab.cells.method import load_method
from multilab.cli import main
from multilab.comparison import ComparisonError, auto, portfolio, training_set
from multilab.comparison.training_set import STACK, Fit, Judgement, Preparation, Stack, TrainingSet, prepared, work
from multilab.datasets import DatasetError, DatasetWarning
from multilab.metrics import MetricError, macro_f1, metric, registry, weighted_f1
from multilab.models import load_model
from multilab.models.serving import ModelServer

WORDS = {"calm": ["quiet", "soft", "slow"], "loud": ["noise", "drums", "shout"], "sea": ["waves", "salt", "beach"]}


def songs(n=120, seed=0):
    """Return texts with tags that their words tell, a number with holes, and a category."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(n):
        tags = [tag for tag in WORDS if rng.random() < 0.4]
        words = [*rng.choice(["the", "a", "of", "song", "one", "this"], 6), *(rng.choice(WORDS[tag]) for tag in tags)]
        tempo = np.nan if k % 9 == 0 else round(60 + 60 * ("loud" in tags) + 10 * rng.random(), 1)
        rows.append((" ".join(rng.permutation(words)), tempo, ["C", "G"][k % 2], "|".join(tags)))
    return pd.DataFrame(rows, columns=["text", "tempo", "key", "tags"])


def quick(**arguments):
    return AutoMultiLabel(**{"time_limit": None, "budget_fits": 18, **arguments})


@pytest.fixture(scope="module")
def table():
    return songs()


@pytest.fixture(scope="module")
def fitted(table):
    return quick().fit(table, "tags")


def test_a_terminal_shows_how_far_the_fits_are_and_other_outputs_nothing(table, monkeypatch, capsys):
    for terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda shown=terminal: shown)
        quick(budget_fits=6).fit(table[["tempo", "tags"]].dropna(), "tags")
        shown = capsys.readouterr().err
        assert ("AutoMultiLabel: methods fitted: 0, " in shown) == terminal
        assert shown.endswith("\r\x1b[K" if terminal else "")
        assert terminal or not shown


def bags(n, seed):
    """Return counts of 300 words of a text, and labels that fifteen words of each tell."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 3)) < [0.4, 0.2, 0.1]).astype(np.uint8)
    X = rng.poisson(0.04, (n, 300))
    for k in range(3):
        X[:, 15 * k : 15 * (k + 1)] += (Y[:, [k]] * rng.poisson(0.35, (n, 15))).astype(X.dtype)
    return X.astype(float), Y


@pytest.mark.slow
def test_a_bag_of_words_is_the_same_dense_and_sparse_and_a_year_beside_it_ruins_nothing():
    (X, Y), (new, truth) = bags(400, 0), bags(300, 1)
    dense, sparse = (quick(budget_fits=6).fit(rows, Y) for rows in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.predict_proba(new), sparse.predict_proba(sp.csr_array(new)), atol=1e-12)
    years = [np.random.default_rng(seed).integers(1950, 2025, (n, 1)) for seed, n in ((2, 400), (3, 300))]
    beside = quick(budget_fits=6).fit(sp.csr_array(np.hstack([X, years[0]])), Y)
    values = [macro_f1(truth, dense.predict(new)), macro_f1(truth, beside.predict(np.hstack([new, years[1]])))]
    assert values[0] > 0.7
    assert values[1] > values[0] - 0.03


def test_text_with_tags_becomes_a_model_that_finds_them(fitted):
    new = songs(60, seed=1)
    truth = np.array([[tag in tags.split("|") for tag in sorted(WORDS)] for tags in new["tags"]])
    assert list(fitted.label_names_) == sorted(WORDS)
    assert (fitted.predict(new) == truth).mean() > 0.95
    assert list(fitted.feature_names_in_) == ["text", "tempo", "key"]
    assert fitted.n_features_in_ == 3
    assert fitted.encoder_.sparse


def test_the_leaderboard_says_what_ran_and_what_did_not(fitted):
    board = fitted.leaderboard_
    assert list(board.columns) == ["score", "seconds", "state", "reason"]
    done = board[board["state"] == "done"]
    assert {"br_linear_svm", "br_linear_svm + thresholds", "stack", "label_frequencies"} <= set(done.index)
    assert done["score"].notna().all()
    assert (done["seconds"] > 0).all()
    assert done["score"].is_monotonic_decreasing
    assert fitted.best_ in done.index
    assert set(board.loc[board["state"] == "left out", "reason"]) == {"budget_fits=18 is used up"}


def test_all_ways_to_name_the_labels_are_one(table):
    features = table.drop(columns="tags")
    lists = [tags.split("|") if tags else [] for tags in table["tags"]]
    labels = pd.DataFrame({tag: [int(tag in tags) for tags in lists] for tag in sorted(WORDS)})
    spelt = labels.replace({0: "no", 1: "yes"}).add_prefix("is_")
    expected = quick(budget_fits=2).fit(table, "tags").predict_proba(table)
    for given in (
        (table.assign(tags=lists), "tags"),
        (features, lists),
        (features, pd.Series(lists)),
        (features, table["tags"]),
        (features, labels),
        (features, labels.to_numpy()),
        (pd.concat([features, labels], axis=1), sorted(WORDS)),
        (pd.concat([features, spelt], axis=1), "is_*"),
    ):
        model = quick(budget_fits=2).fit(*given)
        np.testing.assert_array_equal(model.predict_proba(features), expected)


def of_arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


def of_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def as_file(frame, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet("songs.parquet")
    elif suffix == "json":
        frame.to_json("songs.json", orient="records")
    else:
        frame.to_csv("songs.csv", index=False)
    return f"songs.{suffix}"


TABLES = {
    "pandas": lambda frame: frame,
    "Arrow": of_arrow,
    "polars": of_polars,
    "CSV": lambda frame: as_file(frame, "csv"),
    "JSON": lambda frame: as_file(frame, "json"),
    "Parquet": lambda frame: as_file(frame, "parquet"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_file_or_a_frame_of_any_library_is_predicted_and_scored(fitted, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new = songs(60, seed=1)
    new["tags"] = [*new["tags"][-20:], *new["tags"][20:]]  # some are wrong
    truth = pd.DataFrame({tag: new["tags"].str.contains(tag).astype(int) for tag in sorted(WORDS)})
    given, expected = TABLES[kind](new), fitted.score(new, truth)
    np.testing.assert_array_equal(fitted.predict_proba(given), fitted.predict_proba(new))
    assert 0.5 < expected < 1
    assert fitted.score(given, "tags") == expected
    for labels in (truth, new["tags"], [tags.split("|") for tags in new["tags"]]):
        assert fitted.score(given, labels) == expected
    named = pd.concat([new.drop(columns="tags"), truth[["sea", "calm", "loud"]]], axis=1)
    assert fitted.score(TABLES[kind](named), ["sea", "calm", "loud"]) == expected
    weighted = new.assign(weight=[1] * 30 + [0] * 30)
    assert fitted.score(TABLES[kind](weighted), "tags", "weight") == fitted.score(new[:30], "tags")
    other = new.drop(columns="tags").assign(moods=new["tags"].str.replace("|", ";"))  # not the column of training
    assert fitted.score(TABLES[kind](other), "moods") == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Arrow", "polars", "CSV", "Parquet"])
def test_a_model_of_a_file_or_of_any_frame_is_that_of_the_frame(table, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    patients = table.assign(singer=np.arange(len(table)) % 7)
    expected, found = (
        quick(budget_fits=6).fit(given, "tags", groups="singer").predict_proba(table)
        for given in (patients, TABLES[kind](patients))
    )
    np.testing.assert_array_equal(found, expected)


def test_tags_that_the_fit_has_not_seen_are_counted_once_and_left_out(fitted):
    new = songs(60, seed=1)
    strange = new.assign(tags=[*("forest|" + new["tags"][:3]), *new["tags"][3:]])
    with pytest.warns(UserWarning, match="1, in 3 of 60 rows") as caught:
        assert fitted.score(strange, "tags") == fitted.score(new, "tags")
    assert len(caught) == 1


def test_numbers_of_a_file_that_can_be_read_in_two_ways_are_refused(table, tmp_path):
    path = tmp_path / "songs.csv"
    table.assign(price=["1.200" if k % 2 else "800" for k in range(len(table))]).to_csv(path, index=False, sep=";")
    with pytest.raises(DatasetError, match="price"):
        quick(budget_fits=6).fit(path, "tags")


def test_wrong_uses_of_names_at_score_get_one_line(fitted, table):
    for X, y in ((table, "moods"), (table, ["calm"]), (table.drop(columns="tags").to_numpy(), "tags")):
        with pytest.raises((ComparisonError, DatasetError)) as raised:
            fitted.score(X, y)
        assert "\n" not in str(raised.value)


def test_a_number_of_fits_gives_the_same_model_on_every_run(table, fitted):
    again = clone(fitted).set_params(n_jobs=2).fit(table, "tags")
    np.testing.assert_array_equal(again.predict_proba(table), fitted.predict_proba(table))
    pd.testing.assert_frame_equal(
        again.leaderboard_.drop(columns="seconds"), fitted.leaderboard_.drop(columns="seconds")
    )


def test_python_the_command_and_http_give_the_same_answers(fitted, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    new = songs(20, seed=2)
    new.to_csv("new.csv", index=False)
    probabilities = [f"{tag}_probability" for tag in fitted.label_names_]
    fitted.save("model")
    assert main(["predict", "model", "new.csv", "-o", "out.csv"]) == 0
    of_command = pd.read_csv("out.csv")
    np.testing.assert_array_equal(of_command[list(fitted.label_names_)], fitted.predict(new))
    np.testing.assert_allclose(of_command[probabilities], fitted.predict_proba(new), rtol=0, atol=1e-15)
    server = ModelServer(load_model("model"))
    rows = json.loads(new.drop(columns="tags").to_json(orient="records"))
    of_http = pd.DataFrame(answer(server, {"dataframe_records": rows})["predictions"])
    np.testing.assert_array_equal(of_http[list(fitted.label_names_)], fitted.predict(new))
    np.testing.assert_array_equal(of_http[probabilities], fitted.predict_proba(new))
    assert main(["card", "model"]) == 0
    assert "Macro F1" in capsys.readouterr().out
    assert main(["monitor", "model", "new.csv"]) in (0, 1)
    assert "prevalence" in capsys.readouterr().out  # the tags are read from their column


def answer(server, content):
    """Return the reply of an ASGI application to a POST."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": json.dumps(content).encode(), "more_body": False}

    async def send(message):
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    asyncio.run(server({"type": "http", "method": "POST", "path": "/invocations", "headers": headers}, receive, send))
    assert sent[0]["status"] == 200, sent
    return json.loads(sent[1]["body"])


@pytest.mark.slow
def test_matrices_dense_and_sparse_are_saved_too(tmp_path):
    rng = np.random.default_rng(0)
    X = np.maximum(rng.normal(size=(80, 5)), 0)
    Y = (X[:, :2] > 0.5).astype(int)
    for number, rows in enumerate((X, sp.csr_array(X), sp.csr_matrix(X))):
        model = quick(metric="hamming_loss", budget_fits=12).fit(rows, Y)
        model.save(tmp_path / str(number))
        frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(5)])
        saved = load_model(tmp_path / str(number)).predict_proba_frame(frame)
        np.testing.assert_array_equal(saved, model.predict_proba(rows))
        assert model.predict(rows).shape == Y.shape


def test_a_frame_with_a_column_of_vectors_is_saved_too(tmp_path):
    V = np.random.default_rng(0).normal(size=(60, 3))
    frame = pd.DataFrame({"vector": V.tolist(), "x": np.arange(60) / 10})
    model = quick(budget_fits=6).fit(frame, (V[:, :2] > 0).astype(int))
    model.save(tmp_path / "model")
    saved = load_model(tmp_path / "model").predict_proba_frame(frame)
    np.testing.assert_array_equal(saved, model.predict_proba(frame))


@pytest.mark.slow
def test_missing_labels_are_learned_from_or_the_method_is_left_out(table):
    Y = pd.DataFrame({tag: table["tags"].str.contains(tag).astype(float) for tag in WORDS})
    Y.iloc[::7, 0] = np.nan
    model = quick(budget_fits=100).fit(table.drop(columns="tags"), Y)
    board = model.leaderboard_
    assert board.loc["br_linear_svm", "state"] == "done"
    assert "cannot learn from missing labels" in board.loc["erf_pct", "reason"]


@pytest.mark.slow
def test_weights_reach_fits_decisions_and_the_metric_and_a_row_of_weight_0_is_absent(table):
    weighted = table.assign(weight=np.arange(120) % 3)
    present = weighted["weight"] > 0
    model = quick().fit(weighted, "tags", sample_weight="weight")
    board, names = model.leaderboard_, ["mlknn", "mldf", "stack"]
    assert board.loc[names, "state"].tolist() == ["left out"] * 3
    assert board["reason"].str.contains("takes no sample_weight").sum() == 3
    assert list(model.feature_names_in_) == ["text", "tempo", "key"]
    X, Y, _ = model._training
    weights = weighted["weight"][present].to_numpy()
    assert len(X) == len(Y) == len(weights) == 80
    own = [macro_f1(Y[t], model._judged.own[t], sample_weight=weights[t]) for _, t in model._folds]
    chosen = model.best_.partition(" + ")[0]
    assert board.loc[chosen, "score"] == pytest.approx(np.mean(own))
    fits = [quick(budget_fits=6).fit(table[present], "tags", one).predict_proba(table) for one in (weights, None)]
    assert not np.array_equal(*fits)


def test_a_tag_that_only_rows_of_weight_0_have_is_no_label(table):
    names = table.rename(columns={"text": " text "}).assign(**{" weight ": [0] + [1] * 119})
    names.loc[0, "tags"] = "only|sea"
    assert quick(budget_fits=6).fit(names, "tags", "weight").label_names_.tolist() == sorted(WORDS)


def test_a_label_is_assigned_too_often_by_the_weights_of_the_rows(tmp_path):
    Y = np.array([[1, 0], [0, 1], [0, -1], [0, 1]], dtype=np.int8)
    decisions = np.array([[1, 1], [1, 0], [0, 1], [1, 1]], dtype=np.uint8)
    rows = TrainingSet(None, Y, ["rare", "b"], None, ("macro_f1",), 0, tmp_path, np.array([7.0, 1, 2, 2]))
    rate = training_set._decided(rows, decisions, np.arange(4)).set_index("label")
    assert rate.loc["rare"].to_dict() == {"observed": 12, "count": 7, "predicted": 10}
    assert rate.loc["b"].to_dict() == {"observed": 10, "count": 3, "predicted": 9}


@pytest.mark.slow
def test_groups_stay_on_one_side_of_every_fold():
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(30), 4)
    labels = pd.DataFrame(rng.random((30, 2))[patient] < 0.4, columns=["ill", "old"]).astype(int)
    notes = [f"the patient called name{k} was seen on day {rng.integers(99)}" for k in patient]  # tells who, no more
    frame = pd.DataFrame({"note": notes, "patient": patient})
    arguments = {"metric": "micro_f1", "columns": {"note": "text"}}
    model = quick(**arguments).fit(frame, labels, groups="patient")
    assert len(model._folds) == 5
    assert not any(set(patient[train]) & set(patient[test]) for train, test in model._folds)
    assert list(model.feature_names_in_) == ["note"]
    assert (model.leaderboard_.loc[["br_linear_svm", "stack"], "score"] < 0.6).all()
    by_row = quick(**arguments, budget_fits=6).fit(frame[["note"]], labels)
    assert by_row.leaderboard_.loc["br_linear_svm", "score"] > 0.9


def noisy(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, (X[:, :3] + rng.normal(size=(n, 3)) > [0, 0.8, 1.5]).astype(np.uint8)


def test_a_row_of_weight_3_counts_like_three_rows_in_fits_decisions_calibration_and_metrics(tmp_path):
    (X, Y), weights = noisy(120), np.arange(120) % 3 + 1
    again, method = (
        np.repeat(np.arange(120), weights),
        load_method("br_linear_svm").with_params({"preprocessing": "none"}),
    )
    folds = [(np.flatnonzero(np.arange(120) % 5 != k), np.flatnonzero(np.arange(120) % 5 == k)) for k in range(5)]
    judged, models = [], []
    for name, chosen, given in (("weighted", np.arange(120), weights.astype(float)), ("repeated", again, None)):
        (tmp_path / name).mkdir()
        metrics = ("micro_f1", "macro_f1", "ranking_loss", "log_loss")  # the guard for macro F1 counts rows
        rows = TrainingSet(X[chosen], Y[chosen], ["a", "b", "c"], None, metrics, 0, tmp_path / name, given)
        rows.folds = [tuple(np.flatnonzero(np.isin(chosen, part)) for part in fold) for fold in folds]
        for unit in (*(Fit(method, fold) for fold in (None, *range(5))), Judgement(method.name)):
            assert work(unit, rows) is None
        judged.append(rows.read(Judgement(method.name).key))
        models.append(rows.fitted(method.name, judged[-1], True).predict_with_scores(X))
    for part in ("values", "tuned_values", "decided", "tuned_decided"):
        weighted, repeated = (pd.DataFrame(getattr(one, part)).select_dtypes("number") for one in judged)
        np.testing.assert_allclose(weighted, repeated, rtol=1e-5)
    np.testing.assert_allclose(*(one.decisions.thresholds_ for one in judged), rtol=1e-5)
    np.testing.assert_allclose(models[0][0], models[1][0], rtol=1e-5)
    np.testing.assert_array_equal(models[0][1], models[1][1])


def test_the_second_level_that_scores_a_group_has_not_seen_its_labels(tmp_path):
    X, Y = noisy(120)
    rows = TrainingSet(X, Y, ["a", "b", "c"], None, ("macro_f1",), 0, tmp_path, groups=np.arange(120) // 4)
    assert work(Preparation(1.0), rows) is None
    prepared(rows)
    names = ("br_linear_svm", "br_logistic")
    for unit in (Fit(load_method(name), fold) for name in names for fold in range(5)):
        assert work(unit, rows) is None
    scores, (_, test) = [], rows.folds[0]
    for _ in range(2):
        assert work(Stack(names), rows) is None
        scores.append(rows.out_of_fold(STACK)[0])
        rows.Y[test] = 1 - rows.Y[test]
    np.testing.assert_array_equal(scores[0][test], scores[1][test])
    assert not np.array_equal(*scores)


def test_micro_f1_of_the_stack_has_one_cut_for_all_labels_and_that_of_a_method_one_each(tmp_path):
    X, Y = noisy(120)
    rows = TrainingSet(X, Y, ["a", "b", "c"], None, ("micro_f1",), 0, tmp_path)
    assert work(Preparation(1.0), rows) is None
    prepared(rows)
    names = ("br_linear_svm", "br_logistic")
    units = [Fit(load_method(name), fold) for name in names for fold in range(5)]
    for unit in (*units, Stack(names), Judgement(STACK), Judgement("br_logistic")):
        assert work(unit, rows) is None
    judged = {name: rows.read(Judgement(name).key).decisions for name in (STACK, "br_logistic")}
    assert len(set(judged[STACK].thresholds_)) == 1
    assert len(set(judged["br_logistic"].thresholds_)) == 3


class Sleeper(ClassifierMixin, BaseEstimator):
    """Classifier that takes ten minutes."""

    def fit(self, X, y):
        time.sleep(600)


def with_sleepers(monkeypatch, first=False):
    """Let the portfolio have a method, or its first one, that takes ten minutes and is estimated at nothing."""
    found = portfolio.load_portfolio()
    name = "br_linear_svm" if first else "br_logistic"
    slow = replace(found.members[name].method, target=f"{__name__}.Sleeper", params={}, preprocessing="none")
    members = {**found.members, name: replace(found.members[name], method=slow, words={})}
    monkeypatch.setattr(portfolio, "load_portfolio", lambda: replace(found, members=members))


@pytest.mark.slow
def test_a_limit_of_time_holds_when_a_method_does_not_end(table, monkeypatch):
    with_sleepers(monkeypatch)
    model = AutoMultiLabel(time_limit=10).fit(table, "tags")
    assert not multiprocessing.active_children()
    assert model.leaderboard_.loc["br_logistic", "state"] == "stopped"
    assert model.leaderboard_.loc["br_linear_svm", "state"] == "done"
    assert model.predict(table).shape == (120, 3)


@pytest.mark.slow
def test_without_time_for_a_model_there_is_one_line(table, monkeypatch):
    with_sleepers(monkeypatch, first=True)
    monkeypatch.setattr(auto, "_GRACE", 2.0)
    with pytest.raises(ComparisonError, match=r"^no model could be fitted: 2 s are too short .* a longer time_limit$"):
        AutoMultiLabel(time_limit=2).fit(table, "tags")
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("n", [120, 300])
def test_a_limit_that_is_over_before_the_first_fit_still_ends_with_a_model(n):
    model = AutoMultiLabel(time_limit=0.01).fit(songs(n), "tags")
    new = songs(60, seed=1)
    truth = np.array([[tag in tags.split("|") for tag in sorted(WORDS)] for tags in new["tags"]])
    assert model.best_ == "br_linear_svm"
    assert (model.predict(new) == truth).mean() > 0.9


@pytest.mark.slow
def test_a_dropped_column_is_no_feature_and_is_copied_to_the_predictions(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with_id = table.assign(ticket=[f"T-{k}" for k in range(len(table))])
    with pytest.warns(DatasetWarning, match=r"ticket: looks like a row identifier: drop=\['ticket'\] leaves it out"):
        quick(budget_fits=6).fit(with_id, "tags")
    model = quick(budget_fits=6, drop=["ticket"]).fit(with_id, "tags")
    assert list(model.feature_names_in_) == ["text", "tempo", "key"]
    np.testing.assert_array_equal(model.predict(with_id), model.predict(table))
    model.save("model")
    with_id.drop(columns="tags").to_csv("new.csv", index=False)
    assert main(["predict", "model", "new.csv", "-o", "out.csv"]) == 0
    assert pd.read_csv("out.csv")["ticket"].tolist() == with_id["ticket"].tolist()
    with pytest.raises(ComparisonError, match="drop: no column is called 'tickt'; did you mean 'ticket'"):
        quick(drop=["tickt"]).fit(with_id, "tags")


def test_a_baseline_alone_does_not_assign_every_label_to_every_row(tmp_path):
    (X, Y), name = noisy(120), "label_frequencies"
    rows = TrainingSet(X, Y, ["a", "b", "c"], None, ("macro_f1",), 0, tmp_path)
    assert work(Preparation(1.0), rows) is None
    prepared(rows)
    model = quick()
    search = auto.Search(model, rows, 0.0)
    for unit in (*(Fit(load_method(name), fold) for fold in (None, *range(5))), Judgement(name, guard=False)):
        assert work(unit, rows) is None
    search.judged = {name: rows.read(Judgement(name).key)}
    (entry,) = (one for one in search._plan() if one.name == name)
    search._choose([entry], entry, None)
    assert model.leaderboard_.index[0] == f"{name} + thresholds"
    assert model.best_ == name
    assert not model.estimator_.predict_with_scores(X)[1].all()


@pytest.mark.parametrize(
    ("arguments", "y", "message"),
    [
        ({"metric": "accuracy"}, "tags", "metric: no metric is called 'accuracy'"),
        ({"time_limit": 0}, "tags", "`time_limit` must be a number > 0 or None, got 0"),
        ({"budget_fits": -1}, "tags", "`budget_fits` must be a number > 0 or None, got -1"),
        ({}, "tag", "'tag' is not a column; did you mean 'tags'"),
        ({}, ["calm"], "label 'calm' is not a column"),
        ({}, np.zeros((3, 2)), "X has 120 rows and y has 3"),
    ],
)
def test_wrong_uses_get_one_line(table, arguments, y, message):
    with pytest.raises((ComparisonError, DatasetError)) as raised:
        AutoMultiLabel(**arguments).fit(table, y)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": "patients"}, "groups: no column is called 'patients'"),
        ({"groups": np.zeros(120)}, "`groups`"),
        ({"groups": [None] * 120}, "groups hold missing values"),
        ({"sample_weight": np.ones(3)}, "`sample_weight` must hold 120 finite numbers >= 0"),
        ({"sample_weight": np.zeros(120)}, "not all of them zero"),
        ({"sample_weight": [np.nan] + [1] * 119}, "`sample_weight` must hold .* contains NaN"),
        ({"sample_weight": [-1] + [1] * 119}, "`sample_weight` must hold .* Negative values"),
        ({"sample_weight": "key"}, "`sample_weight` must hold .* could not convert string to float: 'C'"),
        ({"sample_weight": [1] + [0] * 119}, "n_samples = 1"),
        ({"sample_weight": [1, 1] + [0] * 118, "groups": [1, 1] + [2] * 118}, "`groups`"),
    ],
)
def test_wrong_weights_and_groups_get_one_line(table, options, message):
    with pytest.raises((ComparisonError, DatasetError), match=f"^[^\n]*{message}[^\n]*$"):
        quick().fit(table, "tags", **options)


def by_relevant_rows(Y, decisions):
    return weighted_f1(Y, decisions)


@pytest.mark.slow
@pytest.mark.parametrize("own", [by_relevant_rows, make_scorer(f1_score, average="weighted", zero_division=0)])
def test_the_choice_by_a_function_or_scorer_is_that_by_the_metric(own):
    X, Y = make_multilabel_classification(120, n_features=6, n_classes=3, random_state=0)
    boards = [AutoMultiLabel(None, chosen, budget_fits=12).fit(X, Y).leaderboard_ for chosen in (own, "weighted_f1")]
    scores = [board["score"].dropna() for board in boards]
    pd.testing.assert_series_equal(*scores, rtol=0, atol=1e-12)
    assert set(scores[0].index) == {"br_linear_svm", "label_frequencies"}


def test_a_function_of_complete_labels_is_refused_before_the_fits():
    X, Y = make_multilabel_classification(60, n_features=6, n_classes=3, random_state=0)
    hidden = np.where(np.arange(180).reshape(60, 3) % 7 == 0, np.nan, Y)
    for labels, weights in ((hidden, None), (Y, np.ones(60))):
        with pytest.raises(MetricError):
            AutoMultiLabel(time_limit=None, budget_fits=6, metric=by_relevant_rows).fit(X, labels, weights)


def test_a_metric_without_weights_is_refused(table, monkeypatch):
    monkeypatch.setitem(registry._ALL, "smallest_set", None)  # removed after the test

    @metric("Smallest set", "max", "decisions", source="this test", standard=False)
    def smallest_set(counts, conventions):
        """Return the smallest number of predicted labels."""
        return counts.by_row.predicted.min()

    with pytest.raises(MetricError, match="smallest_set takes no sample_weight"):
        quick(metric="smallest_set").fit(table, "tags", sample_weight=np.ones(120))


@pytest.mark.slow
def test_scikit_learn_checks():
    folds = "a row of weight 2 is in one fold, two equal rows may be in two"
    reasons = {
        "check_classifier_multioutput": "decisions are tuned, not probability >= 0.5",
        "check_sample_weight_equivalence_on_dense_data": folds,
        "check_sample_weight_equivalence_on_sparse_data": folds,
    }
    for estimator, check in estimator_checks_generator(
        AutoMultiLabel(time_limit=None, budget_fits=6), expected_failed_checks=reasons, mark="skip"
    ):
        check(estimator)
