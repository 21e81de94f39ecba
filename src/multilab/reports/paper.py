"""The printed tables in the paper's own layout, our number under each printed one."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from multilab.claims import Erratum, Layout, aliases, errata, layout, papers, published
from multilab.claims.naming import any_of
from multilab.claims.verdicts import BEYOND, MISSING, VERDICTS, compared, decimals
from multilab.metrics import METRICS
from multilab.reports.paper_beside import with_beside
from multilab.reports.paper_parts import MARKS, Block, Note, PaperCell, PaperTable
from multilab.reports.study import Study, metric_title

__all__ = [
    "Words",
    "known_errata",
    "note",
    "paper_tables",
    "tally",
]


@dataclass(frozen=True)
class Words:
    """The words of a paper for datasets, methods and metrics."""

    printed: Mapping[str, Mapping[str, str]]
    titles: Mapping[str, str]

    @classmethod
    def of(cls, study: Study) -> Words:
        """Return the printed words of a study's paper; none if the paper is not known."""
        paper = study.info.get("paper")
        found: dict[str, dict[str, str]] = {"dataset": {}, "method": {}}
        if paper in papers():
            cells = published(str(paper))
            found = {key: dict(zip(cells[key], cells[f"printed_{key}"], strict=True)) for key in found}
        return cls(found, study.titles)

    def __call__(self, key: str, word: str) -> str:
        """Return a dataset, method or metric as a reader of the paper knows it."""
        if key == "metric":
            return metric_title(re.sub(r"\[(.*)\]", r" of \1", word))
        return str(self.printed[key].get(word) or self.titles.get(word, word))


def tally(found: Iterable[str], order: Sequence[str] = VERDICTS) -> tuple[tuple[str, int, str], ...]:
    """Count words, known ones first: (word, count, share in percent); words that do not occur are left out."""
    counts = Counter(found)
    total = sum(counts.values())
    words = (*order, *sorted(set(counts) - set(order)))
    return tuple((word, counts[word], f"{100 * counts[word] / total:.1f} %") for word in words if counts[word])


def paper_tables(study: Study, words: Words) -> tuple[PaperTable, ...]:
    """Return every printed table of ``cells.csv``, in the printed order."""
    if study.cells is None:
        return ()
    known = known_errata(study)
    return tuple(
        _table(study, str(number), cells, known, words) for number, cells in study.cells.groupby("table", sort=False)
    )


def known_errata(study: Study) -> tuple[Erratum, ...]:
    """Return the errata of the study's paper; none if the paper is not known."""
    paper = study.info.get("paper")
    return tuple(errata(str(paper))) if paper in papers() else ()


def _table(study: Study, number: str, cells: pd.DataFrame, known: Sequence[Erratum], words: Words) -> PaperTable:
    paper = study.info.get("paper")
    form = layout(paper, number, cells)
    unfinished = any_of(cells, aliases(str(paper)).dnf)
    rows: list[Any] = cells.to_dict("records")
    usual = max(map(decimals, cells["printed_mean"]), default=0) or 4
    made = {
        cell.place: cell for cell in (_cell(row, dnf, usual, words) for row, dnf in zip(rows, unfinished, strict=True))
    }
    groups = cells.groupby(form.block, sort=False) if form.block else [("", cells)]
    blocks = [
        with_beside(study, _block(str(name), part, form, made, words), part, form, usual) for name, part in groups
    ]
    excuses = Counter(cell.reason for cell in made.values() if cell.verdict == "not run")
    off = [cell for cell in made.values() if cell.verdict in BEYOND]
    return PaperTable(
        number=number,
        title=form.title,
        blocks=tuple(blocks),
        verdicts=tally(cell.verdict for cell in made.values()),
        notes=_notes(made.values(), known),
        not_run=_excuses(excuses),
        off=tuple(off),
        open=bool(off) or any(cell.verdict == "within" for cell in made.values()),
    )


def _cell(row: Mapping[str, Any], unfinished: bool, usual: int, words: Words) -> PaperCell:
    printed, ours = row["printed_mean"] or ("DNF" if unfinished else ""), row["our_mean"]
    place = row["dataset"], row["method"], row["metric"]
    digits = decimals(printed) if row["printed_mean"] else usual
    if ours and digits == 0 and not float(ours).is_integer():  # printed 0 where its neighbours have decimals
        digits = usual
    return PaperCell(
        place=place,
        words=(words("dataset", place[0]), words("method", place[1]), words("metric", place[2])),
        printed=(printed or ("not printed" if ours else "–")) + _spread(row["printed_std"], digits),
        ours=_rounded(ours, digits) + _spread(row["our_std"], digits) if ours else "",
        verdict=row["verdict"],
        mark=MARKS.get(row["verdict"], "?"),
        reason=row["reason"],
        errata=tuple(row["erratum"].split()),
    )


