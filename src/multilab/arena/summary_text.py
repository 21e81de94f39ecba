"""The page ``docs/arena-results.md``: sentences and tables that hold for any content of the summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from multilab.arena.boards import ALPHA
from multilab.arena.metric_groups import GROUP_TITLES
from multilab.arena.summary import DUMMIES
from multilab.metrics import METRICS

COMMAND = "multilab arena summary"
_LISTED = 6
"""Names in a list before the rest is a number."""


def summary_page(summary: Mapping[str, Any] | None) -> str:
    """Return the page of a summary, in Markdown.

    Parameters
    ----------
    summary : mapping or None
        From :func:`arena_summary`; ``None`` where there are no results.

    Examples
    --------
    >>> from multilab.arena import summary_page
    >>> print(summary_page(None).splitlines()[-1])
    No results of the arena are committed.
    """
    head = [f"<!-- Written by `{COMMAND}`; do not edit. -->", "", "# Results of the arena", ""]
    if summary is None:
        return "\n".join([*head, "No results of the arena are committed.", ""])
    parts = [
        _opening(summary),
        _winners(summary),
        _proposals(summary),
        _tuning(summary),
        _stacking(summary),
        _cheap(summary),
        _unfinished(summary),
        _metrics(summary),
        _dummies(summary),
    ]
    return "\n".join(head) + "\n" + "\n\n".join("\n\n".join(part) for part in parts) + "\n"


def _opening(summary: Mapping[str, Any]) -> list[str]:
    metrics = len(summary["metrics"]["rows"])
    return [
        f"Results of {summary['created'] or 'an unknown date'}: {_count(len(summary['sets']), 'set')}, "
        f"{_count(len(summary['columns']), 'method')}, {_count(metrics, 'metric')}. "
        f"`{COMMAND}` writes this page and `reports/arena/summary.json` from the files in `reports/arena/`. "
        "[The arena](arena.md) explains the rules and the terms.",
        f"Sets: {', '.join(summary['sets'])}.",
        f"Level of all tests: {summary['alpha']:g}. *No difference was detected* does not mean that there is none: "
        f"with few sets the tests detect large differences only.{_scale(summary)}",
    ]


def _scale(summary: Mapping[str, Any]) -> str:
    """Return which method has Elo 1000."""
    if not summary["elo"]:
        return ""
    anchor = summary["anchor"]
    return " Elo 1000 is the mean of all methods." if anchor is None else f" Elo 1000 is that of `{anchor}`."


def _winners(summary: Mapping[str, Any]) -> list[str]:
    everything = next(each for each in summary["winners"] if each["kind"] == "all")
    sentences = [
        f"- {summary['groups'][name]}: {_first_sentence(entry, len(summary['columns']))}"
        + _elo_sentence(summary["elo"].get(name))
        for name, entry in everything["groups"].items()
    ]
    rows = [
        [each["title"], str(len(each["sets"])), *(_winner_cell(entry) for entry in each["groups"].values())]
        for each in summary["winners"]
    ]
    return [
        "## What wins where",
        "\n".join(sentences),
        "The method with the smallest average rank by kind of sets, with the rank; after it the number of other "
        "methods whose average rank does not differ by Nemenyi's critical difference. A kind with a single set has no "
        "test.",
        _table(["Sets", "Number", *(_title(summary, name) for name in everything["groups"])], rows),
    ]


def _first_sentence(entry: Mapping[str, Any], columns: int) -> str:
    tied = entry["equal"]
    names = _names([entry["first"], *tied])
    text = f"{names} {'has' if not tied else 'have'} the smallest average rank ({entry['rank']:.2f} of {columns})"
    text += f" on {_count(entry['sets'], 'set')}"
    if entry["not_separated"] is None:
        return f"{text}; one set allows no test."
    near = len(entry["not_separated"])
    if not near:
        return f"{text}, and all others differ from it by more than the critical difference of {entry['cd']:.2f}."
    others = "any other method" if near == columns - 1 else _count(near, "other method")
    return f"{text}; no difference was detected between it and {others} (critical difference {entry['cd']:.2f})."


def _elo_sentence(entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return ""
    text = f" By Elo `{entry['column']}` is first{_elo(entry)}"
    if entry["overlapping"] is None:
        return f"{text}."
    others = entry["overlapping"]
    if not others:
        return f"{text}; no other interval overlaps with its own."
    return f"{text}; the intervals of {_count(len(others), 'other method')} overlap with its own."


def _elo(entry: Mapping[str, Any]) -> str:
    """Return an Elo with its interval in parentheses, nothing where there is none."""
    return f" ({_elo_cell(entry)})" if entry.get("elo") is not None else ""


def _elo_cell(entry: Mapping[str, Any]) -> str:
    if entry.get("elo") is None:
        return "-"
    if entry.get("elo_low") is None:
        return f"{entry['elo']:.0f}"
    return f"{entry['elo']:.0f}, {entry['elo_low']:.0f} to {entry['elo_high']:.0f}"


def _winner_cell(entry: Mapping[str, Any]) -> str:
    near = "" if entry["not_separated"] is None else f", {len(entry['not_separated'])}"
    return f"{_names([entry['first'], *entry['equal']])} {entry['rank']:.2f}{near}"


def _proposals(summary: Mapping[str, Any]) -> list[str]:
    entries = summary["proposals"]
    title = "## What the proposals of the papers are worth"
    if not entries:
        return [title, "None of them has results."]
    groups, n = list(summary["groups"]), len(summary["columns"])
    standings = [
        [
            f"`{each['name']}`",
            *(f"{each['boards'][name]['position']} ({each['boards'][name]['rank']:.1f})" for name in groups),
            _elo_cell(each["boards"]["overall"]),
            f"{each['unfinished']:.0%}",
        ]
        for each in entries
    ]
    baselines = list(dict.fromkeys(row["against"] for each in entries for row in each["baselines"]["overall"]))
    wins = [
        [f"`{each['name']}`", *(_wins_cell(each, name, [g for g in groups if g != "overall"]) for name in baselines)]
        for each in entries
    ]
    parts = [
        title,
        f"Position among {n} methods by average rank (and the average rank), Elo over all metrics, share of unfinished "
        "cells.",
        _table(["Proposal", *(_title(summary, name) for name in groups), "Elo", "Unfinished"], standings),
    ]
    if baselines:
        titles = " / ".join(_title(summary, name).lower() for name in groups if name != "overall")
        parts += [
            f"Share of (set, metric) pairs that a proposal wins against baselines: all metrics ({titles}). "
            "**Bold**: a difference was detected over all metrics, by Wilcoxon's signed-rank test on the shares per "
            "set, Holm-corrected over the baselines of a row.",
            _table(["Proposal", *(f"`{name}`" for name in baselines)], wins),
        ]
        absent = [each for each in summary["unfinished"]["methods"] if each["name"] in baselines]
        if absent:
            where = _list(f"`{each['name']}` on {len(each['sets'])} of {len(summary['sets'])}" for each in absent)
            parts.append(
                f"A method that did not finish loses the set, so wins against it are partly of this kind: {where}."
            )
    return [*parts, "\n".join(f"- {_proposal_sentence(each)}" for each in entries)]


def _wins_cell(entry: Mapping[str, Any], other: str, groups: Sequence[str]) -> str:
    rows = {
        group: row for group in ("overall", *groups) for row in entry["baselines"][group] if row["against"] == other
    }
    if not rows:
        return "-"
    mark = "**" if rows["overall"]["verdict"] != "no difference" else ""
    text = f"{mark}{_percent(rows['overall']['wins'])}{mark}"
    return f"{text} ({' / '.join(_percent(rows[group]['wins'], '') for group in groups)})" if groups else text


def _proposal_sentence(entry: Mapping[str, Any]) -> str:
    rows = entry["baselines"]["overall"]
    parts = [f"{_verdicts(rows)}" if rows else "not compared with a baseline"]
    own = entry["comparators"]
    if own:
        parts.append(f"the comparators of its own paper: {_verdicts(own)}")
    sets = entry["boards"]["overall"]["sets"]
    return f"`{entry['name']}` on {_count(sets, 'set')}, all metrics: {'; '.join(parts)}."


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what the tests detected; with too few sets, that they could not detect anything."""
    by = {
        verdict: [row for row in rows if row["verdict"] == verdict] for verdict in ("better", "worse", "no difference")
    }
    texts = [f"{verdict} than {_shares_of(by[verdict])}" for verdict in ("better", "worse") if by[verdict]]
    same = by["no difference"]
    if same:
        text = f"no difference was detected from {_shares_of(same)}"
        if same[0]["smallest_p"] > ALPHA:
            text += (
                f", nor can it be with {_count(same[0]['sets'], 'set')} (the smallest p is {same[0]['smallest_p']:g})"
            )
        texts.append(text)
    return ", ".join(texts)


