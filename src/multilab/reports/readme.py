"""Markdown from committed results: the headline table of a study, the README, pages of papers, the ledger of claims."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.arena.tracks import column_name, method_of
from multilab.claims.agreement import Agreement, agreement_by_method
from multilab.claims.paper import find
from multilab.claims.text_numbers import Results
from multilab.core import read_json, write_atomically
from multilab.core.text import markdown_cell
from multilab.reports.data import ReportData, load_report
from multilab.reports.errors import ReportError
from multilab.reports.finding import finding
from multilab.reports.tables.entry import Entry
from multilab.reports.tables.scores import MANY_METHODS, method_rows, score_table
from multilab.statistics.result_files import read_table

_NUMBER = re.compile(r"(?P<start><!-- = (?P<study>[\w-]+): (?P<expression>.+?) -->).*?(?P<end><!-- = -->)", re.DOTALL)


def write_readme(readme: Path, reports: Path) -> None:
    """Write the numbers and the table that a README shows.

    A number in a sentence stands between ``<!-- = STUDY: EXPRESSION -->`` and ``<!-- = -->``; the expression is one of
    :class:`multilab.claims.text_numbers.Results`. The table of the arena stands between ``<!-- table arena -->`` and
    ``<!-- end arena -->``.

    Parameters
    ----------
    readme : path
        The file.
    reports : path
        The folder of the studies' folders.

    Raises
    ------
    ReportError
        If a mark of the table is missing or repeated.
    """
    text = _with_table(readme, "arena", arena_markdown(reports / "arena" / "summary.json"))
    write_atomically(readme, _NUMBER.sub(lambda match: _filled(match, reports), text))


def write_paper_pages(folder: Path, reports: Path) -> None:
    """Write the pages of papers in the documentation, with their numbers filled in, and the ledger of all claims.

    Parameters
    ----------
    folder : path
        With ``templates/<paper>.md``, texts with the placeholders of :class:`multilab.claims.text_numbers.Results`.
        Each becomes ``<paper>.md`` and ends with the verdicts and claims of the paper; ``index.md`` gets the ledger.
    reports : path
        The folder of the studies' folders; the study of a paper has its name.

    Raises
    ------
    ClaimsError
        If a placeholder cannot be filled in, or a sentence requires what is not so.
    """
    for template in sorted((folder / "templates").glob("*.md")):
        study = reports / template.stem
        text = Results(study).fill(template.read_text(encoding="utf-8"), str(template))
        text = re.sub(r"\n{3,}", "\n\n", text)  # a line that only requires something leaves an empty one
        note = f"<!-- Written by `make pages` from templates/{template.name} and committed results; do not edit. -->"
        write_atomically(folder / template.name, f"{note}\n\n{text.strip()}\n\n{_outcomes_markdown(study)}")
    index = folder / "index.md"
    write_atomically(index, _with_table(index, "ledger", f"\n{ledger_markdown(reports)}\n"))


def _with_table(path: Path, name: str, table: str) -> str:
    """Return the text of a file with the table between its marks ``<!-- table NAME -->`` and ``<!-- end NAME -->``."""
    text = path.read_text(encoding="utf-8")
    start, stop = f"<!-- table {name} -->", f"<!-- end {name} -->"
    if (text.count(start), text.count(stop)) != (1, 1) or text.index(start) > text.index(stop):
        raise ReportError(f"{path} must have the marks {start} and {stop} once each, in this order")
    before, _, rest = text.partition(start)
    return f"{before}{start}\n{table}{stop}{rest.partition(stop)[2]}"


def _outcomes_markdown(folder: Path) -> str:
    """Return the verdicts on a paper's published values, and its claims and our questions with their outcomes."""
    verdicts = Counter(read_table(folder / "cells.csv", ["verdict"], text=True)["verdict"])
    counts = "; ".join(f"{number} *{verdict}*" for verdict, number in verdicts.most_common())
    parts = [f"{verdicts.total()} published values: {counts} ([what the verdicts mean](../glossary.md))."]
    claims = read_json(folder / "claims.json")
    theirs = [claim for claim in claims if claim["origin"] == "paper"]
    own = [claim for claim in claims if claim["origin"] != "paper"]
    for title, rows in (
        (f"{len(theirs)} claims of the paper:", theirs),
        (f"{len(own)} questions of our own, which are not counted among its claims:", own),
    ):
        if rows:
            table = [_line(each["id"], map(markdown_cell, (each["sentence"], _outcome(each)))) for each in rows]
            parts += [title, "\n".join([_line("Claim", ("Sentence", "Outcome")), "|:---|:---|:---|", *table])]
    page = f"../../reports/{folder.name}/index.html"
    parts.append(f"`make pages` builds the [report]({page}) with all tables, figures, and every published value.")
    return "\n\n".join(parts) + "\n"


def _outcome(claim: Mapping[str, Any]) -> str:
    """Return what a claim came to: with the limits for which it holds, or what it comes to so far."""
    needs = claim.get("needs") or {}
    notes = [
        f"for {claim['holds_for']}" if claim.get("holds_for") else "",
        f"so far: {claim['so_far']}" if claim.get("so_far") else "",
        f"to decide: {needs['cells']} cells" if needs else "",
        f"{needs['core_hours']:g} core-hours" if needs.get("core_hours") is not None else "",
    ]
    return f"**{claim['outcome']}** {', '.join(filter(None, notes))}".strip()


