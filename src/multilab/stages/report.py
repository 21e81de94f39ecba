"""Rebuild the page of a study from its committed files alone: no data, no cells."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from multilab.experiments.errors import ExperimentError
from multilab.ground import write_atomically
from multilab.ground.shell import command
from multilab.stages.common import arguments, report_dir

UI = "MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false mlflow ui --backend-store-uri sqlite:///mlflow.db --workers 1"


def main(argv: list[str]) -> int:
    """`multilab report study=NAME [--headline] [--readme]`.

    ``--headline`` prints the headline table and how to look further; ``--readme`` writes the table and the picture of
    the README.
    """
    from multilab.reports import build_report, headline_markdown

    flags = {word for word in argv if word in ("--headline", "--readme")}
    study = arguments([word for word in argv if word not in flags], "study").get("study", "quick")
    folder = report_dir(study)
    if not folder.is_dir():
        plan = f"{command('multilab')} plan study={study}"
        raise ExperimentError(f"{folder} is not here; run `{plan} && {command('dvc')} repro`")
    page = build_report(folder)
    if "--readme" in flags:
        write_readme(folder)
    if "--headline" in flags:
        show(headline_markdown(folder))
        ui = UI.replace("mlflow ui", f"{command('mlflow')} ui")
        print(f"\nMLflow UI:  {ui}   (or: make ui)\n            then http://127.0.0.1:5000, Training runs")
    print(f"report: {page.resolve()}")
    return 0


def show(markdown: str) -> None:
    """Print a Markdown table for a terminal, ranks in brackets; a wide one with the methods as rows."""
    from rich.console import Console
    from rich.markdown import Markdown

    head, _, *rows = [line.strip("| ").split(" | ") for line in markdown.strip().splitlines()]
    if len(head) > len(rows) + 1:
        first, *others = zip(head, *rows, strict=True)
        rule = "|:---|" + "---:|" * len(rows)
        written = ["| " + " | ".join(row) + " |" for row in (first, *others)]
        markdown = "\n".join([written[0], rule, *written[1:]])
    columns = 25 * (markdown.partition("\n")[0].count("|") - 1)  # wider than the terminal, a table wraps its numbers
    console = Console(width=max(shutil.get_terminal_size().columns, min(columns, 160)))
    console.print(Markdown(re.sub(r" <sub>(.*?)</sub>", r" (\1)", markdown.strip())))


def write_readme(folder: Path) -> None:
    """Write the picture of a study, and between their marks in the README its headline table and that of all claims."""
    from multilab.reports import headline_markdown, ledger_markdown, save_headline_png

    save_headline_png(folder, Path("docs/pictures") / f"{folder.name}.png")
    readme = Path("README.md")
    text = readme.read_text()
    for name, table in {folder.name: headline_markdown(folder), "ledger": ledger_markdown(folder.parent)}.items():
        start, stop = f"<!-- table {name} -->", f"<!-- end {name} -->"
        before, found, rest = text.partition(start)
        _, ended, after = rest.partition(stop)
        if not (found and ended) or start in after:
            raise ExperimentError(f"README.md: {start} ... {stop} must stand there once")
        text = f"{before}{start}\n{table.strip()}\n{stop}{after}"
    write_atomically(readme, text)
