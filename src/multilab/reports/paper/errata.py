"""Errata of a paper as notes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from multilab.claims import Erratum
from multilab.claims.statements import erratum_group
from multilab.reports.paper.printed_cells import PaperCell


@dataclass(frozen=True)
class Note:
    """One erratum: what is printed and what is right, the values it lists, and how many cells cite it."""

    id: str
    printed: str
    right: str
    why: str
    effect: str
    values: tuple[tuple[str, str, str], ...]
    cells: int


def cited_notes(cells: Iterable[PaperCell], errata: Sequence[Erratum]) -> tuple[Note, ...]:
    """Return the notes that some cells cite, in the order of the paper's errata."""
    cited = Counter(name for cell in cells for name in cell.errata)
    listed = {erratum.id: erratum for erratum in errata}
    order = {name: position for position, name in enumerate(listed)}
    groups: dict[str, list[Erratum]] = {}
    for name in sorted(cited, key=lambda one: order.get(one, len(order))):
        groups.setdefault(erratum_group(name)[0], []).extend([listed[name]] if name in listed else [])
    return tuple(note(group, entries, cited) for group, entries in groups.items())


def other_notes(errata: Iterable[Erratum], shown: set[str]) -> list[Note]:
    """Return the notes that no table shows: those about other passages of the paper."""
    groups: dict[str, list[Erratum]] = {}
    for erratum in errata:
        groups.setdefault(erratum_group(erratum.id)[0], []).append(erratum)
    return [note(name, entries) for name, entries in groups.items() if name not in shown]


def note(group: str, entries: Sequence[Erratum], cited: Mapping[str, int] | None = None) -> Note:
    """Return one note for the entries of one erratum; values that differ between them are listed."""

    def common(key: str) -> str:
        texts = {getattr(entry, key) for entry in entries}
        return texts.pop() if len(texts) == 1 else ""

    printed, right, effect = common("printed"), common("right"), common("effect")
    why = Counter(entry.why for entry in entries).most_common(1)
    reason = why[0][0] if why else ""
    listed = entries if len(entries) > 1 and not (printed and right) else ()
    values = [(where_text(e), e.printed, e.right + (f". {e.why}" if e.why != reason else "")) for e in listed]
    count = sum(n for name, n in (cited or {}).items() if erratum_group(name)[0] == group)
    return Note(group, printed, right, reason, effect, tuple(values), count)


def where_text(erratum: Erratum) -> str:
    """Return the data set, method and metric that an erratum is about, its id if it is about none."""
    parts = [erratum.where.get(key) for key in ("dataset", "method", "metric")]
    return ", ".join(" ".join(p) if isinstance(p, list) else str(p) for p in parts if p) or erratum.id
