"""Metric conventions: rules for empty sets, ties, degenerate rows and offsets, and the presets of other systems.

Two systems report different numbers for the same predictions because their rules differ. Each rule is one field of
:class:`Conventions`; a preset is one value of it. One rule of another system is no field: MEKA's order of tied labels
in ranking loss, see :func:`preset`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args, get_type_hints

from multilab.metrics.errors import MetricError

Ties = Literal["max", "average", "higher_index", "lower_index"]
TopTies = Literal["any", "all", "higher_index", "lower_index"]
Degenerate = Literal["skip", "zero", "one", "error"]


@dataclass(frozen=True)
class Conventions:
    """Complete set of metric conventions; the field defaults are the preset ``default``.

    The value of an undefined ratio (the ``*_empty`` fields of the decision metrics) is 0, 1 or
    ``nan``; ``nan`` drops the row or label from the mean, and makes a micro average ``nan``.

    Among the tie rules, ``max`` gives every tied label the worst rank of the tie (in ranking loss a tie is then a full
    error), ``average`` gives it the mean rank (half an error), and ``higher_index`` and ``lower_index`` rank the tied
    label with the higher or lower column index better.

    Parameters
    ----------
    decision : {">=", ">"}
        A label is predicted when its score is at least, or above, the threshold.
    jaccard_both_empty, example_both_empty : float
        Value of a row with neither true nor predicted labels, in Jaccard; in example precision, recall and F1.
    one_empty : float
        Precision if only the predicted set is empty, and recall if only the true set is (rows and labels).
        Jaccard and F1 are 0 there under every convention.
    macro_both_empty, micro_both_empty : float
        Precision, recall and F1 of a label, or of the full matrix, with nothing true and nothing predicted.
    ranking_loss_ties, average_precision_ties, coverage_ties : Ties
        How a relevant label tied with others is ranked.
    ranking_loss_degenerate : {"skip", "zero", "one", "error"}
        A row without relevant or without irrelevant labels is left out, counts 0 or 1, or is refused.
    average_precision_empty, one_error_empty : {"skip", "zero", "one", "error"}
        What a row without relevant labels counts.
    coverage_empty : {"skip", "zero", "minus_one", "error"}
        What a row without relevant labels counts. ``minus_one`` equals subtracting 1 from the mean of 1-based coverage.
        In 1-based coverage, ``zero`` and ``minus_one`` count 0.
    coverage_offset : {0, 1}
        Best possible value of ``coverage`` is the number of relevant labels minus 1, or that number.
    coverage_normalised : bool
        Whether ``coverage`` is divided by the number of labels.
    one_error_ties : {"any", "all", "higher_index", "lower_index"}
        Several labels with the highest score are correct if any is relevant, if all are, or if the one with the
        higher or lower index is.
    skip_full_rows : bool
        Whether rows with every label relevant are left out of average precision and one-error.
    auc_one_class : {"skip", "nan", "error"}
        A label with one class only is left out of macro AUC, makes it ``nan``, or is refused.
    auc_ties : {0.0, 0.5, 1.0}
        Value of a tie between a positive and a negative in AUC.
    label_average_precision_ties : Ties
        The same as ``average_precision_ties``, for the rows of a label; the index is then that of the row.
    label_average_precision_empty : {"skip", "zero", "nan", "error"}
        What a label without positives counts in macro-averaged average precision.

    Raises
    ------
    MetricError
        If the value of a field is not allowed.

    Examples
    --------
    >>> from multilab.metrics import Conventions, ranking_loss
    >>> ranking_loss([[1, 0]], [[0.5, 0.5]], Conventions(ranking_loss_ties="average"))
    0.5
    """

    decision: Literal[">=", ">"] = ">="
    jaccard_both_empty: float = 1.0
    example_both_empty: float = 1.0
    one_empty: float = 0.0
    macro_both_empty: float = 0.0
    micro_both_empty: float = 0.0
    ranking_loss_ties: Ties = "max"
    ranking_loss_degenerate: Degenerate = "skip"
    average_precision_ties: Ties = "max"
    average_precision_empty: Degenerate = "skip"
    coverage_ties: Ties = "max"
    coverage_empty: Literal["skip", "zero", "minus_one", "error"] = "skip"
    coverage_offset: Literal[0, 1] = 0
    coverage_normalised: bool = False
    one_error_ties: TopTies = "any"
    one_error_empty: Degenerate = "skip"
    skip_full_rows: bool = False
    auc_one_class: Literal["skip", "nan", "error"] = "skip"
    auc_ties: float = 0.5
    label_average_precision_ties: Ties = "max"
    label_average_precision_empty: Literal["skip", "zero", "nan", "error"] = "skip"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            allowed = allowed_values()[field.name]
            if value not in allowed and not (value != value and math.nan in allowed):
                choices = ", ".join(repr(choice) for choice in allowed)
                raise MetricError(f"Conventions: {field.name} is {value!r}; allowed: {choices}")


@functools.cache
def allowed_values() -> dict[str, tuple[Any, ...]]:
    """Return the values that each field may have, in the order of the fields."""
    of_type = {bool: (False, True), float: (0.0, 1.0, math.nan)}
    types = get_type_hints(Conventions)
    return {name: get_args(hint) or of_type[hint] for name, hint in types.items()} | {"auc_ties": (0.0, 0.5, 1.0)}


PRESETS: Mapping[str, Conventions] = MappingProxyType(
    {
        "default": Conventions(),
        # The conventions of the reference results. Full rows count 0 in their ranking loss (as the values on flags
        # show, which has two); rows without labels also count 0 there and in coverage, and are errors in one-error.
        "uniform": Conventions(
            ranking_loss_ties="average",
            ranking_loss_degenerate="zero",
            coverage_empty="zero",
            one_error_ties="lower_index",
            one_error_empty="one",
        ),
        # scikit-learn 1.9.1 with zero_division=0. It has no one-error: argmax of NumPy, every row counts.
        "sklearn": Conventions(
            jaccard_both_empty=0.0,
            example_both_empty=0.0,
            ranking_loss_degenerate="zero",
            average_precision_empty="one",
            coverage_empty="zero",
            coverage_offset=1,
            one_error_ties="lower_index",
            one_error_empty="one",
            auc_one_class="nan",
            label_average_precision_empty="zero",
        ),
        "mulan": Conventions(
            macro_both_empty=1.0,
            micro_both_empty=1.0,
            ranking_loss_ties="higher_index",
            ranking_loss_degenerate="zero",
            average_precision_ties="higher_index",
            coverage_ties="higher_index",
            coverage_empty="zero",
            one_error_ties="higher_index",
            one_error_empty="one",
            auc_one_class="nan",
            label_average_precision_ties="lower_index",
        ),
        # MEKA has neither example precision and recall nor coverage. They follow its nearest relatives:
        # both-empty counts 0 as in its example F1, coverage is 0-based with the worst rank of a tie as in its
        # average precision and an empty row counted 0 as in its ranking loss. Ties in ranking loss: see preset().
        "meka": Conventions(
            example_both_empty=0.0,
            ranking_loss_ties="higher_index",
            ranking_loss_degenerate="zero",
            average_precision_empty="one",
            coverage_empty="zero",
            one_error_ties="lower_index",
            one_error_empty="one",
            auc_one_class="nan",
            label_average_precision_empty="nan",
        ),
        # The MLDF code: decision by >, ascending argsort (of tied labels the higher index ranks better),
        # coverage divided by the number of labels after 1 was subtracted from the mean. Its micro F1 fails on 0/0,
        # which is nan here; metrics that it lacks are those of the default.
        "lamda": Conventions(
            decision=">",
            micro_both_empty=math.nan,
            ranking_loss_degenerate="zero",
            average_precision_ties="higher_index",
            average_precision_empty="zero",
            coverage_ties="higher_index",
            coverage_empty="minus_one",
            coverage_normalised=True,
            one_error_ties="lower_index",
            one_error_empty="one",
        ),
        # The MATLAB files behind the tables of the ML-EKELM and LWMF papers.
        "matlab": Conventions(
            average_precision_ties="higher_index",
            coverage_ties="higher_index",
            coverage_empty="minus_one",
            skip_full_rows=True,
        ),
    }
)


def preset(name: str, **changes: Any) -> Conventions:
    """Return a named set of conventions, optionally with single fields changed.

    Parameters
    ----------
    name : str
        One of :data:`PRESETS`: default, uniform, sklearn, mulan, meka, lamda, matlab.
    **changes
        Fields of :class:`Conventions` that differ from the preset.

    Returns
    -------
    Conventions

    Notes
    -----
    With ``meka`` the ranking loss need not be MEKA's for rows with a relevant and an irrelevant label tied. MEKA orders
    the labels of a row by Weka's ``Utils.sort``, which is not stable: the order of tied labels follows from the steps
    of that sort. The preset ranks the tied label with the higher index better, as Mulan's stable sort does; on short
    rows both orders agree. On birds the scores of binary relevance have ranking loss .1778 in MEKA, .1767 in Mulan and
    here. No other metric of the preset depends on that sort.

    Raises
    ------
    MetricError
        If the preset or a field is unknown, or a field's value is not allowed.

    Examples
    --------
    >>> from multilab.metrics import preset
    >>> preset("mulan").ranking_loss_ties
    'higher_index'
    >>> preset("mulan", auc_one_class="skip").auc_one_class
    'skip'
    """
    if name not in PRESETS:
        raise MetricError(f"conventions {name!r} are unknown; presets: {', '.join(PRESETS)}")
    unknown = sorted(set(changes) - {field.name for field in fields(Conventions)})
    if unknown:
        raise MetricError(f"Conventions has no field {unknown[0]!r}; see multilab.metrics.Conventions")
    return replace(PRESETS[name], **changes) if changes else PRESETS[name]


def resolve(conventions: str | Conventions) -> Conventions:
    """Return the conventions of a preset's name; conventions are returned unchanged."""
    if isinstance(conventions, Conventions):
        return conventions
    if isinstance(conventions, str):
        return preset(conventions)
    raise MetricError(f"conventions must be a preset name or Conventions, not {type(conventions).__name__}")
