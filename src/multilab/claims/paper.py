"""A paper as one object: everything that its folder holds.

A folder of ``papers/`` with ``claims.yaml`` is a paper; nothing else registers it. Its files:

- ``claims.yaml``: ``title``, ``short``, ``citation``, ``doi``, ``against``, ``proposes`` and ``result`` (the first
  screen of the page), ``analyses`` (blocks ``{analysis, methods, datasets, splits, settings}``), ``splits``,
  ``programs`` and ``claims``.
- ``published.csv``: the published cells. ``errata.yaml``, ``names.yaml``, ``layout.yaml``: what is wrong in them, our
  names for theirs, and the layout of the tables.
- ``counterfactuals.yaml``: small experiments and calculations that explain what differs.
- ``checks.py``: checks that only this paper uses. ``figures.py``: its ``FIGURES``. Further modules: its analyses.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from multilab.claims.errors import ClaimsError
from multilab.claims.programs import Program, read_programs
from multilab.core import files_digest, json_digest, read_json
from multilab.core.messages import did_you_mean, unknown_name
from multilab.core.settings import TextLoader, convert, read

if TYPE_CHECKING:
    import pandas as pd

    from multilab.claims import Aliases, Erratum, Layout, PublishedTables
    from multilab.claims.evidence import Check
    from multilab.claims.statements import Claim, Counterfactual

__all__ = ["Analysis", "Paper", "analyses_of", "find", "paper_names", "paper_of"]

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
    """An analysis of ``claims.yaml``."""

    analysis: str
    datasets: list[str]
    methods: NotRequired[list[str]]
    splits: NotRequired[int]
    settings: NotRequired[dict[str, Any]]


@dataclass(frozen=True)
class PaperContent:
    """Content of ``claims.yaml``.

    Attributes
    ----------
    title, citation, doi : str
        The paper.
    short : str
        Its name in tables: that of the method it proposes.
    against : str
        Evidence against its proposal, shown first on the page: the comparison with its own base learners, with a
        trivial control, or with the best baseline at equal tuning.
    proposes, result : str
        What it proposes, and what the study found. These texts may have placeholders, see
        :mod:`multilab.claims.text_numbers`.
    analyses : list
        Results computed besides scores.
    splits : dict
        Number of splits in the paper, ``default`` and by dataset, metric or table; a claim with fewer splits is open.
    programs : dict
        Which of our columns stands for each method: ``as_printed``, ``fair``, and others that the page shows next to
        them, see :class:`~multilab.claims.statements.Program`.
    claims : list
        The claims, read one by one, see :class:`~multilab.claims.statements.Claim`.
    """

    title: str = ""
    short: str = ""
    citation: str = ""
    doi: str = ""
    proposes: str = ""
    result: str = ""
    against: str = ""
    analyses: tuple[AnalysisBlock, ...] = ()
    splits: dict[str, int] = field(default_factory=dict)
    programs: dict[str, Program] = field(default_factory=dict)
    claims: tuple[Any, ...] = ()


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

    @property
    def title(self) -> str:
        """Title of the paper."""
        return self._content.title or self.name

    @property
    def short(self) -> str:
        """Name of the paper in tables."""
        return self._content.short or self.title

    @property
    def proposes(self) -> str:
        """The proposal of the paper, in two sentences."""
        return self._content.proposes.strip()

    @property
    def against(self) -> str:
        """The evidence against the proposal."""
        return self._content.against.strip()

    @property
    def splits(self) -> dict[str, int]:
        """Number of splits in the paper, ``default`` and by dataset, metric or table."""
        return self._content.splits

    @functools.cached_property
    def programs(self) -> dict[str, Program]:
        """The column that stands for each method, by program."""
        return read_programs(self._content.programs, self._location("claims.yaml"))

    @property
    def table_splits(self) -> dict[str, int]:
        """Number of splits in the tables of its analyses, if not all of the study's."""
        splits: dict[str, int] = {}
        for one in self.analyses:
            name = importlib.import_module(one.module).FILE
            if one.splits is not None:
                splits[name] = min(one.splits, splits.get(name, one.splits))
        return splits

    @property
    def result(self) -> str:
        """The result of the study, in three sentences."""
        return self._content.result.strip()

    @property
    def citation(self) -> str:
        """The paper's citation."""
        return self._content.citation.strip()

    @property
    def doi(self) -> str:
        """The paper's DOI, empty if it has none."""
        return self._content.doi

    @functools.cached_property
    def tables(self) -> PublishedTables:
        """The published tables with all that is known of them.

        Raises
        ------
        ClaimsError
            If a file is not well formed: with the file and the key.
        """
        from multilab.claims.published import Aliases, PublishedTables, check_layouts, read_cells
        from multilab.claims.statements import read_errata

        return PublishedTables(
            self.name,
            read_cells(self.folder / "published.csv"),
            read_errata(self._read("errata.yaml") or [], self._location("errata.yaml")),
            Aliases.from_mapping(self._read("names.yaml") or {}, self._location("names.yaml")),
            check_layouts(self._read("layout.yaml") or {}, self._location("layout.yaml")),
        )

    @property
    def published(self) -> pd.DataFrame:
        """The published cells."""
        return self.tables.cells

    @property
    def errata(self) -> tuple[Erratum, ...]:
        """Known errors of the paper."""
        return self.tables.errata

    @property
    def aliases(self) -> Aliases:
        """Our names and quantities for the published cells, and which cells follow from others."""
        return self.tables.aliases

    def layout(self, table: str, cells: pd.DataFrame) -> Layout:
        """Return the layout of one table, given by its number and its published cells."""
        return self.tables.layout(table, cells)

    @functools.cached_property
    def printed_names(self) -> dict[str, dict[str, str]]:
        """The names as printed, of our names: ``{dataset|method: {ours: printed}}``."""
        cells = self.published
        return {key: dict(zip(cells[key], cells[f"printed_{key}"], strict=True)) for key in ("dataset", "method")}

    @functools.cached_property
    def claims(self) -> tuple[Claim, ...]:
        """The claims, in the order of ``claims.yaml``."""
        from multilab.claims.statements import Claim

        return tuple(Claim.from_mapping(block, self._location("claims.yaml")) for block in self._content.claims)

    @functools.cached_property
    def counterfactuals(self) -> tuple[Counterfactual, ...]:
        """The counterfactuals, in the order of ``counterfactuals.yaml``."""
        from multilab.claims.statements import read_counterfactuals

        return read_counterfactuals(self._read("counterfactuals.yaml") or [], self._location("counterfactuals.yaml"))

    @functools.cached_property
    def checks(self) -> dict[str, Check]:
        """The checks its claims may use: the shared ones and those of the paper's ``checks.py``."""
        from multilab.claims.checks import shared_checks
        from multilab.claims.evidence import checks_in

        module = self._module("checks")
        return shared_checks() | (checks_in(module) if module else {})

    @functools.cached_property
    def analyses(self) -> tuple[Analysis, ...]:
        """The analyses, in the order of ``claims.yaml``."""
        return tuple(self._analysis(block) for block in self._content.analyses)

    @property
    def figures(self) -> tuple[Any, ...]:
        """The figures of the report page: ``FIGURES`` of ``figures.py``."""
        module = self._module("figures")
        return tuple(module.FIGURES) if module else ()

    def verify(self) -> None:
        """Refuse files that are not well formed, and claims, counterfactuals and errata whose check cannot be run.

        Raises
        ------
        ClaimsError
        """
        from multilab.claims.checks import verify, verify_check
        from multilab.claims.statements import refuse_repeated

        refuse_repeated(self.claims, self._location("claims.yaml"), "claims")
        try:
            verify(self.claims, self.checks)
        except ClaimsError as error:
            raise ClaimsError(f"{self._location('claims.yaml')}: {error}") from None
        known = [one.id for one in (*self.claims, *self.errata)]
        evidence = {one.id for one in self.counterfactuals} | {one.id for one in self.errata if one.check}
        for erratum in self.errata:
            if erratum.check:
                at = f"{self._location('errata.yaml')}: erratum {erratum.id}"
                verify_check(at, erratum.check["name"], erratum.arguments, self.checks)
        for one in self.counterfactuals:
            at = f"{self._location('counterfactuals.yaml')}: counterfactual {one.id}"
            verify_check(at, one.check, one.arguments, self.checks)
            _check_known(one.explains, known, f"{self._location('counterfactuals.yaml')}: {one.id}", "claim or erratum")
        for claim in self.claims:
            if claim.explanation:
                at = f"{self._location('claims.yaml')}: claim {claim.id}: evidence"
                _check_known(claim.explanation.evidence, evidence, at, "counterfactual or erratum with a check")
        assert self.tables is not None
        assert self.programs is not None
        assert self.analyses is not None

    def texts(self, *names: str) -> dict[str, str]:
        """Return the content of the data files by name, or of those named, to identify them."""
        paths = [self.folder / name for name in names] if names else sorted(self.folder.iterdir())
        kept = [path for path in paths if path.suffix in (".yaml", ".csv") and path.is_file()]
        return {path.name: path.read_text(encoding="utf-8") for path in kept}

    @property
    def report_digest(self) -> str:
        """Digest of what a report depends on: the data files, the checks, the figures."""
        return json_digest([self.texts(), files_digest(f"papers/{self.name}")])

    @functools.cached_property
    def _content(self) -> PaperContent:
        return convert(self._read("claims.yaml") or {}, PaperContent, self._location("claims.yaml"), error=ClaimsError)

    def _analysis(self, block: AnalysisBlock) -> Analysis:
        known = [path.stem for path in self.folder.glob("*.py") if "\nFILE = " in path.read_text(encoding="utf-8")]
        if block["analysis"] not in known:
            location = self._location("claims.yaml")
            raise ClaimsError(f"{location}: {unknown_name('analysis', block['analysis'], sorted(known))}")
        return Analysis(
            f"{_PAPERS}.{self.name}.{block['analysis']}",
            tuple(block["datasets"]),
            tuple(block.get("methods", ())),
            block.get("splits"),
            block.get("settings", {}),
        )

    def _read(self, name: str) -> Any:
        path = self.folder / name
        return read(path, self._location(name), TextLoader, ClaimsError) if path.is_file() else None

    def _location(self, name: str) -> str:
        return f"papers/{self.name}/{name}"

    def _module(self, name: str) -> ModuleType | None:
        path = f"{_PAPERS}.{self.name}.{name}"
        return importlib.import_module(path) if importlib.util.find_spec(path) else None


def _check_known(names: Iterable[str], known: Collection[str], location: str, what: str) -> None:
    for name in names:
        if name not in known:
            raise ClaimsError(f"{location}: no {what} is called {name!r}{did_you_mean(name, known)}")


def paper_names() -> list[str]:
    """Return the names of the papers."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/claims.yaml"))


@functools.cache
def find(name: str) -> Paper:
    """Return the paper of a name.

    Raises
    ------
    ClaimsError
        If there is no such paper.
    """
    if name not in paper_names():
        raise ClaimsError(unknown_name("paper", name, paper_names()))
    return Paper(name)


def analyses_of(paper: str | None) -> tuple[Analysis, ...]:
    """Return the analyses of a paper; none if there is no paper."""
    return find(paper).analyses if paper else ()


def paper_of(folder: Path) -> Paper | None:
    """Return the paper named in the ``study.json`` of a report folder, ``None`` if there is no such paper."""
    path = folder / "study.json"
    name = read_json(path).get("paper") if path.is_file() else None
    return find(name) if name in paper_names() else None
