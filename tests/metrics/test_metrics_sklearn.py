"""The preset ``sklearn`` against scikit-learn itself, on ties, empty and full rows, absent labels."""

import math
import warnings

import numpy as np
import pytest
from sklearn import metrics as theirs

from multilab import metrics as ours
from multilab.metrics import preset

# Two orders of adding at most 60 numbers of size at most 12.
ROUNDING = 60 * 12 * np.finfo(float).eps


def case(seed):
    """Draw truth and scores: odd shapes, coarse scores every other time, some degenerate rows and labels."""
    rng = np.random.default_rng(seed)
    n, q = rng.integers(2, 60), rng.integers(2, 12)
    truth = (rng.random((n, q)) < rng.uniform(0.05, 0.9)).astype(int)
    scores = rng.random((n, q))
    if seed % 2:
        scores = np.round(scores * 4) / 4
    truth[rng.random(n) < 0.15] = 0
    truth[rng.random(n) < 0.1] = 1
    truth[:, rng.random(q) < 0.2] = 0
    return truth, scores


def close(a, b):
    return a == pytest.approx(b, abs=ROUNDING, nan_ok=True)


@pytest.fixture(params=range(40))
def random_case(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # UndefinedMetricWarning is what these data are made for
        yield case(request.param)


def test_ranking(random_case):
    truth, scores = random_case
    got = ours.score_all(truth, scores, conventions="sklearn")
    assert close(got["coverage"], theirs.coverage_error(truth, scores))
    assert close(got["coverage_1based"], theirs.coverage_error(truth, scores))
    assert close(got["ranking_loss"], theirs.label_ranking_loss(truth, scores))
    lrap = theirs.label_ranking_average_precision_score(truth, scores)
    assert close(got["average_precision"], lrap)
    # No function there: what its users write.
    assert close(got["one_error"], np.mean(truth[np.arange(len(truth)), scores.argmax(axis=1)] == 0))


def test_auc(random_case):
    truth, scores = random_case
    assert close(ours.macro_auc(truth, scores, "sklearn"), theirs.roc_auc_score(truth, scores, average="macro"))
    if 0 < truth.mean() < 1:
        micro = theirs.roc_auc_score(truth, scores, average="micro")
        assert close(ours.micro_auc(truth, scores, "sklearn"), micro)
    area = theirs.average_precision_score(truth, scores, average="macro")
    assert close(ours.macro_average_precision(truth, scores, "sklearn"), area)


def test_macro_auc_over_the_labels_with_both_classes(random_case):
    truth, scores = random_case
    mixed = np.flatnonzero((truth.min(axis=0) == 0) & (truth.max(axis=0) == 1))
    areas = [theirs.roc_auc_score(truth[:, label], scores[:, label]) for label in mixed]
    assert close(ours.macro_auc(truth, scores), np.mean(areas) if areas else math.nan)


@pytest.mark.parametrize("zero_division", [0.0, 1.0, math.nan])
def test_decisions(random_case, zero_division):
    truth, scores = random_case
    predicted = (scores >= 0.8).astype(int)
    fields = ("example_both_empty", "one_empty", "macro_both_empty", "micro_both_empty")
    rules = preset("sklearn", **dict.fromkeys(fields, zero_division))
    if not math.isnan(zero_division):
        rules = preset("sklearn", jaccard_both_empty=zero_division, **dict.fromkeys(fields, zero_division))
        jaccard = theirs.jaccard_score(truth, predicted, average="samples", zero_division=zero_division)
        assert close(ours.jaccard(truth, predicted, rules), jaccard)
    for name, average in (("example", "samples"), ("macro", "macro")):
        for kind in ("precision", "recall", "f1"):
            expected = getattr(theirs, f"{kind}_score")(truth, predicted, average=average, zero_division=zero_division)
            assert close(getattr(ours, f"{name}_{kind}")(truth, predicted, rules), expected), (name, kind)
    micro = theirs.f1_score(truth, predicted, average="micro", zero_division=zero_division)
    assert close(ours.micro_f1(truth, predicted, rules), micro)
    assert close(ours.hamming_loss(truth, predicted), theirs.hamming_loss(truth, predicted))
    assert close(ours.subset_accuracy(truth, predicted), theirs.accuracy_score(truth, predicted))


def test_the_default_differs_from_sklearn_only_by_its_rules():
    # Without degenerate rows: ranking loss and average precision equal, coverage one less.
    rng = np.random.default_rng(0)
    truth = (rng.random((50, 7)) < 0.4).astype(int)
    truth[:, 0], truth[:, 1] = 0, 1
    scores = np.round(rng.random((50, 7)), 1)
    got = ours.score_all(truth, scores)
    assert close(got["coverage"], theirs.coverage_error(truth, scores) - 1)
    assert close(got["ranking_loss"], theirs.label_ranking_loss(truth, scores))
    assert close(got["average_precision"], theirs.label_ranking_average_precision_score(truth, scores))
