"""Rebuild the page of a study from its committed files alone: no data, no cells."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from multilab.experiments.errors import ExperimentError
from multilab.ground import write_atomically
from multilab.ground.shell import command
from multilab.stages.common import arguments, report_dir


def main(argv: list[str]) -> int:
    """`multilab report study=NAME [--headline] [--readme]`.

    ``--headline`` prints the finding, the headline table and where to look further; ``--readme`` writes the table and
    the picture of the README.
    """
    from multilab.reports import build_report, finding_text, headline_markdown

    flags = {word for word in argv if word in ("--headline", "--readme")}
    study = arguments([word for word in argv if word not in flags], "study").get("study", "quick")
    folder = report_dir(study)
    if not folder.is_dir():
        raise ExperimentError(f"{folder} is not here; run `{command('multilab')} run study={study}`")
    page = build_report(folder)
    if "--readme" in flags:
        write_readme(folder)
    if "--headline" in flags:
        show(headline_markdown(folder))
        print(f"\n{finding_text(folder)}\n")
    print(f"report:  {page.resolve()}")
    if "--headline" in flags:
        print(f"runs:    {runs_address(study)}\n         served by: {ui_command()}")
    return 0


def runs_address(study: str) -> str:
    """Return where the runs table of a study is in the MLflow UI."""
    from multilab.experiments import receipts

    find = getattr(receipts, "runs_link", None)
    link = find(receipts.tracking()["uri"], study) if find else None
    return str(link or "http://127.0.0.1:5000, Training runs")


def ui_command() -> str:
    """Return the command that serves the MLflow UI, for a new shell."""
    if Path("Makefile").is_file() and Path("dvc.yaml").is_file():
        return "make ui"
    options = "ui --backend-store-uri sqlite:///mlflow.db --workers 1"
    return f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false {command('mlflow')} {options}"


def show(markdown: str) -> None:
    """Print a Markdown table for a terminal, ranks in brackets."""
    from rich.console import Console
    from rich.markdown import Markdown

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
