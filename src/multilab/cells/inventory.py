"""Inventory of the store: finished, failed and outdated cells, their settings, and the results of a method in one row.

Reads records and settings only; the arrays of a cell are loaded when its metrics are first requested.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator, BaseShuffleSplit

from multilab import datasets, model_selection
from multilab.cells.cell import SCHEMA, Cell, SplitRef, split_refs
from multilab.cells.cell_metrics import cell_metrics, kept_metrics
from multilab.cells.conf import load_protocol, names
from multilab.cells.errors import ExperimentError
from multilab.cells.method import InnerFolds, Method, class_names, load_method, located, without_gate_case
from multilab.cells.records import check_record, is_plain
from multilab.cells.rows import tables_without_rows
from multilab.cells.settings import ObservedShare, Tuning, with_optuna_names
from multilab.cells.store import Store
from multilab.core import MultilabError, canonical_json, conf_dir, read_json
from multilab.core.settings import HydraLoader, parse_yaml
from multilab.datasets.catalogue import files_dir, own_dir
from multilab.statistics.result_files import method_of_column

__all__ = [
    "Inventory",
    "ResultRow",
    "StoredCell",
    "argument_changes",
    "base_method",
    "check_runnable",
    "note_earlier",
    "protocol_text",
    "result_rows",
    "setting_text",
    "spent_seconds",
]


@dataclass(frozen=True)
class StoredCell:
    """One cell of the store.

    Attributes
    ----------
    key : str
    status : {"done", "failed", "broken"}
        ``broken``: neither finished nor a record of a failure.
    record : dict
        Content of ``record.json``.
    protocol : dict or None
        How the dataset was split; ``None`` where it is not known.
    """

    key: str
    status: str
    record: dict[str, Any] = field(default_factory=dict)
    protocol: dict[str, Any] | None = None

    @property
    def parts(self) -> dict[str, Any]:
        """The record from which the key was computed."""
        return self.record.get("parts", {})

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the estimator, with the paths of its classes."""
        return self.record.get("settings", self.parts.get("method", {}))

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return self.record.get("dataset", "?")

    @property
    def split(self) -> int:
        """Number of the split."""
        return self.record.get("split", -1)

    @property
    def kind(self) -> str:
        """``train``, or ``scores`` for out-of-fold scores."""
        return self.parts.get("kind", "?")

    @property
    def inner_fold(self) -> int | None:
        """Number of the inner fold of a search, None for an outer split."""
        return self.record.get("inner_fold")

    @property
    def method(self) -> str:
        """Name of the method: the stem of its YAML."""
        return base_method(self.record.get("method", "?"))


def base_method(name: str) -> str:
    """Return the method behind the name of a column (``mls-svm``, ``elm[n_hidden=5]``)."""
    column = without_gate_case(name)
    while column not in _method_names():
        if (shorter := method_of_column(column)) == column:
            return name
        column = shorter
    return column


@functools.cache
def _method_names() -> frozenset[str]:
    return frozenset(names("method"))


