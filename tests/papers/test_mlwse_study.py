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


def test_claims_about_which_method_is_better_use_fair_columns():
    study = load_study("mlwse")
    judged = {"best_average_rank", "wins_minus_losses", "beats", "friedman_rejects"}
    for claim in find("mlwse").claims:
        if claim.check in judged:
            arguments = claim.arguments
            columns = [*arguments.get("methods", ()), *arguments.get("against", ()), *arguments.get("best", ())]
            assert {study.kind_of(column) for column in columns} == {"fair"}, claim.id


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


@pytest.mark.parametrize(
    ("gains", "slack", "expected"),
    [([0.0, 0.01, 0.02], 0.0, "holds"), ([-0.02, -0.01, 0.0], 0.0, "fails"), ([-0.02, -0.01, 0.0], 0.011, "holds")],
)
def test_at_least_best_of_allows_the_slack(gains, slack, expected):
    others = {("p", "accuracy"): {"d": [0.5, 0.6, 0.7]}, ("q", "accuracy"): {"d": [0.4, 0.4, 0.4]}}
    known = evidence({("m", "accuracy"): {"d": [v + g for v, g in zip((0.5, 0.6, 0.7), gains, strict=True)]}, **others})
    arguments = {"methods": ["m"], "others": ["p", "q"], "metric": "accuracy", "datasets": ["d"], "slack": slack}
    assert outcome("at_least_best_of", arguments, known) == expected


def test_some_zero_needs_zeros_on_most_datasets_and_counts_zero_groups():
    W = np.zeros((4, 2))
    W[:2] = 1e-12
    learned = {("a", "x"): {"W_": W}, ("a", "y"): {"W_": W + 1}}
    result = run_check("some_zero", {"methods": ["a"], "blocks": 2}, evidence({}, learned=learned))
    assert result.outcome == "fails"
    assert result.numbers["a"] == {
        "datasets with zeros": "1 of 2", "median share": 0.25, "largest share": 0.5, "zero groups": "1 of 4",
    }  # fmt: skip
    more = evidence({}, learned={**learned, ("a", "z"): {"W_": W}})
    assert outcome("some_zero", {"methods": ["a"]}, more) == "holds"
    assert run_check("some_zero", {"methods": ["b"]}, more).reason == "b kept no W_"


def test_zeros_at_takes_the_first_strength_from_the_given_one_on():
    table = pd.DataFrame({"method": "m", "dataset": "d", "strength": [0.1, 1.0, 10.0], "zeros": [0.0, 0.1, 0.9]})
    known = evidence({}, tables={"sparsity": table})
    assert outcome("zeros_at", {"method": "m", "strengths": {"d": 0.5}, "at_least": 0.1}, known) == "holds"
    assert outcome("zeros_at", {"method": "m", "strengths": {"d": 0.1}, "at_least": 0.1}, known) == "fails"


@pytest.mark.parametrize(("sign", "expected"), [(1, "holds"), (-1, "fails")])
def test_correlation_sign_compares_cosines_of_labels_and_weights(sign, expected):
    rng = np.random.default_rng(0)
    learned = {}
    for name in "abcdefgh":
        W = rng.random((6, 5))
        learned["m", name] = {"W_": W, "label_affinity_": sign * cosine_affinity(W)}
    result = run_check("correlation_sign", {"methods": ["m"]}, evidence({}, learned=learned))
    assert result.outcome == expected
    assert result.numbers["m"]["median"] == sign
    few = evidence({}, learned={k: v for k, v in learned.items() if k[1] in "abc"})
    assert outcome("correlation_sign", {"methods": ["m"]}, few) == ("not testable" if sign > 0 else "fails")


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("worse_beyond", {"parameter": "alpha", "limit": 10, "margins": {"d": 0.01}}, "holds"),
        ("worse_beyond", {"parameter": "alpha", "limit": 10, "margins": {"d": 0.5}}, "fails"),
        ("worse_beyond", {"parameter": "alpha", "limit": 1000, "margins": {"d": 0.01}}, "not testable"),
        ("rises_then_falls", {"parameter": "beta", "fixed": {"alpha": 1}, "margins": {"d": 0.01}}, "holds"),
        ("rises_then_falls", {"parameter": "beta", "fixed": {"alpha": 100}, "margins": {"d": 0.01}}, "fails"),
        ("rises_then_falls", {"parameter": "beta", "margins": {"d": 0.09}}, "holds"),
        ("flat_in", {"at_best": ["alpha"], "tolerance": 0.11}, "holds"),
        ("flat_in", {"at_best": ["alpha"], "tolerance": 0.09}, "fails"),
        ("flat_in", {"at_best": ["beta"], "tolerance": 0.11}, "fails"),
        ("flat_in", {"at_best": ["beta"], "up_to": {"alpha": 1}, "tolerance": 0.11}, "holds"),
    ],
)
def test_checks_on_a_grid(name, arguments, expected):
    arguments = {"method": "m", "metric": "example_f1", **arguments}
    assert outcome(name, arguments, evidence({}, tables={"sensitivity": GRID})) == expected
    assert run_check(name, arguments, EMPTY).reason == "sensitivity.csv is not among the study's results"


def test_checks_on_curves():
    table = pd.DataFrame(
        {"method": "m", "dataset": "d", "iteration": [1, 100, 200, 300], "gap": [1.0, 0.1, 1e-3, 1e-4]}
    )
    known = evidence({}, tables={"convergence": table})
    assert outcome("below_by", {"at": {"m": 200}, "limit": 2e-3}, known) == "holds"
    assert outcome("below_by", {"at": {"m": 200}, "limit": 1e-3}, known) == "fails"
    assert outcome("below_by", {"at": {"m": 400}, "limit": 1e-3}, known) == "open"
    assert outcome("settled_by", {"at": {"m": 200}, "limit": 1e-5}, known) == "holds"
    assert outcome("settled_by", {"at": {"m": 100}, "limit": 1e-5}, known) == "fails"
    assert outcome("settled_by", {"at": {"m": 300}, "limit": 1e-5}, known) == "open"


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
