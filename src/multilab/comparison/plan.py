"""Request and plan of a comparison: the methods to run, with seconds and memory estimated from the table's size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

import pandas as pd
import psutil
from scipy.sparse import csr_array, issparse

from multilab.cells.cell import Cell, scores_cell
from multilab.cells.method import InnerFolds, build
from multilab.cells.store import Store
from multilab.comparison.portfolio import Portfolio, PortfolioMethod
from multilab.datasets import Dataset, TableEncoder
from multilab.datasets.table_encoder import texts_of, with_grams
from multilab.methods.labels import learns_from_missing
from multilab.methods.word_weights import is_bag_of_words
from multilab.models.final_fit import INNER_FOLDS

TABLE = Path(__file__).with_name("costs.csv")

DEFAULT_FOLDS = 5
"""Number of folds, as in `multilab fit`, whose protocol is kfold5."""


@dataclass(frozen=True)
class Request:
    """Arguments of a comparison.

    Attributes
    ----------
    dataset : str
    methods : str or None
        Comma-separated names and globs; None is the portfolio.
    budget : float
        Seconds.
    metric : str
        Metric that orders the leaderboard and is tested.
    cv : int
        Number of stratified folds.
    out : Path
        Folder of the report.
    """

    dataset: str
    methods: str | None
    budget: float
    metric: str
    cv: int
    out: Path

    @property
    def protocol(self) -> dict[str, int]:
        """The protocol of the splits, which `multilab train protocol=kfold5` has too."""
        return {"kfold": self.cv, "stratify": 1, "seed": 0}


@dataclass(frozen=True)
class Cost:
    """Estimated cost of one fit with its prediction.

    Attributes
    ----------
    seconds : float
        On one thread.
    megabytes : float
        Rise of memory.
    factor : float
        Factor by which half of the estimates for left-out datasets were off; larger for sizes beyond the measured ones.
    """

    seconds: float
    megabytes: float
    factor: float


def cost_of(method: str, n: float, d: float, q: float) -> Cost | None:
    """Return the estimated cost of a fit on n rows, d features and q labels, None for a method without a curve."""
    row = _curves().get(method)
    if row is None:
        return None
    sizes = {"n": n, "d": d, "q": q}

    def at(column: str) -> float:
        return math.exp(
            row[f"{column}_log"] + sum(row[f"{column}_{k}"] * math.log(max(v, 1)) for k, v in sizes.items())
        )

    return Cost(at("seconds"), at("megabytes"), row["factor"])


@cache
def _curves() -> dict[str, dict[str, float]]:
    return pd.read_csv(TABLE, index_col="method").to_dict("index")


_SAMPLE = 1000
"""Rows in which the words of a table are counted."""

_CHARACTERS = 250_000
"""Characters of text that are encoded with their n-grams in a second; with words alone, fifteen times as many."""

_OVERHEAD = 0.15  # seconds of a cell besides fit and prediction: a process, reading the data, writing the result


@dataclass(frozen=True)
class Sizes:
    """Rows, features and labels of a dataset, and the share of the rows that a fit sees.

    Attributes
    ----------
    n, d, q : int
    train_share : float
    entries, entries_with_grams : float or None
        Entries of a row that are not 0, on average, if the features are sparse; the second with character n-grams.
    """

    n: int
    d: int
    q: int
    train_share: float
    entries: float | None = None
    entries_with_grams: float | None = None

    @classmethod
    def of(cls, data: Dataset, train_share: float) -> "Sizes":
        """Return the sizes of a dataset as the methods see it; a table is encoded with all its rows."""
        (n, d), X, with_chars = data.X.shape, data.X, None
        if data.kinds is None and is_bag_of_words(X):
            X = csr_array(X)
        if data.kinds is not None:
            encoder = TableEncoder.learn(data.X, data.kinds)
            d, X = encoder.width, encoder.encode(_first(data.X, _SAMPLE)).X if encoder.sparse else None
            if texts_of(data.kinds):
                # fewer rows, because n-grams take much longer than words
                some = _first(data.X, _SAMPLE // 5)
                with_chars = TableEncoder.learn(some, with_grams(data.kinds)).encode(some).X
        entries = X.nnz / X.shape[0] if issparse(X) else None
        entries_with_grams = None if with_chars is None else with_chars.nnz / with_chars.shape[0]
        return cls(n, d, data.Y.shape[1], train_share, entries, entries_with_grams)

    def for_member(self, member: PortfolioMethod) -> "Sizes":
        """Return the sizes that decide the time of a member of the portfolio."""
        entries = self.entries_with_grams if member.chars else self.entries
        return replace(self, d=max(1, round(entries))) if member.linear and entries is not None else self


def _first(rows: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the first rows without the texts of the others, which a categorical column keeps and an encoder reads."""
    some = rows.iloc[:n]
    texts = some.select_dtypes("category")
    return some.assign(**{name: texts[name].cat.remove_unused_categories() for name in texts})


