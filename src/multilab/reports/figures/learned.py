"""Figures of what a method learned: weights by block, label affinities, other matrices, convergence."""

import math
from collections.abc import Sequence

import numpy as np

from multilab.methods.stacking.objective import cosine_affinity
from multilab.reports.data import Learned, ReportData
from multilab.reports.figures.diagrams import convergence, heatmap
from multilab.reports.figures.figure import Figure
from multilab.reports.figures.style import new_axes, styled

_PATH, _OPTIMUM, _WEIGHTS, _AFFINITY = "objective_path_", "objective_optimum_", "W_", "label_affinity_"


def learned_figures(report: ReportData, learned: Learned) -> tuple[Figure, ...]:
    """Return heat maps of what one method learned: weights by block, label affinities, other matrices."""
    figures = []
    where = f"{report.method_title(learned.method)} on {learned.dataset}"
    weights, affinity = learned.arrays.get(_WEIGHTS), learned.arrays.get(_AFFINITY)
    if weights is not None and weights.ndim == 2:
        figures.append(_weights_figure(report, learned, np.asarray(weights, dtype=float), where))
    if affinity is not None and affinity.ndim == 2:
        figures.append(affinity_figure(learned, where))
    for name, array in learned.arrays.items():
        is_matrix = array.ndim == 2 and min(array.shape) > 1 and max(array.shape) <= 4000
        if name not in (_WEIGHTS, _AFFINITY) and is_matrix and array.dtype.kind in "fiub":
            figures.append(_matrix_figure(learned, name, where))
    return tuple(figures)


@styled()
def _matrix_figure(learned: Learned, name: str, where: str) -> Figure:
    array = learned.arrays[name]
    canvas, axes = new_axes(5.2, 3.6)
    ax = axes[0, 0]
    columns = learned.label_names if array.shape[1] == len(learned.label_names) else ()
    canvas.colorbar(heatmap(array, ax, columns=columns, title=name), ax=ax, shrink=0.85)
    return Figure.of(canvas, f"{name} of {where}", f"{name} of {where}.", pixels=True)


@styled()
def _weights_figure(report: ReportData, learned: Learned, weights: np.ndarray, where: str) -> Figure:
    """Draw an (m l, l) weight matrix as m blocks of l x l with one colour scale."""
    n_labels = weights.shape[1]
    n_blocks = weights.shape[0] // n_labels if n_labels and weights.shape[0] % n_labels == 0 else 1
    limit = float(np.nanmax(np.abs(weights), initial=0.0))
    height = 3.6 if n_labels <= 24 else 3.0
    canvas, axes = new_axes(2.6 * n_blocks + 1.0, height, 1, n_blocks, "compressed", sharey=True)
    panels = axes[0]
    names = _block_names(report, learned, n_blocks)
    for ax, block, name in zip(panels, np.split(weights, n_blocks), names, strict=True):
        rows = learned.label_names if block.shape[0] == n_labels else ()
        image = heatmap(block, ax, rows, learned.label_names, limit, name, signed=True)
        ax.set_xlabel("weight for label")
    panels[0].set_ylabel("score of label")
    canvas.colorbar(image, ax=list(panels), shrink=0.85)
    caption = (
        f"Weights W of {where}, one block per base method, one colour scale. "
        f"{int((weights == 0).sum())} of {weights.size} entries are exactly zero."
    )
    return Figure.of(canvas, f"Heatmap of the weights of {where} in {n_blocks} blocks", caption, pixels=True)


def _block_names(report: ReportData, learned: Learned, n_blocks: int) -> list[str]:
    bases = report.settings(learned.method).get("base_scores")
    if isinstance(bases, list) and len(bases) == n_blocks:
        return [report.method_title(str(base)) for base in bases]
    return [f"block {i + 1}" for i in range(n_blocks)] if n_blocks > 1 else ["W"]


@styled()
def affinity_figure(learned: Learned, where: str) -> Figure:
    """Draw the affinity of the training labels next to the cosines of the weight columns, if any."""
    affinity = np.asarray(learned.arrays[_AFFINITY], dtype=float)
    panels = [("labels (training set)", affinity)]
    caption = f"Label affinity used by {where}."
    weights = learned.arrays.get(_WEIGHTS)
    if weights is not None and weights.ndim == 2 and weights.shape[1] == len(affinity):
        cosines = cosine_affinity(weights)
        panels.append(("weights W (columns)", cosines))
        caption = f"Cosine affinity of labels and of the weights learned for them, {where}."
        agreement = _off_diagonal_correlation(affinity, cosines)
        if agreement is not None:
            caption += f" Correlation of the off-diagonal entries: {agreement:.2f}."
    canvas, axes = new_axes(3.3 * len(panels) + 0.8, 3.3, 1, len(panels), "compressed")
    for ax, (title, matrix) in zip(axes[0], panels, strict=True):
        image = heatmap(matrix, ax, learned.label_names, learned.label_names, 1.0, title, signed=True)
        canvas.colorbar(image, ax=ax, shrink=0.8)
    return Figure.of(canvas, f"Heatmaps of label affinities, {where}", caption, pixels=True)


def _off_diagonal_correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    upper = np.triu_indices(len(a), 1)
    x, y = a[upper], b[upper]
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0 else None


@styled()
def convergence_figure(report: ReportData, learned: Sequence[Learned]) -> Figure | None:
    """Return one panel per dataset with the stored objective paths of all methods, None if there are none."""
    paths = [item for item in learned if np.size(item.arrays.get(_PATH, ())) > 1]
    datasets = [d for d in report.datasets if any(item.dataset == d for item in paths)]
    if not datasets:
        return None
    columns = min(3, len(datasets))
    rows = math.ceil(len(datasets) / columns)
    canvas, axes = new_axes(3.1 * columns, 2.5 * rows, rows, columns, panels=len(datasets))
    all_known = True
    for ax, dataset in zip(axes.flat, datasets, strict=False):
        arrays = {report.method_title(item.method): item.arrays for item in paths if item.dataset == dataset}
        optima = {name: float(a[_OPTIMUM]) for name, a in arrays.items() if np.size(a.get(_OPTIMUM, ())) == 1}
        all_known &= len(optima) == len(arrays)
        convergence({name: a[_PATH] for name, a in arrays.items()}, ax, optima, dataset)
    caption = "Distance of the objective from its optimum on the first split, both axes logarithmic."
    if not all_known:
        caption += " F* is the smallest value reached where the optimum is not stored, so the end of a curve drops."
    return Figure.of(canvas, f"Convergence curves on {', '.join(datasets)}", caption)
