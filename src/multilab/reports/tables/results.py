"""Table of results for a terminal, for LaTeX and as CSV: methods x metrics."""

import csv
import io
import math
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from multilab.cells.cell import Cell
from multilab.cells.inventory import Inventory, ResultRow, result_rows
from multilab.cells.store import Store
from multilab.metrics import METRICS
from multilab.reports.tables.entry import ARROWS, Entry
from multilab.reports.tables.latex import latex_entry, latex_rows, latex_text
from multilab.statistics import rank_rows


@dataclass(frozen=True)
class ResultTable:
    """A table ready to print.

    Attributes
    ----------
    title : str
    heads : tuple of str
        Of all columns; the first is that of the methods.
    directions : tuple of str
        "min", "max" or "" per column.
    rows : tuple of tuple of Entry
    notes : tuple of str
    names : tuple of (str, str)
        The method of each row and its settings; the first entry of the row has both.
    """

    title: str
    heads: tuple[str, ...]
    directions: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...]
    names: tuple[tuple[str, str], ...] = ()


def result_table(rows: Sequence[ResultRow], metrics: Sequence[str], spread: bool = True) -> ResultTable:
    """Return the table of some results: one line per method and settings, sorted by the first metric.

    On one dataset an entry is the mean over the splits, with the standard deviation if ``spread``. Over several it is
    the mean over the datasets, and the average rank by the first metric has a column of its own, which orders the
    lines; a method without a result on one of them has no entry. The best entry of a column is the one with the best
    value.
    """
    lines: dict[str, dict[str, ResultRow]] = {}
    named: dict[str, tuple[str, str]] = {}
    several_protocols = len({row.protocol for row in rows}) > 1
    shared = set.intersection(*(set(row.settings) for row in rows)) if len(rows) > 1 else set()
    for row in rows:
        own = [text for text in row.settings if text not in shared]
        settings = " ".join([*own, *([row.protocol] if several_protocols else [])])
        label = f"{row.method} {settings}".rstrip()
        lines.setdefault(label, {})[row.dataset] = row
        named[label] = row.method, settings
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    columns, orders, notes = [], [], []
    for metric in metrics:
        entries, order, left_out = (
            _single(lines, datasets[0], metric, spread) if len(datasets) == 1 else _over(lines, datasets, metric)
        )
        columns.append(entries)
        orders.append(order)
        if left_out:
            notes.append(f"{metric} is not defined on {', '.join(left_out)}")
    notes += _incomplete(lines, datasets)
    ordered = sorted(lines, key=lambda label: orders[0][label]) if orders else list(lines)
    heads = list(metrics)
    directions: list[str] = [METRICS[metric].direction for metric in metrics]
    if len(datasets) > 1 and orders:
        ranks = orders[0]
        texts = {label: "-" if math.isinf(rank) else f"{rank:.2f}" for label, rank in ranks.items()}
        columns.insert(1, {label: Entry(texts[label], best=_is_best(ranks[label], ranks.values())) for label in ranks})
        heads.insert(1, "rank")
        directions.insert(1, "")
    body = []
    for label in ordered:
        group = lines[label].values()
        seconds = sum(row.seconds for row in group)  # NaN where nobody knows: of results from a pack
        costs = (Entry("-" if math.isnan(seconds) else f"{seconds:.1f}"), Entry(str(sum(r.warnings for r in group))))
        body.append((Entry(label), *(column[label] for column in columns), *costs))
    title = _title(rows, datasets, sorted(shared), spread)
    names = ("method", *heads, "seconds", "warnings")
    rows_named = tuple(named[label] for label in ordered)
    return ResultTable(title, names, ("", *directions, "", ""), tuple(body), tuple(notes), rows_named)


def _title(rows: Sequence[ResultRow], datasets: list[str], shared: list[str], spread: bool) -> str:
    protocols = ", ".join(dict.fromkeys(row.protocol for row in rows))
    with_settings = f"; {' '.join(shared)}" if shared else ""
    if len(datasets) > 1:
        named = f" ({', '.join(datasets)})" if len(datasets) <= 5 else ""
        shown = "mean over the datasets; average rank by the first metric"
        return f"{len(datasets)} datasets{named}, {protocols}{with_settings}: {shown}"
    return f"{datasets[0]}, {protocols}{with_settings}: mean{' ± standard deviation' if spread else ''} over the splits"


_Column = tuple[dict[str, Entry], dict[str, float], list[str]]


