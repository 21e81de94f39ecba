"""The claims of a study as a page shows them: the sentence, the check in words, the numbers of print and study."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from multilab.metrics import METRICS
from multilab.reports.paper import tally
from multilab.reports.study import Study, metric_title

__all__ = ["ClaimView", "Numbers", "claim_views", "outcomes"]

OUTCOMES = ("holds", "fails", "inconclusive")
_AGAINST = " against "
_WORDS = {"accuracy": "Accuracy", "F_crit": "critical F", "CD": "Nemenyi CD"}


@dataclass(frozen=True)
class Numbers:
    """Numbers of one check: a table (``heads`` and ``rows``) and, in ``pairs``, what does not fit into it."""

    title: str
    reason: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ClaimView:
    """One claim ready for the page; ``in_print`` is empty where the print cannot be checked."""

    id: str
    text: str
    place: str
    asked: str
    asked_in_print: str
    outcome: str
    in_print: str
    reason: str
    expected: str
    ours: tuple[Numbers, ...]
    printed: tuple[Numbers, ...]


def claim_views(study: Study) -> tuple[ClaimView, ...]:
    """Return the claims of ``claims.json`` in its order."""
    titled = _titles(study)
    return tuple(_view(claim, titled) for claim in study.claims)


def outcomes(claims: Sequence[ClaimView]) -> list[tuple[str, int, list[str]]]:
    """Return, per outcome, how many claims came to it and which."""
    counts = tally((claim.outcome for claim in claims), OUTCOMES)
    return [(outcome, n, [c.id for c in claims if c.outcome == outcome]) for outcome, n, _ in counts]


def _view(claim: Mapping[str, Any], titled: Callable[[str], str]) -> ClaimView:
    def text(name: str) -> str:
        return str(claim[name]) if claim.get(name) is not None else ""

    there = dict(claim.get("in_print") or {})
    asked, in_print = titled(text("asked")), titled(text("asked_in_print"))
    ours = _numbers(claim.get("numbers") or {}, titled)
    return ClaimView(
        id=text("id"),
        text=text("sentence"),
        place=text("place"),
        asked=asked,
        asked_in_print=in_print if in_print != asked else "",
        outcome=text("outcome") or "inconclusive",
        in_print=str(there.pop("outcome", "")),
        reason="" if any(one.reason for one in ours) else titled(text("reason")),
        expected=text("expected"),
        ours=ours,
        printed=_numbers(there, titled),
    )


def _titles(study: Study) -> Callable[[str], str]:
    """Return a function that puts printed names in the place of the keys of methods and metrics."""
    names = {**{metric: metric_title(metric) for metric in study.metrics}, **study.all_titles}
    if not names:
        return str
    keys = "|".join(re.escape(key) for key in sorted(names, key=len, reverse=True))
    words = re.compile(rf"(?<![\w-])({keys})(?![\w-])")
    return lambda text: words.sub(lambda found: names[found[0]], text)


def _numbers(
    found: Mapping[str, Any], titled: Callable[[str], str], title: str = "", reason: str = ""
) -> tuple[Numbers, ...]:
    """Return nested numbers as tables; parts with an outcome of their own become tables of their own."""
    found = _grid(found)
    parts = {key: dict(value) for key, value in found.items() if isinstance(value, Mapping) and "outcome" in value}
    flat = {key: value for key, value in found.items() if isinstance(value, Mapping) and key not in parts}
    heads = list(dict.fromkeys(head for value in flat.values() for head in value))
    here = Numbers(
        title=title,
        reason=titled(reason),
        heads=tuple(_key(head, titled) for head in heads),
        rows=tuple((_key(k, titled), tuple(titled(_text(v.get(head))) for head in heads)) for k, v in flat.items()),
        pairs=tuple((_key(k, titled), _text(v)) for k, v in found.items() if not isinstance(v, Mapping)),
    )
    rest = [
        one
        for key, part in parts.items()
        for one in _numbers(part, titled, f"{key}: {part.pop('outcome')}", str(part.pop("reason", "")))
    ]
    return (*([_upright(here)] if here.rows or here.pairs or title else []), *rest)


def _upright(numbers: Numbers) -> Numbers:
    """Return a table of few long rows with rows and columns exchanged, so that it fits beside another."""
    if len(numbers.heads) <= 5 or len(numbers.rows) >= len(numbers.heads):
        return numbers
    rows = tuple((head, tuple(texts[i] for _, texts in numbers.rows)) for i, head in enumerate(numbers.heads))
    return replace(numbers, heads=tuple(name for name, _ in numbers.rows), rows=rows)


def _grid(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return numbers named ``A against B`` as one mapping per B."""
    if not found or not all(_AGAINST in key and not isinstance(value, Mapping) for key, value in found.items()):
        return found
    made: dict[str, dict[str, Any]] = {}
    for key, value in found.items():
        first, _, other = key.partition(_AGAINST)
        made.setdefault(f"against {other}", {})[first] = value
    return made


def _key(key: str, titled: Callable[[str], str]) -> str:
    return _WORDS.get(key) or (metric_title(key) if key in METRICS else titled(key))


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}".replace("-", "−") if abs(value) >= 1 else f"{value:.4g}".replace("-", "−")
