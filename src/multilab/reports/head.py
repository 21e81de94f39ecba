"""Head of a page: one sentence, one figure and one table of at most ten rows; of the quick study three of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multilab.cells.method import family_of, load_method
from multilab.reports.data import ReportData, metric_direction, metric_title
from multilab.reports.figures import Figure
from multilab.reports.figures.diagrams import rank_figures
from multilab.reports.figures.dots import Row, dots_figure
from multilab.reports.figures.style import COLD, WARM, new_axes, style_axes, styled
from multilab.reports.tables.control import ControlView, control_view
from multilab.reports.tables.entry import Entry, TextTable, number, signed_text
from multilab.reports.tables.leaders import leaders
from multilab.reports.tables.shares import kept_shares

if TYPE_CHECKING:
    import pandas as pd

_MOST = 20  # methods in a diagram of ranks that is seen first; of more the names run together


@dataclass(frozen=True)
class Answer:
    """A question of a newcomer, its answer in a sentence, and the figure that shows it."""

    question: str
    sentence: str
    figure: Figure


def head(report: ReportData) -> dict[str, Any]:
    """Return the variables of the head: ``answers``, or ``figure`` and ``table``, with the text above the table."""
    answers = _answers(report)
    if answers:
        return {"answers": answers, "figure": None, "table": None, "caption": ""}
    if control := control_view(report):
        return {"answers": (), "figure": _gains(control), "table": control.short, "caption": _GAINS}
    if kept := kept_shares(report):
        return {"answers": (), "figure": _kept(kept), "table": _kept_table(kept), "caption": _KEPT}
    comparison = report.comparisons.get(report.primary[0])
    drawn = comparison is not None and 2 < comparison.k <= _MOST
    figures = rank_figures(report, comparison)[:1] if drawn else ()
    table = leaders(report)
    caption = _LEADERS.format(len(table.rows)) if table else ""
    return {"answers": (), "figure": next(iter(figures), None), "table": table, "caption": caption}


_LEADERS = "The first {} methods by average rank over the data sets, 1 is best."
_GAINS = "Mean gain on the same scores, positive is better; the best of a metric in bold."
_KEPT = "What the median method keeps of its value on complete labels, by the share of the training labels observed."


def _gains(control: ControlView) -> Figure:
    """Return the gain of every comparison by the headline metric and by Hamming loss, which pays for it."""
    named = dict.fromkeys([control.metric, "hamming_loss"])
    order = sorted(control.gains[control.metric].items(), key=lambda item: -sum(item[1]))
    panels = {
        f"gain in {metric_title(metric)}": [
            Row(method, v, sum(v) / len(v)) for method, v in ((m, control.gains[metric][m]) for m, _ in order)
        ]
        for metric in named
        if metric in control.gains
    }
    return dots_figure(
        panels,
        ("a data set and a base learner", "mean"),
        f"Gains over {control.control}",
        f"Gain over {control.control} on the same scores: right of the line is better.",
        line=0.0,
    )


@styled()
def _kept(kept: dict[str, Any]) -> Figure:
    """Return what every method keeps against the share of observed labels, and the median method, by treatment."""
    canvas, axes = new_axes(6.4, 3.2)
    by_method: pd.DataFrame = kept["kept_by"]
    for (treatment, medians), colour, dash in zip(kept["medians"].iterrows(), (COLD, WARM), ("-", "--"), strict=False):
        for _, row in by_method.xs(treatment, level="hidden").iterrows():
            axes[0, 0].plot(row.dropna(), color=colour, lw=0.6, alpha=0.25)
        axes[0, 0].plot(medians.dropna(), dash, color=colour, lw=2.4, label=treatment)
    style_axes(axes[0, 0], x="share of the training labels observed", y=f"kept of {kept['metric']}")
    axes[0, 0].legend(loc="lower right")
    caption = (
        f"{kept['metric']} divided by its value on complete labels: thin lines are methods, thick ones the median."
    )
    return Figure.of(canvas, f"What is kept of {kept['metric']}", caption)


def _kept_table(kept: dict[str, Any]) -> TextTable:
    medians = kept["medians"].drop(columns=1.0)
    rows = [
        (name, tuple(Entry("–" if value != value else f"{value:.0%}") for value in row))
        for name, row in medians.iterrows()
    ]
    return TextTable("Learns from", tuple(f"{share:.0%}" for share in medians.columns), tuple(rows))


# ---------------------------------------------------------------- the quick study


def _answers(report: ReportData) -> tuple[Answer, ...]:
    """Return what differs between families, what stacking gains and what thresholds gain.

    Empty unless the study has a stack with its members, ways to decide on the scores of one of its methods, and macro
    F1, as the quick study has.
    """
    own = set(report.methods)
    inputs = {method: list(report.settings(method).get("base_scores") or ()) for method in report.methods}
    stacks = [m for m, members in inputs.items() if len(members) > 2 and own.issuperset(members)]
    deciders = [m for m, members in inputs.items() if len(members) == 1 and own.issuperset(members)]
    if not stacks or not deciders or "macro_f1" not in report.metrics or metric_direction(report.primary[0]) != "min":
        return ()
    loss = report.summaries[report.primary[0]].mean
    best = min(stacks, key=lambda method: loss[method].mean())
    return (
        _families(report, loss, deciders),
        _stacking(report, loss, best, inputs[best]),
        _thresholds(report, deciders, inputs[deciders[0]][0]),
    )


def _families(report: ReportData, loss: pd.DataFrame, deciders: list[str]) -> Answer:
    title, families = metric_title(report.primary[0]), dict[str, list[str]]()
    for method in report.methods:
        if method not in deciders:  # its scores are those of another method
            families.setdefault(family_of(load_method(method)), []).append(method)
    means = loss.mean()
    firsts = {family: min(methods, key=lambda m: means[m]) for family, methods in families.items()}
    order = sorted(families, key=lambda family: means[firsts[family]])
    rows = [
        Row(
            f"{family}: {report.method_title(firsts[family])}",
            [means[m] for m in families[family]],
            means[firsts[family]],
        )
        for family in order
    ]
    spread = {family: max(row.values) - row.mark for family, row in zip(order, rows, strict=True)}
    widest = max(order, key=lambda family: spread[family])
    return Answer(
        "What differs between families?",
        f"The best methods of any two families differ in {title} by at most {number(rows[-1].mark - rows[0].mark, 2)}, "
        f"two methods of one family ({widest}) by up to {number(spread[widest], 2)}.",
        dots_figure(
            {f"{title}, mean": rows},
            ("a method", "the best of its family"),
            f"{title} by family",
            f"{title} of every method by family, with the name of the best; smaller is better.",
        ),
    )


def _stacking(report: ReportData, loss: pd.DataFrame, stack: str, members: list[str]) -> Answer:
    title, name = metric_title(report.primary[0]), report.method_title(stack)
    best = loss[members].min(axis="columns")
    ratios = loss[[*members, stack]].div(best, axis="index")
    rows = [Row(dataset, list(row[members]), row[stack]) for dataset, row in ratios.iterrows()]
    won = int((loss[stack] < best).sum())
    titles = [report.method_title(member) for member in members]
    return Answer(
        "What does stacking gain?",
        f"{name} beats the best of its members ({', '.join(titles)}) on {won} of {len(loss)} data sets.",
        dots_figure(
            {f"{title}, 1 is that of the best member": rows},
            ("a member", name),
            f"{title} of {name} and its members",
            f"{title} divided by that of the best member, which nobody knows beforehand; left of the line is better.",
            line=1.0,
        ),
    )


def _thresholds(report: ReportData, deciders: list[str], base: str) -> Answer:
    means, name = report.summaries["macro_f1"].mean, report.method_title(base)
    gains = means[deciders].sub(means[base], axis="index")
    order = list(gains.mean().sort_values(ascending=False, kind="stable").index)
    rows = [Row(report.method_title(m), list(gains[m]), gains[m].mean()) for m in order]
    first, last = (f"{row.title} ({signed_text(row.mark, 3)})" for row in (rows[0], rows[-1]))
    return Answer(
        "What do thresholds gain?",
        f"Of the ways to turn scores into labels, {first} gains most in Macro F1 and {last} least.",
        dots_figure(
            {"gain in Macro F1": rows},
            ("a data set", "mean"),
            f"Gains over the decisions of {name}",
            f"Gain over the decisions of {name} itself, on the same scores; right of the line is better.",
            line=0.0,
        ),
    )
