"""A study as its committed files tell it: read once, checked, and handed on as one object."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from multilab.metrics import METRICS
from multilab.reports.errors import ReportError
from multilab.statistics import Comparison, StatisticsError, Summary, compare, rank_rows, summarise

__all__ = ["Learned", "Study", "load_comparisons", "load_study", "load_table", "metric_title", "set_columns"]

_CELLS = {"table", "dataset", "method", "metric", "printed_mean", "printed_std", "our_metric", "our_mean", "our_std"}
_CELLS |= {"verdict", "reason", "erratum"}


@dataclass(frozen=True, eq=False)
class Learned:
    """What one method learned on the first split of one dataset.

    ``arrays`` are the fitted attributes kept, by name (``W_``, ``label_affinity_``, ``objective_path_``,
    ...).
    """

    method: str
    dataset: str
    label_names: tuple[str, ...]
    arrays: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Study:
    """Everything a report may show, straight from the files of ``reports/<study>/``.

    Attributes
    ----------
    folder : Path
        Where the files are.
    info : dict
        ``study.json``: name, title, about, protocol, settings, references and so on; may be empty.
    datasets, methods, metrics : tuple of str
        Names in printing order.
    scores : DataFrame
        ``scores.csv``: dataset, split, method, metric, value, key.
    summaries : dict of str to Summary
        Mean and standard deviation over splits, by metric.
    measured : DataFrame or None
        ``measured.csv``: seconds, MB and bytes per dataset, split and method.
    comparisons : dict of str to Comparison
        By metric. From ``statistics.json``; for a known metric that is not in it, computed here.
    cards : dict of str to dict
        ``datasets.json`` by dataset name.
    learned : tuple of Learned
        ``figures/learned-*.npz``.
    claims : list of dict
        ``claims.json``, as the stage ``stats`` wrote it.
    cells : DataFrame or None
        ``cells.csv``: printed cells and their verdicts, every cell as its text.
    environment : dict
        ``environment.json``.
    """

    folder: Path
    info: dict[str, Any]
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    scores: pd.DataFrame
    summaries: dict[str, Summary]
    measured: pd.DataFrame | None
    comparisons: dict[str, Comparison]
    cards: dict[str, dict[str, Any]]
    learned: tuple[Learned, ...]
    claims: list[dict[str, Any]]
    cells: pd.DataFrame | None
    environment: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the study: that of ``study.json``, else of the folder."""
        return str(self.info.get("name") or self.folder.resolve().name)

    @property
    def title(self) -> str:
        """Title of the page: that of ``study.json``, else the name."""
        return str(self.info.get("title") or self.name)

    @property
    def primary(self) -> tuple[str, ...]:
        """The metrics a reader should see first, at least one."""
        named = [m for m in self.info.get("primary_metrics") or [] if m in self.metrics]
        return tuple(named or self.metrics[:1])

    def method_title(self, method: str) -> str:
        """Return the method's name as printed in tables."""
        return self.all_titles.get(method, method)

    @property
    def titles(self) -> dict[str, str]:
        """Printed names of all methods."""
        return {method: self.method_title(method) for method in self.methods}

    @property
    def all_titles(self) -> dict[str, str]:
        """Printed names of all methods and of the columns of all column sets."""
        found = {str(key): str(title) for key, title in (self.info.get("method_titles") or {}).items()}
        for name, block in (self.info.get("columns") or {}).items():
            for column, base in set_columns(name, block).items():
                found.setdefault(column, f"{found.get(base, base)} ({name})")
        return found


def set_columns(name: str, block: Mapping[str, Any]) -> dict[str, str]:
    """Return the method behind each column of a column set: ``mls`` in the set ``svm`` is ``mls-svm``."""
    bases = [str(method).removesuffix(f"-{name}") for method in block.get("methods") or ()]
    return {f"{base}-{name}": base for base in bases}


def metric_title(key: str) -> str:
    """Return a metric's name as printed; a key that :mod:`multilab.metrics` does not know, as words."""
    title = METRICS[key].title if key in METRICS else key.replace("_", " ")
    return title[:1].upper() + title[1:]