class Inventory:
    """The cells of a store, judged by the current code and data.

    Caches the digests of the prepared data: create a new instance after a run.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._digests: dict[tuple[str, str], tuple[str | None, list[str] | None]] = {}

    def read(self, key: str) -> StoredCell:
        """Return one cell, whatever its state."""
        folder = self.store.path(key)
        try:
            record = read_json(folder / "record.json")
            check_record(record)
        except (OSError, ValueError, ExperimentError):
            return StoredCell(key, "broken")
        # Digests are not verified here: a listing would have to read the arrays of every cell.
        if (folder / "DONE").is_file():
            return StoredCell(key, "done", record, _protocol(folder))
        return StoredCell(key, "failed" if record.get("status") == "failed" else "broken", record)

    def cells(self, dataset: str = "*", method: str = "*", status: str = "*") -> Iterator[StoredCell]:
        """Yield the cells whose dataset, method and status match, in the order of their keys.

        Parameters
        ----------
        dataset, method, status : str
            Names or patterns (``mlwse_*``), separated by commas.
        """
        own_names = _own_digests(dataset)
        for folder in sorted(self.store.root.glob("*")):
            if not (re.fullmatch("[0-9a-f]{64}", folder.name) and folder.is_dir()):
                continue
            cell = self.read(folder.name)
            if name := own_names.get(cell.parts.get("dataset", "")):  # computed when the same data had another name
                cell = replace(cell, record={**cell.record, "dataset": name})
            wanted = _matches(cell.dataset, dataset) and _matches(cell.status, status)
            if wanted and (_matches(cell.method, method) or _matches(cell.record.get("method", ""), method)):
                yield cell

    def settings(self, cell: StoredCell) -> list[str]:
        """Return the settings that differ from the method's YAML and the defaults of ``train``, as ``name=value``."""
        parts, method = cell.parts, _loaded(cell.method)
        if method and method.target != cell.settings.get("_target_", method.target):  # of the portfolio of `compare`
            method = None
        before: dict[str, Any] = {"preprocessing": "none"}
        after = {"preprocessing": parts.get("preprocessing", "none")}
        if method:
            before, after = {**method.identity(), "preprocessing": method.preprocessing}, {**cell.settings, **after}
        # A cell reads two cells per base method, out-of-fold and test scores (`Cell.reads`): every second one will do.
        members = [self.read(key).method for key in parts.get("reads", [])[::2]]
        if method and method.base_scores and "?" not in members:
            before["base_scores"], after["base_scores"] = list(method.base_scores), members
        texts = [] if method or not cell.settings else [setting_text(cell.settings)]  # the class
        texts += [f"{name}={setting_text(value)}" for name, value in argument_changes(before, after).items()]
        if "tune" in parts:
            block = {**vars(Tuning()), "n_trials": None}
            changed = argument_changes(block, {**block, **with_optuna_names(parts["tune"]), "search": None})
            texts += [f"tune.{name}={setting_text(value)}" for name, value in changed.items()]
        observed = _observed(parts)
        texts += [f"observed={observed}"] if observed else []
        texts += [f"seed={parts['seed']}"] if parts.get("seed") else []
        texts += ["measured alone"] if parts.get("measure") == "alone" else []
        return texts

    def outdated(self, cell: StoredCell) -> str | None:
        """Return why a finished cell is outdated by the current code or data, ``None`` if it is not.

        The cell is rebuilt from its record and its key computed again. Where the dataset is not prepared on this
        machine, only code and libraries are compared. Of the unit of an analysis, whose settings its study has, only
        the format is.
        """
        if cell.kind == "analysis":
            return None if cell.parts.get("schema") == SCHEMA else f"other {_REASONS['schema']}"
        try:
            current = self.rebuilt(cell)
            identity = current.identity
            if current.key != cell.key:
                changed = [name for name in identity if identity[name] != cell.parts.get(name)]
                return "other " + ", ".join(_REASONS.get(name, name) for name in changed or ["code"])
            data, splits = self.today(cell)
            if data is not None and data != cell.parts["dataset"]:
                return "other data"
            return "other splits" if splits is not None and cell.parts["split"] not in splits else None
        except (MultilabError, ImportError, OSError, LookupError, TypeError, ValueError) as error:
            return "cannot be rebuilt: " + " ".join(str(error).split())[:80]

    def n_splits(self, cell: StoredCell) -> int | None:
        """Return the number of splits of a cell's protocol, ``None`` if it is unknown here."""
        splits = self.today(cell)[1]
        return None if splits is None else len(splits)

    def today(self, cell: StoredCell) -> tuple[str | None, list[str] | None]:
        """Return the digests of the prepared dataset and of its splits, ``None`` for what is not there."""
        identifier = cell.dataset, canonical_json(cell.protocol)
        if identifier not in self._digests:
            meta = datasets.prepared_meta(cell.dataset)
            prepared = meta is not None and cell.protocol
            splits = model_selection.split_digests(cell.dataset, cell.protocol) if prepared else None
            self._digests[identifier] = (meta or {}).get("digest"), splits
        data, splits = self._digests[identifier]
        return data, None if cell.inner_fold is not None or cell.split < 0 else splits

    def rebuilt(self, cell: StoredCell) -> Cell:
        """Return the unit of work of a stored cell under the current code."""
        parts, loaded = cell.parts, _loaded(cell.method)
        _check_targets(cell, loaded)
        params, tune = dict(cell.settings), dict(parts.get("tune", {}))
        members = [self.read(key) for key in parts["reads"][::2]]
        inner = parts.get("inner_cv") or next((m.parts["inner_cv"] for m in members if "inner_cv" in m.parts), None)
        method = Method(
            name=cell.method,
            target=params.pop("_target_"),
            params=params,
            preprocessing=parts["preprocessing"],
            base_scores=tuple(member.method for member in members),
            inner_cv=inner or (loaded.inner_cv if loaded else InnerFolds()),
            save_attributes=tuple(parts.get("save_attributes", ())),
            search=self._in_order(cell, tune.pop("search", {})),
            seed_name=parts.get("seed_name", ""),
        )
        protocol = canonical_json(cell.protocol or {})
        table = {"encoder": parts.get("encoder", ""), "groups": parts.get("groups", False)}
        ref = SplitRef(cell.dataset, parts["dataset"], protocol, cell.split, parts["split"], **table)
        tuning = Tuning.from_mapping(with_optuna_names(tune)) if tune else None
        alone = parts.get("measure") == "alone"
        return Cell(parts["kind"], ref, method, parts["seed"], tuning, alone, _observed(parts))

    def _in_order(self, cell: StoredCell, space: dict[str, Any]) -> dict[str, Any]:
        """Return a search space in the order in which its arguments were drawn; records are sorted."""
        with contextlib.suppress(OSError), (self.store.path(cell.key) / "trials.csv").open(encoding="utf-8") as file:
            drawn = [name for name in file.readline().rstrip("\n").split(",") if name in space]
            return {**{name: space[name] for name in drawn}, **space}
        return space

    def metrics(self, cell: StoredCell, conventions: str = "default") -> dict[str, float]:
        """Return all metrics of a finished train cell, from its stored scores.

        They are kept in the store, so that a second listing reads text only.
        """
        stored = kept_metrics(cell.key, self.store, conventions)
        if stored is not None:
            return stored
        if cell.protocol is None:
            raise ExperimentError(f"{self.store.path(cell.key)}: config.yaml is missing or names no protocol")
        split_refs(cell.dataset, cell.protocol)  # prepares the data where that was not done yet
        # A new inventory, because this one may have cached that the data were not prepared.
        reason = Inventory(self.store).outdated(cell)
        if reason:
            raise ExperimentError(f"{cell.record.get('label', cell.key)}: the result is out of date ({reason})")
        try:
            return cell_metrics(self.rebuilt(cell), self.store, conventions)
        except (LookupError, TypeError, ValueError, MemoryError) as error:  # arrays that are no scores of these labels
            label = cell.record.get("label", cell.key)
            raise ExperimentError(f"{label}: its scores cannot be evaluated ({type(error).__name__})") from None


