"""Published results of papers, compared with ours: verdicts, errata, claims and checks; knows no paper."""

from __future__ import annotations

from multilab.core.lazy import lazy_names

# pandas takes half a second to import, so only those who judge pay for it.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "agreement": ("Agreement", "agreement_by_method"),
        "checks": ("check_claims",),
        "statements": ("Claim", "Erratum"),
        "errors": ("ClaimsError", "NotYet"),
        "evidence": ("OUTCOMES", "Evidence", "Finding", "published_evidence"),
        "published": ("Aliases", "Layout", "PublishedTables"),
        "verdicts": ("VERDICTS", "data_rows", "judge", "judge_tables", "summarised"),
    },
)
