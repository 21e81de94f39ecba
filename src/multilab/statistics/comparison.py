"""Comparison of methods over datasets by one metric: the single result that tables and diagrams read."""

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
from multilab.statistics.signed_rank import BayesPair, SignedRankPair, bayesian_signed_rank, wilcoxon_holm


@dataclass(frozen=True)
class Comparison:
    """Comparison of k methods on n datasets by one metric.

    What cannot be computed (fewer than two methods or datasets) is ``None``, and ``notes`` has the reason.

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
        Whether ``p < alpha``: some methods differ.
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
        Empty without ``rope``, which is half the width of the region of practical equivalence.
    notes : tuple of str
        Unfinished cells, and statistics that do not exist.
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
        """Return lists, dicts, strings and unrounded numbers for JSON; an infinite F becomes "inf"."""
        plain = asdict(self)
        plain["F"] = "inf" if self.F is not None and math.isinf(self.F) else self.F
        return _lists(plain)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Comparison:
        """Return the comparison from the output of :meth:`to_dict`; unknown keys are ignored.

        Raises
        ------
        StatisticsError
            If a key without default is missing, or a record has wrong keys.
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


def compare_methods(
    table: pd.DataFrame,
    direction: str,
    alpha: float = 0.05,
    control: str | None = None,
    *,
    metric: str = "",
    tie_correction: bool = True,
    rope: float | None = None,
    seed: int = 0,
    pairs: bool = True,
) -> Comparison:
    """Compare methods over datasets by one metric.

    Parameters
    ----------
    table : DataFrame of shape (n datasets, k methods)
        Unrounded means (:func:`~multilab.statistics.summarise`); NaN = did not finish, ranked last.
    direction : {"min", "max"}
        Whether small or large values are good.
    alpha : float
        Significance level of all tests, in (0, 1).
    control : str, optional
        Name of the method the others are compared with (Bonferroni-Dunn, Wilcoxon, Bayes).
    metric : str
        Name of the metric, for the result.
    tie_correction : bool
        Whether to correct Friedman's statistic for ties; False reproduces the F_F that the papers print.
    rope : float, optional
        Half the width of the region of practical equivalence. If None, there is no Bayesian signed-rank test.
    seed : int
        Seed of the Bayesian test.
    pairs : bool
        Whether to test pairs of methods by Nemenyi's and Wilcoxon's tests, which takes long for many methods.

    Returns
    -------
    Comparison
        The comparison. With one method or one dataset, what cannot be computed is ``None``.

    Raises
    ------
    StatisticsError
        If a value of the table or an argument is not allowed.

    Notes
    -----
    The tests follow J. Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.4, 0.4], "c": [0.3, 0.3, 0.5]}, ["x", "y", "z"])
    >>> from multilab.statistics import compare_methods
    >>> comparison = compare_methods(table, "min", metric="ranking_loss")
    >>> comparison.ranks
    {'a': 1.0, 'b': 2.3333333333333335, 'c': 2.6666666666666665}
    >>> round(comparison.F, 3), round(comparison.p, 3), comparison.rejected
    (7.0, 0.049, True)
    """
    if not 0 < alpha < 1:
        raise StatisticsError(f"alpha must be between 0 and 1, got {alpha!r}")
    plain = check_table(table, direction)
    if control is not None and control not in plain.columns:
        raise StatisticsError(f"control {control!r} is not a method of the table; there are {', '.join(plain.columns)}")
    by_dataset = rank_rows(plain, direction)
    n, k = plain.shape
    ranks = {name: float(by_dataset[name].mean()) for name in plain.columns} if n else {}
    results: dict[str, Any] = {}
    notes = [_unfinished(plain)] if plain.isna().to_numpy().any() else []
    if k < 2 or n < 1:
        notes.append(f"{n} dataset(s) and {k} method(s): nothing to compare")
    else:
        results |= _rank_tests(by_dataset.to_numpy(), ranks, alpha, control, tie_correction, pairs, notes)
        if pairs:
            results["wilcoxon"] = wilcoxon_holm(plain, direction, alpha, control)
        if rope is not None:
            results |= {"rope": float(rope), "bayes": bayesian_signed_rank(plain, direction, rope, control, seed)}
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
        **results,
    )


def _rank_tests(
    by_dataset: np.ndarray,
    ranks: dict[str, float],
    alpha: float,
    control: str | None,
    tie_correction: bool,
    pairs: bool,
    notes: list[str],
) -> dict[str, Any]:
    """Return the results that depend on ranks only, and add to ``notes`` what does not exist."""
    n, k = by_dataset.shape
    results: dict[str, Any] = {}
    if n >= 2:
        test = iman_davenport(friedman(by_dataset, tie_correction), n, k, alpha)
        results |= asdict(test) | {"rejected": test.p < alpha}
        if math.isinf(test.F):
            notes.append("F is infinite: all datasets rank the methods alike")
    else:
        notes.append("one dataset: Friedman's test does not exist")
    cd, cd_control = nemenyi_cd(k, n, alpha), bonferroni_dunn_cd(k, n, alpha)
    results |= {
        "q_nemenyi": nemenyi_q(k, alpha),
        "cd_nemenyi": cd,
        "q_bonferroni_dunn": bonferroni_dunn_q(k, alpha),
        "cd_bonferroni_dunn": cd_control,
        "groups": cliques(ranks, cd),
        "nemenyi": nemenyi_pairs(ranks, n, cd) if pairs else (),
    }
    if cd > k - 1:
        notes.append(f"{n} dataset(s) are too few for Nemenyi's test to separate any of {k} methods")
    if control is not None:
        far = [m for m in ranks if m != control and abs(ranks[m] - ranks[control]) >= cd_control]
        results["beyond_control"] = tuple(far)
    return results


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
