"""Tables as the field prints them: mean and spread, best in bold, ranks as subscripts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from multilab.reports.study import Study, metric_title, set_columns
from multilab.statistics import Comparison, rank_rows, summarise

__all__ = [
    "MANY_METHODS",
    "Cell",
    "CostTable",
    "MethodRow",
    "ScoreTable",
    "beside_columns",
    "cost_tables",
    "method_rows",
    "number",
    "p_text",
    "rank_text",
    "score_table",
]

_COSTS = (
    ("fit_seconds", "Time to fit", "s", 1.0),
    ("input_seconds", "Time to fit the base scores it reads, shared by all who read them", "s", 1.0),
    ("predict_seconds", "Time to predict", "s", 1.0),
    ("peak_mb", "Peak memory", "MB", 1.0),
    ("model_bytes", "Size of the model", "kB", 1e3),
)


@dataclass(frozen=True)
class Cell:
    """One printed number: ``mean`` and ``std`` as texts ("" if none), its rank, and whether it is best.

    ``delta`` is the difference to the same method's own settings, ``gain`` 1 where that is better, -1 where worse.
    """

    mean: str
    std: str = ""
    rank: str = ""
    best: bool = False
    delta: str = ""
    gain: int = 0


@dataclass(frozen=True)
class ScoreTable:
    """One metric over datasets and methods, ready to print.

    Attributes
    ----------
    metric, title, arrow : str
        Key, words, and "↓" or "↑" for small or large is good ("" if unknown).
    heads : tuple of str
        Printed names of the methods.
    rows : tuple of (str, tuple of Cell)
        One per dataset.
    average_ranks : tuple of Cell
        Empty if the ranks are not known.
    spread : bool
        Whether any standard deviation is printed.
    order : tuple of int
        Positions of the methods, the best average rank first, those without a rank last.
    """

    metric: str
    title: str
    arrow: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    average_ranks: tuple[Cell, ...]
    spread: bool
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class CostTable:
    """One measured quantity over datasets and methods; the lowest mean of each row is marked best.

    ``order`` are the positions of the methods, the least average rank first.
    """

    title: str
    unit: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class MethodRow:
    """One method of a table with methods as rows: its name, its average rank if known, its cell for each dataset."""

    head: str
    average_rank: Cell | None
    cells: tuple[Cell, ...]


MANY_METHODS = 8
"""Tables of more methods have them as rows, so that the best are seen first and nothing is cut off at the right."""


def method_rows(table: ScoreTable | CostTable) -> tuple[MethodRow, ...]:
    """Return the rows of a table with the methods as rows, the best first."""
    ranks = table.average_ranks if isinstance(table, ScoreTable) else ()
    columns = [cells for _, cells in table.rows]
    return tuple(
        MethodRow(table.heads[i], ranks[i] if ranks else None, tuple(cells[i] for cells in columns))
        for i in table.order or range(len(table.heads))
    )


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with about ``digits`` significant digits and no exponent where one can do without."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = abs(value)
    if size < 1e-4 or size >= 1e7:
        return f"{value:.{digits - 1}e}"
    before = math.floor(math.log10(size)) + 1
    return f"{value:,.{max(0, digits - before)}f}".replace(",", "\u202f").replace("-", "−")


def p_text(value: float, sign: str = "p = ") -> str:
    """Return a p value with two digits, ``p < 0.0001`` for less; with an empty sign only the number."""
    return f"{sign.replace('=', '<') or '< '}0.0001" if value < 1e-4 else f"{sign}{number(value, 2)}"


def rank_text(rank: float) -> str:
    """Return a rank within a dataset: ``2``, or ``2.5`` after a tie."""
    return f"{rank:g}"


def score_table(study: Study, metric: str) -> ScoreTable:
    """Return the table of one metric; bold cells and ranks are those of the study's :class:`Comparison`.

    Columns of sets that stand beside the study's methods follow, without ranks.

    Values of about one and less get four decimals, larger ones three, as the papers print them; ranks and
    the best are found from the unrounded means.
    """
    beside = beside_columns(study)
    methods = (*study.methods, *beside)
    summary = summarise(study.scores, metric, study.datasets, methods) if beside else study.summaries[metric]
    comparison = study.comparisons.get(metric)
    largest = summary.mean.abs().max().max()
    decimals = 4 if math.isnan(largest) or largest < 1.5 else 3
    rows = []
    for dataset in study.datasets:
        ranks = comparison.dataset_ranks.get(dataset, {}) if comparison else {}
        values, spreads = summary.mean.loc[dataset], summary.std.loc[dataset]
        present = [ranks[m] for m in ranks if m in values and not math.isnan(values[m])]
        best = min(present, default=math.nan)
        cells = [_cell(values[m], spreads[m], lambda v: f"{v:.{decimals}f}", ranks.get(m), best) for m in methods]
        rows.append((dataset, tuple(cells)))
    return ScoreTable(
        metric=metric,
        title=metric_title(metric),
        arrow={"min": "↓", "max": "↑"}[comparison.direction] if comparison else "",
        heads=tuple(study.method_title(m) for m in methods),
        rows=tuple(rows),
        average_ranks=_average_ranks(methods, comparison),
        spread=any(cell.std for _, cells in rows for cell in cells),
        order=_order([comparison.ranks.get(m, math.inf) for m in methods] if comparison else [0.0] * len(methods)),
    )


def beside_columns(study: Study) -> tuple[str, ...]:
    """Return the columns of sets that stand in the study's own tables."""
    sets = (study.info.get("columns") or {}).items()
    return tuple(column for name, block in sets if block.get("beside") for column in set_columns(name, block))


