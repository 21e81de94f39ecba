"""The study of the MLWSE paper: its columns, its checks, and the checks of its errata on the published cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from multilab.claims import Evidence, published_evidence
from multilab.claims import checks as checks_module
from multilab.claims.checks import check_errata
from multilab.claims.paper import find
from multilab.experiments.study import load_study
from multilab.methods import BinaryRelevance, PessimisticTree, RAkEL
from multilab.methods.stacking._mean_of_scores import MeanOfScores
from multilab.methods.stacking.objective import cosine_affinity

SCORES = ["dataset", "split", "method", "metric", "value"]
CURVES = {1: (0.5, 0.6, 0.5), 100: (0.2, 0.2, 0.2)}
GRID = pd.DataFrame(
    [("m", "d", a, b, "example_f1", v) for a, curve in CURVES.items() for b, v in enumerate(curve, 1)],
    columns=["method", "dataset", "alpha", "beta", "metric", "value"],
)


def run_check(name, arguments, evidence):
    return checks_module.run_check(name, arguments, evidence, find("mlwse").checks)


def outcome(name, arguments, evidence):
    return run_check(name, arguments, evidence).outcome


def evidence(values, **more):
    """Return evidence of values {(method, metric): {dataset: value or runs}}."""
    rows = [
        (dataset, split, method, metric, value)
        for (method, metric), results in values.items()
        for dataset, runs in results.items()
        for split, value in enumerate(runs if isinstance(runs, list) else [runs])
    ]
    return Evidence(pd.DataFrame(rows, columns=SCORES), **more)


EMPTY = evidence({})

# ---- columns


def test_published_cells_are_compared_with_columns_of_kind_as_printed():
    study, paper = load_study("mlwse"), find("mlwse")
    tables = paper.published[paper.published["table"].isin(["4", "5", "6"])]
    named = paper.aliases.named(tables)["method"]
    ours = dict(zip(tables["method"], named, strict=True))
    assert ours["rakel"] == "rakel-mulan"
    assert ours["mls"] == "br-mulan"
    assert set(ours.values()) <= set(study.all_methods)
    kinds = {printed: study.kind_of(column) for printed, column in ours.items()}
    assert kinds.pop("cde") == "fair"  # what was run is not known
    assert set(kinds.values()) == {"as_printed"}


def test_fair_columns_are_those_of_kind_fair():
    study, paper = load_study("mlwse"), find("mlwse")
    own = {name for name, column in paper.programs["fair"].columns.items() if column in study.all_methods}
    assert {study.kind_of(paper.programs["fair"].columns[name]) for name in own - {"mlwse_l1_200"}} == {"fair"}
    assert study.kind_of(paper.programs["as_printed"].columns["ebr"]) == "as_printed"


def test_the_mean_of_scores_is_their_mean():
    S = np.random.default_rng(0).random((7, 6))
    Y = np.eye(7, 3, dtype=int)
    scores = MeanOfScores(threshold=0.4).fit(S, Y).decision_function(S)
    np.testing.assert_allclose(scores, (S[:, :3] + S[:, 3:]) / 2)


def test_random_subsets_of_one_label_vote_as_binary_relevance_decides():
    """What Mulan's RAkEL without arguments is: binary relevance by votes."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 5))
    Y = (X[:, :4] + rng.normal(scale=0.5, size=(120, 4)) > 0.4).astype(int)
    votes = RAkEL(PessimisticTree(), k=1, cover=False, random_state=0).fit(X[:80], Y[:80])
    assert sorted(votes.subsets_) == [(label,) for label in range(4)]
    scores = votes.predict_proba(X[80:])
    assert set(np.unique(scores)) <= {0.0, 1.0}
    trees = BinaryRelevance(PessimisticTree(), random_state=0).fit(X[:80], Y[:80]).predict_proba(X[80:])
    decided = trees != 0.5
    assert np.array_equal(scores[decided], trees[decided] > 0.5)


# ---- checks


def test_a_loss_to_the_best_has_the_limits_for_which_it_is_small():
    known = evidence(
        {
            ("p", "accuracy"): {"d": [0.5, 0.7]},
            ("q", "accuracy"): {"d": [0.4, 0.4]},
            ("m", "accuracy"): {"d": [0.49, 0.67]},
        }
    )
    arguments = {"methods": ["m"], "others": ["p", "q"], "metric": "accuracy", "datasets": ["d"]}
    result = run_check("loss_to_best", arguments, known)
    assert result.holds_for == "differences of 0.02 and more"
    assert result.numbers == {"m against p on d": "-0.0200 (standard error 0.0100)"}


