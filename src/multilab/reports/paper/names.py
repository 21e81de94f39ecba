"""Paper as a page needs it, and its names for datasets, methods and metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from multilab.claims import Erratum, Layout
from multilab.reports.data import ReportData, metric_title

if TYPE_CHECKING:
    from multilab.claims.published import Aliases
    from multilab.claims.statements import Program
    from multilab.reports.figures import FigureSource


class ReportedPaper(Protocol):
    """Content of a paper's folder that a page shows."""

    @property
    def proposes(self) -> str:
        """What the paper proposes, in two sentences."""

    @property
    def against(self) -> str:
        """What speaks against the proposal."""

    @property
    def programs(self) -> Mapping[str, Program]:
        """Our columns for its methods, by program."""

    @property
    def result(self) -> str:
        """What the study found, in three sentences."""

    @property
    def citation(self) -> str:
        """The paper's citation."""

    @property
    def doi(self) -> str:
        """The paper's DOI, empty if it has none."""

    @property
    def published(self) -> pd.DataFrame:
        """Published cells."""

    @property
    def errata(self) -> Sequence[Erratum]:
        """Known errors of the paper."""

    @property
    def aliases(self) -> Aliases:
        """Our quantities for the published cells, and which cells follow from others."""

    @property
    def figures(self) -> Sequence[FigureSource]:
        """Figures drawn from the tables of the study's analyses."""

    def layout(self, table: str, cells: pd.DataFrame) -> Layout:
        """Return the layout of one table."""


@dataclass(frozen=True)
class PaperNames:
    """Names as printed in a paper, else the display names of the study."""

    printed: Mapping[str, Mapping[str, str]]
    titles: Mapping[str, str]

    @classmethod
    def of(cls, report: ReportData, paper: ReportedPaper | None) -> PaperNames:
        """Return the names of a study's paper; without a paper they are those of the study."""
        printed: dict[str, dict[str, str]] = {"dataset": {}, "method": {}}
        if paper is not None:
            cells = paper.published
            printed = {key: dict(zip(cells[key], cells[f"printed_{key}"], strict=True)) for key in printed}
        return cls(printed, report.titles)

    def __call__(self, key: str, name: str) -> str:
        """Return the name of a dataset, method or metric; ``key`` says which of the three."""
        if key == "metric":
            return metric_title(re.sub(r"\[(.*)\]", r" of \1", name))
        return str(self.printed[key].get(name) or self.titles.get(name, name))
