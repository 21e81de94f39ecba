"""Numbers of committed results in texts: ``{{ number("C4.5", "time", "slashdot") }}``, filled in when a page is built.

Between the braces stands a Jinja expression of the functions of :class:`Results`. The texts of a paper's YAML files and
its page in the documentation have them, so that a number measured by us is never typed. ``require`` lets a sentence say
what it depends on: ``{{ require(won("C12", "l1 against br") > lost("C12", "l1 against br")) }}MLWSE-L1 is ahead``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from multilab.claims.agreement import MethodAgreement, agreement_by_method
from multilab.claims.errors import ClaimsError
from multilab.claims.pairs import balance_of
from multilab.core import read_json
from multilab.core.messages import did_you_mean
from multilab.statistics import StatisticsError

_EXPRESSION = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)


@dataclass(frozen=True)
class Results:
    """Committed results of a study, for the texts on them.

    Attributes
    ----------
    folder : Path
        The folder ``reports/<study>``.
    """

    folder: Path

    def fill(self, text: str, where: str = "", strict: bool = True) -> str:
        """Return a text with its placeholders filled in; ``where`` says whose text it is.

        Not ``strict``, as on the page of a study that is being run, what cannot be filled in is a question mark.

        Raises
        ------
        ClaimsError
            If a placeholder is no expression, names what is not there, or requires what is not so.
        """

        def value(match: re.Match[str]) -> str:
            try:
                return self._value(match[1].strip(), where)
            except ClaimsError:
                if strict:
                    raise
                return "(?)"

        return _EXPRESSION.sub(value, text)

    def number(self, id: str, *path: str) -> Any:
        """Return a number of a claim, counterfactual or erratum: ``number("C4.5", "time", "slashdot")``.

        Raises
        ------
        ClaimsError
            If there is none.
        """
        value: Any = self._entry(id).get("numbers") or {}
        for name in path:
            if not isinstance(value, Mapping) or name not in value:
                known = list(value) if isinstance(value, Mapping) else []
                there = did_you_mean(name, known) or f"; there are {', '.join(map(str, known))}"
                raise ClaimsError(f"{id} has no number {name!r}{there}")
            value = value[name]
        return value

    def won(self, id: str, *path: str) -> int:
        """Return the number of cells won, from a number such as ``26-34``."""
        return self._pair(id, *path)[0]

    def lost(self, id: str, *path: str) -> int:
        """Return the number of cells lost, from a number such as ``26-34``."""
        return self._pair(id, *path)[1]

    def outcome(self, id: str) -> str:
        """Return the outcome of a claim or counterfactual."""
        return str(self._entry(id)["outcome"])

    def program_outcome(self, id: str, program: str) -> str:
        """Return the outcome of a claim on the columns of a program."""
        return str(self._entry(id)["programs"][program]["outcome"])

    def holds_for(self, id: str) -> str:
        """Return the limits for which a sentence holds: ``factors of 2.574 and more``."""
        return str(self._entry(id)["holds_for"])

    def share(self, id: str) -> str:
        """Return how many parts of a claim hold: ``3 of 5``."""
        kept, parts = self._entry(id)["share"]
        return f"{kept} of {parts}"

    def core_hours(self, id: str) -> float:
        """Return the core-hours that would decide an open claim."""
        return float(self._entry(id)["needs"]["core_hours"])

    def agreement(self, method: str) -> MethodAgreement:
        """Return how far a published method's cells are from ours: ``agreement("imldf").agree`` of ``.comparable``.

        Raises
        ------
        ClaimsError
            If no published method has this name.
        """
        if method not in self._agreement:
            raise ClaimsError(f"no published method is called {method!r}{did_you_mean(method, self._agreement)}")
        return self._agreement[method]

    def gap(self, method: str, column: str) -> float:
        """Return the median of |ours - printed| / |printed| over a published method's results, ours of any column."""
        from multilab.statistics.result_files import read_table

        cells = read_table(self.folder / "cells.csv", ["group"], text=True)
        rows: Any = cells[(cells["group"] == "result") & (cells["method"] == method)].itertuples()
        ours = ((self.mean(column, row.our_metric, row.dataset), float(row.printed_mean)) for row in rows)
        return float(np.median([abs(value - printed) / abs(printed) for value, printed in ours]))

    def mean(self, method: str, metric: str, dataset: str | None = None) -> float:
        """Return the mean of a column by a metric, over the datasets or on one of them.

        Raises
        ------
        ClaimsError
            If the study has no such results.
        """
        means = self._means
        rows = means[(means["method"] == method) & (means["metric"] == metric)]
        rows = rows if dataset is None else rows[rows["dataset"] == dataset]
        if rows.empty:
            raise ClaimsError(f"no result of {method} by {metric}" + (f" on {dataset}" if dataset else ""))
        return float(rows["mean"].mean())

    def require(self, condition: bool) -> str:
        """Return an empty text; refuse a text whose condition is false.

        Raises
        ------
        ClaimsError
            If the condition does not hold.
        """
        if not condition:
            raise ClaimsError("is no longer true; change the sentence")
        return ""

    def _value(self, expression: str, where: str) -> str:
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        names = [name for name in vars(type(self)) if not name.startswith("_") and name not in ("fill", "folder")]
        try:
            sandbox = ImmutableSandboxedEnvironment(undefined=StrictUndefined)  # of texts in a study or in claims
            compiled = sandbox.compile_expression(expression, undefined_to_none=False)
            value = compiled(**{name: getattr(self, name) for name in names})
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
        except (TemplateError, ClaimsError, StatisticsError, KeyError, TypeError, OSError) as error:
            start = f"{where}: " if where else ""
            raise ClaimsError(f"{start}{{{{ {' '.join(expression.split())} }}}}: {error}") from None
        return text

    def _entry(self, id: str) -> Mapping[str, Any]:
        if id not in self._entries:
            raise ClaimsError(f"no claim, counterfactual or erratum is called {id!r}{did_you_mean(id, self._entries)}")
        return self._entries[id]

    def _pair(self, id: str, *path: str) -> tuple[int, int]:
        balance = balance_of(str(self.number(id, *path)))
        if balance is None:
            raise ClaimsError(f"{self.number(id, *path)!r} has no cells won and lost")
        return balance

    @functools.cached_property
    def _entries(self) -> dict[str, Mapping[str, Any]]:
        claims, ran = read_json(self.folder / "claims.json"), read_json(self.folder / "counterfactuals.json")
        return {one["id"]: one for one in (*claims, *ran["counterfactuals"])} | ran["errata"]

    @functools.cached_property
    def _agreement(self) -> dict[str, MethodAgreement]:
        from multilab.statistics.result_files import read_table

        cells = read_table(self.folder / "cells.csv", ["verdict", "group"], text=True)
        return {one.method: one for one in agreement_by_method(cells)}

    @functools.cached_property
    def _means(self) -> Any:
        from multilab.claims.verdicts import summarised
        from multilab.statistics.result_files import read_scores

        return summarised(read_scores(self.folder, extra=True))
