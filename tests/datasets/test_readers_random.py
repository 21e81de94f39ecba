"""Random ARFF files: what is written is read, and the quick way agrees with the careful one."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.readers_samples import card_content
from multilab.datasets import read
from multilab.datasets.arff import parse_header, parse_rows
from multilab.datasets.arff_numbers import dense_numbers, sparse_numbers
from multilab.datasets.columns import to_number
from multilab.datasets.file_access import Limits

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)
finite = st.floats(allow_nan=False, allow_infinity=False)


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@st.composite
def tables(draw):
    kinds = draw(
        st.lists(st.one_of(st.none(), st.lists(names, min_size=1, max_size=4, unique=True)), min_size=1, max_size=5)
    )
    labels = draw(st.integers(1, 3))
    titles = draw(st.lists(names, min_size=labels + len(kinds), max_size=labels + len(kinds), unique=True))
    row = st.tuples(
        *[st.integers(0, 1)] * labels,
        *[finite if kind is None else st.integers(0, len(kind) - 1) for kind in kinds],
    )
    return titles, labels, kinds, draw(st.lists(row, min_size=1, max_size=6)), draw(st.booleans())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables())
def test_round_trip(tmp_path, table):
    titles, labels, kinds, rows, sparse = table
    domains = [["0", "1"]] * labels + kinds
    lines = [f"@relation 'r: -C {labels}'"]
    for title, domain in zip(titles, domains, strict=True):
        shown = "numeric" if domain is None else "{" + ",".join(map(quoted, domain)) + "}"
        lines.append(f"@attribute {quoted(title)} {shown}")
    lines.append("@data")
    for row in rows:
        fields = [repr(v) if d is None else quoted(d[v]) for v, d in zip(row, domains, strict=True)]
        shown = [f"{j} {text}" for j, text in enumerate(fields) if row[j] != 0] if sparse else fields
        lines.append("{" + ",".join(shown) + "}" if sparse else ",".join(shown))
    path = tmp_path / "random.arff"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    raw = card_content(path)
    assert raw.label_names == titles[:labels]
    assert raw.Y.tolist() == [list(row[:labels]) for row in rows]
    expected = []
    for row in rows:
        values = []
        for value, domain in zip(row[labels:], kinds, strict=True):
            if domain is None:
                values.append(value)
            elif sorted(map(to_number, domain)) in ([0], [1], [0, 1]):
                values.append(to_number(domain[value]))
            else:
                values += [float(k == value) for k in range(len(domain))]
        expected.append(values)
    X = raw.X.toarray() if sp.issparse(raw.X) else raw.X
    np.testing.assert_array_equal(X, np.array(expected, dtype=float).reshape(len(rows), -1))
    assert len(raw.feature_names) == X.shape[1]
    data = read(path)
    assert (data.label_names, data.Y.tolist()) == (raw.label_names, raw.Y.tolist())
    if data.kinds is not None:  # a table holds the values as they are declared
        for j, (title, kind) in enumerate(zip(titles[labels:], kinds, strict=True)):
            of_numbers = kind is None or sorted(map(to_number, kind)) in ([0], [1], [0, 1])
            written = [row[labels + j] if kind is None else kind[row[labels + j]] for row in rows]
            assert data.X[title].tolist() == ([float(value) for value in written] if of_numbers else written)


decimals = st.one_of(
    finite.map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9).map(str),
    st.from_regex(r"\A[+-]?(\d{1,20}\.?\d{0,24}|\.\d{1,25})\Z").filter(str.isascii),
    st.from_regex(r"\A[-+.eE0-9 ]{0,6}\Z").filter(str.isascii),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(decimals, min_size=2, max_size=2), min_size=1, max_size=4))
def test_quick_numbers_are_those_of_python(rows):
    """The quick way returns exactly what ``float`` makes of each field, or refuses."""
    body = "\n".join(",".join(row) for row in rows).encode()
    quick = dense_numbers(body, 2)
    try:
        plain = [[float(text) for text in row] for row in rows]
    except ValueError:
        assert quick is None
        return
    if all(math.isfinite(v) for row in plain for v in row):
        assert quick is not None
        np.testing.assert_array_equal(quick, plain)
        entries = sparse_numbers("\n".join(f"{{0 {a.strip()},1 {b.strip()}}}" for a, b in rows).encode(), 2)
        np.testing.assert_array_equal(entries.toarray(), plain)
    else:
        assert quick is None


@settings(max_examples=400, deadline=None)
@given(st.text("{}0123 ,.-\n", max_size=24))
def test_quick_sparse_rows_are_those_of_the_careful_reader(body):
    header = parse_header(
        "@attribute l {0,1}\n" + "".join(f"@attribute a{j} numeric\n" for j in range(3)) + "@data\n",
        "p",
        Limits(),
    )
    quick = sparse_numbers(body.encode(), 4)
    if quick is None or not np.isin(quick.toarray()[:, 0], (0, 1)).all():
        return
    careful = parse_rows(body, 1, header.columns, np.array([0]), "p", Limits())
    np.testing.assert_array_equal(quick.toarray(), careful.toarray())
