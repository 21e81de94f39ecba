"""Diagrams on axes, and images as text."""

import base64
import io

import numpy as np
import pandas as pd
import pytest

from multilab.statistics import compare_methods

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.reports import ReportError, cd_diagram, convergence, heatmap
from multilab.reports.figures.style import new_axes, png_bytes, png_uri, styled


def axes():
    from matplotlib.figure import Figure

    return Figure().add_subplot()


def test_diagram_shows_ranks_and_groups_of_the_comparison():
    table = pd.DataFrame(np.random.default_rng(0).random((8, 6)) + np.arange(6) / 3, columns=list("abcdef"))
    comparison = compare_methods(table, "min", control="a")
    ax = axes()
    cd_diagram(comparison, ax, {"a": "Alpha $1"})
    texts = {text.get_text() for text in ax.texts}
    assert f"Alpha $1  {comparison.ranks['a']:.2f}" in texts
    assert f"{comparison.ranks['f']:.2f}  f" in texts
    assert f"CD = {comparison.cd_nemenyi:.3f}" in texts
    bars = [line.get_xdata() for line in ax.lines if line.get_linewidth() == 4]
    spans = [(comparison.ranks[g[0]], comparison.ranks[g[-1]]) for g in comparison.groups]
    assert len(spans) > 1
    assert np.allclose(np.sort(bars, axis=0), np.sort(np.add(spans, (-0.03, 0.03)), axis=0))
    band = axes()
    cd_diagram(comparison, band, test="bonferroni-dunn")
    assert f"CD = {comparison.cd_bonferroni_dunn:.3f}" in {text.get_text() for text in band.texts}
    edges = band.collections[-1].get_paths()[0].get_extents()
    assert edges.x1 == pytest.approx(comparison.ranks["a"] + comparison.cd_bonferroni_dunn)


def test_diagrams_refuse_what_they_cannot_show():
    table = pd.DataFrame(np.ones((3, 2)), columns=["a", "b"])
    with pytest.raises(ReportError, match="bonferroni-dunn"):
        cd_diagram(compare_methods(table, "min"), axes(), test="bonferroni-dunn")
    with pytest.raises(ReportError, match="nothing to compare"):
        cd_diagram(compare_methods(table[["a"]], "min"), axes())


def test_diagram_says_when_no_two_methods_can_differ():
    ax = axes()
    cd_diagram(compare_methods(pd.DataFrame([[1.0, 2.0, 3.0]], columns=list("abc")), "min"), ax)
    assert any("no two methods can differ" in text.get_text() for text in ax.texts)


def test_heatmap_scales_and_marks():
    ax = axes()
    image = heatmap(np.array([[1.0, -2.0], [0.5, 0.0]]), ax, ["r", "s"], ["c", "d"], title="W")
    assert image.get_clim() == (-2.0, 2.0)
    assert ax.collections[0].get_offsets().tolist() == [[1.0, 0.0]]  # the dash of the one negative entry
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["c", "d"]
    positive = heatmap(np.array([[1.0, 2.0]]), axes(), limit=4.0)
    assert positive.get_clim() == (0.0, 4.0)
    grey = heatmap(np.array([[1.0, 2.0, 3.0]]), axes()).cmap(np.linspace(0, 1, 50))[:, :3].mean(axis=1)
    assert (np.diff(grey) < 0).all()
    heatmap(np.zeros((2, 2)), axes())


def test_convergence_is_the_distance_from_the_optimum():
    ax = axes()
    convergence({"a": np.array([5.0, 3.0, 2.0]), "b": np.array([5.0, 3.0, 2.0])}, ax, {"b": 1.0})
    assert ax.lines[0].get_ydata().tolist() == [3.0, 1.0]  # the last value is taken as the optimum
    assert ax.lines[1].get_ydata().tolist() == [4.0, 2.0, 1.0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_small_pictures_keep_the_ends_of_a_colour_scale():
    """Median cut made the most negative and the most positive weight of flags the same brown."""
    image = pytest.importorskip("PIL.Image")
    matrix = np.linspace(-1, 1, 49).reshape(7, 7) ** 3
    with styled():
        canvas, axes = new_axes(5, 4)
        heatmap(matrix, axes[0, 0], signed=True)
        small = image.open(io.BytesIO(base64.b64decode(png_uri(canvas).partition(",")[2]))).convert("RGB")
        exact = image.open(io.BytesIO(png_bytes(canvas, 110))).convert("RGB")
    assert np.abs(np.asarray(small, dtype=int) - np.asarray(exact, dtype=int)).max() <= 8


def test_long_curves_are_thinned_and_keep_their_ends():
    with styled():
        ax = new_axes(4, 3)[1][0, 0]
        convergence({"a": 1 + np.exp(-np.arange(5000) / 500)}, ax, {"a": 1.0})
        x = ax.lines[0].get_xdata()
    assert len(x) <= 150
    assert (x[0], x[-1]) == (1, 5000)
