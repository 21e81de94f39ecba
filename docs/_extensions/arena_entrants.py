"""Sphinx extension: the table of the entrants of the arena, made from ``conf/entrant``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from multilab_reference import ROOT, plain, table


def setup(app: Any) -> dict[str, Any]:
    """Write the table before Sphinx reads the page that includes it."""
    app.connect("config-inited", lambda *_: write(ROOT / "docs" / "reference" / "generated"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: Path) -> None:
    """Write the table next to the generated pages."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "arena_entrants.inc").write_text(entrants_table())


def entrants_table() -> str:
    """Return a row per file: name, title, family, what is installed, licence, searched arguments and notes."""
    rows = []
    for path in sorted((ROOT / "conf" / "entrant").glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        packages = " ".join(text for text in content.get("requires", "").split() if not text.startswith("-"))
        searched = ", ".join(f"``{name.rpartition('__')[2]}``" for name in content["search"] or {})
        rows.append(
            [
                f"``{path.stem}``",
                *(plain(content[key]) for key in ("title", "family")),
                f"``{packages}``" if packages else "–",
                plain(content["licence"]),
                searched or "–",
                plain(content["notes"]),
            ]
        )
    header = ["Name", "Title", "Family", "Needs", "Licence", "Search space", "Notes"]
    return table(header, rows, "12 10 8 12 8 15 35")