def note_earlier(store: Store) -> None:
    """Print a line if a store has results or encoded tables of an earlier version, which are ignored."""
    if not store.root.is_dir():
        return
    with os.scandir(store.root) as entries:  # names are digests: the first ones are a random sample
        some = list(itertools.islice((e.name for e in entries if re.fullmatch("[0-9a-f]{64}", e.name)), 20))
    schemas = (Inventory(store).read(key).parts.get("schema", SCHEMA) for key in some)
    if any(isinstance(schema, int) and schema < SCHEMA for schema in schemas) or tables_without_rows(store):
        print(
            f"ignored: results of an earlier version in {store.root}; `multilab store clean --outdated --yes` removes "
            "them",
            file=sys.stderr,
        )


def _check_targets(cell: StoredCell, own: Method | None) -> None:
    """Refuse a record whose classes are neither ours nor those of the method's YAML: a key imports its classes."""
    allowed = {"multilab", "sklearn", *(class_names(own.identity()) if own else ())}
    for target in class_names(cell.settings):
        if target not in allowed and target.partition(".")[0] not in allowed:
            raise ExperimentError(f"names {target}, which no method of this name has")


_BUILT = (BaseEstimator, BaseCrossValidator, BaseShuffleSplit)
"""What the settings of a record may build."""


def check_runnable(cell: StoredCell) -> None:
    """Refuse to compute a record again whose settings may do more than fit: a record may be a stranger's.

    Its ``_target_`` are estimators and splitters of scikit-learn and of this package, or what the method's YAML names;
    its other values are numbers and texts that are no path, or those of the YAML.

    Raises
    ------
    ExperimentError
        Naming the setting.
    """
    method = _loaded(cell.method)
    settings = method.identity() if method else {}
    classes, here = class_names(settings), set(map(canonical_json, _leaves(settings)))
    for path, value in _leaves(cell.settings):
        if path[-1] == "_target_":
            built = value in classes or _is_built(value)
        else:
            hidden = any(name.startswith("_") for name in path)
            folder = path[-1].rpartition("__")[2] == "memory" and value is not None  # joblib unpickles what is in it
            built = (is_plain(value) and not hidden and not folder) or canonical_json((path, value)) in here
        if not built:
            raise ExperimentError(f"its setting {'.'.join(path)}={value!r} is not read from a record")


