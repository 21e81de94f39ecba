"""The plan of a study: its cells in order, and the units of its analyses; nothing is computed."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from multilab.cells.cell import Cell, SplitRef, split_refs, with_reads
from multilab.cells.method import Method, gate_case_name
from multilab.experiments.analyses import Unit, units_of
from multilab.experiments.study import Study
from multilab.printed import analyses_of

__all__ = [
    "Plan",
    "all_cells",
    "base_score_cells",
    "cell_for",
    "gate_case_cells",
    "study_cells",
    "study_split_refs",
]


@dataclass(frozen=True)
class Plan:
    """The work of a study. Each part is made on first use, which may prepare datasets.

    Attributes
    ----------
    study : Study
    """

    study: Study

    @functools.cached_property
    def refs(self) -> list[SplitRef]:
        """The splits of all datasets."""
        return study_split_refs(self.study)

    @functools.cached_property
    def by_method(self) -> dict[str, list[Cell]]:
        """The train cells of each method and variant."""
        return {method: study_cells(self.study, method, self.refs) for method in self.study.all_methods}

    @property
    def cells(self) -> list[Cell]:
        """The train cells of all methods and variants."""
        return [cell for cells in self.by_method.values() for cell in cells]

    @functools.cached_property
    def base_scores(self) -> list[Cell]:
        """The cells that the train cells read, each once, a cell before those that read it."""
        return with_reads(read for cell in self.cells for read in cell.reads)

    @functools.cached_property
    def units(self) -> list[Unit]:
        """The units of the analyses of the study's paper."""
        return units_of(self.study, analyses_of(self.study.paper))


def cell_for(ref: SplitRef, method: Method, study: Study) -> Cell:
    """Return the train cell of a method on a split, with the settings of a study."""
    tune = study.tune_of(method.name) if method.search else None
    _, reseeded = study.repetitions_of(method.name)
    # The first repetition has the study's seed: it is the cell of a study without repetitions (decision 11).
    seed = study.seed + (ref.repetition if reseeded else 0)
    return Cell("train", ref, method, seed, tune, study.measure == "alone", study.observed_of(method.name))


def study_split_refs(study: Study) -> list[SplitRef]:
    """Return the splits of all datasets of a study, in order."""
    return [ref for dataset in study.datasets for ref in split_refs(dataset, study.protocol_of(dataset))]


def study_cells(study: Study, method: str, refs: Iterable[SplitRef] | None = None) -> list[Cell]:
    """Return the train cells of a method or variant of a study: its datasets x splits, in that order.

    Repetitions of a method without a seed of their own are one cell, listed once per repetition. ``refs`` are the
    splits of the study, for callers with several methods: reading them takes most of the time.
    """
    datasets = study.datasets_of(method)
    splits = {name: study.splits_of(method, name) for name in datasets}
    chosen = [ref for name in datasets for ref in split_refs(name, study.protocol_of(name))] if refs is None else refs
    n_repeats, _ = study.repetitions_of(method)
    method_refs = [ref for ref in chosen if ref.dataset in datasets and ref.split < (splits[ref.dataset] or math.inf)]
    repeated = _repeated(method_refs, n_repeats)
    by_dataset = {name: study.method(method, name) for name in datasets}
    return [cell_for(ref, by_dataset[ref.dataset], study) for ref in repeated]


def all_cells(study: Study, refs: Iterable[SplitRef] | None = None) -> list[Cell]:
    """Return the train cells of all methods and variants of a study."""
    refs = study_split_refs(study) if refs is None else refs
    return [cell for method in study.all_methods for cell in study_cells(study, method, refs)]


def _repeated(refs: list[SplitRef], n_repeats: int) -> list[SplitRef]:
    """Return the splits of each dataset ``n_repeats`` times, with consecutive numbers."""
    repeated = []
    for _, group in itertools.groupby(refs, key=lambda ref: ref.dataset):
        splits = list(group)
        for repetition in range(n_repeats):
            repeated += [replace(r, split=r.split + repetition * len(splits), repetition=repetition) for r in splits]
    return repeated


def gate_case_cells(study: Study, method: str) -> list[Cell]:
    """Return the cells that the gate computes of a method in addition to the study's, on the first dataset."""
    cells = []
    for case in study.gate_cases:
        if case.methods is None or method in case.methods:
            changed = study.method(method).with_params(case.set)
            name = gate_case_name(method, case.set)
            refs = split_refs(study.datasets[0], study.protocol_of(study.datasets[0]))
            cells += [cell_for(ref, replace(changed, name=name), study) for ref in refs]
    return cells


def base_score_cells(study: Study, refs: Iterable[SplitRef] | None = None) -> list[Cell]:
    """Return the cells that other cells of a study read, each once, a cell before those that read it."""
    chosen = study_split_refs(study) if refs is None else list(refs)
    cells = (cell for method in study.all_methods for cell in study_cells(study, method, chosen))
    return with_reads(read for cell in cells for read in cell.reads)
