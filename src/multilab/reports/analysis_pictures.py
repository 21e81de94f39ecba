"""The figures of a paper made anew: from the tables that a study's analyses wrote beside its scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from multilab.reports.curve_pictures import curve_pictures
from multilab.reports.drawing import decades, new_figure, styled, svg_uri
from multilab.reports.errors import ReportError
from multilab.reports.figures import heatmap
from multilab.reports.nystroem_pictures import nystroem_pictures
from multilab.reports.pictures import Picture
from multilab.reports.reduction_pictures import dimension_pictures, regularisation_pictures, time_pictures
from multilab.reports.sensitivity_pictures import own_argument, sensitivity_pictures
from multilab.reports.study import Study
from multilab.reports.sweeps_pictures import sweeps_pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["analysis_pictures"]

_INK, _SOFT, _PALE, _WARM = "#1c2430", "#6b7482", "#d9dde3", "#b3541e"
_COLOURS = ("#0b3c49", "#b3541e", "#7a8794", "#3f6b4f")
_LINES = ("-", "--", "-.", ":")
_MARKERS = "os^D"


def analysis_pictures(study: Study) -> list[tuple[str, tuple[Picture, ...]]]:
    """Return the pictures of a study's analyses under their headings; none where a table is not there.

    Raises
    ------
    ReportError
        If a table cannot be read or lacks a column.
    """
    makers: list[tuple[str, str, Callable[[Study, pd.DataFrame], Iterable[Picture]]]] = [
        ("Four simulated scenarios (Fig. 2)", "scenarios", _scenarios),
        ("Do labels that go together get similar weights? (Fig. 3)", "affinity", _affinity),
        ("Sensitivity to the parameters (Figs. 4 and 5)", "sensitivity", sensitivity_pictures),
        ("Convergence of the paper’s algorithms (Fig. 6)", "convergence", _convergence),
        ("Sparsity against the strength of the penalty", "sparsity", _sparsity),
        ("Hamming loss and objective by sweep (Fig. 2)", "sweeps", sweeps_pictures),
        ("Metrics over the dimension (Figs. 1 to 3)", "dimension", dimension_pictures),
        ("Time over the number of training instances (Fig. 4)", "reduction_time", time_pictures),
        ("Steps of LSQR and ridges as regularisers", "regularisation", regularisation_pictures),
        ("What a Nystroem approximation costs", "nystroem", nystroem_pictures),
        ("Metrics over the number of features (Figs. 3 to 6)", "feature_curves", curve_pictures),
    ]
    found = []
    for title, name, maker in makers:
        path = study.folder / f"{name}.csv"
        if path.is_file():
            try:
                found.append((title, tuple(maker(study, pd.read_csv(path)))))
            except (KeyError, ValueError) as error:
                raise ReportError(f"{path} cannot be drawn: {' '.join(str(error).split())}") from error
    return [(title, pictures) for title, pictures in found if pictures]


def _plain(ax: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Give a panel of curves the look of the others."""
    ax.set_title(title, fontsize=9, color=_INK)
    ax.set(xlabel=x, ylabel=y)
    ax.grid(True, color=_PALE, lw=0.5)
    ax.tick_params(labelsize=7, colors=_SOFT)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _scenarios(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Fig. 2: points and true curve of each scenario."""
    names = list(dict.fromkeys(table["dataset"]))
    with styled():
        rows = math.ceil(len(names) / 2)
        figure = new_figure(7.6, 2.6 * rows)
        grid = figure.subplots(rows, 2, squeeze=False, sharex=True)
        for ax in grid.flat[len(names) :]:
            ax.axis("off")
        for ax, name in zip(grid.flat, names, strict=False):
            here = table[table["dataset"] == name]
            points, curve = here[here["kind"] == "point"], here[here["kind"] == "curve"].sort_values("x")
            cut = float(here["threshold"].iloc[0])
            above = points["y"] > cut
            for chosen, face, words in ((above, _COLOURS[0], "class 1"), (~above, "white", "class 0")):
                at = points[chosen]
                ax.scatter(at["x"], at["y"], s=9, lw=0.6, color=face, edgecolor=_COLOURS[0], label=words)
            ax.plot(curve["x"], curve["y"], color=_WARM, lw=1.6, label="true curve")
            ax.axhline(cut, color=_INK, lw=0.9, ls=(0, (4, 3)), label="threshold")
            _plain(ax, f"{name.replace('scenario', 'scenario ')}, threshold {cut:.2f}", "x", "y")
        grid.flat[0].legend(fontsize=7, ncols=2, loc="lower left", framealpha=0.85, edgecolor="none")
        uri = svg_uri(figure)
    drawn = int((table["kind"] == "point").sum() / len(names))
    caption = (
        f"{drawn} points of each scenario and its true curve, the noise is standard normal. The paper does not say how "
        "the real value becomes a class; here it is 1 above the median of the scenario."
    )
    yield Picture(uri, f"Scatter plots of {', '.join(names)} with their true curves", caption, 760)


def _affinity(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Fig. 3: the two affinity matrices beside each other, and their correlation over beta."""
    shown = _matrices(study, list(dict.fromkeys(table["dataset"])))
    if shown:
        yield shown
    methods = list(dict.fromkeys(table["method"]))
    with styled():
        figure = new_figure(3.8 * len(methods), 2.8)
        panels = figure.subplots(1, len(methods), squeeze=False, sharey=True)[0]
        for ax, method in zip(panels, methods, strict=True):
            here = table[table["method"] == method]
            for place, (name, rows) in enumerate(here.groupby("dataset", sort=False)):
                ax.plot(rows["beta"], rows["correlation"], label=name, **_line(place))
            ax.axhline(0, color=_INK, lw=0.8)
            ax.axvline(own_argument(study, method, "beta"), color=_SOFT, lw=0.9, ls=":")
            ax.set(ylim=(-1.02, 1.02))
            decades(ax.xaxis)
            _plain(ax, study.method_title(method), "β", "")
        panels[0].set_ylabel("Spearman correlation")
        panels[0].legend(fontsize=7, frameon=False, loc="lower left", ncols=3)
        uri = svg_uri(figure)
    caption = (
        "Correlation, over the pairs of labels, of the cosine of their label columns with the cosine of their columns "
        "of weights, first split. Dotted: the paper’s β. As β grows all columns of weights become alike, and what is "
        "left to correlate is small."
    )
    yield Picture(uri, "Correlation of label affinity and weight affinity over beta", caption, 380 * len(methods))


def _matrices(study: Study, datasets: list[str]) -> Picture | None:
    """Draw label affinity and weight affinity of the first dataset whose weights were kept."""
    kept = [i for i in study.learned if {"W_", "label_affinity_"} <= set(i.arrays)]
    name = next((d for d in datasets if any(i.dataset == d for i in kept)), None)
    here = [item for item in kept if item.dataset == name]
    if not here:
        return None
    with styled():
        figure = new_figure(2.7 * (1 + len(here)) + 0.7, 3.2, "compressed")
        panels = figure.subplots(1, 1 + len(here), sharey=True)
        names = here[0].label_names
        titles = ["labels", *(f"weights of {study.method_title(item.method)}" for item in here)]
        matrices = [here[0].arrays["label_affinity_"], *(_cosines(item.arrays["W_"]) for item in here)]
        for ax, title, matrix in zip(panels, titles, matrices, strict=True):
            image = heatmap(matrix, ax, names, names, 1.0, title, signed=True)
        figure.colorbar(image, ax=list(panels), shrink=0.8)
        uri = svg_uri(figure)
    caption = (
        f"Cosine similarities on {name} at the paper’s parameters, first split: of the columns of the label matrix, "
        "and of the columns of weights."
    )
    return Picture(uri, f"Affinity of labels and of weights on {name}", caption, 270 * (1 + len(here)) + 70)


def _cosines(W: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(W, axis=0)
    unit = W / np.where(lengths > 0, lengths, 1.0)
    return unit.T @ unit


def _convergence(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Fig. 6: relative distance from the minimum per iteration."""
    names = list(dict.fromkeys(table["dataset"]))
    with styled():
        figure = new_figure(2.2 * len(names) + 0.4, 2.6)
        panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
        for ax, name in zip(panels, names, strict=True):
            here = table[(table["dataset"] == name) & (table["gap"] > 0)]
            for place, (method, rows) in enumerate(here.groupby("method", sort=False)):
                style = _line(place) | {"marker": "None"}
                ax.plot(rows["iteration"], rows["gap"], label=study.method_title(str(method)), **style)
            ax.axhline(1e-3, color=_SOFT, lw=0.9, ls=":")
            ax.axvline(200, color=_SOFT, lw=0.9, ls=":")
            decades(ax.xaxis)
            decades(ax.yaxis)
            _plain(ax, name, "iteration", "")
        panels[0].set_ylabel("(F − F*) / F*")
        panels[0].legend(fontsize=7, frameon=False, loc="lower left")
        uri = svg_uri(figure)
    words = ", ".join(
        f"{study.method_title(str(m))}: {_ALGORITHMS.get(str(a), a)}"
        for m, a in table[["method", "algorithm"]].drop_duplicates().itertuples(index=False)
    )
    caption = (
        f"Relative distance of the objective from its minimum on the first split ({words}). The paper’s starting "
        "point, a ridge solution, is near the minimum already. F* is certified to "
        f"{table['certified'].max():.0e} by a duality gap. Dotted: iteration 200 and a distance of .001. The paper "
        "plots the change of the loss from one iteration to the next instead."
    )
    yield Picture(uri, f"Relative distance from the minimum on {', '.join(names)}", caption, 220 * len(names) + 40)


_ALGORITHMS = {"apg": "accelerated proximal gradient", "bcd": "sweeps of block coordinate descent"}


def _sparsity(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Exact zeros, and what they cost, against the share of the strength that makes all weights zero."""
    names = list(dict.fromkeys(table["dataset"]))
    shown = (
        ("zeros", "zero weights"),
        ("zero_blocks", "zero blocks"),
        ("hamming_loss", "Hamming loss"),
        ("example_f1", "F1"),
    )
    with styled():
        figure = new_figure(2.6 * len(names) + 0.4, 1.5 * len(shown) + 0.5)
        grid = figure.subplots(len(shown), len(names), squeeze=False, sharex=True)
        for column, name in enumerate(names):
            for place, (method, rows) in enumerate(table[table["dataset"] == name].groupby("method", sort=False)):
                own = rows.loc[rows["paper"].astype(bool), "ratio"]
                for ax, (key, words) in zip(grid[:, column], shown, strict=True):
                    style = _line(place) | {"marker": "None"}
                    ax.plot(rows["ratio"], rows[key], label=study.method_title(str(method)), **style)
                    for ratio in own:
                        ax.axvline(ratio, color=style["color"], lw=0.9, ls=":")
                    decades(ax.xaxis, 2)
                    _plain(ax, name if key == "zeros" else "", "", words if column == 0 else "")
            grid[-1, column].set_xlabel("α / α_max, λ / λ_max")
        grid[0, 0].legend(fontsize=7, frameon=False, loc="center left")
        uri = svg_uri(figure)
    caption = (
        "Shares of exactly zero weights and of base classifiers whose weights are all zero, and the cost, on the first "
        "split, against the strength of the penalty; at 1 all weights are zero. Dotted: the paper’s strengths."
    )
    yield Picture(uri, f"Sparsity on {', '.join(names)}", caption, 260 * len(names) + 40)


def _line(place: int) -> dict[str, Any]:
    """Return the look of a curve, different in grey too."""
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "ls": _LINES[place % len(_LINES)],
        "marker": _MARKERS[place % len(_MARKERS)],
        "ms": 3.5,
        "lw": 1.4,
    }
