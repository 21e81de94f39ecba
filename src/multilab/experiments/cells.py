"""What a cell is, and its key.

Light on purpose (no NumPy): keys are computed on every ``dvc repro``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from multilab.experiments.settings import LIBRARIES, Method, Study, load_method
from multilab.ground import code_digest, json_digest

__all__ = [
    "SCHEMA",
    "Cell",
    "Part",
    "base_score_cells",
    "cell_for",
    "guard_cells",
    "laboratory_code",
    "library_versions",
    "parts_of",
    "search_code",
    "study_cells",
    "study_parts",
]

SCHEMA = 2
"""Raised when the meaning of a stored cell changes, so that no older cell is a hit."""


@dataclass(frozen=True)
class Part:
    """A train/test division of a dataset: split ``split`` of a protocol, or an inner fold of its training part.

    ``inner`` is ``(folds, order, seed, index)`` for fold ``index`` of the training part, or ``None``. ``split = -1``
    with ``inner = None`` takes all rows for training (used to tune on a whole dataset). In the second ``repetition``
    (1) of a protocol of five splits the first has the number 5.
    """

    dataset: str
    dataset_digest: str
    protocol: str
    split: int
    digest: str
    inner: tuple[int, int, int, int] | None = None
    repetition: int = 0


@dataclass(frozen=True)
class Cell:
    """One unit of work.

    Attributes
    ----------
    kind : {"train", "scores"}
        ``train``: fit on the training rows, score the test rows. ``scores``: out-of-fold scores of the training rows.
    part : Part
        Dataset and rows.
    method : Method
        The estimator and its settings.
    seed : int
        Root of the seeds.
    tune : dict or None
        ``{n_trials, folds, order, metric, conventions}``: search the method's space inside the training part first.
    alone : bool
        Measured in a process of its own with nothing beside it.
    """

    kind: str
    part: Part
    method: Method
    seed: int = 0
    tune: tuple[tuple[str, Any], ...] | None = None
    alone: bool = False

    @functools.cached_property
    def reads(self) -> tuple[Cell, ...]:
        """The cells this one reads: for a method on base scores, per member its out-of-fold and its test scores."""
        if self.kind == "scores":
            return ()
        members = [replace(self, method=load_method(name), tune=None, alone=False) for name in self.method.base_scores]
        return tuple(c for m in members for c in (scores_cell(m, self.method.inner), m))

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the result, in clear; its digest is the key."""
        parts: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": self.kind,
            "method": self.method.identity(),
            "preprocessing": self.method.preprocessing,
            "dataset": self.part.dataset_digest,
            "split": self.part.digest,
            "seed": self.seed,
            "reads": [cell.key for cell in self.reads],
            "code": self.method.code(),
            "laboratory": laboratory_code(),
            "versions": library_versions(),
        }
        if outside := self.method.outside():
            parts["outside"] = outside
        if self.kind == "scores":
            parts["inner"] = self.method.inner
        if self.tune:
            parts["tune"] = {**dict(self.tune), "search": self.method.search}
            parts["search"] = {"code": search_code(), "optuna": version("optuna")}
        if self.alone:
            parts["measure"] = "alone"
        if self.method.keep:
            parts["keep"] = list(self.method.keep)
        return parts

    @functools.cached_property
    def key(self) -> str:
        """The name of the cell in the store: 64 hex digits."""
        return json_digest(self.identity)

    @property
    def label(self) -> str:
        """For people: ``mlknn on emotions, split 3``."""
        suffix = "" if self.part.inner is None else f", inner fold {self.part.inner[3]}"
        what = "base scores of " if self.kind == "scores" else ""
        return f"{what}{self.method.name} on {self.part.dataset}, split {self.part.split}{suffix}"


def scores_cell(member: Cell, inner: dict[str, Any]) -> Cell:
    """Return the cell of the out-of-fold scores of a base method on the training rows of its train cell."""
    return replace(member, kind="scores", method=replace(member.method, inner=dict(inner), keep=()))


