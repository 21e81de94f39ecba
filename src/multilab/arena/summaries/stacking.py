"""Gain by stacking: ensembles against single methods and the tuned ones, and how far the champion is first.

Everything is given on all sets and on the unseen ones, whose results decided no rule of the champion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from multilab.arena.champion import SURE, champion_verdict
from multilab.arena.file_means import leaderboard_means
from multilab.arena.metric_groups import ORDERED_LIKE
from multilab.arena.pools import UNSEEN
from multilab.arena.summaries import markdown as md
from multilab.arena.summaries.comparisons import elo_of, pool_of, shares_of, standing, tested_pairs, undetectable


def stacking_numbers(content: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any] | None:
    """Return the stacks on all sets and on the unseen ones, the verdicts on the champion, and which sets were seen."""
    if not pool_of(content, "ensembled"):
        return None
    pools = ("ensembled", f"ensembled{UNSEEN}", "all", f"all{UNSEEN}")
    reasons: dict[str, dict[str, Any]] = {}
    for column in content["tracks"]["ensembled"]["columns"]:
        if chosen := content["methods"][column].get("chosen_on"):
            entry = reasons.setdefault(chosen["reason"], {"methods": [], **chosen})
            entry["methods"].append(content["methods"][column]["name"])
    return {
        "all": _stacks(content, groups, ""),
        "unseen": _stacks(content, groups, UNSEEN),
        "champion": [verdict for pool in pools if (verdict := champion_verdict(content, pool))],
        "chosen_on": list(reasons.values()),
    }


def _stacks(content: Mapping[str, Any], groups: Sequence[str], suffix: str) -> dict[str, Any] | None:
    """Return each stack among the columns of the track default, and against the best of them and every tuned one."""
    pool = pool_of(content, f"ensembled{suffix}")
    if not pool:
        return None
    means = leaderboard_means(content, pool["name"])
    shares = {name: shares_of(means, name, content["sets"]) for name in groups if name in pool["boards"]}
    stacks = content["tracks"]["ensembled"]["columns"]
    singles = [column for column in means.columns if column not in stacks]
    ranks = {group: dict(zip(pool["columns"], pool["boards"][group]["rank"], strict=True)) for group in shares}
    best = {group: min(singles, key=ranks[group].__getitem__) for group in shares}
    wider = pool_of(content, f"all{suffix}")
    rated = "elo" in pool["boards"]["overall"]
    tests = {stack: tested_pairs([(shares[group], stack, best[group]) for group in shares]) for stack in stacks}
    return {
        "sets": list(means.datasets),
        "columns": len(means.columns),
        "stacks": [
            {
                "name": content["methods"][stack]["name"],
                "column": stack,
                "chosen_on": _seen(content["methods"][stack], means.datasets),
                "boards": {group: standing(pool, group, stack) for group in shares},
                "best_single": dict(zip(shares, tests[stack], strict=True)),
                "first_metrics": [
                    metric
                    for metric, board in pool["boards"].items()
                    if metric in means.metrics
                    and board["rank"][pool["columns"].index(stack)] <= min(board["rank"]) + 1e-9
                ],
                "metrics": sum(metric in means.metrics for metric in pool["boards"]),
                "above_tuned": _above_tuned(content, wider, stack) if wider and rated else None,
            }
            for stack in stacks
        ],
    }


def _seen(method: Mapping[str, Any], datasets: Sequence[str]) -> list[str]:
    """Return the sets among some whose results decided rules of a method."""
    return [name for name in datasets if name in (method.get("chosen_on") or {}).get("sets", ())]


def _above_tuned(content: Mapping[str, Any], pool: Mapping[str, Any], stack: str) -> dict[str, Any]:
    """Return how many tuned columns a stack is above in Elo, and how many with intervals that do not overlap."""
    board = pool["boards"]["overall"]
    tuned = [elo_of(pool, board, column) for column in content["tracks"]["tuned"]["columns"]]
    own = elo_of(pool, board, stack)
    apart = [own["elo_low"] is not None and own["elo_low"] > (each["elo_high"] or np.inf) for each in tuned]
    return {
        "tuned": len(tuned),
        "above": sum(own["elo"] > each["elo"] for each in tuned),
        "apart": sum(apart),
        "sets": board["sets"],
    }


def stacking_section(summary: Mapping[str, Any]) -> list[str]:
    """Return the section on stacking, in Markdown."""
    entry, title = summary["stacking"], "## How much stacking buys"
    if entry is None:
        return [title, "The track *ensembled* has no results yet."]
    parts = [title, *_chosen_text(entry["chosen_on"]), *_table_of_stacks(summary, entry["all"])]
    if entry["unseen"]:
        parts += _table_of_stacks(summary, entry["unseen"], "unseen ")
    elif entry["chosen_on"]:
        parts.append("No set is unseen yet: every set of the track decided rules of the champion.")
    if entry["champion"]:
        parts += ["## How far the champion is first", "\n".join(map(_verdict_sentence, entry["champion"]))]
        parts += [
            "By metric, the average rank of the champion and of the best other column, how much larger the champion's "
            "is, and the probabilities that it is better than this column, practically equal and worse: the Bayesian "
            "signed-rank test over the sets (those of one source averaged), in which differences up to "
            f"{entry['champion'][0]['rope']:g} are equal (of "
            f"coverage: divided by the number of labels). **Bold**: better with a probability of {SURE:g} or more."
        ]
        for verdict in entry["champion"]:
            parts += [f"{_scope(verdict)}:", _table_of_metrics(verdict), *_table_of_ratings(verdict)]
    return parts


def _chosen_text(chosen: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return which rules of which stacks were chosen on which sets; nothing if none was."""
    if not chosen:
        return []
    lines = [
        f"- {md.code_names(each['methods'])}: {each['reason']} These sets are {md.listed(each['sets'], 99)}."
        for each in chosen
    ]
    return [
        "Test results on some sets were known when rules of the stacks were chosen:",
        "\n".join(lines),
        "Results of the stacks on these sets are optimistic (†). Every statement is therefore given a second time on "
        "the *unseen* sets, which decided no rule of the champion.",
    ]


