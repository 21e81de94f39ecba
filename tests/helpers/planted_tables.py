"""Tables made of our own results, with and without a planted fault, and what the audit reports of them.

``python tests/helpers/planted_tables.py 50 100 SEED...`` prints recall and precision over the seeds, each with 500
tables with one fault and 100 clean ones: the numbers in docs/guide/audit.md.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from multilab.audit import AuditCell, AuditFinding, AuditTable, TestSize, audit_table, parse_number, quantity_of
from multilab.audit.numbers import PrintedNumber
from multilab.statistics import friedman, iman_davenport, nemenyi_cd, rank_rows

REPORTS = Path(__file__).resolve().parents[2] / "reports"
STUDIES = ("imldf", "lskmddm", "lwmf-resplits", "mlekelm", "mlwse", "mlwse-core")
METRICS = (
    "hamming_loss",
    "one_error",
    "coverage",
    "ranking_loss",
    "average_precision",
    "jaccard",
    "subset_accuracy",
    "example_f1",
    "macro_f1",
    "micro_f1",
    "macro_auc",
    "example_precision",
    "example_recall",
)
RANK_CHECKS = {"average_ranks_of_rows", "friedman_of_ranks", "ranks_of_values", "share_of_wins"}


@dataclass
class Source:
    """A table before it is printed: results per cell, and how it is printed."""

    values: dict[str, pd.DataFrame]  # by metric: datasets x methods, means
    stds: dict[str, pd.DataFrame] | None
    sizes: dict[str, TestSize]
    decimals: int
    ranks_of_rounded: bool


@dataclass
class Planted:
    """A printed table with a fault: which cells it is about."""

    cells: list[AuditCell]
    sizes: dict[str, TestSize]
    metrics: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    datasets: set[str] = field(default_factory=set)


@cache
def every_score(study: str) -> pd.DataFrame:
    """Return the results of a study by dataset, split, method and metric."""
    return pd.read_csv(REPORTS / study / "scores.csv.gz", dtype={"split": str})


@cache
def scores(study: str) -> pd.DataFrame:
    """Return the results of a study in the metrics that tables are made of."""
    frame = every_score(study)
    return frame[frame["metric"].isin(METRICS)]


@cache
def aggregated(study: str, split: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return means and deviations over the splits of a study (or one split) by metric and dataset, per method."""
    frame = scores(study)
    grouped = (frame[frame["split"] == split] if split else frame).groupby(["metric", "dataset", "method"])["value"]
    return grouped.mean().unstack(), grouped.std().unstack()


@cache
def even_columns(study: str) -> list[str]:
    """Return the methods that were run once, or as often as most methods, on each dataset that they have.

    Means over some of the splits cannot be compared with those over all of them.
    """
    splits = scores(study).groupby(["dataset", "method"])["split"].nunique().unstack()
    even = splits.isna() | splits.eq(1) | splits.eq(splits.mode(axis=1).max(axis=1), axis=0)
    return [method for method in scores(study)["method"].unique() if even[method].all()]


@cache
def sizes(study: str) -> dict[str, TestSize]:
    """Return labels, cardinality and rows without a label of the datasets of a study."""
    entries = json.loads((REPORTS / study / "datasets.json").read_text(encoding="utf-8"))
    return {
        e["name"]: TestSize(q=e["labels"], cardinality=e["cardinality"], unlabelled=e["rows_without_label"])
        for e in entries
    }


@cache
def set_size(study: str, dataset: str, split: str) -> tuple[int, int] | None:
    """Return the rows of a test set, the fewest that explain subset accuracies and one-errors, and those unlabelled."""
    frame = every_score(study)
    frame = frame[(frame["dataset"] == dataset) & (frame["split"] == split)]
    subset = frame[frame["metric"] == "subset_accuracy"]["value"].unique()
    errors = frame[frame["metric"] == "one_error"]["value"].unique()
    skipped = frame[frame["metric"] == "n_skipped_one_error"]["value"].max()
    rows = np.arange(20, 6000)
    counts = np.hstack([np.outer(rows, subset), np.outer(rows - skipped, errors)])
    near = np.abs(counts - np.rint(counts)).max(axis=1) < 1e-6
    return (int(rows[near][0]), int(skipped)) if near.any() and len(subset) >= 4 else None