@functools.cache
def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that decide numbers; they are part of every key."""
    return {name: version(name) for name in LIBRARIES}


_LABORATORY_WITHIN = (
    "multilab.experiments.fitting",
    "multilab.experiments.seeds",
    "multilab.methods",
    "multilab.datasets.folds",
)


@functools.cache
def laboratory_code() -> str:
    """Return the digest of what is done around every estimator: rows, scaling, seeds, decisions, out-of-fold scores."""
    return code_digest("multilab.experiments.fitting", within=_LABORATORY_WITHIN)[:16]


@functools.cache
def search_code() -> str:
    """Return the digest of the search of tuned cells and of the metrics it optimises."""
    return code_digest("multilab.experiments.search", within=(*_LABORATORY_WITHIN, "multilab.metrics"))[:16]


def parts_of(dataset: str, protocol: dict[str, Any]) -> list[Part]:
    """Return the train/test divisions of a dataset under a protocol, preparing the data if that was not done yet."""
    from multilab import datasets
    from multilab.ground import canonical_json

    meta = datasets.prepared_meta(dataset)
    digests = datasets.split_digests(dataset, protocol) if meta else None
    if meta is None or digests is None:
        datasets.prepare(dataset)
        digests = [split.digest for split in datasets.splits(dataset, protocol)]
        meta = datasets.prepared_meta(dataset)
    assert meta is not None
    text = canonical_json(protocol)
    return [Part(dataset, meta["digest"], text, index, digest) for index, digest in enumerate(digests)]


def cell_for(part: Part, method: Method, study: Study) -> Cell:
    """Return the train cell of a method on a part, as a study sets it."""
    asked = study.tune_of(method.name)
    tune = tuple(sorted(asked.items())) if asked and method.search else None
    _, reseeded = study.repeats_of(method.name)
    seed = study.seed + (part.repetition if reseeded else 0)
    return Cell("train", part, method, seed, tune, study.measure == "alone")


def study_parts(study: Study) -> list[Part]:
    """Return the parts of all datasets of a study, in that order."""
    return [part for dataset in study.datasets for part in parts_of(dataset, study.protocol_of(dataset))]


def study_cells(study: Study, method: str, parts: Iterable[Part] | None = None) -> list[Cell]:
    """Return the train cells of one column of a study: its datasets x splits, in that order.

    Repetitions of a method that is not seeded anew are one cell, listed as often as there are repetitions. ``parts``
    are those of the study, for who asks for several columns: finding them takes most of the time.
    """
    datasets = study.datasets_of(method)
    chosen = [part for name in datasets for part in parts_of(name, study.protocol_of(name))] if parts is None else parts
    times, _ = study.repeats_of(method)
    repeated = _repeated([part for part in chosen if part.dataset in datasets], times)
    return [cell_for(part, study.method(method, part.dataset), study) for part in repeated]


def _repeated(parts: list[Part], times: int) -> list[Part]:
    """Return the parts of every dataset so many times over, numbered on."""
    found = []
    for _, group in itertools.groupby(parts, key=lambda part: part.dataset):
        own = list(group)
        for repetition in range(times):
            found += [replace(p, split=p.split + repetition * len(own), repetition=repetition) for p in own]
    return found


def guard_cells(study: Study, method: str) -> list[Cell]:
    """Return what the gate computes of a method besides the study's cells: its guards, on the first dataset."""
    found = []
    for block in study.guards:
        if method in block["methods"]:
            changed = study.method(method).with_params(block["set"])
            name = f"{method}[{' '.join(f'{key}={value}' for key, value in block['set'].items())}]"
            parts = parts_of(study.datasets[0], study.protocol_of(study.datasets[0]))
            found += [cell_for(part, replace(changed, name=name), study) for part in parts]
    return found


def base_score_cells(study: Study, parts: Iterable[Part] | None = None) -> list[Cell]:
    """Return the cells that other cells of a study read, each once, what is read before who reads it."""
    chosen = study_parts(study) if parts is None else list(parts)
    found: dict[str, Cell] = {}

    def add(cells: Iterable[Cell]) -> None:
        for cell in cells:
            add(cell.reads)
            found.setdefault(cell.key, cell)

    for method in study.all_methods:
        for cell in study_cells(study, method, chosen):
            add(cell.reads)
    return list(found.values())
