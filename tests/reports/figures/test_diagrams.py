"""Diagrams on axes."""

import numpy as np
import pandas as pd
import pytest

from multilab.statistics import compare_methods

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from multilab.reports import ReportError, cd_diagram, heatmap


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