def draw_source(rng: np.random.Generator, single: bool = False, metrics: tuple[str, ...] = ()) -> Source:
    """Return a random table of our results: 4 to 9 methods, 5 to 13 datasets, 2 to 5 metrics.

    Methods whose results agree with those of another one to .0005 in half of the cells of a metric are left out: there
    the audit rightly reports a repetition. So are those that were not run on the usual splits. ``single``: results of
    one split with the sizes of its test sets, else means over the splits with their deviations.
    """
    while True:
        study = str(rng.choice(STUDIES))
        frame = scores(study)
        names = [*metrics, *rng.permutation([m for m in METRICS if m not in metrics])][
            : max(len(metrics), int(rng.integers(2, 6)))
        ]
        methods = list(rng.permutation(even_columns(study)))
        datasets = list(rng.permutation(frame["dataset"].unique()))[: int(rng.integers(5, 14))]
        split = str(rng.choice(frame["split"].unique())) if single else ""
        means, stds = aggregated(study, split)
        chosen = _different(means.loc[names], methods, int(rng.integers(4, 10)))
        means, stds = means.loc[names][chosen].dropna(), stds[chosen]
        complete = [d for d in datasets if all((m, d) in means.index for m in names)]
        known = sizes(study)
        complete = [d for d in complete if d in known]
        if len(complete) < 4 or len(chosen) < 4:
            continue
        with_std = (
            not single
            and bool(rng.random() < 0.7)
            and not stds.loc[[(m, d) for m in names for d in complete]].isna().any().any()
        )
        own = {d: known[d] for d in complete}
        if single:
            rows = {d: set_size(study, d, split) for d in complete}
            if not all(rows.values()):
                continue
            own = {d: replace(own[d], n=size[0], unlabelled=size[1]) for d, size in rows.items() if size}
        else:
            own = {d: replace(own[d], unlabelled=0) for d in complete}
        return Source(
            {m: means.loc[m].loc[complete] for m in names},
            {m: stds.loc[m].loc[complete] for m in names} if with_std else None,
            own,
            4 if single else int(rng.choice([3, 4])),
            bool(rng.random() < 0.5),
        )


def _different(means: pd.DataFrame, methods: list[str], count: int) -> list[str]:
    metric = means.index.get_level_values(0).factorize()[0]
    rows = np.bincount(metric)
    columns = {method: means[method].to_numpy() for method in methods if method in means}
    chosen: list[str] = []
    for method, values in columns.items():
        near = [np.bincount(metric, np.abs(values - columns[other]) < 5e-4) for other in chosen]
        if len(chosen) < count and not any((hits >= 0.5 * rows).any() for hits in near):
            chosen.append(method)
    return chosen


def number(value: float, decimals: int) -> PrintedNumber:
    """Return a rounded number."""
    parsed = parse_number(f"{value:.{decimals}f}")
    assert parsed
    return parsed


def rounded(values: pd.DataFrame, decimals: int) -> pd.DataFrame:
    """Return the values as they are printed."""
    return values.map(lambda value: float(f"{value:.{decimals}f}"))


