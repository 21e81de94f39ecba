# Part of the key of cells: an edit of code (not of comments or docstrings) recomputes the results that use it.
"""Decision threshold of the extreme learning machines."""

import numpy as np

from multilab.methods.base import MethodError


class ScoreThreshold:
    """Mixin of a classifier with real scores that assigns a label iff its score >= ``threshold``.

    Measures of the scores do not depend on the threshold.
    """

    threshold: float

    def _check_threshold(self) -> None:
        if not np.isfinite(self.threshold):
            raise MethodError(f"threshold={self.threshold}: it must be a finite number")

    def _score_kind(self) -> str:
        return "margin"

    def _threshold(self) -> float:
        return self.threshold