def test_classifiers_are_dropped_as_complete_blocks():
    W = np.zeros((4, 2))
    W[:2] = 1e-12
    learned = {("a", "x"): {"W_": W + 1}, ("a", "y"): {"W_": np.where(np.arange(4)[:, None] == 0, 0.0, 1.0 + W)}}
    kept = run_check("drops_classifiers", {"methods": ["a"], "blocks": 2}, evidence({}, learned=learned))
    assert kept.outcome == "fails"
    assert kept.numbers["a"] == {
        "classifiers dropped": "0 of 4", "datasets with a weight of 0": "1 of 2", "largest share of weights of 0": 0.25,
    }  # fmt: skip
    more = evidence({}, learned={**learned, ("a", "z"): {"W_": W}})
    assert outcome("drops_classifiers", {"methods": ["a"], "blocks": 2}, more) == "holds"


def test_strengths_of_the_penalty():
    table = pd.DataFrame(
        {
            "method": "m", "dataset": "d", "strength": [0.1, 1.0, 10.0, 100.0], "zeros": [0.0, 0.1, 0.9, 1.0],
            "zero_blocks": [0.0, 0.0, 1 / 3, 1.0], "hamming_loss": [0.1, 0.1, 0.2, 0.3], "paper": [1.0, 0.0, 0.0, 0.0],
        }
    )  # fmt: skip
    known = evidence({}, tables={"sparsity": table})
    assert outcome("zeros_at", {"method": "m", "strengths": {"d": 5.0}}, known) == "holds"
    assert outcome("zeros_at", {"method": "m", "strengths": {"d": 0.5}}, known) == "fails"
    found = run_check("can_drop_classifiers", {"methods": ["m"]}, known)
    assert found.outcome == "holds"
    assert found.numbers["m on d"]["times the printed one"] == 100.0
    never = evidence({}, tables={"sparsity": table.assign(zero_blocks=[0.0, 0.0, 0.0, 1.0])})
    assert outcome("can_drop_classifiers", {"methods": ["m"]}, never) == "fails"


@pytest.mark.parametrize("sign", [1, -1])
def test_affinities_of_labels_and_weights(sign):
    W = np.random.default_rng(0).random((6, 5))
    learned = {("m", "ccd"): {"W_": W, "label_affinity_": sign * cosine_affinity(W)}}
    result = run_check("affinities_agree", {"methods": ["m"], "dataset": "ccd"}, evidence({}, learned=learned))
    assert result.holds_for == f"correlations of {sign} and less"
    assert result.numbers["m"]["negative on"] == f"{int(sign < 0)} of 1 datasets"


@pytest.mark.parametrize(
    ("values", "monotone", "expected"),
    [((0.5, 0.6, 0.5), True, "holds"), ((0.5, 0.4, 0.6, 0.5), True, "fails"), ((0.5, 0.4, 0.6, 0.5), False, "holds")],
)
def test_most_cases_of_figure_4(values, monotone, expected):
    curves = {1: values, 100: (0.2,) * len(values)}
    rows = [("m", "d", a, b, "example_f1", v) for a, curve in curves.items() for b, v in enumerate(curve, 1)]
    known = evidence({}, tables={"sensitivity": pd.DataFrame(rows, columns=GRID.columns)})
    arguments = {"method": "m", "metric": "example_f1", "limit": 10.0, "alpha": 1.0, "monotone": monotone}
    result = run_check("cases_of_figure_4", arguments, known)
    assert result.numbers["cases"] == ("2 of 2" if expected == "holds" else "1 of 2")
    assert result.outcome == expected


def test_checks_on_a_grid():
    known = evidence({}, tables={"sensitivity": GRID})
    stable = {"method": "m", "metric": "example_f1"}
    assert run_check("range_at_best", {**stable, "at_best": ["alpha"]}, known).holds_for == "ranges of 0.1 and more"
    assert run_check("range_at_best", {**stable, "at_best": ["beta"]}, known).numbers == {"d": 0.4}
    limited = {**stable, "at_best": ["beta"], "up_to": {"alpha": 1.0}}
    assert run_check("range_at_best", limited, known).numbers == {"d": 0.0}
    rises = {**stable, "parameter": "beta", "dataset": "d", "at_any": "alpha"}
    assert run_check("rises_in", rises, known).numbers == {"alpha 1": 0.1, "alpha 100": 0.0}
    missing = run_check("range_at_best", {**stable, "at_best": ["alpha"]}, EMPTY)
    assert missing.reason == "sensitivity.csv is not among the study's results"


