"""One call, one result: everything a table, a diagram or a claim may say about methods over datasets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd

from multilab.statistics.errors import StatisticsError
from multilab.statistics.omnibus import friedman, iman_davenport
from multilab.statistics.posthoc import (
    RankPair,
    bonferroni_dunn_cd,
    bonferroni_dunn_q,
    cliques,
    nemenyi_cd,
    nemenyi_pairs,
    nemenyi_q,
)
from multilab.statistics.ranks import check_table, rank_rows
from multilab.statistics.signedrank import BayesPair, SignedRankPair, bayesian_signed_rank, wilcoxon_holm

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """How k methods compare on n datasets by one metric.

    What cannot be computed (fewer than two methods or datasets) is ``None``, and ``notes`` says why.

    Attributes
    ----------
    metric, direction : str
        The metric's key, and "min" or "max".
    alpha : float
        Level of every decision below.
    tie_correction : bool
        Whether ``chi2`` is corrected for ties.
    control : str or None
        The method the others are compared with, if any.
    datasets, methods : tuple of str
        Rows and columns of the table compared; ``n`` and ``k`` are their numbers.
    dataset_ranks : dict of str to dict of str to float
        Rank of each method within each dataset; ties averaged, unfinished last.
    ranks : dict of str to float
        Average ranks.
    chi2, chi2_p, F, F_crit, p : float or None
        Friedman's statistic and p; Iman and Davenport's F, its critical value and p. ``F`` is infinite when
        all datasets rank the methods alike.
    rejected : bool or None
        Whether ``p < alpha``, that is ``F > F_crit``: some methods differ.
    q_nemenyi, cd_nemenyi, q_bonferroni_dunn, cd_bonferroni_dunn : float or None
        Quantiles and critical differences of average ranks.
    groups : tuple of tuple of str
        Maximal groups that Nemenyi's test does not separate: the bars of the diagram.
    nemenyi : tuple of RankPair
        All pairs by average rank.
    beyond_control : tuple of str
        Methods that Bonferroni-Dunn's test separates from the control.
    wilcoxon : tuple of SignedRankPair
        Signed-rank tests with Holm's correction; against the control if there is one, else all pairs.
    bayes : tuple of BayesPair
        Filled when a rope was given; ``rope`` is half its width.
    notes : tuple of str
        What a reader must know: unfinished cells, statistics that do not exist.
    """

    metric: str
    direction: str
    alpha: float
    tie_correction: bool
    control: str | None
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    n: int
    k: int
    dataset_ranks: dict[str, dict[str, float]]
    ranks: dict[str, float]
    chi2: float | None = None
    chi2_p: float | None = None
    F: float | None = None
    F_crit: float | None = None
    p: float | None = None
    rejected: bool | None = None
    q_nemenyi: float | None = None
    cd_nemenyi: float | None = None
    q_bonferroni_dunn: float | None = None
    cd_bonferroni_dunn: float | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    nemenyi: tuple[RankPair, ...] = ()
    beyond_control: tuple[str, ...] = ()
    wilcoxon: tuple[SignedRankPair, ...] = ()
    rope: float | None = None
    bayes: tuple[BayesPair, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dicts, strings and unrounded numbers that JSON can hold; F may be "inf"."""
        plain = asdict(self)
        plain["F"] = "inf" if self.F is not None and math.isinf(self.F) else self.F
        return _lists(plain)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Comparison:
        """Return the comparison that :meth:`to_dict` wrote, equal to the first; unknown keys are ignored.

        Raises
        ------
        StatisticsError
            If a key that has no default is missing, or a record has the wrong keys.
        """
        known = {f.name: plain[f.name] for f in fields(cls) if f.name in plain}
        records = {"nemenyi": RankPair, "wilcoxon": SignedRankPair, "bayes": BayesPair}
        try:
            for name, record in records.items():
                known[name] = tuple(record(**item) for item in known.get(name, ()))
            known["groups"] = tuple(tuple(group) for group in known.get("groups", ()))
            for name in ("datasets", "methods", "beyond_control", "notes"):
                known[name] = tuple(known.get(name, ()))
            if known.get("F") is not None:
                known["F"] = float(known["F"])
            return cls(**known)
        except TypeError as error:
            raise StatisticsError(f"not a stored comparison: {error}") from error


