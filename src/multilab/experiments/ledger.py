"""Comparison of a study with its paper: a verdict per published cell, and the outcome of each claim."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from multilab import datasets
from multilab.cells.cell import Cell
from multilab.cells.store import Store
from multilab.claims import (
    Evidence,
    PublishedTables,
    check_claims,
    data_rows,
    judge_tables,
    published_evidence,
    summarised,
)
from multilab.claims.checks import check_errata, run_counterfactuals
from multilab.claims.paper import Paper
from multilab.datasets import load
from multilab.experiments.evaluate import MEASURED, learned
from multilab.experiments.plan import study_cells
from multilab.experiments.study import Study
from multilab.statistics.result_files import SCORES, read_measured, read_scores, read_table, tables_of

__all__ = [
    "claims_text",
    "counterfactuals_text",
    "judged",
    "learned_file",
    "study_evidence",
    "unavailable",
    "with_test_sets",
]


_CELL = ["dataset", "method", "metric"]
_NOT_TABLES = ("cells", "keys", "sampling", "scores")


def judged(study: Study, folder: Path, published: PublishedTables) -> pd.DataFrame:
    """Return the verdict on every published cell, from the files of a study's report folder and its data.

    Reads ``scores.csv.gz``, ``scores-*.csv.gz`` (other protocols that the paper prints), ``measured.csv``,
    ``sampling.csv``, the scores of the study of random splits named in ``names.yaml``, and the properties of the data
    sets that the paper prints.
    """
    ours = [summarised(with_test_sets(study, read_scores(folder, extra=True))), summarised(_measured(folder))]
    cells = published.cells
    ours += _data(sorted(set(cells["dataset"]) & set(study.datasets)), cells)
    measured = pd.concat(ours).merge(_sampling(folder, published), on=_CELL, how="left")
    return judge_tables(published, measured, study.conventions, unavailable(cells["dataset"].unique()))


def with_test_sets(study: Study, scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores with ``test_set``, which repetitions of a split share."""
    n_repeats = (
        scores["method"].map({column: study.repetitions_of(column)[0] for column in study.all_methods}).fillna(1)
    )
    splits = scores.groupby(["dataset", "method"])["split"].transform("nunique")
    return scores.assign(test_set=scores["split"] % (splits // n_repeats).astype(int))


def _sampling(folder: Path, published: PublishedTables) -> pd.DataFrame:
    """Return the sampling errors of means: the larger of the bootstrap over test rows and the spread over splits.

    A column that a printed method is compared with has the spread of the method of that name over the splits.
    """
    path, resplits = folder / "sampling.csv", published.aliases.resplits
    rows = read_table(path, _CELL) if path.is_file() else pd.DataFrame(columns=[*_CELL, "error"])
    tables = [rows.rename(columns={"error": "sampling"})[[*_CELL, "sampling"]]]
    if resplits and (folder.parent / resplits / SCORES).is_file():
        spread = summarised(read_scores(folder.parent / resplits))
        columns = published.aliases.names.get("method", {})
        named = spread[spread["method"].isin(list(columns))].replace({"method": dict(columns)})
        tables += [part.rename(columns={"std": "sampling"})[[*_CELL, "sampling"]] for part in (spread, named)]
    return pd.concat(tables).groupby(_CELL, as_index=False)["sampling"].max()


def study_evidence(study: Study, folder: Path, store: Store, paper: Paper) -> Evidence:
    """Return the evidence of a study: scores, costs, arrays learned on first splits, further tables, published cells.

    Arrays of cells that are not in the store are those of the report's ``figures`` folder. The table ``resplits`` has
    the scores of the study of random splits that the paper's names give.
    """
    arrays = {
        (method, cell.split_ref.dataset): learned(cell, store)
        if store.has(cell.key)
        else committed_arrays(folder, cell)
        for method in study.all_methods
        for cell in study_cells(study, method)
        if cell.split_ref.split == 0 and cell.method.save_attributes
    }
    tables = {name: read_table(path) for name, path in tables_of(folder).items() if name not in _NOT_TABLES}
    resplits = paper.tables.aliases.resplits
    if resplits and (folder.parent / resplits / SCORES).is_file():
        tables["resplits"] = read_scores(folder.parent / resplits)
    scores = pd.concat([read_scores(folder, extra=True), _measured(folder)])
    cells, splits = paper.tables.cells, paper.splits
    return Evidence(scores, arrays, tables, study.alpha, cells, splits, paper.table_splits)


def claims_text(study: Study, folder: Path, store: Store, paper: Paper, ours: Evidence | None = None) -> str:
    """Return the content of ``claims.json``, one entry per claim; ``ours`` is the evidence of the study, if known."""
    ours = ours or study_evidence(study, folder, store, paper)
    printed = published_evidence(paper.tables.cells, study.alpha)
    entries = check_claims(paper.claims, ours, printed, paper.checks, paper.programs)
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


def counterfactuals_text(study: Study, folder: Path, store: Store, paper: Paper, ours: Evidence | None = None) -> str:
    """Return the content of ``counterfactuals.json``: the counterfactuals, and the outcomes of the checks of errata."""
    ours = ours or study_evidence(study, folder, store, paper)
    printed = published_evidence(paper.tables.cells, study.alpha)
    errata = check_errata(paper.tables.errata, printed, ours, paper.checks)
    outcomes = {name: {"outcome": f.outcome, "reason": f.reason, "numbers": f.numbers} for name, f in errata.items()}
    ran = run_counterfactuals(paper.counterfactuals, ours, printed, paper.checks)
    return json.dumps({"counterfactuals": ran, "errata": outcomes}, indent=1, ensure_ascii=False) + "\n"


def unavailable(names: Iterable[str]) -> Mapping[str, str]:
    """Return the datasets among the names whose data are not available according to their card, and why."""
    known = set(datasets.cards())
    cards = {name: datasets.card(name) for name in names if name in known}
    return {name: card.reason for name, card in cards.items() if not card.available}


def _measured(folder: Path) -> pd.DataFrame:
    """Return the measurements in the form of scores, and ``total_seconds`` to fit and to predict."""
    named = ["dataset", "split", "method", "key"]
    table = read_measured(folder)
    if table is None:
        return pd.DataFrame(columns=[*named, "metric", "value"])
    table["total_seconds"] = table["fit_seconds"] + table["predict_seconds"]
    return table.melt(named, [*MEASURED, "total_seconds"], "metric", "value").dropna(subset="value")


def learned_file(folder: Path, cell: Cell) -> Path:
    """Return the file of a report folder that holds what a cell learned."""
    return folder / "figures" / f"learned-{cell.method.name}-{cell.split_ref.dataset}.npz"


def committed_arrays(folder: Path, cell: Cell) -> dict[str, np.ndarray]:
    """Return what a cell learned according to the report folder, nothing if that has no file of it."""
    path = learned_file(folder, cell)
    if not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files if name != "label_names"}


def _data(names: Iterable[str], printed: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the numbers of those data sets that the paper describes."""
    about = {"n_instances", "n_features", "label_cardinality", "train_label_cardinality", "label_count"}
    described = set(printed.loc[printed["metric"].isin(about), "dataset"])
    return [data_rows(load(name)) for name in names if name in described]