def arena_markdown(summary: Path) -> str:
    """Return what quality costs in the arena, in Markdown: the anchor, the best single method, stacks.

    Parameters
    ----------
    summary : path
        ``summary.json`` of the arena.
    """
    content = read_json(summary)
    methods = {each["name"]: each for each in content["costs"]["methods"]}
    stacks = {name for name in methods if name == column_name(method_of(name), "ensembled")}
    first = {
        "a logistic regression per label": content["anchor"],
        "the best single method": max(set(methods) - stacks, key=lambda name: methods[name]["elo"]),
        "a small model that learned from the stack": "distilled_stack@ensembled",
        "the best stack of methods": max(stacks, key=lambda name: methods[name]["elo"]),
    }
    overall = content["winners"][0]["groups"]["overall"]
    lines = [
        f"{len(content['columns'])} methods ran on {len(content['sets'])} data sets with the same folds and limits. "
        f"Stacks of them ran on {content['costs']['sets']}. A method that passed a limit is last on that set.",
        f"**No single method wins: the first {1 + len(overall['not_separated'])} are not told apart.**",
        "",
    ]
    lines += ["| | method | Elo | fit, s per 1,000 rows | predict, ms per row |", "|:---|:---|---:|---:|---:|"]
    for title, name in first.items():
        one = methods[name]
        numbers = (f"{one['elo']:.0f}", f"{one['fit_seconds']:.3g}", f"{one['predict_ms']:.3g}")
        lines.append(_line(title, (f"`{method_of(name)}`", *numbers)))
    return "\n".join(lines) + "\n"


def _filled(match: re.Match[str], reports: Path) -> str:
    value = Results(reports / match["study"]).fill(f"{{{{ {match['expression']} }}}}", "README")
    return f"{match['start']}{value}{match['end']}"


def headline_markdown(study_dir: Path | str, metric: str | None = None) -> str:
    """Return one metric of a study as a Markdown table: best bold, with the average ranks.

    More than eight methods are the rows, the best average rank first; fewer are the columns.

    Parameters
    ----------
    study_dir : path
        The folder ``reports/<study>``.
    metric : str, optional
        Default is the study's first primary metric.

    Raises
    ------
    ReportError
        If the study has no such metric.
    """
    report = load_report(study_dir)
    table = score_table(report, _metric(report, metric))
    ranks = table.average_ranks
    if len(table.heads) > MANY_METHODS:
        heads = [*(["*average rank*"] if ranks else []), *(markdown_cell(dataset) for dataset, _ in table.rows)]
        rows = [
            (markdown_cell(row.head), [row.average_rank, *row.entries] if row.average_rank else row.entries)
            for row in method_rows(table)
        ]
    else:
        heads = [markdown_cell(head) for head in table.heads]
        rows = [(markdown_cell(dataset), entries) for dataset, entries in table.rows]
        rows += [("*average rank*", ranks)] if ranks else []
    lines = [_line(table.corner, heads), "|:---|" + "---:|" * len(heads)]
    return "\n".join([*lines, *(_line(head, map(_markdown, entries)) for head, entries in rows)]) + "\n"


def _line(head: str, texts: Iterable[str]) -> str:
    return f"| {' | '.join([head, *texts])} |"


def finding_text(study_dir: Path | str) -> str:
    """Return the finding of a study as one paragraph, empty if its methods are not ranked."""
    return " ".join(finding(load_report(study_dir)))


def ledger_markdown(reports: Path | str) -> str:
    """Return verdicts and claims of the studies of papers as a Markdown table, with the links of ``docs/papers``.

    Parameters
    ----------
    reports : path
        The folder of the studies' folders; those without ``claims.json`` are left out.
    """
    lines = [
        "| paper | claims | hold | in part | fail | depend | open | not testable "
        "| compared | median gap | within 1 % | 2 % | 5 % | agree | another's column |",
        "|:---|" + "---:|" * 14,
    ]
    for path in sorted(Path(reports).glob("*/claims.json")):
        claims = read_json(path)
        outcomes = Counter(claim["outcome"] for claim in claims if claim["origin"] == "paper")
        if not outcomes:
            continue
        paper = find(read_json(path.parent / "study.json")["paper"])
        cells = read_table(path.parent / "cells.csv", ["verdict", "group"], text=True)
        agreement, by_method = Agreement.of(cells), agreement_by_method(cells)
        others = sum(one.other_agree for one in by_method) if any(one.other for one in by_method) else math.nan
        other = others / agreement.comparable if agreement.comparable else math.nan
        shares = (agreement.median_gap, *agreement.near, agreement.share, other)
        texts = ["–" if math.isnan(share) else f"{share:.{0 if i else 1}%}" for i, share in enumerate(shares)]
        depend = outcomes["depends on the reading"] + outcomes["depends on the limit"]
        counts = (
            *(outcomes[name] for name in ("holds", "holds in part", "fails")),
            depend,
            *(outcomes[name] for name in ("open", "not testable")),
        )
        numbers = [outcomes.total(), *counts, f"{agreement.comparable} of {agreement.cells}", *texts]
        lines.append(_line(f"[{markdown_cell(paper.short)}]({path.parent.name}.md)", map(str, numbers)))
    return "\n".join(lines) + "\n"


def _metric(report: ReportData, metric: str | None) -> str:
    chosen = metric or next(iter(report.primary), None)
    if chosen not in report.summaries:
        raise ReportError(f"study {report.name} has no metric {metric!r}; there are {', '.join(report.metrics)}")
    return str(chosen)


def _markdown(entry: Entry) -> str:
    mean = f"**{entry.text}**" if entry.best else entry.text
    return mean + (f" ± {entry.std}" if entry.std else "")
