"""Evaluation of scores of models from elsewhere: metrics with intervals, thresholds, calibration, paired tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from multilab.comparison.board import board_of, summed
from multilab.comparison.decisions import CALIBRATION_METRICS, guarded_decisions, objective_of, tuned_name
from multilab.comparison.errors import ComparisonError
from multilab.comparison.score_files import LabelTable, in_order_of, like_probabilities, table_of
from multilab.core.digests import json_digest
from multilab.core.messages import unknown_name
from multilab.core.numbers import whole_number
from multilab.core.text import listed
from multilab.decision import DecisionRules
from multilab.decision.calibrated import beta_coefficients
from multilab.decision.rules import unit_scores
from multilab.metrics import bootstrap, bootstrap_difference, per_label
from multilab.metrics.bootstrap_intervals import label_f1_intervals
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import ALL_METRICS, Metric, all_defined, defined, title_of
from multilab.model_selection import IterativeStratifiedKFold
from multilab.statistics import Leaderboard, holm
from multilab.statistics.leaderboard import NAMED

__all__ = ["Evaluation", "evaluate"]

METRICS = (
    *("macro_f1", "micro_f1", "example_f1", "subset_accuracy", "hamming_loss"),
    *("ranking_loss", "macro_average_precision"),
)
_LABEL_BY_LABEL = ("macro_f1", "hamming_loss")  # objectives whose thresholds of a label need no other label
_BLOCK_CELLS = 2**24  # of a dense block of labels
_DENSE_CELLS = 2**24  # a larger sparse matrix stays sparse
_DRAWN_CELLS = 2**30  # cells x draws up to which metrics of scores, which are ranked again in each draw, have intervals
_DRAWN_LABELS = 2**23  # labels x draws up to which F1 of each label has an interval: 64 MB, and a second
_FEW_ROWS = 20


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Evaluation of one or several models on the same rows; ``str`` gives the summary.

    Attributes
    ----------
    board : Leaderboard
        Metrics on all rows, as one split. A model with tuned thresholds is the row ``<model> + thresholds``; the labels
        that decisions assign too often are in ``board.over_assigned``.
    values : DataFrame
        Columns model, metric, value, low, high: the metrics with bootstrap intervals over the rows.
    tests : DataFrame
        Columns model, against, metric, advantage, low, high, p, p_holm, differs: each further model against the first
        one by the first metric, by paired bootstrap. The advantage is positive where the model is better.
    gains : DataFrame
        Columns model, metric, gain, low, high, p: gain of cross-fitted thresholds over the model's own decisions.
    calibration : DataFrame
        Columns model, scores ("as predicted" or "beta"), metric, value: metrics of the probabilities before and after
        cross-fitted calibration.
    labels : dict of str to DataFrame
        `multilab.metrics.per_label` of each row of the board, with ``f1_low`` and ``f1_high``, the interval of F1; if
        there are thousands of labels, only the most frequent ones have an interval. ``threshold`` is on the scale of
        probabilities before calibration; in a row ``<model> + thresholds`` it was learned on all rows, as in ``rules``.
    rules : dict of str to DecisionRules
        Thresholds and calibration of each model that has scores, learned on all rows.
    left_out : dict of str to str
        Why a model has no thresholds.
    notes : tuple of str
    n_rows : int
    alpha : float
    """

    board: Leaderboard
    values: pd.DataFrame
    tests: pd.DataFrame
    gains: pd.DataFrame
    calibration: pd.DataFrame
    labels: dict[str, pd.DataFrame]
    rules: dict[str, DecisionRules]
    left_out: dict[str, str]
    notes: tuple[str, ...]
    n_rows: int
    alpha: float

    @property
    def models(self) -> tuple[str, ...]:
        """The models, without the rows of their thresholds."""
        return tuple(name for name in self.board.methods if name not in self.board.untuned)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables by name of their files."""
        labels = [table.assign(model=name) for name, table in self.labels.items()]
        return {
            "values": self.values,
            "tests": self.tests,
            "gains": self.gains,
            "calibration": self.calibration,
            "labels": pd.concat(labels, ignore_index=True),
        }

    def value(self, metric: str, model: str | None = None) -> float:
        """Return a metric of a row of the board, by default the row of the first model with its own decisions.

        Raises
        ------
        ComparisonError
            If the metric was not measured, or is undefined for the model.
        """
        name = model or self.models[0]
        rows = self.values[(self.values["model"] == name) & (self.values["metric"] == metric)]
        if not len(rows) or np.isnan(rows["value"].iloc[0]):
            measured = self.values.loc[(self.values["model"] == name) & self.values["value"].notna(), "metric"]
            raise ComparisonError(f"{name}: {unknown_name('metric with a value', metric, measured)}")
        return float(rows["value"].iloc[0])

    def sentences(self) -> list[str]:
        """Return what thresholds change, which labels are assigned too often, and how the models differ."""
        level = f"{100 * (1 - self.alpha):g} % interval"
        lines = []
        for row in self.gains.itertuples():
            shown = "shown" if row.low > 0 else "not shown to be more than chance"
            lines.append(
                f"{row.model}: cross-fitted thresholds change {title_of(row.metric)} by {row.gain:+.4f} "
                f"({level} of the gain {row.low:+.4f} to {row.high:+.4f}): a gain is {shown}."
            )
        lines += [f"{name}: no thresholds: {reason}." for name, reason in self.left_out.items()]
        for name, flagged in self.board.over_assigned.items():
            lines.append(f"{name}: labels assigned far too often: {listed([*map(str, flagged)], NAMED)}.")
        for row in self.tests.itertuples():
            verdict = "the difference is significant" if row.differs else "the two are not separated"
            lines.append(
                f"{row.model} against {row.against}: advantage in {title_of(row.metric)} {row.advantage:+.4f} "
                f"({level} {row.low:+.4f} to {row.high:+.4f}, p = {row.p_holm:.2g} after Holm's correction): {verdict}."
            )
        return lines

    def __str__(self) -> str:
        metrics = list(self.board.directions)
        table = self.board.table[metrics].map(lambda value: "-" if np.isnan(value) else f"{value:.4f}")
        first = self.values[self.values["metric"] == metrics[0]].set_index("model").reindex(table.index)
        table.insert(1, "interval", [f"{row.low:.3f} to {row.high:.3f}" for row in first.itertuples()])
        return "\n".join([table.rename_axis(None).to_string(), "", *self.sentences(), *self.notes])


def evaluate(
    Y: Any,
    scores: Any,
    *,
    kind: str | Mapping[str, str] = "probabilities",
    metric: MetricLike = "macro_f1",
    metrics: Iterable[MetricLike] = METRICS,
    rules: DecisionRules | None = None,
    cv: int = 5,
    alpha: float = 0.05,
    n_draws: int = 1000,
    random_state: int = 0,
    label_names: Sequence[str] | None = None,
) -> Evaluation:
    """Evaluate scores of models that were fitted elsewhere, such as networks or services, on labelled rows.

    No model may have been fitted to these rows.

    Parameters
    ----------
    Y : data frame, array-like or sparse of shape (n, q), or n collections of tags
        True labels, 0/1; NaN, or -1 in int8, where a label was not observed. If Y holds tags, the columns of the scores
        need names.
    scores : data frame, array-like or sparse of shape (n, q), or mapping of str to such
        Scores of a model, or of several models by name. If Y and the scores are data frames, rows are matched by index
        and labels by column. For the kind "top", this may also be a list of label names for each row, the best one
        first.
    kind : {"probabilities", "logits", "decisions", "top"} or mapping of str to such, default="probabilities"
        What the scores are. "logits" become probabilities by the logistic function. "top" are the k best labels of each
        row: all of them are assigned, and their scores are 1, 1/2, 1/3, ... in this order.
    metric : str or callable, default="macro_f1"
        The first metric, by which models are tested: a name, a scorer, or a function ``(Y, decisions)``,
        ``(Y, scores)`` or ``(Y, probabilities)``, larger is better. Thresholds maximise it if it is macro F1, micro F1,
        example F1, Hamming loss or subset accuracy, and macro F1 otherwise.
    metrics : iterable of str or callable
        Further metrics.
    rules : DecisionRules, optional
        Rules that were learned on other rows and decide here. No thresholds are tuned then, and models are called
        ``<model> + rules``.
    cv : int, default=5
        Number of folds of the cross-fitted thresholds and calibration: those of a row are learned on the other folds.
    alpha : float, default=0.05
        Significance level of the tests; intervals have the level ``1 - alpha``.
    n_draws : int, default=1000
        Number of bootstrap draws.
    random_state : int, default=0
        Seed of folds and draws.
    label_names : sequence of str, optional
        Names of the labels, if Y is not a data frame. If Y holds tags, the labels to evaluate.

    Returns
    -------
    Evaluation

    Raises
    ------
    ComparisonError
        If rows or labels do not match, a score does not fit its kind, or there is nothing to evaluate.
    MetricError
        If a metric is unknown.

    Notes
    -----
    Values are computed on all rows. Intervals and tests come from the percentile bootstrap over rows, with fixed models
    and fixed cross-fitted thresholds. They account for the choice of the test rows, but not for another training of the
    model or another tuning of the thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from multilab import evaluate
    >>> rng = np.random.default_rng(0)
    >>> Y = (rng.random((200, 3)) < 0.3).astype(int)
    >>> logits = 2 * Y - 2 + rng.normal(size=(200, 3))
    >>> result = evaluate(Y, logits, kind="logits", label_names=["rain", "wind", "fog"])
    >>> result.board.table["macro_f1"].round(3).to_dict()
    {'scores + thresholds': 0.774, 'scores': 0.601}
    >>> np.round(result.rules["scores"].thresholds, 2)
    array([0.37, 0.28, 0.34])
    """
    if not 0 < alpha < 1:
        raise ComparisonError(f"alpha must be between 0 and 1, got {alpha:g}")
    whole_number(cv, "cv", 2, ComparisonError)
    named = dict(scores) if isinstance(scores, Mapping) else {"scores": scores}
    if not named:
        raise ComparisonError("there are no scores to evaluate")
    kinds = dict(kind) if isinstance(kind, Mapping) else dict.fromkeys(named, kind)
    if unknown := set(named) - set(kinds):
        raise ComparisonError(f"kind has no entry for {listed(sorted(map(str, unknown)))}")
    names = None if label_names is None else [str(name) for name in label_names]
    truth = table_of(Y, "Y", labels=names)
    if names is not None:
        if len(names) != truth.values.shape[1]:
            raise ComparisonError(f"label_names has {len(names)} names, Y has {truth.values.shape[1]} labels")
        truth = LabelTable(truth.name, truth.values, truth.ids, pd.Index(names, dtype=object))
    labels = range(truth.values.shape[1]) if truth.labels is None else truth.labels
    known = None if truth.open_ended else [str(label) for label in labels]
    tables = [table_of(each, str(name), kinds[name], known) for name, each in named.items()]
    if truth.open_ended and (unnamed := [table.name for table in tables if table.labels is None]):
        raise ComparisonError(f"{unnamed[0]}: Y holds tags, but the columns have no names; pass a data frame")
    return evaluate_tables(
        truth,
        tables,
        [kinds[name] for name in named],
        metric=metric,
        metrics=metrics,
        rules=rules,
        cv=cv,
        alpha=alpha,
        n_draws=n_draws,
        random_state=random_state,
    )


@dataclass
class _Model:
    """Scores in [0, 1], or None, and decisions of a model, in the order of the truth."""

    name: str
    kind: str
    scores: Any
    decisions: Any
    probabilities: bool
    thresholds: Any = np.nan

    def given(self, metric: Metric) -> Any:
        """Return what a metric is computed from; None if the model has no such thing."""
        if metric.needs == "decisions":
            return self.decisions
        return self.scores if self.probabilities or metric.needs == "scores" else None


def evaluate_tables(
    truth: LabelTable,
    tables: Sequence[LabelTable],
    kinds: Sequence[str],
    *,
    names: Sequence[str] | None = None,
    metric: MetricLike = "macro_f1",
    metrics: Iterable[MetricLike] = METRICS,
    rules: DecisionRules | None = None,
    cv: int = 5,
    alpha: float = 0.05,
    n_draws: int = 1000,
    random_state: int = 0,
) -> Evaluation:
    """Evaluate tables of scores; ``names`` are those of the models, by default of the tables. See :func:`evaluate`."""
    metrics = [metric, *metrics]
    wanted = all_defined(metrics)  # refuses an unknown one
    first = next(iter(wanted.values()))
    names = [table.name for table in tables] if names is None else names
    if len(set(names)) < len(names):
        raise ComparisonError("two models have the same name")
    truth, matched, notes = in_order_of(truth, tables)
    Y, n_labels = _small(truth.values), truth.values.shape[1]
    label_names = [str(label) for label in (range(n_labels) if truth.labels is None else truth.labels)]
    models = [_model(*each, rules, label_names) for each in zip(names, kinds, map(_small, matched), strict=True)]
    rows_digest = _digest(truth.ids)
    if rules is not None and rules.rows and rules.rows == rows_digest:
        notes.append("the rules were learned from rows with these identifiers: the values are too good for new rows")
    notes += [
        f"{table.name}: all logits are in [0, 1]; if they are probabilities, the decisions are wrong"
        for table, kind in zip(tables, kinds, strict=True)
        if kind == "logits" and like_probabilities(table.values)
    ]
    if len(tables) and Y.shape[0] < _FEW_ROWS:
        notes.append(f"with only {Y.shape[0]} rows, intervals are wide and their level is not exact")
    learned: dict[str, DecisionRules] = {}
    left_out: dict[str, str] = {}
    tuned: dict[str, _Model] = {}
    calibration: list[tuple[object, ...]] = []
    objective = objective_of(metric)
    for model in models:
        if model.scores is None or rules is not None:
            left_out[model.name] = (
                "rules of an earlier evaluation decide" if rules is not None else "it has decisions only"
            )
            continue
        if cv > Y.shape[0]:
            left_out[model.name] = f"{Y.shape[0]} rows are too few for {cv} folds"
            continue
        decisions, probabilities = _cross_fitted(model, Y, label_names, objective, cv, random_state)
        of_all = learned_rules(model.scores, Y, label_names, model.kind, objective)
        learned[model.name] = replace(of_all, rows=rows_digest)
        tuned[model.name] = replace(
            model, name=tuned_name(model.name), decisions=decisions, thresholds=of_all.thresholds
        )
        if probabilities is not None:
            both = {"as predicted": model.scores, "beta": probabilities}
            calibration += [
                (model.name, which, name, float(ALL_METRICS[name].function(Y, given)))
                for which, given in both.items()
                for name in CALIBRATION_METRICS
            ]
    rows = [each for model in models for each in (model, tuned.get(model.name)) if each is not None]
    options: dict[str, Any] = {"level": 1 - alpha, "n_draws": n_draws, "random_state": random_state}
    values = pd.DataFrame(
        [(row.name, name, *_measured(each, Y, row, options)) for row in rows for name, each in wanted.items()],
        columns=["model", "metric", "value", "low", "high"],
    )
    labels = {row.name: _label_table(Y, row, label_names, options) for row in rows}
    counts = ["label", "observed", "count", "predicted"]
    board = board_of(
        values[["model", "metric", "value"]]
        .rename(columns={"model": "method"})
        .assign(dataset="", split=0)[["dataset", "split", "method", "metric", "value"]],
        metrics,
        tuple(row.name for row in rows),
        [],
        summed([table[counts].assign(method=name) for name, table in labels.items()]),
        test_to_train=1.0,  # there is one split and no training set: nothing is tested over splits
        alpha=alpha,
        untuned={model.name: name for name, model in tuned.items()},
    )
    gains = [
        (name, objective, *_difference(defined(objective), Y, model, base, options))
        for name, model in tuned.items()
        for base in models
        if base.name == name
    ]
    return Evaluation(
        board,
        values,
        _tests(models, tuned, first, Y, options, alpha),
        pd.DataFrame(gains, columns=["model", "metric", "gain", "low", "high", "p"]),
        pd.DataFrame(calibration, columns=["model", "scores", "metric", "value"]),
        labels,
        learned,
        left_out,
        tuple(notes),
        Y.shape[0],
        alpha,
    )


def learned_rules(
    scores: Any, Y: Any, label_names: Sequence[str], kind: Any = "probabilities", objective: str = "macro_f1"
) -> DecisionRules:
    """Learn guarded thresholds, and beta calibration where the scores are dense probabilities.

    Parameters
    ----------
    scores : ndarray or csr_array of shape (n, q)
        Scores in [0, 1] of rows that the model was not fitted to; for logits, the probabilities.
    Y : ndarray or csr_array of shape (n, q)
        0/1, NaN where a label was not observed.
    label_names : sequence of str
    kind : str
        Kind of the scores that the rules will be applied to.
    objective : str
        Metric that the thresholds maximise.
    """
    thresholds: list[float | None] = []
    calibration: list[list[float]] = []
    for held, truth in _blocks(scores, Y, objective):
        limits = guarded_decisions(held, truth, objective).thresholds_
        thresholds += [None if limit == np.inf else max(0.0, float(limit)) for limit in limits]
        if kind != "top" and not sp.issparse(scores):
            calibration += [beta_coefficients(*each) for each in zip(held.T, truth.T, strict=True)]
    return DecisionRules(list(label_names), thresholds, kind, calibration, objective, Y.shape[0])


def _blocks(scores: Any, Y: Any, objective: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield dense blocks of labels; all labels at once if their thresholds depend on each other."""
    n, q = Y.shape
    width = max(1, _BLOCK_CELLS // n) if objective in _LABEL_BY_LABEL else q
    for start in range(0, q, width):
        part = slice(start, start + width)
        held, truth = (_dense(each[:, part]) for each in (scores, Y))
        yield held, truth


def _cross_fitted(
    model: _Model, Y: Any, label_names: Sequence[str], objective: str, cv: int, seed: int
) -> tuple[Any, np.ndarray | None]:
    """Return decisions and calibrated probabilities of each row by rules from the other folds.

    There are no calibrated probabilities where the scores are none, or sparse.
    """
    calibrated = model.kind != "top" and not sp.issparse(model.scores)
    probabilities = np.empty(Y.shape) if calibrated else None
    parts, order = [], []
    for others, rows in IterativeStratifiedKFold(cv, random_state=seed).split(np.zeros((Y.shape[0], 1)), Y):
        # the scores are in [0, 1] already: whatever their kind was, the rules take them as they are
        kind = "top" if model.kind == "top" else "probabilities"
        rules = learned_rules(model.scores[others], Y[others], label_names, kind, objective)
        parts.append(rules.decide(model.scores[rows]))
        order.append(rows)
        if probabilities is not None:
            probabilities[rows] = rules.calibrate(model.scores[rows])
    back = np.argsort(np.concatenate(order))
    stacked = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.vstack(parts)
    return stacked[back], probabilities


def _model(name: str, kind: str, values: Any, rules: DecisionRules | None, label_names: Sequence[str]) -> _Model:
    """Return the scores and own decisions of a model, or its decisions by rules."""
    if kind == "decisions":
        if rules is not None:
            raise ComparisonError(f"{name}: rules need scores, but these are decisions")
        return _Model(name, kind, None, values.astype(np.uint8), False)
    if rules is not None:
        if rules.kind != kind:
            raise ComparisonError(f"{name}: the rules are for {rules.kind}, the scores are {kind}")
        ordered = rules.for_labels(label_names)
        scores, decisions = ordered.unit_scores(values), ordered.decide(values)
        return _Model(f"{name} + rules", kind, scores, decisions, kind != "top", ordered.thresholds)
    scores = unit_scores(values, kind, len(label_names))
    decisions = scores > 0 if kind == "top" else scores >= 0.5  # all listed labels are assigned
    limit = np.nan if kind == "top" else 0.5
    return _Model(name, kind, scores, decisions.astype(np.uint8), kind != "top", limit)


def _label_table(Y: Any, row: _Model, label_names: Sequence[str], options: Mapping[str, Any]) -> pd.DataFrame:
    """Return the metrics of each label, with intervals of F1 of the most frequent labels."""
    table = per_label(Y, row.scores, row.decisions, label_names=label_names)
    table["threshold"] = np.asarray(row.thresholds, dtype=float)  # None, a label that is never assigned, is NaN
    most = max(1, _DRAWN_LABELS // options["n_draws"])
    frequent = table["count"].sort_values(ascending=False, kind="stable").index[:most].sort_values()
    ends = np.full((len(table), 2), np.nan)
    chosen = None if len(frequent) == len(table) else list(frequent)
    ends[frequent] = label_f1_intervals(Y, row.decisions, labels=chosen, **options)
    after = table.columns.get_loc("f1") + 1
    table.insert(after, "f1_low", ends[:, 0])
    table.insert(after + 1, "f1_high", ends[:, 1])
    return table


def _measured(metric: Metric, Y: Any, row: _Model, options: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return a metric with its interval; NaN where the model has no such scores, or there is no interval."""
    given = row.given(metric)
    if given is None:
        return np.nan, np.nan, np.nan
    value = float(metric.function(Y, given))
    drawn = metric.needs == "decisions" or Y.shape[0] * Y.shape[1] * options["n_draws"] <= _DRAWN_CELLS
    if np.isnan(value) or not drawn:
        return value, np.nan, np.nan
    interval = bootstrap(_drawn(metric), Y, given, **options)
    return value, interval.low, interval.high


def _drawn(metric: Metric) -> str | Callable[..., float]:
    """Return what a bootstrap takes: the name of a metric, whose counts it draws, or a function of one's own."""
    return metric.name if ALL_METRICS.get(metric.name) is metric else metric.function


def _difference(
    metric: Metric, Y: Any, first: _Model, second: _Model, options: Mapping[str, Any]
) -> tuple[float, float, float, float]:
    """Return by how much the first model is better, with interval and p value."""
    found = bootstrap_difference(_drawn(metric), Y, first.given(metric), second.given(metric), **options)
    if metric.direction == "max":
        return found.value, found.low, found.high, found.p
    return -found.value, -found.high, -found.low, found.p


def _tests(
    models: Sequence[_Model],
    tuned: Mapping[str, _Model],
    metric: Metric,
    Y: Any,
    options: Mapping[str, Any],
    alpha: float,
) -> pd.DataFrame:
    """Test each further model against the first one, and each with thresholds against the first with thresholds."""
    rows: list[list[Any]] = []
    first = models[0]
    for other in models[1:]:
        pairs = [(other, first)]
        if metric.needs == "decisions" and {other.name, first.name} <= set(tuned):
            pairs.append((tuned[other.name], tuned[first.name]))
        for model, against in pairs:
            if model.given(metric) is not None and against.given(metric) is not None:
                found = _difference(metric, Y, model, against, options)
                rows.append([model.name, against.name, metric.name, *found])
    table = pd.DataFrame(rows, columns=["model", "against", "metric", "advantage", "low", "high", "p"])
    table["p_holm"] = holm(table["p"].tolist()) if len(table) else []
    return table.assign(differs=table["p_holm"].astype(float) <= alpha)


def _digest(ids: pd.Index | None) -> str:
    """Return a digest of row identifiers in any order; empty where rows have none, or only numbers from 0."""
    if ids is None or isinstance(ids, pd.RangeIndex):
        return ""
    return json_digest(sorted(map(str, ids)))


def _small(values: Any) -> Any:
    """Return a small sparse matrix as a dense one."""
    return _dense(values) if sp.issparse(values) and np.prod(values.shape) <= _DENSE_CELLS else values


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if sp.issparse(values) else values)
