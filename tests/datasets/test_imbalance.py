"""IRLbl, MeanIR, CVIR and SCUMBLE: a computed example, published values, and properties."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from multilab.cli import main
from multilab.datasets import cvir, irlbl, load, mean_ir, scumble, scumble_lbl

# counts 4, 2, 1, 0; rows {0}, {0, 1}, {0, 1, 2}, {0}, {}
EXAMPLE = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
# Charte et al. 2015 (MeanIR, CVIR) and the later tables of the same authors (SCUMBLE).
PUBLISHED = {
    "emotions": (1.4781, 0.1796, 0.0110),
    "yeast": (7.1968, 1.8838, 0.1044),
    "scene": (1.2538, 0.1222, 0.0003),
    "enron": (73.9528, 1.9596, 0.3028),
    "medical": (89.5014, 1.1476, 0.0471),
    "cal500": (20.5778, 1.0871, 0.3372),
}


def label_matrices() -> st.SearchStrategy[np.ndarray]:
    shapes = st.tuples(st.integers(1, 12), st.integers(1, 5))
    return shapes.flatmap(
        lambda s: st.lists(st.integers(0, 1), min_size=s[0] * s[1], max_size=s[0] * s[1]).map(
            lambda bits: np.array(bits).reshape(s)
        )
    )


def test_computed_example() -> None:
    np.testing.assert_array_equal(irlbl(EXAMPLE), [1, 2, 4, np.inf])
    assert mean_ir(EXAMPLE) == pytest.approx(7 / 3)
    # deviations -4/3, -1/3, 5/3: variance (16 + 1 + 25) / 9 / 2 = 7/3
    assert cvir(EXAMPLE) == pytest.approx(np.sqrt(7 / 3) / (7 / 3))
    second = 1 - np.sqrt(2) / 1.5  # ratios 1, 2
    third = 1 - 2 / (7 / 3)  # ratios 1, 2, 4: geometric mean 2
    assert scumble(EXAMPLE) == pytest.approx((second + third) / 5)
    np.testing.assert_allclose(
        scumble_lbl(EXAMPLE), [(second + third) / 4, (second + third) / 2, third, np.nan], rtol=1e-12
    )


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_values(name: str, benchmark_data: Path) -> None:
    Y = load(name).Y
    assert (round(mean_ir(Y), 4), round(cvir(Y), 4), round(scumble(Y), 4)) == PUBLISHED[name]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(label_matrices())
def test_properties(Y: np.ndarray) -> None:
    ratios, rows = irlbl(Y), Y.any(axis=1)
    if not Y.any():
        assert np.isnan(ratios).all()
        assert np.isnan(mean_ir(Y))
        assert scumble(Y) == 0
        return
    assert ratios.min() == 1
    assert 1 <= mean_ir(Y) <= ratios[np.isfinite(ratios)].max()
    assert 0 <= scumble(Y) < 1
    if (Y.sum(axis=1) <= 1).all():
        assert scumble(Y) == pytest.approx(0, abs=1e-12)
    # repeated rows and a permutation of the labels change nothing; rows without labels count in SCUMBLE only
    twice = np.vstack([Y, Y])[:, ::-1]
    np.testing.assert_array_equal(irlbl(twice), ratios[::-1])
    assert scumble(twice) == pytest.approx(scumble(Y))
    assert scumble(Y[rows]) * rows.mean() == pytest.approx(scumble(Y))
    # the rows' values, averaged by label and weighted with the rows' sizes, are those of the sparse and masked forms
    for other in (sp.csr_array(Y), sp.csc_matrix(Y), np.where(Y == 1, 1, -1).astype(np.int8), Y.astype(bool)):
        np.testing.assert_array_equal(irlbl(other), ratios)
        np.testing.assert_allclose(scumble_lbl(other), scumble_lbl(Y), rtol=1e-12)
    assert np.isnan(mean_ir(Y)) == np.isnan(scumble(Y))


def test_one_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="two dimensions"):
        irlbl([0, 1])


def test_the_command_prints_the_measures(capsys: pytest.CaptureFixture[str]) -> None:
    data = load("genes-toy")
    assert main(["datasets", "show", "genes-toy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(
        f"MeanIR {mean_ir(data.Y):.4g}, CVIR {cvir(data.Y):.4g}, SCUMBLE {scumble(data.Y):.4f}" in x for x in lines
    )
    first = next(i for i, line in enumerate(lines) if line.startswith("# rarest labels"))
    rarest = int(data.Y.sum(axis=0).argmin())
    name, rows, ratio, concurrence = lines[first + 1].removeprefix("# ").split()
    assert (name, int(rows)) == (data.label_names[rarest], data.Y[:, rarest].sum())
    assert float(ratio) == pytest.approx(irlbl(data.Y)[rarest], rel=1e-3)
    assert float(concurrence) == pytest.approx(scumble_lbl(data.Y)[rarest], abs=1e-4)
