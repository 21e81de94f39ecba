"""Recall, precision and false alarms of the audit on tables of our own results (see docs/guide/audit.md)."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from helpers.planted_tables import PLANTS, REPORTS, STUDIES, measure

pytestmark = pytest.mark.skipif(
    not all((REPORTS / study / "scores.csv.gz").is_file() for study in STUDIES), reason="no reports: an unpacked sdist"
)
GOAL = 0.95
RISK = 1e-4
"""How often a sample of an audit that just reaches the goal may miss the bound."""


@pytest.mark.slow
def test_a_sample():
    """The bounds are what an audit with a recall and a precision of 95 % reaches with probability 1 - RISK."""
    result = measure(per_kind=2, clean=8, seed=7)
    hits = round(sum(result["recall"].values()) * 2)
    assert len(PLANTS) == 10
    assert hits >= binom.ppf(RISK, 20, GOAL), result["missed"]
    assert round(result["false_alarms"] * 8) <= binom.ppf(1 - RISK, 8, 1 - GOAL), result["false"]
    assert result["right"] >= binom.ppf(RISK, result["faults"], GOAL), result["alarms"]


@pytest.mark.nightly
def test_five_hundred_faults_and_a_hundred_clean_tables():
    result = measure(per_kind=50, clean=100, seed=2026)
    assert min(result["recall"].values()) >= GOAL, result["recall"]
    assert result["precision"] >= GOAL
    assert result["false_alarms"] <= 1 - GOAL
