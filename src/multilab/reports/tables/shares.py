"""Scores against the share of observed training labels, for a study whose variants hide labels: table and figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from multilab.reports.data import ReportData, metric_direction, metric_title
from multilab.reports.figures.figure import Figure
from multilab.reports.figures.style import COLD, WARM, new_axes, style_axes, styled
from multilab.reports.tables.entry import ARROWS, Entry, TextTable, number

TREATMENTS = {"missing": "observed labels alone", "absent": "hidden labels count as absent"}
"""What methods see of a hidden label, by the setting ``hidden``, as text."""


@dataclass(frozen=True)
class ShareView:
    """The headline metric against the observed share: a row per method and treatment of hidden labels, and the figure.

    ``datasets`` and ``splits`` are the numbers of those that all columns were run on.
    """

    table: TextTable
    figure: Figure
    datasets: int
    splits: int


def share_view(report: ReportData) -> ShareView | None:
    """Return the headline metric of a study against the observed share, ``None`` without shares."""
    metric = report.primary[0]
    wide = _complete_rows(report, metric)
    curves = _curves(report, wide)
    if curves.empty:
        return None
    rows = [
        (report.method_title(method), (Entry(TREATMENTS.get(hidden, hidden)), *(Entry(number(v)) for v in values)))
        for (method, hidden), values in zip(curves.index, curves.to_numpy(), strict=True)
    ]
    title, datasets = metric_title(metric), wide.index.get_level_values("dataset")
    caption = (
        f"{title} on complete test labels against the share of the training labels that are observed; "
        f"mean of {datasets.nunique()} datasets. The value at 100 % is that of complete labels."
    )
    titles = {method: report.method_title(method) for method in dict.fromkeys(curves.index.get_level_values("method"))}
    corner = f"{title} {ARROWS[metric_direction(metric)]}".strip()
    return ShareView(
        TextTable(corner, ("Learns from", *(f"{share:.0%}" for share in curves.columns)), tuple(rows)),
        shares_figure(curves, titles, TREATMENTS, title, caption),
        datasets.nunique(),
        int(wide.groupby("dataset").size().max()),
    )


def share_curves(report: ReportData, metric: str) -> pd.DataFrame:
    """Return the mean of a metric over datasets, by method and treatment of hidden labels (rows) and share (columns).

    Means are over the datasets and splits that all columns of the variants were run on. The share 1 is the study's own
    column of the method, with complete labels.

    Returns
    -------
    DataFrame
        Index ``method, hidden``; columns are shares, ascending; empty for a study whose variants hide no labels.
    """
    return _curves(report, _complete_rows(report, metric))


def _columns(report: ReportData) -> list[tuple[str, str, float, str]]:
    """Return (method, hidden, share, column) of the columns that show a share, complete labels as 1."""
    shown = [
        (base, str(variant.observed["hidden"]), float(variant.observed["share"]), column)
        for variant in report.variants
        if variant.observed
        for column, base in variant.methods.items()
    ]
    curves = dict.fromkeys((base, hidden) for base, hidden, _, _ in shown)
    complete = () if report.info.get("observed") else set(report.methods)
    return shown + [(base, hidden, 1.0, base) for base, hidden in curves if base in complete]


def _complete_rows(report: ReportData, metric: str) -> pd.DataFrame:
    """Return the scores of the splits (rows) that all columns with a share were run on."""
    columns = dict.fromkeys(column for *_, column in _columns(report))
    scores = report.scores[(report.scores["metric"] == metric) & report.scores["method"].isin(columns)]
    return scores.pivot(index=["dataset", "split"], columns="method", values="value").dropna()


def _curves(report: ReportData, wide: pd.DataFrame) -> pd.DataFrame:
    means = wide.groupby("dataset").mean().mean()
    rows = [(base, hidden, share, means[column]) for base, hidden, share, column in _columns(report) if column in means]
    long = pd.DataFrame(rows, columns=["method", "hidden", "share", "value"])
    curves = long.pivot(index=["method", "hidden"], columns="share", values="value")
    methods = [method for method in report.methods if method in curves.index.get_level_values("method")]
    order = [(m, hidden) for m in methods for hidden in TREATMENTS if (m, hidden) in curves.index]
    return curves.loc[order].dropna(how="all", axis="columns")


def kept_shares(report: ReportData) -> dict[str, Any] | None:
    """Return what the median method keeps of the headline metric, by treatment of hidden labels.

    ``None`` for a study without shares, and where small values of the metric are good.

    Returns
    -------
    dict or None
        ``metric``, its title; ``kept``, a list with the ``treatment``, the share nearest to ``half``, and the
        ``median`` over methods of what is kept at it; ``medians``, a DataFrame of the medians by treatment (rows) and
        share (columns); and ``kept_by``, the same of every method.
    """
    metric = report.primary[0]
    curves = share_curves(report, metric) if metric_direction(metric) == "max" else pd.DataFrame()
    if curves.empty or 1.0 not in curves or curves.shape[1] < 2:
        return None
    kept = curves.div(curves[1.0], axis="index").rename(index=lambda name: TREATMENTS.get(name, name), level="hidden")
    medians = kept.groupby(level="hidden", sort=False).median()
    found = []
    for treatment, row in medians.drop(columns=1.0).iterrows():
        half = min(row.dropna().index, key=lambda share: abs(share - 0.5))
        found.append({"treatment": treatment, "half": half, "median": row[half]})
    return {"metric": metric_title(metric), "kept": found, "medians": medians, "kept_by": kept}


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
    for position, (ax, (method, title)) in enumerate(zip(axes.flat, titles.items(), strict=False)):
        for (hidden, text), style in zip(treatments.items(), _STYLES, strict=True):
            if (method, hidden) in curves.index:
                values = curves.loc[(method, hidden)].dropna()
                ax.plot(values.index, values, label=text, ms=2.5, lw=1.2, **style)
        style_axes(ax, title, y=metric if position % _COLUMNS == 0 else "")
        ax.set_xlim(0, 1.05)
        if position + _COLUMNS >= len(titles):
            ax.set_xlabel("observed share")
            ax.tick_params(labelbottom=True)
    entries = {text: line for ax in axes.flat for line, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    canvas.legend(entries.values(), entries, loc="outside lower center", ncols=len(entries))
    return Figure.of(canvas, f"{metric} against the share of observed training labels, a panel per method", caption)
