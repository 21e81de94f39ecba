"""Metrics over a grid of parameters as heat maps with the numbers in them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from multilab.reports.drawing import new_figure, styled, svg_uri
from multilab.reports.pictures import Picture
from multilab.reports.study import Study, metric_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["own_argument", "sensitivity_pictures"]

_INK, _SOFT, _WARM = "#1c2430", "#6b7482", "#b3541e"
_DEPTH = 0.1  # a metric this far below its best is white


def sensitivity_pictures(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Return a heat map per method and dataset where two parameters vary, slices through the best point where three do.

    Parameters
    ----------
    table : DataFrame
        ``sensitivity.csv``; drawn is its first metric, larger being better.
    """
    metric = str(table["metric"].iloc[0])
    for (method, dataset), rows in table[table["metric"] == metric].groupby(["method", "dataset"], sort=False):
        free = [name for name in _GREEK if rows[name].nunique() > 1]
        best = rows.loc[rows["value"].idxmax()]
        own = {name: own_argument(study, str(method), name) for name in free}
        pairs = list(itertools.combinations(free, 2))
        width = sum(0.36 * rows[b].nunique() + 0.75 for _, b in pairs)
        with styled():
            figure = new_figure(width, 0.3 * max(rows[a].nunique() for a, _ in pairs) + 0.9)
            ratios = [rows[b].nunique() for _, b in pairs]
            panels = figure.subplots(1, len(pairs), squeeze=False, width_ratios=ratios)[0]
            for ax, (a, b) in zip(panels, pairs, strict=True):
                fixed = {c: best[c] for c in free if c not in (a, b)}
                at = rows[(rows[list(fixed)] == pd.Series(fixed)).all(axis=1)] if fixed else rows
                values = at.pivot(index=a, columns=b, values="value")
                _numbered(ax, values, float(best["value"]), ", ".join(f"{_GREEK[c]} = {v:g}" for c, v in fixed.items()))
                if all(own[c] == v for c, v in fixed.items()) and own[a] in values.index and own[b] in values.columns:
                    _framed(ax, values.columns.get_loc(own[b]), values.index.get_loc(own[a]))
            uri = svg_uri(figure)
        where = f"{study.method_title(str(method))} on {dataset}"
        through = ", ".join(f"{_GREEK[c]} = {best[c]:g}" for c in free)
        caption = (
            f"{metric_title(metric)} of {where}, mean over the splits; the best is {best['value']:.3f} at {through}"
            + (", through which the slices go" if len(pairs) > 1 else "")
            + f". White is {_DEPTH:g} or more below the best; a frame marks the paper’s choice, where it is in view."
        )
        yield Picture(uri, f"{metric} over the parameters, {where}", caption, int(100 * width))


_GREEK = {"alpha": "α", "lam": "λ", "beta": "β"}


def _numbered(ax: Axes, values: pd.DataFrame, best: float, title: str) -> None:
    """Draw a table of values as a heat map with the values in it, the better the darker."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("shades", ["#ffffff", "#7ba5b4", "#0b3c49"])
    numbers = values.to_numpy()
    ax.imshow(numbers, cmap=shades, vmin=best - _DEPTH, vmax=best, aspect="auto", interpolation="none")
    for (i, j), value in np.ndenumerate(numbers):
        dark = value > best - 0.55 * _DEPTH
        ax.text(j, i, f"{value:.3f}".lstrip("0"), ha="center", va="center", fontsize=6, color="white" if dark else _INK)
    ax.set_xticks(range(values.shape[1]), [f"{v:g}" for v in values.columns], rotation=90)
    ax.set_yticks(range(values.shape[0]), [f"{v:g}" for v in values.index])
    ax.set(xlabel=_GREEK[str(values.columns.name)], ylabel=_GREEK[str(values.index.name)])
    ax.set_title(title, fontsize=9, color=_INK)
    ax.tick_params(labelsize=7, length=0, colors=_SOFT)


def _framed(ax: Axes, x: int, y: int) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=_WARM, lw=1.8))


def own_argument(study: Study, method: str, argument: str) -> float:
    """Return an argument of a method as the study has it; NaN, which draws nothing, where it is not told."""
    settings = (study.info.get("settings") or {}).get(method) or {}
    return float(settings.get(argument, math.nan))
