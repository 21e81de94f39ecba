"""Recommendation of a method of a leaderboard, with reasons and certainty, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import pandas as pd

from multilab.core.text import BETTER, listed
from multilab.metrics import OverAssigned
from multilab.metrics.registry import direction_of, title_of
from multilab.statistics import Leaderboard
from multilab.statistics.leaderboard import NAMED

__all__ = ["Recommendation", "recommend"]

_CHEAPER = 3.0
"""A method is called cheaper if it takes at most a third of the seconds."""
_SLOW = 1.0
"""Time does not matter where the recommended method takes fewer seconds than this."""
_PAID = ("macro_f1", "micro_f1", "example_f1", "subset_accuracy", "hamming_loss")
_PAID_COLUMNS = ["own", "thresholds", "change"]
_NO_MODEL = (
    "Do not deploy a model yet: check whether the features carry information about the labels, try another metric, "
    "or collect more rows."
)
_TEST = "corrected resampled t test, Holm"


@dataclass(frozen=True, eq=False)
class Recommendation:
    """A recommended method with reasons; ``str`` gives the sentences and the table of costs in other metrics.

    Attributes
    ----------
    method : str or None
        The recommended method. None if no method is significantly better than the baseline, or none finished.
    sentences : tuple of str
        What is recommended, what is not and why, how certain this is, and which methods are as good and cheaper.
    level : tuple of str
        Other methods that could be recommended and do not differ significantly from the recommended one.
    cheaper : tuple of str
        The methods in ``level`` on the Pareto front of quality and seconds that take at most a third of the seconds of
        the recommended one and are not significantly worse, cheapest first.
    paid : DataFrame
        What tuned thresholds change, if the method was compared with and without them. The index holds the first metric
        and others that depend on decisions; the columns ``own``, ``thresholds`` and ``change`` are means.
    over_assigned : dict of str to list of OverAssigned
        The labels that each method except the baselines assigns far too often, see `multilab.metrics.over_assigned`.
    highest : str
        The method with tuned thresholds that has the highest mean but no significant gain; empty if there is none.
    """

    method: str | None
    sentences: tuple[str, ...]
    level: tuple[str, ...] = ()
    cheaper: tuple[str, ...] = ()
    paid: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_PAID_COLUMNS))
    over_assigned: dict[str, list[OverAssigned]] = field(default_factory=dict)
    highest: str = ""

    def __str__(self) -> str:
        text = "\n".join(self.sentences)
        return text if self.paid.empty else f"{text}\n\n{self.paid_texts().to_string()}"

    def paid_texts(self) -> pd.DataFrame:
        """Return `paid` with titles of metrics and rounded numbers."""
        names = [str(name) for name in self.paid.index]
        texts = {"own decisions": "own", "thresholds": "thresholds", "change": "change"}
        forms = {name: "{:+.4f}" if name == "change" else "{:.4f}" for name in texts.values()}
        return pd.DataFrame(
            {title: self.paid[name].map(forms[name].format).to_numpy() for title, name in texts.items()},
            index=[f"{title_of(name)} ({BETTER[direction_of(name)]})" for name in names],
        )


def recommend(
    board: Leaderboard,
    baselines: Sequence[str] = (),
    *,
    certain: bool = True,
    titles: Mapping[str, str] | None = None,
    command: Callable[[str], str] | None = None,
) -> Recommendation:
    """Recommend the method with the best mean of the first metric among those whose decisions can be used.

    Two kinds of methods are not recommended: those with tuned thresholds whose gain over the method's own decisions is
    not significant (its interval at the level of the board contains 0), and those that assign a label far too often
    (`multilab.metrics.over_assigned`). If every method assigns a label far too often, the best one with its own
    decisions is recommended, except for these labels. Nothing is recommended if no method is significantly better than
    the best baseline.

    Parameters
    ----------
    board : Leaderboard
    baselines : sequence of str
        Methods that read no features; the best of those on the board counts.
    certain : bool, default=True
        Whether tuned thresholds need a significant gain. If False, any gain counts unless macro, micro or example F1
        loses more; for programs whose user chose the metric.
    titles : mapping of str to str, optional
        Titles of methods, for the first sentence.
    command : callable, optional
        Function that returns the command that fits a method of the board, or an empty string; for the sentence on the
        highest mean.

    Returns
    -------
    Recommendation

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from multilab import compare
    >>> from multilab.comparison import recommend
    >>> from multilab.methods import MLkNN
    >>> X, Y = make_multilabel_classification(n_samples=120, n_classes=4, random_state=0)
    >>> board = compare({"five": MLkNN(k=5), "ten": MLkNN(k=10)}, X, Y, cv=3, metrics=["ranking_loss"])
    >>> recommend(board).method
    'five'
    """
    table = board.table
    table = table[table[board.headline].notna()]
    if table.empty:
        return Recommendation(None, ("No method finished, so there is nothing to recommend.",))
    names = [str(name) for name in table.index]
    contenders = [name for name in names if name not in baselines]
    baseline = next((name for name in names if name in baselines), None)
    if not contenders:
        return Recommendation(None, (f"Only the baseline {baseline} finished, so there is nothing to recommend.",))
    flagged = {name: board.over_assigned[name] for name in contenders if name in board.over_assigned}
    tuned = [name for name in contenders if board.untuned.get(name) in contenders]
    chance = [name for name in tuned if not _gains(board, name) and (certain or _costs_more(board, name))]
    usable = [name for name in contenders if name not in flagged and name not in chance]
    pool = usable or [name for name in contenders if board.untuned.get(name) not in contenders]
    best = pool[0]
    rejected = [n for n in contenders if n not in pool and (board.untuned.get(n) == best or n in _above(names, best))]
    highest = contenders[0] if contenders[0] in set(chance) - set(flagged) else ""
    reasons = (
        "" if not highest else _highest(board, highest, command(highest) if command else ""),
        _assigning({n: flagged[n] for n in rejected if n in flagged}),
        _by_chance(board, [name for name in rejected if name in chance and name != highest]),
    )
    against = _unbeaten(board, best, contenders[0], [name for name in names if name in baselines])
    if against:
        return Recommendation(None, tuple(filter(None, (against, _NO_MODEL, *reasons[1:]))), over_assigned=flagged)
    level, cheaper = _alternatives(board, best, pool)
    named = _named(board, best, titles or {})
    sentences = (
        _use(board, best, named, contenders) if usable else _use_in_part(named, flagged[best]),
        *reasons,
        "" if baseline is None else _baseline(board, best, baseline),
        _certainty(board, best, level, pool),
        *(_cheaper(board, best, name) for name in cheaper[:2]),
        _missing(board),
        _selection(len(contenders)),
    )
    return Recommendation(best, tuple(filter(None, sentences)), level, cheaper, _paid(board, best), flagged, highest)


def _above(names: list[str], best: str) -> list[str]:
    return names[: names.index(best)]


def _gains(board: Leaderboard, tuned: str) -> bool:
    """Return whether tuned thresholds are shown to gain over the method's own decisions."""
    gain = board.difference(tuned, board.untuned[tuned], level=1 - board.alpha)
    return bool(gain["low"] > 0)


