"""Rules that turn scores of a model from elsewhere into decisions: a threshold and a calibration per label, in JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from multilab.core import read_json, write_atomically
from multilab.core.text import listed
from multilab.decision.calibrated import beta_features
from multilab.methods.base import MethodError
from multilab.metrics.inputs import matrix_of_numbers

__all__ = ["DecisionRules"]

Kind = Literal["probabilities", "logits", "top"]
"""What scores are."""

FORMAT = 1
"""Raised when the file of rules changes its meaning."""


@dataclass(frozen=True)
class DecisionRules:
    """Threshold and calibration of each label, learned on scores of rows that the model was not fitted to.

    `multilab evaluate` writes such rules, and `multilab decide` applies them; both work on scores of any model.

    Parameters
    ----------
    label_names : sequence of str
    thresholds : sequence of float or None
        Threshold of each label, which is assigned where its score, in [0, 1], is at least the threshold. None means
        never.
    kind : {"probabilities", "logits", "top"}
        What the scores are. Logits become probabilities by the logistic function before anything else; "top" are
        1, 1/2, 1/3, ... for the labels of a list, the best one first, and 0 for all others.
    calibration : sequence of sequences of float
        Coefficients of beta calibration per label, ``a, b, c`` of ``expit(a ln p - b ln(1 - p) + c)``, or the one share
        of a label that all or none of the rows have. Empty: the scores are not calibrated.
    objective : str
        Metric that the thresholds were tuned for.
    n_rows : int
        Number of rows that they were learned from.
    rows : str
        Digest of the identifiers of these rows; empty if they had none.

    Examples
    --------
    >>> from multilab.decision import DecisionRules
    >>> rules = DecisionRules(["rain", "wind"], [0.3, None])
    >>> rules.decide([[0.4, 0.9], [0.2, 0.1]])
    array([[1, 0],
           [0, 0]], dtype=uint8)
    """

    label_names: Sequence[str]
    thresholds: Sequence[float | None]
    kind: Kind = "probabilities"
    calibration: Sequence[Sequence[float]] = ()
    objective: str = "macro_f1"
    n_rows: int = 0
    rows: str = ""
    _limits: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in ("probabilities", "logits", "top"):
            raise MethodError(f"rules are for probabilities, logits or top, got kind={self.kind!r}")
        if len(self.thresholds) != len(self.label_names):
            raise MethodError(f"{len(self.thresholds)} thresholds for {len(self.label_names)} labels")
        if any(len(each) not in (1, 3) for each in self.calibration):
            raise MethodError("calibration: a label has one share or three coefficients")
        if self.calibration and len(self.calibration) != len(self.label_names):
            raise MethodError(f"calibration of {len(self.calibration)} labels, there are {len(self.label_names)}")
        # A score never reaches 2: a label without a threshold is never assigned.
        limits = np.array([2.0 if limit is None else limit for limit in self.thresholds])
        object.__setattr__(self, "_limits", limits)

    def for_labels(self, label_names: Sequence[str]) -> DecisionRules:
        """Return the rules of the same labels in another order.

        Raises
        ------
        MethodError
            If the labels are not those of the rules.
        """
        numbers = {name: number for number, name in enumerate(self.label_names)}
        if len(label_names) != len(numbers) or (set(label_names) ^ set(numbers)):
            differing = sorted(set(label_names) ^ set(numbers)) or list(label_names)
            raise MethodError(
                f"the rules are for other labels: {listed(map(repr, differing))} is in one of the two only"
            )
        order = [numbers[name] for name in label_names]
        return replace(
            self,
            label_names=list(label_names),
            thresholds=[self.thresholds[number] for number in order],
            calibration=[self.calibration[number] for number in order] if self.calibration else (),
        )

    def unit_scores(self, scores: Any) -> Any:
        """Return scores in [0, 1], as an array or CSR of shape (n, q).

        Raises
        ------
        MethodError
            If there is not a column per label, or a score is not of the kind of the rules.
        """
        return unit_scores(scores, self.kind, len(self.label_names))

    def decide(self, scores: Any) -> Any:
        """Return decisions of scores of shape (n, q): uint8, CSR where the scores are sparse.

        Raises
        ------
        MethodError
            See :meth:`unit_scores`.
        """
        given = self.unit_scores(scores)
        if not sp.issparse(given):
            return (given >= self._limits).astype(np.uint8)
        if (self._limits <= 0).any():  # labels that every row gets
            return sp.csr_array((given.toarray() >= self._limits).astype(np.uint8))
        decided = given.copy()
        decided.data = (given.data >= self._limits[given.indices]).astype(np.uint8)
        decided.eliminate_zeros()
        return decided

    def calibrate(self, scores: Any) -> np.ndarray:
        """Return calibrated probabilities of scores of shape (n, q).

        Raises
        ------
        MethodError
            If the rules have no calibration, or as :meth:`unit_scores`.
        """
        if not self.calibration:
            raise MethodError("these rules have no calibration")
        given = self.unit_scores(scores)
        dense = given.toarray() if sp.issparse(given) else given
        columns = []
        for column, coefficients in zip(dense.T, self.calibration, strict=True):
            if len(coefficients) == 1:
                columns.append(np.full(len(dense), coefficients[0]))
            else:
                columns.append(expit(beta_features(column[:, None])[:, 0] @ np.asarray(coefficients)))
        return np.column_stack(columns)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the rules as JSON and return the path."""
        plain = {name: value for name, value in asdict(self).items() if name != "_limits"}
        names, thresholds, calibration = (plain.pop(name) for name in ("label_names", "thresholds", "calibration"))
        labels: list[dict[str, Any]] = [
            {"name": name, "threshold": limit} for name, limit in zip(names, thresholds, strict=True)
        ]
        for label, coefficients in zip(labels, calibration, strict=False):
            label["calibration"] = list(coefficients)
        write_atomically(path, json.dumps({"format": FORMAT, **plain, "labels": labels}, indent=1) + "\n")
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DecisionRules:
        """Read the rules of a file that :meth:`save` wrote.

        Raises
        ------
        MethodError
            If the file holds no rules of this format.
        """
        try:
            content = read_json(Path(path))
        except OSError as error:
            raise MethodError(f"{path}: {error.strerror}; `multilab evaluate` writes rules") from None
        except ValueError:
            raise MethodError(f"{path}: not valid JSON; expected the rules that `multilab evaluate` writes") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise MethodError(f"{path}: not rules of format {FORMAT}, which `multilab evaluate` writes")
        try:
            labels = content["labels"]
            calibration = [[float(number) for number in label.get("calibration", ())] for label in labels]
            return cls(
                [str(label["name"]) for label in labels],
                [None if label["threshold"] is None else float(label["threshold"]) for label in labels],
                content["kind"],
                calibration if any(calibration) else (),
                str(content["objective"]),
                int(content["n_rows"]),
                str(content.get("rows", "")),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # MethodError is a ValueError
            reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
            raise MethodError(f"{path}: damaged rules: {reason}; write them again with `multilab evaluate`") from None


def unit_scores(scores: Any, kind: str, n_labels: int) -> Any:
    """Return scores of some kind in [0, 1], as a float array or CSR of shape (n, n_labels).

    Raises
    ------
    MethodError
        If there is not a column per label, a score is not finite or outside [0, 1], or sparse scores are logits.
    """
    given: Any = matrix_of_numbers(scores, "scores")
    if given.shape[1] != n_labels:
        raise MethodError(f"scores have {given.shape[1]} columns for {n_labels} labels")
    values = given.data if sp.issparse(given) else given
    if not np.isfinite(values).all():
        raise MethodError("scores must be finite; give every row a score for every label")
    if kind == "logits":
        if sp.issparse(given):
            raise MethodError("a missing entry of sparse logits would be a probability of .5; pass a dense array")
        return expit(given.astype(np.float64))
    if values.size and (values.min() < 0 or values.max() > 1):
        worst = values.min() if values.min() < 0 else values.max()
        raise MethodError(f"scores must be in [0, 1], got {worst:g}; if they are logits, pass kind='logits'")
    return given.astype(np.float64)