def test_checks_on_curves():
    table = pd.DataFrame(
        {"method": "m", "dataset": "d", "iteration": [1, 100, 200, 300], "gap": [1.0, 0.1, 1e-3, 1e-4]}
    )
    known = evidence({}, tables={"convergence": table})
    assert run_check("gap_from", {"at": {"m": 200}}, known).holds_for == "shares of 0.001 and more"
    changes = run_check("changes_from", {"at": {"m": 200}}, known)
    assert changes.holds_for == "changes of 9e-06 and more"
    assert changes.numbers["largest of all from iteration 1 on"] == pytest.approx(0.9 / 99, rel=1e-2)
    assert run_check("gap_from", {"at": {"m": 400}}, known).reason == "convergence.csv stops before iteration 400 for m"


def test_selections_against_their_baseline():
    draws = {"baseline": [0.5] * 9, "better": [0.6] * 8 + [0.4], "same": [0.5] * 9}
    known = evidence({(name, "accuracy"): {"d": values} for name, values in draws.items()})
    arguments = {"methods": ["better", "same"], "other": "baseline", "metric": "accuracy", "datasets": ["d"]}
    assert run_check("better_in_draws", arguments, known).share == (1, 2)
    weights = {
        ("s", "weight[better]"): {"d": 0.2}, ("s", "weight[same]"): {"d": 0.7},
        ("better", "accuracy"): {"d": 0.6}, ("same", "accuracy"): {"d": 0.5},
    }  # fmt: skip
    heaviest = {"methods": ["s"], "classifiers": ["better", "same"], "datasets": ["d"]}
    assert outcome("largest_weight_to_best", heaviest, evidence(weights)) == "fails"
    first = {"method": "better", "others": ["same"], "metric": "accuracy", "datasets": ["d"]}
    assert outcome("first_of", first, evidence(weights)) == "holds"


def test_a_pattern_of_draws_has_a_probability():
    known = evidence({("m", "weight"): {"x": [0.0, 1.0], "y": [0.0, 2.0], "z": [0.0, 0.0]}})
    arguments = {"method": "m", "metric": "weight", "value": 0.0, "datasets": ["x", "y", "z"]}
    result = run_check("pattern_is_likely", arguments, known)
    assert (result.outcome, result.numbers["probability"]) == ("holds", 0.25)


def test_seconds_and_differences():
    values = {
        (m, metric): {"x": v if metric == "total_seconds" else 0.0, "y": 1.0 if metric == "total_seconds" else 0.0}
        for m, v in (("m", 8.0), ("a", 1.0), ("b", 2.0), ("c", 9.0))
        for metric in ("total_seconds", "input_seconds")
    }
    slower = run_check("slower_than", {"methods": ["m"], "others": ["a", "b", "c"]}, evidence(values))
    assert slower.holds_for == "factors of 4 and more"
    known = evidence({("m", "jaccard"): {"x": 0.5, "y": 0.4}, ("o", "jaccard"): {"x": 0.45, "y": 0.43}})
    arguments = {"method": "m", "other": "o", "metrics": ["jaccard"]}
    assert run_check("largest_difference", arguments, known).holds_for == "differences of 0.05 and more"


def test_cells_of_another_version_change_an_order():
    known = evidence({(m, "micro_f1"): {"x": v, "y": v} for m, v in (("a", 0.9), ("b", 0.5))})
    arguments = {
        "metric": "micro_f1",
        "changed": {"a": {"x": 0.4, "y": 0.4}},
        "methods": ["a", "b"],
        "datasets": ["x", "y"],
    }
    assert outcome("ranks_with_other_version", {**arguments, "order": ["b", "a"]}, known) == "holds"
    assert outcome("ranks_with_other_version", {**arguments, "order": ["a", "b"]}, known) == "fails"
    printed = {"method": "a", "metric": "micro_f1", "dataset": "x"}
    assert outcome("printed_is_better", {**printed, "other": 0.8}, known) == "holds"
    assert outcome("printed_is_better", {**printed, "other": 0.95}, known) == "fails"


