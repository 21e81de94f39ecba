"""Checks of claims, and the findings of a paper's claims.

A check is a function ``(evidence, **arguments) -> Finding`` with a sentence that says what it requires. The checks that
several papers use are in ``shared_checks.py``, those of one paper in the paper's ``checks.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any

from multilab.claims.errors import ClaimsError, NotYet
from multilab.claims.evidence import Evidence, Finding
from multilab.claims.statements import Claim, Counterfactual, Erratum
from multilab.metrics import find_metric

ALL_OF = "all_of"
"""Name of the composite check: its ``parts`` are checks with their arguments; it holds in part if some of them do."""

_DEFAULTS = {
    "datasets": "all datasets with results",
    "against": "every other one",
    "alpha": "the study's level",
    "at_least": "0",
    "at_most": "infinity",
    "low": "minus infinity",
    "high": "infinity",
}


@dataclass(frozen=True)
class Check:
    """A check.

    Attributes
    ----------
    function : callable
        ``function(evidence, **arguments) -> Finding``.
    sentence : str
        What the check requires, with the names of its arguments and of ``parts`` in braces.
    parts : mapping of str to callable
        Parts of the sentence that depend on the values of arguments: functions of all arguments.
    """

    function: Callable[..., Finding]
    sentence: str
    parts: Mapping[str, Callable[[Mapping[str, Any]], str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the check: that of its function."""
        return self.function.__name__

    def bind(self, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that the check does not take.

        Raises
        ------
        ClaimsError
        """
        try:
            inspect.signature(self.function).bind(None, **arguments)
        except TypeError as error:
            raise ClaimsError(f"check {self.name}: {error}") from None

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """Return the sentence with these arguments."""
        parameters = inspect.signature(self.function).parameters
        values = {name: parameter.default for name, parameter in parameters.items()} | dict(arguments)
        texts = {name: text_of(value, name) for name, value in values.items()}
        return self.sentence.format_map({**texts, **{name: part(values) for name, part in self.parts.items()}})


def check(sentence: str, **parts: Callable[[Mapping[str, Any]], str]) -> Callable[[Callable[..., Finding]], Check]:
    """Make a check of a function; ``sentence`` says what it requires, see :class:`Check`."""
    return lambda function: Check(function, sentence, parts)


def checks_in(module: ModuleType) -> dict[str, Check]:
    """Return the checks that a module defines, by name."""
    return {value.name: value for value in vars(module).values() if isinstance(value, Check)}


def shared_checks() -> dict[str, Check]:
    """Return the checks that several papers use, by name."""
    from multilab.claims import shared_checks as module  # it registers its checks with `check` of this module

    return checks_in(module)


def run_check(
    name: str, arguments: Mapping[str, Any], evidence: Evidence, checks: Mapping[str, Check] | None = None
) -> Finding:
    """Run one check; missing results make it not testable.

    Parameters
    ----------
    name : str
        Name of the check; ``all_of`` runs its ``parts``.
    arguments : mapping
        Its arguments.
    evidence : Evidence
        The results it is run on.
    checks : mapping of str to Check, optional
        The checks there are; default the shared ones.

    Raises
    ------
    ClaimsError
        If there is no such check, or it does not take these arguments.
    """
    if name == ALL_OF:
        return _all_of(arguments["parts"], evidence, checks)
    one = _known(name, checks)
    one.bind(arguments)
    try:
        return one.function(evidence, **arguments)
    except NotYet as error:
        return Finding("not testable", {}, str(error))


def describe_check(name: str, arguments: Mapping[str, Any], checks: Mapping[str, Check] | None = None) -> str:
    """Return what a check with these arguments requires, as a sentence."""
    if name == ALL_OF:
        return " And: ".join(describe_check(*_part(part), checks) for part in arguments["parts"])
    return _known(name, checks).describe(arguments)


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
        Naming the owner.
    """
    if check != ALL_OF:
        try:
            _known(check, checks).bind(arguments)
        except ClaimsError as error:
            raise ClaimsError(f"{owner}: {error}") from None
        return
    if set(arguments) != {"parts"} or not arguments["parts"]:
        raise ClaimsError(
            f"{owner}: all_of has parts, not {', '.join(sorted(set(arguments) - {'parts'})) or 'nothing'}"
        )
    for part in arguments["parts"]:
        if not isinstance(part, Mapping) or not part.get("check"):
            raise ClaimsError(f"{owner}: a part of all_of is {{check, arguments ...}}, not {part!r}")
        verify_check(owner, *_part(part), checks)


def check_claims(
    claims: Iterable[Claim], ours: Evidence, paper: Evidence | None = None, checks: Mapping[str, Check] | None = None
) -> list[dict[str, Any]]:
    """Check the claims of a paper.

    Parameters
    ----------
    claims : iterable of Claim
        The claims.
    ours, paper : Evidence
        The study's results; the published cells.
    checks : mapping of str to Check, optional
        The checks there are; default the shared ones.

    Returns
    -------
    list of dict
        For ``claims.json``: id, sentence, quote, origin, location, outcome (holds, holds in part, fails, not testable),
        share, check, its description, reason, numbers, expected, explanation, and under ``in_paper`` the outcome and
        numbers of the same check on the published cells, under ``description_in_paper`` what it requires of them.
    """
    return [_checked(claim, ours, paper, checks) for claim in claims]


def _checked(claim: Claim, ours: Evidence, paper: Evidence | None, checks: Mapping[str, Check] | None) -> dict:
    finding = run_check(claim.check, claim.arguments, ours, checks) if claim.check else Finding("not testable")
    if claim.untestable:
        finding = Finding("not testable", finding.numbers, claim.untestable)
    entry: dict[str, Any] = {
        "id": claim.id,
        "sentence": claim.sentence,
        "quote": claim.quote,
        "origin": claim.origin,
        "location": claim.location,
        "outcome": finding.outcome,
        "share": finding.share,
        "check": claim.check or None,
        "description": describe_check(claim.check, claim.arguments, checks) if claim.check else None,
        "reason": finding.reason or None,
        "numbers": finding.numbers,
        "expected": claim.expected,
        "explanation": asdict(claim.explanation) if claim.explanation else None,
    }
    if paper is not None and claim.check and claim.in_paper is not False:
        published = run_check(claim.check, claim.arguments_in_paper, paper, checks)
        if published.numbers:
            entry["in_paper"] = {"outcome": published.outcome, **published.numbers}
            entry["description_in_paper"] = describe_check(claim.check, claim.arguments_in_paper, checks)
    return entry


def run_counterfactuals(
    known: Iterable[Counterfactual], ours: Evidence, printed: Evidence, checks: Mapping[str, Check] | None = None
) -> list[dict[str, Any]]:
    """Return the counterfactuals with their outcomes and numbers, for ``counterfactuals.json``."""
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
        "description": describe_check(one.check, one.arguments, checks),
        "expect": one.expect,
        "outcome": finding.outcome,
        "share": finding.share,
        "reason": finding.reason or None,
        "numbers": finding.numbers,
    }


