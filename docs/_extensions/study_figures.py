"""Sphinx extension: what a page shows of committed results: a study's figure, finding and table."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from multilab_reference import ROOT, plain, table

STUDY = "missing-labels"


def setup(app: Any) -> dict[str, Any]:
    """Write the files before Sphinx reads the page that includes them."""
    app.connect("config-inited", lambda *_: write(ROOT / "docs" / "reference" / "generated"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: Path) -> None:
    """Write the figure of the headline metric, the finding, and the scores on observed labels alone."""
    from multilab.reports import load_report
    from multilab.reports.finding import finding
    from multilab.reports.tables.shares import TREATMENTS, share_view

    report = load_report(ROOT / "reports" / STUDY)
    view = share_view(report)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{STUDY}.svg").write_bytes(base64.b64decode(view.figure.image.partition(",")[2]))
    rows = [
        [plain(method), *(entry.text for entry in values)]
        for method, (learns, *values) in view.table.rows
        if learns.text == TREATMENTS["missing"]
    ]
    scores = table(["observed share", *view.table.heads[1:]], rows)
    (folder / f"{STUDY}.inc").write_text("\n\n".join([*map(plain, finding(report)), scores]) + "\n")
