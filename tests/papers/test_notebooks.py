"""The notebooks of the papers: executed again they say what is committed, and the ledger lists their claims."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "docs" / "papers"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.fixture(scope="module")
def notebooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks", CHECKOUT / "scripts" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(notebook: Any) -> list[list[str]]:
    """Return what each cell prints, and the texts and tables that it shows; pictures differ between machines.

    What is printed is one text: it may arrive before or after a table.
    """
    return [
        ["".join(output.get("text", "") for output in cell.get("outputs", ()))]
        + [
            output.data[kind]
            for output in cell.get("outputs", ())
            for kind in ("text/html", "text/plain")
            if kind in output.get("data", {}) and not any(name.startswith("image/") for name in output.data)
        ]
        for cell in notebook.cells
    ]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=() if path.stem == "lwmf" else pytest.mark.slow) for path in NOTEBOOKS],
)  # ten seconds each
def test_a_notebook_says_again_what_it_says(notebooks: ModuleType, path: Path) -> None:
    assert said(notebooks.execute(path)) == said(nbformat.read(path, as_version=4))


def test_the_ledger_has_the_claims_of_the_notebooks(notebooks: ModuleType) -> None:
    page = (FOLDER / "index.md").read_text(encoding="utf-8")
    between = page.partition("<!-- ledger -->\n")[2].partition("<!-- end ledger -->")[0]
    assert between == f"\n{notebooks.ledger()}"


CELLS = (
    "from multilab.papers import Claims\n\nclaims = Claims()\nclaims.show()",
    'claims.decide("best", "A < B | C", "reproduced", "p < .05")\nprint(6 * 7)',
)


@pytest.mark.slow
def test_a_claim_that_a_cell_decides_is_in_the_first_table_and_in_the_ledger(
    notebooks: ModuleType, tmp_path: Path
) -> None:
    new = nbformat.v4
    cells = [new.new_markdown_cell("# Toy: a paper\n\nText."), *map(new.new_code_cell, CELLS)]
    path, index = tmp_path / "toy.ipynb", tmp_path / "index.md"
    nbformat.write(new.new_notebook(cells=cells), path)
    index.write_text("Before\n<!-- ledger -->\nold\n<!-- end ledger -->\nAfter\n")
    made = notebooks.execute(path)
    nbformat.write(made, path)
    _, first, second = said(made)
    assert "A &lt; B | C" in first[1]
    assert "A < B | C" not in first[1]
    assert second[0] == "42\n"
    assert said(notebooks.execute(path)) == said(made)
    (claim,) = notebooks.claims_of(made)
    assert claim == {
        "claim": "best",
        "sentence": "A < B | C",
        "verdict": "reproduced",
        "number": "p < .05",
        "why": "",
    }
    notebooks.write_ledger(tmp_path)
    lines = index.read_text().splitlines()
    assert lines[:1] + lines[-1:] == ["Before", "After"]
    assert "old" not in lines
    assert any("1 reproduced" in line for line in lines)
    (row,) = [line for line in lines if "toy.ipynb#best" in line]
    assert row.endswith("| reproduced | p &lt; .05 |")
    assert row.replace(r"\|", "").count("|") == 4
