"""Cells and their keys: everything that affects a result.

Light on purpose (no NumPy): keys are computed on every ``dvc repro``.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from multilab import datasets, model_selection
from multilab.core import canonical_json, code_digest, definition_digest, formulas_digest, json_digest
from multilab.experiments.chosen_metrics import metric_digests
from multilab.experiments.method import LIBRARIES, InnerFolds, Method, load_method
from multilab.experiments.study import ObservedShare, Tuning

__all__ = [
    "SCHEMA",
    "Cell",
    "SplitRef",
    "base_methods",
    "laboratory_code",
    "library_versions",
    "observed_code",
    "search_code",
    "split_refs",
    "with_reads",
]

SCHEMA = 3
"""Raised when the meaning of a stored cell changes, so that no older cell is a hit."""


@dataclass(frozen=True)
class SplitRef:
    """A train/test split of a dataset: split ``split`` of a protocol, or an inner fold of its training set.

    ``inner`` is ``(folds, order, seed, index)`` for fold ``index`` of the training set, or ``None``. ``split = -1``
    with ``inner = None`` takes all rows for training (to tune on a complete dataset). In the second ``repetition`` (1)
    of a protocol of five splits the first split has the number 5. ``encoder`` says what the texts of a user's table
    become: ``words``, or ``chars`` for character n-grams in addition; it is empty for a dataset that is a matrix. The
    inner folds of a dataset with ``groups`` of rows are splits of a protocol ``within`` that of the split.
    """

    dataset: str
    dataset_digest: str
    protocol: str
    split: int
    digest: str
    inner: tuple[int, int, int, int] | None = None
    repetition: int = 0
    encoder: str = ""
    groups: bool = False

    @property
    def inner_fold(self) -> int | None:
        """The number of the inner fold, None of a split that is none."""
        if self.groups and "within" in json.loads(self.protocol):
            return self.split
        return None if self.inner is None else self.inner[3]


@dataclass(frozen=True)
class Cell:
    """One unit of work.

    Attributes
    ----------
    kind : {"train", "scores"}
        ``train``: fit on the training rows, score the test rows. ``scores``: out-of-fold scores of the training rows.
    split_ref : SplitRef
        Dataset and rows.
    method : Method
        The estimator and its settings.
    seed : int
        Root of the seeds.
    tune : Tuning or None
        Search the method's space inside the training set first.
    alone : bool
        Measured in a separate process, with no other cell at the same time.
    observed : ObservedShare or None
        The share of the training labels that is observed, ``None`` for all.
    """

    kind: str
    split_ref: SplitRef
    method: Method
    seed: int = 0
    tune: Tuning | None = None
    alone: bool = False
    observed: ObservedShare | None = None

    @functools.cached_property
    def reads(self) -> tuple[Cell, ...]:
        """The cells this one reads: for a method on base scores, per member its out-of-fold and its test scores.

        Out-of-fold scores of a tuned member have the arguments that its train cell chose, which they read.
        """
        if self.kind == "scores":
            return (replace(self, kind="train"),) if self.tune else ()
        tune = self.tune.of_members if self.tune else None
        members = [replace(self, method=method, tune=tune, alone=False) for method in base_methods(self.method)]
        return tuple(c for m in members for c in (scores_cell(m, self.method.inner_cv), m))

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that affects the result, in clear text; its digest is the key."""
        identity: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": self.kind,
            "method": self.method.key_settings(),
            "preprocessing": self.method.preprocessing,
            "dataset": self.split_ref.dataset_digest,
            "split": self.split_ref.digest,
            "seed": self.seed,
            "seed_name": self.method.seed_name,
            "reads": [cell.key for cell in self.reads],
            "code": self.method.code(),
            "laboratory": laboratory_code(),
            "versions": library_versions(),
        }
        optimised = {self.tune.metric} if self.tune else set()
        if chosen_by := self.method.metrics(with_search=self.tune is not None) | optimised:
            identity["metrics"] = metric_digests(chosen_by)
        if environment := self.method.environment():
            identity["environment"] = environment
        if distributions := self.method.distributions():
            identity["distributions"] = distributions
        if self.kind == "scores":
            identity["inner_cv"] = self.method.inner_cv
        if self.tune and self.kind == "train":
            identity["tune"] = {**self.tune.identity(), "search": self.method.search}
            identity["search"] = {"code": search_code(), "optuna": version("optuna")}
        if self.alone:
            identity["measure"] = "alone"
        if self.method.save_attributes:
            identity["save_attributes"] = list(self.method.save_attributes)
        if self.split_ref.encoder:
            identity["encoder"] = f"{encoder_code()}+{self.split_ref.encoder}"
        if self.split_ref.groups:
            identity["groups"] = groups_code()
        if self.observed:
            identity["observed"] = self.observed.to_dict() | {"code": observed_code()}
        return identity

    @functools.cached_property
    def key(self) -> str:
        """The name of the cell in the store: 64 hex digits."""
        return json_digest(self.identity)

    @property
    def row(self) -> tuple[str, int, str]:
        """Dataset, split and method: what identifies the cell in the tables of results."""
        return self.split_ref.dataset, self.split_ref.split, self.method.name

    @property
    def label(self) -> str:
        """Display name: ``mlknn on emotions, split 3``."""
        inner = self.split_ref.inner_fold
        suffix = "" if inner is None else f", inner fold {inner}"
        what = "base scores of " if self.kind == "scores" else ""
        suffix += f", observed {self.observed}" if self.observed else ""
        return f"{what}{self.method.name} on {self.split_ref.dataset}, split {self.split_ref.split}{suffix}"


