"""Figure of a metric against the share of observed training labels."""

import math
from collections.abc import Mapping

import pandas as pd

from multilab.reports.figures.figure import Figure
from multilab.reports.figures.style import COLD, WARM, new_axes, style_axes, styled

_COLUMNS = 5
_STYLES = ({"color": COLD, "ls": "-", "marker": "o"}, {"color": WARM, "ls": "--", "marker": "s"})


@styled()
def shares_figure(
    curves: pd.DataFrame, titles: Mapping[str, str], treatments: Mapping[str, str], metric: str, caption: str
) -> Figure:
    """Return one panel per method with a curve per treatment of hidden labels.

    Parameters
    ----------
    curves : DataFrame
        Index ``method, hidden``; a column per share.
    titles : mapping of str to str
        Display names of the methods, in the order of the panels.
    treatments : mapping of str to str
        Text of each treatment.
    metric, caption : str
        Label of the y axes, and the text below the figure.
    """
    rows = math.ceil(len(titles) / _COLUMNS)
    canvas, axes = new_axes(9.0, 1.45 * rows + 0.4, rows, _COLUMNS, panels=len(titles), sharex=True, sharey=True)
    for number, (ax, (method, title)) in enumerate(zip(axes.flat, titles.items(), strict=False)):
        for (hidden, text), style in zip(treatments.items(), _STYLES, strict=True):
            if (method, hidden) in curves.index:
                values = curves.loc[(method, hidden)].dropna()
                ax.plot(values.index, values, label=text, ms=2.5, lw=1.2, **style)
        style_axes(ax, title, y=metric if number % _COLUMNS == 0 else "")
        ax.set_xlim(0, 1.05)
        if number + _COLUMNS >= len(titles):
            ax.set_xlabel("observed share")
            ax.tick_params(labelbottom=True)
    entries = {text: line for ax in axes.flat for line, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    canvas.legend(entries.values(), entries, loc="outside lower center", ncols=len(entries))
    return Figure.of(canvas, f"{metric} against the share of observed training labels, a panel per method", caption)
