"""Judging of claims by the rules of ``docs/decisions/0026-rules-of-judging.md``.

A check is a plain function ``(evidence, **arguments) -> Finding``. The checks that several papers use are in
``shared_checks.py``, those of one paper in the paper's ``checks.py``; what enforces the rules is here.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from inspect import Parameter, signature
from typing import Any

from multilab.claims import shared_checks as module_of_shared_checks
from multilab.claims.errors import ClaimsError, NotYet
from multilab.claims.evidence import Check, Evidence, Finding, Missing, checks_in
from multilab.claims.programs import Program
from multilab.claims.statements import Claim, Counterfactual, Erratum, Reading
from multilab.core.messages import did_you_mean
from multilab.core.settings import check_value

ALL_OF = "all_of"
"""Name of the composite check: its ``parts`` are checks with their arguments; it holds in part if some of them do."""


def shared_checks() -> dict[str, Check]:
    """Return the checks that several papers use, by name."""
    return checks_in(module_of_shared_checks)


def run_check(
    name: str, arguments: Mapping[str, Any], evidence: Evidence, checks: Mapping[str, Check] | None = None
) -> Finding:
    """Run one check. It is open while columns or splits are missing that the paper has.

    Parameters
    ----------
    name : str
        Name of the check; ``all_of`` runs its ``parts``.
    arguments : mapping
        Its arguments.
    evidence : Evidence
        The results it is run on. On published cells a check that lacks numbers is not testable instead of open.
    checks : mapping of str to Check, optional
        The checks there are; default the shared ones.

    Raises
    ------
    ClaimsError
        If there is no such check, or it does not take these arguments.
    """
    if name == ALL_OF:
        return _all_of(arguments["parts"], evidence, checks)
    verify_check("", name, arguments, checks)
    start = len(evidence.missing)
    try:
        found = _known(name, checks)(evidence, **arguments)
    except NotYet as error:
        found = Finding("not testable" if evidence.splits is None else "open", {}, str(error))
    missing = tuple(dict.fromkeys(evidence.missing[start:]))
    if not missing:
        return found
    so_far = "" if found.outcome == "open" else found.outcome
    reason = found.reason or "fewer splits than the paper has"
    return replace(found, outcome="open", so_far=so_far, missing=missing, reason=reason)


def verify(claims: Iterable[Claim], checks: Mapping[str, Check] | None = None) -> None:
    """Refuse claims whose check does not exist or does not take their arguments.

    Raises
    ------
    ClaimsError
        Naming the claim.
    """
    for claim in claims:
        for arguments in (claim.arguments, claim.arguments_in_paper) if claim.check else ():
            verify_check(f"claim {claim.id}", claim.check, arguments, checks)
        for reading in claim.readings:
            verify_check(f"claim {claim.id}: reading {reading.text!r}", reading.check, reading.arguments, checks)


def verify_check(
    owner: str, check: str, arguments: Mapping[str, Any], checks: Mapping[str, Check] | None = None
) -> None:
    """Refuse a check that does not exist or does not take its arguments; of ``all_of``, those of its parts.

    Parameters
    ----------
    owner : str
        What it is the check of, for the message.
    check : str
        Name of the check.
    arguments : mapping
        Its arguments.
    checks : mapping of str to Check, optional
        The checks there are; default the shared ones.

    Raises
    ------
    ClaimsError
        Naming the owner, the argument, and the nearest name of one.
    """
    start = f"{owner}: " if owner else ""
    if check != ALL_OF:
        try:
            _verify_arguments(check, _known(check, checks), arguments)
        except ClaimsError as error:
            raise ClaimsError(f"{start}{error}") from None
        return
    if set(arguments) != {"parts"} or not arguments["parts"]:
        raise ClaimsError(f"{start}all_of has parts, not {', '.join(sorted(set(arguments) - {'parts'})) or 'nothing'}")
    for part in arguments["parts"]:
        if not isinstance(part, Mapping) or not part.get("check"):
            raise ClaimsError(f"{start}a part of all_of is {{check, arguments ...}}, not {part!r}")
        verify_check(owner, *_part(part), checks)


def _verify_arguments(name: str, check: Check, arguments: Mapping[str, Any]) -> None:
    parameters = {key: one for key, one in signature(check).parameters.items() if key != "evidence"}
    for key in arguments:
        if key not in parameters:
            near = did_you_mean(key, parameters) or f"; its arguments are {', '.join(parameters)}"
            raise ClaimsError(f"check {name}: unknown argument {key!r}{near}")
    for key, one in parameters.items():
        if one.default is Parameter.empty and key not in arguments:
            raise ClaimsError(f"check {name}: argument {key!r} is missing")
    hints = typing.get_type_hints(check)
    for key, value in arguments.items():
        if key in hints:
            check_value(value, hints[key], f"check {name}: {key}", ClaimsError)


def check_claims(
    claims: Iterable[Claim],
    ours: Evidence,
    paper: Evidence | None = None,
    checks: Mapping[str, Check] | None = None,
    programs: Mapping[str, Program] | None = None,
) -> list[dict[str, Any]]:
    """Judge the claims of a paper.

    Parameters
    ----------
    claims : iterable of Claim
        The claims.
    ours, paper : Evidence
        The study's results; the published cells.
    checks : mapping of str to Check, optional
        The checks there are; default the shared ones.
    programs : mapping of str to Program, optional
        Which of our columns stands for each method of the paper, by program. A claim is judged on the program that it
        names, ``fair`` by default, and shown for the others.

    Returns
    -------
    list of dict
        For ``claims.json``: id, sentence, quote, origin, location, outcome, share, check, description (the sentence of
        the check), reason, numbers, expected, explanation, history; where they are not empty, holds_for, so_far, needs
        (what would decide it), readings, program and programs (the outcome of each), and under ``in_paper`` the
        outcome and numbers of the same check on the published cells, under ``description_in_paper`` its sentence.

    Raises
    ------
    ClaimsError
        If a claim of the paper names a column that is not of its program.
    """
    if programs:
        ours = replace(ours, all_datasets=True, missing=[])
    return [_judged(claim, ours, paper, checks, programs or {}) for claim in claims]


def _judged(
    claim: Claim,
    ours: Evidence,
    paper: Evidence | None,
    checks: Mapping[str, Check] | None,
    programs: Mapping[str, Program],
) -> dict[str, Any]:
    finding, readings = _decided(claim, claim.program, ours, checks, programs)
    explanation = asdict(claim.explanation) if claim.explanation else None
    entry: dict[str, Any] = {
        "id": claim.id,
        "sentence": claim.sentence,
        "quote": claim.quote,
        "origin": claim.origin,
        "location": claim.location,
        "outcome": finding.outcome,
        "share": finding.share,
        "check": claim.check or None,
        "description": finding.sentence or None,
        "reason": finding.reason or None,
        "numbers": finding.numbers,
        "expected": claim.expected,
        "explanation": explanation,
    }
    # A question of our own names our columns: it is not asked of other programs, whose columns it may name already.
    asked = programs if claim.origin == "paper" else [name for name in programs if name == claim.program]
    others = {name: _decided(claim, name, ours, checks, programs)[0] for name in asked if name != claim.program}
    shown = {name: finding if name == claim.program else others[name] for name in asked}
    entry |= _filled(
        holds_for=finding.holds_for,
        so_far=finding.so_far,
        needs=_needs(finding.missing),
        history=[asdict(change) for change in claim.history],
        readings=readings,
        program=claim.program if programs else "",
        programs={name: _short(one) for name, one in shown.items()} if claim.decided else {},
    )
    if paper is not None and claim.check and claim.in_paper is not False:
        published = run_check(claim.check, claim.arguments_in_paper, paper, checks)
        if published.numbers:
            entry["in_paper"] = {"outcome": published.outcome, **published.numbers}
            entry["description_in_paper"] = published.sentence
            entry |= _filled(holds_for_in_paper=published.holds_for)
    return entry


def _filled(**entries: Any) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value}


def _short(finding: Finding) -> dict[str, Any]:
    return {"outcome": finding.outcome, **_filled(share=finding.share, so_far=finding.so_far, limit=finding.holds_for)}


def _needs(missing: Iterable[Missing]) -> dict[str, Any]:
    """Return the cells that would decide a claim and what they cost: unknown if nothing like one of them was run."""
    most = {(one.column, one.dataset): one for one in sorted(missing, key=lambda one: one.splits)}.values()
    if not most:
        return {}
    seconds = [one.splits * one.seconds for one in most if one.seconds is not None]
    return {
        "cells": sum(one.splits for one in most),
        "core_hours": round(sum(seconds) / 3600, 2) if len(seconds) == len(most) else None,
        "missing": [f"{one.column} on {one.dataset}: {one.splits}" for one in most],
    }


def _decided(
    claim: Claim,
    program: str,
    ours: Evidence,
    checks: Mapping[str, Check] | None,
    programs: Mapping[str, Program],
) -> tuple[Finding, list[dict[str, Any]]]:
    """Return what a claim comes to on the columns of a program, and of a claim with readings what each comes to."""
    if claim.readings:
        found = [_of_reading(one, claim, program, ours, checks, programs) for one in claim.readings]
        texts = [
            {"text": reading.text, "description": one.sentence, "reason": one.reason, "numbers": one.numbers}
            | _short(one)
            for reading, one in zip(claim.readings, found, strict=True)
        ]
        return _by_reading(found), texts
    if not claim.check:
        return Finding("not testable", {}, claim.untestable or ""), []
    finding = run_check(claim.check, _arguments(claim, claim.arguments, program, ours, programs), ours, checks)
    # What could be run and fails is not "not testable": the reason only counts while there are no results.
    if claim.untestable and finding.outcome in ("open", "not testable") and not finding.so_far:
        finding = Finding("not testable", finding.numbers, claim.untestable, sentence=finding.sentence)
    return finding, []


def _of_reading(
    reading: Reading,
    claim: Claim,
    program: str,
    ours: Evidence,
    checks: Mapping[str, Check] | None,
    programs: Mapping[str, Program],
) -> Finding:
    arguments = _arguments(claim, reading.arguments, reading.program or program, ours, programs)
    return run_check(reading.check, arguments, ours, checks)


def _by_reading(found: list[Finding]) -> Finding:
    """Return the outcome that all readings come to; else it depends on the reading, or is open while one is."""
    missing = tuple(one for finding in found for one in finding.missing)
    outcomes = {finding.outcome for finding in found}
    outcome = outcomes.pop() if len(outcomes) == 1 else "open" if missing else "depends on the reading"
    known = {finding.so_far or finding.outcome for finding in found}
    so_far = "" if "open" in known else known.pop() if len(known) == 1 else "depends on the reading"
    return replace(
        found[0],
        outcome=outcome,
        numbers={},
        sentence="",
        share=None,
        missing=missing,
        so_far=so_far if outcome == "open" else "",
        reason=next((one.reason for one in found if one.reason), "") if outcome in ("open", "not testable") else "",
        holds_for=found[0].holds_for if len({one.holds_for for one in found}) == 1 else "",
    )


def _arguments(
    claim: Claim, arguments: Mapping[str, Any], program: str, ours: Evidence, programs: Mapping[str, Program]
) -> Mapping[str, Any]:
    """Return arguments with our columns for the paper's methods."""
    if program not in programs:
        return arguments
    columns = programs[program].columns
    named: Mapping[str, Any] = _replaced(arguments, columns)
    if claim.origin == "paper":
        outside = sorted(_texts(named) & set(ours.scores["method"]) - set(columns.values()))
        if outside:
            raise ClaimsError(f"claim {claim.id}: {', '.join(outside)} is not a column of the program {program!r}")
    return named


