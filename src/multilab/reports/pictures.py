"""The figures of a page: which data go into which figure, and what a reader is told about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from multilab.reports.drawing import new_figure, png_uri, styled, svg_uri
from multilab.reports.figures import cd_diagram, convergence, heatmap
from multilab.reports.study import Learned, Study
from multilab.statistics import Comparison

__all__ = ["Picture", "affinity_picture", "convergence_picture", "learned_pictures", "rank_picture", "rank_pictures"]

_PATH, _OPTIMUM, _WEIGHTS, _AFFINITY = "objective_path_", "objective_optimum_", "W_", "label_affinity_"


@dataclass(frozen=True)
class Picture:
    """A figure ready for the page: its data address, the same in words, a caption, its width in pixels."""

    uri: str
    alt: str
    caption: str
    width: int


def rank_pictures(study: Study, comparison: Comparison) -> tuple[Picture, ...]:
    """Return the critical-difference diagrams of one metric; two if there is a control."""
    pictures = []
    tests = ["nemenyi"] + (["bonferroni-dunn"] if comparison.control else [])
    for test in tests:
        if comparison.cd_nemenyi is None:
            continue
        words, caption = _rank_words(study, comparison, test), _rank_caption(study, comparison, test)
        pictures.append(rank_picture(comparison, study.titles, words, caption, test))
    return tuple(pictures)


def rank_picture(
    comparison: Comparison, titles: Mapping[str, str], words: str, caption: str, test: str = "nemenyi"
) -> Picture:
    """Return one critical-difference diagram, wide enough for the ranks of many methods."""
    width = 4.9 + 0.25 * max(comparison.k - 7, 0)
    with styled():
        figure = new_figure(width, 0.9 + 0.24 * math.ceil(comparison.k / 2) + 0.1 * len(comparison.groups))
        cd_diagram(comparison, figure.add_subplot(), titles, test)
        uri = svg_uri(figure)
    return Picture(uri, words, caption, round(114 * width))


def _rank_words(study: Study, comparison: Comparison, test: str) -> str:
    order = sorted(comparison.ranks, key=lambda m: (comparison.ranks[m], m))
    ranks = ", ".join(f"{study.titles.get(m, m)} {comparison.ranks[m]:.2f}" for m in order)
    return f"Average ranks by {comparison.metric} ({test}): {ranks}"


def _rank_caption(study: Study, comparison: Comparison, test: str) -> str:
    level = f"α = {comparison.alpha:g}, {comparison.n} datasets"
    if test == "nemenyi":
        return f"Nemenyi, {level}: average ranks, best on the left; thick bars join methods that do not differ."
    control = study.titles.get(str(comparison.control), str(comparison.control))
    return f"Bonferroni–Dunn against {control}, {level}: methods inside the grey band do not differ from it."


def learned_pictures(study: Study, learned: Learned) -> tuple[Picture, ...]:
    """Return heatmaps of what one method learned: weights by block, label affinities, the rest."""
    pictures = []
    where = f"{study.method_title(learned.method)} on {learned.dataset}"
    weights, affinity = learned.arrays.get(_WEIGHTS), learned.arrays.get(_AFFINITY)
    if weights is not None and weights.ndim == 2:
        pictures.append(_weights_picture(study, learned, np.asarray(weights, dtype=float), where))
    if affinity is not None and affinity.ndim == 2:
        pictures.append(affinity_picture(learned, where))
    for name, array in learned.arrays.items():
        plain = array.ndim == 2 and min(array.shape) > 1 and max(array.shape) <= 4000  # a list of numbers is no heatmap
        if name in (_WEIGHTS, _AFFINITY) or not plain or array.dtype.kind not in "fiub":
            continue
        with styled():
            figure = new_figure(5.2, 3.6)
            ax = figure.add_subplot()
            columns = learned.label_names if array.shape[1] == len(learned.label_names) else ()
            figure.colorbar(heatmap(array, ax, columns=columns, title=name), ax=ax, shrink=0.85)
            pictures.append(Picture(png_uri(figure), f"{name} of {where}", f"{name} of {where}.", 520))
    return tuple(pictures)


def _weights_picture(study: Study, learned: Learned, weights: np.ndarray, where: str) -> Picture:
    """Draw an (m l, l) weight matrix as m blocks of l x l with one colour scale."""
    labels = weights.shape[1]
    count = weights.shape[0] // labels if labels and weights.shape[0] % labels == 0 else 1
    blocks = np.split(weights, count)
    names = _block_names(study, learned, count)
    limit = float(np.nanmax(np.abs(weights), initial=0.0))
    with styled():
        figure = new_figure(2.6 * count + 1.0, 3.6 if labels <= 24 else 3.0, "compressed")
        axes = figure.subplots(1, count, squeeze=False, sharey=True)[0]
        for ax, block, name in zip(axes, blocks, names, strict=True):
            square = block.shape[0] == labels
            rows = learned.label_names if square else ()
            image = heatmap(block, ax, rows, learned.label_names, limit, name, signed=True)
        axes[0].set_ylabel("score of label")
        for ax in axes:
            ax.set_xlabel("weight for label")
        figure.colorbar(image, ax=list(axes), shrink=0.85)
        uri = png_uri(figure)
    zeros = int((weights == 0).sum())
    caption = (
        f"Weights W of {where}, one block per base method, one colour scale. "
        f"{zeros} of {weights.size} entries are exactly zero."
    )
    return Picture(uri, f"Heatmap of the weights of {where} in {count} blocks", caption, 260 * count + 100)


def _block_names(study: Study, learned: Learned, count: int) -> list[str]:
    settings = (study.info.get("settings") or {}).get(learned.method) or {}
    bases = settings.get("base_scores") if isinstance(settings, dict) else None
    if isinstance(bases, list) and len(bases) == count:
        return [study.method_title(str(base)) for base in bases]
    return [f"block {i + 1}" for i in range(count)] if count > 1 else ["W"]


def affinity_picture(learned: Learned, where: str) -> Picture:
    """Draw the affinity of the training labels beside the cosines of the weight columns, if any."""
    affinity = np.asarray(learned.arrays[_AFFINITY], dtype=float)
    panels = [("labels (training part)", affinity)]
    caption = f"Label affinity used by {where}."
    weights = learned.arrays.get(_WEIGHTS)
    if weights is not None and weights.ndim == 2 and weights.shape[1] == len(affinity):
        cosines = _column_cosines(np.asarray(weights, dtype=float))
        panels.append(("weights W (columns)", cosines))
        caption = f"Cosine affinity of labels and of the weights learned for them, {where}."
        agreement = _off_diagonal_correlation(affinity, cosines)
        if agreement is not None:
            caption += f" Correlation of the off-diagonal entries: {agreement:.2f}."
    with styled():
        figure = new_figure(3.3 * len(panels) + 0.8, 3.3, "compressed")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for ax, (title, matrix) in zip(axes, panels, strict=True):
            image = heatmap(matrix, ax, learned.label_names, learned.label_names, 1.0, title, signed=True)
            figure.colorbar(image, ax=ax, shrink=0.8)
        uri = png_uri(figure)
    return Picture(uri, f"Heatmaps of label affinities, {where}", caption, 330 * len(panels) + 80)


def _column_cosines(weights: np.ndarray) -> np.ndarray:
    """Return the cosines between columns; those of an all-zero column are 0, and 1 with itself."""
    lengths = np.linalg.norm(weights, axis=0)
    unit = weights / np.where(lengths > 0, lengths, 1.0)
    cosines = unit.T @ unit
    np.fill_diagonal(cosines, 1.0)
    return cosines


def _off_diagonal_correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    upper = np.triu_indices(len(a), 1)
    x, y = a[upper], b[upper]
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0 else None


def convergence_picture(study: Study, learned: Sequence[Learned]) -> Picture | None:
    """Return one panel per dataset with the objective paths of all methods that kept one, or None."""
    paths = [item for item in learned if np.size(item.arrays.get(_PATH, ())) > 1]
    datasets = [d for d in study.datasets if any(item.dataset == d for item in paths)]
    if not datasets:
        return None
    columns = min(3, len(datasets))
    rows = math.ceil(len(datasets) / columns)
    known = True
    with styled():
        figure = new_figure(3.1 * columns, 2.5 * rows)
        grid = figure.subplots(rows, columns, squeeze=False)
        for ax in grid.flat[len(datasets) :]:
            ax.axis("off")
        for ax, dataset in zip(grid.flat, datasets, strict=False):
            here = {study.method_title(i.method): i.arrays for i in paths if i.dataset == dataset}
            best = {name: float(a[_OPTIMUM]) for name, a in here.items() if np.size(a.get(_OPTIMUM, ())) == 1}
            known &= len(best) == len(here)
            convergence({name: a[_PATH] for name, a in here.items()}, ax, best, dataset)
        uri = svg_uri(figure)
    caption = "Distance of the objective from its optimum on the first split, both axes logarithmic."
    if not known:
        caption += " F* is the smallest value reached where the optimum is not stored, so the end of a curve drops."
    return Picture(uri, f"Convergence curves on {', '.join(datasets)}", caption, 310 * columns)