def printed(source: Source) -> list[AuditCell]:
    """Return a table as a paper prints it: rows, averages, average ranks, F_F and critical difference."""
    cells = []
    for metric, values in source.values.items():
        quantity = quantity_of(metric)
        assert quantity
        direction = quantity.direction
        as_printed = rounded(values, source.decimals)
        texts = values.to_dict()
        deviations = source.stds[metric].to_dict() if source.stds else {}
        for method, column in texts.items():
            for dataset, value in column.items():
                std = number(deviations[method][dataset], source.decimals) if deviations else None
                cells.append(
                    AuditCell("1", dataset, method, metric, number(value, source.decimals), std, None, direction)
                )
            mean = number(as_printed[method].mean(), source.decimals)
            deviation = number(as_printed[method].std(ddof=1), source.decimals) if source.stds else None
            cells.append(AuditCell("1", "Average", method, metric, mean, deviation, None, direction, "mean"))
        ranks = rank_rows(as_printed if source.ranks_of_rounded else values, direction)
        for method in values:
            mean = number(ranks[method].mean(), 2)
            cells.append(AuditCell("1", "Avg. rank", method, metric, mean, kind="average_rank"))
        n, k = ranks.shape
        statistic = iman_davenport(friedman(ranks.to_numpy(), tie_correction=False), n, k).F
        if np.isfinite(statistic):
            cells.append(AuditCell("2", "all", "F_F", metric, number(statistic, 3), kind="iman_davenport"))
    first = next(iter(source.values.values()))
    difference = nemenyi_cd(first.shape[1], first.shape[0])
    cells.append(AuditCell("2", "all", "CD", "all", number(difference, 3), kind="nemenyi_cd"))
    return cells


def audited(cells: list[AuditCell], known: dict[str, TestSize]) -> list[AuditFinding]:
    """Return the faults of a table."""
    return [f for f in audit_table(AuditTable.of(cells, known)) if f.severity == "fault"]


Plant = Callable[[np.random.Generator], Planted]
PLANTS: dict[str, Plant] = {}


def plant(function: Plant) -> Plant:
    """Register a kind of fault."""
    PLANTS[function.__name__] = function
    return function


def _slip(rng: np.random.Generator, text: str) -> str:
    """Return a number with one digit changed; which, and into which, is random."""
    positions = [i for i, char in enumerate(text) if char.isdigit()]
    at = int(rng.choice(positions))
    digit = str(rng.choice([d for d in "0123456789" if d != text[at]]))
    return text[:at] + digit + text[at + 1 :]


def _replaced(cells: list[AuditCell], old: AuditCell, **changes: object) -> list[AuditCell]:
    return [replace(cell, **changes) if cell is old else cell for cell in cells]


def _of(rng: np.random.Generator, cells: list[AuditCell], kind: str) -> AuditCell:
    chosen = [cell for cell in cells if cell.kind == kind]
    return chosen[int(rng.integers(len(chosen)))]


def _digit_of(rng: np.random.Generator, kind: str) -> Planted:
    cells: list[AuditCell] = []
    while not any(cell.kind == kind for cell in cells):  # F_F is infinite where all datasets rank alike
        source = draw_source(rng)
        cells = printed(source)
    old = _of(rng, cells, kind)
    assert old.mean
    new = parse_number(_slip(rng, old.mean.text))
    return Planted(_replaced(cells, old, mean=new), source.sizes, {old.metric}, {old.method}, {old.dataset})


@plant
def average(rng: np.random.Generator) -> Planted:
    """A digit of an average is wrong; the average is that of no rows that are printed like these."""
    while True:
        planted = _digit_of(rng, "mean")
        own = [c for c in planted.cells if c.metric in planted.metrics and c.method in planted.methods]
        (wrong,) = (cell.mean for cell in own if cell.kind == "mean")
        rows = [cell.mean for cell in own if not cell.kind and cell.mean]
        if wrong and not _of_other_rows(wrong, rows):
            return planted


def _of_other_rows(average: PrintedNumber, rows: list[PrintedNumber]) -> bool:
    """Return whether rows that are printed like these have this average: each moved by the same, up to half a unit."""
    most = 0.4999 * 10.0**-average.decimals
    moved = np.array([row.value for row in rows])
    moved += np.clip(average.value - moved.mean(), -most, most)
    printed_alike = all(number(value, row.decimals).text == row.text for value, row in zip(moved, rows, strict=True))
    return printed_alike and number(moved.mean(), average.decimals).text == average.text


