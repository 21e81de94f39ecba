"""Claims: statements of a paper that a check decides, and why those that do not hold do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from multilab.claims.errors import ClaimsError, check_keys

ORIGINS = ("paper", "ours")
CAUSES = ("paper", "protocol", "implementation", "unknown")
"""Where the cause of a difference lies: a slip of the paper; a protocol or setting that it does not state; our own
implementation or setting; not known."""
_TEXTS = ("id", "sentence", "check", "location", "expected", "quote", "untestable", "origin")
_KEYS = (*_TEXTS, "in_paper", "explanation")


@dataclass(frozen=True)
class Explanation:
    """Why a claim does not hold.

    Attributes
    ----------
    cause : str
        The cause in a sentence or two.
    evidence : tuple of str
        Counterfactuals of the paper, and errata with a check, that show it.
    verdict : str
        One of :data:`CAUSES`.
    """

    cause: str
    evidence: tuple[str, ...] = ()
    verdict: str = "unknown"

    @classmethod
    def from_mapping(cls, block: Any, location: str) -> Explanation:
        """Return the explanation of a block ``{cause, evidence, verdict}``.

        Raises
        ------
        ClaimsError
            For another key, a missing cause, or an unknown verdict.
        """
        check_keys(location, "an explanation", block, ("cause", "evidence", "verdict"))
        if not block.get("cause"):
            raise ClaimsError(f"{location}: an explanation has a cause")
        evidence = block.get("evidence") or ()
        if isinstance(evidence, str):
            raise ClaimsError(f"{location}: evidence is a list of ids, not {evidence!r}")
        explanation = cls(str(block["cause"]).strip(), tuple(map(str, evidence)), str(block.get("verdict", "unknown")))
        if explanation.verdict not in CAUSES:
            raise ClaimsError(f"{location}: verdict is one of {', '.join(CAUSES)}, not {explanation.verdict!r}")
        return explanation


@dataclass(frozen=True)
class Claim:
    """A statement of a paper.

    Attributes
    ----------
    id, sentence : str
        The statement in English, and its name.
    check : str
        Name of the check that decides it; empty for one that cannot be tested.
    arguments : dict
        Arguments of the check.
    location : str, optional
        Where the paper says it.
    quote : str, optional
        The sentence as printed, in the language of the paper.
    origin : {"paper", "ours"}
        Whether the paper says it, or it is a question of our own.
    expected : str, optional
        What was expected before the study was run.
    untestable : str, optional
        Why the claim cannot be tested, and what was tried; its outcome is "not testable" then.
    explanation : Explanation, optional
        Why it does not hold.
    in_paper : dict, False or None
        Arguments that differ on the published cells (other names of metrics, say); ``False`` where the published cells
        cannot be checked.
    """

    id: str
    sentence: str
    check: str
    arguments: dict[str, Any]
    location: str | None = None
    expected: str | None = None
    in_paper: dict[str, Any] | Literal[False] | None = None
    quote: str | None = None
    origin: str = "paper"
    untestable: str | None = None
    explanation: Explanation | None = None

    @property
    def arguments_in_paper(self) -> dict[str, Any]:
        """Arguments of the check on the published cells."""
        return {**self.arguments, **(self.in_paper or {})} if isinstance(self.in_paper, dict) else self.arguments

    @classmethod
    def from_mapping(cls, block: Mapping[str, Any], location: str = "claims") -> Claim:
        """Return the claim of a block of ``claims.yaml``; the keys that are none of a claim's are arguments.

        Raises
        ------
        ClaimsError
            If the id, the sentence or the check is missing, or another key is not well formed.
        """
        if not isinstance(block, Mapping):
            raise ClaimsError(f"{location}: expected a claim (id, sentence, check, ...), got {block!r}")
        needed = ("id", "sentence") if block.get("untestable") else ("id", "sentence", "check")
        missing = [key for key in needed if not block.get(key)]
        if missing:
            raise ClaimsError(f"{location}: claim {block.get('id', dict(block))!r} has no {missing[0]}")
        at = f"{location}: claim {block['id']}"
        texts = {key: str(block[key]).strip() for key in _TEXTS if block.get(key) is not None}
        if texts.get("origin", "paper") not in ORIGINS:
            raise ClaimsError(f"{at}: origin is {' or '.join(ORIGINS)}, not {texts['origin']!r}")
        in_paper = block.get("in_paper")
        if in_paper is not None and in_paper is not False and not isinstance(in_paper, Mapping):
            raise ClaimsError(f"{at}: in_paper is false or arguments, not {in_paper!r}")
        reason = block.get("explanation")
        return cls(
            **{"check": "", **texts},
            arguments={key: value for key, value in block.items() if key not in _KEYS},
            in_paper=dict(in_paper) if isinstance(in_paper, Mapping) else in_paper,
            explanation=None if reason is None else Explanation.from_mapping(reason, at),
        )