def base_methods(method: Method) -> list[Method]:
    """Return the methods whose scores a method reads, with the arguments that a study changes of them."""
    return [load_method(name).with_params(method.member_params.get(name, {})) for name in method.base_scores]


def scores_cell(member: Cell, inner_cv: InnerFolds) -> Cell:
    """Return the cell of the out-of-fold scores of a base method on the training rows of its train cell."""
    return replace(member, kind="scores", method=replace(member.method, inner_cv=inner_cv.copy(), save_attributes=()))


@functools.cache
def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that affect numbers; they are part of every key."""
    return {name: version(name) for name in LIBRARIES}


_LABORATORY_WITHIN = (
    "multilab.experiments.fitting",
    "multilab.experiments.seeds",
    "multilab.methods",
    "multilab.model_selection.iterative_stratification",
)


@functools.cache
def laboratory_code() -> str:
    """Return the digest of the steps around every estimator: rows, scaling, seeds, decisions, out-of-fold scores."""
    return code_digest("multilab.experiments.fitting", within=_LABORATORY_WITHIN)[:16]


@functools.cache
def search_code() -> str:
    """Return the digest of the search of tuned cells, including how it sets the arguments of a trial."""
    search = code_digest("multilab.experiments.search", within=(*_LABORATORY_WITHIN, "multilab.metrics"))
    method = "multilab.experiments.method"
    arguments = definition_digest(f"{method}.Method.with_params", within=method)
    return json_digest([search, arguments])[:16]


@functools.cache
def observed_code() -> str:
    """Return the digest of the code that hides labels; only keys of cells with hidden labels include it."""
    module = "multilab.experiments.hidden_labels"
    return code_digest(module, within=(module, "multilab.experiments.seeds"))[:16]


def encoder_code() -> str:
    """Return the digest of the code that encodes the columns of a table as numbers."""
    return formulas_digest("datasets", "experiments/tables.py", "methods/mixed_scaler.py")[:16]


@functools.cache
def groups_code() -> str:
    """Return the digest of the code that keeps groups of rows together in inner folds."""
    module = "multilab.experiments.groups"
    return code_digest(module, within=(module, "multilab.model_selection.group_kfold"))[:16]


def split_refs(dataset: str, protocol: dict[str, Any]) -> list[SplitRef]:
    """Return the splits of a dataset under a protocol; prepare the dataset if that was not done yet."""
    meta = datasets.prepared_meta(dataset)
    digests = model_selection.split_digests(dataset, protocol) if meta else None
    if meta is None or digests is None:
        datasets.prepare(dataset)
        digests = [split.digest for split in model_selection.splits(dataset, protocol)]
        meta = datasets.prepared_meta(dataset)
    assert meta is not None
    text = canonical_json(protocol)
    _forget_replaced(dataset, text, (meta["digest"], *digests))
    encoder = "words" if "kinds" in meta else ""
    groups = "groups" in meta
    return [
        SplitRef(dataset, meta["digest"], text, index, digest, encoder=encoder, groups=groups)
        for index, digest in enumerate(digests)
    ]


_planned: dict[tuple[str, str], tuple[str, ...]] = {}


def _forget_replaced(dataset: str, protocol: str, digests: tuple[str, ...]) -> None:
    """Forget the data and the rows that this process has loaded by their names, if others have these names now."""
    if _planned.setdefault((dataset, protocol), digests) != digests:
        from multilab.experiments import fitting

        fitting._dataset.cache_clear()
        fitting._splits.cache_clear()
        _planned.clear()
        _planned[dataset, protocol] = digests


def with_reads(cells: Iterable[Cell]) -> list[Cell]:
    """Return cells and their inputs, each once, inputs first."""
    ordered: dict[str, Cell] = {}

    def add(cell: Cell) -> None:
        if cell.key not in ordered:
            for read in cell.reads:
                add(read)
            ordered[cell.key] = cell

    for cell in cells:
        add(cell)
    return list(ordered.values())