@plant
def row(rng: np.random.Generator) -> Planted:
    """The point of a result is moved by one digit."""
    while True:
        source = draw_source(rng)
        cells = printed(source)
        old = _of(rng, cells, "")
        assert old.mean
        if old.mean.value == 0:
            continue
        power = -1 if rng.random() < 0.5 and old.mean.value < 10 else 1
        new = number(old.mean.value / 10.0**power, old.mean.decimals)
        if new.value != old.mean.value:
            return Planted(_replaced(cells, old, mean=new), source.sizes, {old.metric}, {old.method}, {old.dataset})


@plant
def average_rank(rng: np.random.Generator) -> Planted:
    """A digit of an average rank is wrong."""
    return _digit_of(rng, "average_rank")


@plant
def statistic(rng: np.random.Generator) -> Planted:
    """A digit of F_F is wrong."""
    return _digit_of(rng, "iman_davenport")


@plant
def critical_difference(rng: np.random.Generator) -> Planted:
    """The critical difference is that of one method or dataset more or less, or q."""
    source = draw_source(rng)
    cells = printed(source)
    old = _of(rng, cells, "nemenyi_cd")
    first = next(iter(source.values.values()))
    n, k = first.shape
    choices = [nemenyi_cd(k + 1, n), nemenyi_cd(k - 1, n), nemenyi_cd(k, n + 1), nemenyi_cd(k, n - 1)]
    choices.append(nemenyi_cd(k, n) / (k * (k + 1) / (6 * n)) ** 0.5)
    assert old.mean
    new = number(
        float(rng.choice([c for c in choices if not old.mean.holds(c)])), 3
    )  # q is the difference at k = N = 5
    return Planted(_replaced(cells, old, mean=new), source.sizes, {"all"}, {old.method}, {old.dataset})


def _small_holdout(rng: np.random.Generator) -> Source:
    """Return results of one split whose test sets have at most 500 rows, each with a label."""
    while True:
        source = draw_source(rng, single=True, metrics=("one_error",))
        small = [d for d, size in source.sizes.items() if (size.n or 0) <= 500 and not size.unlabelled]
        if len(small) >= 3:
            source.values = {m: v.loc[small] for m, v in source.values.items()}
            source.sizes = {d: source.sizes[d] for d in small}
            return source


@plant
def grid(rng: np.random.Generator) -> Planted:
    """The last two digits of a one-error are wrong; test sets of at most 500 rows, no averages."""
    source = _small_holdout(rng)
    cells = [cell for cell in printed(source) if not cell.kind]
    chosen = [c for c in cells if c.metric == "one_error"]
    old = chosen[int(rng.integers(len(chosen)))]
    assert old.mean
    digits = str(rng.choice([f"{k:02d}" for k in range(100) if f"{k:02d}" != old.mean.text[-2:]]))
    new = parse_number(old.mean.text[:-2] + digits)
    return Planted(_replaced(cells, old, mean=new), source.sizes, {old.metric}, {old.method}, {old.dataset})


@plant
def size(rng: np.random.Generator) -> Planted:
    """The number of test rows is wrong by one to three."""
    source = _small_holdout(rng)
    dataset = str(rng.choice(list(source.sizes)))
    right = source.sizes[dataset]
    wrong = replace(right, n=(right.n or 0) + int(rng.choice([-3, -2, -1, 1, 2, 3])))
    return Planted(printed(source), {**source.sizes, dataset: wrong}, set(), set(), {dataset})


@plant
def repeated_column(rng: np.random.Generator) -> Planted:
    """A method has the numbers of another one, in one metric, with its averages and ranks."""
    while True:
        source = draw_source(rng)
        metric = str(rng.choice(list(source.values)))
        first, second = map(str, rng.choice(list(source.values[metric]), 2, replace=False))
        if len(source.values[metric]) < 5:
            continue
        for tables in (source.values, source.stds):
            if tables:
                tables[metric] = tables[metric].assign(**{second: tables[metric][first]})
        return Planted(printed(source), source.sizes, {metric}, {first, second}, set())


