"""Model card as text: sections with paragraphs, lists and tables, as Markdown or a web page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from multilab.core.templates import template
from multilab.core.text import visible

__all__ = ["CardCode", "CardSection", "CardTable", "ModelCard", "rounded"]


@dataclass(frozen=True)
class CardTable:
    """Table of texts; columns of numbers are aligned right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds numbers and intervals only."""
        return [all(re.fullmatch(r"[-+\d.,%\s\[\]e]*|–", row[k]) for row in self.rows) for k in range(len(self.head))]


@dataclass(frozen=True)
class CardCode:
    """Lines of code or settings."""

    text: str


@dataclass(frozen=True)
class CardSection:
    """Section of a card.

    Attributes
    ----------
    title : str
    blocks : tuple
        In order: paragraphs (str), lists (tuple of str), CardTable, CardCode.
    """

    title: str
    blocks: tuple[Any, ...]

    @property
    def id(self) -> str:
        """Anchor of the section."""
        return re.sub(r"[^a-z]+", "-", self.title.lower())


@dataclass(frozen=True)
class ModelCard:
    """Model card.

    Attributes
    ----------
    title, summary : str
    facts : mapping of str to str
        Numbers to show first.
    sections : tuple of CardSection
    """

    title: str
    summary: str
    facts: Mapping[str, str]
    sections: tuple[CardSection, ...]

    def markdown(self) -> str:
        """Return the card as Markdown, in which nothing from the data is markup."""
        facts = tuple(f"{name}: {text}" for name, text in self.facts.items())
        parts = [f"# {_escaped(self.title)}", *map(_markdown, (self.summary, facts))]
        for section in self.sections:
            parts += [f"## {section.title}", *(_markdown(block) for block in section.blocks if block)]
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        """Return the card as one self-contained page.

        Raises
        ------
        MultilabError
            If the extra ``lab`` is not installed.
        """
        kinds = {str: "text", tuple: "list", CardTable: "table", CardCode: "code"}
        return template("model_card.html.j2", {"kind": lambda block: kinds[type(block)]}).render(card=self)


def _markdown(block: Any) -> str:
    if isinstance(block, str):
        return _escaped(block)
    if isinstance(block, CardCode):
        fence = "`" * (3 + block.text.count("```"))
        return f"{fence}text\n{block.text}\n{fence}"
    if isinstance(block, CardTable):
        rule = ["---:" if numeric else "---" for numeric in block.numeric]
        lines = [_row(block.head), "| " + " | ".join(rule) + " |", *map(_row, block.rows)]
        return "\n".join(lines)
    return "\n".join(f"- {_escaped(line)}" for line in block)


def _row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, texts)) + " |"


def _escaped(text: str) -> str:
    """Return a text as one line in which nothing is markup: no code, emphasis, HTML, link or end of a table cell."""
    return re.sub(r"([\\`*<>|&]|(?<!\w)_|_(?!\w)|\](?=[(\[:]))", r"\\\1", visible(" ".join(text.split())))


def rounded(value: Any, digits: int = 3) -> str:
    """Return a number with three decimals, a whole one as it is, and a dash for what is undefined."""
    if value is None:
        return "–"
    return str(value) if isinstance(value, int | str) else f"{value:.{digits}f}"
