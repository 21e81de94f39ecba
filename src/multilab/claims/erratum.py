"""Errata: what is wrong, ambiguous or not comparable in a paper's tables, as data that verdicts cite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from multilab.claims.errors import ClaimsError, check_keys
from multilab.claims.selectors import KEYS, check_selector, mask

if TYPE_CHECKING:
    import pandas as pd

    from multilab.claims.checks import Check
    from multilab.claims.evidence import Evidence, Finding

_EFFECTS = ("not_comparable", "note")
_TEXTS = ("printed", "right", "why", "effect", "source", "no_check")


@dataclass(frozen=True)
class Erratum:
    """An erratum of a paper.

    Attributes
    ----------
    id : str
        Name that verdicts cite; begins with the paper's name, and has no spaces.
    where : dict
        Selector of published cells (see :func:`multilab.claims.selectors.mask`), or ``{location: passage}``.
    printed, right, why : str
        The published text or number, the right one, and how that is known.
    effect : {"not_comparable", "note"}
        Whether the cells can be judged.
    source : str
        Section of the paper's page in the documentation (``docs/papers/<paper>.md``) that explains it.
    check : dict
        ``{name, on, ...}``: a check with its arguments that holds if the erratum is right, made on the published cells
        or, with ``on: ours``, on the study's results.
    no_check : str
        Why there can be none.
    """

    id: str
    where: dict[str, Any] = field(default_factory=dict)
    printed: str = ""
    right: str = ""
    why: str = ""
    effect: str = "note"
    source: str = ""
    check: dict[str, Any] = field(default_factory=dict)
    no_check: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the check."""
        return {key: value for key, value in self.check.items() if key not in ("name", "on")}

    @property
    def right_number(self) -> float | None:
        """The right value, if it is one number."""
        try:
            return float(self.right)
        except ValueError:
            return None


def read_errata(entries: Iterable[Mapping[str, Any]], location: str) -> tuple[Erratum, ...]:
    """Return the errata of the entries of ``errata.yaml``, in its order.

    An entry with ``values`` describes one erratum per value: the keys of the value replace those of the entry, and the
    id gets the names of its cell, or its number where it is about several.

    Raises
    ------
    ClaimsError
        If an entry is not well formed, or two have the same id.
    """
    errata = tuple(erratum for entry in entries for erratum in _expanded(entry, location))
    ids = [erratum.id for erratum in errata]
    repeated = next((name for name in ids if ids.count(name) > 1), None)
    if repeated:
        raise ClaimsError(f"{location}: two entries have the id {repeated!r}")
    return errata


def touched(cells: pd.DataFrame, known: Iterable[Erratum]) -> list[list[Erratum]]:
    """Return, per published cell, the errata that are about it, those that forbid a comparison first."""
    by_cell: list[list[Erratum]] = [[] for _ in range(len(cells))]
    for erratum in sorted(known, key=lambda one: _EFFECTS.index(one.effect)):
        for row in mask(cells, erratum.where).to_numpy().nonzero()[0]:
            by_cell[row].append(erratum)
    return by_cell


def _expanded(entry: Mapping[str, Any], location: str) -> list[Erratum]:
    check_keys(location, "erratum", entry, ("id", "where", "values", "check", *_TEXTS))
    if "id" not in entry:
        raise ClaimsError(f"{location}: an erratum has no id: {dict(entry)}")
    texts = {key: str(entry[key]) for key in _TEXTS if key in entry}
    where = dict(entry.get("where") or {})
    if "values" not in entry:
        return [_erratum(str(entry["id"]), where, texts, location, entry.get("check"))]
    errata = []
    for number, value in enumerate(entry["values"], 1):
        check_keys(f"{location}: {entry['id']}, value {number}", "value", value, (*KEYS, *_TEXTS, "check"))
        own = {key: str(value[key]) for key in _TEXTS if key in value}
        narrowed = {**where, **{key: value[key] for key in KEYS if key in value}}
        names = [narrowed[key] for key in ("dataset", "metric", "method") if key in narrowed]
        suffix = "-".join(names).replace(" ", "_") if all(isinstance(name, str) for name in names) else str(number)
        check = value.get("check", entry.get("check"))
        errata.append(_erratum(f"{entry['id']}/{suffix}", narrowed, {**texts, **own}, location, check))
    return errata


def _erratum(name: str, where: dict[str, Any], texts: dict[str, str], location: str, check: Any = None) -> Erratum:
    check_selector(where, f"{location}: {name}")
    if check is not None and (not isinstance(check, Mapping) or not check.get("name")):
        raise ClaimsError(f"{location}: {name}: check is {{name, arguments ...}}, not {check!r}")
    if check is not None and check.get("on", "ours") not in ("ours", "printed"):
        raise ClaimsError(f"{location}: {name}: on is ours or printed, not {check['on']!r}")
    erratum = Erratum(id=name, where=where, check=dict(check or {}), **texts)
    if erratum.effect not in _EFFECTS:
        raise ClaimsError(f"{location}: {name}: effect is {' or '.join(_EFFECTS)}, not {erratum.effect!r}")
    return erratum


def check_errata(
    known: Iterable[Erratum], printed: Evidence, ours: Evidence | None = None, checks: Mapping[str, Check] | None = None
) -> dict[str, Finding]:
    """Return what the checks of errata find, by id; those on our results are left out where there are none.

    Raises
    ------
    ClaimsError
        If an erratum has neither a check nor a reason why there is none, or its check cannot be run.
    """
    from multilab.claims.checks import run_check

    findings = {}
    for erratum in known:
        if bool(erratum.check) == bool(erratum.no_check):
            raise ClaimsError(f"erratum {erratum.id}: give either check or no_check")
        evidence = ours if erratum.check.get("on") == "ours" else printed
        if erratum.check and evidence is not None:
            findings[erratum.id] = run_check(erratum.check["name"], erratum.arguments, evidence, checks)
    return findings
