"""Claims of a paper on a page: the sentence, the check, and the numbers of the paper and of the study."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from multilab.claims import OUTCOMES
from multilab.claims.checks import names_in_checks
from multilab.claims.pairs import pair_of
from multilab.claims.paper import Paper
from multilab.claims.programs import Program
from multilab.claims.statements import Change, Erratum, erratum_group
from multilab.metrics import find_metric
from multilab.reports.data import ReportData, metric_title
from multilab.reports.paper.errata import where_text
from multilab.reports.paper.printed_cells import tally

_TITLES = {"accuracy": "Accuracy", "F_crit": "critical F", "CD": "Nemenyi CD"}


@dataclass(frozen=True)
class Numbers:
    """Numbers of one check: a table (``heads`` and ``rows``) and, in ``pairs``, what does not fit into it."""

    title: str
    reason: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class EvidenceView:
    """One piece of evidence: a counterfactual with its numbers, or an erratum whose check ran."""

    id: str
    setting: str
    shows: str
    check: str
    outcome: str
    expected: str
    numbers: tuple[Numbers, ...]


@dataclass(frozen=True)
class ReadingView:
    """One reading of a claim, and what it came to."""

    text: str
    check: str
    outcome: str
    holds_for: str
    reason: str
    numbers: tuple[Numbers, ...]


@dataclass(frozen=True)
class ClaimView:
    """One claim ready for the page.

    ``paper_outcome`` is empty where the published cells cannot be checked; ``holds_for`` are the limits for which it
    holds, ``so_far`` is what an open claim comes to on the results there are, and ``needs`` what would decide it.
    """

    id: str
    text: str
    location: str
    check: str
    paper_check: str
    outcome: str
    paper_outcome: str
    reason: str
    expected: str
    ours: tuple[Numbers, ...]
    printed: tuple[Numbers, ...]
    quote: str = ""
    origin: str = "paper"
    share: str = ""
    cause: str = ""
    verdict: str = ""
    evidence: tuple[EvidenceView, ...] = ()
    holds_for: str = ""
    paper_holds_for: str = ""
    so_far: str = ""
    needs: str = ""
    missing: tuple[str, ...] = ()
    readings: tuple[ReadingView, ...] = ()
    history: tuple[Change, ...] = ()
    command: str = ""


def claim_views(report: ReportData, paper: Paper | None = None) -> tuple[ClaimView, ...]:
    """Return the claims of ``claims.json`` in its order, with commands if there is the paper."""
    titled = _titles(report)
    known = evidence_views(report, titled)
    named = {} if paper is None else {claim.id: names_in_checks(claim, paper.programs) for claim in paper.claims}
    views = (_view(claim, titled, known, report.filled) for claim in report.claims)
    return tuple(replace(view, command=_command(report, named.get(view.id, set()))) for view in views)


def _command(report: ReportData, named: set[str]) -> str:
    """Return the command that recomputes the columns that a claim's checks name; empty without."""
    columns = [name for name in report.all_titles if name in named]
    datasets = [name for name in report.datasets if name in named]
    if not columns:
        return ""
    return f"multilab gate --study {report.name} --method {','.join(columns)}" + (
        f" --dataset {','.join(datasets)}" if datasets else ""
    )


@dataclass(frozen=True)
class ProgramView:
    """One program: its name as text, the title of our column for each method, how they were chosen, and its outcomes.

    ``rows`` are its outcomes in the order of the claims, each with whether the claim is judged on this program.
    """

    title: str
    rule: str
    results_known: bool
    columns: Mapping[str, str]
    rows: tuple[tuple[str, str, bool], ...]


def program_views(report: ReportData, programs: Mapping[str, Program]) -> tuple[tuple[str, ...], list[ProgramView]]:
    """Return the claims that are judged on programs, and per program what they come to."""
    judged = [claim for claim in report.claims if claim.get("programs")]
    views = []
    for name, program in programs.items():
        title, rows = name.replace("_", " ").capitalize(), []
        for claim in judged:
            shown = claim["programs"].get(name) or {}
            share, so_far = shown.get("share"), shown.get("so_far")
            kept = f"{share[0]} of {share[1]}" if share else ""
            hint = f"so far: {so_far}" if so_far else shown.get("limit") or kept
            rows.append((str(shown.get("outcome", "")), str(hint), claim.get("program") == name))
        columns = {}
        for method, column in program.columns.items():
            # A name that only claims use is shown as its fair column; a column without a title was not run.
            row = report.all_titles.get(method) or report.method_title(programs["fair"].columns[method])
            columns[row] = report.all_titles.get(column, column if column == method else "not run")
        views.append(ProgramView(title, program.rule, program.results_known, columns, tuple(rows)))
    return tuple(claim["id"] for claim in judged), views if judged else []


