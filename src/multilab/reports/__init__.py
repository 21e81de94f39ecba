"""Tables, figures and the page of a study, made from the committed files in ``reports/<study>/`` alone."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "ReportError": "errors",
    "Study": "study",
    "build_report": "page",
    "cd_diagram": "figures",
    "convergence": "figures",
    "finding_text": "headline",
    "headline_markdown": "headline",
    "heatmap": "figures",
    "ledger_markdown": "headline",
    "load_study": "study",
    "save_headline_png": "headline",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
