"""Figures of the MLWSE paper, drawn from the tables of its analyses."""

import math
from collections.abc import Iterable

import pandas as pd

from multilab.methods.stacking.objective import cosine_affinity
from multilab.papers.mlwse.figures_sensitivity import sensitivity
from multilab.reports.data import ReportData
from multilab.reports.figures import Figure, FigureSource, heatmap
from multilab.reports.figures.style import COLD, INK, SOFT, WARM, curve_style, decades, new_axes, style_axes, styled

_ALGORITHMS = {"apg": "accelerated proximal gradient", "bcd": "sweeps of block coordinate descent"}


@styled()
def _scenarios(report: ReportData, table: pd.DataFrame) -> Figure:
    """Fig. 2: points and true curve of each scenario."""
    names = list(dict.fromkeys(table["dataset"]))
    rows = math.ceil(len(names) / 2)
    canvas, axes = new_axes(7.6, 2.6 * rows, rows, 2, panels=len(names), sharex=True)
    for ax, name in zip(axes.flat, names, strict=False):
        kinds = dict(list(table[table["dataset"] == name].groupby("kind")))
        points, curve = kinds["point"], kinds["curve"].sort_values("x")
        threshold = float(points["threshold"].iloc[0])
        above = points["y"] > threshold
        for chosen, face, label in ((above, COLD, "class 1"), (~above, "white", "class 0")):
            group = points[chosen]
            ax.scatter(group["x"], group["y"], s=9, lw=0.6, color=face, edgecolor=COLD, label=label)
        ax.plot(curve["x"], curve["y"], color=WARM, lw=1.6, label="true curve")
        ax.axhline(threshold, color=INK, lw=0.9, ls=(0, (4, 3)), label="threshold")
        style_axes(ax, f"{name.replace('scenario', 'scenario ')}, threshold {threshold:.2f}", "x", "y")
    axes.flat[0].legend(ncols=2, loc="lower left", frameon=True, framealpha=0.85, edgecolor="none")
    n_points = int((table["kind"] == "point").sum() / len(names))
    caption = (
        f"{n_points} points of each scenario and its true curve, the noise is standard normal. The paper does not say "
        "how the real value becomes a class; here it is 1 above the median of the scenario."
    )
    return Figure.of(canvas, f"Scatter plots of {', '.join(names)} with their true curves", caption)


def _affinity(report: ReportData, table: pd.DataFrame) -> Iterable[Figure]:
    """Fig. 3: the two affinity matrices next to each other, and their correlation over beta."""
    matrices = _matrices(report, list(dict.fromkeys(table["dataset"])))
    return [*([matrices] if matrices else []), _correlations(report, table)]


@styled()
def _correlations(report: ReportData, table: pd.DataFrame) -> Figure:
    methods = list(dict.fromkeys(table["method"]))
    canvas, axes = new_axes(3.8 * len(methods), 2.8, 1, len(methods), sharey=True)
    for ax, method in zip(axes[0], methods, strict=True):
        curves = table[table["method"] == method].groupby("dataset", sort=False)
        for index, (name, rows) in enumerate(curves):
            ax.plot(rows["beta"], rows["correlation"], label=name, **curve_style(index))
        ax.axhline(0, color=INK, lw=0.8)
        ax.axvline(float(report.settings(method).get("beta", math.nan)), color=SOFT, lw=0.9, ls=":")
        ax.set(ylim=(-1.02, 1.02))
        decades(ax.xaxis)
        style_axes(ax, report.method_title(method), "β", "Spearman correlation" if ax is axes[0, 0] else "")
    axes[0, 0].legend(loc="lower left", ncols=3)
    caption = (
        "Correlation, over the pairs of labels, of the cosine of their label columns with the cosine of their columns "
        "of weights, first split. Dotted: the paper’s β. As β grows all columns of weights become alike, and what is "
        "left to correlate is small."
    )
    return Figure.of(canvas, "Correlation of label affinity and weight affinity over beta", caption)


@styled()
def _matrices(report: ReportData, datasets: list[str]) -> Figure | None:
    """Draw label affinity and weight affinity of the first dataset whose weights are stored."""
    stored = [item for item in report.learned if {"W_", "label_affinity_"} <= set(item.arrays)]
    name = next((d for d in datasets if any(item.dataset == d for item in stored)), None)
    learned = [item for item in stored if item.dataset == name]
    if not learned:
        return None
    n_panels, labels = 1 + len(learned), learned[0].label_names
    canvas, axes = new_axes(2.7 * n_panels + 0.7, 3.2, 1, n_panels, "compressed", sharey=True)
    titles = ["labels", *(f"weights of {report.method_title(item.method)}" for item in learned)]
    matrices = [learned[0].arrays["label_affinity_"], *(cosine_affinity(item.arrays["W_"]) for item in learned)]
    for ax, title, matrix in zip(axes[0], titles, matrices, strict=True):
        image = heatmap(matrix, ax, labels, labels, 1.0, title, signed=True)
    canvas.colorbar(image, ax=list(axes[0]), shrink=0.8)
    caption = (
        f"Cosine similarities on {name} at the paper’s parameters, first split: of the columns of the label matrix, "
        "and of the columns of weights."
    )
    return Figure.of(canvas, f"Affinity of labels and of weights on {name}", caption)


