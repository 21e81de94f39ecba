"""A study held against its paper: every printed cell with our value, and every claim with what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from multilab.experiments.cells import study_cells
from multilab.experiments.errors import ExperimentError
from multilab.experiments.results import MEASURED, learned
from multilab.experiments.settings import Study
from multilab.experiments.store import Store

__all__ = ["claims_text", "judged", "study_evidence", "unavailable"]

_NOT_TABLES = ("cells", "scores")


def judged(study: Study, folder: Path) -> pd.DataFrame:
    """Return the verdict on every printed cell, from the files of a study's report folder and its data.

    Read are ``scores.csv``, any ``scores-*.csv`` of the same form (results of another protocol that the paper prints),
    ``measured.csv``, and the numbers of the data sets that the paper prints.

    Raises
    ------
    ExperimentError
        If the study has no paper.
    """
    from multilab.claims import judge_paper, published, summarised

    if study.paper is None:
        raise ExperimentError(f"study {study.name} is held against no paper; name one with paper: in its YAML")
    ours = [summarised(_scores(folder)), summarised(_measured(folder))]
    printed = published(study.paper)
    ours += _data(sorted(set(printed["dataset"]) & set(study.datasets)), printed)
    return judge_paper(study.paper, pd.concat(ours), study.conventions, unavailable(printed["dataset"].unique()))


def study_evidence(study: Study, folder: Path, store: Store) -> Any:
    """Return what a study's claims are checked on: scores, costs, what was learned on first splits, further tables."""
    from multilab.claims import Evidence

    arrays = {
        (method, cell.part.dataset): learned(cell, store)
        for method in study.all_methods
        for cell in study_cells(study, method)
        if cell.part.split == 0 and cell.method.keep and store.has(cell.key)
    }
    tables = {path.stem: pd.read_csv(path) for path in sorted(folder.glob("*.csv")) if path.stem not in _NOT_TABLES}
    return Evidence(pd.concat([_scores(folder), _measured(folder)]), arrays, tables, study.alpha)


def claims_text(study: Study, folder: Path, store: Store) -> str:
    """Return the content of ``claims.json``: a list, one entry per claim of the study."""
    from multilab.claims import check_claims, printed_evidence, published

    paper = printed_evidence(published(study.paper), study.alpha) if study.paper else None
    found = check_claims(study.claims, study_evidence(study, folder, store), paper)
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def unavailable(names: Iterable[str]) -> Mapping[str, str]:
    """Return the datasets among the names whose card says that their data cannot be had, and why."""
    from multilab import datasets

    known = set(datasets.cards())
    found = {name: datasets.card(name) for name in names if name in known}
    return {name: card.reason for name, card in found.items() if not card.available}


def _scores(folder: Path) -> pd.DataFrame:
    """Return all long scores of a report folder."""
    paths = [folder / "scores.csv", *sorted(folder.glob("scores-*.csv"))]
    return pd.concat([pd.read_csv(path, float_precision="round_trip") for path in paths], ignore_index=True)


def _measured(folder: Path) -> pd.DataFrame:
    """Return what was measured, in the form of scores, and ``total_seconds`` to fit and to predict."""
    named = ["dataset", "split", "method", "key"]
    if not (folder / "measured.csv").is_file():
        return pd.DataFrame(columns=[*named, "metric", "value"])
    found = pd.read_csv(folder / "measured.csv")
    found["total_seconds"] = found["fit_seconds"] + found["predict_seconds"]
    return found.melt(named, [*MEASURED, "total_seconds"], "metric", "value").dropna(subset="value")


def _data(names: Iterable[str], printed: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the numbers of those data sets that the paper describes."""
    from multilab.claims import data_rows
    from multilab.datasets import load

    about = {"n_instances", "n_features", "label_cardinality", "train_label_cardinality", "label_count"}
    described = set(printed.loc[printed["metric"].isin(about), "dataset"])
    return [data_rows(load(name)) for name in names if name in described]