def outcomes(claims: Sequence[ClaimView]) -> list[tuple[str, int, list[str]]]:
    """Return, per outcome, how many claims of the paper came to it and which."""
    counted = [claim for claim in claims if claim.origin == "paper"]
    counts = tally((claim.outcome for claim in counted), OUTCOMES)
    return [(outcome, n, [c.id for c in counted if c.outcome == outcome]) for outcome, n, _ in counts]


def evidence_views(report: ReportData, titled: Callable[[str], str] | None = None) -> dict[str, EvidenceView]:
    """Return the counterfactuals of a study and the errata that a check confirmed, by id."""
    titled = titled or _titles(report)
    views = {
        str(one["id"]): EvidenceView(
            str(one["id"]),
            report.filled(str(one["setting"])),
            report.filled(str(one["shows"])),
            titled(str(one.get("description") or "")),
            str(one["outcome"]),
            str(one["expect"]),
            _numbers(one.get("numbers") or {}, titled),
        )
        for one in report.counterfactuals.get("counterfactuals") or ()
    }
    for name, entries in (report.counterfactuals.get("errata") or {}).items():
        numbers = _numbers(entries.get("numbers") or {}, titled)
        views[name] = EvidenceView(name, "erratum", "", "", str(entries["outcome"]), "holds", numbers)
    return views


def erratum_evidence(report: ReportData, errata: Iterable[Erratum]) -> dict[str, tuple[EvidenceView, ...]]:
    """Return, by erratum, its check if that was made, and the counterfactuals that explain it.

    An entry of the errata with several values is one, with a row for each value.
    """
    views = evidence_views(report)
    about = {erratum.id: where_text(erratum) for erratum in errata}
    shown: dict[str, dict[str, EvidenceView]] = {}
    for name in report.counterfactuals.get("errata") or ():
        group, value = erratum_group(name)
        checked = views[name]
        numbers = tuple(_in_a_row(part, about.get(name, value) if value else "") for part in checked.numbers)
        known = shown.setdefault(group, {})
        same = next((id for id, one in known.items() if one.outcome == checked.outcome and _joins(one, numbers)), None)
        if same is None:
            known[name] = replace(checked, numbers=numbers)
        else:
            rows = known[same].numbers[0].rows + numbers[0].rows
            known[same] = replace(known[same], numbers=(replace(numbers[0], rows=rows),))
    for one in report.counterfactuals.get("counterfactuals") or ():
        for name in one["explains"]:
            shown.setdefault(erratum_group(name)[0], {})[one["id"]] = views[one["id"]]
    return {name: tuple(entries.values()) for name, entries in shown.items()}


def _in_a_row(numbers: Numbers, value: str) -> Numbers:
    """Return numbers without a table as the row of one; ``value`` names it."""
    if numbers.rows or not numbers.pairs:
        return numbers
    heads, texts = zip(*numbers.pairs, strict=True)
    return replace(numbers, heads=heads, rows=((value, texts),), pairs=())


def _joins(one: EvidenceView, numbers: tuple[Numbers, ...]) -> bool:
    """Return whether the check of another value has the columns of one that is shown."""
    return len(one.numbers) == len(numbers) == 1 and one.numbers[0].heads == numbers[0].heads


