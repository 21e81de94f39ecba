"""Evaluation of scores from elsewhere: matched rows, metrics, cross-fitted thresholds, paired tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn import metrics as sklearn_metrics

import multilab
from multilab.comparison import ComparisonError, evaluating
from multilab.comparison.score_files import in_order_of, read_scores, read_truth
from multilab.decision import DecisionRules, guarded_thresholds, macro_f1_thresholds
from multilab.metrics import MetricError, macro_f1, over_assigned
from multilab.model_selection import IterativeStratifiedKFold

LABELS = ["war", "love", "crime", "space"]
RNG = np.random.default_rng(0)
IDS = [f"film-{row:03d}" for row in RNG.permutation(240)]
Y = (RNG.random((240, 4)) < [0.5, 0.3, 0.2, 0.1]).astype(int)
LOGITS = 2.2 * Y - 2.2 + RNG.normal(size=Y.shape)
P = expit(LOGITS)


def evaluate(*arguments, n_draws=50, **options):
    """Evaluate with few draws, where the intervals do not matter."""
    return multilab.evaluate(*arguments, n_draws=n_draws, **options)


def frame(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(values, columns=LABELS).assign(id=IDS)


@pytest.fixture
def folder(tmp_path):
    """Write the truth as columns and as tags."""
    frame(Y).to_csv(tmp_path / "truth.csv", index=False)
    tags = ["|".join(np.array(LABELS)[row == 1]) for row in Y]
    pd.DataFrame({"film": IDS, "title": "a, b", "genres": tags}).to_csv(tmp_path / "films.csv", index=False)
    return tmp_path


def test_values_are_those_of_scikit_learn():
    values = evaluate(Y, P, metrics=["micro_f1", "example_f1", "hamming_loss", "macro_average_precision"])
    decided = P >= 0.5
    some = Y.any(axis=1) | decided.any(axis=1)  # scikit-learn gives an empty row with no decision 0, the package 1
    by_row = sklearn_metrics.f1_score(Y[some], decided[some], average="samples", zero_division=0.0)
    expected = {
        "macro_f1": sklearn_metrics.f1_score(Y, decided, average="macro"),
        "micro_f1": sklearn_metrics.f1_score(Y, decided, average="micro"),
        "example_f1": (by_row * some.sum() + (~some).sum()) / len(Y),
        "hamming_loss": sklearn_metrics.hamming_loss(Y, decided),
        "macro_average_precision": sklearn_metrics.average_precision_score(Y, P, average="macro"),
    }
    for name, value in expected.items():
        assert values.value(name) == pytest.approx(value, abs=1e-12), name
    assert evaluate(Y, LOGITS, kind="logits").value("macro_f1") == values.value("macro_f1")
    assert evaluate(Y, decided.astype(int), kind="decisions").value("macro_f1") == values.value("macro_f1")


def by_hand(values: np.ndarray) -> dict[tuple[str, str], float]:
    """Return cells by identifier and label name: the matching without any library."""
    return {(IDS[i], LABELS[j]): float(values[i, j]) for i in range(len(IDS)) for j in range(len(LABELS))}


def files(folder) -> dict[str, str]:
    """Write the same probabilities in all layouts, rows and labels in other orders; return the names with kinds."""
    order, columns = np.random.default_rng(1).permutation(len(IDS)), [2, 0, 3, 1]
    shuffled = frame(P).iloc[order][["crime", "id", "war", "space", "love"]]
    shuffled.to_csv(folder / "wide.csv", index=False)
    shuffled.to_csv(folder / "wide.tsv.gz", index=False, sep="\t")
    shuffled.to_parquet(folder / "wide.parquet", index=False)
    lines = frame(P).melt("id", var_name="label", value_name="score").sample(frac=1, random_state=0)
    lines.to_csv(folder / "lines.csv", index=False)
    names = {"ids": np.array(IDS)[order], "labels": np.array(LABELS)[columns]}
    matrix = P[order][:, columns]
    np.savez(folder / "dense.npz", scores=matrix, **names)
    csc = sp.csc_array(matrix)
    parts = {name: getattr(csc, name) for name in ("data", "indices", "indptr")}
    np.savez(folder / "csc.npz", format=np.array(b"csc"), shape=np.array(csc.shape), **parts, **names)
    np.savez(folder / "logits.npz", LOGITS[order][:, columns], **names)
    found = dict.fromkeys(
        ("wide.csv", "wide.tsv.gz", "wide.parquet", "lines.csv", "dense.npz", "csc.npz"), "probabilities"
    )
    return found | {"logits.npz": "logits"}


def test_files_of_all_layouts_are_matched_by_name(folder):
    cells = by_hand(P)
    truths = [read_truth(folder / "truth.csv"), read_truth(folder / "films.csv", id_column="film", tags="genres")]
    for truth in truths:
        for name, kind in files(folder).items():
            reference, (values,), _ = in_order_of(truth, [read_scores(folder / name, kind)])
            dense = values.toarray() if sp.issparse(values) else values
            dense = expit(dense) if kind == "logits" else dense
            expected = [[cells[row, label] for label in reference.labels] for row in reference.ids]
            np.testing.assert_allclose(dense, expected, rtol=0, atol=1e-12, err_msg=name)
            true = by_hand(Y)
            found = reference.values.toarray() if sp.issparse(reference.values) else reference.values
            assert found.tolist() == [[true[row, label] for label in reference.labels] for row in reference.ids]


def test_labels_that_several_files_name_are_labels_once(folder):
    truth = read_truth(folder / "films.csv", id_column="film", tags="genres")
    one, two = (read_scores(folder / name) for name in list(files(folder))[:2])
    assert sorted(LABELS) == list(in_order_of(truth, [one, two])[0].labels)


@pytest.mark.parametrize("ending", ["_probability", "_score"])
def test_files_with_decisions_and_scores_are_read_by_kind(folder, ending):
    decided = frame((P >= 0.3).astype(int))
    both = pd.concat([decided, pd.DataFrame(P, columns=LABELS).add_suffix(ending)], axis=1)
    both.to_csv(folder / "predicted.csv", index=False)
    truth = read_truth(folder / "films.csv", id_column="film", tags="genres")
    for kind, cells in (("decisions", by_hand(P >= 0.3)), ("probabilities", by_hand(P))):
        reference, (values,), _ = in_order_of(truth, [read_scores(folder / "predicted.csv", kind)])
        expected = [[cells[row, label] for label in reference.labels] for row in reference.ids]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_lists_of_the_best_labels_are_decisions_with_ranks(folder):
    best = np.argsort(-P, axis=1)[:, :2]
    lists = [[LABELS[j] for j in row] for row in best]
    pd.DataFrame({"id": IDS, "top": ["|".join(row) for row in lists]}).to_csv(folder / "lists.csv", index=False)
    lines = [(IDS[i], LABELS[j], P[i, j]) for i, row in enumerate(best) for j in row[::-1]]
    pd.DataFrame(lines, columns=["id", "label", "score"]).to_csv(folder / "lines.csv", index=False)
    decided = np.zeros(Y.shape, dtype=int)
    np.put_along_axis(decided, best, 1, axis=1)
    expected = evaluate(pd.DataFrame(Y, IDS, LABELS), pd.Series(lists, IDS), kind="top")
    assert expected.value("macro_f1") == macro_f1(Y, decided)
    for name in ("lists.csv", "lines.csv"):
        _, (values,), _ = in_order_of(read_truth(folder / "truth.csv"), [read_scores(folder / name, "top")])
        ranks = 0.5 * decided
        np.put_along_axis(ranks, best[:, :1], 1.0, axis=1)
        assert values.toarray().tolist() == ranks.tolist()


def test_what_does_not_match_is_refused_in_one_line_that_names_the_file(folder):
    truth = read_truth(folder / "truth.csv")
    wrong = {
        "fewer rows": (frame(P).iloc[1:], "probabilities"),
        "twice": (pd.concat([frame(P), frame(P).iloc[:1]]), "probabilities"),
        "no column": (frame(P).drop(columns="love"), "probabilities"),
        "unknown": (frame(P).assign(peace=0.5), "probabilities"),
        "logits": (frame(LOGITS), "probabilities"),
        "no decisions": (frame(P), "decisions"),
        "empty": (frame(P).mask(frame(P) == P[5, 1]), "probabilities"),
        "text": (frame(P).astype({"love": object}).replace({"love": {P[3, 1]: "high"}}), "probabilities"),
        "no kind": (frame(P), "odds"),
        "no lists": (frame(P), "top"),
    }
    for name, (table, kind) in wrong.items():
        path = folder / f"{name}.csv"
        table.to_csv(path, index=False)
        with pytest.raises(ComparisonError) as refusal:
            in_order_of(truth, [read_scores(path, kind)])
        assert "\n" not in str(refusal.value)
        assert name == "no kind" or path.name in str(refusal.value)
    for options in ({}, {"tags": "none"}, {"labels": ["war"]}, {"id_column": "none"}):
        with pytest.raises(ComparisonError):  # a title is no label; no such columns
            read_truth(folder / "films.csv", **options)
    np.savez(folder / "two.npz", a=P, b=P)
    np.savez(folder / "objects.npz", a=np.array([[None]]))
    (folder / "broken.npz").write_bytes(b"PK")
    sp.save_npz(folder / "sparse.npz", sp.csr_array(LOGITS))
    for name in ("two.npz", "objects.npz", "broken.npz", "sparse.npz", "none.txt"):
        with pytest.raises(ComparisonError):
            read_scores(folder / name, "logits")


def test_scored_rows_without_truth_are_left_out_and_counted(folder):
    frame(Y).iloc[:100].to_csv(folder / "part.csv", index=False)
    frame(P).to_csv(folder / "scores.csv", index=False)
    truth, (values,), notes = in_order_of(read_truth(folder / "part.csv"), [read_scores(folder / "scores.csv")])
    assert values.tolist() == P[:100].tolist()
    assert len(notes) == 1
    assert truth.values.tolist() == Y[:100].tolist()


def test_frames_are_matched_and_arrays_are_in_order():
    order = np.random.default_rng(2).permutation(len(Y))
    truth, scores = pd.DataFrame(Y, IDS, LABELS), pd.DataFrame(P, IDS, LABELS)
    result = evaluate(truth, scores.iloc[order, ::-1])
    assert result.value("macro_f1") == evaluate(Y, P).value("macro_f1")
    assert result.rules["scores"].label_names == LABELS
    with pytest.raises(ComparisonError):
        evaluate(truth, scores.reset_index(drop=True))
    with pytest.raises(ComparisonError):
        evaluate(Y, P[:-1])
    with pytest.raises(MetricError):
        evaluate(Y, P, metric="accuracy")


def test_thresholds_of_a_row_are_learned_from_the_other_folds():
    result = evaluate(Y, P, cv=4, random_state=3)
    decided = np.zeros(Y.shape, dtype=bool)
    for others, rows in IterativeStratifiedKFold(4, random_state=3).split(P, Y):
        limits = guarded_thresholds(Y[others], P[others], macro_f1_thresholds(Y[others], P[others]))
        decided[rows] = P[rows] >= limits
    assert result.value("macro_f1", "scores + thresholds") == macro_f1(Y, decided)
    limits = guarded_thresholds(Y, P, macro_f1_thresholds(Y, P))
    np.testing.assert_allclose(result.rules["scores"].thresholds, limits, rtol=0, atol=1e-12)
    gain = result.gains.iloc[0]
    assert gain["gain"] == pytest.approx(macro_f1(Y, decided) - macro_f1(Y, P >= 0.5), abs=1e-12)


def test_a_label_that_scores_cannot_predict_is_not_assigned_to_all_rows():
    noise = np.random.default_rng(4).random(len(Y))
    scores = np.column_stack([P[:, :3], 0.5 + 0.5 * noise])
    result = evaluate(Y, scores, label_names=LABELS)
    assert [label.label for label in result.board.over_assigned["scores"]] == ["space"]
    assert "scores + thresholds" not in result.board.over_assigned
    rates = result.rules["scores"].decide(scores).mean(axis=0)
    assert not over_assigned(LABELS, rates, Y.mean(axis=0))


def test_unobserved_labels_do_not_count():
    partial = Y.astype(float)
    partial[::3, 1] = np.nan
    seen = ~np.isnan(partial[:, 1])
    result = evaluate(partial, P, metrics=[])
    each = [sklearn_metrics.f1_score(Y[:, j], P[:, j] >= 0.5) for j in (0, 2, 3)]
    each.append(sklearn_metrics.f1_score(Y[seen, 1], P[seen, 1] >= 0.5))
    assert result.value("macro_f1") == pytest.approx(np.mean(each), abs=1e-12)
    hidden = P.copy()
    hidden[~seen, 1] = 0.0  # scores of cells that were not observed
    assert evaluate(partial, hidden, metrics=[]).rules["scores"].thresholds == result.rules["scores"].thresholds


def test_large_sparse_scores_stay_sparse_and_have_the_same_values(monkeypatch):
    few = sp.csr_array(np.where(P > 0.2, P, 0.0))
    dense = evaluate(Y, few)
    monkeypatch.setattr(evaluating, "_DENSE_CELLS", 0)
    monkeypatch.setattr(evaluating, "_BLOCK_CELLS", 500)  # two labels
    sparse = evaluate(sp.csr_array(Y), few)
    pd.testing.assert_frame_equal(sparse.values, dense.values)
    assert sparse.rules["scores"].thresholds == dense.rules["scores"].thresholds
    assert sparse.calibration.empty


@pytest.mark.slow
def test_two_models_are_tested_on_the_same_rows():
    worse = expit(LOGITS + np.random.default_rng(5).normal(scale=2, size=Y.shape))
    result = evaluate(Y, {"new": P, "old": worse, "same": P}, metric="hamming_loss", n_draws=1000)
    tests = result.tests.set_index("model")
    assert tests.index.tolist() == ["old", "old + thresholds", "same", "same + thresholds"]
    assert tests.loc["old", "advantage"] == pytest.approx(
        sklearn_metrics.hamming_loss(Y, P >= 0.5) - sklearn_metrics.hamming_loss(Y, worse >= 0.5), abs=1e-12
    )
    # the mean of paired differences has a known standard error
    losses = ((worse >= 0.5) != Y).mean(axis=1) - ((P >= 0.5) != Y).mean(axis=1)
    half = (tests.loc["old", "high"] - tests.loc["old", "low"]) / 2
    assert half == pytest.approx(1.96 * losses.std() / np.sqrt(len(Y)), rel=0.15)
    assert tests.loc["old", "differs"]
    assert tests.loc["same", ["advantage", "low", "high"]].tolist() == [0, 0, 0]
    assert tests.loc["same", "p"] == 1


def test_a_metric_of_ones_own_has_the_values_intervals_and_tests_of_the_same_metric_by_name():
    def right_cells(Y, decisions):
        return (decisions == Y).mean()

    models = {"first": P, "other": expit(LOGITS - 1)}
    own = evaluate(Y, models, metric=right_cells, metrics=["ranking_loss"])
    named = evaluate(Y, models, metric="hamming_loss", metrics=["ranking_loss"])
    for name in models:  # with thresholds they differ: those of a function maximise macro F1
        found, expected = (each.values.set_index(["model", "metric"]).loc[name] for each in (own, named))
        columns = ["value", "low", "high"]
        assert found.loc["right_cells", columns].tolist() == pytest.approx(
            (1 - expected.loc["hamming_loss", ["value", "high", "low"]]).tolist()
        )
        assert found.loc["ranking_loss", columns].tolist() == expected.loc["ranking_loss", columns].tolist()
    columns = ["advantage", "low", "high", "p"]
    assert own.tests.loc[0, columns].tolist() == pytest.approx(named.tests.loc[0, columns].tolist())
    assert str(own)
    assert own.rules["first"] == evaluate(Y, P).rules["scores"]


def test_rules_of_other_rows_decide_and_nothing_is_tuned():
    first = evaluate(Y[:120], LOGITS[:120], kind="logits", label_names=LABELS)
    rules = first.rules["scores"]
    later = evaluate(Y[120:], LOGITS[120:], kind="logits", rules=rules, label_names=LABELS)
    assert later.value("macro_f1") == macro_f1(Y[120:], P[120:] >= np.array(rules.thresholds))
    assert later.rules == {}
    assert later.gains.empty
    with pytest.raises(ValueError):
        evaluate(Y[120:], LOGITS[120:], kind="logits", rules=rules, label_names=[*LABELS[::-1], "peace"])
    with pytest.raises(ComparisonError):
        evaluate(Y[120:], P[120:], rules=rules, label_names=LABELS)
    with pytest.raises(ComparisonError):
        evaluate(Y, {"a": P}, kind={"b": "logits"})


def test_a_model_without_scores_has_no_thresholds():
    result = evaluate(
        Y, {"net": P, "service": (P >= 0.4).astype(int)}, kind={"net": "probabilities", "service": "decisions"}
    )
    assert set(result.left_out) == {"service"}
    assert list(result.rules) == ["net"]
    assert result.tests["model"].tolist() == ["service"]
    with pytest.raises(ComparisonError):
        result.value("ranking_loss", "service")
    few = evaluate(Y[:3], P[:3], metrics=[])
    assert few.rules == {}


def test_rules_are_the_ones_of_a_saved_file(tmp_path):
    rules = evaluate(Y, P, label_names=LABELS).rules["scores"]
    assert DecisionRules.load(rules.save(tmp_path / "rules.json")) == rules


def test_labels_have_thresholds_and_intervals(monkeypatch):
    names = ["war", "love", "crime", "space"]
    result = evaluate(Y, LOGITS, kind="logits", label_names=names)
    rules, own, tuned = result.rules["scores"], *result.labels.values()
    assert own["threshold"].tolist() == [0.5] * 4
    assert tuned["threshold"].tolist() == rules.thresholds
    for table in (own, tuned):
        assert ((table["f1_low"] < table["f1"]) & (table["f1"] < table["f1_high"])).all()
    later = evaluate(Y, LOGITS, kind="logits", rules=rules, label_names=names)
    assert later.models == ("scores + rules",)
    assert later.labels["scores + rules"]["threshold"].tolist() == rules.thresholds
    monkeypatch.setattr(evaluating, "_DRAWN_LABELS", 100)  # two labels of 50 draws
    few = evaluate(Y, LOGITS, kind="logits", label_names=names).labels["scores"]
    assert few["f1_low"].notna().tolist() == [True, True, False, False]
    assert few["f1_low"][:2].tolist() == own["f1_low"][:2].tolist()
    never = DecisionRules(names, [0.5, None, 0.5, 0.5], "logits")
    ruled = evaluate(Y, LOGITS, kind="logits", rules=never, label_names=names).labels["scores + rules"]
    assert ruled["threshold"].isna().tolist() == [False, True, False, False]


def test_rules_know_the_rows_that_taught_them(tmp_path):
    truth, scores = pd.DataFrame(Y, IDS, LABELS), pd.DataFrame(P, IDS, LABELS)
    path = evaluate(truth[:120], scores).rules["scores"].save(tmp_path / "rules.json")
    rules = DecisionRules.load(path)
    assert len(evaluate(truth[:120][::-1], scores[:120], rules=rules).notes) == 1
    assert evaluate(truth[120:], scores[120:], rules=rules).notes == ()
    numbered = evaluate(pd.DataFrame(Y, columns=LABELS), pd.DataFrame(P, columns=LABELS))
    again = evaluate(Y, P, rules=numbered.rules["scores"], label_names=LABELS)
    assert again.notes == ()


def test_probabilities_that_are_called_logits_are_noted():
    assert len(evaluate(Y, P, kind="logits").notes) == 1
    assert evaluate(Y, LOGITS, kind="logits").notes == ()
    assert evaluate(Y, P).notes == ()


def test_tags_that_all_differ_are_not_taken_for_identifiers(tmp_path):
    films = pd.DataFrame({"tags": ["war", "love", "war|love"], "year": [1999, 1999, 2001], "film": ["a", "b", "c"]})
    films.to_csv(tmp_path / "films.csv", index=False)
    assert read_truth(tmp_path / "films.csv", tags="tags").spare == "film"
    assert read_truth(tmp_path / "films.csv", tags="tags", id_column="film").spare is None
