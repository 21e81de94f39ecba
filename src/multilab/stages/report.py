"""Rebuild the page of a study from its committed files alone: no data, no cells."""

import re
import shutil
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from multilab.commands.arena.pages import committed_pages, overview, study_page
from multilab.commands.arguments import arguments
from multilab.commands.receipts import PAGE, restore_tables
from multilab.core import report_dir
from multilab.core.shell import command
from multilab.experiments.errors import ExperimentError
from multilab.experiments.execute import parallel_map
from multilab.experiments.mlflow_store import runs_link, tracking
from multilab.reports import finding_text, headline_markdown


def main(argv: list[str]) -> int:
    """`multilab report study=NAME [--headline] [--readme] | --all`.

    ``--headline`` prints the finding, ``--readme`` writes what the README shows, ``--all`` every committed page.
    """
    if argv == ["--all"]:
        return committed_pages(parallel_map)
    flags = {"--headline", "--readme"} & set(argv)
    study = arguments([argument for argument in argv if argument not in flags], "study").get("study", "quick")
    folder = report_dir(study)
    if not folder.is_dir():
        raise ExperimentError(f"{folder} does not exist; run `{command('multilab')} run study={study}`")
    restore_tables(study)
    page = folder / PAGE
    if "--headline" not in flags or not page.is_file():
        page = study_page(folder)
    if "--readme" in flags:
        overview(folder)
    if "--headline" in flags:
        show(headline_markdown(folder))
        print(f"\n{finding_text(folder)}\n")
        link = runs_link(tracking()["uri"], study) or "http://127.0.0.1:5000, Training runs"
        print(f"runs:    {link}\n         served by: {ui_command()}")
    print(f"report:  {page.resolve()}")
    return 0


def ui_command() -> str:
    """Return the command that serves the MLflow UI, for a new shell."""
    if Path("Makefile").is_file() and Path("dvc.yaml").is_file():
        return "make ui"
    options = "ui --backend-store-uri sqlite:///mlflow.db --workers 1"
    return f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false {command('mlflow')} {options}"


def show(markdown: str) -> None:
    """Print a Markdown table for a terminal, ranks in brackets."""
    columns = 25 * (markdown.partition("\n")[0].count("|") - 1)  # wider than the terminal, a table wraps its numbers
    console = Console(width=max(shutil.get_terminal_size().columns, min(columns, 160)))
    console.print(Markdown(re.sub(r" <sub>(.*?)</sub>", r" (\1)", markdown.strip())))
