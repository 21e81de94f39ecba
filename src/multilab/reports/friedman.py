"""A printed table of Friedman's test: its numbers recomputed from the printed cells and from ours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from multilab.claims import Aliases, aliases, papers
from multilab.claims.naming import Derived, any_of
from multilab.claims.selectors import mask
from multilab.reports.paper import Words
from multilab.reports.pictures import Picture, rank_picture
from multilab.reports.study import Study, metric_title
from multilab.reports.tables import number
from multilab.statistics import Comparison, compare, summarise

__all__ = ["FriedmanRow", "FriedmanTable", "compared_cells", "diagram", "friedman_tables"]


@dataclass(frozen=True)
class FriedmanRow:
    """One measure: F_F as printed, from the printed cells, from ours under the print's quantities, and under one.

    ``sizes`` are the numbers of datasets behind the second to fourth, ``F_crit`` and ``cd`` belong to the last that
    could be computed.
    """

    title: str
    uniform: str
    printed: str
    recomputed: str
    mixed: str
    ours: str
    sizes: tuple[int, ...]
    degrees: str
    F_crit: str
    cd: str
    rejected: str


@dataclass(frozen=True)
class FriedmanTable:
    """All measures of a printed table of Friedman's test.

    ``other`` are its further cells: words and number.
    """

    table: str
    methods: tuple[str, ...]
    datasets: int
    rows: tuple[FriedmanRow, ...]
    other: tuple[tuple[str, str], ...]
    pictures: tuple[tuple[str, tuple[Picture, ...]], ...]


def friedman_tables(study: Study, words: Words) -> dict[str, FriedmanTable]:
    """Return, by number, the printed tables whose cells follow from others by Friedman's test.

    Which these are, and from which tables they follow, stands in the paper's ``aliases.yaml``.
    """
    paper = study.info.get("paper")
    if study.cells is None or paper not in papers():
        return {}
    known = aliases(str(paper))
    made = {}
    for rule in known.derived:
        cells = study.cells[mask(study.cells, rule.where)]
        if rule.kind == "friedman" and len(cells):
            table = str(cells["table"].iloc[0])
            made[table] = _table(study, study.cells, cells, rule, known, words)
    return made


def _table(
    study: Study, all_cells: pd.DataFrame, cells: pd.DataFrame, rule: Derived, known: Aliases, words: Words
) -> FriedmanTable:
    number_of = str(cells["table"].iloc[0])
    basis = all_cells[~any_of(all_cells, [one.where for one in known.derived])]
    basis = basis[basis["table"].isin(rule.tables or (number_of,))]
    rows, pictures = [], []
    for cell in cells.to_dict("records"):
        part = basis[basis["metric"] == cell["metric"]]
        uniform = _uniform(part)
        printed = compared_cells(study, part, "printed_mean", str(cell["metric"]), uniform)
        mixed = compared_cells(study, part, "our_mean", str(cell["metric"]), uniform)
        ours = _measured(study, part, uniform)
        rows.append(_row(str(cell["metric"]), uniform, str(cell["printed_mean"]), printed, mixed, ours))
        shown = [(c, told) for c, told in ((printed, "the printed cells"), (ours, "our values")) if c is not None]
        pictures.append((metric_title(str(cell["metric"])), tuple(diagram(c, told, words) for c, told in shown)))
    rest = all_cells[(all_cells["table"] == number_of) & ~mask(all_cells, rule.where)]
    return FriedmanTable(
        table=number_of,
        methods=tuple(words("method", name) for name in dict.fromkeys(basis["method"])),
        datasets=basis["dataset"].nunique(),
        rows=tuple(rows),
        other=tuple((str(cell["method"]), str(cell["printed_mean"])) for cell in rest.to_dict("records")),
        pictures=tuple(pictures),
    )


def _uniform(part: pd.DataFrame) -> str:
    """Return the quantity of ours that stands under most columns of a printed measure, without its conventions."""
    return str(part["our_metric"].str.partition(".")[0].mode().iloc[0])


def compared_cells(study: Study, part: pd.DataFrame, value: str, metric: str, uniform: str) -> Comparison | None:
    """Compare the methods by one column of the printed cells, over the datasets where nobody lacks a value.

    A cell that did not finish in print counts as last there.
    """
    table = part.assign(value=pd.to_numeric(part[value], errors="coerce"))
    lacking = set(table.loc[table["value"].isna() & (table["printed_mean"] != ""), "dataset"])
    values = table.pivot(index="dataset", columns="method", values="value")[list(dict.fromkeys(part["method"]))]
    complete = [name for name in dict.fromkeys(part["dataset"]) if name not in lacking]
    return _comparison(study, values.loc[complete], metric, uniform)


def _measured(study: Study, part: pd.DataFrame, uniform: str) -> Comparison | None:
    """Compare the same methods by one quantity for all of them."""
    datasets = [name for name in dict.fromkeys(part["dataset"]) if name in study.datasets]
    values = summarise(study.scores, uniform, datasets, list(dict.fromkeys(part["method"]))).mean
    return _comparison(study, values.dropna(), uniform, uniform)


def _comparison(study: Study, values: pd.DataFrame, metric: str, uniform: str) -> Comparison | None:
    from multilab.metrics import METRICS

    if min(values.shape) < 2 or uniform not in METRICS:
        return None
    level = float(study.info.get("alpha", 0.05))
    return compare(values, METRICS[uniform].direction, level, metric=metric, tie_correction=False)


def _row(
    metric: str,
    uniform: str,
    printed: str,
    again: Comparison | None,
    mixed: Comparison | None,
    ours: Comparison | None,
) -> FriedmanRow:
    basis = ours or mixed or again
    known = basis is not None and basis.F_crit is not None
    return FriedmanRow(
        title=metric_title(metric),
        uniform=metric_title(uniform),
        printed=printed or "–",
        recomputed=_f(again),
        mixed=_f(mixed),
        ours=_f(ours),
        sizes=tuple(c.n if c else 0 for c in (again, mixed, ours)),
        degrees=f"{basis.k - 1}, {(basis.k - 1) * (basis.n - 1)}" if basis and known else "–",
        F_crit=f"{basis.F_crit:.3f}" if basis and known else "–",
        cd=f"{basis.cd_nemenyi:.3f}" if basis and basis.cd_nemenyi is not None else "–",
        rejected="" if ours is None or ours.rejected is None else "yes" if ours.rejected else "no",
    )


def _f(comparison: Comparison | None) -> str:
    if comparison is None or comparison.F is None:
        return "–"
    return number(comparison.F) if math.isinf(comparison.F) else f"{comparison.F:.3f}"


def diagram(comparison: Comparison, told: str, words: Words) -> Picture:
    """Return the critical-difference diagram of one measure in the words of the paper; ``told`` is whose values."""
    titles = {name: words("method", name) for name in comparison.methods}
    order = sorted(comparison.ranks, key=lambda name: (comparison.ranks[name], name))
    ranks = ", ".join(f"{titles[name]} {comparison.ranks[name]:.2f}" for name in order)
    caption = f"From {told}, by {metric_title(comparison.metric)}, {comparison.n} datasets, α = {comparison.alpha:g}."
    return rank_picture(comparison, titles, f"Average ranks: {ranks}", caption)