def names_in_checks(claim: Claim, programs: Mapping[str, Program]) -> set[str]:
    """Return the texts among the arguments of a claim's checks, with the columns of its program: methods, datasets, ...

    Parameters
    ----------
    claim : Claim
    programs : mapping of str to Program
        See :func:`check_claims`.
    """
    columns = {name: program.columns for name, program in programs.items()}
    named = _texts(_replaced(claim.arguments, columns.get(claim.program, {})))
    for reading in claim.readings:
        named |= _texts(_replaced(reading.arguments, columns.get(reading.program or claim.program, {})))
    return named


def _replaced(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {names.get(key, key): _replaced(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def _texts(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        return {str(key) for key in value}.union(*map(_texts, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(_texts, value))
    return {value} if isinstance(value, str) else set()


def run_counterfactuals(
    known: Iterable[Counterfactual], ours: Evidence, printed: Evidence, checks: Mapping[str, Check] | None = None
) -> list[dict[str, Any]]:
    """Return the counterfactuals with their outcomes and numbers, for ``counterfactuals.json``."""
    # An experiment of our own is on the splits that it has: it shows something, and decides no claim.
    ours = replace(ours, splits={}, missing=[])
    return [_ran(one, printed if one.on == "printed" else ours, checks) for one in known]


def _ran(one: Counterfactual, evidence: Evidence, checks: Mapping[str, Check] | None) -> dict[str, Any]:
    finding = run_check(one.check, one.arguments, evidence, checks)
    return {
        "id": one.id,
        "explains": list(one.explains),
        "setting": one.setting,
        "why": one.why,
        "shows": one.shows,
        "on": one.on,
        "description": finding.sentence,
        "expect": one.expect,
        "outcome": finding.outcome,
        "share": finding.share,
        "reason": finding.reason or None,
        "numbers": finding.numbers,
        **_filled(holds_for=finding.holds_for),
    }


def check_errata(
    known: Iterable[Erratum], printed: Evidence, ours: Evidence | None = None, checks: Mapping[str, Check] | None = None
) -> dict[str, Finding]:
    """Return the findings of the checks of errata, by id; checks on our results are skipped if there are none.

    Raises
    ------
    ClaimsError
        If an erratum has neither a check nor a reason why there is none, or its check cannot be run.
    """
    findings = {}
    for erratum in known:
        if bool(erratum.check) == bool(erratum.no_check):
            raise ClaimsError(f"erratum {erratum.id}: give either check or no_check")
        evidence = ours if erratum.check.get("on") == "ours" else printed
        if erratum.check and evidence is not None:
            findings[erratum.id] = run_check(erratum.check["name"], erratum.arguments, evidence, checks)
    return findings


def _all_of(parts: list[dict[str, Any]], evidence: Evidence, checks: Mapping[str, Check] | None) -> Finding:
    """Return what all parts together come to.

    It is open while a part is; it holds if all parts hold, fails if none does, holds in part if some do; where the
    others hold, it depends on the limit if a part does. Parts that are not testable make it so where no other fails.
    """
    findings = [run_check(*_part(part), evidence, checks) for part in parts]
    kept = sum(finding.outcome == "holds" for finding in findings)
    numbers: dict[str, Any] = {}
    for part, finding in zip(parts, findings, strict=True):
        numbers[str(part.get("id") or part["check"])] = {
            "outcome": finding.outcome,
            **finding.numbers,
            **_filled(reason=finding.reason, so_far=finding.so_far, holds_for=finding.holds_for),
        }
    is_open = any(finding.outcome == "open" for finding in findings)
    so_far = _together([finding.so_far or finding.outcome for finding in findings])
    outcome = "open" if is_open else so_far
    reasons = dict.fromkeys(f.reason for f in findings if f.outcome in ("open", "not testable") and f.reason)
    return Finding(
        outcome,
        numbers,
        "; ".join(reasons) if outcome in ("open", "not testable") else "",
        share=(kept, len(parts)) if kept else None,
        sentence=" And: ".join(dict.fromkeys(finding.sentence for finding in findings if finding.sentence)),
        holds_for="; ".join(dict.fromkeys(f.holds_for for f in findings if f.holds_for)),
        so_far=so_far if is_open and so_far != "open" else "",
        missing=tuple(dict.fromkeys(one for finding in findings for one in finding.missing)),
    )


def _together(outcomes: list[str]) -> str:
    """Return what a statement comes to whose parts come to these outcomes."""
    for undecided in ("open", "depends on the reading"):
        if undecided in outcomes:
            return undecided
    if "fails" in outcomes:
        return "fails" if not {"holds", "holds in part", "depends on the limit"} & set(outcomes) else "holds in part"
    return next(one for one in ("holds in part", "not testable", "depends on the limit", "holds") if one in outcomes)


def _part(part: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the check and the arguments of one part of ``all_of``."""
    return str(part["check"]), {key: value for key, value in part.items() if key not in ("id", "check")}


def _known(name: str, checks: Mapping[str, Check] | None) -> Check:
    known = shared_checks() if checks is None else checks
    if name not in known:
        there = did_you_mean(name, known) or f"; there are {', '.join(sorted({*known, ALL_OF}))}"
        raise ClaimsError(f"there is no check {name!r}{there}")
    return known[name]
