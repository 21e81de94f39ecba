"""Effects of thresholds and calibration, which are learned only on out-of-fold scores of the training rows."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from multilab.cells.cell import Cell
from multilab.cells.execute import run_cells_within
from multilab.cells.rows import indices
from multilab.cells.store import Store
from multilab.comparison.board import summed, with_labels
from multilab.comparison.plan import MethodRun, Sizes, held_out_seconds
from multilab.comparison.scores import CellScores, metric_values
from multilab.core import MultilabError
from multilab.decision import CalibratedMultiLabelClassifier, TunedThresholdClassifier
from multilab.metrics.own_metrics import MetricLike
from multilab.metrics.registry import defined
from multilab.models.final_fit import DECISIONS, INNER_FOLDS
from multilab.statistics import Leaderboard
from multilab.statistics.leaderboard import SECONDS

__all__ = [
    "CALIBRATION_METRICS",
    "Effects",
    "guarded_decisions",
    "held_out_effects",
    "objective_of",
    "tuned_decisions",
    "tuned_name",
]

CALIBRATION_METRICS = ("log_loss", "brier_score", "expected_calibration_error")
_Values = dict[str, dict[str, float]]


@dataclass
class Effects:
    """Effects of thresholds and of calibration on the held-out rows.

    Attributes
    ----------
    objective : str
        Metric that the thresholds maximise.
    thresholds : DataFrame
        Columns split, method, decision ("as predicted" or "tuned"), metric, value.
    calibration : DataFrame
        Columns split, method, scores ("as predicted" or "sigmoid"), metric, value.
    seconds : dict of str to float
        Mean seconds of the out-of-fold scores by method.
    left_out : dict of str to str
        Why a method has no effects.
    decided : DataFrame
        How often tuned thresholds assign each label, see `multilab.statistics.Leaderboard`.
    """

    objective: str
    thresholds: pd.DataFrame
    calibration: pd.DataFrame
    seconds: dict[str, float]
    left_out: dict[str, str]
    decided: pd.DataFrame

    @classmethod
    def empty(cls, metric: str) -> "Effects":
        """Return no effects."""
        thresholds = pd.DataFrame(columns=["split", "method", "decision", "metric", "value"])
        calibration = pd.DataFrame(columns=["split", "method", "scores", "metric", "value"])
        return cls(objective_of(metric), thresholds, calibration, {}, {}, summed([]))

    @property
    def methods(self) -> list[str]:
        """The methods whose thresholds were tuned."""
        return list(dict.fromkeys(self.thresholds["method"]))

    def board(self, board: Leaderboard, headline: str) -> Leaderboard:
        """Return the leaderboard of the decision metrics, ordered by one of them, with rows for tuned thresholds."""
        tuned = self.thresholds[self.thresholds["decision"] == "tuned"].drop(columns="decision")
        decided = [name for name in board.directions if defined(name).needs == "decisions"]
        metrics = list(dict.fromkeys([headline, *decided]))
        cost = board.scores[board.scores["metric"].isin(SECONDS)]
        cost = cost[cost["method"].isin(self.methods)].copy()
        added = cost["method"].map(self.seconds).where(cost["metric"] == "fit_seconds", 0.0)
        cost["value"] += added
        extra = pd.concat([tuned[tuned["metric"].isin(metrics)].assign(dataset=board.datasets[0]), cost])
        scores = board.scores[board.scores["metric"].isin([*metrics, *SECONDS])]
        names = [tuned_name(name) for name in self.methods]
        extended = replace(
            board,
            scores=pd.concat([scores, extra.assign(method=extra["method"].map(tuned_name))], ignore_index=True),
            methods=(*board.methods, *names),
            directions={name: board.directions[name] for name in metrics},
            untuned=dict(zip(names, self.methods, strict=True)),
        )
        decided = self.decided.assign(method=self.decided["method"].map(tuned_name))
        return with_labels(extended, pd.concat([board.decided, decided]))


def tuned_name(method: str) -> str:
    """Return the name of a method with tuned thresholds."""
    return f"{method} + thresholds"


def objective_of(metric: MetricLike) -> str:
    """Return the objective of the thresholds: the metric itself if it can be maximised exactly, else macro F1."""
    return metric if isinstance(metric, str) and metric in DECISIONS else "macro_f1"


def held_out_effects(
    entries: Sequence[MethodRun],
    scores: CellScores,
    sizes: Sizes,
    metric: str,
    deadline: float,
    n_jobs: int,
    baseline: str = "",
) -> Effects:
    """Score the training rows out of fold, method by method until the deadline, and tune thresholds and calibration.

    Parameters
    ----------
    entries : sequence of MethodRun
        Finished methods, the most interesting first.
    scores : CellScores
    sizes : Sizes
    metric : str
        First metric of the comparison.
    deadline : float
        By ``time.monotonic``.
    n_jobs : int
    baseline : str
        The method whose thresholds have no guard.

    Returns
    -------
    Effects
    """
    objective, store = objective_of(metric), scores.store
    thresholds: list[tuple[object, ...]] = []
    calibration: list[tuple[object, ...]] = []
    decisions: list[pd.DataFrame] = []
    effects = Effects.empty(metric)
    for entry in entries:
        reason = _run(entry, store, sizes, deadline, n_jobs)
        if reason:
            effects.left_out[entry.name] = reason
            continue
        try:
            pairs = zip(entry.cells, entry.held_out, strict=True)
            rows = [_effects(cell, held, scores, objective, entry.name != baseline) for cell, held in pairs]
        except MultilabError as error:  # labels that were not observed
            effects.left_out[entry.name] = str(error)
            continue
        for cell, (decided, calibrated, labels) in zip(entry.cells, rows, strict=True):
            decisions.append(labels.assign(method=entry.name))
            where = (cell.split_ref.split, entry.name)
            thresholds += [(*where, kind, name, value) for kind, v in decided.items() for name, value in v.items()]
            calibration += [(*where, kind, name, value) for kind, v in calibrated.items() for name, value in v.items()]
        records = [store.record(cell.key) for cell in entry.held_out]
        effects.seconds[entry.name] = float(np.mean([record.get("fit_seconds", np.nan) for record in records]))
    effects.thresholds = pd.DataFrame(thresholds, columns=effects.thresholds.columns)
    effects.calibration = pd.DataFrame(calibration, columns=effects.calibration.columns)
    effects.decided = summed(decisions)
    return effects


def _run(entry: MethodRun, store: Store, sizes: Sizes, deadline: float, n_jobs: int) -> str:
    """Compute the out-of-fold scores; return why they are not there, empty if they are."""
    if entry.member.method.base_scores:
        return "the method itself reads out-of-fold scores; `multilab fit` tunes it"
    missing = [cell for cell in entry.held_out if not store.has(cell.key)]
    left = deadline - time.monotonic()
    needed = held_out_seconds(entry, sizes, INNER_FOLDS) * len(missing) / min(n_jobs, len(entry.cells))
    if missing and needed > left:
        return "the budget is used up"
    outcome = run_cells_within(missing, store, left, n_jobs)
    if outcome.failures:
        return next(iter(outcome.failures.values()))
    return "the budget is used up" if outcome.stopped else ""


def guarded_decisions(
    held: np.ndarray,
    Y: np.ndarray,
    objective: str,
    sample_weight: np.ndarray | None = None,
    policy: str | None = None,
    guard: bool = True,
) -> TunedThresholdClassifier:
    """Return guarded decisions for an objective, from held-out scores in [0, 1]: the one rule of every recommendation.

    Their ``predict`` takes scores of other rows. A baseline is decided without ``guard``: it shows what thresholds
    reach without features, by assigning a label to all rows, which the guard forbids.
    """
    chosen: Any = policy or DECISIONS[objective]
    tuned = TunedThresholdClassifier("precomputed", objective=objective, policy=chosen, guard=guard)
    return tuned.fit(held, Y, sample_weight)


def tuned_decisions(cell: Cell, held_out: Cell, scores: CellScores, objective: str) -> np.ndarray:
    """Return the decisions of a cell by thresholds of the stored out-of-fold scores of its training rows."""
    train, _ = indices(cell.split_ref)
    held, predicted, _ = _in_unit_interval(*(scores.store.arrays(one.key)["scores"] for one in (held_out, cell)))
    tuned = guarded_decisions(held, scores.Y[train], objective)  # type: ignore[index]
    return np.asarray(tuned.predict(predicted))


def _in_unit_interval(held: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the scores of the training rows and of the test rows in [0, 1], and whether they are probabilities."""
    if min(held.min(), predicted.min()) >= 0 and max(held.max(), predicted.max()) <= 1:
        return held, predicted, True
    return expit(held), expit(predicted), False  # thresholds depend on the order of the scores only