def _shares_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the other methods with the share of wins against each; of many, the number and the range."""
    if len(rows) <= _LISTED:
        return _list(f"`{row['against']}` ({_percent(row['wins'])})" for row in rows)
    shares = [row["wins"] for row in rows]
    return f"{len(rows)} methods ({_percent(min(shares))} to {_percent(max(shares))})"


def _tuning(summary: Mapping[str, Any]) -> list[str]:
    entry, title = summary["tuning"], "## How much tuning buys"
    if entry is None:
        return [title, "The track *tuned* has no results yet."]
    methods, sets = entry["methods"], len(entry["sets"])
    search = entry["search"] or {}
    how = ", ".join(
        filter(
            None,
            (
                f"{search['n_trials']} draws" if search.get("n_trials") else "",
                f"{search['folds']} inner folds" if search.get("folds") else "",
                f"chosen by {_metric(search['metric'])}" if search.get("metric") else "",
            ),
        )
    )
    rows = [
        [
            f"`{each['name']}`",
            _elo_cell(each["default"]),
            _elo_cell(each["tuned"]),
            *(_bold(row, _percent(row["wins"])) for row in each["groups"].values()),
            *([_signed(each["gain"]["median"])] if each["gain"] else []),
        ]
        for each in methods
    ]
    overall = [each["groups"]["overall"] | {"name": each["name"]} for each in methods]
    gain = methods[0]["gain"] if methods else None
    header = ["Method", "Elo, default", "Elo, tuned", *(_title(summary, name) for name in summary["groups"])]
    header += [f"Gain in {_metric(gain['metric'])}"] if gain else []
    return [
        title,
        f"Each method, tuned, against itself at its own values, on {_count(sets, 'set')}"
        f"{f' ({how})' if how else ''}. Over all metrics, {_verdict_counts(overall, 'method')}.",
        "Share of (set, metric) pairs that the tuned method wins. **Bold**: a difference was detected (Holm-corrected "
        "over the methods of a column)."
        + (" The gain is the median over the sets; positive is better." if gain else ""),
        _table(header, rows),
    ]


def _verdict_counts(rows: Sequence[Mapping[str, Any]], noun: str) -> str:
    better, worse = ([row["name"] for row in rows if row["verdict"] == verdict] for verdict in ("better", "worse"))
    same = len(rows) - len(better) - len(worse)
    texts = [
        f"{len(better)} of {_count(len(rows), noun)} gain{f' ({_names(better)})' if better else ''}",
        f"{len(worse)} lose{f' ({_names(worse)})' if worse else ''}",
        f"for {same} no difference was detected",
    ]
    return ", ".join(texts)


def _stacking(summary: Mapping[str, Any]) -> list[str]:
    entry, title = summary["stacking"], "## How much stacking buys"
    if entry is None:
        return [title, "The track *ensembled* has no results yet."]
    sentences = [_stack_sentence(summary, each, entry) for each in entry["stacks"]]
    rows = [
        [
            f"`{each['name']}`",
            _elo_cell(each["boards"]["overall"]),
            *(
                f"{each['boards'][name]['position']}; "
                + _bold(row, f"{_percent(row['wins'])} against `{row['against']}`")
                for name, row in each["best_single"].items()
            ),
        ]
        for each in entry["stacks"]
    ]
    return [
        title,
        f"Each stack among {entry['columns']} columns on {_count(len(entry['sets']), 'set')}: its position by average "
        "rank, and the share of (set, metric) pairs that it wins against the single method with the smallest average "
        "rank. That method is chosen on the same sets, which favours it. **Bold**: a difference was detected "
        "(Holm-corrected over a row).",
        _table(["Stack", "Elo", *(_title(summary, name) for name in summary["groups"])], rows),
        "\n".join(f"- {each}" for each in sentences),
    ]


def _stack_sentence(summary: Mapping[str, Any], stack: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    first = len(stack["first_metrics"])
    text = (
        f"`{stack['name']}` has the smallest average rank in {first} of {stack['metrics']} metrics"
        f" on {_count(len(entry['sets']), 'set')}"
    )
    above = stack["above_tuned"]
    if above:
        text += (
            f"; it is above {above['above']} of {_count(above['tuned'], 'tuned method')} in Elo on "
            f"{_count(above['sets'], 'set')}, above {above['apart']} of them with intervals that do not overlap"
        )
    return f"{text}."


def _cheap(summary: Mapping[str, Any]) -> list[str]:
    entry, title = summary["cheap"], "## Where the cheap methods suffice"
    if entry is None or not any(entry["metrics"].values()):
        return [title, "There are no measured seconds."]
    rope = summary["rope"]
    where = "one cell at a time" if entry["alone"] else "on a shared machine, so that they are approximate"
    sentences = []
    for metric, rows in entry["metrics"].items():
        if not rows:
            continue
        factors = sorted(row["best_seconds"] / row["seconds"] for row in rows if row["seconds"] > 0)
        same = sum(row["cheapest"] == row["best"] for row in rows)
        counts: dict[str, int] = {}
        for row in rows:
            counts[row["cheapest"]] = counts.get(row["cheapest"], 0) + 1
        most = max(counts.values())
        often = [name for name, count in counts.items() if count == most]
        text = f"{_metric(metric)}, {_count(len(rows), 'set')}: "
        if factors:
            factor = _times(float(np.median(factors)))
            text += f"the best method takes {factor} the seconds of the cheapest sufficient one (median); "
        text += f"on {same} of {len(rows)} the best is the cheapest itself"
        text += (
            f"; cheapest most often is {_names(often)} ({_count(most, 'set')} each)"
            if len(often) > 1
            else (f"; cheapest most often is {_names(often)} ({_count(most, 'set')})")
        )
        sentences.append(f"- {text}.")
    by_set = {metric: {row["set"]: row for row in rows} for metric, rows in entry["metrics"].items() if rows}
    table = [
        [name, *(_cheap_cell(rows.get(name)) for rows in by_set.values())]
        for name in summary["sets"]
        if any(name in rows for rows in by_set.values())
    ]
    return [
        title,
        f"Per set, the cheapest method whose mean over the splits is at most {rope:g} worse than the best mean; in "
        "parentheses the best one. Seconds are those of a fit with its predictions and inputs, measured "
        f"{where}. A gap of means is not a test.",
        "\n".join(sentences),
        _table(["Set", *(_metric(metric) for metric in by_set)], table),
    ]


def _cheap_cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "-"
    cheap = f"`{row['cheapest']}` {row['seconds']:.2g} s"
    return cheap if row["cheapest"] == row["best"] else f"{cheap} (`{row['best']}` {row['best_seconds']:.2g} s)"


def _unfinished(summary: Mapping[str, Any]) -> list[str]:
    entry, title = summary["unfinished"], "## What did not finish"
    columns, sets = len(summary["columns"]), len(summary["sets"])
    methods = entry["methods"]
    if not methods:
        return [title, f"All {columns} methods finished on {_all(sets, 'set')} ({entry['cells']} cells)."]
    rows = [
        [
            f"`{each['name']}`",
            f"{len(each['sets'])} of {sets}",
            ", ".join(each["sets"]),
            "; ".join(_escaped(reason) for reason in each["reasons"]),
        ]
        for each in methods
    ]
    return [
        title,
        f"{columns - len(methods)} of {columns} methods finished on {_all(sets, 'set')}. Without a result: "
        f"{entry['unfinished_cells']} of {_count(entry['cells'], 'cell')}; these methods are ranked last there.",
        _table(["Method", "Sets", "Which", "Why"], rows),
    ]


def _metrics(summary: Mapping[str, Any]) -> list[str]:
    entry, title = summary["metrics"], "## How unequal the metrics are"
    sets, rows = len(summary["sets"]), entry["rows"]
    firsts = list(dict.fromkeys(name for row in rows for name in row["first"]))
    same = len(rows) - entry["distinct"]
    verb = "has" if len(firsts) == 1 else "have"
    text = (
        f"{_count(len(firsts), 'method')} {verb} the smallest average rank in at least one metric ({_names(firsts)})."
    )
    if entry["median"] is not None:
        text = (
            f"Spearman's correlation between the average ranks of {entry['columns']} methods on {_count(sets, 'set')} "
            f"by two metrics has the median {entry['median']:.2f} over {_count(entry['pairs'], 'pair')} and is "
            f"{entry['smallest']:.2f} at least. {text}"
        )
    if same:
        verb = "orders" if same == 1 else "order"
        text += f" {_count(same, 'metric')} of {len(rows)} {verb} the methods of any set as another one does."
    table = [
        [
            _metric(row["name"]),
            _names(row["first"]) if len(row["first"]) <= 3 else _count(len(row["first"]), "method"),
            "-" if row["most_like"] is None else f"{_metric(row['most_like'])} ({row['largest']:.2f})",
            "-" if row["least_like"] is None else f"{_metric(row['least_like'])} ({row['smallest']:.2f})",
        ]
        for row in rows
        if row["ordered_like"] is None
    ]
    return [title, text, _table(["Metric", "First by average rank", "Most like", "Least like"], table)]


def _dummies(summary: Mapping[str, Any]) -> list[str]:
    title = "## What a method without features already wins"
    rows = [row for row in summary["dummies"] if row["ordered_like"] is None]
    if not rows:
        return [title, "None of them has results."]
    most = max(rows, key=lambda row: row["behind"] / row["learners"] if row["learners"] else 0)
    wins = [row for row in rows if row["not_worse"]]
    text = (
        f"Of the methods {_names(DUMMIES)}, the one with the smallest average rank has the most learners behind it by "
        f"{_metric(most['metric'])}: {most['behind']} of {most['learners']}, on {_count(most['sets'], 'set')}. "
    )
    if wins:
        text += "On at least one set no learner has a better mean than it by " + _list(
            (_metric(row["metric"]) for row in wins), 99
        )
        text += "."
    else:
        text += "By every metric and on every set a learner has a better mean."
    table = [
        [
            _metric(row["metric"]),
            f"`{row['dummy']}`",
            f"{row['rank']:.1f}",
            f"{row['behind']} of {row['learners']}",
            f"{row['not_worse']} of {row['sets']}",
            "-" if row["close"] is None else f"{row['close']} of {row['sets']}",
        ]
        for row in rows
    ]
    header = ["Metric", "Best", "Average rank", "Learners behind it", "Sets where no learner is better"]
    return [title, text, _table([*header, f"Sets where it is at most {summary['rope']:g} from the best"], table)]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _title(summary: Mapping[str, Any], name: str) -> str:
    return str(summary["groups"].get(name, GROUP_TITLES.get(name, name)))


def _metric(name: str) -> str:
    return METRICS[name].title


def _names(names: Sequence[str]) -> str:
    return _list((f"`{name}`" for name in names), _LISTED)


def _list(items: Iterable[str], most: int = _LISTED) -> str:
    """Return ``a, b and c``; of a long list the first items and the number of the others."""
    each = list(items)
    if len(each) > most:
        each = [*each[: most - 1], f"{len(each) - most + 1} others"]
    return each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"


def _all(number: int, noun: str) -> str:
    return f"the {noun}" if number == 1 else f"all {number} {noun}s"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _percent(share: float, unit: str = " %") -> str:
    return f"{100 * share:.0f}{unit}"


def _bold(row: Mapping[str, Any], text: str) -> str:
    return f"**{text}**" if row["verdict"] != "no difference" else text


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.4f}"


def _times(factor: float) -> str:
    return f"{factor:.1f} times" if factor < 10 else f"{factor:.0f} times"


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
