"""Verdicts on the claims of a paper: the rule, and the table that a notebook shows first."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import pandas as pd

from multilab.printed import PaperError
from multilab.statistics import PairedComparison

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
NOT_DECIDED = "not decided"
OUTCOMES = (REPRODUCED, NOT_REPRODUCED, NOT_DECIDED)
"""Outcomes of a claim."""


def verdict(
    comparisons: PairedComparison | Iterable[PairedComparison | str],
    parts: Literal["all", "most"] = "all",
    alpha: float = 0.05,
) -> str:
    """Return the outcome of a claim that the first method of each comparison is better than the second.

    Parameters
    ----------
    comparisons : PairedComparison or iterable of PairedComparison or str
        One comparison, or the parts of a claim; an outcome stands for itself.
    parts : {"all", "most"}
        What the claim says of its parts: "all" or "most", which is more than half of them.
    alpha : float
        Level of the tests.

    Returns
    -------
    str
        Of one comparison: *reproduced* if the difference has the sign of the claim and p is at most ``alpha``;
        *not decided* if no outcome could have passed; else *not reproduced*. Of all parts: *reproduced* if all are,
        *not reproduced* if one is not, else *not decided*. Of most parts: *reproduced* if more than half are,
        *not reproduced* if that can no longer be, else *not decided*.

    Raises
    ------
    PaperError
        If there is no comparison.

    Examples
    --------
    >>> import pandas as pd
    >>> from multilab.papers import verdict
    >>> from multilab.statistics import compare_pair
    >>> table = pd.DataFrame({"ours": [0.8, 0.7, 0.9, 0.6, 0.8, 0.7], "theirs": [0.7, 0.6, 0.8, 0.5, 0.7, 0.6]})
    >>> verdict(compare_pair(table, "ours", "theirs", "max"))
    'reproduced'
    >>> verdict(compare_pair(table.head(5), "ours", "theirs", "max"))  # five datasets are too few
    'not decided'
    """
    if isinstance(comparisons, PairedComparison):
        comparisons = [comparisons]
    outcomes = [one if isinstance(one, str) else _outcome(one, alpha) for one in comparisons]
    if not outcomes:
        raise PaperError("a verdict needs at least one comparison")
    kept, lost = outcomes.count(REPRODUCED), outcomes.count(NOT_REPRODUCED)
    needed = len(outcomes) if parts == "all" else len(outcomes) // 2 + 1
    if kept >= needed:
        return REPRODUCED
    return NOT_REPRODUCED if len(outcomes) - lost < needed else NOT_DECIDED


def _outcome(comparison: PairedComparison, alpha: float) -> str:
    if comparison.least_p > alpha:
        return NOT_DECIDED
    return REPRODUCED if comparison.difference > 0 and comparison.p <= alpha else NOT_REPRODUCED


class Claims:
    """The table of a paper's claims. A notebook shows it first; :meth:`decide` fills it.

    The first claim is the paper's main one. In a notebook the table is an output of the first cell, which every
    decision updates.

    Attributes
    ----------
    table : DataFrame
        Columns claim, sentence, verdict, number and why.
    """

    def __init__(self) -> None:
        self._rows: list[dict[str, str]] = []
        self._handle: Any = None

    @property
    def table(self) -> pd.DataFrame:
        """The claims decided so far."""
        return pd.DataFrame(self._rows, columns=["claim", "sentence", "verdict", "number", "why"])

    def decide(self, claim: str, sentence: str, outcome: str, number: str, why: str = "") -> str:
        """Add a claim, show the table again, and return the outcome.

        Parameters
        ----------
        claim : str
            Name of the claim: the anchor of its section in the notebook.
        sentence : str
            The claim in a few words.
        outcome : str
            One of *reproduced*, *not reproduced* and *not decided*.
        number : str
            The number that decides.
        why : str
            The reason in a line; of a claim that is not decided it is needed.

        Raises
        ------
        PaperError
            If the outcome is none of these, a reason is missing, or the claim was decided before.
        """
        if outcome not in OUTCOMES:
            raise PaperError(f"claim {claim}: the outcome must be one of {', '.join(OUTCOMES)}; got {outcome!r}")
        if outcome == NOT_DECIDED and not why:
            raise PaperError(f"claim {claim}: say why it is not decided")
        if any(row["claim"] == claim for row in self._rows):
            raise PaperError(f"claim {claim}: it is decided already; run the notebook from its first cell")
        row = {"claim": claim, "sentence": sentence, "verdict": outcome, "number": number, "why": why}
        self._rows.append(row)
        self.show()
        return outcome

    def show(self) -> None:
        """Show the table, or show it again where it is."""
        from IPython.display import display

        content = {"text/html": self._repr_html_(), "text/plain": self.table.to_string(index=False)}
        options: dict[str, Any] = {"metadata": {"claims": self._rows}, "raw": True}
        if self._handle is None:
            self._handle = display(content, display_id=True, **options)
        else:
            self._handle.update(content, **options)

    def _repr_html_(self) -> str:
        if not self._rows:
            return ""
        main, counts = self._rows[0], self.table["verdict"].value_counts()
        tally = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if name in counts)
        rows = "".join(map(_html_row, self._rows))
        return (
            f"<p><b>Verdict on the main claim: {main['verdict']}.</b> {html.escape(main['number'])}</p>"
            f"<p>{len(self._rows)} claims: {tally}.</p>"
            '<table class="claims"><thead><tr><th>claim</th><th>verdict</th><th>number</th><th>why</th></tr></thead>'
            f"<tbody>{rows}</tbody></table>"
        )


def _html_row(row: dict[str, str]) -> str:
    cells: Sequence[str] = [
        f'<a href="#{row["claim"]}">{html.escape(row["sentence"])}</a>',
        f"<b>{row['verdict']}</b>",
        html.escape(row["number"]),
        html.escape(row["why"]),
    ]
    return "<tr>" + "".join(f'<td style="text-align: left">{cell}</td>' for cell in cells) + "</tr>"
