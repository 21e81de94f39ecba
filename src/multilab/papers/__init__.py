"""Content of the papers, one folder each, and what their notebooks read: :func:`load`, and the rule of the verdicts."""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "claims": ("NOT_DECIDED", "NOT_REPRODUCED", "REPRODUCED", "Claims", "verdict"),
        "results": ("PaperResults", "load"),
    },
)