def _is_built(target: Any) -> bool:
    """Return whether a dotted name is that of a class of scikit-learn or of this package that a record may name."""
    if not isinstance(target, str) or target.partition(".")[0] not in ("multilab", "sklearn"):
        return False
    cls = located(target)
    return (
        isinstance(cls, type)
        and issubclass(cls, _BUILT)
        and cls.__module__.startswith(("multilab.methods.", "multilab.decision.", "sklearn."))
    )


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values anywhere in settings with the names that lead to them; items of a list have no name."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item, path)
    else:
        yield path, value


def _observed(parts: Mapping[str, Any]) -> ObservedShare | None:
    """Return the setting ``observed`` of what a key was computed from."""
    block = parts.get("observed")
    return ObservedShare.from_setting(block) if block else None


_REASONS = {
    "versions": "library versions",
    "results_versions": "declared versions",
    "own_files": "own files",
    "reads": "base scores",
    "schema": "format of the store",
}


def _protocol(folder: Path) -> dict[str, Any] | None:
    """Return the protocol that the cell's ``config.yaml`` names."""
    try:
        text = (folder / "config.yaml").read_text("utf-8")
        # Only this block, so that cells with the same protocol share one cached result of the parser.
        block = re.search(r"^protocol:.*\n(?:[ -].*\n)*", text, re.MULTILINE)
        protocol = _parsed(block.group()) if block else None
        canonical_json(protocol)
    except (OSError, ValueError, TypeError, LookupError, yaml.YAMLError):
        return None
    return dict(protocol) if isinstance(protocol, dict) else None


_LONGEST = 100_000  # characters of a protocol


@functools.lru_cache(maxsize=1024)
def _parsed(block: str) -> Any:
    """Return the protocol in a block of YAML; thousands of cells have the same few."""
    # libyaml's time is that of the square of a long line, and aliases make a short text a value without end
    if len(block) > _LONGEST or any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(block, HydraLoader)):
        raise ValueError("not a protocol that this package writes")
    return parse_yaml(block)["protocol"]


def _own_digests(names: str) -> dict[str, str]:
    """Return the names of the user's own datasets, among names separated by commas, by the digests of their data."""
    folders = [own_dir(), files_dir()]
    own_names = [name for name in names.split(",") if any((folder / f"{name}.yaml").is_file() for folder in folders)]
    digests = {}
    for name in own_names:
        with contextlib.suppress(datasets.DatasetError):  # the file is gone or has changed
            digests[datasets.prepare(name).meta["digest"]] = name
    return digests


def _matches(name: str, patterns: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns.split(","))


def protocol_text(protocol: Mapping[str, Any] | None) -> str:
    """Return a protocol as text: its name in ``conf/protocol``, else its settings."""
    if protocol is None:
        return "?"
    if name := _protocol_names(conf_dir()).get(canonical_json(protocol)):
        return name
    rest = {k: v for k, v in protocol.items() if k not in ("kfold", "holdout", "split")}
    details = ", ".join(f"{name} {setting_text(value)}" for name, value in rest.items())
    if "kfold" in protocol:
        head = f"{protocol['kfold']} folds"
    elif "holdout" in protocol:
        head = f"hold-out {setting_text(protocol['holdout'])}"
    else:
        head = f"split {protocol.get('split', '?')}"
    return f"{head} ({details})" if details else head


@functools.cache
def _protocol_names(conf: Path) -> dict[str, str]:
    """Return the names of the protocols of a folder of settings, by their content."""
    return {canonical_json(load_protocol(name)): name for name in reversed(names("protocol"))}


