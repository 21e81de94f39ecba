"""Execute the notebooks of the papers in place and write the ledger of their claims: notebooks.py [NAME ...]."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

from multilab.core.text import markdown_cell

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "papers"


def execute(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a run in its folder, without what differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    with tempfile.TemporaryDirectory() as sockets:  # no ports
        config = Config(KernelManager={"transport": "ipc", "connection_file": f"{sockets}/kernel.json"})
        client = NotebookClient(notebook, kernel_name="python3", resources=where, config=config)
        client.timeout, client.coalesce_streams = 300, True  # what a cell prints is one output, however it arrives
        client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            output.pop("transient", None)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def claims_of(notebook: nbformat.NotebookNode) -> list[dict[str, str]]:
    """Return the claims that a notebook decides: those that `multilab.papers.Claims` leaves with its table."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return next((output.metadata["claims"] for output in outputs if "claims" in output.get("metadata", {})), [])


def ledger(folder: Path = FOLDER) -> str:
    """Return how many claims hold, and the claims of all papers with verdict, number and link, in Markdown."""
    parts: list[str] = []
    verdicts: Counter[str] = Counter()
    for path in sorted(folder.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        title = notebook.cells[0].source.partition("\n")[0].removeprefix("# ")
        parts += [f"### [{title}]({path.name})", "", "| claim | verdict | number |", "|:---|:---|:---|"]
        for claim in claims_of(notebook):
            verdicts[claim["verdict"]] += 1
            link = f"[{markdown_cell(claim['sentence'])}]({path.name}#{claim['claim']})"
            parts.append(f"| {link} | {claim['verdict']} | {markdown_cell(claim['number'])} |")
        parts.append("")
    counts = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())
    return "\n".join([f"**{verdicts.total()} claims: {counts}.**", "", *parts])


def write_ledger(folder: Path = FOLDER) -> None:
    """Write the ledger between its marks in the page of all papers."""
    index = folder / "index.md"
    before, start, rest = index.read_text(encoding="utf-8").partition("<!-- ledger -->\n")
    _, end, after = rest.partition("<!-- end ledger -->")
    index.write_text(f"{before}{start}\n{ledger(folder)}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    for name in names:
        nbformat.write(execute(FOLDER / f"{name}.ipynb"), FOLDER / f"{name}.ipynb")
        print(f"docs/papers/{name}.ipynb")
    write_ledger()