def _rounded(text: str, digits: int) -> str:
    value = float(text)
    return f"{value:.{digits}f}" if math.isfinite(value) else text


def _spread(text: str, digits: int) -> str:
    return f" ± {_rounded(text, digits)}" if text else ""


def _block(
    name: str,
    cells: pd.DataFrame,
    form: Layout,
    made: Mapping[tuple[str, str, str], PaperCell],
    words: Words,
) -> Block:
    row, column = form.row, form.column
    heads, rows = list(dict.fromkeys(cells[column])), list(dict.fromkeys(cells[row]))
    fixed = {key: cells[key].iloc[0] for key in ("dataset", "method", "metric")}

    def at(one: str, other: str) -> PaperCell | None:
        there = {**fixed, row: one, column: other}
        return made.get((there["dataset"], there["method"], there["metric"]))

    filled = [(one, tuple(at(one, other) for other in heads)) for one in rows]
    columns = zip(*(row for _, row in filled), strict=True)
    counts = [compared(cell.verdict for cell in column if cell) for column in columns]
    return Block(
        title=words(form.block, name) if form.block else "",
        corner={"dataset": "Dataset", "method": form.method, "metric": "Measure"}[row],
        heads=tuple(words(column, head) for head in heads),
        rows=tuple((words(row, one), cells) for one, cells in filled),
        agreeing=tuple(f"{agree} of {known}" if known else "–" for known, _, agree, _ in counts),
        measured=_measured(cells, words),
    )


def _measured(cells: pd.DataFrame, words: Words) -> tuple[tuple[str, str], ...]:
    """Return (quantity of ours, the printed cells it stands under) where that is not the printed measure itself."""
    found = []
    for metric, part in cells.groupby("metric", sort=False):
        if set(part["our_metric"]) != {metric}:
            for ours, rows in part.groupby("our_metric", sort=False):
                who = ", ".join(words("method", name) for name in dict.fromkeys(rows["method"]))
                found.append((quantity_title(str(ours)), f"{metric_title(str(metric))} of {who}"))
    return tuple(found)


def quantity_title(quantity: str) -> str:
    """Return the words for one of our quantities: ``ranking_loss.mulan`` is the ranking loss as Mulan counts it."""
    metric, _, preset = quantity.partition(".")
    title = METRICS[metric].title if metric in METRICS else metric.replace("_", " ")
    return f"{title} (conventions: {preset})" if preset else title


def _notes(cells: Iterable[PaperCell], known: Sequence[Erratum]) -> tuple[Note, ...]:
    cited = Counter(name for cell in cells for name in cell.errata)
    listed = {erratum.id: erratum for erratum in known}
    groups: dict[str, list[str]] = {}
    for name in sorted(cited, key=lambda one: list(listed).index(one) if one in listed else len(listed)):
        groups.setdefault(name.partition("/")[0], []).append(name)
    return tuple(note(group, [listed[n] for n in names if n in listed], cited) for group, names in groups.items())


def note(group: str, entries: Sequence[Erratum], cited: Mapping[str, int] | None = None) -> Note:
    """Return one note for the entries of one erratum; values that differ between them are listed."""

    def common(key: str) -> str:
        texts = {getattr(entry, key) for entry in entries}
        return texts.pop() if len(texts) == 1 else ""

    shared = {key: common(key) for key in ("printed", "right", "why", "effect")}
    own = [e for e in entries if len(entries) > 1 and not (shared["printed"] and shared["right"])]
    most = Counter(e.why for e in entries).most_common(1)
    why = shared["why"] or (most[0][0] if most else "")
    values = [(_where(e), e.printed, e.right + (f". {e.why}" if e.why != why else "")) for e in own]
    count = sum(n for name, n in (cited or {}).items() if name.partition("/")[0] == group)
    return Note(group, shared["printed"], shared["right"], why, shared["effect"], tuple(values), count)


def _where(erratum: Erratum) -> str:
    parts = [erratum.where.get(key) for key in ("dataset", "method", "metric")]
    return ", ".join(" ".join(p) if isinstance(p, list) else str(p) for p in parts if p) or erratum.id


def _excuses(reasons: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return why cells were not run, all those without any result as one line."""
    missing = sum(count for reason, count in reasons.items() if reason.startswith(MISSING))
    rest = [(reason, count) for reason, count in reasons.items() if not reason.startswith(MISSING)]
    return (*rest, *([("no result of ours yet", missing)] if missing else []))