def argument_changes(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the arguments of ``after`` that differ from ``before``, nested ones by dotted name.

    An argument that is only in ``before`` has the value ``None`` here.
    """
    changes: dict[str, Any] = {}
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping) and old.get("_target_") == new.get("_target_"):
            changes |= argument_changes(old, new, f"{prefix}{name}.")
        else:
            changes[f"{prefix}{name}"] = new
    return changes


def setting_text(value: Any) -> str:
    """Return a value as it is written on the command line, an estimator as ``SVC(C=1.0)``."""
    if isinstance(value, Mapping) and isinstance(value.get("_target_"), str):
        arguments = ", ".join(f"{k}={setting_text(v)}" for k, v in value.items() if k != "_target_")
        return f"{value['_target_'].rpartition('.')[2]}({arguments})"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(setting_text, value)) + "]"
    return value if isinstance(value, str) else json.dumps(value, default=str)


@functools.cache
def _loaded(method: str) -> Method | None:
    if method not in _method_names():  # never a path
        return None
    try:
        return load_method(method)
    except ExperimentError:  # the YAML is gone
        return None


@dataclass(frozen=True)
class ResultRow:
    """One method with its settings on one dataset under one protocol.

    Attributes
    ----------
    dataset, protocol, method : str
    settings : tuple of str
        What differs from the method's YAML, as ``name=value``.
    splits : int
        Finished splits, of ``expected`` (``None`` where that is not known).
    metrics : dict of str to tuple of float
        Values of the splits.
    seconds : float
        Of all splits: fit (with the base scores it reads), search and prediction.
    warnings : int
        Distinct warnings, summed over the splits.
    searched : str
        Metric of the search of a tuned method, else empty.
    """

    dataset: str
    protocol: str
    method: str
    settings: tuple[str, ...] = ()
    splits: int = 0
    expected: int | None = None
    metrics: dict[str, tuple[float, ...]] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: int = 0
    searched: str = ""

    @property
    def complete(self) -> bool:
        """Whether no split is missing."""
        return self.expected is None or self.splits >= self.expected

    def mean(self, metric: str) -> float:
        """Return the mean over the splits; NaN where a split has no value."""
        values = self.metrics.get(metric, ())
        return sum(values) / len(values) if values else float("nan")

    def std(self, metric: str) -> float:
        """Return the standard deviation over the splits; NaN for a single one."""
        values = self.metrics.get(metric, ())
        return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def spent_seconds(record: Mapping[str, Any]) -> float:
    """Return the seconds of a cell: its search, fit and prediction, and the fits of the base scores that it reads.

    NaN if the record does not say them: that of a result from a pack, or of one that read such results.
    """
    names = ("tune_seconds", "input_seconds", "fit_seconds", "predict_seconds")
    reads = (record.get("parts") or {}).get("reads")
    if any(record.get(name) is None for name in ("fit_seconds", *(["input_seconds"] if reads else []))):
        return math.nan
    return sum(float(record.get(name) or 0.0) for name in names)


def result_rows(inventory: Inventory, cells: Iterable[StoredCell], conventions: str = "default") -> list[ResultRow]:
    """Return a row per dataset, protocol, method and settings, in the order in which they first occur.

    Of two results for one split the one that was computed last counts.
    """
    groups: dict[tuple[Any, ...], dict[str, StoredCell]] = {}
    for cell in cells:
        settings = (*inventory.settings(cell), *([] if conventions == "default" else [f"conventions={conventions}"]))
        group = groups.setdefault((cell.dataset, protocol_text(cell.protocol), cell.method, settings), {})
        split = cell.parts.get("split", "")
        other = group.get(split)
        if other is None or (other.record.get("started") or 0) < (cell.record.get("started") or 0):
            group[split] = cell
    return [_row(ResultRow(*names), list(group.values()), inventory, conventions) for names, group in groups.items()]


def _row(row: ResultRow, cells: list[StoredCell], inventory: Inventory, conventions: str) -> ResultRow:
    cells = sorted(cells, key=lambda cell: cell.split)
    values = [inventory.metrics(cell, conventions) for cell in cells]
    return replace(
        row,
        splits=len(cells),
        expected=inventory.n_splits(cells[0]),
        metrics={name: tuple(scores[name] for scores in values) for name in values[0]},
        seconds=sum(spent_seconds(cell.record) for cell in cells),
        warnings=sum(_count(cell.record.get("warnings")) for cell in cells),
        searched=cells[0].parts.get("tune", {}).get("metric", ""),
    )


def _count(warnings: Any) -> int:
    """Return how many warnings a record holds: a list of texts, or counts by category."""
    if isinstance(warnings, dict):
        return sum(int(count) for count in warnings.values())
    return len(warnings or ())