def _table_of_stacks(summary: Mapping[str, Any], entry: Mapping[str, Any], kind: str = "") -> list[str]:
    rows = [
        [
            f"`{each['name']}`{' †' if each['chosen_on'] else ''}",
            md.elo_cell(each["boards"]["overall"]),
            *(
                f"{each['boards'][name]['position']}; "
                + md.bold(row, f"{md.per_cent(row['wins'])} against `{row['against']}`")
                for name, row in each["best_single"].items()
            ),
        ]
        for each in entry["stacks"]
    ]
    groups = list(entry["stacks"][0]["best_single"])
    return [
        f"Each stack among {entry['columns']} columns on {md.count(len(entry['sets']), f'{kind}set')}: its position by "
        "average rank, and the share of (set, metric) pairs that it wins against the single method with the smallest "
        "average rank (the sets of a source count as one). That method is chosen on the same sets, which favours it. "
        "**Bold**: a difference was detected "
        f"(Holm-corrected over a row).{_no_bold(entry)}",
        md.table(["Stack", "Elo", *(md.group(summary, name) for name in groups)], rows),
        "\n".join(f"- {_stack_sentence(each, entry, kind)}" for each in entry["stacks"]),
    ]


def _no_bold(entry: Mapping[str, Any]) -> str:
    """Return that no difference can be detected, where this is so."""
    why = undetectable(list(entry["stacks"][0]["best_single"].values()))
    return f" No difference was detected, {why}." if why else ""


def _stack_sentence(stack: Mapping[str, Any], entry: Mapping[str, Any], kind: str) -> str:
    first = len(stack["first_metrics"])
    text = (
        f"`{stack['name']}` has the smallest average rank, alone or tied, in {first} of {stack['metrics']} metrics"
        f" on {md.count(len(entry['sets']), f'{kind}set')}"
    )
    above = stack["above_tuned"]
    if above:
        text += (
            f"; it is above {above['above']} of {md.count(above['tuned'], 'tuned method')} in Elo on "
            f"{md.count(above['sets'], f'{kind}set')}, above {above['apart']} of them with intervals that do not "
            "overlap"
        )
    return f"{text}."


