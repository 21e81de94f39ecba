"""Stratified folds: quality and time, against iterative-stratification and scikit-multilearn-ng.

    MULTILAB_DATA=... python benchmarks/splitters.py [emotions yeast ...] [--seeds 3] [--limit 200]

*Quality* of 10 folds, means over seeds, by the measures of Sechidis et al. (2011) and Szymanski and Kajdanowicz (2017);
less is better for all:

- LD: mean over labels and folds of |odds of the label in the fold - odds in the data| (odds: positive to negative rows,
  of which at least one is counted).
- LPD: the same over the pairs of labels that occur together.
- size: mean over folds of |rows - n/10|.
- empty: folds without a positive row, summed over labels; labels with fewer than 10 positive rows cannot avoid some,
  which are not counted.

*Time* is processor time of one call of split: on the real sets, and on 100,000 x 100 labels, where a peer that takes
longer than the limit is stopped. scikit-multilearn-ng runs without ``random_state``: with it the rows are shuffled and
the folds are row numbers of the shuffled table, as the last line of a table shows.

*Groups*: scikit-learn's StratifiedGroupKFold, which knows classes only, gets the label sets as classes.

Without MULTILAB_DATA, the toy sets of the package.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import resource
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from common import Line, Peers, arguments, peers, show
from multilab.datasets import load
from multilab.model_selection import IterativeStratifiedGroupKFold, IterativeStratifiedKFold

FOLDS = 10
REAL = ("emotions", "yeast", "enron", "medical", "yahoo-arts")
TOY = ("genes-toy", "topics-toy")
Folds = list[tuple[np.ndarray, np.ndarray]]
Splitter = Callable[[np.ndarray, int], Folds]
PEERS = ("iterative-stratification", "scikit-multilearn-ng")


class Quality(NamedTuple):
    """How far folds are from equal shares."""

    ld: float
    lpd: float
    size: float
    empty: float
    seconds: float


def synthetic(n: int, q: int, seed: int = 0) -> np.ndarray:
    """Return labels whose shares fall from 0.3 as rank ** -0.8: 2.4 of 100 labels a row, the rarest in 0.8 %."""
    rng = np.random.default_rng(seed)
    return (rng.random((n, q)) < 0.3 * np.arange(1, q + 1) ** -0.8).astype(np.uint8)


def random_folds(Y: np.ndarray, seed: int) -> Folds:
    """Return random folds."""
    from sklearn.model_selection import KFold

    return list(KFold(FOLDS, shuffle=True, random_state=seed).split(Y))


def ours(order: int) -> Splitter:
    """Return multilab's splitter."""
    return lambda Y, seed: list(IterativeStratifiedKFold(FOLDS, order=order, random_state=seed).split(Y, Y))


def iterstrat(Y: np.ndarray, seed: int) -> Folds:
    """Return the folds of iterative-stratification."""
    from iterstrat.ml_stratifiers import MultilabelStratifiedKFold

    return list(MultilabelStratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(Y, Y))


def multilearn(order: int, shuffled: bool = False) -> Splitter:
    """Return the splitter of scikit-multilearn-ng; its ties come from NumPy's global generator."""
    from skmultilearn.model_selection import IterativeStratification

    def split(Y: np.ndarray, seed: int) -> Folds:
        np.random.seed(seed)  # noqa: NPY002
        splitter = IterativeStratification(FOLDS, order=order, random_state=seed if shuffled else None)
        return [(np.sort(train), np.sort(test)) for train, test in splitter.split(Y, Y)]

    return split


def odds(part: np.ndarray, total: int) -> np.ndarray:
    return part / np.maximum(total - part, 1)