def _single(lines: dict[str, dict[str, ResultRow]], dataset: str, metric: str, spread: bool) -> _Column:
    """Return the entries of one metric on one dataset, what to sort the methods by, and nothing left out."""
    sign = 1 if METRICS[metric].direction == "min" else -1
    means = {label: group[dataset].mean(metric) for label, group in lines.items()}
    ranked = [sign * means[label] for label in means if lines[label][dataset].complete and not math.isnan(means[label])]
    entries = {}
    for label, mean in means.items():
        row = lines[label][dataset]
        std = row.std(metric)
        text = "-" if math.isnan(mean) else f"{mean:.4f}"
        text += f" ±{std:.4f}" if spread and text != "-" and not math.isnan(std) else ""
        entries[label] = Entry(text, best=row.complete and _is_best(sign * mean, ranked))
    order = {label: math.inf if math.isnan(mean) else sign * mean for label, mean in means.items()}
    return entries, order, []


def _is_best(value: float, values: Collection[float]) -> bool:
    """Tell whether a finite value is the smallest of some, rounding aside."""
    return math.isfinite(value) and bool(values) and math.isclose(value, min(values), rel_tol=1e-9, abs_tol=1e-12)


def _over(lines: dict[str, dict[str, ResultRow]], datasets: list[str], metric: str) -> _Column:
    """Return the entries of one metric over several datasets; also the datasets on which no method has a value."""
    values = {
        label: [group[d].mean(metric) if d in group and group[d].complete else math.nan for d in datasets]
        for label, group in lines.items()
    }
    table = pd.DataFrame(values, index=datasets)
    left_out = [name for name in datasets if table.loc[name].isna().all()]
    table = table.drop(index=left_out)
    everywhere = [label for label, group in lines.items() if all(d in group and group[d].complete for d in datasets)]
    full = table.loc[:, [label for label in everywhere if len(table) and table[label].notna().all()]]
    direction = METRICS[metric].direction
    ranks = rank_rows(full, direction).mean() if full.shape[1] else pd.Series(dtype=float)
    means = full.mean()
    losses = means if direction == "min" else -means
    entries = {
        label: Entry(f"{means[label]:.4f}", best=_is_best(losses[label], list(losses))) if label in full else Entry("-")
        for label in lines
    }
    return entries, {label: float(ranks.get(label, math.inf)) for label in lines}, left_out


def _incomplete(lines: dict[str, dict[str, ResultRow]], datasets: list[str]) -> list[str]:
    notes = []
    for label, group in lines.items():
        parts = [f"{r.splits} of {r.expected} splits of {r.dataset}" for r in group.values() if not r.complete]
        missing = [name for name in datasets if name not in group]
        parts += [f"nothing on {', '.join(missing)}"] if missing else []
        if parts:
            notes.append(f"{label}: {', '.join(parts)}; not ranked")
    return notes


def as_text(table: ResultTable) -> str:
    """Return the table as plain text; ``*`` marks the best of a column."""
    heads = [name.rsplit("_", 1) if "_" in name else ["", name] for name in table.heads]
    upper, lower = ([head[i] for head in heads] for i in (0, 1))
    lower = [text + ARROWS[direction] for text, direction in zip(lower, table.directions, strict=True)]
    marked = any(entry.best for row in table.rows for entry in row)
    blank = " " if marked else ""
    body = []
    for row in table.rows:
        values = [entry.text + ("*" if entry.best else blank) for entry in row[1:-2]]
        body.append([row[0].text, *values, *(entry.text for entry in row[-2:])])
    widths = [max(map(len, column)) for column in zip(upper, lower, *body, strict=True)]
    lines = [table.title]
    for first, *rest in [upper, lower, *body]:
        texts = [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))]
        lines.append("  ".join(texts).rstrip())
    return "\n".join([*lines, *(["* best"] if marked else []), *table.notes])


def as_latex(table: ResultTable) -> str:
    """Return the table as a LaTeX ``tabular`` with the rules of ``booktabs``; the best of a column is bold."""
    heads = [latex_text(f"{name} {ARROWS[d]}".rstrip()) for name, d in zip(table.heads, table.directions, strict=True)]
    comments = [f"% {table.title}", *(f"% {note}" for note in table.notes)]
    return "\n".join([*comments, latex_rows(heads, [list(map(latex_entry, row)) for row in table.rows])])


