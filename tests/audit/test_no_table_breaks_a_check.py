"""Tables of nonsense: no check raises, and the report is printable."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multilab.audit import (
    DERIVED_KINDS,
    AuditCell,
    AuditTable,
    TestSize,
    as_json,
    audit_table,
    parse_number,
    report_lines,
)
from multilab.audit.quantities import QUANTITIES

TEXTS = [
    "0",
    "1",
    "0.0",
    "0.000",
    "1.000",
    "-0.5",
    "0.5",
    "0.123",
    "0.9999",
    "12.5",
    "99",
    "1e-4",
    "100000",
    "3.211",
    "",
]
NAMES = [*QUANTITIES, "time", "label_count", "label_frequency", "all"]


def numbers() -> st.SearchStrategy:
    return st.sampled_from(TEXTS).map(parse_number)


def cells() -> st.SearchStrategy:
    return st.builds(
        AuditCell,
        table=st.sampled_from(["", "1", "2"]),
        dataset=st.sampled_from(["d0", "d1", "d2", "Average"]),
        method=st.sampled_from(["a", "b", "c", "d"]),
        metric=st.sampled_from(NAMES),
        mean=numbers(),
        std=numbers(),
        rank=numbers(),
        direction=st.sampled_from(["", "min", "max"]),
        kind=st.sampled_from(["", "", "", *DERIVED_KINDS]),
        sources=st.sampled_from([(), ("1",), ("1", "2"), ("9",)]),
    )


def sizes() -> st.SearchStrategy:
    return st.builds(
        TestSize,
        n=st.sampled_from([None, 1, 2, 97, 3000]),
        q=st.sampled_from([None, 1, 2, 6]),
        cardinality=st.sampled_from([None, 0.0, 1.2, 9.0]),
        unlabelled=st.sampled_from([0, 1, 5]),
        runs=st.sampled_from([None, 1, 2, 5]),
    )


def unique(table: list[AuditCell]) -> list[AuditCell]:
    return list({(c.table, c.dataset, c.method, c.metric): c for c in table}.values())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(cells(), min_size=1, max_size=60).map(unique), st.dictionaries(st.sampled_from(["d0", "d1", "*"]), sizes())
)
def test_no_check_raises(table, known):
    audited = AuditTable.of(table, known)
    findings = audit_table(audited)
    assert all(finding.severity in ("fault", "note") for finding in findings)
    assert all(line == line.rstrip() for line in report_lines(findings))
    json.dumps(as_json(findings, audited))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(NAMES[:-1]),
    st.lists(st.lists(st.sampled_from(TEXTS[:9]), min_size=4, max_size=4), min_size=2, max_size=6),
    sizes(),
)
def test_no_grid_raises(metric, rows, size):
    table = [
        AuditCell("1", f"d{i}", method, metric, parse_number(text), parse_number("0.010"), parse_number("1"))
        for i, row in enumerate(rows)
        for method, text in zip("abcd", row, strict=True)
    ]
    for kind in DERIVED_KINDS:
        table += [AuditCell("1", kind, m, metric, parse_number("1.25"), parse_number("0.1"), kind=kind) for m in "abcd"]
    audit_table(AuditTable.of(table, {"*": size}))