def compare(
    table: pd.DataFrame,
    direction: str,
    alpha: float = 0.05,
    control: str | None = None,
    *,
    metric: str = "",
    tie_correction: bool = True,
    rope: float | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare methods over datasets by one metric.

    Parameters
    ----------
    table : DataFrame of shape (n datasets, k methods)
        Unrounded means (:func:`~multilab.statistics.summarise`); NaN = did not finish, ranked last.
    direction : {"min", "max"}
        Whether small or large values are good.
    alpha : float
        Level of all tests, in (0, 1).
    control : str, optional
        Name of the method the others are compared with (Bonferroni-Dunn, Wilcoxon, Bayes).
    metric : str
        Name to carry along.
    tie_correction : bool
        Correct Friedman's statistic for ties; False reproduces the papers' printed F_F.
    rope : float, optional
        Half the width of the region of practical equivalence; given, the Bayesian signed-rank test is run
        too.
    seed : int
        Seed of the Bayesian test.

    Returns
    -------
    Comparison
        Also for one method or one dataset; what does not exist then is ``None``.

    Raises
    ------
    StatisticsError
        For a table or an option that makes no sense.

    Notes
    -----
    The protocol of J. Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7.
    """
    if not 0 < alpha < 1:
        raise StatisticsError(f"alpha must lie between 0 and 1, not {alpha!r}")
    plain = check_table(table, direction)
    if control is not None and control not in plain.columns:
        raise StatisticsError(f"control {control!r} is not a method of the table; there are {', '.join(plain.columns)}")
    by_dataset = rank_rows(plain, direction)
    n, k = plain.shape
    ranks = {name: float(by_dataset[name].mean()) for name in plain.columns} if n else {}
    found: dict[str, Any] = {}
    notes = [_unfinished(plain)] if plain.isna().to_numpy().any() else []
    if k < 2 or n < 1:
        notes.append(f"{n} dataset(s) and {k} method(s): nothing to compare")
    else:
        found |= _rank_tests(by_dataset.to_numpy(), ranks, alpha, control, tie_correction, notes)
        found["wilcoxon"] = wilcoxon_holm(plain, direction, alpha, control)
        if rope is not None:
            found |= {
                "rope": float(rope),
                "bayes": bayesian_signed_rank(plain, direction, rope, control, seed),
            }
    return Comparison(
        metric=metric,
        direction=direction,
        alpha=float(alpha),
        tie_correction=tie_correction,
        control=control,
        datasets=tuple(plain.index),
        methods=tuple(plain.columns),
        n=n,
        k=k,
        dataset_ranks={d: {m: float(r) for m, r in row.items()} for d, row in by_dataset.to_dict("index").items()},
        ranks=ranks,
        notes=tuple(notes),
        **found,
    )


def _rank_tests(
    by_dataset: np.ndarray,
    ranks: dict[str, float],
    alpha: float,
    control: str | None,
    tie_correction: bool,
    notes: list[str],
) -> dict[str, Any]:
    """Return all that depends on ranks only, and add to ``notes`` what does not exist."""
    n, k = by_dataset.shape
    found: dict[str, Any] = {}
    if n >= 2:
        test = iman_davenport(friedman(by_dataset, tie_correction), n, k, alpha)
        found |= asdict(test) | {"rejected": test.p < alpha}
        if math.isinf(test.F):
            notes.append("F is infinite: all datasets rank the methods alike")
    else:
        notes.append("one dataset: Friedman's test does not exist")
    cd, cd_control = nemenyi_cd(k, n, alpha), bonferroni_dunn_cd(k, n, alpha)
    found |= {
        "q_nemenyi": nemenyi_q(k, alpha),
        "cd_nemenyi": cd,
        "q_bonferroni_dunn": bonferroni_dunn_q(k, alpha),
        "cd_bonferroni_dunn": cd_control,
        "groups": cliques(ranks, cd),
        "nemenyi": nemenyi_pairs(ranks, n, cd),
    }
    if cd > k - 1:
        notes.append(f"{n} dataset(s) are too few for Nemenyi's test to separate any of {k} methods")
    if control is not None:
        far = [m for m in ranks if m != control and abs(ranks[m] - ranks[control]) >= cd_control]
        found["beyond_control"] = tuple(far)
    return found


def _unfinished(plain: pd.DataFrame) -> str:
    cells: Iterable[tuple[int, int]] = np.argwhere(plain.isna().to_numpy())
    names = ", ".join(f"{plain.columns[j]} on {plain.index[i]}" for i, j in cells)
    return f"not finished, ranked last: {names}"


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(item) for item in value]
    return value