def _costs_more(board: Leaderboard, tuned: str) -> bool:
    """Return whether tuned thresholds cost another F1 more than they gain."""
    table, plain = board.table, board.untuned[tuned]
    gain = abs(table.loc[tuned, board.headline] - table.loc[plain, board.headline])
    others = [name for name in ("macro_f1", "micro_f1", "example_f1") if name in board.directions]
    return any(
        table.loc[plain, metric] - table.loc[tuned, metric] > gain for metric in others if metric != board.headline
    )


def _beats(board: Leaderboard, name: str, baseline: str) -> bool:
    """Return whether a method is shown to be better than the baseline: the corrected interval is above 0."""
    gain = board.difference(name, baseline)
    return bool(gain["mean"] > 0 and (board.n_splits < 2 or gain["p"] <= board.alpha))


def _unbeaten(board: Leaderboard, best: str, first: str, baselines: list[str]) -> str:
    """Return which baseline stands against a recommendation, empty if none does.

    Thresholds can give a baseline a good F1 by assigning a label to every row. The first method, with thresholds or
    not, shows that the features say more than that; the best usable one need only beat the baselines that are usable.
    """
    usable = [name for name in baselines if name not in board.over_assigned]
    if baselines and not any(_beats(board, name, baselines[0]) for name in (best, first)):
        return _not_better(board, first, baselines[0])
    return _not_better(board, best, usable[0]) if usable and not _beats(board, best, usable[0]) else ""


