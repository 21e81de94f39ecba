"""Data of a report: the committed files of a study, read once and checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from multilab.cells.conf import names
from multilab.cells.method import load_method
from multilab.cells.settings import with_optuna_names
from multilab.core import read_json
from multilab.metrics import find_metric
from multilab.reports.errors import ReportError
from multilab.statistics import Comparison, Leaderboard, StatisticsError, Summary, rank_rows
from multilab.statistics.result_files import (
    SCORES,
    method_of_column,
    read_measured,
    read_scores,
    statistics_file,
)

_Json = TypeVar("_Json", dict[str, Any], list[Any])


@dataclass(frozen=True, eq=False)
class Learned:
    """Arrays that one method learned on the first split of one dataset.

    ``arrays`` holds the stored attributes by name (``W_``, ``label_affinity_``, ``objective_path_``, ...).
    """

    method: str
    dataset: str
    label_names: tuple[str, ...]
    arrays: dict[str, np.ndarray]


@dataclass(frozen=True)
class VariantData:
    """The same methods with other settings, or tuned.

    Attributes
    ----------
    name, description : str
        Name of the variant, and what differs.
    datasets : tuple of str
        Its datasets.
    methods : dict of str to str
        The study's method behind each column: ``mls`` behind ``mls-svm``.
    tune : dict
        How its methods are tuned; empty if they are not.
    show_with_main : bool
        Whether its columns are also in the study's own tables.
    kind : str
        What its columns are for, see :data:`multilab.experiments.study.KINDS`.
    observed : dict
        Observed share of the training labels (``share``) and what methods see of the others (``hidden``); empty if
        all are observed.
    given_title : str
        Title of the study's file, empty if it has none.
    titles : dict of str to str
        By column the display name of its method, without the variant.
    """

    name: str
    description: str
    datasets: tuple[str, ...]
    methods: dict[str, str]
    tune: dict[str, Any]
    show_with_main: bool
    kind: str = ""
    observed: dict[str, Any] = field(default_factory=dict)
    given_title: str = ""
    titles: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title, else the name as a reader would write it: ``as printed``."""
        return self.given_title or self.name.replace("_", " ")


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything that a report may show, from the files of ``reports/<study>/``.

    Attributes
    ----------
    folder : Path
        Folder of the files.
    info : dict
        ``study.json``: name, title, description, protocol, settings, references and so on; may be empty.
    board : Leaderboard
        The own methods on the datasets, in printing order; its ``scores`` are ``scores.csv.gz``, with the columns
        of variants and the key of the cell where it is known. The direction of an unknown metric is empty.
    measured : DataFrame or None
        ``measured.csv``: seconds, MB and bytes per dataset, split and method.
    comparisons : dict of str to Comparison
        ``statistics.json.gz``, by metric; for a known metric that is not in it, computed here.
    cards : dict of str to dict
        ``datasets.json`` by dataset name.
    learned : tuple of Learned
        ``figures/learned-*.npz``.
    environment : dict
        ``environment.json``.
    """

    folder: Path
    info: dict[str, Any]
    board: Leaderboard
    measured: pd.DataFrame | None
    comparisons: dict[str, Comparison]
    cards: dict[str, dict[str, Any]]
    learned: tuple[Learned, ...]
    environment: dict[str, Any]

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the datasets in printing order."""
        return self.board.datasets

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the study's own methods in printing order."""
        return self.board.methods

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics in printing order."""
        return self.board.metrics

    @property
    def scores(self) -> pd.DataFrame:
        """All scores, of the variants too."""
        return self.board.scores

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Mean and standard deviation over splits, by metric."""
        return {metric: self.board.summary(metric) for metric in self.metrics}

    @property
    def name(self) -> str:
        """Name of the study: that of ``study.json``, else of the folder."""
        return str(self.info.get("name") or self.folder.resolve().name)

    @property
    def title(self) -> str:
        """Title of the page: that of ``study.json``, else the name."""
        return str(self.info.get("title") or self.name)

    @property
    def alpha(self) -> float:
        """Level of the tests."""
        return self.board.alpha

    @property
    def primary(self) -> tuple[str, ...]:
        """The metrics that a reader should see first, at least one."""
        named = [m for m in self.info.get("primary_metrics") or [] if m in self.metrics]
        return tuple(named or self.metrics[:1])

    @property
    def n_repeats(self) -> int:
        """Number of repetitions of the splits."""
        return int((self.info.get("repetitions") or {}).get("n_repeats", 1))

    @cached_property
    def variants(self) -> tuple[VariantData, ...]:
        """The variants of ``study.json`` that have scores."""
        scored = set(self.scores["method"])
        variants = (self._variant(name, block) for name, block in (self.info.get("variants") or {}).items())
        return tuple(variant for variant in variants if scored & set(variant.methods))

    def _variant(self, name: str, block: Mapping[str, Any]) -> VariantData:
        methods = {str(column): method_of_column(str(column)) for column in block.get("methods") or ()}
        titles: dict[str, str] = self.info.get("method_titles") or {}
        return VariantData(
            name=name,
            description=str(block.get("description") or ""),
            datasets=tuple(block.get("datasets") or self.datasets),
            methods=methods,
            tune=with_optuna_names(block.get("tune") or {}),
            show_with_main=bool(block.get("show_with_main")),
            kind=str(block.get("kind") or ""),
            observed=block.get("observed") or {},
            given_title=str(block.get("title") or ""),
            titles={column: titles.get(method) or _own_title(method) for column, method in methods.items()},
        )

    @property
    def extra_columns(self) -> tuple[str, ...]:
        """The columns of variants that are shown in the study's own tables."""
        return tuple(column for variant in self.variants if variant.show_with_main for column in variant.methods)

    def settings(self, method: str) -> dict[str, Any]:
        """Return the arguments of a method and what the laboratory does for it; empty if the files do not have them."""
        settings = (self.info.get("settings") or {}).get(method) or {}
        return settings if isinstance(settings, dict) else {}

    def argument(self, method: str, dataset: str, name: str) -> Any:
        """Return an argument of one of the study's own methods on a dataset, ``None`` if the files do not have it."""
        value = self.settings(method).get(name)
        for block in self.info.get("overrides") or ():
            named = method in (block.get("methods") or [method]) and dataset in (block.get("datasets") or [dataset])
            value = block["set"].get(name, value) if named else value
        return value

    def method_title(self, method: str) -> str:
        """Return the display name of a method."""
        return self.all_titles.get(method, method)

    @property
    def titles(self) -> dict[str, str]:
        """Display names of the study's own methods."""
        titles = self.all_titles
        return {method: titles.get(method, method) for method in self.methods}

    @cached_property
    def all_titles(self) -> dict[str, str]:
        """Display names of all methods and of the columns of all variants."""
        titles = {str(key): str(title) for key, title in (self.info.get("method_titles") or {}).items()}
        for variant in self.variants:
            titles |= {column: f"{title} ({variant.title})" for column, title in variant.titles.items()}
        return titles


