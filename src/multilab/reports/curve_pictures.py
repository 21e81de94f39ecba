"""Figs. 3 to 6 of the LWMF paper made anew: a metric over the number of features, a panel per dataset."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from multilab.claims.selection_checks import curve_area
from multilab.reports.drawing import new_figure, styled, svg_uri
from multilab.reports.pictures import Picture
from multilab.reports.study import Study, metric_title

__all__ = ["curve_pictures"]

_STYLES = (
    {"color": "#7a8794", "ls": "--"},
    {"color": "#7a8794", "ls": ":"},
    {"color": "#3f6b4f", "ls": "-."},
    {"color": "#8a5a9e", "ls": "-", "marker": "s", "ms": 2.5},
    {"color": "#b3541e", "ls": "-", "lw": 1.9},
    {"color": "#b3541e", "ls": "--"},
    {"color": "#b3541e", "ls": ":"},
)


def curve_pictures(study: Study, table: pd.DataFrame) -> Iterable[Picture]:
    """Yield a figure per metric; legends give the area under each curve up to the number of features kept."""
    for metric in dict.fromkeys(table["metric"]):
        yield _picture(study, table[table["metric"] == metric], str(metric))


def _picture(study: Study, table: pd.DataFrame, metric: str) -> Picture:
    names = [name for name in study.datasets if name in set(table["dataset"])]
    listed = set(table["method"])
    methods = [m for m in (*study.methods, *sorted(listed - set(study.methods))) if m in listed]
    digits = 4 if table["value"].abs().max() < 1.5 else 3
    with styled():
        rows = math.ceil(len(names) / 2)
        figure = new_figure(8.6, 2.9 * rows)
        grid = figure.subplots(rows, 2, squeeze=False)
        for ax in grid.flat[len(names) :]:
            ax.axis("off")
        for ax, name in zip(grid.flat, names, strict=False):
            here = table[table["dataset"] == name].pivot(index="features", columns="method", values="value")
            kept = int(table.loc[(table["dataset"] == name) & table["kept"].astype(bool), "features"].min())
            for place, method in enumerate(methods):
                curve = here[method].dropna()
                area = f"{curve_area(curve[curve.index <= kept]):.{digits}f}".removeprefix("0")
                style = {"lw": 1.2, **_STYLES[place % len(_STYLES)]}
                ax.plot(curve.index, curve, label=f"{study.method_title(method)} {area}", **style)
            ax.axvline(kept, color="#6b7482", lw=0.8, ls=(0, (1, 2)))
            ax.set_title(name, fontsize=9)
            ax.tick_params(labelsize=7)
            ax.grid(True, color="#d9dde3", lw=0.5)
            ax.legend(fontsize=6, framealpha=0.8, edgecolor="none")
        for ax in grid[-1]:
            ax.set_xlabel("number of features")
        uri = svg_uri(figure)
    title = metric_title(metric)
    caption = (
        f"{title} of ML-kNN on the first features of each ranking. Dotted: the number that MLNB keeps, with which the "
        "tables are made; at the right end all features are used. Legends: area under the curve up to the dotted line, "
        "as its mean height."
    )
    return Picture(uri, f"{title} over the number of features on {', '.join(names)}", caption, 860)
