"""The registry of checks, and how a study's claims become findings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from multilab.claims.errors import ClaimsError, NotYet
from multilab.claims.evidence import Evidence, Finding

__all__ = ["all_checks", "check", "check_claims", "checked", "run_check"]

_CHECKS: dict[str, Callable[..., Finding]] = {}
_HOMES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("*_checks.py")))
_KEYS = {"id", "sentence", "check", "expected", "printed", "place"}


def check(function: Callable[..., Finding]) -> Callable[..., Finding]:
    """Register a check under its name: ``function(evidence, **arguments) -> Finding``."""
    _CHECKS[function.__name__] = function
    return function


def run_check(name: str, arguments: Mapping[str, Any], evidence: Evidence) -> Finding:
    """Run one check; what it lacks makes it inconclusive.

    Raises
    ------
    ClaimsError
        If there is no such check, or it does not take these arguments.
    """
    function = _found(name)
    try:
        inspect.signature(function).bind(evidence, **arguments)
    except TypeError as error:
        raise ClaimsError(f"check {name}: {error}") from None
    try:
        return function(evidence, **arguments)
    except NotYet as error:
        return Finding("inconclusive", {}, str(error))


def check_claims(claims: Iterable[Mapping[str, Any]], ours: Evidence, paper: Evidence | None = None) -> list[dict]:
    """Check the claims of a study.

    Parameters
    ----------
    claims : iterable of mapping
        ``id``, ``sentence``, ``check`` and its arguments; ``place`` (where the paper says it) and ``expected`` are
        carried along. ``printed`` holds arguments that differ for the print (its names of metrics, say), or ``false``
        where the print cannot be checked.
    ours, paper : Evidence
        The study's results; the printed cells.

    Returns
    -------
    list of dict
        For ``claims.json``: id, sentence, place, outcome (holds, fails, inconclusive), check, what it asks in
        words, reason, numbers, expected, and under ``in_print`` the outcome and numbers of the same check on the
        printed cells, under ``asked_in_print`` what was asked of them.
    """
    return [checked(claim, ours, paper) for claim in claims]


def checked(claim: Mapping[str, Any], ours: Evidence, paper: Evidence | None = None) -> dict[str, Any]:
    """Check one claim; see :func:`check_claims`."""
    from multilab.claims.wording import in_words  # which looks checks up here

    lacking = [key for key in ("id", "sentence", "check") if not claim.get(key)]
    if lacking:
        raise ClaimsError(f"claim {claim.get('id', claim)!r} has no {lacking[0]}")
    name = str(claim["check"])
    arguments = {key: value for key, value in claim.items() if key not in _KEYS}
    finding = run_check(name, arguments, ours)
    told: dict[str, Any] = {
        "id": str(claim["id"]),
        "sentence": str(claim["sentence"]),
        "place": claim.get("place"),
        "outcome": finding.outcome,
        "check": name,
        "asked": in_words(name, arguments),
        "reason": finding.reason or None,
        "numbers": finding.numbers,
        "expected": claim.get("expected"),
    }
    if paper is not None and claim.get("printed") is not False:
        other = {**arguments, **(claim.get("printed") or {})}
        there = run_check(name, other, paper)
        if there.numbers:
            told["in_print"] = {"outcome": there.outcome, **there.numbers}
            told["asked_in_print"] = in_words(name, other)
    return told


def all_checks() -> dict[str, Callable[..., Finding]]:
    """Return every check by its name."""
    for home in _HOMES:
        importlib.import_module(f"multilab.claims.{home}")
    return _CHECKS


def _found(name: str) -> Callable[..., Finding]:
    known = all_checks()
    if name not in known:
        raise ClaimsError(f"there is no check {name!r}; there are {', '.join(sorted(known))}")
    return known[name]


@check
def all_of(evidence: Evidence, parts: list[dict[str, Any]]) -> Finding:
    """Return holds if all parts hold, fails if one fails, else inconclusive; a part is ``{check: name, ...}``."""
    found = []
    for part in parts:
        arguments = {key: value for key, value in part.items() if key not in _KEYS}
        found.append(run_check(str(part["check"]), arguments, evidence))
    outcomes = [finding.outcome for finding in found]
    outcome = "fails" if "fails" in outcomes else "inconclusive" if "inconclusive" in outcomes else "holds"
    numbers: dict[str, Any] = {}
    for part, finding in zip(parts, found, strict=True):
        named = str(part.get("id") or part["check"])
        numbers[named] = {"outcome": finding.outcome, **finding.numbers}
        if finding.reason:
            numbers[named]["reason"] = finding.reason
    reasons = dict.fromkeys(f.reason for f in found if f.outcome == "inconclusive" and f.reason)
    return Finding(outcome, numbers, "; ".join(reasons))