def refused_grams(rows: pd.DataFrame, texts: Sequence[str], times: int, seconds: float) -> str:
    """Return why character n-grams are not tried, empty if they are: making them takes up to a tenth of the time.

    Parameters
    ----------
    rows : DataFrame
    texts : sequence of str
        Its columns of text.
    times : int
        How often all rows are encoded.
    seconds : float
        The time for everything.
    """
    cells = [rows[name].astype(object) for name in texts]
    characters = times * sum(len(cell) for column in cells for cell in column if isinstance(cell, str))
    needed = characters / _CHARACTERS
    if 10 * needed <= seconds:
        return ""
    return f"n-grams of all texts need about {duration(needed)}, more than a tenth of the time"


@dataclass
class MethodRun:
    """The run of a method in a comparison: its cells, their estimated costs, and their outcome.

    Attributes
    ----------
    member : PortfolioMethod
    cells : list of Cell
        One per split.
    seconds : float or None
        Estimated seconds of all missing fits on one thread; None without a cost curve.
    megabytes : float or None
        Estimated memory of one fit.
    factor : float
        Factor by which half of such estimates are off.
    status : str
        "planned", "running", "done", "failed", "stopped" or "left out".
    note : str
        Why the method failed, was stopped or was left out.
    spent : float
        Wall seconds that the method took in this run.
    """

    member: PortfolioMethod
    cells: list[Cell]
    seconds: float | None = None
    megabytes: float | None = None
    factor: float = math.nan
    status: str = "planned"
    note: str = ""
    spent: float = 0.0
    keys: frozenset[str] = field(default_factory=frozenset)

    @property
    def name(self) -> str:
        """Name of the method."""
        return self.member.name

    @cached_property
    def held_out(self) -> list[Cell]:
        """The cells of the out-of-fold scores of the training rows, with as many folds as `multilab fit` tunes on."""
        return [scores_cell(cell, InnerFolds(folds=INNER_FOLDS, order=1)) for cell in self.cells]

    @property
    def standardised(self) -> bool:
        """Whether it sees standardised features."""
        return self.member.method.preprocessing == "standard"

    def wall(self, n_jobs: int) -> float:
        """Return the estimated wall seconds with cells in parallel; 0 without an estimate."""
        return (self.seconds or 0.0) / min(n_jobs, len(self.cells))

    def expected(self, n_jobs: int) -> str:
        """Return the estimate as text, wall time and memory of one fit: ``12 s, 40 MB``."""
        if self.seconds is None:
            return "no estimate"
        if not self.keys:
            return "stored"
        memory = f", {self.megabytes:.0f} MB" if self.megabytes and self.megabytes >= 1 else ""
        return duration(self.wall(n_jobs)) + memory


