"""Files of the scores of all cells of a study, by data set, and metrics from them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from multilab import datasets
from multilab.arena.errors import ArenaError
from multilab.arena.score_files.cell_scores import ScoreFile, read_cell_scores, rounded_arrays, write_cell_scores
from multilab.arena.score_files.policies import check_policy
from multilab.commands.arguments import arguments
from multilab.commands.data_versions import version_path
from multilab.commands.progress import ProgressBar
from multilab.core import canonical_json, report_dir, write_atomically
from multilab.core.messages import unknown_name
from multilab.core.shell import command
from multilab.experiments.cells import Cell, all_cells, split_refs
from multilab.experiments.store import Store
from multilab.experiments.study import Study, load_study
from multilab.metrics import METRICS
from multilab.metrics.registry import defined

FOLDER = "cell-scores"


def pack(argv: list[str]) -> int:
    """Write the score files of a study from the store of cells; print a line per data set."""
    options = arguments(argv, "study", "dataset")
    study, store = load_study(options.get("study", "arena")), Store()
    missing = 0
    for dataset in _chosen(study.datasets, options.get("dataset")):
        missing += pack_dataset(study, dataset, store)
    if missing:
        advice = f"`{command('multilab')} worker study={study.name} --idle-exit` computes all of them"
        print(f"{missing} cells are not in {store.root}; {advice}")
    return 0


def pack_dataset(study: Study, dataset: str, store: Store) -> int:
    """Write the score file of a data set, print a line, and return how many cells it lacks.

    Cells of an existing file that are up to date stay in it, so that not every machine needs all cells.
    """
    path = score_file(study.name, dataset)
    refs = split_refs(dataset, study.protocol_of(dataset))
    cells = all_cells(study, refs)
    known = _known(path)
    rows, packed = [], dict[str, tuple[dict[str, np.ndarray], float] | None]()
    for cell in ProgressBar(f"scores of {dataset}")(cells, len(cells)):
        key = cell.key
        if key not in packed:
            packed[key] = _packed(cell, store, known)
        if entry := packed[key]:
            rows.append((cell.split_ref.split, cell.method.name, key, entry[1]))
    if not rows:
        print(f"{dataset}: none of {len(cells)} cells is finished; no file is written")
        return len(cells)
    index = {
        "study": study.name,
        "dataset": dataset,
        "data": (datasets.prepared_meta(dataset) or {})["digest"],
        "protocol": json.loads(canonical_json(study.protocol_of(dataset))),
        "splits": [ref.digest for ref in refs],
        "cells": rows,
    }
    kept = {name: array for entry in packed.values() if entry is not None for name, array in entry[0].items()}
    write_cell_scores(path, index, kept)
    megabytes, shift = path.stat().st_size / 1e6, max(row[3] for row in rows)
    counts = f"{len(rows)} of {len(cells)} cells, {megabytes:.2f} MB"
    print(f"{path}: {counts}, scores moved by at most {shift:.1e} (float32)")
    print(f"  {version_path(path)}")
    return len(cells) - len(rows)


def recompute(argv: list[str]) -> int:
    """Print metrics of all columns of a study from its score files; write them with ``out=``."""
    options = arguments(argv, "study", "dataset", "metric", "policy", "conventions", "out")
    if "metric" not in options:
        raise ArenaError(f"which metric? metric=NAME,NAME of {', '.join(METRICS)}")
    metrics = [defined(name).name for name in options["metric"].split(",")]
    check_policy(options.get("policy", "stored"))
    study, policy = options.get("study", "arena"), options.get("policy", "stored")
    present = sorted(path.stem for path in (report_dir(study) / FOLDER).glob("*.npz"))
    names = _chosen(present, options.get("dataset")) if present else [options.get("dataset", "*").partition(",")[0]]
    tables, conventions = [], options.get("conventions", "")
    for name in names:
        file = read_cell_scores(score_file(study, name))
        conventions = conventions or load_study(study).conventions
        tables.append(file.metrics(metrics, policy, conventions, ProgressBar(f"metrics of {name}")))
    table = pd.concat(tables, ignore_index=True)
    _print_means(table, metrics, policy, conventions)
    if "out" in options:
        write_atomically(options["out"], table.to_csv(index=False, lineterminator="\n"))
        print(f"{options['out']}: {len(table)} values, a row per data set, split, method and metric")
    return 0


def score_file(study: str, dataset: str) -> Path:
    """Return the path of the score file of a data set."""
    return report_dir(study) / FOLDER / f"{dataset}.npz"


def _chosen(known: Iterable[str], named: str | None) -> list[str]:
    known = list(known)
    chosen = named.split(",") if named else known
    for name in chosen:
        if name not in known:
            raise ArenaError(unknown_name("data set here", name, known))
    return chosen


def _known(path: Path) -> ScoreFile | None:
    """Return the existing file of a data set, ``None`` where there is none that can be read."""
    try:
        return read_cell_scores(path)
    except ArenaError:
        return None


def _packed(cell: Cell, store: Store, known: ScoreFile | None) -> tuple[dict[str, np.ndarray], float] | None:
    """Return the arrays of a cell under their names in the file, and the largest change of a score."""
    if store.has(cell.key):
        arrays, shift = rounded_arrays(store.arrays(cell.key))
        return {f"{cell.key}.{name}": array for name, array in arrays.items()}, shift
    if known is None or not (arrays := known.arrays_of(cell.key)):
        return None
    return arrays, float(known.cells.loc[known.cells["key"] == cell.key, "shift"].iloc[0])


def _print_means(table: pd.DataFrame, metrics: list[str], policy: str, conventions: str) -> None:
    """Print the mean over splits, then over data sets, of each column; the best of the first metric first.

    A column that lacks a split of a data set has no mean and is last: means over other data sets do not compare.
    """
    splits = table[["dataset", "split"]].drop_duplicates()
    columns = pd.Index(table["method"].unique(), name="method")
    every = pd.MultiIndex.from_tuples(
        [(*split, method) for split in splits.itertuples(index=False) for method in columns],
        names=["dataset", "split", "method"],
    )
    values = table.pivot(index=every.names, columns="metric", values="value").reindex(every)[metrics]
    by_dataset = values.groupby(["dataset", "method"], sort=False).mean(skipna=False)
    means = by_dataset.groupby("method", sort=False).mean(skipna=False)
    means = means.sort_values(metrics[0], ascending=defined(metrics[0]).direction == "min")
    print(f"means over {table['dataset'].nunique()} data sets, decisions: {policy}, conventions: {conventions}")
    print(means.to_string(float_format=lambda value: f"{value:.4f}", na_rep="-"))
    if means.isna().any(axis=None):
        print(
            "-: a split is not finished, the metric is undefined on it, or scores outside [0, 1] have no threshold; "
            "dataset=NAME prints the means of one data set"
        )
