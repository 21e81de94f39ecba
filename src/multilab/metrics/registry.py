"""Registry of the metrics: the decorator that defines one, and the table of all.

A metric is one decorated function in one of the modules that :mod:`multilab.metrics` imports
(``decision_metrics``, ``auc``, ``ranking_metrics``, ``paper_metrics``)::

    @metric("Is-error", "min", "scores", skips="rows", source="Crammer & Singer, JMLR 2003",
            conventions=("ranking_loss_ties",))
    def is_error(ranking, conventions):
        \"\"\"Return the share of rows in which at least one pair of labels is ordered wrongly.\"\"\"
        return mean_of(ranking.rows.twice_wrong > 0)

Nothing else has to be edited: ``multilab.metrics.is_error``, :data:`METRICS`, ``score_all``, the definitions in the
reports and the completion of the shell follow.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Literal, get_args

from multilab.metrics.conventions import Conventions, resolve
from multilab.metrics.decision_counts import DecisionCounts, count_decisions
from multilab.metrics.errors import MetricError
from multilab.metrics.inputs import Decisions, LabelSets, Scores
from multilab.metrics.label_ranks import Ranking
from multilab.metrics.values import Value

Direction = Literal["max", "min"]
Needs = Literal["scores", "decisions"]
Skips = Literal["rows", "labels"] | None
Formula = Callable[[Any, Conventions], Value | float]


@dataclass(frozen=True)
class Metric:
    """Definition of one metric.

    Attributes
    ----------
    name : str
        Key in ``score_all`` and in every results file.
    title : str
        Display name.
    direction : {"max", "min"}
        Which values are better.
    low, high : float
        Range of the value under the conventions ``default``; ``inf`` where it grows with the number of
        labels.
    needs : {"scores", "decisions"}
        What it compares with the true labels.
    skips : {"rows", "labels", None}
        What some conventions leave out of its mean; then ``score_all`` has a key ``n_skipped_<name>``.
    conventions : tuple of str
        The fields of :class:`Conventions` that can change its value for given scores or decisions.
    definition : str
        One line: the summary of its docstring without "Return the".
    source : str
        Publication or program that defines it.
    function : callable
        ``function(Y, scores or decisions, conventions)``.
    formula : callable
        ``formula(ranking or counts, conventions)``, the decorated function.
    """

    name: str
    title: str
    direction: Direction
    low: float
    high: float
    needs: Needs
    skips: Skips
    conventions: tuple[str, ...]
    definition: str
    source: str
    function: Callable[..., float]
    formula: Formula

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible value."""
        return self.low, self.high

    def better(self, a: float, b: float) -> bool:
        """Return whether ``a`` is strictly better than ``b``."""
        return a > b if self.direction == "max" else a < b

    def value(self, counts_or_ranking: DecisionCounts | Ranking, conventions: Conventions) -> Value:
        """Return the value, and the number of rows or labels left out of it."""
        result = self.formula(counts_or_ranking, conventions)
        return result if isinstance(result, Value) else Value(float(result))


_DEFINED: dict[str, Metric] = {}
_SCORED: dict[str, Metric] = {}

DEFINED: Mapping[str, Metric] = MappingProxyType(_DEFINED)
METRICS: Mapping[str, Metric] = MappingProxyType(_SCORED)

_SUMMARY = "Return the "
_EXAMPLES = "Examples\n--------"
_SECTIONS = """\
Parameters
----------
Y : array-like or sparse, shape (n_rows, n_labels)
    True labels, 0/1.
{needs} : array-like or sparse, shape (n_rows, n_labels)
    {what}
conventions : str or Conventions, default "default"
    A preset or your own rules, see :class:`Conventions`. {conventions}

Returns
-------
float
    Between {low} and {high}, {better} is better.

Raises
------
MetricError
    If an argument is not a non-empty matrix of such values, shapes differ, or the conventions refuse a row or label.

Notes
-----
Source: {source}.
"""
_WHAT = {"decisions": "Predicted labels, 0/1.", "scores": "Finite scores, larger means more relevant."}