def _view(
    claim: Mapping[str, Any],
    titled: Callable[[str], str],
    known: Mapping[str, EvidenceView],
    filled: Callable[[str], str],
) -> ClaimView:
    def text(name: str) -> str:
        return str(claim[name]) if claim.get(name) is not None else ""

    published = dict(claim.get("in_paper") or {})
    check, paper_check = titled(text("description")), titled(text("description_in_paper"))
    ours = _numbers(claim.get("numbers") or {}, titled)
    share, reason = claim.get("share"), dict(claim.get("explanation") or {})
    return ClaimView(
        id=text("id"),
        text=text("sentence"),
        location=text("location"),
        check=check,
        paper_check=paper_check if paper_check != check else "",
        outcome=text("outcome") or "not testable",
        paper_outcome=str(published.pop("outcome", "")),
        reason="" if any(one.reason for one in ours) else titled(text("reason")),
        expected=text("expected"),
        ours=ours,
        printed=_numbers(published, titled),
        quote=text("quote"),
        origin=text("origin") or "paper",
        share=f"{share[0]} of {share[1]}" if share and text("outcome") == "holds in part" else "",
        cause=filled(str(reason.get("cause") or "")),
        verdict=str(reason.get("verdict") or ""),
        evidence=tuple(known[name] for name in reason.get("evidence") or () if name in known),
        holds_for=text("holds_for"),
        paper_holds_for=text("holds_for_in_paper"),
        so_far=text("so_far"),
        needs=_needs(claim.get("needs") or {}),
        missing=tuple(map(titled, (claim.get("needs") or {}).get("missing", ()))),
        readings=tuple(
            ReadingView(
                str(one["text"]),
                titled(str(one["description"])),
                str(one["outcome"]),
                str(one.get("limit", "")),
                titled(str(one["reason"])),
                _numbers(one["numbers"], titled),
            )
            for one in claim.get("readings") or ()
        ),
        history=tuple(Change(**change) for change in claim.get("history") or ()),
    )


def _needs(needs: Mapping[str, Any]) -> str:
    if not needs:
        return ""
    hours = needs["core_hours"]
    return f"{needs['cells']} cells" + (", cost not known" if hours is None else f", about {hours:.3g} core-hours")


def _titles(report: ReportData) -> Callable[[str], str]:
    """Return a function that replaces the keys of methods and metrics by their display names."""
    names = {**{metric: metric_title(metric) for metric in report.metrics}, **report.all_titles}
    if not names:
        return str
    keys = "|".join(re.escape(key) for key in sorted(names, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w-])({keys})(?![\w-])")
    return lambda text: pattern.sub(lambda match: names[match[0]], text)


def _numbers(
    numbers: Mapping[str, Any], titled: Callable[[str], str], title: str = "", reason: str = ""
) -> tuple[Numbers, ...]:
    """Return nested numbers as tables; parts with an outcome of their own become tables of their own."""
    numbers = _grid(numbers)
    parts = {key: dict(value) for key, value in numbers.items() if isinstance(value, Mapping) and "outcome" in value}
    flat = {key: value for key, value in numbers.items() if isinstance(value, Mapping) and key not in parts}
    heads = list(dict.fromkeys(head for value in flat.values() for head in value))
    table = Numbers(
        title=title,
        reason=titled(reason),
        heads=tuple(_key(head, titled) for head in heads),
        rows=tuple((_key(k, titled), tuple(titled(_text(v.get(head))) for head in heads)) for k, v in flat.items()),
        pairs=tuple((_key(k, titled), _text(v)) for k, v in numbers.items() if not isinstance(v, Mapping)),
    )
    rest = [
        item
        for key, part in parts.items()
        for item in _numbers(part, titled, f"{key}: {part.pop('outcome')}", str(part.pop("reason", "")))
    ]
    return (*([_upright(table)] if table.rows or table.pairs or title else []), *rest)


def _upright(numbers: Numbers) -> Numbers:
    """Return a table of few long rows with rows and columns exchanged, so that it fits next to another."""
    if len(numbers.heads) <= 5 or len(numbers.rows) >= len(numbers.heads):
        return numbers
    rows = tuple((head, tuple(texts[i] for _, texts in numbers.rows)) for i, head in enumerate(numbers.heads))
    return replace(numbers, heads=tuple(name for name, _ in numbers.rows), rows=rows)


def _grid(numbers: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return numbers named ``A against B`` as one mapping per B."""
    grid: dict[str, dict[str, Any]] = {}
    for key, value in numbers.items():
        pair = pair_of(key)
        if pair is None or isinstance(value, Mapping):
            return numbers
        first, other = pair
        grid.setdefault(f"against {other}", {})[first] = value
    return grid


def _key(key: str, titled: Callable[[str], str]) -> str:
    return _TITLES.get(key) or (metric_title(key) if find_metric(key) else titled(key))


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}".replace("-", "−") if abs(value) >= 1 else f"{value:.4g}".replace("-", "−")
