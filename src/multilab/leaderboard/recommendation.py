"""Which method of a leaderboard to use, why, and how certain that is, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from multilab.leaderboard.leaderboard import Leaderboard
from multilab.metrics.registry import defined

__all__ = ["Recommendation", "recommend"]

_CHEAPER = 3.0
"""A method is called cheaper if it takes at most a third of the seconds."""
_NO_MODEL = (
    "Do not use a model on this evidence: check that the features can say anything about the labels, try another "
    "metric, or collect more rows."
)
_TEST = "corrected resampled t test, Holm"


@dataclass(frozen=True)
class Recommendation:
    """A method with the reasons for it.

    Attributes
    ----------
    method : str or None
        None if no method is shown to be better than the baseline, or none finished.
    sentences : tuple of str
        What is recommended, why, what is as good and cheaper, and how certain that is.
    level : tuple of str
        Methods that the test does not separate from the recommended one.
    cheaper : tuple of str
        Those of them on the front of quality and seconds that take at most a third of its seconds, the cheapest first.
    """

    method: str | None
    sentences: tuple[str, ...]
    level: tuple[str, ...] = ()
    cheaper: tuple[str, ...] = ()


def recommend(board: Leaderboard, baselines: Sequence[str] = ()) -> Recommendation:
    """Recommend the method with the best mean of the first metric, unless it is not shown to beat a baseline.

    Parameters
    ----------
    board : Leaderboard
    baselines : sequence of str
        Methods that read no features; the best of those on the board counts.

    Returns
    -------
    Recommendation

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from multilab import compare
    >>> from multilab.leaderboard import recommend
    >>> from multilab.methods import MLkNN
    >>> X, Y = make_multilabel_classification(n_samples=120, n_classes=4, random_state=0)
    >>> board = compare({"five": MLkNN(k=5), "ten": MLkNN(k=10)}, X, Y, cv=3, metrics=["ranking_loss"])
    >>> len(recommend(board).sentences) > 1
    True
    """
    table = board.table
    table = table[table[board.headline].notna()]
    if table.empty:
        return Recommendation(None, ("No method finished, so there is nothing to recommend.",))
    title = defined(board.headline).title
    names = [str(name) for name in table.index]
    contenders = [name for name in names if name not in baselines]
    baseline = next((name for name in names if name in baselines), None)
    if not contenders:
        return Recommendation(None, (f"Only the baseline {baseline} finished, so there is nothing to recommend.",))
    best = contenders[0]
    against = "" if baseline is None else _against_baseline(board, best, baseline)
    if baseline is not None and not _beats(board, best, baseline):
        return Recommendation(None, (against, _NO_MODEL))
    level = tuple(name for name in board.best if name != best and name not in baselines)
    seconds = board.seconds
    cheaper = tuple(name for name in board.pareto if name in level and seconds[name] * _CHEAPER <= seconds[best])
    mean, low, high = board.intervals().loc[best]
    interval = f" (95 % interval {low:.4f} to {high:.4f})" if low == low else ""
    sentences = [
        f"Use {best}: it has the best {title} of the {len(contenders)} candidates, {mean:.4f} on average over "
        f"{board.n_splits} splits{interval}, in {_time(seconds[best])} per fit.",
        against,
        _certainty(board, best, level, contenders),
        *(_cheaper(board, best, name) for name in cheaper[:2]),
        _selection(len(contenders)),
    ]
    return Recommendation(best, tuple(filter(None, sentences)), level, cheaper)


def _beats(board: Leaderboard, best: str, baseline: str) -> bool:
    """Return whether the best method is shown to be better than the baseline: the corrected interval is above 0."""
    gain = board.difference(best, baseline)
    return bool(gain["mean"] > 0 and (board.n_splits < 2 or gain["p"] <= board.alpha))


def _against_baseline(board: Leaderboard, best: str, baseline: str) -> str:
    gain = board.difference(best, baseline)
    title, value = defined(board.headline).title, board.table.loc[baseline, board.headline]
    if _beats(board, best, baseline):
        return f"The best baseline, {baseline}, which reads no features, has {value:.4f}."
    amount = f"{gain['mean']:+.4f}"
    interval = f", 95 % interval {gain['low']:+.4f} to {gain['high']:+.4f}" if gain["low"] == gain["low"] else ""
    return (
        f"Nothing is shown to be better than {baseline}, which reads no features: the best other method, {best}, "
        f"differs from it by {amount} in {title} ({value:.4f} for the baseline{interval})."
    )


def _certainty(board: Leaderboard, best: str, level: tuple[str, ...], contenders: list[str]) -> str:
    if board.n_splits < 2:
        return "One split says nothing about how certain that is; use several."
    if len(contenders) < 2:
        return ""
    second = contenders[1]
    gain = board.difference(best, second)
    text = (
        f"{best} is better than the next one, {second}, on {gain['wins']:.0f} of {board.n_splits} splits, by "
        f"{gain['mean']:.4f} on average (95 % interval {gain['low']:+.4f} to {gain['high']:+.4f})"
    )
    if not level:
        return f"{text}. Every other method is significantly worse at {board.alpha:g} ({_TEST})."
    others = "it" if level == (second,) else _listed(level)
    return (
        f"{text}. Not shown to be worse at {board.alpha:g} ({_TEST}): {others}; which of these is the best, "
        f"{board.n_splits} splits cannot say."
    )


def _cheaper(board: Leaderboard, best: str, name: str) -> str:
    seconds, gain = board.seconds, board.difference(best, name)
    ratio = seconds[best] / max(seconds[name], 1e-4)
    return (
        f"If time matters: {name} takes {_time(seconds[name])} per fit, {ratio:.0f} times less, and is "
        f"{gain['mean']:.4f} worse on average (95 % interval {gain['low']:+.4f} to {gain['high']:+.4f}), which is not "
        "significant after Holm's correction."
    )


def _selection(n_methods: int) -> str:
    if n_methods < 3:
        return ""
    return f"The best of {n_methods} on the same splits looks better than it is: expect a little less on new rows."


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