def cost_tables(study: Study) -> tuple[CostTable, ...]:
    """Return time, memory and model size: mean and standard deviation over splits, least in bold."""
    tables = []
    for column, title, unit, divisor in _COSTS:
        if study.measured is None or column not in study.measured:
            continue
        values = pd.to_numeric(study.measured[column], errors="coerce") / divisor
        if not (values.fillna(0) > 0).any():
            continue
        named = [name for name in ("dataset", "split", "method", "key") if name in study.measured]
        long = study.measured[named].assign(metric=column, value=values)
        summary = summarise(long, column, study.datasets, study.methods)
        ranks = rank_rows(summary.mean, "min")
        rows = []
        for dataset in study.datasets:
            mean, std = summary.mean.loc[dataset], summary.std.loc[dataset]
            best = ranks.loc[dataset].where(mean.notna()).min()
            rows.append(
                (
                    dataset,
                    tuple(_cell(mean[m], std[m], number, ranks.loc[dataset, m], best) for m in study.methods),
                )
            )
        heads = tuple(study.titles[m] for m in study.methods)
        order = _order(ranks[list(study.methods)].mean().fillna(math.inf))
        tables.append(CostTable(title, unit, heads, tuple((d, _no_ranks(cells)) for d, cells in rows), order))
    return tuple(tables)


def _cell(mean: float, std: float, text: Callable[[float], str], rank: float | None, best: float) -> Cell:
    if math.isnan(mean):
        return Cell("–", rank="" if rank is None else rank_text(rank))
    return Cell(
        mean=text(mean),
        std="" if math.isnan(std) else text(std),
        rank="" if rank is None else rank_text(rank),
        best=rank is not None and rank == best,
    )


def _order(ranks: Iterable[float]) -> tuple[int, ...]:
    """Return the positions of ranks in ascending order; equal ranks stay in their order."""
    values = list(ranks)
    return tuple(sorted(range(len(values)), key=values.__getitem__))


def _no_ranks(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    return tuple(Cell(cell.mean, cell.std, "", cell.best) for cell in cells)


def _average_ranks(methods: Sequence[str], comparison: Comparison | None) -> tuple[Cell, ...]:
    if comparison is None or comparison.k < 2 or not comparison.ranks:
        return ()
    best = min(comparison.ranks.values())
    return tuple(
        Cell(f"{comparison.ranks[m]:.2f}", best=comparison.ranks[m] == best) if m in comparison.ranks else Cell("–")
        for m in methods
    )
