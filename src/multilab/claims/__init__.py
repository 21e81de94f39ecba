"""Published results of papers, compared with ours: verdicts, errata, claims and checks; knows no paper."""

from __future__ import annotations

from multilab.core.lazy import lazy_names

# pandas takes half a second to import, so only those who judge pay for it.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "checks": ("check", "check_claims", "shared_checks"),
        "claim": ("Claim",),
        "dataset_rows": ("data_rows",),
        "erratum": ("Erratum",),
        "errors": ("ClaimsError", "NotYet"),
        "evidence": ("Evidence", "Finding", "published_evidence"),
        "layouts": ("Layout",),
        "naming": ("Aliases",),
        "published": ("PublishedTables",),
        "verdicts": ("VERDICTS", "judge", "summarised"),
    },
)