def metric(
    title: str,
    direction: Direction,
    needs: Needs,
    *,
    source: str,
    conventions: tuple[str, ...] = (),
    skips: Skips = None,
    high: float = 1.0,
    in_score_all: bool = True,
) -> Callable[[Formula], Callable[..., float]]:
    """Define a metric by its formula.

    Parameters
    ----------
    title, direction, needs, source, conventions, skips, high
        See :class:`Metric`.
    in_score_all : bool, default True
        Whether ``score_all`` computes it, so that it is in :data:`METRICS`.

    Returns
    -------
    callable
        Decorator of a function ``formula(counts, conventions)`` (decisions; see :class:`DecisionCounts`) or
        ``formula(ranking, conventions)`` (scores; see :class:`Ranking`) that returns a number or a :class:`Value`.
        The decorated function is ``function(Y, scores or decisions, conventions="default") -> float``.

    Raises
    ------
    MetricError
        If the name is taken, an argument is unknown, or the docstring does not begin with "Return the".
    """

    def define(formula: Formula) -> Callable[..., float]:
        name, doc = formula.__name__, inspect.getdoc(formula) or ""
        _check(name, doc, direction, needs, skips, conventions)
        function = _public_function(formula, needs)
        definition = doc.partition("\n\n")[0].replace("\n", " ").removeprefix(_SUMMARY).rstrip(".")
        made = Metric(
            name, title, direction, 0.0, high, needs, skips, conventions, definition, source, function, formula
        )
        function.__doc__ = _document(made, doc)
        _DEFINED[name] = made
        if in_score_all:
            _SCORED[name] = made
        return function

    return define


def _check(name: str, doc: str, direction: str, needs: str, skips: str | None, conventions: tuple[str, ...]) -> None:
    if name in _DEFINED:
        raise MetricError(f"metric {name!r} is defined already, in {_DEFINED[name].function.__module__}")
    if not doc.startswith(_SUMMARY):
        raise MetricError(f"metric {name!r}: the docstring must begin with {_SUMMARY.strip()!r} and a definition")
    choices: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
        ("direction", direction, get_args(Direction)),
        ("needs", needs, get_args(Needs)),
        ("skips", skips, ("rows", "labels", None)),
        *(("conventions", field, tuple(field.name for field in fields(Conventions))) for field in conventions),
    )
    for argument, value, allowed in choices:
        if value not in allowed:
            raise MetricError(f"metric {name!r}: {argument} must be one of {allowed}, got {value!r}")


def _public_function(formula: Formula, needs: Needs) -> Callable[..., float]:
    """Return the function of matrices that a formula of counts or ranks amounts to."""

    def of_decisions(Y: Any, decisions: Any, conventions: str | Conventions = "default") -> float:
        counts = count_decisions(LabelSets(Y), Decisions(decisions))
        return DEFINED[formula.__name__].value(counts, resolve(conventions)).value

    def of_scores(Y: Any, scores: Any, conventions: str | Conventions = "default") -> float:
        chosen = resolve(conventions)
        return DEFINED[formula.__name__].value(Ranking(LabelSets(Y), Scores(scores), chosen), chosen).value

    function = of_decisions if needs == "decisions" else of_scores
    function.__name__ = function.__qualname__ = formula.__name__
    function.__module__ = formula.__module__
    return function


def _document(made: Metric, doc: str) -> str:
    """Return the docstring of the public function: that of the formula with the sections common to all metrics."""
    text, examples, code = doc.partition(_EXAMPLES)
    rules = ", ".join(f"``{field}``" for field in made.conventions)
    sections = _SECTIONS.format(
        needs=made.needs,
        what=_WHAT[made.needs],
        conventions=f"Those that matter: {rules}." if rules else "The value is the same under all of them.",
        low=f"{made.low:g}",
        high="the number of labels" if made.high == float("inf") else f"{made.high:g}",
        better="larger" if made.direction == "max" else "smaller",
        source=made.source,
    )
    return f"{text.strip()}\n\n{sections}\n{examples}{code}".rstrip() + "\n"
