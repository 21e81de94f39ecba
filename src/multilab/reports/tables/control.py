"""Comparison with the control of each variant: split by split on every dataset, and label by label."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from multilab.reports.data import ReportData, VariantData, metric_direction, metric_title
from multilab.reports.tables.entry import Entry, TextTable, signed_text
from multilab.statistics import corrected_resampled_p, holm
from multilab.statistics.result_files import read_table, variant_column

LABELS = "labels.csv"
_COLUMNS = {"dataset", "method", "label", "rows", "positives", "predicted", "hits"}
_BORDERS = (0.0, 0.02, 0.05, 0.1, 0.25, 1.0)


@dataclass(frozen=True)
class ControlView:
    """The control's title, the number of comparisons, and the tables.

    ``best`` has the headline metric, the method of the largest mean gain in it, and that gain; ``unimproved`` are the
    metrics in which no mean gain is positive; ``gains`` has, by metric and method, the gain of every comparison.
    """

    control: str
    metric: str
    comparisons: int
    alpha: float
    metrics: TextTable
    frequency: TextTable
    short: TextTable
    best: Mapping[str, str]
    unimproved: tuple[str, ...]
    gains: Mapping[str, Mapping[str, list[float]]]


def control_view(report: ReportData) -> ControlView | None:
    """Return what the variants that hold the study's control gain over it; ``None`` in a study without label counts.

    Only such a study has variants in which all methods decide on the same scores.
    """
    if not (report.folder / LABELS).is_file():
        return None
    control = report.info.get("control")
    variants = [variant for variant in report.variants if variant_column(str(control), variant.name) in variant.methods]
    if not variants:
        return None
    bases = list(dict.fromkeys(base for v in variants for base in v.methods.values() if base != control))
    gains = pd.concat(_gains(report, variants, str(control)), ignore_index=True)
    names = {base: v.titles[column] for v in reversed(variants) for column, base in v.methods.items()}
    titles = {base: names[base] for base in bases}
    rows = tuple((titles[b], tuple(_cell(gains, b, metric, report.alpha) for metric in report.metrics)) for b in bases)
    heads = tuple(metric_title(metric) for metric in report.metrics)
    means = gains.groupby(["metric", "base"], sort=False)["gain"].mean().unstack("metric")
    headline, best = report.primary[0], means.idxmax()
    short = [
        (titles[b], tuple(Entry(signed_text(means[m][b], 3), best=b == best[m]) for m in report.metrics)) for b in bases
    ]
    return ControlView(
        names[str(control)],
        headline,
        gains[["dataset", "variant"]].drop_duplicates().shape[0],
        report.alpha,
        TextTable("Method", heads, rows),
        _by_frequency(report, variants, str(control), titles),
        TextTable("Mean gain", heads, tuple(short)),
        {
            "metric": metric_title(headline),
            "method": titles[best[headline]],
            "gain": signed_text(means[headline].max(), 3),
        },
        tuple(metric_title(metric) for metric in report.metrics if means[metric].max() <= 0),
        {
            metric: {titles[b]: list(rows.loc[rows["base"] == b, "gain"]) for b in bases}
            for metric, rows in gains.groupby("metric")
        },
    )


def _gains(report: ReportData, variants: list[VariantData], control: str) -> Iterator[pd.DataFrame]:
    """Yield the mean gain and the p value of every column, dataset and metric; a positive gain is better."""
    for variant in variants:
        scores = report.scores[report.scores["method"].isin(variant.methods)]
        wide = scores.pivot_table(index=["metric", "dataset", "split"], columns="method", values="value")
        sign = wide.index.get_level_values("metric").map(lambda m: -1.0 if metric_direction(m) == "min" else 1.0)
        for column, base in variant.methods.items():
            if base == control or column not in wide:
                continue
            differences = (wide[column] - wide[variant_column(control, variant.name)]) * sign
            grouped = differences.groupby(["metric", "dataset"])
            table = grouped.agg(gain="mean", p=_p_of_folds).reset_index()
            yield table.assign(base=base, variant=variant.name)


def _p_of_folds(differences: pd.Series) -> float:
    """Return the p value of the differences on k folds, 1 for a single split."""
    k = len(differences)
    return corrected_resampled_p(differences.to_numpy(), 1 / (k - 1)) if k > 1 else 1.0


def _cell(gains: pd.DataFrame, base: str, metric: str, alpha: float) -> Entry:
    """Return the mean gain, the datasets won and lost, and how many of these significantly (Holm)."""
    rows = gains[(gains["base"] == base) & (gains["metric"] == metric)]
    if rows.empty:
        return Entry("–")
    gain, significant = rows["gain"].to_numpy(), holm(rows["p"].tolist()) < alpha
    counts = [int(part.sum()) for part in (gain > 0, significant & (gain > 0), gain < 0, significant & (gain < 0))]
    text = f"{signed_text(float(gain.mean()), 3)} ({counts[0]} better, {counts[1]}*; {counts[2]} worse, {counts[3]}*)"
    return Entry(text, gain=int(np.sign(gain.mean())))


def _by_frequency(report: ReportData, variants: list[VariantData], control: str, titles: dict[str, str]) -> TextTable:
    """Return the mean gain in the F1 of single labels by the frequency of the label."""
    labels = read_table(report.folder / LABELS, _COLUMNS)
    total = labels["predicted"] + labels["positives"]
    labels["f1"] = np.where(total > 0, 2 * labels["hits"] / total.where(total > 0, 1), 0.0)
    labels["bin"] = pd.cut(labels["positives"] / labels["rows"], _BORDERS, labels=False, include_lowest=True)
    wide = labels.pivot(index=["dataset", "label", "bin"], columns="method", values="f1")
    bins = sorted(labels["bin"].unique())
    numbers = wide.groupby("bin").size()
    heads = tuple(f"{_range(int(b))} ({numbers[b]} labels)" for b in bins)
    rows = []
    for base, title in titles.items():
        gains = pd.concat(
            [
                wide[column] - wide[of_control]
                for column, of_control in (
                    (variant_column(base, v.name), variant_column(control, v.name)) for v in variants
                )
                if column in wide and of_control in wide
            ]
        )
        means = gains.groupby("bin").mean()
        rows.append((title, tuple(Entry(signed_text(float(means[b]), 3), gain=int(np.sign(means[b]))) for b in bins)))
    return TextTable("Method", heads, tuple(rows))


def _range(number: int) -> str:
    low, high = _BORDERS[number], _BORDERS[number + 1]
    return f"≤ {high:.0%}" if low == 0 else f"> {low:.0%}" if high == 1 else f"{low:.0%} to {high:.0%}"
