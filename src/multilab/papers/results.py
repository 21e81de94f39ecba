"""Committed results of a paper's study next to its printed numbers: what the notebook of the paper reads."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from multilab.core import read_json
from multilab.metrics import find_metric
from multilab.papers.claims import Claims
from multilab.printed import Paper, PaperError, compare_printed, find, summarised
from multilab.statistics.result_files import SCORES, read_measured, read_scores, read_table, tables_of

_REPORTS = "reports"


@dataclass(frozen=True)
class PaperResults:
    """Results of the study of a paper, as committed in ``reports/<paper>``, and what the paper prints.

    Attributes
    ----------
    name : str
        Name of the paper and of its study.
    folder : Path
        The folder of the results.
    """

    name: str
    folder: Path

    @functools.cached_property
    def scores(self) -> pd.DataFrame:
        """Scores of the study: dataset, split, method, metric, value."""
        return self.study(self.name)

    @functools.cached_property
    def measured(self) -> pd.DataFrame:
        """Seconds, memory and model size: dataset, split, method, fit_seconds, predict_seconds, peak_mb and others."""
        table = read_measured(self.folder)
        if table is None:
            raise PaperError(f"{self.folder} has no table of seconds and memory")
        return table.drop(columns="key", errors="ignore")

    @functools.cached_property
    def titles(self) -> dict[str, str]:
        """Names to show, by method or dataset."""
        study, cards = read_json(self.folder / "study.json"), read_json(self.folder / "datasets.json")
        return {**study["method_titles"], **{card["name"]: card.get("title", card["name"]) for card in cards}}

    @property
    def paper(self) -> Paper:
        """The paper: its printed cells, our names for them, errata."""
        return find(self.name)

    @functools.cached_property
    def printed(self) -> pd.DataFrame:
        """Numbers as printed: table, dataset, method, metric, value, std, text; NaN where there is no number."""
        cells = self.paper.tables.cells.rename(columns={"mean": "value", "printed_mean": "text"})
        return cells[["table", "dataset", "method", "metric", "value", "std", "text"]]

    @functools.cached_property
    def errata(self) -> pd.DataFrame:
        """What is wrong or ambiguous in the paper: id, where, printed, right, why, effect."""
        rows = [
            {"id": one.id, "where": "; ".join(f"{key} {_text(value)}" for key, value in one.where.items())}
            | {"printed": one.printed, "right": one.right, "why": one.why.strip(), "effect": one.effect}
            for one in self.paper.tables.errata
        ]
        return pd.DataFrame(rows)

    def study(self, name: str) -> pd.DataFrame:
        """Return the scores of another study: dataset, split, method, metric, value."""
        folder = self.folder.parent / name
        if not (folder / SCORES).is_file():
            raise PaperError(f"{folder} has no scores")
        return read_scores(folder).drop(columns="key", errors="ignore")

    def table(self, name: str) -> pd.DataFrame:
        """Return a further table of the study: ``table("sparsity")`` is ``sparsity.csv`` of its folder."""
        tables = tables_of(self.folder)
        if name not in tables:
            raise PaperError(f"there is no table {name!r} in {self.folder}; choose from {', '.join(tables)}")
        return read_table(tables[name])

    def means(
        self, metric: str, methods: Iterable[str] | None = None, datasets: Iterable[str] | None = None
    ) -> pd.DataFrame:
        """Return means over splits, datasets x methods.

        Parameters
        ----------
        metric : str
        methods, datasets : iterable of str, optional
            Columns and rows, in this order; default: all.
        """
        rows = self.scores[self.scores["metric"] == metric]
        table = rows.pivot_table(index="dataset", columns="method", values="value", sort=False)
        return table.reindex(index=list(datasets or table.index), columns=list(methods or table.columns))

    def direction(self, metric: str) -> str:
        """Return "min" or "max": whether small or large values of a metric are good."""
        known = find_metric(metric.partition(".")[0])
        if known is None:
            raise PaperError(f"unknown metric {metric!r}")
        return known.direction

    def compared(self, columns: Mapping[str, str] | None = None) -> pd.DataFrame:
        """Return the printed results next to ours, see :func:`multilab.printed.compare_printed`.

        Parameters
        ----------
        columns : mapping of str to str, optional
            Our columns for printed methods, instead of those in ``names.yaml``.
        """
        tables, study = self.paper.tables, read_json(self.folder / "study.json")
        methods = {**tables.aliases.names.get("method", {}), **(columns or {})}
        aliases = replace(tables.aliases, names={**tables.aliases.names, "method": methods})
        scores = read_scores(self.folder, extra=True)
        repeated = scores["method"].map(_repetitions(study)).fillna(1)
        splits = scores.groupby(["dataset", "method"])["split"].transform("nunique")
        ours = summarised(scores.assign(test_set=scores["split"] % (splits // repeated).astype(int)))
        errors = self._sampling_errors(aliases.resplits)
        if errors is not None:
            ours = ours.merge(errors, on=["dataset", "method", "metric"], how="left")
        return compare_printed(replace(tables, aliases=aliases), ours, study["conventions"])

    def _sampling_errors(self, resplits: str | None) -> pd.DataFrame | None:
        """Return the sampling error of means: the larger of the bootstrap over test rows and the spread over splits."""
        cell, parts = ["dataset", "method", "metric"], []
        if (self.folder / "sampling.csv").is_file():
            parts.append(read_table(self.folder / "sampling.csv").rename(columns={"error": "sampling"}))
        if resplits and (self.folder.parent / resplits / SCORES).is_file():
            parts.append(summarised(self.study(resplits)).rename(columns={"std": "sampling"}))
        if not parts:
            return None
        return pd.concat([part[[*cell, "sampling"]] for part in parts]).groupby(cell, as_index=False)["sampling"].max()

    def claims(self) -> Claims:
        """Show the table of the paper's claims, which the cells below it fill, and return it."""
        claims = Claims()
        claims.show()
        return claims


def load(name: str) -> PaperResults:
    """Return the committed results of the study of a paper.

    Parameters
    ----------
    name : str
        ``mlwse``, ``lskmddm``, ``mlekelm``, ``lwmf`` or ``imldf``.

    Raises
    ------
    PaperError
        If there is no such paper, or neither the current folder nor the package is inside a checkout with its results.

    Examples
    --------
    >>> from multilab.papers import load
    >>> load("lwmf").printed.query("method == 'lwmf' and metric == 'average_precision'")["text"].tolist()[0]
    '0.5118'
    """
    find(name)
    here = Path.cwd().resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[3]):
        if (folder / _REPORTS / name / SCORES).is_file():
            return PaperResults(name, folder / _REPORTS / name)
    raise PaperError(
        f"no results of {name}: {_REPORTS}/{name}/{SCORES} is in a checkout of the repository, not in the package; "
        "start Jupyter inside a checkout"
    )


def _repetitions(study: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of repetitions of the columns that have some, from ``study.json``."""
    blocks = {name: variant.get("repetitions") for name, variant in study["variants"].items()}
    own = study.get("repetitions")
    return {
        column: block["n_repeats"]
        for column in study["all_methods"]
        if (block := blocks.get(column.partition("-")[2], own)) is not None
    }


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
