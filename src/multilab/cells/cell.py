"""Cells and their keys: everything that affects a result.

Of the code of this package a key holds declared versions (see :mod:`multilab.core.versions`), of the user's own files
their content, of other libraries the first two numbers of their version.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from multilab import datasets, model_selection
from multilab.cells.loaded_data import forget_loaded
from multilab.cells.method import LIBRARIES, InnerFolds, Method, load_method, located, named_metrics
from multilab.cells.settings import ObservedShare, Tuning
from multilab.core import canonical_json, files_digest, json_digest, major_minor

__all__ = [
    "SCHEMA",
    "Cell",
    "SplitRef",
    "base_methods",
    "encoder_files",
    "library_versions",
    "major_versions",
    "split_refs",
    "with_reads",
]

SCHEMA = 4
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
        """The number of the inner fold, None for an outer split."""
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
        """The cells that this cell reads: the out-of-fold and the test scores of each base method.

        The out-of-fold scores of a tuned base method read its train cell, for the arguments that the search chose.
        """
        if self.kind == "scores":
            return (replace(self, kind="train"),) if self.tune else ()
        tune = self.tune.of_members if self.tune else None
        members = [replace(self, method=method, tune=tune, alone=False) for method in base_methods(self.method)]
        return tuple(c for m in members for c in (scores_cell(m, self.method.inner_cv), m))

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that affects the result, in clear text; its digest is the key."""
        method, ref = self.method, self.split_ref
        identity: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": self.kind,
            "method": method.key_settings,
            "preprocessing": method.preprocessing,
            "dataset": ref.dataset_digest,
            "split": ref.digest,
            "seed": self.seed,
            "seed_name": method.seed_name,
            "reads": [cell.key for cell in self.reads],
            "versions": major_versions(method.outside.distributions),
        }
        # What does not apply is left out, so that a new kind of setting changes no other key.
        if results_versions := method.versions(self._steps()):
            identity["results_versions"] = results_versions
        if method.outside.files:
            identity["own_files"] = sorted(set(method.outside.files.values()))
        if self.kind == "scores":
            identity["inner_cv"] = self.method.inner_cv
        # Out-of-fold scores have the search in their key already: they read the tuned train cell.
        if self.tune and self.kind == "train":
            identity["tune"] = {**self.tune.identity(), "search": method.search}
            identity["versions"] |= {"optuna": major_minor(version("optuna"))}
            if "preprocessing" in method.search:  # such a search once ignored what its trials chose
                identity["scaling"] = "of each trial"
        if self.alone:
            identity["measure"] = "alone"
        if method.save_attributes:
            identity["save_attributes"] = list(method.save_attributes)
        if ref.encoder:
            identity["encoder"] = ref.encoder
        if ref.groups:
            identity["groups"] = True
        if self.observed:
            identity["observed"] = self.observed.to_dict()
        return identity

    def code(self) -> list[Any]:
        """Return the classes and functions that compute the result from the decoded rows."""
        return self.method.code(self._steps())

    @functools.cached_property
    def own_modules(self) -> frozenset[str]:
        """The names of the user's modules that compute it."""
        return self.method.outside.modules

    def _steps(self) -> list[Any]:
        """Return the steps around the estimator, located by name because their modules import this module."""
        ref, steps = self.split_ref, ["cells.fitting.fit_on_rows", "cells.fitting.estimator_of"]
        if ref.encoder:
            steps.append("cells.rows.TableEncoder")
        if ref.groups:
            steps.append("cells.rows.inner_cells")
        if self.kind == "scores":
            steps.append("cells.pipeline.out_of_fold")
        elif self.tune:
            steps += ["experiments.search.search", "cells.pipeline.training_folds"]
        if self.observed:
            steps.append("cells.rows.observed_labels")
        metrics = named_metrics([self.tune.metric]) if self.tune and self.kind == "train" else []
        return [*_located(tuple(steps)), *metrics]

    @functools.cached_property
    def key(self) -> str:
        """The name of the cell in the store: 64 hex digits."""
        return json_digest(self.identity)

    @property
    def row(self) -> tuple[str, int, str]:
        """Dataset, split and method: what identifies the cell in the tables of results."""
        return self.split_ref.dataset, self.split_ref.split, self.method.name

    @functools.cached_property
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


@functools.lru_cache
def _located(names: tuple[str, ...]) -> list[Any]:
    return [located(f"multilab.{name}") for name in names]


@functools.cache
def library_versions() -> dict[str, str]:
    """Return the exact versions of the libraries that affect numbers."""
    return {name: version(name) for name in LIBRARIES}


def major_versions(more: Mapping[str, str]) -> dict[str, str]:
    """Return the first two numbers of the versions of :data:`LIBRARIES` and of others: what keys hold of them."""
    return {**_library_majors(), **{name: major_minor(number) for name, number in more.items()}}


@functools.cache
def _library_majors() -> dict[str, str]:
    return {name: major_minor(number) for name, number in library_versions().items()}


def encoder_files() -> str:
    """Return the digest of the files that encode the columns of a table as numbers."""
    return files_digest("core", "datasets", "cells/rows.py")[:16]


def split_refs(dataset: str, protocol: dict[str, Any]) -> list[SplitRef]:
    """Return the splits of a dataset under a protocol; prepare the dataset if that was not done yet."""
    meta = datasets.prepared_meta(dataset)
    digests = model_selection.split_digests(dataset, protocol) if meta else None
    if meta is None or digests is None:
        digests = [split.digest for split in model_selection.splits(dataset, protocol)]
        meta = meta or datasets.prepared_meta(dataset)
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
        forget_loaded()
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
