"""What an analysis computes at a time, and its key.

Light on purpose (no NumPy), as ``cells``: keys are computed on every ``dvc repro``.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from multilab.experiments.cells import SCHEMA, Cell, library_versions, parts_of
from multilab.experiments.errors import ExperimentError
from multilab.experiments.settings import Study
from multilab.ground import code_digest, json_digest

__all__ = ["Unit", "module_of", "units_of"]

_CODE_WITHIN = (
    "multilab.experiments.analyses",
    "multilab.methods",
    "multilab.metrics",
    "multilab.claims.learned_checks",
    "multilab.datasets.folds",
    "multilab.datasets.synthetic",
    "multilab.experiments.seeds",
)
_OF_THE_CELL = ("method", "preprocessing", "dataset", "split", "seed", "reads", "laboratory", "outside")
_KEYS = {"analysis", "methods", "datasets", "splits", "settings"}


@dataclass(frozen=True)
class Unit:
    """One analysis of one dataset on one split.

    Attributes
    ----------
    analysis : str
        Name of the module.
    dataset : str
    split : int
        Split of the study's protocol; for simulated data the repetition.
    cell : Cell or None
        Whose method, rows and base scores are analysed; ``None`` for simulated data.
    generator : dict or None
        Of the dataset's card, for simulated data.
    settings : dict
        Of the study's YAML.
    seed : int
        Root of the seeds.
    """

    analysis: str
    dataset: str
    split: int
    cell: Cell | None = None
    generator: dict[str, Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the rows, in clear."""
        parts: dict[str, Any] = {
            "schema": SCHEMA,
            "kind": "analysis",
            "analysis": self.analysis,
            "settings": self.settings,
            "code": _code(self.analysis),
            "versions": library_versions(),
        }
        if self.cell is None:
            return parts | {"generator": self.generator, "repetition": self.split, "seed": self.seed}
        if _has(self.analysis, "READS_CELL = True"):  # what the cell stored is analysed
            return parts | {"cell": self.cell.key}
        whole = self.cell.identity
        method_code = {"code": f"{parts['code']}-{whole['code']}"}
        return parts | method_code | {name: whole[name] for name in _OF_THE_CELL if name in whole}

    @functools.cached_property
    def key(self) -> str:
        """The name of the unit in the store: 64 hex digits."""
        return json_digest(self.identity)

    @property
    def method(self) -> str:
        """Name of the method analysed, or nothing."""
        return self.cell.method.name if self.cell else ""

    @property
    def label(self) -> str:
        """For people: ``sensitivity of mlwse_l1 on emotions, split 3``."""
        return f"{self.analysis}{' of ' + self.method if self.method else ''} on {self.dataset}, split {self.split}"


@functools.cache
def _code(analysis: str) -> str:
    return code_digest(f"{__package__}.{analysis}", within=_CODE_WITHIN)


def module_of(analysis: str) -> ModuleType:
    """Return the module of an analysis."""
    return importlib.import_module(f"{__package__}.{analysis}")


@functools.cache
def _known() -> tuple[str, ...]:
    """Return the names of the analyses: the modules here that write a file."""
    return tuple(sorted(p.stem for p in Path(__file__).parent.glob("*.py") if _has(p.stem, "FILE = ")))


@functools.cache
def _has(analysis: str, words: str) -> bool:
    """Return whether a line of an analysis begins with these words; importing it would take longer."""
    return f"\n{words}" in Path(__file__).with_name(f"{analysis}.py").read_text()


def units_of(study: Study) -> list[Unit]:
    """Return the units of all analyses of a study, in the order of its YAML.

    A block of the YAML is ``{analysis, datasets, splits, settings}`` and, for an analysis of methods on base scores,
    ``methods``. ``splits`` bounds the splits taken (default all); for simulated data it is the number of repetitions
    (default 1).

    Raises
    ------
    ExperimentError
        If a block has other words, names no analysis, or names no methods for data that are not simulated.
    """
    return [unit for block in study.analyses for unit in _units(study, block)]


def _units(study: Study, block: dict[str, Any]) -> list[Unit]:
    from multilab import datasets

    other = sorted(set(block) - _KEYS)
    if other or "analysis" not in block:
        raise ExperimentError(f"study {study.name}: an analysis has the words {', '.join(sorted(_KEYS))}, not {other}")
    if block["analysis"] not in _known():
        raise ExperimentError(f"no analysis is called {block['analysis']!r}; there are {', '.join(_known())}")
    name, settings, splits = block["analysis"], block.get("settings") or {}, block.get("splits")
    found = []
    for dataset in block["datasets"]:
        if "methods" not in block:
            made = datasets.card(dataset).generator
            if made is None:
                raise ExperimentError(f"study {study.name}: {name} is for simulated data, which {dataset} is not")
            found += [Unit(name, dataset, i, None, made, settings, study.seed) for i in range(splits or 1)]
            continue
        for part in parts_of(dataset, study.protocol_of(dataset))[:splits]:
            for method in block["methods"]:
                cell = Cell("train", part, study.method(method, dataset), study.seed)
                found.append(Unit(name, dataset, part.split, cell, None, settings, study.seed))
    return found