def as_csv(rows: Sequence[ResultRow], metrics: Sequence[str]) -> str:
    """Return the rows as CSV, unrounded: mean and standard deviation over the splits per metric."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    numbers = [name for metric in metrics for name in (metric, f"{metric}.std")]
    writer.writerow(["dataset", "protocol", "method", "settings", "splits", *numbers, "seconds", "warnings"])
    for row in rows:
        values = [value for metric in metrics for value in (row.mean(metric), row.std(metric))]
        texts = ["" if math.isnan(value) else repr(float(value)) for value in values]
        head = [row.dataset, row.protocol, row.method, " ".join(row.settings), row.splits]
        seconds = "" if math.isnan(row.seconds) else f"{row.seconds:.3f}"
        writer.writerow([*head, *texts, seconds, row.warnings])
    return text.getvalue()


def print_table(rows: Sequence[ResultRow], metrics: Sequence[str], every: bool = False) -> None:
    """Print a table that fits the terminal, elsewhere 100 columns: with rich the best of a column bold, else marked.

    Metrics without room are named below it; with ``every`` they follow in further tables of the same rows.
    """
    table, terminal = result_table(rows, metrics), sys.stdout.isatty()
    width = Console().width - len(table.heads) - 1 if terminal else _COLUMNS  # borders of rich
    if _width(short := _with_short_names(table)) > width:
        short = _with_short_names(result_table(rows, metrics, spread=False))
        while (room := _room(short, width)) < (number := len(short.heads) - 3) and every:
            print_result_table(replace(_part(short, 0, room), notes=()))
            print()
            short = _part(short, room, number)
        if left := short.heads[1 + room : -2]:
            note = f"not shown, no room: {', '.join(left)}; choose with `multilab results --metric`"
            short = replace(_part(short, 0, room), notes=(*short.notes, note))
    print_result_table(short)


_COLUMNS = 100
_NAME = 30  # characters of a method and its settings; longer settings are written below the table


def _width(table: ResultTable) -> int:
    return max(map(len, as_text(replace(table, notes=())).splitlines()[1:]))


def _with_short_names(table: ResultTable) -> ResultTable:
    """Return the table with long settings as notes."""
    rows = []
    notes: list[str] = []
    for (method, settings), (first, *rest) in zip(table.names, table.rows, strict=True):
        if len(first.text) > _NAME:
            notes.append(f"[{len(notes) + 1}] {settings}")
            first = replace(first, text=f"{method} [{len(notes)}]")
        rows.append((first, *rest))
    return replace(table, rows=tuple(rows), notes=(*notes, *table.notes))


def _room(table: ResultTable, width: int) -> int:
    """Return how many of the first metrics fit, at least one."""
    number = len(table.heads) - 3
    while number > 1 and _width(_part(table, 0, number)) > width:
        number -= 1
    return number


def _part(table: ResultTable, first: int, last: int) -> ResultTable:
    """Return the table with the metrics from one position to before another."""

    def kept(texts: tuple[Any, ...]) -> tuple[Any, ...]:
        return (texts[0], *texts[1 + first : 1 + last], *texts[-2:])

    rows = tuple(map(kept, table.rows))
    return replace(table, heads=kept(table.heads), directions=kept(table.directions), rows=rows)


def print_result_table(table: ResultTable) -> None:
    """Print a table that is ready: with rich on a terminal, the best entries bold; as plain text elsewhere."""
    if not sys.stdout.isatty():
        print(as_text(table))
        return
    drawn = Table(title=table.title, title_justify="left", caption="\n".join(table.notes) or None)
    for i, (name, direction) in enumerate(zip(table.heads, table.directions, strict=True)):
        head = f"{name.replace('_', ' ')} {ARROWS[direction]}".rstrip()
        drawn.add_column(Text(head), justify="right" if i else "left")
    for row in table.rows:
        drawn.add_row(*(Text(entry.text, style="bold" if entry.best else "") for entry in row))
    Console().print(drawn)


def print_sweep(runs: Sequence[tuple[str, Sequence[Cell]]], metrics: Sequence[str]) -> None:
    """Print the table of the finished runs of a sweep: of each its conventions and its cells."""
    inventory, rows = Inventory(Store()), []
    for conventions in dict.fromkeys(name for name, _ in runs):
        keys = [cell.key for name, cells in runs if name == conventions for cell in cells]
        rows += result_rows(inventory, map(inventory.read, dict.fromkeys(keys)), conventions)
    print()
    print_table(rows, metrics)