def check_errata(
    known: Iterable[Erratum], printed: Evidence, ours: Evidence | None = None, checks: Mapping[str, Check] | None = None
) -> dict[str, Finding]:
    """Return what the checks of errata find, by id; those on our results are left out where there are none.

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
    """Return holds if all parts hold, fails if none does, holds in part if some do or one does in part.

    Parts that are not testable make it not testable where no other part fails.
    """
    findings = [run_check(*_part(part), evidence, checks) for part in parts]
    outcomes = [finding.outcome for finding in findings]
    kept, missed = outcomes.count("holds"), "fails" in outcomes
    if "holds in part" in outcomes or (kept and missed):
        outcome = "holds in part"
    else:
        outcome = "fails" if missed else "not testable" if "not testable" in outcomes else "holds"
    numbers: dict[str, Any] = {}
    for part, finding in zip(parts, findings, strict=True):
        title = str(part.get("id") or part["check"])
        numbers[title] = {"outcome": finding.outcome, **finding.numbers}
        if finding.reason:
            numbers[title]["reason"] = finding.reason
    reasons = dict.fromkeys(f.reason for f in findings if f.outcome == "not testable" and f.reason)
    return Finding(outcome, numbers, "; ".join(reasons), share=(kept, len(parts)) if kept else None)


def _part(part: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the check and the arguments of one part of ``all_of``."""
    return str(part["check"]), {key: value for key, value in part.items() if key not in ("id", "check")}


def _known(name: str, checks: Mapping[str, Check] | None) -> Check:
    known = shared_checks() if checks is None else checks
    if name not in known:
        raise ClaimsError(f"there is no check {name!r}; there are {', '.join(sorted({*known, ALL_OF}))}")
    return known[name]


def text_of(value: Any, name: str = "") -> str:
    """Return an argument of a check as text; ``name`` is its name."""
    if value is None:
        return _DEFAULTS.get(name, "")
    if isinstance(value, Mapping) and name == "metrics":
        return ", ".join(f"{key} (our {text_of(one, name)})" for key, one in value.items())
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {text_of(one)}" for key, one in value.items())
    if name == "best" and not isinstance(value, str) and len(value) > 1:
        return f"the best of {text_of(value)}"
    if isinstance(value, list | tuple):
        return ", ".join(text_of(one, name) for one in value)
    if name in ("metric", "metrics"):
        known = find_metric(value)
        return known.title if known else str(value).replace("_", " ")
    return f"{value:g}" if isinstance(value, float) else str(value)