def quality(Y: np.ndarray, folds: Folds, seconds: float = 0.0) -> Quality:
    """Return the quality of folds."""
    table = sp.csr_array(Y.astype(np.int64))
    counts = np.array([table[test].sum(axis=0) for _, test in folds])
    pairs = np.array([sp.triu(table[test].T @ table[test], k=1).toarray().ravel() for _, test in folds])
    sizes = np.array([len(test) for _, test in folds])
    deviations = []
    for part in (counts, pairs):
        part = part[:, part.any(axis=0)]
        overall = odds(part.sum(axis=0), len(Y))
        deviations.append(float(np.abs(odds(part, sizes[:, None]) - overall).mean()))
    avoidable = (counts == 0).sum(axis=0) - np.maximum(len(folds) - counts.sum(axis=0), 0)
    size = float(np.abs(sizes - len(Y) / len(folds)).mean())
    return Quality(*deviations, size, float(avoidable.sum()), seconds)


def measured(Y: np.ndarray, split: Splitter, seeds: int) -> Quality:
    """Return the means over seeds; the time is the median."""
    results = []
    for seed in range(seeds):
        began = time.process_time()
        folds = split(Y, seed)
        results.append(quality(Y, folds, time.process_time() - began))
    return Quality(*np.mean(results, axis=0)[:4], statistics.median(one.seconds for one in results))


def row(name: str, one: Quality) -> str:
    """Return a line of the printed table."""
    return (
        f"  {name:<40}{1e3 * one.ld:>8.2f}{1e3 * one.lpd:>8.2f}{one.size:>7.1f}{one.empty:>7.1f}{one.seconds:>9.2f} s"
    )


def same_folds(Y: np.ndarray, other: Any = None) -> str:
    """Compare the folds of sparse and dense labels."""
    for order in (1, 2):
        splitter = IterativeStratifiedKFold(FOLDS, order=order)
        both = (splitter.split(None, form) for form in (Y, sp.csr_array(Y if other is None else other)))
        if any((one != other).any() for (_, one), (_, other) in zip(*both, strict=True)):
            return f"DIFFERENT folds of sparse and dense labels, order {order}"
    return f"identical folds of sparse and dense labels, {len(Y)} rows"


def compare(name: str, Y: np.ndarray, theirs: dict[str, Splitter], seeds: int) -> tuple[list[Line], list[str]]:
    """Measure all splitters on one data set."""
    splitters = {"random": random_folds, "multilab, order 1": ours(1), "multilab, order 2": ours(2), **theirs}
    results = {key: measured(Y, split, seeds) for key, split in splitters.items()}
    notes = [f"{name}, {Y.shape[0]} x {Y.shape[1]}".ljust(42) + "1e3 LD 1e3 LPD   size  empty       time"]
    notes += [row(key, one) for key, one in results.items()]
    lines = []
    known = {key: results[key] for key in theirs}
    for measure, order in (("ld", 1), ("lpd", 2)) if known else ():
        value = getattr(results[f"multilab, order {order}"], measure)
        best = min(known, key=lambda key: getattr(known[key], measure))
        other = getattr(known[best], measure)
        ratio = value / other if other else float(value > 0) + 1
        claim = f"{measure.upper()} of order {order} to the best peer's, 10 folds of {name}"
        text = f"{ratio:.2f}x ({1e3 * value:.2f} to {1e3 * other:.2f}, both x 1000; {best})"
        lines.append(Line(claim, text, "<= 1x", ratio <= 1, same_folds(Y)))
    return lines, notes


def limited(split: Splitter, Y: np.ndarray, limit: float) -> Quality | None:
    """Run a splitter in a process that ends after a limit of processor time; None if it did not finish."""
    context = multiprocessing.get_context("fork")
    queue: Any = context.SimpleQueue()

    def run() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 1))
        queue.put(measured(Y, split, 1))

    process = context.Process(target=run)
    process.start()
    process.join()
    return queue.get() if process.exitcode == 0 else None