def _alternatives(board: Leaderboard, best: str, pool: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the methods of the pool that the test does not separate from the best, and the cheaper ones of them."""
    tests, seconds = board.tests(reference=best), board.seconds
    level = tuple(name for name in pool if name in tests.index and not tests.loc[name, "differs"])
    if not seconds[best] >= _SLOW:
        return level, ()
    near = [name for name in level if tests.loc[name, "p"] > board.alpha]  # no loss without the correction either
    front = [name for name in board.pareto if name in near]
    return level, tuple(name for name in front if seconds[name] * _CHEAPER <= seconds[best])


def _paid(board: Leaderboard, best: str) -> pd.DataFrame:
    """Return what tuned thresholds change in the decision metrics of the recommended method; empty without any."""
    untuned = board.untuned.get(best, best)
    tuned = next((name for name, plain in board.untuned.items() if plain == untuned), None)
    if tuned is None or not {untuned, tuned} <= set(board.table.index):
        return pd.DataFrame(columns=_PAID_COLUMNS)
    metrics = [m for m in dict.fromkeys([board.headline, *_PAID]) if m in board.directions]
    both = board.table.loc[[untuned, tuned], metrics].T.set_axis(["own", "thresholds"], axis=1)
    return both.assign(change=both["thresholds"] - both["own"])


def _use(board: Leaderboard, best: str, named: str, contenders: list[str]) -> str:
    mean, low, high = board.intervals(level=1 - board.alpha).loc[best]
    interval = f" ({_level(board)} interval {low:.4f} to {high:.4f})" if low == low else ""
    splits = "1 split" if board.n_splits == 1 else f"{board.n_splits} splits"
    what = "the best" if best == contenders[0] else "the best that can be recommended"
    return (
        f"Use {named}, {_among(board, what, contenders)}: {title_of(board.headline)} {mean:.4f} on average over "
        f"{splits}{interval}."
    )


def _among(board: Leaderboard, what: str, contenders: list[str]) -> str:
    """Return how many methods there are, and which of them were tried with tuned thresholds too."""
    tuned = [board.untuned[name] for name in contenders if board.untuned.get(name) in contenders]
    count = len(contenders) - len(tuned)
    many = f"{what} of {count} methods" if count > 1 else "the only method"
    if not tuned:
        return many
    if count == 1:
        return f"{many}, tried with its own decisions and with tuned thresholds"
    if len(tuned) == count:
        return f"{many}, each with its own decisions and with tuned thresholds"
    return f"{many}, of which {_few(tuned)} {'was' if len(tuned) == 1 else 'were'} tried with tuned thresholds too"


def _few(names: Sequence[str]) -> str:
    """Return the names, or the first ones and the number of three others or more."""
    return listed(names, NAMED if len(names) > NAMED + 1 else NAMED + 1)


def _use_in_part(named: str, labels: list[OverAssigned]) -> str:
    return (
        f"Every method assigns a label to far too many of the held-out rows. Use {named}, but do not "
        f"use its decisions for {listed([*map(str, labels)], NAMED)}."
    )


def _named(board: Leaderboard, name: str, titles: Mapping[str, str]) -> str:
    plain = board.untuned.get(name, name)
    title = f"{name} ({titles[plain]})" if plain in titles else name
    return f"{title} with its own decisions" if name in board.untuned.values() else title


def _assigning(flagged: Mapping[str, list[OverAssigned]]) -> str:
    """Return which methods assign labels far too often, and these labels with the largest rate of each."""
    if not flagged:
        return ""
    worst: dict[object, OverAssigned] = {}
    for assigned in chain.from_iterable(flagged.values()):
        worst[assigned.label] = max(assigned, worst.get(assigned.label, assigned), key=lambda each: each.rate)
    labels = sorted(worst.values(), key=lambda each: each.frequency - each.rate)
    return (
        f"Labels assigned to far too many of the held-out rows: {listed([*map(str, labels)], NAMED)}. Not recommended "
        f"for this reason: {_few(list(flagged))}."
    )


def _highest(board: Leaderboard, name: str, command: str) -> str:
    """Return that tuned thresholds have the highest mean, why they are not recommended, and how to fit them anyway."""
    plain, value = board.untuned[name], board.table.loc[name, board.headline]
    text = (
        f"Highest mean: {name}, {value:.4f}. It is not recommended because its gain over the own decisions of {plain} "
        f"may be chance ({_gain(board, name)})."
    )
    return f"{text} To fit it anyway: {command}" if command else text


def _gain(board: Leaderboard, tuned: str) -> str:
    """Return the gain of tuned thresholds with its interval."""
    gain = board.difference(tuned, board.untuned[tuned], level=1 - board.alpha)
    numbers = f"{gain['mean']:+.4f}"
    if board.n_splits > 1:
        numbers += f", uncorrected {_level(board)} interval {gain['low']:+.4f} to {gain['high']:+.4f}"
    return numbers


def _by_chance(board: Leaderboard, names: list[str]) -> str:
    """Return whose tuned thresholds are not shown to gain, with the numbers of the first."""
    if not names:
        return ""
    gain = board.difference(names[0], board.untuned[names[0]], level=1 - board.alpha)
    what = "show no significant gain" if gain["mean"] > 0 else "are a loss" if gain["high"] < 0 else "show no gain"
    more = (
        f" Those of {_few([board.untuned[n] for n in names[1:]])} show no significant gain either."
        if len(names) > 1
        else ""
    )
    return f"Tuned thresholds of {board.untuned[names[0]]} {what} ({_gain(board, names[0])}).{more}"


def _not_better(board: Leaderboard, best: str, baseline: str) -> str:
    gain = board.difference(best, baseline, level=1 - board.alpha)
    title, value = title_of(board.headline), board.table.loc[baseline, board.headline]
    interval = f", {_level(board)} interval {gain['low']:+.4f} to {gain['high']:+.4f}" if board.n_splits > 1 else ""
    return (
        f"Nothing is shown to be better than {baseline}, which reads no features: the best other method, {best}, is "
        f"better by {gain['mean']:+.4f} in {title} ({value:.4f} for the baseline{interval})."
    )


def _baseline(board: Leaderboard, best: str, baseline: str) -> str:
    value = board.table.loc[baseline, board.headline]
    text = f"The best baseline, {baseline}, which reads no features, has {value:.4f}"
    if baseline in board.over_assigned and board.difference(best, baseline)["mean"] < 0:
        return f"{text}, which is more, but assigns labels far too often."
    return f"{text}."


def _certainty(board: Leaderboard, best: str, level: tuple[str, ...], pool: list[str]) -> str:
    if board.n_splits < 2:
        return "One split does not show how certain that is; use several splits."
    if len(pool) < 2:
        return ""
    tests = board.tests(reference=best)
    second = tests.loc[pool[1]]
    corrected = f" corrected for all {len(tests)} comparisons" if len(tests) > 1 else ""
    text = (
        f"Next is {pool[1]}, {second['advantage']:.4f} worse on average ({_level(board)} interval{corrected} "
        f"{second['low']:+.4f} to {second['high']:+.4f})."
        if second["advantage"] > 0
        else f"{pool[1]} has the same mean."
    )
    if not level:
        return f"{text} Every other method is significantly worse at {board.alpha:g} ({_TEST})."
    which = "the two" if len(level) == 1 else "these"
    return (
        f"{text} Not shown to be worse at {board.alpha:g} ({_TEST}): {_few(level)}; {board.n_splits} splits "
        f"do not show which of {which} is the best."
    )


def _cheaper(board: Leaderboard, best: str, name: str) -> str:
    seconds, gain = board.seconds, board.difference(best, name, level=1 - board.alpha)
    ratio = seconds[best] / max(seconds[name], 1e-4)
    return (
        f"If time matters: {name} takes {_time(seconds[name])} per fit, {ratio:.0f} times less. It is "
        f"{gain['mean']:.4f} worse on average, which may be chance (uncorrected {_level(board)} interval "
        f"{gain['low']:+.4f} to {gain['high']:+.4f})."
    )


def _missing(board: Leaderboard) -> str:
    """Return which methods were not compared."""
    undefined = [str(name) for name in board.table.index[board.table[board.headline].isna()]]
    return " ".join(
        f"{reason}: {_few(names)}."
        for reason, names in (
            ("Not compared, because they did not finish", list(board.failures)),
            (f"Not compared, because their {title_of(board.headline)} is undefined", undefined),
        )
        if names
    )


def _selection(n_compared: int) -> str:
    if n_compared < 3:
        return ""
    return "The best of several methods on the same splits looks better than it is; expect a little less on new rows."


def _level(board: Leaderboard) -> str:
    return f"{100 * (1 - board.alpha):g} %"


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds / 60:.0f} min"
