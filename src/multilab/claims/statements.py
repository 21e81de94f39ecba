"""Statements about a paper's results: claims, counterfactuals and errata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from multilab.claims.errors import ClaimsError
from multilab.claims.published import KEYS, Selector, mask
from multilab.core.settings import NOT_IN_FILE, convert

if TYPE_CHECKING:
    import pandas as pd

Outcome = Literal[
    "holds", "holds in part", "fails", "depends on the reading", "depends on the limit", "open", "not testable"
]
Text = Annotated[str, Meta(min_length=1, description="text that is not empty")]


@dataclass(frozen=True)
class Explanation:
    """Explanation of why a claim does not hold.

    Attributes
    ----------
    cause : str
        The cause in a sentence or two.
    evidence : tuple of str
        Counterfactuals of the paper, and errata with a check, that demonstrate the cause.
    verdict : {"paper", "protocol", "implementation", "unknown"}
        Origin of the cause: an error of the paper, a protocol or setting that it does not state, our own implementation
        or setting, or unknown.
    """

    cause: Text
    evidence: tuple[str, ...] = ()
    verdict: Literal["paper", "protocol", "implementation", "unknown"] = "unknown"


@dataclass(frozen=True)
class Reading:
    """One way to read the quoted sentence of a claim.

    Attributes
    ----------
    text : str
        The reading.
    check : str
        Name of the check that decides it.
    arguments : dict
        Arguments of the check.
    program : str
        The program it is judged on, if the readings differ in the program; default: that of the claim.
    """

    text: Text
    check: Text
    arguments: dict[str, Any] = field(default_factory=dict, metadata=NOT_IN_FILE)
    program: str = ""


@dataclass(frozen=True)
class Change:
    """A change of the check of a claim.

    Attributes
    ----------
    before, after : str
        Requirement of the check, and its columns.
    why : str
        Why it was changed.
    outcome_before, outcome_after : str
        Outcome of the claim before and after.
    """

    before: Text
    after: Text
    why: Text
    outcome_before: Outcome
    outcome_after: Outcome


@dataclass(frozen=True)
class Claim:
    """A statement of a paper.

    Attributes
    ----------
    id, sentence : str
        The statement in English, and its name.
    check : str
        Name of the check that decides it; empty for one that cannot be tested, or that has readings.
    arguments : dict
        Arguments of the check.
    program : {"fair", "as_printed"}
        The program of the paper that it is judged on.
    readings : tuple of Reading
        At least two readings of the quoted sentence, if it is ambiguous.
    history : tuple of Change
        Earlier versions of the check, oldest first.
    location : str, optional
        Place in the paper.
    quote : str, optional
        The sentence as printed, in the language of the paper.
    origin : {"paper", "ours"}
        Whether the claim is the paper's or a question of our own.
    expected : str, optional
        Expectation before the study was run.
    untestable : str, optional
        Why the claim cannot be tested, and what was tried. If its check runs, the check decides nevertheless.
    explanation : Explanation, optional
        Why it does not hold.
    in_paper : dict, False or None
        Arguments that differ on the published cells (other names of metrics, say); ``False`` if the published cells
        cannot be checked.
    """

    id: Text
    sentence: Text
    check: str = ""
    arguments: dict[str, Any] = field(default_factory=dict, metadata=NOT_IN_FILE)
    location: str | None = None
    expected: str | None = None
    in_paper: dict[str, Any] | bool | None = None
    quote: str | None = None
    origin: Literal["paper", "ours"] = "paper"
    untestable: str | None = None
    explanation: Explanation | None = None
    program: Literal["fair", "as_printed"] = "fair"
    readings: tuple[Reading, ...] = field(default=(), metadata=NOT_IN_FILE)
    history: tuple[Change, ...] = ()

    @property
    def decided(self) -> bool:
        """Whether a check decides it."""
        return bool(self.check or self.readings)

    @property
    def arguments_in_paper(self) -> dict[str, Any]:
        """Arguments of the check on the published cells."""
        return {**self.arguments, **(self.in_paper or {})} if isinstance(self.in_paper, dict) else self.arguments

    @classmethod
    def from_mapping(cls, block: Any, location: str = "claims") -> Claim:
        """Return the claim of a block of ``claims.yaml``; other keys are arguments of its check.

        Raises
        ------
        ClaimsError
            If the id, the sentence or the check is missing, or another key is not well formed.
        """
        name = block.get("id") if isinstance(block, Mapping) else None
        readings = tuple(
            _with_arguments(Reading, reading, location, f"claim {name}: reading")
            for reading in (block.get("readings") or () if isinstance(block, Mapping) else ())
        )
        claim: Claim = _with_arguments(cls, block, location, "claim", readings=readings)
        if not claim.decided and not claim.untestable:
            raise ClaimsError(f"{location}: claim {claim.id}: check is missing")
        if readings and (claim.check or len(readings) == 1 or not claim.quote):
            raise ClaimsError(
                f"{location}: claim {claim.id}: readings are two or more, of a quote, in place of a check"
            )
        if claim.in_paper is True:
            raise ClaimsError(f"{location}: claim {claim.id}: in_paper must be false or arguments, got True")
        return claim


@dataclass(frozen=True)
class Counterfactual:
    """A check of results at another setting, or of the published cells, that explains something.

    Attributes
    ----------
    id : str
        Its name; explanations cite it.
    explains : tuple of str
        Claims and errata that it explains.
    setting, why, shows : str
        The changed setting, the reason for the run, and what it should show.
    check : str
        Name of the check.
    arguments : dict
        Arguments of the check. Columns of variants are named ``<method>-<variant>``.
    expect : {"holds", "holds in part", "fails", "depends on the limit"}
        The outcome that confirms the explanation.
    on : {"ours", "printed"}
        Whether the check uses the study's results or the published cells.
    """

    id: Text
    explains: Annotated[tuple[str, ...], Meta(min_length=1)]
    setting: Text
    shows: Text
    check: Text
    arguments: dict[str, Any] = field(metadata=NOT_IN_FILE)
    expect: Literal["holds", "holds in part", "fails", "depends on the limit"]
    why: str = ""
    on: Literal["ours", "printed"] = "ours"


@dataclass(frozen=True)
class Erratum:
    """An erratum of a paper.

    Attributes
    ----------
    id : str
        Name that verdicts cite; begins with the paper's name, and has no spaces.
    where : dict
        Selector of published cells (see :func:`multilab.claims.published.mask`), or ``{location: passage}``.
    printed, right, why : str
        The published text or number, the right one, and how that is known.
    effect : {"not_comparable", "not_read", "note"}
        Whether the cells can be judged; ``not_read``: they are printed, but their numbers are not in ``published.csv``.
    source : str
        Section of the paper's page in the documentation (``docs/papers/<paper>.md``) that explains it.
    check : dict
        ``{name, on, ...}``: a check with its arguments that holds if the erratum is right, made on the published cells
        or, with ``on: ours``, on the study's results.
    no_check : str
        Why there can be no check.
    """

    id: str
    where: Selector = field(default_factory=Selector)
    printed: str = ""
    right: str = ""
    why: str = ""
    effect: Literal["not_comparable", "not_read", "note"] = "note"
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


def read_errata(entries: Iterable[Any], location: str) -> tuple[Erratum, ...]:
    """Return the errata of the entries of ``errata.yaml``, in its order.

    An entry with ``values`` describes one erratum per value: the keys of the value replace those of the entry, and the
    id gets the names of its cell, or its number where it is about several.

    Raises
    ------
    ClaimsError
        If an entry is not well formed, or two have the same id.
    """
    errata = tuple(erratum for entry in entries for erratum in _expanded(entry, location))
    refuse_repeated(errata, location, "entries")
    return errata


def touched(cells: pd.DataFrame, known: Iterable[Erratum]) -> list[list[Erratum]]:
    """Return, per published cell, the errata that are about it, those that forbid a comparison first."""
    by_cell: list[list[Erratum]] = [[] for _ in range(len(cells))]
    for erratum in sorted(known, key=lambda one: one.effect != "not_comparable"):
        for row in mask(cells, erratum.where).to_numpy().nonzero()[0]:
            by_cell[row].append(erratum)
    return by_cell


def _expanded(entry: Any, location: str) -> list[Erratum]:
    if not isinstance(entry, Mapping) or "values" not in entry:
        return [_erratum(entry, location)]
    errata = []
    shared = {key: value for key, value in entry.items() if key != "values"}
    for number, value in enumerate(entry["values"], 1):
        where = {**(entry.get("where") or {}), **{key: value[key] for key in KEYS if key in value}}
        names = [where[key] for key in ("dataset", "metric", "method") if key in where]
        suffix = "-".join(names).replace(" ", "_") if all(isinstance(name, str) for name in names) else str(number)
        own = {key: item for key, item in value.items() if key not in KEYS}
        errata.append(_erratum({**shared, **own, "where": where, "id": f"{entry.get('id')}/{suffix}"}, location))
    return errata


def erratum_group(id: str) -> tuple[str, str]:
    """Return the id of the entry of ``errata.yaml`` that an erratum comes from, and which of its values it is, if any.

    Examples
    --------
    >>> from multilab.claims.statements import erratum_group
    >>> erratum_group("mlwse-ranks/emotions-jaccard"), erratum_group("mlwse-f1")
    (('mlwse-ranks', 'emotions-jaccard'), ('mlwse-f1', ''))
    """
    group, _, value = id.partition("/")
    return group, value


def _erratum(entry: Any, location: str) -> Erratum:
    at = f"{location}: {entry.get('id', 'erratum')}" if isinstance(entry, Mapping) else location
    erratum: Erratum = convert(entry, Erratum, at, error=ClaimsError)
    if erratum.check and not erratum.check.get("name"):
        raise ClaimsError(f"{at}: check must be {{name, arguments ...}}, got {erratum.check!r}")
    if erratum.check.get("on", "ours") not in ("ours", "printed"):
        raise ClaimsError(f"{at}: check.on must be ours or printed, got {erratum.check['on']!r}")
    return erratum


def read_counterfactuals(content: Any, location: str) -> tuple[Counterfactual, ...]:
    """Return the counterfactuals of ``counterfactuals.yaml``, in its order.

    Raises
    ------
    ClaimsError
        If an entry is not well formed, or two have the same id.
    """
    if not isinstance(content, list):
        raise ClaimsError(f"{location}: must be a list of counterfactuals, got {content!r}")
    found = tuple(_with_arguments(Counterfactual, block, location, "counterfactual") for block in content)
    refuse_repeated(found, location, "counterfactuals")
    return found


def _with_arguments(kind: Any, block: Any, location: str, title: str, **given: Any) -> Any:
    """Return a claim, reading or counterfactual; the keys that are none of its own are arguments of its check."""
    if not isinstance(block, Mapping):
        raise ClaimsError(f"{location}: a {title} must be a mapping of its keys, got {block!r}")
    own = {one.name for one in fields(kind)} - {"arguments"}
    values = {key: value for key, value in block.items() if key in own - set(given) and value is not None}
    return convert(
        _stripped(values),
        kind,
        f"{location}: {title} {block.get('id') or block.get('text') or dict(block)}",
        error=ClaimsError,
        **given,
        arguments={key: value for key, value in block.items() if key not in own},
    )


def _stripped(value: Any) -> Any:
    """Return settings without the line breaks that YAML leaves at the end of a folded text."""
    if isinstance(value, Mapping):
        return {key: _stripped(item) for key, item in value.items()}
    return value.strip() if isinstance(value, str) else value


def refuse_repeated(found: Iterable[Claim | Counterfactual | Erratum], location: str, what: str) -> None:
    """Refuse statements with the same id.

    Raises
    ------
    ClaimsError
    """
    ids = [one.id for one in found]
    repeated = next((name for name in ids if ids.count(name) > 1), None)
    if repeated:
        raise ClaimsError(f"{location}: two {what} have the id {repeated!r}")
