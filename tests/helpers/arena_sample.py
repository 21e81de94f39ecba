"""A small arena with invented results: three tracks, unfinished cells, an undefined metric, fewer tuned splits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from multilab.arena import arena_leaderboard, leaderboard_text, method_costs, track_results
from multilab.core import write_content
from multilab.metrics import METRICS

SETS = [
    # name, domain, n, d, q, cardinality
    ("flags", "image", 194, 43, 7, 3.3918),
    ("emotions", "audio", 593, 72, 6, 1.8685),
    ("birds", "audio", 645, 260, 19, 1.0140),
    ("medical", "text", 978, 1449, 45, 1.2454),
    ("enron", "text", 1702, 1001, 53, 3.3784),
    ("scene", "image", 2407, 294, 6, 1.0740),
    ("yeast", "biology", 2417, 103, 14, 4.2371),
]
METHODS = [
    # name, title, family, licence, skill, seconds
    ("lightgbm", "LightGBM per label", "boosting", "MIT", 0.9, 4.0),
    ("ecc", "ECC", "chains", "BSD-3-Clause", 0.8, 9.0),
    ("rf_pct", "RF-PCT <forest>", "forests", "BSD-3-Clause", 0.85, 2.0),
    ("mlknn", "ML-kNN", "neighbours", "BSD-3-Clause", 0.5, 0.05),
    ("br_logistic", "BR, logistic regression", "binary relevance", "BSD-3-Clause", 0.6, 0.3),
    ("boomer", "BOOMER", "boosting", "MIT", 0.7, 30.0),
    ("mldf", "MLDF", "forests", "BSD-3-Clause", 0.82, 50.0),
    ("all_zero", "No label", "baseline", "BSD-3-Clause", 0.05, 0.001),
]
TUNED, STACKS = ("lightgbm", "mlknn"), ("portfolio_stack",)
CHOSEN_ON = {"sets": ["flags", "emotions", "absent"], "reason": "A rule of the <stack> was chosen on these sets."}
MEASURED = (  # listed, so that a contributor's metric changes none of the invented numbers
    *("hamming_loss", "subset_accuracy", "jaccard", "example_precision", "example_recall", "example_f1", "macro_f1"),
    *("micro_f1", "macro_auc", "micro_auc", "average_precision", "ranking_loss", "one_error", "coverage"),
    *("coverage_1based", "coverage_normalised"),
)
ABSENT = [
    {"name": "tabicl", "title": "TabICL", "family": "networks", "licence": "BSD-3-Clause", "requires": ["torch"],
     "reference": "Its paper.", "reason": "not run here: weights"},
]  # fmt: skip


def _rating(errors: np.ndarray, columns: list[str], anchor: str | None, sources: list[str]) -> pd.DataFrame:
    """Return ratings that need no package: a line through the mean ranks."""
    ranks = np.nanmean(errors, axis=(0, 1))
    elo = np.round(1000 + 400 * ((len(columns) + 1) / 2 - ranks) / len(columns), 1)
    return pd.DataFrame({"elo": elo, "elo_low": elo - 35.5, "elo_high": elo + 41.5}, index=list(columns))


def _scores(rng: np.random.Generator, skills: dict[str, float], sets: list, splits: int) -> pd.DataFrame:
    rows = []
    for name, _, _, _, q, _ in sets:
        level = rng.uniform(0.3, 0.7)
        for method, skill in skills.items():
            for metric in MEASURED:
                about = METRICS[metric]
                quality = min(max(level + 0.3 * skill + rng.normal(0, 0.05), 0.01), 0.99)
                value = quality if about.direction == "max" else 1 - quality
                if np.isinf(about.high):
                    value *= q
                for split in range(splits):
                    rows.append((name, split, method, metric, round(value + rng.normal(0, 0.01), 9)))
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "metric", "value"])


def _measured(scores: pd.DataFrame, seconds: dict[str, float], n: dict[str, int]) -> pd.DataFrame:
    cells = scores[["dataset", "split", "method"]].drop_duplicates().reset_index(drop=True)
    fit = cells["method"].map(seconds) * cells["dataset"].map(n) / 1000
    return cells.assign(
        fit_seconds=fit, input_seconds=0.0, predict_seconds=fit / 50, peak_mb=20 + 2 * fit,
        model_bytes=(1e5 * (1 + fit)).round().astype(int), alone=True,
    )  # fmt: skip


def write_arena(reports: Path, tracks: tuple[str, ...] = ("default", "tuned", "ensembled"), seed: int = 0) -> Path:
    """Write ``leaderboard.json.gz`` and the tables of the studies, and return ``reports/arena``."""
    rng = np.random.default_rng(seed)
    skills = {name: skill for name, _, _, _, skill, _ in METHODS}
    seconds = {name: s for name, *_, s in METHODS} | {"portfolio_stack": 40.0}
    n = {name: rows for name, _, rows, *_ in SETS}
    late = [("enron", 0, "boomer", "time limit of 60 s", 60.0), ("yeast", 3, "mldf", "memory limit of 4 GiB", 31.0)]
    late += [("medical", split, "mldf", "time limit of 60 s", 60.0) for split in range(5)]
    tables = {
        "default": _scores(rng, skills, SETS, 5),
        "tuned": _scores(rng, {name: skills[name] + 0.05 for name in TUNED}, SETS[1:5], 3),
        "ensembled": _scores(rng, dict.fromkeys(STACKS, 1.0), SETS, 5),
    }
    default = tables["default"]
    default.loc[(default["dataset"] == "flags") & (default["metric"] == "macro_auc"), "value"] = np.nan
    for dataset, split, method, *_ in late:
        cell = (default["dataset"] == dataset) & (default["split"] == split) & (default["method"] == method)
        default = default[~cell]
    tables["default"] = default
    unfinished = pd.DataFrame(late, columns=["dataset", "split", "method", "reason", "seconds"])
    studies, results, measured = [], [], None
    for track in tracks:
        study = "arena" if track == "default" else {"tuned": "arena-tuned", "ensembled": "arena-stacks"}[track]
        folder = reports / study
        folder.mkdir(parents=True, exist_ok=True)
        tables[track].to_csv(folder / "scores.csv.gz", index=False)
        table = _measured(tables[track], seconds, n)
        table.to_csv(folder / "measured.csv", index=False)
        measured = table if measured is None else measured
        results.append(track_results(track, tables[track], unfinished if track == "default" else None))
        studies.append(
            {"track": track, "study": study, "title": study, "description": "", "created": "2026-11-23 14:00 UTC",
             "commit": "0123456789ab", "machine": "Linux x86_64, 2 cores", "python": "3.11.7",
             "tune": {"n_trials": 15, "folds": 3, "metric": "macro_auc"} if track == "tuned" else None}
        )  # fmt: skip
    unfinished.to_csv(reports / "arena" / "unfinished.csv", index=False)
    limits = {"limits": {"seconds": 60.0, "gigabytes": 4.0}}
    (reports / "arena" / "study.json").write_text(json.dumps(limits), encoding="utf-8")
    costs = method_costs(measured, {name: (0.8 * rows, 0.2 * rows) for name, rows in n.items()})
    costs.attrs["studies"] = ["arena-costs"]
    facts = [
        {"name": name, "title": name.title(), "domain": domain, "text": domain == "text", "n": rows, "d": d, "q": q,
         "cardinality": cardinality, "density": round(cardinality / q, 4)}
        for name, domain, rows, d, q, cardinality in SETS
    ]  # fmt: skip
    methods = {
        name: {"title": title, "family": family, "licence": licence, "requires": [], "reference": "", "base_scores": [],
               "libraries": {name: "4.7.0"} if name == "lightgbm" else {}, "chosen_on": None}
        for name, title, family, licence, *_ in METHODS
    }  # fmt: skip
    methods["portfolio_stack"] = {
        "title": "Portfolio stack", "family": "ensembles", "licence": "BSD-3-Clause", "requires": [],
        "reference": "", "base_scores": ["ecc", "rf_pct"], "libraries": {}, "chosen_on": CHOSEN_ON,
    }  # fmt: skip
    content = arena_leaderboard(results, facts, methods, studies, costs=costs, rating=_rating, absent=ABSENT)
    path = reports / "arena" / "leaderboard.json.gz"
    write_content(path, leaderboard_text(content))
    return path.parent
