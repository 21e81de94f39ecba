"""A paper as one object: everything that its folder holds.

A folder of ``papers/`` with ``claims.yaml`` is a paper; nothing else registers it. Its files:

- ``claims.yaml``: ``title``, ``citation``, ``doi``, ``proposes`` and ``result`` (the first screen of the page),
  ``analyses`` (blocks ``{analysis, methods, datasets, splits, settings}``) and ``claims``.
- ``published.csv``: the published cells. ``errata.yaml``, ``names.yaml``, ``layout.yaml``: what is wrong in them, our
  names for theirs, and the layout of the tables.
- ``counterfactuals.yaml``: small experiments and calculations that explain what differs.
- ``checks.py``: checks that only this paper uses. ``figures.py``: its ``FIGURES``. Further modules: its analyses.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from multilab.claims.claim import Claim
from multilab.claims.errors import ClaimsError, check_keys
from multilab.core import code_digest, json_digest, read_json
from multilab.core.messages import unknown_name
from multilab.core.settings import TextLoader, read
from multilab.experiments.analysis_units import Analysis

if TYPE_CHECKING:
    import pandas as pd

    from multilab.claims import Aliases, Erratum, Layout, PublishedTables
    from multilab.claims.checks import Check
    from multilab.claims.counterfactual import Counterfactual
    from multilab.experiments.study import Study
    from multilab.reports.figures import FigureSource

__all__ = ["Paper", "analyses_of", "find", "paper_names", "paper_of"]

_FOLDER = Path(__file__).parent
_CONTENT = ("title", "citation", "doi", "proposes", "result", "analyses", "claims")


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
        return str(self._content.get("title") or self.name)

    @property
    def proposes(self) -> str:
        """What the paper proposes, in two sentences."""
        return str(self._content.get("proposes") or "").strip()

    @property
    def result(self) -> str:
        """What the study found, in three sentences."""
        return str(self._content.get("result") or "").strip()

    @property
    def citation(self) -> str:
        """The paper's citation."""
        return str(self._content.get("citation") or "").strip()

    @property
    def doi(self) -> str:
        """The paper's DOI, empty if it has none."""
        return str(self._content.get("doi") or "")

    @functools.cached_property
    def tables(self) -> PublishedTables:
        """The published tables with all that is known of them.

        Raises
        ------
        ClaimsError
            If a file is not well formed: with the file and the key.
        """
        from multilab.claims.erratum import read_errata
        from multilab.claims.layouts import check_layouts
        from multilab.claims.naming import Aliases
        from multilab.claims.published import PublishedTables, read_cells

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
    def claims(self) -> tuple[Claim, ...]:
        """The claims, in the order of ``claims.yaml``."""
        blocks = self._content.get("claims") or []
        return tuple(Claim.from_mapping(block, self._location("claims.yaml")) for block in blocks)

    @functools.cached_property
    def counterfactuals(self) -> tuple[Counterfactual, ...]:
        """The counterfactuals, in the order of ``counterfactuals.yaml``."""
        from multilab.claims.counterfactual import read_counterfactuals

        return read_counterfactuals(self._read("counterfactuals.yaml") or [], self._location("counterfactuals.yaml"))

    @functools.cached_property
    def checks(self) -> dict[str, Check]:
        """The checks its claims may use: the shared ones and those of the paper's ``checks.py``."""
        from multilab.claims.checks import checks_in, shared_checks

        module = self._module("checks")
        return shared_checks() | (checks_in(module) if module else {})

    @functools.cached_property
    def analyses(self) -> tuple[Analysis, ...]:
        """The analyses, in the order of ``claims.yaml``."""
        return tuple(self._analysis(block) for block in self._content.get("analyses") or [])

    @property
    def figures(self) -> tuple[FigureSource, ...]:
        """The figures of the report page: ``FIGURES`` of ``figures.py``."""
        module = self._module("figures")
        return tuple(module.FIGURES) if module else ()

    @property
    def studies(self) -> tuple[str, ...]:
        """The names of the studies whose results are compared with the paper."""
        from multilab.experiments.conf import names, read_settings

        return tuple(name for name in names("study") if read_settings("study", name).get("paper") == self.name)

    def verify(self) -> None:
        """Refuse files that are not well formed, and claims, counterfactuals and errata whose check cannot be run.

        Raises
        ------
        ClaimsError
        """
        from multilab.claims.checks import verify, verify_check
        from multilab.claims.counterfactual import check_known

        ids = [claim.id for claim in self.claims]
        repeated = next((name for name in ids if ids.count(name) > 1), None)
        if repeated:
            raise ClaimsError(f"{self._location('claims.yaml')}: two claims have the id {repeated!r}")
        try:
            verify(self.claims, self.checks)
        except ClaimsError as error:
            raise ClaimsError(f"{self._location('claims.yaml')}: {error}") from None
        known = [*ids, *(one.id for one in self.errata)]
        evidence = {one.id for one in self.counterfactuals} | {one.id for one in self.errata if one.check}
        for erratum in self.errata:
            if erratum.check:
                at = f"{self._location('errata.yaml')}: erratum {erratum.id}"
                verify_check(at, erratum.check["name"], erratum.arguments, self.checks)
        for one in self.counterfactuals:
            at = f"{self._location('counterfactuals.yaml')}: counterfactual {one.id}"
            verify_check(at, one.check, one.arguments, self.checks)
            check_known(one.explains, known, f"{self._location('counterfactuals.yaml')}: {one.id}", "claims and errata")
        for claim in self.claims:
            if claim.explanation:
                at = f"{self._location('claims.yaml')}: claim {claim.id}: evidence"
                check_known(claim.explanation.evidence, evidence, at, "counterfactuals and errata with a check")
        assert self.tables is not None
        assert self.analyses is not None

    def texts(self, *names: str) -> dict[str, str]:
        """Return the content of the data files by name, or of those named, to identify them."""
        paths = [self.folder / name for name in names] if names else sorted(self.folder.iterdir())
        kept = [path for path in paths if path.suffix in (".yaml", ".csv") and path.is_file()]
        return {path.name: path.read_text(encoding="utf-8") for path in kept}

    @property
    def report_digest(self) -> str:
        """Digest of what a report depends on: the data files, the checks, the figures."""
        modules = [f"{__package__}.{self.name}.{name}" for name in ("checks", "figures")]
        code = [code_digest(module, within=__package__) for module in modules if importlib.util.find_spec(module)]
        return json_digest([self.texts(), code])

    @functools.cached_property
    def _content(self) -> Mapping[str, Any]:
        content = self._read("claims.yaml") or {}
        check_keys(self._location("claims.yaml"), "claims.yaml", content, _CONTENT)
        return content

    def _analysis(self, block: Mapping[str, Any]) -> Analysis:
        location = self._location("claims.yaml")
        keys = ("analysis", "methods", "datasets", "splits", "settings")
        check_keys(f"{location}: analyses", "an analysis", block, keys)
        for key in ("analysis", "datasets"):
            if key not in block:
                raise ClaimsError(f"{location}: analyses: {dict(block)} has no {key}")
        known = [path.stem for path in self.folder.glob("*.py") if "\nFILE = " in path.read_text(encoding="utf-8")]
        if block["analysis"] not in known:
            raise ClaimsError(f"{location}: {unknown_name('analysis', block['analysis'], sorted(known))}")
        return Analysis(
            f"{__package__}.{self.name}.{block['analysis']}",
            tuple(block["datasets"]),
            tuple(block.get("methods") or ()),
            block.get("splits"),
            block.get("settings") or {},
        )

    def _read(self, name: str) -> Any:
        path = self.folder / name
        return read(path, self._location(name), TextLoader, ClaimsError) if path.is_file() else None

    def _location(self, name: str) -> str:
        return f"papers/{self.name}/{name}"

    def _module(self, name: str) -> ModuleType | None:
        path = f"{__package__}.{self.name}.{name}"
        return importlib.import_module(path) if importlib.util.find_spec(path) else None


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


def analyses_of(study: Study) -> tuple[Analysis, ...]:
    """Return the analyses of a study's paper; none if it has no paper."""
    return find(study.paper).analyses if study.paper else ()


def paper_of(folder: Path) -> Paper | None:
    """Return the paper that a report folder names in its ``study.json``, ``None`` if it names none that is here."""
    path = folder / "study.json"
    name = read_json(path).get("paper") if path.is_file() else None
    return find(name) if name in paper_names() else None
