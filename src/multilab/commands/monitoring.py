"""The commands `multilab monitor` and `multilab card`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from multilab.core import MultilabError, write_atomically
from multilab.core.files import PathLike, refuse_overwriting
from multilab.core.messages import printable
from multilab.deployment import load_model
from multilab.deployment.loading import model_folder
from multilab.deployment.metadata import ModelMetadata
from multilab.deployment.model_card import model_card
from multilab.deployment.monitoring import Monitoring, monitor_rows

DRIFT = 1
"""Exit code where drift is reported."""

_WEB = (".html", ".htm")
_HEAD = ("family", "item", "quantity", "test", "reference", "new", "effect", "adjusted p", "note")


def monitor_file(
    model: str,
    path: str,
    alpha: float,
    min_effect: float,
    json_path: PathLike | None = None,
    every: bool = False,
    tracking_uri: str | None = None,
) -> int:
    """Test the rows of a file for drift, print the result, and return the exit code.

    Parameters
    ----------
    model : str
        Folder or MLflow address.
    path : str
        File of new rows, with or without label columns.
    alpha, min_effect : float
        See :func:`multilab.statistics.judge_drift`.
    json_path : path-like, optional
        File for the complete result as JSON.
    every : bool
        Print all tests, not only those that report drift.
    tracking_uri : str, optional

    Returns
    -------
    int
        1 if drift is reported, else 0.
    """
    if json_path is not None:
        refuse_overwriting(json_path, path, *Path(model).rglob("*"))
    saved = load_model(model, tracking_uri)
    result = monitor_rows(saved, saved.read(path), alpha, min_effect)
    about = saved.metadata
    if json_path is not None:
        head = {"model": model, "dataset": about.dataset["name"], "digest": about.dataset["digest"], "file": str(path)}
        write_atomically(json_path, json.dumps({**head, **result.to_dict()}, indent=1) + "\n")
    title = f"{about.method['title']} on {about.dataset['name']}"
    training = f"compared with {about.dataset['instances']} training rows ({title})"
    print(printable(f"{path}: {result.n_rows} rows, {training}"))
    _print_report(result, every)
    return DRIFT if len(result.report.drifted) else 0


def write_card(model: str, output: str | None, html: bool = False, tracking_uri: str | None = None) -> int:
    """Write the card of a model as Markdown or as a web page, to a file or to standard output."""
    extension = Path(output or "").suffix.lower()
    if extension not in ("", ".md", ".markdown", ".txt", *_WEB) and not html:
        raise MultilabError(f"{output}: a card is written as .md or .html, not as {extension}")
    if output is not None:
        refuse_overwriting(output, *Path(model).rglob("*"))
    with tempfile.TemporaryDirectory() as scratch:
        about = ModelMetadata.load(model_folder(model, scratch, tracking_uri))
    card = model_card(about)
    text = card.html() if html or extension in _WEB else card.markdown()
    if output is None:
        print(text, end="")
    else:
        write_atomically(output, text)
        print(f"{output}: {card.title}")
    return 0


def _print_report(result: Monitoring, every: bool) -> None:
    report = result.report
    table = report.table
    lines: list[tuple[str, ...]] = [("family", "tests", "drift", "smallest adjusted p")]
    tested = table[table["p"].notna()]
    for family, rows in tested.groupby("family", sort=False):
        smallest = rows["p_adjusted"].min()
        lines.append((str(family), str(len(rows)), str(int(rows["drift"].sum())), f"{smallest:.2g}"))
    print()
    _print_columns(lines)
    shown = table if every else report.drifted
    if len(shown):
        print("\nall tests" if every else "\ndrift")
        _print_columns([_HEAD, *(_cells(row) for row in shown.to_dict("records"))])
    untested = len(table) - len(tested)
    if untested and not every:
        print(f"\n{untested} features and labels could not be tested; --all lists them with the reason")
    for note in result.notes:
        print(f"note: {note}")
    verdict, families = "drift" if len(report.drifted) else "no drift", tested["family"].nunique()
    print(f"\n{verdict}: {len(tested)} tests; without drift the probability of any report is at most {report.alpha:g}")
    bound = f"Holm within each of {families} families, Bonferroni between them"
    print(f"({bound}); effects below {report.min_effect:g} do not count")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    numbers = ("-" if value != value else f"{value:.3g}" for value in (row["reference"], row["new"], row["effect"]))
    adjusted = "-" if row["p_adjusted"] != row["p_adjusted"] else f"{row['p_adjusted']:.2g}"
    texts = (row["family"], row["item"][:40], row["quantity"], row["test"])
    return (*map(printable, texts), *numbers, adjusted, printable(row["note"]))


def _print_columns(lines: list[tuple[str, ...]]) -> None:
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        print("  " + "  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)).rstrip())
