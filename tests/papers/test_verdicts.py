"""Verdicts on claims: the rule, and the table that a notebook shows."""

import math

import pandas as pd
import pytest

from multilab.papers import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED, Claims, verdict
from multilab.printed import PaperError
from multilab.statistics import PairedComparison, compare_on_splits


def compared(difference, p, least_p=0.01):
    return PairedComparison("a", "b", 8, 5, 0, 3, difference, math.nan, math.nan, p, least_p)


BETTER, WORSE, EQUAL = compared(0.1, 0.01), compared(-0.1, 0.01), compared(0.0, 1.0)
UNCLEAR, FEW = compared(0.1, 0.2), compared(0.1, 0.0625, 0.0625)


@pytest.mark.parametrize(
    ("comparisons", "parts", "outcome"),
    [
        (BETTER, "all", REPRODUCED),
        (compared(0.1, 0.05), "all", REPRODUCED),
        (WORSE, "all", NOT_REPRODUCED),
        (EQUAL, "all", NOT_REPRODUCED),
        (UNCLEAR, "all", NOT_REPRODUCED),
        (FEW, "all", NOT_DECIDED),
        (compare_on_splits(pd.Series([0.9], name="a"), pd.Series([0.1], name="b"), "max", 0.5), "all", NOT_DECIDED),
        ([BETTER, BETTER], "all", REPRODUCED),
        ([BETTER, UNCLEAR], "all", NOT_REPRODUCED),
        ([BETTER, FEW], "all", NOT_DECIDED),
        ([WORSE, FEW], "all", NOT_REPRODUCED),
        ([BETTER, BETTER, WORSE], "most", REPRODUCED),
        ([BETTER, WORSE], "most", NOT_REPRODUCED),  # one of two is not most
        ([BETTER, FEW, FEW], "most", NOT_DECIDED),
        ([FEW, WORSE, WORSE], "most", NOT_REPRODUCED),
        ([BETTER, REPRODUCED, NOT_DECIDED], "most", REPRODUCED),
        ([NOT_REPRODUCED, NOT_DECIDED], "all", NOT_REPRODUCED),
    ],
)
def test_verdict(comparisons, parts, outcome):
    assert verdict(comparisons, parts) == outcome


def test_the_level_is_that_of_the_claim():
    assert verdict(compared(0.1, 0.08), alpha=0.1) == REPRODUCED
    assert verdict(FEW, alpha=0.1) == REPRODUCED
    with pytest.raises(PaperError, match="at least one comparison"):
        verdict([])


@pytest.mark.parametrize(
    ("claim", "outcome", "why", "message"),
    [
        ("best", "holds", "", "claim best: the outcome must be one of reproduced, not reproduced, not decided; got"),
        ("best", NOT_DECIDED, "", "claim best: say why it is not decided"),
        ("first", REPRODUCED, "", "claim first: it is decided already"),
    ],
)
def test_a_claim_is_decided_once_with_an_outcome_of_the_three_and_a_reason(claim, outcome, why, message):
    claims = Claims()
    assert claims.decide("first", "A beats B", REPRODUCED, "5-1 of 6") == REPRODUCED
    with pytest.raises(PaperError, match=message):
        claims.decide(claim, "A beats C", outcome, "3-3 of 6", why)
    claims.decide("few", "A is fast", NOT_DECIDED, "2 sets", "two data sets are too few")
    assert claims.table.to_numpy().tolist() == [
        ["first", "A beats B", REPRODUCED, "5-1 of 6", ""],
        ["few", "A is fast", NOT_DECIDED, "2 sets", "two data sets are too few"],
    ]