@plant
def accuracy(rng: np.random.Generator) -> Planted:
    """The accuracy of one method is 1 - Hamming loss, that of the others Jaccard's index."""
    source = draw_source(rng, metrics=("jaccard", "hamming_loss"))
    method = str(rng.choice(list(source.values["jaccard"])))
    source.values["jaccard"] = source.values["jaccard"].assign(**{method: 1 - source.values["hamming_loss"][method]})
    if source.stds:
        source.stds["jaccard"] = source.stds["jaccard"].assign(**{method: source.stds["hamming_loss"][method]})
    return Planted(printed(source), source.sizes, {"jaccard", "hamming_loss"}, {method}, set())


@plant
def exchanged(rng: np.random.Generator) -> Planted:
    """Mean and standard deviation of a result are exchanged."""
    while True:
        source = draw_source(rng)
        if not source.stds:
            continue
        cells = printed(source)
        old = _of(rng, cells, "")
        assert old.mean
        assert old.std
        if old.mean.value == old.std.value:
            continue
        changed = _replaced(cells, old, mean=old.std, std=old.mean)
        return Planted(changed, source.sizes, {old.metric}, {old.method}, {old.dataset})


def related(planted: Planted, finding: AuditFinding) -> bool:
    """Return whether a finding is about the planted fault or a number that follows from it."""
    if not planted.metrics:  # the size of a test set
        return finding.dataset in planted.datasets
    metric = not finding.metric or planted.metrics & {
        m.strip() for part in finding.metric.split("=") for m in part.split(",")
    }
    methods = {m.strip() for part in finding.method.split("=") for m in part.split(",")}
    method = not finding.method or planted.methods & methods
    return bool(metric and (method or finding.check in RANK_CHECKS))


def measure(per_kind: int, clean: int, seed: int = 0) -> dict[str, object]:
    """Return recall per kind, precision (``right`` of all ``faults``), and the share of clean tables with a fault."""
    rng = np.random.default_rng(seed)
    recall, right, wrong, missed, alarms = Counter(), 0, 0, [], []
    for kind, make in PLANTS.items():
        for trial in range(per_kind):
            planted = make(rng)
            findings = audited(planted.cells, planted.sizes)
            hits = [f for f in findings if related(planted, f)]
            recall[kind] += bool(hits)
            right += len(hits)
            wrong += len(findings) - len(hits)
            missed += (
                []
                if hits
                else [(kind, trial, sorted(planted.methods), sorted(planted.metrics), sorted(planted.datasets))]
            )
            alarms += [(kind, f) for f in findings if f not in hits]
    false = []
    for trial in range(clean):
        source = draw_source(rng, single=trial % 3 == 0)
        findings = audited(printed(source), source.sizes)
        false += [findings] if findings else []
    return {
        "recall": {kind: recall[kind] / per_kind for kind in PLANTS} if per_kind else {},
        "precision": right / max(right + wrong, 1),
        "right": right,
        "faults": right + wrong,
        "false_alarms": len(false) / max(clean, 1),
        "missed": missed,
        "alarms": alarms,
        "false": false,
    }


if __name__ == "__main__":
    per_kind, clean, *seeds = [int(text) for text in sys.argv[1:]] or [50, 100, 0]
    results = [measure(per_kind, clean, seed) for seed in seeds]
    recall = {kind: float(np.mean([one["recall"][kind] for one in results])) for kind in PLANTS}  # type: ignore[index]
    for kind, share in recall.items():
        print(f"{kind:<20} {share:.1%}")
    right, faults = (sum(int(one[name]) for one in results) for name in ("right", "faults"))  # type: ignore[call-overload]
    print(
        f"recall {np.mean(list(recall.values())):.1%}, precision {right} of {faults} ({right / max(faults, 1):.1%}), "
        f"clean tables with a fault {sum(len(one['false']) for one in results)} of {clean * len(results)}"  # type: ignore[arg-type]
    )
    for name in ("missed", "alarms", "false"):
        for seed, one in zip(seeds, results, strict=True):
            for line in one[name]:  # type: ignore[attr-defined]
                print(name, seed, line)
