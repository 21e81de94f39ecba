"""Counterfactuals: small experiments and calculations that show why a result differs from a paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from multilab.claims.checks import Check, describe_check, run_check
from multilab.claims.errors import ClaimsError, check_keys
from multilab.claims.evidence import Evidence

_TEXTS = ("id", "setting", "why", "shows", "check", "expect", "on")
_NEEDED = ("id", "explains", "setting", "shows", "check", "expect")
_EXPECTED = ("holds", "holds in part", "fails")


@dataclass(frozen=True)
class Counterfactual:
    """A check of results at another setting, or of the published cells, that explains something.

    Attributes
    ----------
    id : str
        Its name; explanations cite it.
    explains : tuple of str
        Claims and errata that it explains.
    setting, why, shows : str
        What is set otherwise, why it was run, and what it should show.
    check : str
        Name of the check.
    arguments : dict
        Arguments of the check. Columns of variants are named as everywhere, ``<method>-<variant>``.
    expect : {"holds", "holds in part", "fails"}
        The outcome that shows it.
    on : {"ours", "printed"}
        Whether the check is made on the study's results or on the published cells.
    """

    id: str
    explains: tuple[str, ...]
    setting: str
    shows: str
    check: str
    arguments: dict[str, Any]
    expect: str
    why: str = ""
    on: str = "ours"

    @classmethod
    def from_mapping(cls, block: Any, location: str) -> Counterfactual:
        """Return the counterfactual of an entry of ``counterfactuals.yaml``; other keys are arguments of its check.

        Raises
        ------
        ClaimsError
            If a key is missing or not well formed.
        """
        if not isinstance(block, Mapping):
            raise ClaimsError(f"{location}: expected a counterfactual ({', '.join(_NEEDED)}, ...), got {block!r}")
        missing = [key for key in _NEEDED if not block.get(key)]
        if missing:
            raise ClaimsError(f"{location}: counterfactual {block.get('id', dict(block))!r} has no {missing[0]}")
        at = f"{location}: counterfactual {block['id']}"
        texts = {key: str(block[key]).strip() for key in _TEXTS if key in block}
        if isinstance(block["explains"], str):
            raise ClaimsError(f"{at}: explains is a list of ids, not {block['explains']!r}")
        for key, allowed in (("expect", _EXPECTED), ("on", ("ours", "printed"))):
            if key in texts and texts[key] not in allowed:
                raise ClaimsError(f"{at}: {key} is one of {', '.join(allowed)}, not {texts[key]!r}")
        arguments = {key: value for key, value in block.items() if key not in (*_TEXTS, "explains")}
        return cls(explains=tuple(map(str, block["explains"])), arguments=arguments, **texts)


def read_counterfactuals(content: Any, location: str) -> tuple[Counterfactual, ...]:
    """Return the counterfactuals of ``counterfactuals.yaml``, in its order.

    Raises
    ------
    ClaimsError
        If an entry is not well formed, or two have the same id.
    """
    if not isinstance(content, list):
        raise ClaimsError(f"{location}: expected a list of counterfactuals, got {content!r}")
    counterfactuals = tuple(Counterfactual.from_mapping(block, location) for block in content)
    ids = [one.id for one in counterfactuals]
    repeated = next((name for name in ids if ids.count(name) > 1), None)
    if repeated:
        raise ClaimsError(f"{location}: two counterfactuals have the id {repeated!r}")
    return counterfactuals


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


def check_known(names: Iterable[str], known: Iterable[str], location: str, what: str) -> None:
    """Refuse names that are none of the known ones.

    Raises
    ------
    ClaimsError
    """
    check_keys(location, what, dict.fromkeys(names), list(known))