def _own_title(method: str) -> str:
    """Return the title in the method's own file: of one that only runs in a variant, the study has no other."""
    return load_method(method).title if method in names("method") else method


def metric_title(key: str) -> str:
    """Return the display name of a metric; an unknown key has its underscores replaced."""
    known = find_metric(key)
    title = known.title if known else key.replace("_", " ")
    return title[:1].upper() + title[1:]


def metric_direction(key: str) -> str:
    """Return whether small ("min") or large values ("max") of a metric are good, empty if unknown."""
    known = find_metric(key)
    return known.direction if known else ""


def load_report(study_dir: Path | str) -> ReportData:
    """Read the files of one study.

    Parameters
    ----------
    study_dir : path
        The folder ``reports/<study>``. Only ``scores.csv.gz`` is required.

    Raises
    ------
    ReportError
        If ``scores.csv.gz`` is missing, a file cannot be read, or ``statistics.json.gz`` does not belong to the scores.
    """
    folder = Path(study_dir)
    if not (folder / SCORES).is_file():
        raise ReportError(
            f"{folder / SCORES} is missing: run the study first (multilab study run --study {folder.name})"
        )
    info = _json(folder / "study.json", {})
    try:
        scores = read_scores(folder)
        datasets, methods, metrics = (
            tuple(str(name) for name in info.get(f"{key}s") or dict.fromkeys(scores[key]))
            for key in ("dataset", "method", "metric")
        )
        directions = {metric: metric_direction(metric) for metric in metrics}
        board = Leaderboard(scores, directions, datasets, methods, alpha=float(info.get("alpha", 0.05)))
        return ReportData(
            folder=folder,
            info=info,
            board=board,
            measured=read_measured(folder),
            comparisons=load_comparisons(folder / statistics_file(), info, board, info.get("control")),
            cards={str(card.get("name")): card for card in _json(folder / "datasets.json", [])},
            learned=tuple(_learned(path, methods) for path in sorted((folder / "figures").glob("learned-*.npz"))),
            environment=_json(folder / "environment.json", {}),
        )
    except StatisticsError as error:
        raise ReportError(f"{folder}: {error}") from error


def load_comparisons(
    path: Path, info: Mapping[str, Any], board: Leaderboard, control: str | None
) -> dict[str, Comparison]:
    """Return the comparison of each metric that has a direction.

    It is that of the statistics file, which is checked against the scores. For a metric that is not in the file, the
    methods are compared here with the settings of the study, as the stage ``stats`` does.

    Raises
    ------
    ReportError
        If the file holds no comparisons, or those of other scores.
    """
    stored, comparisons = _json(path, {}), {}
    for metric in board.metrics:
        if metric in stored:
            try:
                comparisons[metric] = Comparison.from_dict(stored[metric])
            except (StatisticsError, TypeError, ValueError) as error:
                raise ReportError(f"{path}, {metric}: {error}") from error
            _check_ranks(path, comparisons[metric], board.summary(metric))
        elif board.directions[metric]:
            options = {key: info[key] for key in ("rope", "seed") if key in info}
            comparisons[metric] = board.compare(metric, control if control in board.methods else None, **options)
    return comparisons


def _check_ranks(path: Path, comparison: Comparison, summary: Summary) -> None:
    """Refuse statistics of other scores: the page would contradict itself."""
    table = summary.mean.reindex(index=list(comparison.datasets), columns=list(comparison.methods))
    if rank_rows(table, comparison.direction).to_dict("index") != comparison.dataset_ranks:
        raise ReportError(
            f"{path} does not belong to the scores: the ranks of {summary.metric} differ; "
            f"regenerate it with `multilab study stats --study {path.parent.name}`"
        )


def _learned(path: Path, methods: tuple[str, ...]) -> Learned:
    stem = path.stem.removeprefix("learned-")
    method = max((m for m in methods if stem.startswith(f"{m}-")), key=len, default=stem.partition("-")[0])
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in sorted(stored.files)}
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from error
    labels = tuple(str(label) for label in arrays.pop("label_names", ()))
    return Learned(method, stem.removeprefix(f"{method}-"), labels, arrays)


def _json(path: Path, default: _Json) -> _Json:
    if not path.is_file():
        return default
    try:
        content = read_json(path)
    except (OSError, ValueError) as error:
        raise ReportError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, type(default)):
        raise ReportError(f"{path} must hold a JSON {'object' if isinstance(default, dict) else 'list'}")
    return content
