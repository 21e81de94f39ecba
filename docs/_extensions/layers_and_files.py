"""Sphinx extension: the page *Layers and files*, a line per file of ``src``, from the first sentence of its docstring.

The page is ``docs/architecture/files.md`` and is not committed. ``python docs/_extensions/layers_and_files.py`` writes
it without building the site. Nothing of multilab is imported.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "multilab"
PAGE = ROOT / "docs" / "architecture" / "files.md"

INTRODUCTION = """# Layers and files

From the highest layer to the lowest: a package imports only from packages below it, packages of one row do not import
each other, and no file imports itself through others. `lint-imports` enforces it (`pyproject.toml`). A line says what a
file owns; what you want to change is where its subject is. For typical changes see
[Where a change begins](where-a-change-begins.md).
"""


def setup(app: Any) -> dict[str, Any]:
    """Write the page before Sphinx looks for its sources."""
    app.connect("config-inited", lambda *_: write_page())
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_page() -> None:
    """Write the page if its text has changed."""
    text = page()
    if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        PAGE.write_text(text, encoding="utf-8")


def page() -> str:
    """Return the page: the layers in a table, then a section per package."""
    rows = layers()
    parts = [INTRODUCTION, "| layer | lines |\n|---|---:|"]
    for row in rows:
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for name in row for file in files_of(name))
        parts.append(f"| {', '.join(f'[{name}](#{name})' for name in row)} | {lines:,} |")
    parts.append("")
    for name in (name for row in rows for name in row):
        parts.append(f"## {name}\n\n{first_sentence(SOURCE / name / '__init__.py')}\n")
        parts.append("| file | what it owns |\n|---|---|")
        shown = (file for file in files_of(name) if file.name != "__init__.py")
        parts += [f"| `{file.relative_to(SOURCE).as_posix()}` | {first_sentence(file)} |" for file in shown]
        parts.append("")
    return "\n".join(parts)


def layers() -> list[list[str]]:
    """Return the packages of each layer, the highest first, as import-linter's contract has them."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    contract = next(contract for contract in tool["contracts"] if contract["type"] == "layers")
    return [[name.strip().removeprefix("multilab.") for name in row.split("|")] for row in contract["layers"]]


def files_of(package: str) -> list[Path]:
    """Return the Python files of a package, those of subpackages after its own."""
    files = (SOURCE / package).rglob("*.py")
    return sorted(files, key=lambda file: (len(file.relative_to(SOURCE).parts) > 2, file.parent, file.name))


def first_sentence(file: Path) -> str:
    """Return the first sentence of the docstring of a file, as Markdown in a cell of a table."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.split("\n\n")[0].split())
    first = re.sub(r":\w+:`~?([^`]*)`", lambda role: f"`{role[1]}`", first).replace("``", "`")
    return re.split(r"(?<=[.])\s+(?=[A-Z`])", first)[0].replace("|", "\\|")


if __name__ == "__main__":
    write_page()
    print(PAGE.relative_to(ROOT))