def _scope(verdict: Mapping[str, Any]) -> str:
    """Return among which columns and on how many sets a verdict holds."""
    kind = "unseen set" if verdict["pool"].endswith(UNSEEN) else "set"
    tuned = " with the tuned ones" if verdict["pool"].startswith("all") else ""
    return f"Among {verdict['columns']} columns{tuned}, on {md.count(len(verdict['sets']), kind)}"


def _verdict_sentence(verdict: Mapping[str, Any]) -> str:
    """Return in how many metrics the champion is first, in how many a test decides, and its Elo among tuned ones."""
    n = len(verdict["metrics"])
    distinct = [each for each in verdict["metrics"] if each["name"] not in ORDERED_LIKE]
    first = sum(each["first"] for each in distinct)
    repeated = "" if len(distinct) == n else f" ({first} of the {len(distinct)} that order methods differently)"
    missed = [
        f"{md.metric_name(each['name'])} ({each['any']['behind']:.2f})"
        for each in verdict["metrics"]
        if not each["first"]
    ]
    text = (
        f"- {_scope(verdict)}: `{verdict['column']}` is first by average rank in {verdict['first']} of {n} metrics"
        f"{repeated}, and the Bayesian test decides {verdict['decided']} of {n} in its favour against the best other "
        "column"
    )
    if _against_stacks(verdict):
        text += f", {verdict['decided_single']} of {n} against the best one that is no stack"
    text += f". It misses the first rank in {md.listed(missed, 99)}, by as many ranks." if missed else "."
    elo = verdict["elo"]
    if elo and elo["tuned"]:
        above, apart = (sum(each[key] for each in elo["tuned"]) for key in ("above", "apart"))
        text += (
            f" In Elo over all metrics{md.elo_text(elo['own'])} it is above {above} of "
            f"{md.count(len(elo['tuned']), 'tuned method')}, above {apart} with intervals that do not overlap."
        )
    return text


def _against_stacks(verdict: Mapping[str, Any]) -> bool:
    """Return whether the best other column is another stack in some metric."""
    return any(each["any"] != each["single"] for each in verdict["metrics"])


def _table_of_metrics(verdict: Mapping[str, Any]) -> str:
    rivals = {"any": "Against the best other column"}
    if _against_stacks(verdict):
        rivals["single"] = "Against the best that is no stack"
    rows = [
        [
            md.metric_name(each["name"]),
            f"{each['rank']:.2f}{' (first)' if each['first'] else ''}",
            *(_against_cell(each[kind]) for kind in rivals),
        ]
        for each in verdict["metrics"]
    ]
    return md.table(["Metric", "Average rank", *rivals.values()], rows)


def _against_cell(test: Mapping[str, Any] | None) -> str:
    if test is None:
        return "-"
    numbers = " / ".join("-" if test[key] is None else f"{test[key]:.2f}" for key in ("better", "equal", "worse"))
    mark = "**" if test["decided"] else ""
    return f"`{test['against']}` {test['rank']:.2f}, {test['behind']:+.2f}; {mark}{numbers}{mark}"


def _table_of_ratings(verdict: Mapping[str, Any]) -> list[str]:
    """Return the Elo of the champion and of every tuned column, where there are any."""
    if not verdict["elo"] or not verdict["elo"]["tuned"]:
        return []
    own = verdict["elo"]["own"]
    rows = [[f"`{own['column']}`", md.elo_cell(own), ""]]
    for each in verdict["elo"]["tuned"]:
        relation = "below, intervals apart" if each["apart"] else "below" if each["above"] else "not below"
        rows.append([f"`{each['column']}`", md.elo_cell(each), relation])
    return [md.table(["Column", "Elo over all metrics", "Relative to the champion"], rows)]
