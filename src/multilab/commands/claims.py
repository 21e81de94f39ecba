"""Verdicts on published cells and claims of a paper as text, from the committed files of its study."""

from collections import Counter
from typing import Any

from multilab.claims import Claim
from multilab.claims.verdicts import MISSING, VERDICTS, Agreement
from multilab.commands.pipeline_file import run_command
from multilab.core import read_json, report_dir
from multilab.experiments.study import Study
from multilab.papers import find
from multilab.statistics.result_files import read_table


def verdict_lines(study: Study) -> list[str]:
    """Return the number of published cells per verdict, and of those still missing."""
    path = report_dir(study.name) / "cells.csv"
    if not path.is_file():
        return [f"published cells: {path} does not exist; run `{run_command(study.name)}`"]
    cells = read_table(path, text=True)
    counts, agreement = Counter(cells["verdict"]), Agreement.of(cells)
    lines = [f"{len(cells)} published cells of the paper {study.paper}"]
    lines += [f"  {counts[v]:5}  {counts[v] / len(cells):6.1%}  {v}" for v in VERDICTS if counts[v]]
    if agreement.comparable:
        lines.append(
            f"  {agreement.comparable} of {agreement.cells} results could be compared; {agreement.agree} of these agree"
        )
        near = ", ".join(
            f"{share:.0%} within {limit} %" for share, limit in zip(agreement.near, (1, 2, 5), strict=True)
        )
        lines.append(f"  median relative gap {agreement.median_gap:.1%}; {near}")
    missing = int(cells["reason"].str.startswith(MISSING).sum())
    return lines + ([f"  of those not run, {missing} have no excuse yet: no result of our own"] if missing else [])


def claim_lines(study: Study) -> list[str]:
    """Return each claim with its outcome on our results and on the published cells."""
    path = report_dir(study.name) / "claims.json"
    entries = {entry["id"]: entry for entry in read_json(path)} if path.is_file() else {}
    claims = find(str(study.paper)).claims
    theirs = [claim.id for claim in claims if claim.origin == "paper" and claim.id in entries]
    counts = Counter(entries[name]["outcome"] for name in theirs)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    lines = [f"{len(claims)} claims" + (f", of the paper: {outcomes}" if outcomes else "")] if claims else []
    lines += [f"  {'':<8}{'our results':<17}published cells"] if entries else []
    return lines + [line for claim in claims for line in _lines(claim, entries.get(claim.id, {}))]


def _lines(claim: Claim, entry: dict[str, Any]) -> list[str]:
    in_paper = (entry.get("in_paper") or {}).get("outcome", "–")
    outcomes = f"{entry.get('outcome', 'not checked yet'):<17}" + (f"{in_paper:<17}" if entry else "")
    lines = [f"  {claim.id:<8}{outcomes}{claim.sentence}"]
    lines += [f"{'':44}{entry['reason']}"] if entry.get("reason") else []
    because = entry.get("explanation")
    return lines + ([f"{'':44}because ({because['verdict']}): {because['cause']}"] if because else [])
