"""Sphinx extension: the tables of the guide's pages on scikit-learn and on the checks of estimators.

They are made from the lists that the tests work through, and from ``benchmarks/estimator_checks.csv``.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from multilab_reference import ROOT, plain, public_name, table


def setup(app: Any) -> dict[str, Any]:
    """Write the tables before Sphinx reads the page that includes them."""
    app.connect("config-inited", lambda *_: write(ROOT / "docs" / "reference" / "generated"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: Path) -> None:
    """Write the tables next to the generated pages."""
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers.scikit_learn_tools import CLASSIFIER_TOOLS, TRANSFORMER_TOOLS

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scikit_learn_classifiers.inc").write_text(tools_table(CLASSIFIER_TOOLS))
    (folder / "scikit_learn_transformers.inc").write_text(tools_table(TRANSFORMER_TOOLS))
    (folder / "scikit_learn_checks.inc").write_text(checks_table())
    (folder / "multilabel_checks.inc").write_text(descriptions_table())
    (folder / "estimator_checks.inc").write_text(scoreboard())


def tools_table(columns: dict[str, Any]) -> str:
    """Return the table of the estimators that are tried with these tools, and the notes to its cells."""
    from helpers.estimators import quick_instances
    from helpers.scikit_learn_tools import is_multilabel, metadata, not_applicable, tools

    estimators = {n: e for n, e in quick_instances().items() if is_multilabel(e) and tools(e) is columns}
    reasons = {(name, tool): not_applicable(e, tool) for name, e in estimators.items() for tool in columns}
    notes = sorted({reason for reason in reasons.values() if reason})
    rows = []
    for name, estimator in estimators.items():
        row = [label(name, estimator)]
        for tool in columns:
            routed = metadata(estimator) if tool == "metadata routing" else []
            row.append(mark(reasons[name, tool], notes, routed))
        rows.append(row)
    below = [f"{asterisks(k)} {plain(note)}.\n" for k, note in enumerate(notes)]
    return "\n".join([table(["Estimator", *map(plain, columns)], rows), *below])


def label(name: str, estimator: Any) -> str:
    """Return the link to a class, and the method file where it has one."""
    cls = type(estimator)
    text = f":class:`~{public_name(cls)}`"
    return text if name == cls.__name__ else f"{text} (``{name}``)"


def mark(reason: str | None, notes: list[str], names: list[str]) -> str:
    """Return the content of a cell: yes, names, or the asterisks of a note."""
    return asterisks(notes.index(reason)) if reason else ", ".join(f"``{name}``" for name in names) or "yes"


def asterisks(number: int) -> str:
    """Return the mark of a note."""
    return r"\*" * (number + 1)


def checks_table() -> str:
    """Return how many of scikit-learn's checks fail, and a table of these with the reasons."""
    from helpers.estimators import checks

    results = checks()
    excused: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for name, check, reason in results:
        if reason:
            excused[check, reason][name] += 1
    rows = [
        [f"``{check}``", plain(reason), ", ".join(f"``{name}``" for name in names), str(names.total())]
        for (check, reason), names in sorted(excused.items())
    ]
    failing = sum(int(row[-1]) for row in rows)
    estimators = len({name for name, _, _ in results})
    return (
        f"**{failing} of {len(results)} checks fail**, with {estimators} estimators (a class has one per method file "
        "that uses it):\n\n" + table(["Check", "Why it fails", "Estimators", "Checks"], rows, "30 40 25 5")
    )


def descriptions_table() -> str:
    """Return the multi-label checks, each with what it demands."""
    from multilab.testing import multilabel_checks

    rows = [[f"``{name}``", plain(text)] for name, text in multilabel_checks().items()]
    return table(["Check", "What it demands"], rows, "30 70")


def scoreboard() -> str:
    """Return how many checks each estimator passes, and the multi-label checks that other libraries' fail."""
    with (ROOT / "benchmarks" / "estimator_checks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    parts = []
    for library in dict.fromkeys(row["library"] for row in rows):
        own = [row for row in rows if row["library"] == library]
        lines = []
        for name in dict.fromkeys(row["estimator"] for row in own):
            suites = {row["suite"]: row for row in own if row["estimator"] == name}
            counts = [f"{s['passed']} of {s['checks']}" for key in _SUITES if (s := suites.get(key))]
            lines.append([f"``{name}``", *counts, failures(suites["multi-label"]["failures"])])
        header = ["Estimator", "Multi-label", "scikit-learn's", "Multi-label checks that fail"]
        parts.append(f"**{plain(library)}**\n\n{table(header, lines, '22 12 12 54')}")
    return "\n".join(parts)


_SUITES = ("multi-label", "scikit-learn")


def failures(text: str) -> str:
    """Return the names of failed checks; the reasons are in the CSV file."""
    names = [part.partition(":")[0] for part in text.split("; ") if part.partition(":")[0].isidentifier()]
    return ", ".join(f"``{name}``" for name in names) or "–"
