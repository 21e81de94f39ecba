"""Published tables in the paper's own layout, our number under each published one."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from multilab.claims import Layout
from multilab.claims.agreement import BEYOND, compared
from multilab.claims.paper import Paper
from multilab.claims.published import any_of, layout_of, printed_number
from multilab.claims.verdicts import NO_RESULT
from multilab.metrics import find_metric
from multilab.reports.data import ReportData, metric_title
from multilab.reports.paper.errata import Note, cited_notes
from multilab.reports.paper.printed_cells import Block, Names, PaperCell, names_on_page, tally

_KEYS = ("dataset", "method", "metric")


@dataclass(frozen=True)
class PaperTable:
    """One published table with its verdicts, counted, the errata of its cells, and the cells that disagree."""

    number: str
    title: str
    blocks: tuple[Block, ...]
    verdicts: tuple[tuple[str, int, str], ...]
    notes: tuple[Note, ...]
    not_run: tuple[tuple[str, int], ...]
    off: tuple[PaperCell, ...]
    open: bool


def paper_tables(report: ReportData, paper: Paper | None) -> tuple[PaperTable, ...]:
    """Return every published table of ``cells.csv``, in the printed order."""
    if report.cells is None:
        return ()
    names = names_on_page(report, paper)
    tables = report.cells.groupby("table", sort=False)
    return tuple(_table(report, paper, str(number), cells, names) for number, cells in tables)


def _table(report: ReportData, paper: Paper | None, number: str, table: pd.DataFrame, names: Names) -> PaperTable:
    form = paper.layout(number, table) if paper is not None else layout_of({}, table)
    unfinished = any_of(table, paper.aliases.dnf if paper is not None else ())
    usual = max((printed_number(text).decimals for text in table["printed_mean"] if text), default=0) or 4
    records: list[Any] = table.to_dict("records")
    aliases = paper.aliases.names.get("method", {}) if paper is not None else {}
    sets = paper.aliases.names.get("dataset", {}) if paper is not None else {}
    commands = {
        (dataset, method): f"multilab gate --study {report.name} --method {column} --dataset {ours}"
        for dataset, method in set(zip(table["dataset"], table["method"], strict=True))
        if (column := aliases.get(method, method)) in report.all_titles
        and (ours := sets.get(dataset, dataset)) in report.datasets
    }
    layers = kept_layers(report)
    cells = {
        (row["dataset"], row["method"], row["metric"]): replace(
            _cell(row, dnf, usual, names, commands),
            layers=layers.get((aliases.get(row["method"], row["method"]), row["dataset"], row["metric"]), 0),
        )
        for row, dnf in zip(records, unfinished, strict=True)
    }
    groups = table.groupby(form.block, sort=False) if form.block else [("", table)]
    blocks = [
        _with_extra_columns(report, _block(str(name), rows, form, cells, names), rows, form, usual)
        for name, rows in groups
    ]
    off = tuple(cell for cell in cells.values() if cell.verdict in BEYOND)
    return PaperTable(
        number=number,
        title=form.title,
        blocks=tuple(blocks),
        verdicts=tally(cell.verdict for cell in cells.values()),
        notes=cited_notes(cells.values(), paper.errata if paper is not None else ()),
        not_run=_excuses(cell.reason for cell in cells.values() if cell.verdict == "not run"),
        off=off,
        open=bool(off) or any(cell.verdict == "within" for cell in cells.values()),
    )


def _cell(
    row: Mapping[str, Any], unfinished: bool, usual: int, names: Names, commands: Mapping[tuple[str, str], str]
) -> PaperCell:
    printed, ours = row["printed_mean"] or ("DNF" if unfinished else ""), row["our_mean"]
    digits = printed_number(printed).decimals if row["printed_mean"] else usual
    if ours and digits == 0 and not float(ours).is_integer():  # printed 0 where its neighbours have decimals
        digits = usual
    missing = "not read" if row["verdict"] == "not read" else "not printed"
    return PaperCell(
        keys=(row["dataset"], row["method"], row["metric"]),
        names=(names("dataset", row["dataset"]), names("method", row["method"]), names("metric", row["metric"])),
        printed=(printed or (missing if ours else "–")) + _spread(row["printed_std"], digits),
        ours=_rounded(ours, digits) + _spread(row["our_std"], digits) if ours else "",
        verdict=row["verdict"],
        reason=row["reason"] + (", no run-to-run spread" if _is_without_spread(row) else ""),
        errata=tuple(row["erratum"].split()),
        command=commands.get((row["dataset"], row["method"]), "") if row["our_mean"] and _is_score(row) else "",
    )


def _is_without_spread(row: Mapping[str, Any]) -> bool:
    """Return whether our number, which does not agree with the printed one, is the same in every run."""
    return row["group"] == "result" and row["verdict"] in BEYOND and float(row["uncertainty"] or "nan") == 0


def _is_score(row: Mapping[str, Any]) -> bool:
    """Return whether our number is a mean of scores: the gate does not compare seconds, ranks or properties of data."""
    return row["group"] == "result" and find_metric(row["our_metric"].partition(".")[0]) is not None


def kept_layers(report: ReportData) -> dict[tuple[str, str, str], int]:
    """Return how many layers the cascades of the study keep on first splits, by method, dataset and measure."""
    kept: dict[tuple[str, str, str], int] = {}
    for item in report.learned:
        layers = item.arrays.get("n_layers_")
        measures = report.argument(item.method, item.dataset, "measure")
        if layers is None or not measures:
            continue
        names = [measures] if isinstance(measures, str) else measures
        if len(layers) == 1:  # one cascade for all measures
            names, layers = report.metrics, np.repeat(layers, len(report.metrics))
        kept |= {(item.method, item.dataset, name): int(n) for name, n in zip(names, layers, strict=True)}
    return kept


def _rounded(text: str, digits: int) -> str:
    value = float(text)
    return f"{value:.{digits}f}" if math.isfinite(value) else text


def _spread(text: str, digits: int) -> str:
    return f" ± {_rounded(text, digits)}" if text else ""


def _block(
    name: str, table: pd.DataFrame, form: Layout, cells: Mapping[tuple[str, str, str], PaperCell], names: Names
) -> Block:
    heads, rows = list(dict.fromkeys(table[form.column])), list(dict.fromkeys(table[form.row]))
    fixed = {key: table[key].iloc[0] for key in _KEYS}

    def at(row: str, column: str) -> PaperCell | None:
        dataset, method, metric = ({**fixed, form.row: row, form.column: column}[key] for key in _KEYS)
        return cells.get((dataset, method, metric))

    filled = [(row, tuple(at(row, column) for column in heads)) for row in rows]
    columns = zip(*(row for _, row in filled), strict=True)
    counts = [compared(cell.verdict for cell in column if cell) for column in columns]
    return Block(
        title=names(form.block, name) if form.block else "",
        corner={"dataset": "Dataset", "method": form.method, "metric": "Measure"}[form.row],
        heads=tuple(names(form.column, head) for head in heads),
        rows=tuple((names(form.row, row), entries) for row, entries in filled),
        agreeing=tuple(f"{agree} of {known}" if known else "–" for known, _, agree, _ in counts),
        quantities=_quantities(table, names),
    )


def _with_extra_columns(report: ReportData, block: Block, cells: pd.DataFrame, layout: Layout, decimals: int) -> Block:
    """Return a block of datasets x methods with the columns of variants shown in the main tables; none is judged."""
    metric, columns = str(cells["metric"].iloc[0]), report.extra_columns
    if not columns or (layout.row, layout.column) != ("dataset", "method") or metric not in report.metrics:
        return block
    means = replace(report.board, methods=columns).summary(metric).mean
    names = list(dict.fromkeys(cells["dataset"]))
    if not set(report.datasets) <= set(names):
        return block
    others = [name for name in names if name not in means.index]  # the means over all of them
    table = pd.concat([means, pd.DataFrame([means.mean()] * len(others), index=others, columns=means.columns)])

    def cell(name: str, column: str, title: str) -> PaperCell:
        names = title, report.method_title(column), metric_title(metric)
        ours = f"{table.loc[name, column]:.{decimals}f}"
        return PaperCell((name, column, metric), names, "–", ours, "not printed", "an extra column of the study")

    rows = tuple(
        (title, (*row, *(cell(name, column, title) for column in columns)))
        for name, (title, row) in zip(names, block.rows, strict=True)
    )
    heads = (*block.heads, *(report.method_title(column) for column in columns))
    return replace(block, heads=heads, rows=rows, agreeing=(*block.agreeing, *("–" for _ in columns)))


def _quantities(table: pd.DataFrame, names: Names) -> tuple[tuple[str, str], ...]:
    """Return (our quantity, the published cells compared with it) where that is not the printed measure itself."""
    pairs = []
    for metric, cells in table.groupby("metric", sort=False):
        if set(cells["our_metric"]) != {metric}:
            for ours, rows in cells.groupby("our_metric", sort=False):
                methods = ", ".join(names("method", name) for name in dict.fromkeys(rows["method"]))
                pairs.append((quantity_title(str(ours)), f"{metric_title(str(metric))} of {methods}"))
    return tuple(pairs)


def quantity_title(quantity: str) -> str:
    """Return the name of one of our quantities, such as ``ranking_loss.mulan``: ranking loss, Mulan's conventions."""
    metric, _, preset = quantity.partition(".")
    known = find_metric(metric)
    title = known.title if known else metric.replace("_", " ")
    return f"{title} (conventions: {preset})" if preset else title


def _excuses(reasons: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Return why cells were not run, those without any result last."""
    counts = Counter(reasons)
    missing = counts.pop(NO_RESULT, 0)
    return (*counts.items(), *([(NO_RESULT, missing)] if missing else []))
