"""Regressions of a comparison against an earlier one: a paired test over the same splits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from multilab.comparison.errors import ComparisonError
from multilab.core import read_json
from multilab.core.messages import unknown_name
from multilab.core.text import BETTER, markdown_cell
from multilab.statistics import corrected_resampled_p, holm, holm_levels
from multilab.statistics.resampled_t import corrected_standard_error

__all__ = ["Regressions", "find_regressions", "read_leaderboard"]

_COLUMNS = ["baseline", "now", "change", "limit", "p", "p_holm", "regressed", "note"]
_FORMAT = 1  # the format of leaderboard.json that is read, see `multilab.comparison.results.FORMAT`
_FORMS = (".4f", ".4f", "+.4f", ".4f", ".4f")
_Values = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Regressions:
    """Methods that became worse.

    Attributes
    ----------
    table : DataFrame
        One row per method of either comparison. ``baseline`` and ``now`` are means over the splits; ``change`` is
        ``now - baseline``; ``limit`` is the smallest loss on average that the test calls a regression, given the spread
        over the splits and the p values of the other methods; ``p`` is one-sided, ``p_holm`` adjusted; ``note`` says
        what was not tested.
    dataset, metric, direction : str
    alpha, tolerance : float
    n_splits : int
    """

    table: pd.DataFrame
    dataset: str
    metric: str
    direction: str
    alpha: float
    tolerance: float
    n_splits: int

    @property
    def names(self) -> list[str]:
        """The methods that became worse."""
        return [str(name) for name in self.table.index[self.table["regressed"]]]

    def summary(self) -> str:
        """Return the finding and its level in two sentences."""
        tested = int(self.table["p"].notna().sum())
        names = self.names
        head = f"Worse than the baseline: {', '.join(names)}." if names else "No regression."
        if not tested:
            return f"{head} No method has results in both, so nothing was tested."
        return (
            f"{head} {tested} compared by {self.metric} on the same {self.n_splits} splits of {self.dataset}: "
            f"one-sided corrected resampled t test of a loss above {self.tolerance:g}, after Holm's correction at "
            f"level {self.alpha:g}. If nothing became worse, a run reports a regression with at most that probability."
        )

    def to_markdown(self) -> str:
        """Return the finding and the table as Markdown."""
        lines = [
            f"### {markdown_cell(self.dataset)}: {self.metric} ({BETTER[self.direction]})",
            "",
            markdown_cell(self.summary()),
            "",
            "| method | baseline | now | change | regression from | p (Holm) | |",
            "|---|---:|---:|---:|---:|---:|---|",
        ]
        for row in self.table.itertuples():
            numbers = [row.baseline, row.now, row.change, row.limit, row.p_holm]
            texts = ["" if math.isnan(n) else format(n, form) for n, form in zip(numbers, _FORMS, strict=True)]
            mark = "**worse**" if row.regressed else ""
            cells = [markdown_cell(row.Index), *texts, " ".join(filter(None, [mark, markdown_cell(row.note)]))]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"


def find_regressions(
    now: Mapping[str, Any],
    baseline: Mapping[str, Any] | None,
    *,
    metric: str | None = None,
    alpha: float = 0.05,
    tolerance: float = 0.001,
) -> Regressions:
    """Test which methods of a comparison became worse than in an earlier one.

    Parameters
    ----------
    now, baseline : mapping
        Contents of two ``leaderboard.json`` of ``multilab compare`` on the same splits. Without a baseline, the table
        has only the present values.
    metric : str, optional
        By default the first metric of ``now``.
    alpha : float, default=0.05
        Probability that at least one method is reported if none became worse.
    tolerance : float, default=0.001
        A loss up to this size, in the unit of the metric, is ignored, so that rounding does not fail a pull request.

    Returns
    -------
    Regressions
        A method that finished in the baseline and fails now is a regression without a test. A method that is no longer
        compared, or that the budget left out, is only noted.

    Raises
    ------
    ComparisonError
        If the two have different splits, the metric was not measured, or an argument is out of range.
    """
    if not 0 < alpha < 1:
        raise ComparisonError(f"alpha must be between 0 and 1, got {alpha:g}")
    if not 0 <= tolerance < math.inf:
        raise ComparisonError(f"tolerance must be >= 0, got {tolerance:g}")
    metric = metric or str(now["metric"])
    if metric not in now["directions"]:
        raise ComparisonError(unknown_name("metric of this comparison", metric, now["directions"]))
    digests = [split["digest"] for split in now["splits"]]
    if baseline is not None and [split["digest"] for split in baseline["splits"]] != digests:
        raise ComparisonError(
            "the two comparisons have different splits (different data, folds or seed), so they are not paired; "
            "run both on the same rows"
        )
    direction = str(now["directions"][metric])
    new, old = _finished(now, metric), _finished(baseline, metric) if baseline else {}
    statuses = {str(method["name"]): str(method.get("status", "failed")) for method in now["methods"]}
    rows = {name: _row(name, new, old, statuses) for name in dict.fromkeys([*statuses, *old])}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=_COLUMNS).rename_axis("method")
    sign = 1.0 if direction == "max" else -1.0
    # a single split has no spread, so there is no test
    both = [name for name in rows if name in new and name in old and len(digests) > 1]
    losses = {name: sign * (old[name] - new[name]) - tolerance for name in both}
    ratio = float(now["test_to_train"])
    p = {name: _one_sided(values, ratio) for name, values in losses.items()}
    p_values = list(p.values())
    for name, adjusted, level in zip(p, holm(p_values), holm_levels(p_values, alpha), strict=True):
        table.loc[name, ["p", "p_holm", "regressed"]] = p[name], float(adjusted), bool(adjusted <= alpha)
        table.loc[name, "limit"] = tolerance + _critical(losses[name], ratio, level)
    table["regressed"] = table["regressed"].astype(bool)
    return Regressions(table, str(now["dataset"]["name"]), metric, direction, alpha, tolerance, n_splits=len(digests))


def _finished(content: Mapping[str, Any], metric: str) -> dict[str, np.ndarray]:
    """Return the values on the splits of each method that finished all of them."""
    values: dict[str, np.ndarray] = {}
    for method in content["methods"]:
        by_split = (method.get("values") or {}).get(metric) or {}
        numbers = [by_split.get(str(split["split"])) for split in content["splits"]]
        if all(number is not None for number in numbers):
            values[str(method["name"])] = np.array(numbers, dtype=float)
    return values


def _row(name: str, new: _Values, old: _Values, statuses: Mapping[str, str]) -> list[Any]:
    """Return the means of a method and what is known without a test."""
    before, after = (float(values[name].mean()) if name in values else math.nan for values in (old, new))
    lost = name in old and name not in new
    note = statuses.get(name, "no longer compared") if lost else "new" if old and name not in old else ""
    return [before, after, after - before, math.nan, math.nan, math.nan, note == "failed", note]


def _one_sided(losses: np.ndarray, ratio: float) -> float:
    """Return the p value of the hypothesis that the mean loss is not positive."""
    two_sided = corrected_resampled_p(losses, ratio)
    return two_sided / 2 if losses.mean() > 0 else 1 - two_sided / 2


def _critical(losses: np.ndarray, ratio: float, alpha: float) -> float:
    """Return the mean loss from which on a test at a level rejects, given the spread of the losses."""
    return float(student.isf(alpha, len(losses) - 1)) * corrected_standard_error(losses, ratio)


def read_leaderboard(path: Path) -> dict[str, Any]:
    """Return the content of a ``leaderboard.json``.

    Raises
    ------
    ComparisonError
        If the file is missing or is not a leaderboard of this format.
    """
    try:
        content = read_json(path)
    except OSError as error:
        raise ComparisonError(f"{path}: {error.strerror}; `multilab compare` writes such files") from None
    except ValueError:
        raise ComparisonError(f"{path}: not valid JSON; expected a leaderboard.json of `multilab compare`") from None
    needed = {"format", "dataset", "metric", "directions", "splits", "methods", "test_to_train"}
    if not isinstance(content, dict) or needed - set(content):
        raise ComparisonError(f"{path}: not a leaderboard.json of `multilab compare`")
    if content["format"] != _FORMAT:
        raise ComparisonError(f"{path}: format {content['format']!r}; this version of multilab reads format {_FORMAT}")
    return content