@styled()
def _convergence(report: ReportData, table: pd.DataFrame) -> Figure:
    """Fig. 6: relative distance from the minimum per iteration."""
    names = list(dict.fromkeys(table["dataset"]))
    canvas, axes = new_axes(2.2 * len(names) + 0.4, 2.6, 1, len(names), sharey=True)
    for ax, name in zip(axes[0], names, strict=True):
        curves = table[(table["dataset"] == name) & (table["gap"] > 0)].groupby("method", sort=False)
        for index, (method, rows) in enumerate(curves):
            label = report.method_title(str(method))
            ax.plot(rows["iteration"], rows["gap"], label=label, **curve_style(index, marker="None"))
        ax.axhline(1e-3, color=SOFT, lw=0.9, ls=":")
        ax.axvline(200, color=SOFT, lw=0.9, ls=":")
        decades(ax.xaxis)
        decades(ax.yaxis)
        style_axes(ax, name, "iteration", "(F − F*) / F*" if ax is axes[0, 0] else "")
    axes[0, 0].legend(loc="lower left")
    algorithms = ", ".join(
        f"{report.method_title(str(method))}: {_ALGORITHMS.get(str(algorithm), algorithm)}"
        for method, algorithm in table[["method", "algorithm"]].drop_duplicates().itertuples(index=False)
    )
    caption = (
        f"Relative distance of the objective from its minimum on the first split ({algorithms}). The paper’s starting "
        "point, a ridge solution, is near the minimum already. F* is certified to "
        f"{table['certified'].max():.0e} by a duality gap. Dotted: iteration 200 and a distance of .001. The paper "
        "plots the change of the loss from one iteration to the next instead."
    )
    return Figure.of(canvas, f"Relative distance from the minimum on {', '.join(names)}", caption)


@styled()
def _sparsity(report: ReportData, table: pd.DataFrame) -> Figure:
    """Exact zeros, and their cost, over the strength of the penalty relative to that which makes all weights zero."""
    names = list(dict.fromkeys(table["dataset"]))
    quantities = {
        "zeros": "zero weights",
        "zero_blocks": "zero blocks",
        "hamming_loss": "Hamming loss",
        "example_f1": "F1",
    }
    n_rows = len(quantities)
    canvas, axes = new_axes(2.6 * len(names) + 0.4, 1.5 * n_rows + 0.5, n_rows, len(names), sharex=True)
    for column, name in enumerate(names):
        for index, (method, rows) in enumerate(table[table["dataset"] == name].groupby("method", sort=False)):
            style = curve_style(index, marker="None")
            for ax, (key, label) in zip(axes[:, column], quantities.items(), strict=True):
                ax.plot(rows["ratio"], rows[key], label=report.method_title(str(method)), **style)
                for ratio in rows.loc[rows["paper"].astype(bool), "ratio"]:
                    ax.axvline(ratio, color=style["color"], lw=0.9, ls=":")
                decades(ax.xaxis, 2)
                style_axes(ax, name if key == "zeros" else "", "", label if column == 0 else "")
        axes[-1, column].set_xlabel("α / α_max, λ / λ_max")
    axes[0, 0].legend(loc="center left")
    caption = (
        "Shares of exactly zero weights and of base classifiers whose weights are all zero, and the cost, on the first "
        "split, against the strength of the penalty; at 1 all weights are zero. Dotted: the paper’s strengths."
    )
    return Figure.of(canvas, f"Sparsity on {', '.join(names)}", caption)


FIGURES = (
    FigureSource("Four simulated scenarios (Fig. 2)", "scenarios", _scenarios),
    FigureSource("Do labels that go together get similar weights? (Fig. 3)", "affinity", _affinity),
    FigureSource("Sensitivity to the parameters (Figs. 4 and 5)", "sensitivity", sensitivity),
    FigureSource("Convergence of the paper’s algorithms (Fig. 6)", "convergence", _convergence),
    FigureSource("Sparsity against the strength of the penalty", "sparsity", _sparsity),
)
"""Figures of the report page, in the paper's order."""
