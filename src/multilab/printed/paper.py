"""A paper as one object: everything that its folder holds.

A folder of ``papers/`` with ``paper.yaml`` is a paper; nothing else registers it. Its files:

- ``paper.yaml``: ``title``, ``citation``, ``doi``, and ``analyses``, what its study computes besides scores
  (blocks ``{analysis, methods, datasets, splits, settings}``).
- ``published.csv``: the printed numbers. ``names.yaml``: our names for theirs. ``errata.yaml``: what is wrong in them.
- ``figures.py``: its ``FIGURES``. ``metrics.py``: metrics that only this paper has. Further modules: its analyses.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from multilab.core import read_json
from multilab.core.messages import unknown_name
from multilab.core.settings import TextLoader, convert, read
from multilab.printed.errors import PaperError

if TYPE_CHECKING:
    from multilab.printed.published import PublishedTables

__all__ = ["Analysis", "Paper", "PaperContent", "analyses_of", "find", "paper_names", "paper_of"]

_PAPERS = "multilab.papers"
_FOLDER = Path(__file__).parent.parent / "papers"


@dataclass(frozen=True)
class Analysis:
    """An analysis, and the methods and data it is applied to.

    Attributes
    ----------
    module : str
        Dotted path of the module.
    datasets : tuple of str
    methods : tuple of str
        Empty for an analysis of simulated data.
    splits : int or None
        Number of splits of the study's protocol (default: all); for simulated data, the number of repetitions (default:
        1).
    settings : dict
        Settings of the analysis.
    """

    module: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...] = ()
    splits: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)


class AnalysisBlock(TypedDict):
    """An analysis of ``paper.yaml``."""

    analysis: str
    datasets: list[str]
    methods: NotRequired[list[str]]
    splits: NotRequired[int]
    settings: NotRequired[dict[str, Any]]


@dataclass(frozen=True)
class PaperContent:
    """Content of ``paper.yaml``.

    Attributes
    ----------
    title, citation, doi : str
        The paper.
    analyses : list
        Results computed besides scores.
    """

    title: str = ""
    citation: str = ""
    doi: str = ""
    analyses: tuple[AnalysisBlock, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A paper; its files are read when they are first used.

    Attributes
    ----------
    name : str
        Name of its folder: the one that a study names under ``paper``.
    """

    name: str

    @property
    def folder(self) -> Path:
        """The folder of the paper."""
        return _FOLDER / self.name

    @functools.cached_property
    def content(self) -> PaperContent:
        """Title, citation and analyses."""
        return convert(self._read("paper.yaml") or {}, PaperContent, self._location("paper.yaml"), error=PaperError)

    @functools.cached_property
    def tables(self) -> PublishedTables:
        """The printed tables with all that is known of them.

        Raises
        ------
        PaperError
            If a file is malformed. The message names the file and the key.
        """
        from multilab.printed.errata import read_errata
        from multilab.printed.published import Aliases, PublishedTables, read_cells

        return PublishedTables(
            read_cells(self.folder / "published.csv"),
            read_errata(self._read("errata.yaml") or [], self._location("errata.yaml")),
            Aliases.from_mapping(self._read("names.yaml") or {}, self._location("names.yaml")),
        )

    @functools.cached_property
    def analyses(self) -> tuple[Analysis, ...]:
        """The analyses, in the order of ``paper.yaml``."""
        return tuple(self._analysis(block) for block in self.content.analyses)

    @property
    def figures(self) -> tuple[Any, ...]:
        """The figures of the report page: ``FIGURES`` of ``figures.py``."""
        path = f"{_PAPERS}.{self.name}.figures"
        return tuple(importlib.import_module(path).FIGURES) if importlib.util.find_spec(path) else ()

    def _analysis(self, block: AnalysisBlock) -> Analysis:
        known = [path.stem for path in self.folder.glob("*.py") if "\nFILE = " in path.read_text(encoding="utf-8")]
        if block["analysis"] not in known:
            location = self._location("paper.yaml")
            raise PaperError(f"{location}: {unknown_name('analysis', block['analysis'], sorted(known))}")
        return Analysis(
            f"{_PAPERS}.{self.name}.{block['analysis']}",
            tuple(block["datasets"]),
            tuple(block.get("methods", ())),
            block.get("splits"),
            block.get("settings", {}),
        )

    def _read(self, name: str) -> Any:
        path = self.folder / name
        return read(path, self._location(name), TextLoader, PaperError) if path.is_file() else None

    def _location(self, name: str) -> str:
        return f"papers/{self.name}/{name}"


def paper_names() -> list[str]:
    """Return the names of the papers."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/paper.yaml"))


@functools.cache
def find(name: str) -> Paper:
    """Return the paper of a name.

    Raises
    ------
    PaperError
        If there is no such paper.
    """
    if name not in paper_names():
        raise PaperError(unknown_name("paper", name, paper_names()))
    return Paper(name)


def analyses_of(paper: str | None) -> tuple[Analysis, ...]:
    """Return the analyses of a paper; none if there is no paper."""
    return find(paper).analyses if paper else ()


def paper_of(folder: Path) -> Paper | None:
    """Return the paper named in the ``study.json`` of a report folder, ``None`` if there is no such paper."""
    path = folder / "study.json"
    name = read_json(path).get("paper") if path.is_file() else None
    return find(name) if name in paper_names() else None
