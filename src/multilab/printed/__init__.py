"""Printed results of papers: the numbers, our names for theirs, errata, and our numbers next to them."""

from __future__ import annotations

from multilab.core.lazy import lazy_names

# pandas takes half a second to import, so only those who compare pay for it.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "comparison": ("compare_printed", "summarised"),
        "errata": ("Erratum",),
        "errors": ("PaperError",),
        "paper": ("Analysis", "Paper", "analyses_of", "find", "paper_names"),
        "published": ("Aliases", "PublishedTables"),
    },
)
