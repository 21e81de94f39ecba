"""The rules behind a metric's name: empty sets, ties, degenerate rows, offsets; and the presets.

Two systems print different numbers for the same predictions because they settle these questions differently.
Every question is one field of :class:`Conventions`; a preset is one value of it. One rule of another system is no
field: MEKA's order of tied labels in ranking loss, see :func:`preset`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal

from multilab.metrics.errors import MetricError

Ties = Literal["max", "average", "higher_index", "lower_index"]
TopTies = Literal["any", "all", "higher_index", "lower_index"]
Degenerate = Literal["skip", "zero", "one", "error"]

_TIES = ("max", "average", "higher_index", "lower_index")
_TOP_TIES = ("any", "all", "higher_index", "lower_index")
_DEGENERATE = ("skip", "zero", "one", "error")
_ONE_CLASS = ("skip", "nan", "error")

_ALLOWED: dict[str, tuple[Any, ...]] = {
    "decision": (">=", ">"),
    "ranking_loss_ties": _TIES,
    "ranking_loss_degenerate": _DEGENERATE,
    "average_precision_ties": _TIES,
    "average_precision_empty": _DEGENERATE,
    "coverage_ties": _TIES,
    "coverage_empty": ("skip", "zero", "minus_one", "error"),
    "coverage_offset": (0, 1),
    "coverage_normalised": (False, True),
    "one_error_ties": _TOP_TIES,
    "one_error_empty": _DEGENERATE,
    "skip_full_rows": (False, True),
    "auc_one_class": _ONE_CLASS,
    "auc_ties": (0.0, 0.5, 1.0),
    "label_average_precision_ties": _TIES,
    "label_average_precision_empty": ("skip", "zero", "nan", "error"),
}


@dataclass(frozen=True)
class Conventions:
    """One complete set of metric conventions; the field defaults are the preset ``default``.

    A number that stands for an undefined ratio (the ``*_empty`` fields of the decision metrics) is 0, 1 or
    ``nan``; ``nan`` drops the row or label from the mean, and makes a micro average ``nan``.

    Tie rules: ``max`` gives every tied label the worst rank of the tie (in ranking loss a tie is then a
    full error), ``average`` the mean rank (half an error), ``higher_index``
    and ``lower_index`` rank the tied label with the higher or lower column index better.

    Parameters
    ----------
    decision : {">=", ">"}
        A label is predicted when its score is at least, or above, the threshold.
    jaccard_both_empty, example_both_empty : float
        Value of a row with neither true nor predicted labels, in Jaccard; in example precision, recall, F1.
    one_empty : float
        Precision where only the prediction is empty, and recall where only the truth is (rows and labels).
        Jaccard and F1 are 0 there under every convention.
    macro_both_empty, micro_both_empty : float
        Precision, recall and F1 of a label, or of the whole matrix, with nothing true and nothing predicted.
    ranking_loss_ties, average_precision_ties, coverage_ties : Ties
        How a relevant label tied with others is ranked.
    ranking_loss_degenerate : {"skip", "zero", "one", "error"}
        A row without relevant or without irrelevant labels: left out, counted 0 or 1, or refused.
    average_precision_empty, one_error_empty : {"skip", "zero", "one", "error"}
        A row without relevant labels.
    coverage_empty : {"skip", "zero", "minus_one", "error"}
        A row without relevant labels. ``minus_one`` is what subtracting 1 from the mean of 1-based coverage
        amounts to; both count 0 in 1-based coverage.
    coverage_offset : {0, 1}
        Best possible value of ``coverage`` is the number of relevant labels minus 1, or that number.
    coverage_normalised : bool
        Whether ``coverage`` is divided by the number of labels.
    one_error_ties : {"any", "all", "higher_index", "lower_index"}
        Of several labels with the highest score: right if any is relevant, if all are, or if the one with the
        higher or lower index is.
    skip_full_rows : bool
        Whether rows with every label relevant are left out of average precision and one-error.
    auc_one_class : {"skip", "nan", "error"}
        A label with one class only: left out of macro AUC, makes it ``nan``, or is refused.
    auc_ties : {0.0, 0.5, 1.0}
        What a tie between a positive and a negative counts in AUC.
    label_average_precision_ties : Ties
        The same as ``average_precision_ties`` down a column; the index is then that of the row.
    label_average_precision_empty : {"skip", "zero", "nan", "error"}
        A label without positives in macro-averaged average precision.

    Raises
    ------
    MetricError
        If a field holds a value it does not allow.
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
            allowed = _ALLOWED.get(field.name, (0.0, 1.0, math.nan))
            if value not in allowed and not (value != value and math.nan in allowed):
                choices = ", ".join(repr(choice) for choice in allowed)
                raise MetricError(f"Conventions: {field.name} is {value!r}; allowed: {choices}")


_DEFAULT = Conventions()

PRESETS: Mapping[str, Conventions] = MappingProxyType(
    {
        "default": _DEFAULT,
        # The set the reference results were measured with. Full rows count 0 in its ranking loss (its values
        # on flags, which has two, tell); rows without labels are treated alike there and in coverage, and are
        # errors in one-error.
        "uniform": replace(
            _DEFAULT,
            ranking_loss_ties="average",
            ranking_loss_degenerate="zero",
            coverage_empty="zero",
            one_error_ties="lower_index",
            one_error_empty="one",
        ),
        # scikit-learn 1.9.1 with zero_division=0. It has no one-error: numpy's argmax, every row counted.
        "sklearn": replace(
            _DEFAULT,
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
        "mulan": replace(
            _DEFAULT,
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
        "meka": replace(
            _DEFAULT,
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
        # coverage divided by the number of labels after 1 was taken from the mean. Its micro F1 fails on 0/0,
        # which is nan here; set measures it lacks are those of the default.
        "lamda": replace(
            _DEFAULT,
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
        "matlab": replace(
            _DEFAULT,
            average_precision_ties="higher_index",
            coverage_ties="higher_index",
            coverage_empty="minus_one",
            skip_full_rows=True,
        ),
    }
)


def preset(name: str, **changes: Any) -> Conventions:
    """Look up a named set of conventions, with single fields changed if wanted.

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
    """
    if name not in PRESETS:
        raise MetricError(f"conventions {name!r} are unknown; presets: {', '.join(PRESETS)}")
    unknown = sorted(set(changes) - {field.name for field in fields(Conventions)})
    if unknown:
        raise MetricError(f"Conventions has no field {unknown[0]!r}; see multilab.metrics.Conventions")
    return replace(PRESETS[name], **changes)


def resolve(conventions: str | Conventions) -> Conventions:
    """Turn a preset's name into its conventions; conventions pass through."""
    if isinstance(conventions, Conventions):
        return conventions
    if isinstance(conventions, str):
        return preset(conventions)
    raise MetricError(f"conventions must be a preset name or Conventions, not {type(conventions).__name__}")
