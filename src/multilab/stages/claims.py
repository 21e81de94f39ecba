"""Print the claims ledger: what the papers print and claim, and what our results say of it."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import Any

from multilab.experiments.errors import ExperimentError
from multilab.experiments.settings import Study, load_study, names
from multilab.ground.shell import command
from multilab.stages.common import report_dir


def main(argv: list[str]) -> int:
    """`multilab claims [--study NAME]`: from the committed ``cells.csv`` and ``claims.json``; default: all studies."""
    parser = argparse.ArgumentParser(prog="multilab claims", description=__doc__)
    parser.add_argument("--study", help="default: every study that has a paper or claims")
    words = [f"--{word}" if word.startswith("study=") else word for word in argv]
    asked = parser.parse_args(words).study
    studies = [load_study(name) for name in ([asked] if asked else names("study"))]
    listed = [study for study in studies if study.paper or study.claims]
    if asked and not listed:
        raise ExperimentError(f"study {asked} has neither a paper nor claims")
    for study in listed:
        print(f"{study.name}: {study.title}")
        for line in (*_cells(study), *_claims(study)):
            print(f"  {line}")
    return 0


def _cells(study: Study) -> list[str]:
    """Return how many printed cells have which verdict, and what is still missing."""
    import pandas as pd

    from multilab.claims.verdicts import MISSING, VERDICTS, compared

    path = report_dir(study.name) / "cells.csv"
    if study.paper is None:
        return []
    if not path.is_file():
        plan = f"{command('multilab')} plan study={study.name}"
        return [f"printed cells: {path} is not here; run `{plan} && {command('dvc')} repro`"]
    cells = pd.read_csv(path, dtype=str)
    counts = Counter(cells["verdict"])
    lines = [f"{len(cells)} printed cells of the paper {study.paper}"]
    lines += [f"  {counts[v]:5}  {counts[v] / len(cells):6.1%}  {v}" for v in VERDICTS if counts[v]]
    known, _, agree, share = compared(cells["verdict"])
    lines += [f"  {known} could be compared; {agree} of these ({share}) agree (match or within)"] if known else []
    missing = int(cells["reason"].fillna("").str.startswith(MISSING).sum())
    return lines + ([f"  of those not run, {missing} have no excuse yet: no result of ours"] if missing else [])


def _claims(study: Study) -> list[str]:
    """Return each claim with its outcome, ours and that of the print."""
    path = report_dir(study.name) / "claims.json"
    found = {claim["id"]: claim for claim in json.loads(path.read_text())} if path.is_file() else {}
    counts = Counter(found[str(claim["id"])]["outcome"] for claim in study.claims if str(claim["id"]) in found)
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    lines = [f"{len(study.claims)} claims" + (f": {told}" if told else "")] if study.claims else []
    lines += [f"  {'':<8}{'our results':<17}printed cells"] if found else []
    return lines + [line for claim in study.claims for line in _lines(claim, found.get(str(claim["id"]), {}))]


def _lines(claim: dict[str, Any], found: dict[str, Any]) -> list[str]:
    printed = (found.get("in_print") or {}).get("outcome", "–")
    outcomes = f"{found.get('outcome', 'not checked yet'):<17}" + (f"{printed:<15}" if found else "")
    lines = [f"  {claim['id']:<8}{outcomes}{claim['sentence']}"]
    return lines + ([f"{'':42}{found['reason']}"] if found.get("reason") else [])
