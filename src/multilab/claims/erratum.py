"""What is known to be wrong, ambiguous or not comparable in the papers' tables, as data that verdicts cite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from multilab.claims.errors import ClaimsError
from multilab.claims.printed import papers
from multilab.claims.selectors import KEYS, mask, read_yaml

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Erratum", "errata", "touched"]

_EFFECTS = ("not_comparable", "note")
_TEXTS = ("printed", "right", "why", "effect", "source")


@dataclass(frozen=True)
class Erratum:
    """One thing a reader of the printed tables must know.

    Attributes
    ----------
    id : str
        What a verdict cites; begins with the paper's name, and has no spaces.
    where : dict
        Selector of printed cells (see :func:`multilab.claims.selectors.mask`), or ``{place: passage of the text}``.
    printed, right, why : str
        What the paper has, what is right, and how that is known.
    effect : {"not_comparable", "note"}
        Whether the cells can be judged.
    source : str
        Where it was found out.
    """

    id: str
    where: dict[str, Any] = field(default_factory=dict)
    printed: str = ""
    right: str = ""
    why: str = ""
    effect: str = "note"
    source: str = ""

    @property
    def right_number(self) -> float | None:
        """What is right, if that is one number."""
        try:
            return float(self.right)
        except ValueError:
            return None


def errata(paper: str) -> list[Erratum]:
    """Return what is known of a paper's printed cells, in the order of its file.

    An entry with ``values`` stands for one erratum per value: the keys of the value replace those of the entry, and the
    id gets the words of its cell, or its number where it is about several.

    Raises
    ------
    ClaimsError
        If there is no such paper, or an entry is not well formed.
    """
    if paper not in papers():
        raise ClaimsError(f"no errata of a paper {paper!r}; there are {', '.join(papers())}")
    found = [one for entry in read_yaml("errata", f"{paper}.yaml") or [] for one in _expanded(entry)]
    ids = [erratum.id for erratum in found]
    twice = next((name for name in ids if ids.count(name) > 1), None)
    if twice:
        raise ClaimsError(f"errata/{paper}.yaml: two entries are called {twice!r}")
    return found


def touched(cells: pd.DataFrame, known: Iterable[Erratum]) -> list[list[Erratum]]:
    """Return, per printed cell, the errata that are about it, those that forbid a comparison first."""
    found: list[list[Erratum]] = [[] for _ in range(len(cells))]
    for erratum in sorted(known, key=lambda one: _EFFECTS.index(one.effect)):
        for row in mask(cells, erratum.where).to_numpy().nonzero()[0]:
            found[row].append(erratum)
    return found


def _expanded(entry: Mapping[str, Any]) -> list[Erratum]:
    allowed = {"id", "where", "values", *_TEXTS}
    unknown = sorted(set(entry) - allowed)
    if unknown or "id" not in entry:
        raise ClaimsError(f"erratum {entry.get('id')!r}: {unknown[0] + ' is not a key of it' if unknown else 'no id'}")
    texts = {key: str(entry[key]) for key in _TEXTS if key in entry}
    where = dict(entry.get("where") or {})
    if "values" not in entry:
        return [_erratum(str(entry["id"]), where, texts)]
    found = []
    for number, value in enumerate(entry["values"], 1):
        own = {key: str(value[key]) for key in _TEXTS if key in value}
        narrowed = {**where, **{key: value[key] for key in KEYS if key in value}}
        words = [narrowed[key] for key in ("dataset", "metric", "method") if key in narrowed]
        name = "-".join(words).replace(" ", "_") if all(isinstance(word, str) for word in words) else str(number)
        found.append(_erratum(f"{entry['id']}/{name}", narrowed, {**texts, **own}))
    return found


def _erratum(name: str, where: dict[str, Any], texts: dict[str, str]) -> Erratum:
    found = Erratum(id=name, where=where, **texts)
    if found.effect not in _EFFECTS:
        raise ClaimsError(f"erratum {name}: effect {found.effect!r} is not one of {', '.join(_EFFECTS)}")
    return found
