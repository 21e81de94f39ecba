"""What the papers print, as data; what is known of it; and what our results say of it.

Printed cells (:func:`published`), errata (:func:`errata`), a verdict per cell (:func:`judge_paper`), and claims with
the checks that decide them (:func:`check_claims`).
"""

from __future__ import annotations

import importlib
from typing import Any

from multilab.claims.erratum import Erratum, errata
from multilab.claims.errors import ClaimsError, NotYet
from multilab.claims.layouts import Layout, layout
from multilab.claims.naming import aliases, quantities
from multilab.claims.printed import papers, published

_HOMES = {
    "Aliases": "naming",
    "Evidence": "evidence",
    "Finding": "evidence",
    "VERDICTS": "verdicts",
    "all_checks": "checks",
    "check_claims": "checks",
    "data_rows": "facts",
    "in_words": "wording",
    "judge": "verdicts",
    "judge_paper": "verdicts",
    "printed_evidence": "evidence",
    "summarised": "verdicts",
}

__all__ = [
    *sorted(_HOMES),
    "ClaimsError",
    "Erratum",
    "Layout",
    "NotYet",
    "aliases",
    "errata",
    "layout",
    "papers",
    "published",
    "quantities",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:  # pandas takes half a second to import, so only those who judge pay for it
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
