"""Sphinx extension: fills in the numbers of papers' pages from the committed results of their studies."""

from __future__ import annotations

from typing import Any

from multilab_reference import ROOT


def setup(app: Any) -> dict[str, Any]:
    """Fill in the placeholders of a page when Sphinx reads it."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def fill(app: Any, name: str, source: list[str]) -> None:
    """Fill in a page of ``docs/papers``; its study has the name of the paper."""
    from multilab.claims.results import Results

    folder, _, paper = name.rpartition("/")
    if folder == "papers" and paper != "index":
        source[0] = Results(ROOT / "reports" / paper).fill(source[0], f"docs/{name}.md")
