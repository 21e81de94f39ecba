"""Sphinx extension: the list of the entrants of the arena, made from ``conf/entrant``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from multilab_reference import ROOT, plain


def setup(app: Any) -> dict[str, Any]:
    """Write the list before Sphinx reads the page that includes it."""
    app.connect("config-inited", lambda *_: write(ROOT / "docs" / "reference" / "generated"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: Path) -> None:
    """Write the list next to the generated pages."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "arena_entrants.inc").write_text(entrants_list())


def entrants_list() -> str:
    """Return a definition list with an entry per file: title, name, family, licence, packages, notes, search space."""
    entries = []
    for path in sorted((ROOT / "conf" / "entrant").glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        packages = " ".join(text for text in content.get("requires", "").split() if not text.startswith("-"))
        searched = ", ".join(f"``{name.rpartition('__')[2]}``" for name in content["search"] or {})
        title, family, licence, notes = (plain(content[key]) for key in ("title", "family", "licence", "notes"))
        facts = [f"``{path.stem}``", family, licence, *([f"needs ``{packages}``"] if packages else [])]
        entries.append(f"{title} ({', '.join(facts)})\n   {notes}{f' Searched: {searched}.' if searched else ''}\n")
    return "\n".join(entries)
