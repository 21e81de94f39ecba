"""Methods that the papers propose, next to baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from multilab.arena.summaries import markdown as md
from multilab.arena.summaries.comparisons import Shares, sets_of_sources, standing, tested_pairs, undetectable

PROPOSALS: Mapping[str, tuple[str, ...]] = {
    "mlwse": ("mlwse_l1", "mlwse_l21"),
    "lskmddm": ("lskmddm", "olskmddm", "rlskmddm"),
    "mlekelm": ("mlekelm",),
    "lwmf": ("lwmf",),
    "imldf": ("imldf",),
}
"""Methods that a paper proposes, by the study of the paper."""

BASELINES = ("br_logistic", "rf_pct", "lightgbm", "catboost", "catboost_fast")
"""What the proposals are compared with."""


def proposal_numbers(
    pool: Mapping[str, Any], shares: Mapping[str, Shares], name: str, study: str, compared_with: Sequence[str]
) -> dict[str, Any]:
    """Return the positions of a proposal, and its comparisons with baselines and with those of its paper."""
    columns = pool["columns"]
    others = [each for each in BASELINES if each in columns and each != name]
    own = [each for each in compared_with if each in columns and each not in PROPOSALS[study]]
    return {
        "name": name,
        "study": study,
        "boards": {group: standing(pool, group, name) for group in shares},
        "unfinished": pool["unfinished"][columns.index(name)],
        "baselines": {group: tested_pairs([(each, name, other) for other in others]) for group, each in shares.items()},
        "comparators": tested_pairs([(shares["overall"], name, other) for other in own]),
    }


def proposal_section(summary: Mapping[str, Any]) -> list[str]:
    """Return the section on the proposals of the papers, in Markdown."""
    entries = summary["proposals"]
    title = "## What the proposals of the papers are worth"
    if not entries:
        return [title, "None of them has results."]
    groups, n = list(summary["groups"]), len(summary["columns"])
    standings = [
        [
            f"`{each['name']}`",
            *(f"{each['boards'][name]['position']} ({each['boards'][name]['rank']:.1f})" for name in groups),
            md.elo_cell(each["boards"]["overall"]),
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
        md.table(["Proposal", *(md.group(summary, name) for name in groups), "Elo", "Unfinished"], standings),
    ]
    if baselines:
        titles = " / ".join(md.group(summary, name).lower() for name in groups if name != "overall")
        parts += [
            f"Share of (set, metric) pairs that a proposal wins against baselines: all metrics ({titles}). "
            "The sets of a source count as one. **Bold**: a difference was detected over all metrics, by Wilcoxon's "
            "signed-rank test on the shares per source, Holm-corrected over the baselines of a row.",
            md.table(["Proposal", *(f"`{name}`" for name in baselines)], wins),
        ]
        absent = [each for each in summary["unfinished"]["methods"] if each["name"] in baselines]
        if absent:
            where = md.listed(f"`{each['name']}` on {len(each['sets'])} of {len(summary['sets'])}" for each in absent)
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
    text = f"{mark}{md.per_cent(rows['overall']['wins'])}{mark}"
    return f"{text} ({' / '.join(md.per_cent(rows[group]['wins'], '') for group in groups)})" if groups else text


def _proposal_sentence(entry: Mapping[str, Any]) -> str:
    rows = entry["baselines"]["overall"]
    parts = [f"{_verdicts(rows)}" if rows else "not compared with a baseline"]
    own = entry["comparators"]
    if own:
        parts.append(f"the comparators of its own paper: {_verdicts(own)}")
    where = sets_of_sources((rows or own)[0]) if rows or own else md.count(entry["boards"]["overall"]["sets"], "set")
    return f"`{entry['name']}` on {where}, all metrics: {'; '.join(parts)}."


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what the tests detected; with too few sets, that they could not detect anything."""
    by = {
        verdict: [row for row in rows if row["verdict"] == verdict] for verdict in ("better", "worse", "no difference")
    }
    texts = [f"{verdict} than {_share_texts(by[verdict])}" for verdict in ("better", "worse") if by[verdict]]
    same = by["no difference"]
    if same:
        text = f"no difference was detected from {_share_texts(same)}"
        texts += [text, *([why] if (why := undetectable(same)) else [])]
    return ", ".join(texts)


def _share_texts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the other methods with the share of wins against each; of many, the number and the range."""
    if len(rows) <= md.LISTED:
        return md.listed(f"`{row['against']}` ({md.per_cent(row['wins'])})" for row in rows)
    shares = [row["wins"] for row in rows]
    return f"{len(rows)} methods ({md.per_cent(min(shares))} to {md.per_cent(max(shares))})"