def load_study(study_dir: Path | str) -> Study:
    """Read the files of one study.

    Parameters
    ----------
    study_dir : path
        The folder ``reports/<study>``. Only ``scores.csv`` must be there.

    Raises
    ------
    ReportError
        If ``scores.csv`` is missing, a file cannot be read, or ``statistics.json`` does not belong to the
        scores.
    """
    folder = Path(study_dir)
    if not (folder / "scores.csv").is_file():
        raise ReportError(f"{folder / 'scores.csv'} is missing: run the study first (multilab run study={folder.name})")
    scores = load_table(folder / "scores.csv", {"dataset", "split", "method", "metric", "value"})
    info = _json(folder / "study.json", {})
    datasets = _names(info.get("datasets"), scores["dataset"])
    methods = _names(info.get("methods"), scores["method"])
    metrics = _names(info.get("metrics"), scores["metric"])
    try:
        summaries = {metric: summarise(scores, metric, datasets, methods) for metric in metrics}
    except StatisticsError as error:
        raise ReportError(f"{folder / 'scores.csv'}: {error}") from error
    return Study(
        folder=folder,
        info=info,
        datasets=datasets,
        methods=methods,
        metrics=metrics,
        scores=scores,
        summaries=summaries,
        measured=_optional_table(folder / "measured.csv", {"dataset", "split", "method"}),
        comparisons=load_comparisons(folder / "statistics.json", info, summaries),
        cards={str(card.get("name")): card for card in _json(folder / "datasets.json", [])},
        learned=_learned(folder / "figures", methods),
        claims=_claims(folder / "claims.json"),
        cells=_optional_table(folder / "cells.csv", _CELLS, numbers=False),
        environment=_json(folder / "environment.json", {}),
    )


def _names(listed: Any, found: pd.Series) -> tuple[str, ...]:
    """Return the names in the order of study.json, else of appearance; an empty list counts as none."""
    return tuple(str(name) for name in listed or dict.fromkeys(found))


def load_comparisons(path: Path, info: Mapping[str, Any], summaries: Mapping[str, Summary]) -> dict[str, Comparison]:
    """Return the comparison of each metric: that of a statistics file, computed here for a metric not in it.

    Raises
    ------
    ReportError
        If the file holds no comparisons, or those of other scores.
    """
    stored = _json(path, {})
    found = {}
    for metric, summary in summaries.items():
        if metric in stored:
            try:
                found[metric] = Comparison.from_dict(stored[metric])
            except (StatisticsError, TypeError, ValueError) as error:
                raise ReportError(f"{path}, {metric}: {error}") from error
            _check_ranks(path, found[metric], summary)
        elif metric in METRICS:
            direction = METRICS[metric].direction
            found[metric] = compare(summary.mean, direction, float(info.get("alpha", 0.05)), metric=metric)
    return found


def _check_ranks(path: Path, comparison: Comparison, summary: Summary) -> None:
    """Refuse statistics of other scores: the page would contradict itself."""
    table = summary.mean.reindex(index=list(comparison.datasets), columns=list(comparison.methods))
    expected = rank_rows(table, comparison.direction).to_dict("index")
    if expected != comparison.dataset_ranks:
        raise ReportError(f"{path} does not belong to scores.csv: the ranks of {summary.metric} differ; make it anew")


def _learned(folder: Path, methods: tuple[str, ...]) -> tuple[Learned, ...]:
    found = []
    for path in sorted(folder.glob("learned-*.npz")):
        rest = path.stem.removeprefix("learned-")
        method = max((m for m in methods if rest.startswith(f"{m}-")), key=len, default=rest.partition("-")[0])
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in sorted(stored.files)}
        except (OSError, ValueError) as error:
            raise ReportError(f"{path} cannot be read: {error}") from error
        labels = tuple(str(label) for label in arrays.pop("label_names", ()))
        found.append(Learned(method, rest.removeprefix(f"{method}-"), labels, arrays))
    return tuple(found)


def _claims(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from error
    listed = found.get("claims", []) if isinstance(found, dict) else found
    return [claim for claim in listed if isinstance(claim, dict)]


def _optional_table(path: Path, needed: set[str], numbers: bool = True) -> pd.DataFrame | None:
    return load_table(path, needed, numbers) if path.is_file() else None


def load_table(path: Path, needed: set[str], numbers: bool = True) -> pd.DataFrame:
    """Return a CSV of a study; without ``numbers`` every cell as its text, absent ones empty.

    Raises
    ------
    ReportError
        If it cannot be read or lacks a column.
    """
    # float() reads back every bit that repr() wrote, which the parsers of older pandas do not
    asked: dict[str, Any] = {"converters": {"value": lambda text: float(text) if text else math.nan}}
    try:
        frame = pd.read_csv(path, **(asked if numbers else {"dtype": str, "keep_default_na": False}))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from error
    missing = sorted(needed - set(frame.columns))
    if missing:
        raise ReportError(f"{path} lacks the column {missing[0]!r}")
    for column in ("dataset", "method", "metric"):
        if column in frame:
            frame[column] = frame[column].astype(str)
    return frame


def _json(path: Path, default: Any) -> Any:
    if not path.is_file():
        return default
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, type(default)):
        raise ReportError(f"{path} must hold a JSON {'object' if isinstance(default, dict) else 'list'}")
    return found