def _effects(
    cell: Cell, held_out: Cell, scores: CellScores, objective: str, guard: bool
) -> tuple[_Values, _Values, pd.DataFrame]:
    """Return the metrics of decisions and of probabilities of one split, as predicted and tuned, and the labels."""
    train, test = indices(cell.split_ref)
    Y_train, Y_test = scores.Y[train], scores.Y[test]  # type: ignore[index]
    arrays = scores.store.arrays(cell.key)
    held, predicted, probabilities = _in_unit_interval(scores.store.arrays(held_out.key)["scores"], arrays["scores"])
    untuned = arrays["decisions"]
    tuned = guarded_decisions(held, Y_train, objective, guard=guard)
    decided = {"as predicted": untuned, "tuned": np.asarray(tuned.predict(predicted))}
    names = [name for name in scores.metrics if name not in CALIBRATION_METRICS]
    thresholds = {kind: metric_values(Y_test, predicted, decisions, names) for kind, decisions in decided.items()}
    labels = scores.decided(cell, decided["tuned"])
    if not probabilities:
        return thresholds, {}, labels
    calibrated = CalibratedMultiLabelClassifier("precomputed", method="sigmoid").fit(held, Y_train)
    kinds = {"as predicted": predicted, "sigmoid": calibrated.predict_proba(predicted)}
    return (
        thresholds,
        {kind: metric_values(Y_test, p, untuned, CALIBRATION_METRICS) for kind, p in kinds.items()},
        labels,
    )
