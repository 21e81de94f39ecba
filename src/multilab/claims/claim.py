"""Claims: statements of a paper that a check decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from multilab.claims.errors import ClaimsError

_KEYS = ("id", "sentence", "check", "location", "expected", "in_paper")


@dataclass(frozen=True)
class Claim:
    """A statement of a paper.

    Attributes
    ----------
    id, sentence : str
        The statement, and its name.
    check : str
        Name of the check that decides it.
    arguments : dict
        Arguments of the check.
    location : str, optional
        Where the paper says it.
    expected : str, optional
        What was expected before the study was run.
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
            If the id, the sentence or the check is missing, or ``in_paper`` is neither arguments nor ``false``.
        """
        if not isinstance(block, Mapping):
            raise ClaimsError(f"{location}: expected a claim (id, sentence, check, ...), got {block!r}")
        missing = [key for key in _KEYS[:3] if not block.get(key)]
        if missing:
            raise ClaimsError(f"{location}: claim {block.get('id', dict(block))!r} has no {missing[0]}")
        texts = {key: str(block[key]) for key in _KEYS[:5] if block.get(key) is not None}
        in_paper = block.get("in_paper")
        if in_paper is not None and in_paper is not False and not isinstance(in_paper, Mapping):
            raise ClaimsError(f"{location}: claim {block['id']}: in_paper is false or arguments, not {in_paper!r}")
        arguments = {key: value for key, value in block.items() if key not in _KEYS}
        given = dict(in_paper) if isinstance(in_paper, Mapping) else in_paper
        return cls(**texts, arguments=arguments, in_paper=given)