def large(n: int, q: int, theirs: dict[str, Splitter], limit: float) -> tuple[list[Line], list[str]]:
    """Time all splitters on many rows."""
    Y = synthetic(n, q)
    results = {f"multilab, order {order}": limited(ours(order), Y, limit) for order in (1, 2)}
    results |= {key: limited(split, Y, limit) for key, split in theirs.items()}
    notes = [f"synthetic, {n} x {q}".ljust(42) + "1e3 LD 1e3 LPD   size  empty       time"]
    notes += [row(key, one) if one else f"  {key:<40} stopped after {limit:.0f} s" for key, one in results.items()]
    lines = []
    mine = {order: results[f"multilab, order {order}"] for order in (1, 2)}
    for order, one in mine.items():
        value = f"{one.seconds:.1f} s" if one else f"> {limit:.0f} s"
        claim = f"10 folds of {n} x {q}, order {order}"
        lines.append(Line(claim, value, "< 10 s", bool(one and one.seconds < 10), same_folds(Y[:2000])))
    for key in theirs:
        other, one = results[key], mine[2 if "order 2" in key else 1]
        if one:
            seconds, sign = (other.seconds, "") if other else (limit, "> ")
            ratio = seconds / one.seconds
            value = f"{sign}{ratio:.1f}x ({one.seconds:.1f} s to {sign}{seconds:.1f} s)"
            lines.append(Line(f"{key}: time to multilab's, {n} x {q}", value, ">= 1x", ratio >= 1))
    return lines, notes


def grouped(name: str, Y: np.ndarray, n_groups: int, seeds: int) -> tuple[list[Line], list[str]]:
    """Compare group folds: random, scikit-learn's stratified by label sets, and multilab's."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    classes = np.unique(Y, axis=0, return_inverse=True)[1].ravel()

    def groups(seed: int) -> np.ndarray:
        return np.random.default_rng(seed).integers(0, n_groups, len(Y))

    splitters: dict[str, Splitter] = {
        "GroupKFold(shuffle=True)": lambda Y, seed: list(
            GroupKFold(FOLDS, shuffle=True, random_state=seed).split(Y, Y, groups(seed))
        ),
        "StratifiedGroupKFold of label sets": lambda Y, seed: list(
            StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed).split(Y, classes, groups(seed))
        ),
        "multilab, order 1": lambda Y, seed: list(
            IterativeStratifiedGroupKFold(FOLDS, random_state=seed).split(Y, Y, groups(seed))
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # label sets with fewer rows than folds
        results = {key: measured(Y, split, seeds) for key, split in splitters.items()}
    notes = [f"{name}, {n_groups} random groups".ljust(42) + "1e3 LD 1e3 LPD   size  empty       time"]
    notes += [row(key, one) for key, one in results.items()]
    mine, best = results["multilab, order 1"].ld, min(one.ld for key, one in results.items() if "multilab" not in key)
    value = f"{mine / best:.2f}x ({1e3 * mine:.2f} to {1e3 * best:.2f}, both x 1000)"
    return [Line(f"LD of group folds to scikit-learn's, {name}", value, "<= 1x", mine <= best)], notes


def main(argv: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("datasets", nargs="*", help="default: five benchmark sets, without MULTILAB_DATA two toy sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument(
        "--limit", type=float, default=200.0, help="processor seconds per splitter on the synthetic labels"
    )
    chosen = parser.parse_args(argv)
    theirs: dict[str, Splitter] = {}
    notes = []
    try:
        notes.append(", ".join(f"{name} {version}" for name, version in peers(*PEERS).items()))
        theirs = {
            "iterative-stratification": iterstrat,
            **{f"scikit-multilearn-ng, order {order}": multilearn(order) for order in (1, 2)},
        }
    except Peers as error:
        notes.append(str(error))
    lines = []
    for name in chosen.datasets or (REAL if os.environ.get("MULTILAB_DATA") else TOY):
        Y = load(name).Y
        shuffled = {"scikit-multilearn-ng, random_state": multilearn(1, shuffled=True)} if theirs else {}
        for more_lines, more_notes in (
            compare(name, Y, {**theirs, **shuffled}, chosen.seeds),
            grouped(name, Y, max(len(Y) // 20, 2 * FOLDS), chosen.seeds),
        ):
            lines += more_lines
            notes += more_notes
    more_lines, more_notes = large(chosen.rows, 100, theirs, chosen.limit)
    show("Splitters", lines + more_lines, notes + more_notes, chosen.json)


if __name__ == "__main__":
    main()