MIXED = {
    ("a", "jaccard"): {"x": 0.1, "y": 0.2},
    ("a", "accuracy_1mHL"): {"x": 0.9, "y": 0.9},
    ("b", "jaccard"): {"x": 0.5, "y": 0.5},
}


def test_mixed_measures_turn_the_order():
    known = evidence(MIXED)
    plain, mixed = {"accuracy": {"default": "jaccard"}}, {"accuracy": {"default": "jaccard", "a": "accuracy_1mHL"}}
    for mixture, expected in ((plain, "fails"), (mixed, "holds")):
        ranks = {"mixture": mixture, "best": ["a"], "methods": ["a", "b"]}
        assert outcome("best_mixed_rank", ranks, known) == expected
        assert outcome("mixed_wins", {"mixture": mixture, "methods": ["a"], "against": ["b"]}, known) == expected


def test_a_lead_is_compared_with_the_critical_difference():
    sets = [f"d{i}" for i in range(12)]
    known = evidence({(m, "jaccard"): dict.fromkeys(sets, value) for m, value in (("a", 0.9), ("b", 0.5), ("c", 0.1))})
    arguments = {"metrics": ["jaccard"], "best": ["a"], "methods": ["a", "b", "c"]}
    assert outcome("leads_by_critical_difference", arguments, known) == "holds"  # .957 for three methods
    few = {**arguments, "datasets": sets[:4]}
    assert outcome("leads_by_critical_difference", few, known) == "fails"


def test_value_in_some_needs_one_repetition_per_dataset():
    known = evidence({("m", "weight"): {"x": [0.0, 1.0], "y": [1.0, 2.0]}})
    arguments = {"methods": ["m"], "metric": "weight", "value": 0.0, "datasets": ["x", "y"]}
    result = run_check("value_in_some", arguments, known)
    assert result.outcome == "holds in part"
    assert result.numbers == {"m on x": "1 of 2", "m on y": "0 of 2"}


def test_values_that_vary_from_repetition_to_repetition():
    known = evidence({("m", "weight"): {"d": [-3.0, 1.0]}, ("m", "other"): {"d": [0.0, 0.5]}})
    arguments = {"method": "m", "metrics": ["weight"], "dataset": "d", "at_least": 4}
    assert outcome("ranges_over", arguments, known) == "holds"
    assert outcome("ranges_over", {**arguments, "at_least": 4.1}, known) == "fails"
    assert outcome("ranges_over", {**arguments, "metrics": ["weight", "other"]}, known) == "holds in part"


def test_checks_of_printed_arithmetic_fail_on_other_numbers():
    known = evidence(
        {
            ("m", "accuracy"): {"x": 0.75, "y": 0.9},
            ("m", "hamming_loss"): {"x": 0.2, "y": 0.1},
            ("m", "label_count"): {"x": 23},
            ("m", "label_frequency"): {"x": 0.036},
            ("o", "accuracy"): {"x": 0.1, "y": 0.9},
            ("o", "hamming_loss"): {"x": 0.2, "y": 0.1},
        }
    )
    sums = {"method": "m", "metric": "accuracy", "other": "hamming_loss"}
    assert outcome("complement_is", {**sums, "values": {"x": 0.25}}, known) == "holds"
    assert outcome("complement_is", {**sums, "values": {"x": 0.26}}, known) == "fails"
    assert outcome("complement_is", {**sums, "values": {"y": 0.1}}, known) == "fails"
    cut = {"methods": ["m"], "count": "label_count", "frequency": "label_frequency", "dataset": "x"}
    assert outcome("cut_off", {**cut, "n": 628}, known) == "holds"  # .03662
    assert outcome("cut_off", {**cut, "n": 639}, known) == "fails"  # .03599
    above = {"metric": "hamming_loss", "of": "accuracy", "methods": ["m"], "others": ["o"]}
    assert outcome("never_exceeds", above, known) == "holds"
    assert outcome("never_exceeds", {**above, "but": ["x"]}, known) == "fails"
    assert outcome("never_exceeds", {**above, "methods": ["o"], "others": ["m"]}, known) == "fails"
    assert outcome("is_critical_difference", {"k": 9, "n": 14, "value": "3.2", "right": "2.029"}, EMPTY) == "fails"


# ---- errata


def test_every_check_of_an_erratum_on_the_published_cells_holds():
    paper = find("mlwse")
    findings = check_errata(paper.errata, published_evidence(paper.published), None, paper.checks)
    assert len(findings) >= 25
    assert {finding.outcome for finding in findings.values()} == {"holds"}
