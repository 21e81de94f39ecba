"""What a printed table is made of: cells, blocks, notes, and the sign of each verdict."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MARKS", "Block", "Note", "PaperCell", "PaperTable"]

MARKS = {
    "match": "=",
    "within": "≈",
    "better": "▲",
    "worse": "▼",
    "differs": "≠",
    "not comparable": "×",
    "not printed": "+",
    "not run": "○",
}
"""The sign of each verdict, so that a table can be read without colours."""


@dataclass(frozen=True)
class PaperCell:
    """One printed cell: its number and ours as texts, the verdict, its sign, and why.

    ``place`` is dataset, method and metric, ``words`` the same as the paper calls them.
    """

    place: tuple[str, str, str]
    words: tuple[str, str, str]
    printed: str
    ours: str
    verdict: str
    mark: str
    reason: str
    errata: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """One rectangle of a printed table.

    ``agreeing`` tells per column how many of the cells that could be compared agree, ``measured`` which quantity of
    ours stands under which printed ones.
    """

    title: str
    corner: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PaperCell | None, ...]], ...]
    agreeing: tuple[str, ...]
    measured: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Note:
    """What is known of the print: one entry of the errata, the values it lists, and how many cells cite it."""

    id: str
    printed: str
    right: str
    why: str
    effect: str
    values: tuple[tuple[str, str, str], ...]
    cells: int


@dataclass(frozen=True)
class PaperTable:
    """One printed table, its verdicts counted, what is known of its cells, and those that are off."""

    number: str
    title: str
    blocks: tuple[Block, ...]
    verdicts: tuple[tuple[str, int, str], ...]
    notes: tuple[Note, ...]
    not_run: tuple[tuple[str, int], ...]
    off: tuple[PaperCell, ...]
    open: bool