def duration(seconds: float) -> str:
    """Return seconds as text with two digits: ``0.4 s``, ``12 s``, ``3.5 min``, ``2.1 h``."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.{0 if seconds >= 10 * size else 1}f} {unit}"
    return f"{seconds:.{0 if seconds >= 10 else 1}f} s"


def plan_methods(entries: Sequence[MethodRun], sizes: Sizes, store: Store) -> list[MethodRun]:
    """Estimate all methods and return them in running order: the cheapest first, those without an estimate last.

    Methods that are left out already have no estimate.
    """
    planned: set[str] = set()
    for entry in entries:
        if entry.status != "left out":
            estimate(entry, sizes, store, planned)
    ordered = sorted(entries, key=lambda entry: math.inf if entry.seconds is None else entry.seconds)
    planned.clear()
    for entry in ordered:  # again in this order, in which cells that several methods read are counted once
        if entry.status != "left out":
            estimate(entry, sizes, store, planned)
            planned |= entry.keys
    return ordered


def in_order(entries: Sequence[MethodRun], portfolio: Portfolio, sizes: Sizes) -> list[MethodRun]:
    """Return planned methods in running order: the baseline first; on sparse features the linear method that should
    always end comes before it, and the other linear ones after it.
    """
    sparse = sizes.entries is not None
    floor = portfolio.floor([entry.name for entry in entries if entry.status == "planned"]) if sparse else ""
    return sorted(
        entries,
        key=lambda one: (one.name != floor, one.name != portfolio.baseline, sparse and not one.member.linear),
    )


def estimate(entry: MethodRun, sizes: Sizes, store: Store, planned: set[str]) -> None:
    """Set the estimate of a method: its fits and the cells it reads, except those that are stored or planned."""
    costs: dict[str, Cost | None] = {}
    sizes = sizes.for_member(entry.member)
    for cell in entry.cells:
        _add(cell, entry.member.base, sizes, store, planned, costs)
    estimates = [cost for cost in costs.values() if cost is not None]
    entry.keys = frozenset(costs)
    complete = len(estimates) == len(costs)
    entry.seconds = sum(cost.seconds + _OVERHEAD for cost in estimates) if complete else None
    entry.megabytes = max((cost.megabytes for cost in estimates), default=0.0) if complete else None
    entry.factor = max((cost.factor for cost in estimates), default=1.0)


def _add(cell: Cell, method: str, sizes: Sizes, store: Store, planned: set[str], costs: dict[str, Cost | None]) -> None:
    if cell.key in costs or cell.key in planned or store.has(cell.key):
        return
    n = sizes.n * sizes.train_share
    if cell.kind == "scores":
        folds = cell.method.inner_cv["folds"]
        cost = cost_of(method, n * (1 - 1 / folds), sizes.d, sizes.q)
        costs[cell.key] = cost and Cost(folds * cost.seconds, cost.megabytes, cost.factor)
        return
    d = len(cell.method.base_scores) * sizes.q or sizes.d
    costs[cell.key] = cost_of(method, n, d, sizes.q)
    for read in cell.reads:
        _add(read, read.method.name, sizes, store, planned, costs)


def refused_for_missing_labels(entry: MethodRun) -> str:
    """Return which classifier of a method cannot learn from missing labels, empty if all can."""
    first = entry.cells[0]
    for method in (first.method, *(read.method for read in first.reads)):
        estimator = build(method)
        if not learns_from_missing(estimator):
            return f"{type(estimator).__name__} cannot learn from missing labels"
    return ""


def refused_for_memory(entry: MethodRun, n_jobs: int) -> str:
    """Return why a method does not fit in the free memory, empty if it does."""
    free = psutil.virtual_memory().available / 2**20
    needed = (entry.megabytes or 0.0) * min(n_jobs, len(entry.cells))
    if needed <= 0.8 * free:
        return ""
    return f"needs about {needed:.0f} MB, but only {free:.0f} MB of memory are free"


def total(entries: Sequence[MethodRun], n_jobs: int) -> float:
    """Return the estimated wall seconds of all methods that have an estimate."""
    return sum(entry.wall(n_jobs) for entry in entries)


def held_out_seconds(entry: MethodRun, sizes: Sizes, folds: int) -> float:
    """Return the estimated seconds of the out-of-fold scores of one training set, 0 without a cost curve."""
    sizes = sizes.for_member(entry.member)
    cost = cost_of(entry.member.base, sizes.n * sizes.train_share * (1 - 1 / folds), sizes.d, sizes.q)
    return folds * cost.seconds + _OVERHEAD if cost else 0.0
